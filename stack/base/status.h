/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The error codes of the stack. status.c maps each code to the Terminate message for the peer
 * (layer, type, code), to a work completion status and to errno.
 */
#ifndef UWARP_BASE_STATUS_H
#define UWARP_BASE_STATUS_H

#include <stdint.h>

typedef enum uw_status {
	UW_OK = 0,
	UW_MORE, /* not an error: more octets, room or credit are needed to go on */

	/* The comment of each code below is the layer/type/code of its Terminate message. MPA: RFC
	   5044 §8 and RFC 6581 §8 */
	UW_E_LLP_CLOSED,    /* 2/0/01 TCP connection closed, terminated or lost */
	UW_E_MPA_CRC,	    /* 2/0/02 */
	UW_E_MPA_MARKER,    /* 2/0/03 */
	UW_E_MPA_FRAME,	    /* 2/0/04 invalid request or reply frame */
	UW_E_MPA_LOCAL,	    /* 2/0/05 */
	UW_E_MPA_IRD,	    /* 2/0/06 insufficient IRD */
	UW_E_MPA_RTR,	    /* 2/0/07 no matching RTR */
	UW_E_MPA_REVISION,  /* MPA start-up frame of an unsupported revision */
	UW_E_MPA_INITIATOR, /* both sides are initiators, RFC 5044 §7.1.2 */
	UW_E_MPA_TIMEOUT,   /* start-up did not finish in time */

	/* DDP: RFC 5041 §7.2 */
	UW_E_DDP_LOCAL,	    /* 1/0/00 */
	UW_E_DDP_STAG,	    /* 1/1/00 */
	UW_E_DDP_BOUNDS,    /* 1/1/01 */
	UW_E_DDP_STREAM,    /* 1/1/02 */
	UW_E_DDP_WRAP,	    /* 1/1/03 */
	UW_E_DDP_T_VERSION, /* 1/1/04 */
	UW_E_DDP_QN,	    /* 1/2/01 */
	UW_E_DDP_NO_BUFFER, /* 1/2/02 */
	UW_E_DDP_MSN,	    /* 1/2/03 */
	UW_E_DDP_MO,	    /* 1/2/04 */
	UW_E_DDP_TOO_LONG,  /* 1/2/05 */
	UW_E_DDP_U_VERSION, /* 1/2/06 */

	/* RDMAP: RFC 5040 §4.8 figure 9 and RFC 7306 §8 */
	UW_E_RDMAP_LOCAL,		/* 0/0/00 */
	UW_E_RDMAP_STAG,		/* 0/1/00 */
	UW_E_RDMAP_BOUNDS,		/* 0/1/01 */
	UW_E_RDMAP_ACCESS,		/* 0/1/02 */
	UW_E_RDMAP_STREAM,		/* 0/1/03 */
	UW_E_RDMAP_WRAP,		/* 0/1/04 */
	UW_E_RDMAP_NOT_INV,		/* 0/1/09 */
	UW_E_RDMAP_VERSION,		/* 0/2/05 */
	UW_E_RDMAP_OPCODE,		/* 0/2/06 */
	UW_E_RDMAP_STREAM_CATASTROPHIC, /* 0/2/07 */
	UW_E_RDMAP_GLOBAL,		/* 0/2/08 */
	UW_E_RDMAP_UNSPEC,		/* 0/2/FF */

	/* local errors: the peer is not told */
	UW_E_LKEY,	 /* an SGE of a request fails the lkey check */
	UW_E_LEN,	 /* a request's length is out of range */
	UW_E_BIND,	 /* a memory window cannot be bound or invalidated */
	UW_E_MISALIGNED, /* an atomic at an address that is not aligned: the peer's 0/2/07 */
	UW_E_ORD,	 /* a Read or an atomic, but the negotiated ORD is 0 */
	UW_E_FLUSHED,	 /* the QP left RTS before the request was done */
	UW_E_TERMINATED, /* the peer sent Terminate */
	UW_E_INVAL,
	UW_E_STATE,
	UW_E_NOMEM,
	UW_E_NO_FDS,
	UW_E_BUSY,
	UW_E_NOENT,
	UW_E_UNREACHABLE,
	UW_E_NO_ROUTE, /* neither a network of the link nor a route has the address */
	UW_E_REFUSED,
	UW_E_REJECTED,
	UW_E_TIMEOUT,
	UW_E_ADDR_IN_USE,
	UW_E_ADDR,
	UW_E_AFAMILY,
	UW_E_NO_LINK,
	UW_E_PERM,
	UW_E_UNSUPPORTED,

	UW_STATUS_COUNT
} uw_status;

/* Marks a function whose uw_status must be checked. */
#define UW_CHECK __attribute__((warn_unused_result))

/* The error code in a Terminate message, RFC 5040 §4.8. layer: 0 RDMAP, 1 DDP, 2 LLP (MPA). */
struct uw_term_code {
	uint8_t layer, etype, code;
	uint8_t sends; /* 0: no Terminate is sent for this status */
};

const char *uw_status_name(uw_status st); /* "ddp: base or bounds", never NULL */
int uw_status_errno(uw_status st);	  /* positive errno; 0 for UW_OK */
uint32_t uw_status_wc(uw_status st);	  /* the enum uw_wc_status of a work completion */
struct uw_term_code uw_status_term(uw_status st);

/* The status for a received layer, type and code; UW_E_RDMAP_UNSPEC if none matches. */
uw_status uw_status_from_term(uint8_t layer, uint8_t etype, uint8_t code);

#endif
