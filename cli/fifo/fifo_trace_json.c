/* fifo_trace_json.c — writes a trace as events that trace viewers draw.
 *
 *     process 1  GPU        one track per block: push, inside it wait for room; sync
 *     process 2  CPU proxy  one track: batch, inside it handle for each trigger; release
 *     process 3  ring       "in the ring": one asynchronous event per trigger, from its push until it is popped;
 *                           a counter of taken slots
 *
 * An arrow leads from each push to its handle and, with --sync, on to its sync.  Times are in microseconds.  GPU times can
 * be wrong by relation.bound_ns, so a cause may appear after its effect.  Slices show the measured times; the ends of
 * arrows and of ring events are moved, because viewers draw them only forwards. */
#include "cli/fifo/fifo_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/lib/json/trace_events.h"

enum { GPU = 1, CPU = 2, RING = 3 };

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- the tracks ------------------------------------------------------------------------------------------------- */

/* Return the latest time at which a trigger can have been stored.  The kernel reads its clock after the store, possibly after the proxy has
 * popped the trigger, so the earlier of the two times counts. */
static int64_t stored(const struct fifo_trace_trigger *of)
{
	return lesser(of->pushed, of->popped);
}

/* Return the time at which an arrow leaves a push or enters a sync.  It is inside the slice, that is, before the slice's end, and never
 * later than the other end of the arrow. */
static int64_t leaves_push(const struct fifo_trace_trigger *of)
{
	return lesser(of->handling, greater(of->begun, lesser(stored(of), of->pushed - 1)));
}

static int64_t enters_sync(const struct fifo_trace_trigger *of)
{
	return greater(of->pushed, of->synced - 1);
}

static void gpu_events(struct json *j, const struct fifo_trace *t, unsigned index)
{
	const struct fifo_trace_trigger *of = &t->triggers[index];
	const unsigned track = index / t->ask.triggers + 1;

	trace_begin_slice(j, GPU, track, "push", of->begun, of->pushed);
	json_begin(j, "args", '{');
	json_u64(j, "trigger", index % t->ask.triggers);
	json_u64(j, "lane", of->lane);
	json_u64(j, "position", of->position);
	json_end(j, '}');
	json_end(j, '}');
	if (of->room > of->begun)
		trace_add_slice(j, GPU, track, "wait for room", of->begun, lesser(of->room, of->pushed));
	trace_add_endpoint(j, "s", GPU, track, "pushed", index, leaves_push(of));
	if (t->ask.sync) {
		trace_add_slice(j, GPU, track, "sync", of->pushed, of->synced);
		trace_add_endpoint(j, "f", GPU, track, "done", index, enters_sync(of));
	}
}

static void cpu_events(struct json *j, const struct fifo_trace *t)
{
	unsigned next = 0;

	for (unsigned b = 0; b < t->n_batches; b++) {
		const struct fifo_trace_batch *batch = &t->batches[b];

		trace_begin_slice(j, CPU, 1, "batch", batch->popped, batch->released);
		json_begin(j, "args", '{');
		json_u64(j, "triggers", batch->n);
		json_end(j, '}');
		json_end(j, '}');
		for (unsigned i = 0; i < batch->n; i++, next++) {
			const unsigned index = t->order[next];
			const struct fifo_trace_trigger *of = &t->triggers[index];

			trace_begin_slice(j, CPU, 1, "handle", of->handling, of->handled);
			json_begin(j, "args", '{');
			json_u64(j, "block", index / t->ask.triggers);
			json_u64(j, "trigger", index % t->ask.triggers);
			json_end(j, '}');
			json_end(j, '}');
			trace_add_endpoint(j, "f", CPU, 1, "pushed", index, of->handling);
			if (t->ask.sync)
				trace_add_endpoint(j, "s", CPU, 1, "done", index, lesser(of->handling, enters_sync(of)));
		}
		trace_add_slice(j, CPU, 1, "release", batch->handled, batch->released);
	}
}

struct change {
	int64_t ns;
	int by;
};

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return y->by - x->by; /* sort increments before decrements, so that the count never falls below 0 */
}

static gpul_status ring_events(struct json *j, const struct fifo_trace *t, gpul_error *err)
{
	struct change *changes = calloc(2 * (size_t)t->n_popped, sizeof *changes);
	int64_t taken = 0;

	if (!changes)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the events of %u triggers", t->n_popped);
	for (unsigned i = 0; i < t->n_popped; i++) {
		const struct fifo_trace_trigger *of = &t->triggers[t->order[i]];

		trace_add_endpoint(j, "b", RING, 1, "in the ring", t->order[i], stored(of));
		trace_add_endpoint(j, "e", RING, 1, "in the ring", t->order[i], of->popped);
		changes[2 * i] = (struct change){ .ns = stored(of), .by = 1 };
		changes[2 * i + 1] = (struct change){ .ns = of->released, .by = -1 };
	}
	qsort(changes, 2 * (size_t)t->n_popped, sizeof *changes, compare_changes);
	for (size_t i = 0; i < 2 * (size_t)t->n_popped; i++) {
		taken += changes[i].by;
		trace_begin_event(j, "C", RING, 1, "slots taken");
		trace_add_time(j, changes[i].ns);
		json_begin(j, "args", '{');
		json_i64(j, "slots", taken);
		json_end(j, '}');
		json_end(j, '}');
	}
	free(changes);
	return GPUL_OK;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static void add_metadata(struct json *j, const struct fifo_trace *t)
{
	json_begin(j, "otherData", '{');
	json_text(j, "made_by", "gpuload fifo trace " GPUL_VERSION);
	json_text(j, "driver", t->driver);
	json_text(j, "device", t->device);
	json_text(j, "memory", t->kind);
	json_u64(j, "slots", t->ask.slots);
	json_u64(j, "lanes", t->ask.lanes);
	json_u64(j, "blocks", t->ask.blocks);
	json_u64(j, "triggers", t->n_triggers);
	json_bool(j, "sync", t->ask.sync);
	json_u64(j, "handler_ns", t->ask.handler_ns);
	json_double(j, "clock_bound_ns", t->relation.bound_ns);
	json_double(j, "clock_drift_ppm", t->relation.drift * 1e6);
	json_u64(j, "clock_step_ns", t->relation.step_ns);
	json_u64(j, "clock_round_trip_ns", t->relation.shortest_ns);
	json_end(j, '}');
}

static void add_names(struct json *j, const struct fifo_trace *t)
{
	char text[sizeof t->device + 16];

	snprintf(text, sizeof text, "GPU: %s", t->device);
	trace_name_process(j, GPU, text);
	for (unsigned b = 0; b < t->ask.blocks; b++) {
		snprintf(text, sizeof text, "block %u", b);
		trace_name_track(j, GPU, b + 1, text);
	}
	trace_name_process(j, CPU, "CPU proxy");
	trace_name_track(j, CPU, 1, "takes out, handles, releases");
	trace_name_process(j, RING, "ring");
}

gpul_status fifo_trace_json(const struct fifo_trace *t, struct out *out, gpul_error *err)
{
	struct json j = { .out = *out };
	gpul_status st;

	json_begin(&j, NULL, '{');
	json_text(&j, "displayTimeUnit", "ns");
	add_metadata(&j, t);
	json_begin(&j, "traceEvents", '[');
	add_names(&j, t);
	for (unsigned i = 0; i < t->n_triggers; i++)
		gpu_events(&j, t, i);
	cpu_events(&j, t);
	st = ring_events(&j, t, err);
	json_end(&j, ']');
	json_end(&j, '}');
	out_text(&j.out, "\n");
	*out = j.out;
	if (!st && out->failed)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the events of %u triggers", t->n_triggers);
	return st;
}
