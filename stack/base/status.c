/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"

#include <errno.h>
#include <stddef.h>

#include "uwarp/types.h"

struct row {
	const char *name;
	struct uw_term_code term;
	uint16_t err;
	uint8_t wc;
};

#define LOCAL                                                                                      \
	{                                                                                          \
		0, 0, 0, 0                                                                         \
	}
#define TERM(l, e, c)                                                                              \
	{                                                                                          \
		l, e, c, 1                                                                         \
	}

/* RFC 5044 §8, RFC 6581 §8, RFC 5041 §7.2, RFC 5040 §4.8 (figures 9 and 10). */
static const struct row rows[UW_STATUS_COUNT] = {
	[UW_OK] = { "ok", LOCAL, 0, UW_WC_SUCCESS },
	[UW_MORE] = { "more needed", LOCAL, EAGAIN, UW_WC_GENERAL_ERR },

	[UW_E_LLP_CLOSED] = { "tcp: connection lost", TERM(2, 0, 0x01), ECONNRESET,
			      UW_WC_RETRY_EXC_ERR },
	[UW_E_MPA_CRC] = { "mpa: CRC mismatch", TERM(2, 0, 0x02), EIO, UW_WC_FATAL_ERR },
	[UW_E_MPA_MARKER] = { "mpa: marker and length disagree", TERM(2, 0, 0x03), EPROTO,
			      UW_WC_FATAL_ERR },
	[UW_E_MPA_FRAME] = { "mpa: invalid request or reply frame", TERM(2, 0, 0x04), EPROTO,
			     UW_WC_FATAL_ERR },
	[UW_E_MPA_LOCAL] = { "mpa: local catastrophic", TERM(2, 0, 0x05), EIO, UW_WC_FATAL_ERR },
	[UW_E_MPA_IRD] = { "mpa: insufficient IRD", TERM(2, 0, 0x06), EPROTO, UW_WC_FATAL_ERR },
	[UW_E_MPA_RTR] = { "mpa: no matching RTR", TERM(2, 0, 0x07), EPROTO, UW_WC_FATAL_ERR },
	[UW_E_MPA_REVISION] = { "mpa: revision not supported", LOCAL, EPROTONOSUPPORT,
				UW_WC_FATAL_ERR },
	[UW_E_MPA_INITIATOR] = { "mpa: both sides initiate", LOCAL, EPROTO, UW_WC_FATAL_ERR },
	[UW_E_MPA_TIMEOUT] = { "mpa: start-up timed out", LOCAL, ETIMEDOUT, UW_WC_FATAL_ERR },

	[UW_E_DDP_LOCAL] = { "ddp: local catastrophic", TERM(1, 0, 0x00), EIO, UW_WC_FATAL_ERR },
	[UW_E_DDP_STAG] = { "ddp: invalid STag", TERM(1, 1, 0x00), EACCES, UW_WC_REM_ACCESS_ERR },
	[UW_E_DDP_BOUNDS] = { "ddp: base or bounds", TERM(1, 1, 0x01), EACCES,
			      UW_WC_REM_ACCESS_ERR },
	[UW_E_DDP_STREAM] = { "ddp: STag not of this stream", TERM(1, 1, 0x02), EACCES,
			      UW_WC_REM_ACCESS_ERR },
	[UW_E_DDP_WRAP] = { "ddp: TO wrap", TERM(1, 1, 0x03), EACCES, UW_WC_REM_ACCESS_ERR },
	[UW_E_DDP_T_VERSION] = { "ddp: tagged version", TERM(1, 1, 0x04), EPROTO,
				 UW_WC_REM_OP_ERR },
	[UW_E_DDP_QN] = { "ddp: invalid queue number", TERM(1, 2, 0x01), EPROTO, UW_WC_REM_OP_ERR },
	[UW_E_DDP_NO_BUFFER] = { "ddp: no buffer for the message", TERM(1, 2, 0x02), ENOBUFS,
				 UW_WC_RNR_RETRY_EXC_ERR },
	[UW_E_DDP_MSN] = { "ddp: message number out of range", TERM(1, 2, 0x03), EPROTO,
			   UW_WC_REM_OP_ERR },
	[UW_E_DDP_MO] = { "ddp: invalid message offset", TERM(1, 2, 0x04), EPROTO,
			  UW_WC_REM_OP_ERR },
	[UW_E_DDP_TOO_LONG] = { "ddp: message too long for the buffer", TERM(1, 2, 0x05), EMSGSIZE,
				UW_WC_REM_INV_REQ_ERR },
	[UW_E_DDP_U_VERSION] = { "ddp: untagged version", TERM(1, 2, 0x06), EPROTO,
				 UW_WC_REM_OP_ERR },

	[UW_E_RDMAP_LOCAL] = { "rdmap: local catastrophic", TERM(0, 0, 0x00), EIO,
			       UW_WC_FATAL_ERR },
	[UW_E_RDMAP_STAG] = { "rdmap: invalid STag", TERM(0, 1, 0x00), EACCES,
			      UW_WC_REM_ACCESS_ERR },
	[UW_E_RDMAP_BOUNDS] = { "rdmap: base or bounds", TERM(0, 1, 0x01), EACCES,
				UW_WC_REM_ACCESS_ERR },
	[UW_E_RDMAP_ACCESS] = { "rdmap: access rights", TERM(0, 1, 0x02), EACCES,
				UW_WC_REM_ACCESS_ERR },
	[UW_E_RDMAP_STREAM] = { "rdmap: STag not of this stream", TERM(0, 1, 0x03), EACCES,
				UW_WC_REM_ACCESS_ERR },
	[UW_E_RDMAP_WRAP] = { "rdmap: TO wrap", TERM(0, 1, 0x04), EACCES, UW_WC_REM_ACCESS_ERR },
	[UW_E_RDMAP_NOT_INV] = { "rdmap: STag cannot be invalidated", TERM(0, 1, 0x09), EACCES,
				 UW_WC_REM_ACCESS_ERR },
	[UW_E_RDMAP_VERSION] = { "rdmap: invalid version", TERM(0, 2, 0x05), EPROTO,
				 UW_WC_REM_OP_ERR },
	[UW_E_RDMAP_OPCODE] = { "rdmap: unexpected opcode", TERM(0, 2, 0x06), EPROTO,
				UW_WC_REM_INV_REQ_ERR },
	[UW_E_RDMAP_STREAM_CATASTROPHIC] = { "rdmap: catastrophic, this stream", TERM(0, 2, 0x07),
					     EIO, UW_WC_REM_OP_ERR },
	[UW_E_RDMAP_GLOBAL] = { "rdmap: catastrophic, global", TERM(0, 2, 0x08), EIO,
				UW_WC_REM_OP_ERR },
	[UW_E_RDMAP_UNSPEC] = { "rdmap: unspecified", TERM(0, 2, 0xff), EIO, UW_WC_REM_OP_ERR },

	[UW_E_LKEY] = { "local: SGE outside registered memory", LOCAL, EFAULT, UW_WC_LOC_PROT_ERR },
	[UW_E_LEN] = { "local: length out of range", LOCAL, EMSGSIZE, UW_WC_LOC_LEN_ERR },
	[UW_E_BIND] = { "local: memory window", LOCAL, EINVAL, UW_WC_MW_BIND_ERR },
	[UW_E_ORD] = { "local: the peer takes no Reads and atomics (ORD is 0)", LOCAL, EINVAL,
		       UW_WC_LOC_QP_OP_ERR },
	[UW_E_MISALIGNED] = { "local: an atomic's address is not a multiple of 8", LOCAL, EINVAL,
			      UW_WC_REM_INV_REQ_ERR },
	[UW_E_FLUSHED] = { "local: flushed", LOCAL, ECANCELED, UW_WC_WR_FLUSH_ERR },
	[UW_E_TERMINATED] = { "peer sent Terminate", LOCAL, ECONNRESET, UW_WC_REM_OP_ERR },
	[UW_E_INVAL] = { "invalid argument", LOCAL, EINVAL, UW_WC_LOC_QP_OP_ERR },
	[UW_E_STATE] = { "not in this state", LOCAL, EINVAL, UW_WC_LOC_QP_OP_ERR },
	[UW_E_NOMEM] = { "out of memory", LOCAL, ENOMEM, UW_WC_GENERAL_ERR },
	[UW_E_NO_FDS] = { "no file descriptor is left: raise the limit (ulimit -n)", LOCAL, EMFILE,
			  UW_WC_GENERAL_ERR },
	[UW_E_BUSY] = { "in use", LOCAL, EBUSY, UW_WC_GENERAL_ERR },
	[UW_E_NOENT] = { "not found", LOCAL, ENOENT, UW_WC_GENERAL_ERR },
	[UW_E_NO_ROUTE] = { "no route", LOCAL, ENETUNREACH, UW_WC_GENERAL_ERR },
	[UW_E_UNREACHABLE] = { "unreachable", LOCAL, EHOSTUNREACH, UW_WC_GENERAL_ERR },
	[UW_E_REFUSED] = { "connection refused", LOCAL, ECONNREFUSED, UW_WC_GENERAL_ERR },
	[UW_E_REJECTED] = { "rejected by the peer", LOCAL, ECONNREFUSED, UW_WC_GENERAL_ERR },
	[UW_E_TIMEOUT] = { "timed out", LOCAL, ETIMEDOUT, UW_WC_GENERAL_ERR },
	[UW_E_ADDR_IN_USE] = { "address in use", LOCAL, EADDRINUSE, UW_WC_GENERAL_ERR },
	[UW_E_ADDR] = { "not one of our addresses", LOCAL, EADDRNOTAVAIL, UW_WC_GENERAL_ERR },
	[UW_E_AFAMILY] = { "address family not supported", LOCAL, EAFNOSUPPORT, UW_WC_GENERAL_ERR },
	[UW_E_NO_LINK] = { "no such link", LOCAL, ENODEV, UW_WC_GENERAL_ERR },
	[UW_E_PERM] = { "missing rights", LOCAL, EPERM, UW_WC_GENERAL_ERR },
	[UW_E_UNSUPPORTED] = { "not supported", LOCAL, EOPNOTSUPP, UW_WC_LOC_QP_OP_ERR },
};

static const struct row *row_of(uw_status st)
{
	if ((unsigned)st >= UW_STATUS_COUNT || !rows[st].name)
		return &rows[UW_E_RDMAP_UNSPEC];
	return &rows[st];
}

const char *uw_status_name(uw_status st)
{
	return row_of(st)->name;
}

int uw_status_errno(uw_status st)
{
	return row_of(st)->err;
}

uint32_t uw_status_wc(uw_status st)
{
	return row_of(st)->wc;
}

struct uw_term_code uw_status_term(uw_status st)
{
	return row_of(st)->term;
}

uw_status uw_status_from_term(uint8_t layer, uint8_t etype, uint8_t code)
{
	for (unsigned i = 0; i < UW_STATUS_COUNT; i++) {
		struct uw_term_code t = rows[i].term;

		if (t.sends && t.layer == layer && t.etype == etype && t.code == code)
			return (uw_status)i;
	}
	return UW_E_RDMAP_UNSPEC;
}
