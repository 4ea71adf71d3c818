/* fifo_put_text.c — prints percentiles of the time that each step of a message took. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/fifo/put/fifo_put.h"
#include "cli/lib/bench/samples.h"

#define AT(field) offsetof(struct fifo_put_times, field)

/* The rows of the table: times between two events of a message. */
static const struct step {
	const char *name;
	size_t from, to;
} steps[] = {
	{ "push", AT(begun), AT(pushed) },
	{ "push begun to popped", AT(begun), AT(popped) },
	{ "popped to posted", AT(popped), AT(posted) },
	{ "posted to acknowledged", AT(posted), AT(acknowledged) },
	{ "acknowledged to synced", AT(acknowledged), AT(synced) },
	{ "popped to step seen by peer's CPU", AT(popped), AT(seen) },
	{ "  flush", AT(seen), AT(flushed) },
	{ "popped to step seen by peer's GPU", AT(popped), AT(kernel_seen) },
	{ "push begun to seen by peer's GPU", AT(begun), AT(kernel_seen) },
	{ "push begun to synced", AT(begun), AT(synced) },
};

static int64_t time_of(const struct fifo_put_times *of, size_t offset)
{
	return *(const int64_t *)(const void *)((const char *)of + offset);
}

static void print_row(const struct step *s, const struct fifo_put_trace *t, int64_t *took, struct out *out)
{
	static const unsigned per_mille[] = { 500, 900, 990, 1000 };

	for (unsigned i = 0; i < t->n_puts; i++) {
		took[i] = time_of(&t->puts[i], s->to) - time_of(&t->puts[i], s->from);
		if (took[i] < 0) /* negative because of a clock error, or because one side saw the event before the other recorded it */
			took[i] = 0;
	}
	samples_sort_ns(took, t->n_puts);
	out_add(out, "  %-34s", s->name);
	for (int i = 0; i < 4; i++)
		out_add(out, " %10.2f", (double)samples_percentile(took, t->n_puts, per_mille[i]) / 1000);
	out_text(out, "\n");
}

gpul_status fifo_put_text(const struct fifo_put_trace *t, struct out *out, gpul_error *err)
{
	int64_t *took = calloc(t->n_puts, sizeof *took);

	if (!took)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to sort %u time values", t->n_puts);
	out_add(out, "%u puts of %u bytes from %u block%s over %s; %s memory, %s driver\n", t->n_puts, t->ask.bytes, t->ask.blocks,
		t->ask.blocks == 1 ? "" : "s", t->fabric, t->kind, t->driver);
	out_add(out, "GPU times are accurate to %.2f us here, and to %.2f us in the receiving process\n\n", t->relation.bound_ns / 1000,
		t->peer_relation.bound_ns / 1000);
	out_add(out, "  %-34s %10s %10s %10s %10s\n", "us", "p50", "p90", "p99", "max");
	for (const struct step *s = steps; s < steps + sizeof steps / sizeof *steps; s++)
		print_row(s, t, took, out);
	free(took);
	return out->failed ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a table") : GPUL_OK;
}
