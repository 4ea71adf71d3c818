/* reliable_trace_text.c — prints a line for each datagram of a message. */
#include "cli/rdma/reliable/reliable_trace.h"

static void add_end(const struct reliable_datagram *d, struct out *o)
{
	const double us = (double)(d->ended_ns - d->sent_ns) * 1e-3;

	if (d->again)
		out_text(o, "sent again; ");
	if (d->end == GPUL_REL_ACKED)
		out_add(o, "acknowledged after %.1f us", us);
	else if (d->end == GPUL_REL_LOST)
		out_add(o, "lost: after %.1f us packet %u has arrived", us, d->later);
	else if (d->end == GPUL_REL_TIMED_OUT)
		out_add(o, "given up after %.1f us by a time-out of its path", us);
	else
		out_text(o, "another datagram has brought the chunk");
	if (d->acked_ns)
		out_add(o, "; but it was only late: acknowledged after %.1f us", (double)(d->acked_ns - d->sent_ns) * 1e-3);
	out_text(o, "\n");
}

void reliable_trace_text(const struct reliable_trace *t, struct out *o)
{
	unsigned n_lost = 0, n_timeouts = 0;

	for (unsigned i = 0; i < t->n_datagrams; i++) {
		n_lost += t->datagrams[i].end == GPUL_REL_LOST;
		n_timeouts += t->datagrams[i].end == GPUL_REL_TIMED_OUT;
	}
	out_add(o,
		"message %llu, %llu bytes: %u chunks in %u datagrams; %u found lost by later packets, %u by time-outs; sent after %.1f us\n\n",
		(unsigned long long)t->message, (unsigned long long)t->bytes, t->n_chunks, t->n_datagrams, n_lost, n_timeouts,
		(double)(t->ended_ns - t->begun_ns) * 1e-3);
	out_add(o, "%10s%8s%7s%9s\n", "sent us", "chunk", "path", "packet");
	for (unsigned i = 0; i < t->n_datagrams; i++) {
		const struct reliable_datagram *d = &t->datagrams[i];

		out_add(o, "%10.1f%8u%7u%9u  ", (double)d->sent_ns * 1e-3, d->chunk, d->path, d->packet);
		add_end(d, o);
	}
	if (t->record.n > t->record.max)
		out_add(o, "... %u more steps were not recorded\n", t->record.n - t->record.max);
}
