/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What uwarp-conform and its target program say to each other; all big-endian. doc/conform.md has
 * the same as tables.
 */
#ifndef CONFORM_TARGET_WIRE_H
#define CONFORM_TARGET_WIRE_H

#include <assert.h>
#include <endian.h>
#include <stdint.h>
#include <string.h>

#define WIRE_MAGIC   "uwct"
#define WIRE_DONE    "uwcd"
#define WIRE_VERSION 1
#define WIRE_DEFAULT 0xffff
#define WIRE_REGIONS 6

/* The tester's private data: how this connection is wanted. Absent: all defaults. */
enum wish_flag {
	WISH_HELLO = 1,	  /* Send as soon as the connection is established */
	WISH_REJECT = 2,  /* reject, with private data */
	WISH_KEEP = 4,	  /* do not fill the regions afresh */
	WISH_NO_MORE = 8, /* do not post a receive again after it was used */
};

struct wish_wire {
	char magic[4];
	uint8_t version;
	uint8_t flags;
	uint8_t recvs[2];     /* WIRE_DEFAULT: 16 */
	uint8_t recv_size[4]; /* 0: 4096 */
	uint8_t ird[2];	      /* WIRE_DEFAULT: what the tester asked for */
	uint8_t ord[2];
	uint8_t delay_ms[2]; /* between the request and the answer */
	uint8_t reserved[2];
};
static_assert(sizeof(struct wish_wire) == 20, "wish");

enum region_rights { RIGHT_READ = 1, RIGHT_WRITE = 2, RIGHT_ATOMIC = 4, RIGHT_OTHER_PD = 8 };

struct region_wire {
	uint8_t stag[4];
	uint8_t to[8];
	uint8_t length[4];
	uint8_t rights[4];
	uint8_t sum[4]; /* FNV-1a over the region and the guards around it */
};
static_assert(sizeof(struct region_wire) == 24, "region");

/* The target's private data (and the answer to CMD_REPORT): what it has, and how the connection
 * before this one ended. */
enum advert_flag { ADVERT_ATOMICS = 1 };
enum prior { PRIOR_NONE, PRIOR_GAVE_UP, PRIOR_TOLD /* by an event of the connection manager */ };

struct advert_wire {
	char magic[4];
	uint8_t version;
	uint8_t n_regions;
	uint8_t flags;
	uint8_t prior; /* enum prior: how the connection before ended */
	uint8_t recv_size[4];
	uint8_t recvs[2];
	uint8_t ird[2];
	uint8_t ord[2];
	uint8_t prior_status; /* the first failed completion's that was not flushed */
	uint8_t prior_event;  /* 1 + the asynchronous event's type; 0: none */
	uint8_t prior_flushed[2];
	uint8_t prior_done[2];
	struct region_wire region[WIRE_REGIONS];
};
static_assert(sizeof(struct advert_wire) == 24 + 24 * WIRE_REGIONS, "advert");

/* A Send that begins with the magic is a command; any other is sent back. */
enum command {
	CMD_SEND = 1,
	CMD_WRITE,
	CMD_READ,
	CMD_FETCH_ADD,
	CMD_CMP_SWAP,
	CMD_DISCONNECT,
	CMD_WRITE_IMM,
	CMD_SEND_INV,
	CMD_REPORT,
	CMD_RECVS,
	CMD_COUNT
};
enum command_flag { CMD_SOLICITED = 1, CMD_QUIET = 2 /* no "done" afterwards */ };

struct command_wire {
	char magic[4];
	uint8_t op;
	uint8_t flags;
	uint8_t count[2];
	uint8_t length[4];
	uint8_t stag[4];
	uint8_t to[8];
	uint8_t arg[8];	 /* immediate; what to add, or to compare with */
	uint8_t arg2[8]; /* what to swap in */
};
static_assert(sizeof(struct command_wire) == 40, "command");

/* Sent when the last of a command's work requests has completed. */
struct done_wire {
	char magic[4];
	uint8_t op;
	uint8_t status; /* enum ibv_wc_status of the first that failed */
	uint8_t count[2];
	uint8_t sum[4];	  /* of what a read brought */
	uint8_t value[8]; /* what an atomic brought, as a number */
};
static_assert(sizeof(struct done_wire) == 20, "done");

static inline uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static inline void put16(uint8_t *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

#endif
