/* comm_trace_json.c — writes the events of all ranks as events that trace viewers draw.
 *
 *     process r + 1  rank r       track 1: the calls, from when the CPU launched them until it had waited for them
 *                                 track b + 2: block b of the kernels; inside a kernel its waits, steps and copies
 *                                 further tracks: the proxy of the network (comm_trace_net.c)
 *
 * Times are in microseconds on the clock of the CPUs of rank 0's host; those of a rank's GPU can be wrong by its clock_bound_ns. */
#include <stdio.h>

#include "cli/comm/trace/comm_trace.h"
#include "cli/lib/json/trace_events.h"

enum { CALLS = 1, BLOCKS = 2 };

static bool is_wait(uint32_t kind)
{
	return kind == GPUL_COMM_EVENT_WAIT_DATA || kind == GPUL_COMM_EVENT_WAIT_CREDIT || kind == GPUL_COMM_EVENT_WAIT_GREETING ||
	       kind == GPUL_COMM_EVENT_WAIT_GOODBYE;
}

struct comm_waiting comm_trace_waiting(const gpul_comm_event *events, size_t n, size_t n_lost)
{
	struct comm_waiting w = { .n_events = n, .n_lost = n_lost };

	for (size_t i = 0; i < n; i++) {
		const gpul_comm_event *e = &events[i];
		const uint64_t ns = e->end_ns > e->begin_ns ? e->end_ns - e->begin_ns : 0;

		w.kernel_ns += e->kind == GPUL_COMM_EVENT_KERNEL ? ns : 0;
		w.waiting_ns += is_wait(e->kind) ? ns : 0;
	}
	return w;
}

/* Write the name of an event, such as "wait for credit, rank 2, step 17". */
static void name_event(const gpul_comm_event *e, char *text, size_t text_bytes)
{
	/* clang-format off */
	static const char *const names[] = {
		[GPUL_COMM_EVENT_KERNEL] = "kernel", [GPUL_COMM_EVENT_WAIT_DATA] = "wait for data",
		[GPUL_COMM_EVENT_WAIT_CREDIT] = "wait for credit", [GPUL_COMM_EVENT_WAIT_GREETING] = "wait for greeting",
		[GPUL_COMM_EVENT_WAIT_GOODBYE] = "wait for goodbye", [GPUL_COMM_EVENT_COPY] = "copy",
		[GPUL_COMM_EVENT_REDUCE] = "reduce", [GPUL_COMM_EVENT_SEND] = "send", [GPUL_COMM_EVENT_RECV] = "recv",
	};
	/* clang-format on */
	const char *name = e->kind < sizeof names / sizeof *names ? names[e->kind] : "?";

	if (e->kind == GPUL_COMM_EVENT_KERNEL)
		(void)snprintf(text, text_bytes, "%s", name);
	else if (e->peer >= 0)
		(void)snprintf(text, text_bytes, "%s, rank %d, step %llu", name, (int)e->peer, (unsigned long long)e->step);
	else
		(void)snprintf(text, text_bytes, "%s, step %llu", name, (unsigned long long)e->step);
}

static void add_events(struct json *j, int rank, const struct comm_rank_trace *t, uint64_t origin_ns)
{
	char name[80];

	for (size_t i = 0; i < t->n; i++) {
		const gpul_comm_event *e = &t->events[i];

		/* comm_trace_net.c draws this event as an arrow from the previous slice, which sends the data */
		if (e->kind == GPUL_COMM_EVENT_POST)
			continue;

		const int64_t from = (int64_t)(e->begin_ns - origin_ns), to = (int64_t)(e->end_ns - origin_ns);

		name_event(e, name, sizeof name);
		trace_begin_slice(j, (unsigned)rank + 1, e->block + BLOCKS, name, from, to > from ? to : from);
		json_begin(j, "args", '{');
		json_u64(j, "step", e->step);
		if (e->peer >= 0)
			json_i64(j, "peer", e->peer);
		if (e->bytes)
			json_u64(j, "bytes", e->bytes);
		json_end(j, '}');
		json_end(j, '}');
	}
}

static void add_calls(struct json *j, const struct comm_result *result, int rank, const struct comm_rank_trace *t, uint64_t origin_ns)
{
	char name[96];

	for (size_t i = 0; i < t->n_sections; i++) {
		const struct comm_section *s = &t->sections[i];

		(void)snprintf(name, sizeof name, "%u calls of %s, %llu bytes, %s", s->iterations, gpul_comm_call_name(result->q.call),
			       (unsigned long long)s->bytes, s->in ? "in place" : "out of place");
		trace_add_slice(j, (unsigned)rank + 1, CALLS, name, (int64_t)(s->begin_ns - origin_ns), (int64_t)(s->end_ns - origin_ns));
	}
}

static void add_names(struct json *j, const struct comm_result *result, int rank, const struct comm_rank_trace *t)
{
	const struct comm_about *a = &result->about[rank];
	uint32_t n_blocks = 0;
	char name[240];

	if (result->n_hosts > 1)
		(void)snprintf(name, sizeof name, "rank %d: host %s, device %d, %.40s, pid %d, within %.4g us", rank, a->host_name,
			       a->device, a->name, a->pid, result->rank_bound_ns[rank] / 1e3);
	else
		(void)snprintf(name, sizeof name, "rank %d: device %d, %s, pid %d", rank, a->device, a->name, a->pid);
	trace_name_process(j, (unsigned)rank + 1, name);
	trace_name_track(j, (unsigned)rank + 1, CALLS, "calls");
	for (size_t i = 0; i < t->n; i++)
		n_blocks = t->events[i].block >= n_blocks ? t->events[i].block + 1 : n_blocks;
	for (uint32_t b = 0; b < n_blocks; b++) {
		(void)snprintf(name, sizeof name, "block %u", b);
		trace_name_track(j, (unsigned)rank + 1, b + BLOCKS, name);
	}
}

static void add_clocks(struct json *j, const struct comm_result *r)
{
	json_begin(j, "ranks_on_hosts", '[');
	for (int k = 0; k < r->n_ranks; k++) {
		json_begin(j, NULL, '{');
		json_i64(j, "rank", k);
		json_text(j, "host", r->about[k].host_name);
		json_double(j, "clock_bound_ns", r->rank_bound_ns[k]);
		json_end(j, '}');
	}
	json_end(j, ']');
	comm_json_hosts(r, j);
}

static void add_metadata(struct json *j, const struct comm_result *r)
{
	uint64_t n_lost = 0, n_net_lost = 0;

	for (int k = 0; k < r->n_ranks; k++) {
		n_lost += r->waiting[k].n_lost;
		n_net_lost += r->waiting[k].n_net_lost;
	}
	json_begin(j, "otherData", '{');
	json_text(j, "made_by", "gpuload comm " GPUL_VERSION);
	json_text(j, "collective", gpul_comm_call_name(r->q.call));
	json_i64(j, "ranks", r->n_ranks);
	json_text(j, "driver", r->driver);
	json_text(j, "dtype", gpul_comm_dtype_name(r->q.dtype));
	json_u64(j, "lost_events", n_lost);
	json_u64(j, "lost_network_events", n_net_lost);
	json_double(j, "clock_bound_ns", r->clock_bound_ns);
	add_clocks(j, r);
	json_end(j, '}');
}

void comm_trace_json(const struct comm_result *result, const struct comm_rank_trace *ranks, uint64_t origin_ns, struct out *o)
{
	struct json j = { .out = *o };
	uint64_t n_left_out;

	json_begin(&j, NULL, '{');
	json_text(&j, "displayTimeUnit", "ns");
	add_metadata(&j, result);
	json_begin(&j, "traceEvents", '[');
	for (int rank = 0; rank < result->n_ranks; rank++) {
		add_names(&j, result, rank, &ranks[rank]);
		add_calls(&j, result, rank, &ranks[rank], origin_ns);
		add_events(&j, rank, &ranks[rank], origin_ns);
	}
	n_left_out = comm_trace_net_json(result, ranks, BLOCKS, origin_ns, &j);
	json_end(&j, ']');
	json_u64(&j, "arrows_left_out", n_left_out);
	json_end(&j, '}');
	out_text(&j.out, "\n");
	*o = j.out;
}
