/* clocks.c — measures the differences between the clocks of the hosts by round trips.
 *
 *     rank 0     before ──────────────┬─ after
 *                       ╲ question   ╱ answer: `there`          one host after the other, so that round trips do not delay each other
 *     host B             ╲──────────╱
 */
#include "comm/bootstrap/boot_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"

/* How long a rank polls before it sleeps in poll(): waking up takes some tens of microseconds, which would lengthen the round trip. */
enum { SPIN_NS = 200 * 1000 };

/* Return the lowest rank of a host, which takes part in the measurement for the whole host. */
static int first_rank_of(const gpul_boot *b, int host)
{
	int r = 0;

	while (b->host[r] != host)
		r++;
	return r;
}

/* Poll a socket for SPIN_NS without sleeping; the packet may already be in the stream's buffer. */
static void spin(const gpul_boot *b, int rank)
{
	const int socket = atomic_load(&b->socket[rank]);
	const uint64_t until = gpul_clock_ns() + SPIN_NS;
	char first;

	while (recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR) && gpul_clock_ns() < until)
		;
}

/* Send a time stamp to another rank, with the number of the round trip. */
static gpul_status send_time(struct boot_call *c, int to, unsigned round, uint64_t time_ns, gpul_error *err)
{
	struct boot_head head = {
		.type = BOOT_DATA, .call = c->wait.call, .what = c->what, .total = c->total, .rank = c->b->job.rank, .offset = round
	};

	return gpul_boot_send_to(c->b, to, &head, &time_ns, sizeof time_ns, NULL, 0, &c->wait, err);
}

static gpul_status receive_time(struct boot_call *c, int from, unsigned round, uint64_t *time_ns, gpul_error *err)
{
	const struct boot_packet *p = c->b->packet;
	gpul_status st;
	char text[120];

	spin(c->b, from);
	st = gpul_boot_call_receive(c, from, BOOT_DATA, err);
	if (st)
		return st;
	if (p->head.rank == from && p->head.offset == round && p->head.bytes == sizeof *time_ns) {
		memcpy(time_ns, p->payload, sizeof *time_ns);
		return GPUL_OK;
	}
	snprintf(text, sizeof text,
		 "rank %d sent a malformed clock message: it has %u bytes and round number %llu, expected round "
		 "number %u",
		 from, p->head.bytes, (unsigned long long)p->head.offset, round);
	return gpul_boot_fail_job(c->b, from, GPUL_EFORMAT, 0, text, err);
}

static gpul_status ask_host(struct boot_call *c, int rank, gpul_boot_stamp *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < c->total; i++) {
		out[i].before_ns = gpul_clock_ns();
		st = send_time(c, rank, i, out[i].before_ns, err);
		st = st ? st : receive_time(c, rank, i, &out[i].there_ns, err);
		out[i].after_ns = gpul_clock_ns();
	}
	return st;
}

static gpul_status answer(struct boot_call *c, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	uint64_t question;

	for (unsigned i = 0; !st && i < c->total; i++) {
		st = receive_time(c, 0, i, &question, err);
		st = st ? st : send_time(c, 0, i, gpul_clock_ns(), err);
	}
	return st;
}

gpul_status gpul_boot_clocks(gpul_boot *b, unsigned n_rounds, gpul_boot_stamp *out, int timeout_ms, gpul_error *err)
{
	const int rank = b->job.rank, host = b->host[rank];
	struct boot_call c;
	gpul_status st = gpul_boot_call_begin(b, BOOT_CLOCKS, n_rounds, timeout_ms, &c, err);

	if (st)
		return st;
	if (rank == 0)
		memset(out, 0, (size_t)b->n_hosts * n_rounds * sizeof *out);
	for (int h = 1; !st && rank == 0 && h < b->n_hosts; h++)
		st = ask_host(&c, first_rank_of(b, h), out + (size_t)h * n_rounds, err);
	if (host != 0 && rank == first_rank_of(b, host))
		st = answer(&c, err);
	gpul_boot_call_end(&c);
	return st;
}
