/* wait.c — how a rank waits: each wait ends with a packet, with the failure of the job, or with a time-out whose message names the
 * missing ranks. */
#include "comm/bootstrap/hosts/hosts_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"

enum { STALLED_MS = 500, LOOK_MS = 100, NAP_NS = 1000000 };

uint64_t gpul_boot_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? BOOT_NEVER : gpul_clock_ns() + (uint64_t)timeout_ms * 1000000;
}

int gpul_boot_left_ms(uint64_t deadline_ns)
{
	uint64_t now = gpul_clock_ns();

	if (deadline_ns == BOOT_NEVER)
		return -1;
	return now >= deadline_ns ? 0 : (int)((deadline_ns - now + 999999) / 1000000);
}

/* Find the ranks that have not joined the job yet, or have not begun the call.  Ranks that are connected to rank 0, but have not
 * mapped the roster, count as missing only if no other rank is missing. */
static uint32_t missing_ranks(const gpul_boot *b, uint32_t call)
{
	uint32_t missing = 0, arrived = 0;

	for (int r = 0; r < b->job.size; r++) {
		const struct roster_entry *e = &b->roster->entry[r];

		if (call ? atomic_load(&e->call) < call : atomic_load(&e->state) == RANK_ABSENT)
			missing |= 1u << r;
		if (!call && atomic_load(&e->state) == RANK_ARRIVED)
			arrived |= 1u << r;
	}
	return missing ? missing : arrived;
}

/* Follow the chains of waiting ranks from the ranks of a mask to their ends: ranks that do not wait in the same call.  Returns the
 * mask of the ends. 0: the chain is a cycle, because a rank is stopped and its entry is out of date. reached: all ranks of the
 * chains.  A rank of another host whose entry is out of date counts as waiting for rank 0, which should have sent the entry. */
static uint32_t follow_waits(const gpul_boot *b, uint32_t call, uint32_t first, uint32_t *reached)
{
	const uint32_t others = (uint32_t)((1ull << b->job.size) - 1) & ~(1u << b->job.rank), current = gpul_boot_current(b, STALLED_MS);
	uint32_t todo = first & others, ends = 0;

	*reached = todo;
	while (todo) {
		const int r = __builtin_ctz(todo);
		const struct roster_entry *e = &b->roster->entry[r];
		const uint32_t next = !(current & 1u << r) ? 1 : atomic_load(&e->call) == call ? atomic_load(&e->awaits) : 0;

		todo &= ~(1u << r);
		if (!next)
			ends |= 1u << r;
		todo |= next & others & ~*reached;
		*reached |= next & others;
	}
	return ends;
}

/* True if a rank for which this rank waits, directly or by way of others, has had the same heartbeat for silent_ms. */
static bool has_stopped(const gpul_boot *b, const struct boot_wait *w, uint32_t pending)
{
	uint32_t missing = missing_ranks(b, w->call), reached;

	(void)follow_waits(b, w->call, pending, &reached);
	missing |= reached;
	for (int r = 0; r < b->job.size; r++)
		if (missing & 1u << r && gpul_boot_silent_ms(b, r) >= (unsigned)w->silent_ms)
			return true;
	return false;
}

gpul_status gpul_boot_timed_out(gpul_boot *b, const struct boot_wait *w, uint32_t pending, gpul_error *err)
{
	char ranks[128], place[GPUL_BOOT_PLACE_BYTES];
	gpul_error why = { 0 };
	const int ms = gpul_boot_left_ms(w->deadline_ns) ? w->silent_ms : w->timeout_ms;
	uint32_t missing = missing_ranks(b, w->call) & gpul_boot_current(b, STALLED_MS), reached = missing;
	int stalled;

	if (!missing)
		missing = follow_waits(b, w->call, pending, &reached);
	stalled = gpul_boot_stalled(b, missing ? missing : reached, STALLED_MS);
	if (!missing)
		missing = stalled < 0 ? pending : 1u << stalled;
	gpul_roster_ranks_text(missing, ranks, sizeof ranks);
	if (stalled < 0) {
		gpul_fail(&why, GPUL_ESYS, ETIMEDOUT, "%s: %s of %d ranks did not answer within %d ms%s%s", w->doing, ranks, b->job.size,
			  ms, b->refused[0] ? "; refused " : "", b->refused);
		gpul_boot_fail(b, &why, missing ? __builtin_ctz(missing) : -1);
	} else {
		gpul_fail(&why, GPUL_ESYS, ETIMEDOUT,
			  "%s is not running: is it stopped by SIGSTOP or a debugger?  %s: %s of %d ranks did not answer within %d ms",
			  gpul_boot_place(b, stalled, place), w->doing, ranks, b->job.size, ms);
		gpul_boot_report_stalled(b, stalled, &why);
	}
	return gpul_boot_failed(b, err);
}

/* Publish for which ranks this rank waits, so that other ranks can follow the chain of waits to its end. */
static void set_awaits(gpul_boot *b, uint32_t ranks)
{
	atomic_store(&b->roster->entry[b->job.rank].awaits, ranks);
}

gpul_status gpul_boot_poll(gpul_boot *b, struct pollfd *fds, nfds_t n_fds, const struct boot_wait *w, uint32_t pending, gpul_error *err)
{
	int n, left_ms;

	fds[0] = (struct pollfd){ .fd = b->alarm, .events = POLLIN };
	set_awaits(b, pending);
	do {
		left_ms = gpul_boot_left_ms(w->deadline_ns);
		n = poll(fds, n_fds, w->silent_ms && (left_ms < 0 || left_ms > LOOK_MS) ? LOOK_MS : left_ms);
	} while ((n < 0 && errno == EINTR) || (n == 0 && w->silent_ms && gpul_boot_left_ms(w->deadline_ns) && !has_stopped(b, w, pending)));
	set_awaits(b, 0);
	if (n < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: poll: %s", w->doing, strerror(errno));
	if (gpul_boot_failure(b, NULL))
		return gpul_boot_failed(b, err);
	return n == 0 ? gpul_boot_timed_out(b, w, pending, err) : GPUL_OK;
}

gpul_status gpul_boot_send_to(gpul_boot *b, int rank, struct boot_head *head, const void *payload, size_t n_bytes, const int *fds,
			      unsigned n_fds, const struct boot_wait *w, gpul_error *err)
{
	int socket = atomic_load(&b->socket[rank]);
	struct boot_stream *stream = b->stream[rank];
	bool taken = false; /* the stream has accepted the packet, but has not sent all of it */
	gpul_error why = { 0 };

	for (;;) {
		struct pollfd ready[2] = { { 0 }, { .fd = socket, .events = POLLOUT } };
		boot_got got;
		gpul_status st;

		if (!stream)
			got = gpul_boot_send(socket, head, payload, n_bytes, fds, n_fds, &why);
		else if (taken)
			got = gpul_boot_stream_flush(stream, &why);
		else
			got = gpul_boot_stream_send(stream, head, payload, n_bytes, &why);
		if (stream && got == BOOT_GOT_PACKET && !taken) {
			taken = true;
			continue;
		}
		switch (got) {
		case BOOT_GOT_PACKET:
			return GPUL_OK;
		case BOOT_GOT_END:
			return gpul_boot_ended(b, rank, w->doing, err);
		case BOOT_GOT_BAD:
			return gpul_boot_fail_job(b, b->job.rank, why.status, why.native, why.text, err);
		case BOOT_GOT_NOTHING:
			break;
		}
		st = gpul_boot_poll(b, ready, 2, w, 1u << rank, err);
		if (st)
			return st;
		/* poll() returns immediately while too many descriptors are in flight, so sleep before the next attempt. */
		if (n_fds)
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
}

gpul_status gpul_boot_receive_from(gpul_boot *b, int rank, const struct boot_wait *w, gpul_error *err)
{
	int socket = atomic_load(&b->socket[rank]);
	struct boot_stream *stream = b->stream[rank];
	gpul_error why = { 0 };

	for (;;) {
		struct pollfd ready[2] = { { 0 }, { .fd = socket, .events = POLLIN } };
		gpul_status st;

		switch (stream ? gpul_boot_stream_receive(stream, b->packet, &why) : gpul_boot_receive(socket, b->packet, &why)) {
		case BOOT_GOT_PACKET:
			return GPUL_OK;
		case BOOT_GOT_END:
			return gpul_boot_ended(b, rank, w->doing, err);
		case BOOT_GOT_BAD:
			return gpul_boot_fail_job(b, rank, why.status, why.native, why.text, err);
		case BOOT_GOT_NOTHING:
			break;
		}
		st = gpul_boot_poll(b, ready, 2, w, 1u << rank, err);
		if (st)
			return st;
	}
}
