/* fifo_trace_text.c — prints percentiles of the time that each step of a trigger took. */
#include "cli/fifo/fifo_trace.h"

#include <stdlib.h>

#include "cli/lib/bench/samples.h"

/* Returns the duration of a step of a trigger, which can be wrong by the clocks' error; negative: the trigger has no such step. */
typedef int64_t step_ns(const struct fifo_trace_trigger *of);

static int64_t positive(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

static int64_t of_wait(const struct fifo_trace_trigger *of)
{
	return of->room > of->begun ? (of->room < of->pushed ? of->room : of->pushed) - of->begun : -1;
}

static int64_t of_push(const struct fifo_trace_trigger *of)
{
	return of->pushed - of->begun;
}

static int64_t of_pop(const struct fifo_trace_trigger *of)
{
	return positive(of->popped - of->begun);
}

static int64_t of_handle(const struct fifo_trace_trigger *of)
{
	return of->handled - of->popped;
}

static int64_t of_release(const struct fifo_trace_trigger *of)
{
	return of->released - of->handled;
}

static int64_t of_sync(const struct fifo_trace_trigger *of)
{
	return of->synced ? of->synced - of->begun : -1;
}

static const struct step {
	const char *name;
	step_ns *took;
} steps[] = {
	{ "push", of_push },
	{ "  wait for room", of_wait },
	{ "push begun to popped", of_pop },
	{ "popped to handled", of_handle },
	{ "handled to released", of_release },
	{ "push begun to synced", of_sync },
};

static void print_row(const struct step *s, int64_t *took, unsigned n, unsigned of, struct out *out)
{
	static const unsigned per_mille[] = { 500, 900, 990, 1000 };

	samples_sort_ns(took, n);
	out_add(out, "  %-26s", s->name);
	for (int i = 0; i < 4; i++)
		out_add(out, " %10.2f", (double)samples_percentile(took, n, per_mille[i]) / 1000);
	if (n < of)
		out_add(out, "   %u of %u", n, of);
	out_text(out, "\n");
}

static void print_head(const struct fifo_trace *t, struct out *out)
{
	out_add(out, "%u triggers of %u block%s through %u lane%s of %u slot%s, %s memory, %s driver\n", t->n_triggers, t->ask.blocks,
		t->ask.blocks == 1 ? "" : "s", t->ask.lanes, t->ask.lanes == 1 ? "" : "s", t->ask.slots / t->ask.lanes,
		t->ask.slots == t->ask.lanes ? "" : "s", t->kind, t->driver);
	out_add(out, "GPU times are accurate to %.2f us: round trip %.2f us, clock step %.2f us, drift %.1f ppm\n\n",
		t->relation.bound_ns / 1000, (double)t->relation.shortest_ns / 1000, (double)t->relation.step_ns / 1000,
		t->relation.drift * 1e6);
	out_add(out, "  %-26s %10s %10s %10s %10s\n", "us", "p50", "p90", "p99", "max");
}

gpul_status fifo_trace_text(const struct fifo_trace *t, struct out *out, gpul_error *err)
{
	int64_t *took = calloc(t->n_triggers ? t->n_triggers : 1, sizeof *took);

	if (!took)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to sort %u time values", t->n_triggers);
	print_head(t, out);
	for (const struct step *s = steps; s < steps + sizeof steps / sizeof *steps; s++) {
		unsigned n = 0;

		for (unsigned i = 0; i < t->n_triggers; i++) {
			took[n] = s->took(&t->triggers[i]);
			n += took[n] >= 0;
		}
		if (n)
			print_row(s, took, n, t->n_triggers, out);
	}
	free(took);
	return out->failed ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a table") : GPUL_OK;
}
