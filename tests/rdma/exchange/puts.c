/* puts.c — put data and step counters into the peer's memory; check the puts of the peer, and acknowledge them.
 *
 *     put k ── data ──> slot k % 8             the peer's step k % 4 becomes k / 4 + 1
 *     own word `checked` <── k + 1             the peer puts only a step, after it has checked put k */
#include "tests/rdma/exchange/exchange.h"

#include <inttypes.h>
#include <errno.h>
#include <stddef.h>

#include "core/clock.h"

enum { PUT_ROOM = PUT_BYTES + PAD };

void puts_begin(session *s, const plan *p, put_stream *x)
{
	*x = (put_stream){ .until = s->puts_sent + p->n_puts,
			   .posted = s->puts_sent,
			   .ended = s->puts_sent,
			   .acknowledged = s->puts_checked,
			   .waits_since_ns = gpul_clock_ns() };
}

bool puts_done(const session *s, const put_stream *x)
{
	return x->ended == x->until && s->puts_checked == x->until && x->acknowledged == x->until && !x->acknowledgement &&
	       __atomic_load_n(&s->words->checked, __ATOMIC_ACQUIRE) == x->until;
}

static gpul_rdma_remote word_of(const session *s, size_t offset)
{
	return (gpul_rdma_remote){ .address = s->peer_words.address + offset, .key = s->peer_words.key, .bytes = 8 };
}

static gpul_status post_put(session *s, const plan *p, put_stream *x, bool *did, gpul_error *err)
{
	const uint64_t k = x->posted, slot = k % PUT_SLOTS * PUT_ROOM;
	uint32_t align;
	uint64_t seed;
	const uint64_t bytes = put_make(p, s->serving, k, &align, &seed), at = s->n_slots * s->slot + slot + (63 - align);
	const gpul_rdma_put_desc put = {
		.from = { .at = (uint64_t)(uintptr_t)(s->out.at + at), .bytes = bytes, .area = gpul_rdma_region_area(s->out.region) },
		.to = { .address = s->peer_puts.address + slot + align, .key = s->peer_puts.key, .bytes = PUT_BYTES },
		.signal = word_of(s, offsetof(words, steps) + k % LANES * 8),
		.signal_value = k / LANES + 1,
		.lane = (unsigned)(k % LANES),
	};
	gpul_status st;

	pattern_fill(s->out.at + at, bytes, seed);
	st = gpul_rdma_put(s->conn, &put, s->deadline_ms, &x->requests[k % PUT_SLOTS], err);
	if (st || !x->requests[k % PUT_SLOTS])
		return st;
	x->posted++;
	*did = true;
	s->totals.puts++;
	s->totals.bytes += bytes;
	return GPUL_OK;
}

/* Check the next put of the peer, if it has arrived. */
static gpul_status check_put(session *s, const plan *p, bool *did, gpul_error *err)
{
	const uint64_t k = s->puts_checked;
	const unsigned char *slot = s->in.at + s->n_slots * s->slot + k % PUT_SLOTS * PUT_ROOM;
	uint64_t seed, bytes, wrong;
	uint32_t align;

	if (__atomic_load_n(&s->words->steps[k % LANES], __ATOMIC_ACQUIRE) < k / LANES + 1)
		return GPUL_OK;
	bytes = put_make(p, !s->serving, k, &align, &seed);
	wrong = pattern_check(slot + align, bytes, seed);
	if (wrong != bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "WRONG DATA: connection %u, put %" PRIu64 ": byte %" PRIu64 " of %" PRIu64 " is 0x%02x", p->connection, k,
				 wrong, bytes, slot[align + wrong]);
	s->puts_checked++;
	*did = true;
	return GPUL_OK;
}

/* Send the number of checked puts to the peer, with at most one acknowledgement in flight. */
static gpul_status acknowledge(session *s, put_stream *x, bool *did, gpul_error *err)
{
	const gpul_rdma_put_desc put = { .signal = word_of(s, offsetof(words, checked)), .signal_value = s->puts_checked };
	bool done = false;
	gpul_status st;

	if (x->acknowledgement) {
		st = gpul_rdma_test(s->conn, x->acknowledgement, &done, NULL, err);
		if (st || !done)
			return st;
		x->acknowledgement = 0;
		*did = true;
	}
	if (x->acknowledged == s->puts_checked)
		return GPUL_OK;
	st = gpul_rdma_put(s->conn, &put, s->deadline_ms, &x->acknowledgement, err);
	if (!st && x->acknowledgement)
		x->acknowledged = s->puts_checked;
	return st;
}

/* Fail if the next put does not arrive in time; a receiver has no request for puts, so the library has no deadline for them. */
static gpul_status check_time(const session *s, put_stream *x, bool did, gpul_error *err)
{
	if (did || x->until == 0 || puts_done(s, x)) {
		x->waits_since_ns = gpul_clock_ns();
		return GPUL_OK;
	}
	if (gpul_clock_ns() - x->waits_since_ns < 2 * (uint64_t)s->deadline_ms * 1000000)
		return GPUL_OK;
	return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
			 "puts wait: %" PRIu64 " of %" PRIu64 " sent, %" PRIu64 " ended, %" PRIu64 " checked by "
			 "the peer; of the peer's %" PRIu64 " checked",
			 x->posted, x->until, x->ended, s->words->checked, s->puts_checked);
}

gpul_status puts_step(session *s, const plan *p, put_stream *x, bool *did, gpul_error *err)
{
	bool some = false, done = false;
	gpul_status st = GPUL_OK;

	if (x->posted < x->until && x->posted < __atomic_load_n(&s->words->checked, __ATOMIC_ACQUIRE) + PUT_SLOTS &&
	    x->posted - x->ended < PUT_SLOTS)
		st = post_put(s, p, x, &some, err);
	if (!st && x->ended < x->posted) {
		st = gpul_rdma_test(s->conn, x->requests[x->ended % PUT_SLOTS], &done, NULL, err);
		x->ended += done;
		some |= done;
	}
	if (!st && s->puts_checked < x->until)
		st = check_put(s, p, &some, err);
	if (!st)
		st = acknowledge(s, x, &some, err);
	if (!st)
		st = check_time(s, x, some, err);
	s->puts_sent = x->posted;
	*did |= some;
	return st;
}
