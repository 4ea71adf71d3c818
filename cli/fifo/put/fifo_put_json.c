/* fifo_put_json.c — writes a trace of puts as events that trace viewers draw.
 *
 *     process 1  GPU           one track per block: push; sync
 *     process 2  proxy         one track per lane: post (popped until posted); in flight (posted until acknowledged)
 *     process 3  peer's CPU    one track per block: flush, from the moment when the CPU sees the step
 *     process 4  peer's GPU    one track per block: wait for step
 *
 * Arrows: push ─ "pushed" ─> post; in flight ─ "arrived" ─> flush; in flight ─ "seen" ─> wait for step;
 * in flight ─ "done" ─> sync.  A block has one message in flight, so that the slices of a track follow each other.  GPU times
 * can be wrong by the bounds of their clocks: the ends of arrows are moved, because viewers draw them only forwards. */
#include <stdio.h>

#include "cli/fifo/put/fifo_put.h"
#include "cli/lib/json/trace_events.h"

enum { GPU = 1, PROXY = 2, PEER_CPU = 3, PEER_GPU = 4 };

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Write a slice with the number of its message. */
static void add_step(struct json *j, unsigned process, unsigned track, const char *name, int64_t from, int64_t to, unsigned message)
{
	trace_begin_slice(j, process, track, name, from, to);
	json_begin(j, "args", '{');
	json_u64(j, "message", message);
	json_end(j, '}');
	json_end(j, '}');
}

/* Write an arrow that ends in the slice [from, to) of a track. */
static void add_arrow(struct json *j, const char *name, unsigned id, unsigned from_process, int64_t leaves, unsigned to_process,
		      int64_t enters, unsigned track)
{
	trace_add_endpoint(j, "s", from_process, track, name, id, lesser(leaves, enters));
	trace_add_endpoint(j, "f", to_process, track, name, id, enters);
}

static void message_events(struct json *j, const struct fifo_put_trace *t, unsigned index)
{
	const struct fifo_put_times *of = &t->puts[index];
	const unsigned track = index / t->ask.puts + 1;
	const bool first = index % t->ask.puts == 0;
	const int64_t waits_from = first ? 0 : t->puts[index - 1].kernel_seen;
	const int64_t sync_ends = greater(of->synced, of->pushed);

	add_step(j, GPU, track, "push", of->begun, of->pushed, index);
	add_step(j, GPU, track, "sync", of->pushed, sync_ends, index);
	add_step(j, PROXY, track, "post", of->popped, of->posted, index);
	add_step(j, PROXY, track, "in flight", of->posted, of->acknowledged, index);
	add_step(j, PEER_CPU, track, "flush", of->seen, of->flushed, index);
	add_step(j, PEER_GPU, track, "wait for step", lesser(waits_from, of->kernel_seen), of->kernel_seen, index);
	add_arrow(j, "pushed", index, GPU, of->begun, PROXY, of->popped, track);
	add_arrow(j, "arrived", index, PROXY, of->posted, PEER_CPU, of->seen, track);
	add_arrow(j, "seen", index, PROXY, of->posted, PEER_GPU, greater(lesser(waits_from, of->kernel_seen), of->kernel_seen - 1), track);
	add_arrow(j, "done", index, PROXY, of->posted, GPU, greater(of->pushed, sync_ends - 1), track);
}

static void add_clock(struct json *j, const char *prefix, const struct fifo_clock_relation *r)
{
	char name[48];

	snprintf(name, sizeof name, "%sclock_bound_ns", prefix);
	json_double(j, name, r->bound_ns);
	snprintf(name, sizeof name, "%sclock_drift_ppm", prefix);
	json_double(j, name, r->drift * 1e6);
	snprintf(name, sizeof name, "%sclock_round_trip_ns", prefix);
	json_u64(j, name, r->shortest_ns);
}

static void add_metadata(struct json *j, const struct fifo_put_trace *t)
{
	json_begin(j, "otherData", '{');
	json_text(j, "made_by", "gpuload fifo trace --put " GPUL_VERSION);
	json_text(j, "driver", t->driver);
	json_text(j, "device", t->device);
	json_text(j, "peer_device", t->peer_device);
	json_text(j, "fabric", t->fabric);
	json_text(j, "memory", t->kind);
	json_u64(j, "blocks", t->ask.blocks);
	json_u64(j, "puts", t->n_puts);
	json_u64(j, "bytes", t->ask.bytes);
	add_clock(j, "", &t->relation);
	add_clock(j, "peer_", &t->peer_relation);
	json_end(j, '}');
}

static void add_names(struct json *j, const struct fifo_put_trace *t)
{
	char text[sizeof t->fabric + 48];

	snprintf(text, sizeof text, "sender's GPU: %s", t->device);
	trace_name_process(j, GPU, text);
	snprintf(text, sizeof text, "sender's proxy: %s", t->fabric);
	trace_name_process(j, PROXY, text);
	trace_name_process(j, PEER_CPU, "receiver's CPU");
	snprintf(text, sizeof text, "receiver's GPU: %s", t->peer_device);
	trace_name_process(j, PEER_GPU, text);
	for (unsigned process = GPU; process <= PEER_GPU; process++)
		for (unsigned b = 0; b < t->ask.blocks; b++) {
			snprintf(text, sizeof text, "%s %u", process == PROXY ? "lane" : "block", b);
			trace_name_track(j, process, b + 1, text);
		}
}

gpul_status fifo_put_json(const struct fifo_put_trace *t, struct out *out, gpul_error *err)
{
	struct json j = { .out = *out };

	json_begin(&j, NULL, '{');
	json_text(&j, "displayTimeUnit", "ns");
	add_metadata(&j, t);
	json_begin(&j, "traceEvents", '[');
	add_names(&j, t);
	for (unsigned i = 0; i < t->n_puts; i++)
		message_events(&j, t, i);
	json_end(&j, ']');
	json_end(&j, '}');
	out_text(&j.out, "\n");
	*out = j.out;
	return out->failed ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the events of %u puts", t->n_puts) : GPUL_OK;
}
