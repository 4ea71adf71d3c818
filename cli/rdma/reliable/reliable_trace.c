/* reliable_trace.c — records the steps of one message, and joins them to datagrams. */
#include "cli/rdma/reliable/reliable_trace.h"

#include <stdlib.h>

#include "cli/lib/bench/bench_output.h"
#include "core/clock.h"

enum { MOST_STEPS = 1 << 18 };

gpul_status reliable_trace_create(uint64_t message, struct reliable_trace **out, gpul_error *err)
{
	struct reliable_trace *t = calloc(1, sizeof *t);

	if (t)
		t->record.steps = calloc(MOST_STEPS, sizeof *t->record.steps);
	if (!t || !t->record.steps) {
		free(t);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace");
	}
	t->message = message;
	t->record.max = MOST_STEPS;
	*out = t;
	return GPUL_OK;
}

void reliable_trace_free(struct reliable_trace *t)
{
	if (!t)
		return;
	free(t->record.steps);
	free(t->datagrams);
	free(t);
}

void reliable_trace_begin(struct reliable_trace *t, gpul_rdma_conn *conn, uint64_t message, uint64_t at, uint64_t bytes)
{
	if (t->ended || message != t->message)
		return;
	t->record.local = at;
	t->record.bytes = bytes ? bytes : 1;
	t->record.n = 0; /* begins again if there was no room for the message before */
	t->bytes = bytes;
	t->begun_ns = gpul_clock_ns();
	t->begun = gpul_rdma_conn_record(conn, &t->record);
}

void reliable_trace_end(struct reliable_trace *t, gpul_rdma_conn *conn, uint64_t message)
{
	if (!t->begun || t->ended || message != t->message)
		return;
	t->ended_ns = gpul_clock_ns();
	t->ended = gpul_rdma_conn_record(conn, NULL);
}

/* ---- from steps to datagrams ------------------------------------------------------------------------------------ */

static struct reliable_datagram *find_datagram(struct reliable_trace *t, const gpul_rel_step *s)
{
	for (unsigned i = t->n_datagrams; i-- > 0;)
		if (t->datagrams[i].path == s->path && t->datagrams[i].packet == s->packet)
			return &t->datagrams[i];
	return NULL;
}

static void add_datagram(struct reliable_trace *t, const gpul_rel_step *s, uint32_t first)
{
	struct reliable_datagram *d = &t->datagrams[t->n_datagrams++];

	*d = (struct reliable_datagram){ .chunk = s->chunk - first, .packet = s->packet, .path = s->path };
	/* A burst has the time at which the caller began to send it, which may be just before the message was posted. */
	d->sent_ns = s->at_ns > t->begun_ns ? s->at_ns - t->begun_ns : 0;
	d->again = d->chunk < t->n_rows;
	if (d->again)
		return;
	t->n_rows = d->chunk + 1;
	t->n_chunks++;
}

static gpul_status join_steps(struct reliable_trace *t, gpul_error *err)
{
	const unsigned n = t->record.n < t->record.max ? t->record.n : t->record.max;

	t->datagrams = calloc(n + 1, sizeof *t->datagrams);
	if (!t->datagrams)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u datagrams", n);
	for (unsigned i = 0; i < n; i++) {
		const gpul_rel_step *s = &t->record.steps[i];
		struct reliable_datagram *d = NULL;

		if (s->kind == GPUL_REL_SENT)
			add_datagram(t, s, t->record.steps[0].chunk);
		else
			d = find_datagram(t, s);
		if (d && d->end != GPUL_REL_SENT) {
			d->acked_ns = s->at_ns - t->begun_ns;
		} else if (d) {
			d->end = s->kind;
			d->later = s->later;
			d->ended_ns = s->at_ns - t->begun_ns;
		}
	}
	return GPUL_OK;
}

static bool has_ending(const char *path, const char *ending)
{
	const size_t n = strlen(path), m = strlen(ending);

	return n > m && !strcmp(path + n - m, ending);
}

gpul_status reliable_trace_write(struct reliable_trace *t, const char *path, bool force, gpul_error *err)
{
	struct json j = { 0 };
	gpul_status st;

	if (!t->ended)
		return gpul_fail(err, GPUL_EINVAL, 0, "--trace-message %llu: connection 0 has sent fewer messages of each size",
				 (unsigned long long)t->message);
	st = join_steps(t, err);
	if (st)
		return st;
	if (has_ending(path, ".json"))
		reliable_trace_json(t, &j);
	else if (has_ending(path, ".svg"))
		reliable_trace_svg(t, &j.out);
	else
		reliable_trace_text(t, &j.out);
	return output_file(path, force, &j.out, "trace", err);
}
