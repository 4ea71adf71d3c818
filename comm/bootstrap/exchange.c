/* exchange.c — allgather, barrier and the exchange of descriptors, through rank 0.
 *
 * Rank 0 first receives from all ranks, then sends to all; the other ranks first send, then receive.  So a wait is always for
 * a rank that has not called yet or is slow, never for one that waits in turn. */
#include "comm/bootstrap/boot_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One call: what all ranks must agree on. */
struct call {
	gpul_boot *b;
	uint32_t what;
	uint64_t total; /* bytes of a block, or descriptors of a rank */
	struct boot_wait wait;
};

static gpul_status begin_call(gpul_boot *b, uint32_t what, uint64_t total, int timeout_ms, struct call *out,
			      gpul_error *err)
{
	gpul_status st = gpul_boot_failed(b, err);

	if (st)
		return st;
	if (atomic_exchange(&b->in_call, true))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s: another thread of rank %d is in such a call",
				 gpul_boot_what_name(what), b->job.rank);
	*out = (struct call){ .b = b, .what = what, .total = total };
	out->wait = (struct boot_wait){ .doing = gpul_boot_what_name(what),
					.call = ++b->n_calls,
					.deadline_ns = gpul_boot_deadline(timeout_ms),
					.timeout_ms = timeout_ms };
	atomic_store(&b->roster->entry[b->job.rank].call, b->n_calls);
	return GPUL_OK;
}

static void end_call(struct call *c)
{
	atomic_store(&c->b->in_call, false);
}

/* Wait for the next packet of a rank, which must belong to the same call. */
static gpul_status next_packet(struct call *c, int from, enum boot_type type, gpul_error *err)
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
		 "rank %d is in %s of %llu (call %u), but rank %d in %s of %llu (call %u): all ranks must make the "
		 "same calls",
		 from, gpul_boot_what_name(h->what), (unsigned long long)h->total, h->call, c->b->job.rank,
		 gpul_boot_what_name(c->what), (unsigned long long)c->total, c->wait.call);
	return gpul_boot_fail_job(c->b, from, GPUL_EUNSUPPORTED, 0, text, err);
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static gpul_status receive_bytes(struct call *c, int from, unsigned char *to, uint64_t n_bytes, gpul_error *err)
{
	uint64_t got = 0;

	do {
		const struct boot_packet *p = c->b->packet;
		gpul_status st = next_packet(c, from, BOOT_DATA, err);

		if (st)
			return st;
		if (p->head.offset != got || p->head.bytes > n_bytes - got || (n_bytes && !p->head.bytes))
			return gpul_boot_fail_job(c->b, from, GPUL_EFORMAT, 0, "a rank sent a malformed part of a block",
						  err);
		memcpy(to + got, p->payload, p->head.bytes);
		got += p->head.bytes;
	} while (got < n_bytes);
	return GPUL_OK;
}

/* Send to ranks [first, last), part by part, so that all of them can read at the same time. */
static gpul_status send_bytes(struct call *c, int first, int last, const unsigned char *from, uint64_t n_bytes,
			      gpul_error *err)
{
	uint64_t at = 0;

	do {
		size_t n = n_bytes - at < BOOT_PAYLOAD_BYTES ? (size_t)(n_bytes - at) : BOOT_PAYLOAD_BYTES;

		for (int r = first; r < last; r++) {
			struct boot_head head = { .type = BOOT_DATA,
						  .call = c->wait.call,
						  .what = c->what,
						  .total = c->total,
						  .rank = c->b->job.rank,
						  .offset = at };
			gpul_status st = gpul_boot_send_to(c->b, r, &head, from + at, n, NULL, 0, &c->wait, err);

			if (st)
				return st;
		}
		at += n;
	} while (at < n_bytes);
	return GPUL_OK;
}

static gpul_status gather_blocks(struct call *c, const void *mine, unsigned char *all, gpul_error *err)
{
	int rank = c->b->job.rank, size = c->b->job.size;
	gpul_status st = GPUL_OK;

	if (c->total)
		memmove(all + (size_t)rank * c->total, mine, c->total);
	if (rank) {
		st = send_bytes(c, 0, 1, all + (size_t)rank * c->total, c->total, err);
		return st ? st : receive_bytes(c, 0, all, c->total * (uint64_t)size, err);
	}
	for (int r = 1; !st && r < size; r++)
		st = receive_bytes(c, r, all + (size_t)r * c->total, c->total, err);
	return st ? st : send_bytes(c, 1, size, all, c->total * (uint64_t)size, err);
}

gpul_status gpul_boot_allgather(gpul_boot *b, const void *mine, size_t bytes, void *all, int timeout_ms,
				gpul_error *err)
{
	struct call c;
	gpul_status st = begin_call(b, BOOT_ALLGATHER, bytes, timeout_ms, &c, err);

	if (st)
		return st;
	st = gather_blocks(&c, mine, all, err);
	end_call(&c);
	return st;
}

static gpul_status meet_all(gpul_boot *b, int timeout_ms, bool for_the_living, gpul_error *err)
{
	unsigned char nothing[1];
	struct call c;
	gpul_status st = begin_call(b, BOOT_BARRIER, 0, timeout_ms, &c, err);

	if (st)
		return st;
	c.wait.for_the_living = for_the_living;
	st = gather_blocks(&c, NULL, nothing, err);
	end_call(&c);
	return st;
}

gpul_status gpul_boot_barrier(gpul_boot *b, int timeout_ms, gpul_error *err)
{
	return meet_all(b, timeout_ms, false, err);
}

gpul_status gpul_boot_last_barrier(gpul_boot *b, int silent_ms, gpul_error *err)
{
	return meet_all(b, silent_ms, true, err);
}

/* ---- descriptors ------------------------------------------------------------------------------------------------ */

/* Send one rank's descriptors; those that are -1, or belong to another host, are only marked as absent. */
static gpul_status send_descriptors(struct call *c, int to, int owner, const int *fds, gpul_error *err)
{
	const bool shared = c->b->host[to] == c->b->host[owner] || to == 0; /* rank 0 passes them on */
	struct boot_head head = {
		.type = BOOT_FDS, .call = c->wait.call, .what = c->what, .total = c->total, .rank = owner
	};
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

static gpul_status receive_descriptors(struct call *c, int from, int owner, int *fds, gpul_error *err)
{
	struct boot_packet *p = c->b->packet;
	gpul_status st = next_packet(c, from, BOOT_FDS, err);
	unsigned n = 0;

	if (st)
		return st;
	if (p->head.rank != owner || (c->total < 64 && p->head.present >> c->total)) {
		gpul_boot_packet_drop(p);
		return gpul_boot_fail_job(c->b, from, GPUL_EFORMAT, 0, "a rank sent a malformed set of descriptors", err);
	}
	for (unsigned i = 0; i < c->total; i++)
		fds[i] = p->head.present & 1ull << i ? p->fds[n++] : -1;
	p->n_fds = 0; /* the caller owns them now */
	return GPUL_OK;
}

static gpul_status duplicate_mine(struct call *c, const int *mine, int *to, gpul_error *err)
{
	for (unsigned i = 0; i < c->total; i++) {
		char text[128];

		if (mine[i] < 0)
			continue;
		to[i] = fcntl(mine[i], F_DUPFD_CLOEXEC, 0);
		if (to[i] >= 0)
			continue;
		snprintf(text, sizeof text, "cannot duplicate descriptor %d of rank %d: %s%s", mine[i], c->b->job.rank,
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

static gpul_status exchange_descriptors(struct call *c, const int *mine, int *all, gpul_error *err)
{
	int rank = c->b->job.rank, size = c->b->job.size;
	gpul_status st = duplicate_mine(c, mine, all + (size_t)rank * c->total, err);

	if (rank) {
		if (!st)
			st = send_descriptors(c, 0, rank, mine, err);
		for (int r = 0; !st && r < size; r++)
			if (r != rank)
				st = receive_descriptors(c, 0, r, all + (size_t)r * c->total, err);
		return st;
	}
	for (int r = 1; !st && r < size; r++)
		st = receive_descriptors(c, r, r, all + (size_t)r * c->total, err);
	for (int owner = 0; !st && owner < size; owner++)
		for (int r = 1; !st && r < size; r++)
			if (r != owner)
				st = send_descriptors(c, r, owner, all + (size_t)owner * c->total, err);
	for (int r = 1; r < size; r++)
		if (c->b->host[r] != c->b->host[0])
			close_descriptors(all + (size_t)r * c->total, c->total);
	return st;
}

gpul_status gpul_boot_exchange_fds(gpul_boot *b, const int *mine, unsigned n_fds, int *all, int timeout_ms,
				   gpul_error *err)
{
	size_t n_all = (size_t)b->job.size * n_fds;
	struct call c;
	gpul_status st;

	if (n_fds > GPUL_BOOT_MAX_FDS)
		return gpul_fail(err, GPUL_EINVAL, (int)n_fds, "%u descriptors of a rank, at most %d are allowed",
				 n_fds, GPUL_BOOT_MAX_FDS);
	for (size_t i = 0; i < n_all; i++)
		all[i] = -1;
	st = begin_call(b, BOOT_EXCHANGE_FDS, n_fds, timeout_ms, &c, err);
	if (st)
		return st;
	st = exchange_descriptors(&c, mine, all, err);
	if (st)
		close_descriptors(all, n_all);
	end_call(&c);
	return st;
}
