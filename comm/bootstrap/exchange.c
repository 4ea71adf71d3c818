/* exchange.c — allgather, barrier and the exchange of descriptors, through rank 0, and through the leader of each other host.
 *
 *     ranks of host B ──> leader of B ──┐
 *     ranks of host C ──> leader of C ──┼──> rank 0 ──> back the same way, with the blocks of all
 *     ranks of rank 0's host ───────────┘
 *
 * A rank first receives from the ranks below it (left of it in the drawing), then sends their data and its own to the rank above it
 * (right of it), waits until that rank returns the data of all ranks, and sends this data to the ranks below.  So a rank waits only
 * for ranks that have not made the call yet or are slow; two ranks never wait for each other. */
#include "comm/bootstrap/boot_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

gpul_status gpul_boot_call_begin(gpul_boot *b, uint32_t what, uint64_t total, int timeout_ms, struct boot_call *out, gpul_error *err)
{
	gpul_status st = gpul_boot_failed(b, err);

	if (st)
		return st;
	if (atomic_exchange(&b->in_call, true))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%s: another thread of rank %d is already inside such a call; only one thread may call at a time",
				 gpul_boot_what_name(what), b->job.rank);
	gpul_bell_ring(&b->bell);
	*out = (struct boot_call){ .b = b, .what = what, .total = total };
	out->wait = (struct boot_wait){ .doing = gpul_boot_what_name(what),
					.call = ++b->n_calls,
					.deadline_ns = gpul_boot_deadline(timeout_ms),
					.timeout_ms = timeout_ms,
					.silent_ms = b->silent_ms };
	if (b->limit_ns < out->wait.deadline_ns) {
		out->wait.deadline_ns = b->limit_ns;
		out->wait.timeout_ms = b->limit_ms;
	}
	atomic_store(&b->roster->entry[b->job.rank].call, b->n_calls);
	return GPUL_OK;
}

void gpul_boot_limit(gpul_boot *b, uint64_t deadline_ns, int limit_ms, int silent_ms)
{
	b->limit_ns = deadline_ns;
	b->limit_ms = limit_ms;
	b->silent_ms = silent_ms;
}

void gpul_boot_call_end(struct boot_call *c)
{
	atomic_store(&c->b->in_call, false);
}

gpul_status gpul_boot_call_receive(struct boot_call *c, int from, enum boot_type type, gpul_error *err)
{
	const struct boot_head *h = &c->b->packet->head;
	gpul_status st = gpul_boot_receive_from(c->b, from, &c->wait, err);
	char text[200];

	if (st)
		return st;
	if (h->type == type && h->call == c->wait.call && h->what == c->what && h->total == c->total)
		return GPUL_OK;
	gpul_boot_packet_drop(c->b->packet);
	snprintf(text, sizeof text,
		 "rank %d called %s with %llu as call %u, but rank %d called %s with %llu as call %u: all ranks "
		 "must make the same calls",
		 from, gpul_boot_what_name(h->what), (unsigned long long)h->total, h->call, c->b->job.rank, gpul_boot_what_name(c->what),
		 (unsigned long long)c->total, c->wait.call);
	return gpul_boot_fail_job(c->b, from, GPUL_EUNSUPPORTED, 0, text, err);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

/* Get the rank above this one, to which this rank sends its data: its leader or rank 0; -1: this is rank 0. */
static int rank_above(const gpul_boot *b)
{
	if (b->job.rank != b->leader)
		return b->leader;
	return b->job.rank ? 0 : -1;
}

/* True for a rank below this one, which sends its data to this one: a rank of this leader's host, or the leader of another host. */
static bool is_below(const gpul_boot *b, int rank)
{
	return rank != rank_above(b) && atomic_load(&b->socket[rank]) >= 0;
}

static gpul_status receive_bytes(struct boot_call *c, int from, int owner, unsigned char *to, uint64_t n_bytes, gpul_error *err)
{
	uint64_t got = 0;

	do {
		const struct boot_packet *p = c->b->packet;
		gpul_status st = gpul_boot_call_receive(c, from, BOOT_DATA, err);

		if (st)
			return st;
		if (p->head.rank != owner || p->head.offset != got || p->head.bytes > n_bytes - got || (n_bytes && !p->head.bytes))
			return gpul_boot_fail_job(c->b, from, GPUL_EFORMAT, 0, "a rank sent a malformed part of its data", err);
		memcpy(to + got, p->payload, p->head.bytes);
		got += p->head.bytes;
	} while (got < n_bytes);
	return GPUL_OK;
}

/* Send bytes to the ranks of a mask, packet by packet. */
static gpul_status send_bytes(struct boot_call *c, uint32_t receivers, int owner, const unsigned char *from, uint64_t n_bytes,
			      gpul_error *err)
{
	uint64_t at = 0;

	do {
		size_t n = n_bytes - at < BOOT_PAYLOAD_BYTES ? (size_t)(n_bytes - at) : BOOT_PAYLOAD_BYTES;

		for (int r = 0; r < c->b->job.size; r++) {
			struct boot_head head = {
				.type = BOOT_DATA, .call = c->wait.call, .what = c->what, .total = c->total, .rank = owner, .offset = at
			};
			gpul_status st = GPUL_OK;

			if (receivers & 1u << r)
				st = gpul_boot_send_to(c->b, r, &head, from + at, n, NULL, 0, &c->wait, err);
			if (st)
				return st;
		}
		at += n;
	} while (at < n_bytes);
	return GPUL_OK;
}

static gpul_status gather_blocks(struct boot_call *c, const void *mine, unsigned char *all, gpul_error *err)
{
	const gpul_boot *b = c->b;
	const int rank = b->job.rank, size = b->job.size, above = rank_above(b);
	uint32_t gathered = 1u << rank, below = 0;
	gpul_status st = GPUL_OK;

	if (c->total)
		memmove(all + (size_t)rank * c->total, mine, c->total);
	for (int from = 0; !st && from < size; from++) {
		if (!is_below(b, from))
			continue;
		below |= 1u << from;
		gathered |= b->reach[from];
		for (int r = 0; !st && r < size; r++)
			if (b->reach[from] & 1u << r)
				st = receive_bytes(c, from, r, all + (size_t)r * c->total, c->total, err);
	}
	for (int r = 0; !st && above >= 0 && r < size; r++)
		if (gathered & 1u << r)
			st = send_bytes(c, 1u << above, r, all + (size_t)r * c->total, c->total, err);
	if (!st && above >= 0)
		st = receive_bytes(c, above, 0, all, c->total * (uint64_t)size, err);
	return st || !below ? st : send_bytes(c, below, 0, all, c->total * (uint64_t)size, err);
}

gpul_status gpul_boot_allgather(gpul_boot *b, const void *mine, size_t bytes, void *all, int timeout_ms, gpul_error *err)
{
	struct boot_call c;
	gpul_status st = gpul_boot_call_begin(b, BOOT_ALLGATHER, bytes, timeout_ms, &c, err);

	if (st)
		return st;
	st = gather_blocks(&c, mine, all, err);
	gpul_boot_call_end(&c);
	return st;
}

/* Wait until all ranks have called this function. silent_ms: how long a rank may be silent; 0: no limit. */
static gpul_status meet_all(gpul_boot *b, int timeout_ms, int silent_ms, gpul_error *err)
{
	unsigned char nothing[1];
	struct boot_call c;
	gpul_status st = gpul_boot_call_begin(b, BOOT_BARRIER, 0, timeout_ms, &c, err);

	if (st)
		return st;
	if (silent_ms)
		c.wait.silent_ms = silent_ms;
	st = gather_blocks(&c, NULL, nothing, err);
	gpul_boot_call_end(&c);
	return st;
}

gpul_status gpul_boot_barrier(gpul_boot *b, int timeout_ms, gpul_error *err)
{
	return meet_all(b, timeout_ms, 0, err);
}

gpul_status gpul_boot_last_barrier(gpul_boot *b, int silent_ms, gpul_error *err)
{
	return meet_all(b, -1, silent_ms < 0 ? 0 : silent_ms > 0 ? silent_ms : 1, err);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

/* Send one rank's descriptors.  Descriptors that are -1, or belong to a rank of another host, are only marked as absent. */
static gpul_status send_descriptors(struct boot_call *c, int to, int owner, const int *fds, gpul_error *err)
{
	/* also send descriptors to rank 0 and to a leader, which passes them on to the ranks of the owner's host */
	const bool shared = c->b->host[to] == c->b->host[owner] || to == c->b->leader;
	struct boot_head head = { .type = BOOT_FDS, .call = c->wait.call, .what = c->what, .total = c->total, .rank = owner };
	int present[GPUL_BOOT_MAX_FDS];
	unsigned n = 0;

	for (unsigned i = 0; i < c->total; i++) {
		if (fds[i] < 0 || !shared)
			continue;
		head.present |= 1ull << i;
		present[n++] = fds[i];
	}
	return gpul_boot_send_to(c->b, to, &head, NULL, 0, present, n, &c->wait, err);
}

static gpul_status receive_descriptors(struct boot_call *c, int from, int owner, int *fds, gpul_error *err)
{
	struct boot_packet *p = c->b->packet;
	gpul_status st = gpul_boot_call_receive(c, from, BOOT_FDS, err);
	unsigned n = 0;

	if (st)
		return st;
	if (p->head.rank != owner || (c->total < 64 && p->head.present >> c->total)) {
		gpul_boot_packet_drop(p);
		return gpul_boot_fail_job(c->b, from, GPUL_EFORMAT, 0, "a rank sent a malformed set of file descriptors", err);
	}
	for (unsigned i = 0; i < c->total; i++)
		fds[i] = p->head.present & 1ull << i ? p->fds[n++] : -1;
	p->n_fds = 0; /* the caller owns the descriptors now */
	return GPUL_OK;
}

static gpul_status duplicate_mine(struct boot_call *c, const int *mine, int *to, gpul_error *err)
{
	for (unsigned i = 0; i < c->total; i++) {
		char text[128];

		if (mine[i] < 0)
			continue;
		to[i] = fcntl(mine[i], F_DUPFD_CLOEXEC, 0);
		if (to[i] >= 0)
			continue;
		snprintf(text, sizeof text, "cannot duplicate file descriptor %d of rank %d: %s%s", mine[i], c->b->job.rank,
			 strerror(errno), errno == EMFILE ? " (ulimit -n)" : "");
		return gpul_boot_fail_job(c->b, c->b->job.rank, GPUL_ESYS, 0, text, err);
	}
	return GPUL_OK;
}

static void close_descriptors(int *fds, size_t n_fds)
{
	for (size_t i = 0; i < n_fds; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

static gpul_status exchange_descriptors(struct boot_call *c, const int *mine, int *all, gpul_error *err)
{
	const gpul_boot *b = c->b;
	const int rank = b->job.rank, size = b->job.size;
	const uint32_t others = b->local & ~(1u << rank);
	gpul_status st = duplicate_mine(c, mine, all + (size_t)rank * c->total, err);

	if (rank != b->leader) {
		if (!st)
			st = send_descriptors(c, b->leader, rank, mine, err);
		for (int r = 0; !st && r < size; r++)
			if (others & 1u << r)
				st = receive_descriptors(c, b->leader, r, all + (size_t)r * c->total, err);
		return st;
	}
	for (int r = 0; !st && r < size; r++)
		if (others & 1u << r)
			st = receive_descriptors(c, r, r, all + (size_t)r * c->total, err);
	for (int owner = 0; !st && owner < size; owner++)
		for (int r = 0; !st && b->local & 1u << owner && r < size; r++)
			if (others & 1u << r && r != owner)
				st = send_descriptors(c, r, owner, all + (size_t)owner * c->total, err);
	for (int r = 0; r < size; r++)
		if (b->host[r] != b->host[rank])
			close_descriptors(all + (size_t)r * c->total, c->total);
	return st;
}

gpul_status gpul_boot_exchange_fds(gpul_boot *b, const int *mine, unsigned n_fds, int *all, int timeout_ms, gpul_error *err)
{
	size_t n_all = (size_t)b->job.size * n_fds;
	struct boot_call c;
	gpul_status st;

	if (n_fds > GPUL_BOOT_MAX_FDS)
		return gpul_fail(err, GPUL_EINVAL, (int)n_fds, "a rank passes %u file descriptors, but at most %d are allowed", n_fds,
				 GPUL_BOOT_MAX_FDS);
	for (size_t i = 0; i < n_all; i++)
		all[i] = -1;
	st = gpul_boot_call_begin(b, BOOT_EXCHANGE_FDS, n_fds, timeout_ms, &c, err);
	if (st)
		return st;
	st = exchange_descriptors(&c, mine, all, err);
	if (st)
		close_descriptors(all, n_all);
	gpul_boot_call_end(&c);
	return st;
}
