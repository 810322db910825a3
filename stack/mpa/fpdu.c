/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpa/fpdu.h"

#include <string.h>

#include "base/crc32c.h"
#include "mpa/markers.h"

static uw_status fail(struct mpa_rx *rx, uw_status st)
{
	rx->failed = st;
	return st;
}

static uw_status judge_crc(struct mpa_rx *rx, uint32_t state, const uint8_t *field)
{
	if (uw_crc32c_end(state) == mpa_get_crc(field))
		return UW_OK;
	rx->stats->mpa_rx_crc_errors++;
	return fail(rx, UW_E_MPA_CRC);
}

/* RFC 5044 §4.4: the CRC covers ULPDU_Length to the last pad octet, markers included. `covered` is
 * that part, `field` the CRC as received. */
static uw_status check_crc(struct mpa_rx *rx, struct uw_rope covered, struct uw_rope field)
{
	uint8_t got[MPA_CRC_SIZE];

	if (!rx->crc)
		return UW_OK;
	uw_rope_copy(field, got, sizeof(got));
	return judge_crc(rx, uw_rope_crc32c(UW_CRC32C_START, covered), got);
}

/* An FPDU that lies in one piece, as nearly all do. UW_MORE: not this one. */
static uw_status next_whole(struct mpa_rx *rx, struct uw_rope in, struct uw_rope *ulpdu,
			    size_t *used)
{
	struct uw_span head = uw_rope_head(in);
	size_t n, size, covered;
	uw_status st = UW_OK;

	if (head.n < MPA_LENGTH_SIZE)
		return UW_MORE;
	n = uw_be16(head.p);
	size = mpa_fpdu_size(n);
	if (head.n < size)
		return UW_MORE;
	covered = size - MPA_CRC_SIZE;
	if (rx->crc)
		st = judge_crc(rx, uw_crc32c_add(UW_CRC32C_START, head.p, covered),
			       head.p + covered);
	*ulpdu = (struct uw_rope){ .v = in.v,
				   .skip = in.skip + MPA_LENGTH_SIZE,
				   .len = (uint32_t)n };
	*used = st ? 0 : size;
	return st;
}

static uw_status next_plain(struct mpa_rx *rx, struct uw_rope in, struct uw_rope *ulpdu,
			    size_t *used)
{
	uint8_t lenf[MPA_LENGTH_SIZE];
	size_t n, size;
	uw_status st = next_whole(rx, in, ulpdu, used);

	if (st != UW_MORE || in.len < sizeof(lenf))
		return st;
	uw_rope_copy(in, lenf, sizeof(lenf));
	n = uw_be16(lenf);
	size = mpa_fpdu_size(n);
	if (in.len < size)
		return UW_MORE;
	st = check_crc(rx, uw_rope_sub(in, 0, size - MPA_CRC_SIZE),
		       uw_rope_sub(in, size - MPA_CRC_SIZE, MPA_CRC_SIZE));
	if (st)
		return st;
	*ulpdu = uw_rope_sub(in, MPA_LENGTH_SIZE, n);
	*used = size;
	rx->stats->mpa_rx_straddling += uw_rope_head(*ulpdu).n != n;
	return UW_OK;
}

/* The slow way: markers are rare, and only come when configured. */
static uw_status next_marked(struct mpa_rx *rx, struct uw_rope in, struct uw_rope *ulpdu,
			     size_t *used)
{
	size_t head = mpa_marked_size(rx->phase, MPA_LENGTH_SIZE), n, body, whole;
	uint8_t lenf[MPA_LENGTH_SIZE];
	int ok;
	uw_status st;

	if (in.len < head)
		return UW_MORE;
	mpa_markers_strip(in, rx->phase, lenf, sizeof(lenf), &ok);
	n = uw_be16(lenf);
	whole = mpa_marked_size(rx->phase, mpa_fpdu_size(n));
	if (in.len < whole)
		return UW_MORE;
	/* A marker between pad and CRC belongs to what the CRC covers (RFC 5044 §4.4). */
	body = whole - MPA_CRC_SIZE;
	st = check_crc(rx, uw_rope_sub(in, 0, body), uw_rope_sub(in, body, MPA_CRC_SIZE));
	if (st)
		return st;
	mpa_markers_strip(in, rx->phase, rx->scratch, mpa_fpdu_size(n), &ok);
	if (!ok)
		return fail(rx, UW_E_MPA_MARKER);
	rx->flat = (struct uw_span){ rx->scratch + MPA_LENGTH_SIZE, n };
	*ulpdu = uw_rope_of(&rx->flat);
	*used = whole;
	rx->phase = mpa_phase_add(rx->phase, whole);
	return UW_OK;
}

uw_status mpa_rx_next(struct mpa_rx *rx, struct uw_rope in, struct uw_rope *ulpdu, size_t *used)
{
	uw_status st;

	*used = 0;
	if (rx->failed)
		return rx->failed;
	st = rx->markers ? next_marked(rx, in, ulpdu, used) : next_plain(rx, in, ulpdu, used);
	if (st)
		return st;
	rx->stats->mpa_rx_fpdus++;
	return UW_OK;
}

void mpa_rx_put_back(struct mpa_rx *rx, struct uw_rope ulpdu, size_t used)
{
	if (rx->markers)
		rx->phase = mpa_phase_add(rx->phase, 512 - used % 512);
	rx->stats->mpa_rx_fpdus--;
	if (uw_rope_head(ulpdu).n != ulpdu.len)
		rx->stats->mpa_rx_straddling--;
}

size_t mpa_mulpdu(size_t emss, bool markers)
{
	size_t over = 6 + emss % 4 + (markers ? 4 * ((emss + 511) / 512) : 0);
	size_t m = emss > over ? emss - over : 0;

	if (m < MPA_MULPDU_MIN) /* RFC 5044 §4.5: never below, alignment is off then */
		return MPA_MULPDU_MIN;
	return m > MPA_ULPDU_MAX ? MPA_ULPDU_MAX : m;
}

size_t mpa_tx_fit(const struct mpa_tx *tx, size_t room)
{
	size_t over = MPA_LENGTH_SIZE + MPA_CRC_SIZE;

	if (tx->markers)
		over += MPA_MARKER_SIZE * (room / MPA_MARKER_STEP + 1);
	room &= ~(size_t)3;
	if (room <= over)
		return 0;
	return room - over > MPA_ULPDU_MAX ? MPA_ULPDU_MAX : room - over;
}

size_t mpa_tx_finish(struct mpa_tx *tx, uint8_t *p, size_t n)
{
	size_t pad = mpa_pad(n), size = MPA_LENGTH_SIZE + n + pad;

	uw_put16(p, (uint16_t)n);
	memset(p + MPA_LENGTH_SIZE + n, 0, pad); /* RFC 5044 §4.1: pad octets are zero */
	if (tx->markers) {
		/* The CRC's place counts too: a marker may stand right in front of it. */
		size = mpa_markers_insert(p, tx->phase, size + MPA_CRC_SIZE) - MPA_CRC_SIZE;
		tx->phase = mpa_phase_add(tx->phase, size + MPA_CRC_SIZE);
	}
	/* With CRC off the field is there all the same (RFC 5044 §4.4); zero says "not computed".
	 */
	mpa_put_crc(p + size, tx->crc ? uw_crc32c_end(uw_crc32c_add(UW_CRC32C_START, p, size)) : 0);
	tx->stats->mpa_tx_fpdus++;
	return size + MPA_CRC_SIZE;
}
