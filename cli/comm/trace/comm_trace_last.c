/* comm_trace_last.c — finds the last timed call in the events of all ranks, by their order.
 *
 *     events of a block, in the order in which they ended:     wait  send  KERNEL   wait  send  KERNEL   wait  send  KERNEL
 *                                                              └─── call 0 ────┘    └─── call 1 ────┘    └─── call 2 ────┘
 *
 * Clocks are not used, because the error of a converted time can exceed the time between two calls.  A block makes the same number
 * of KERNEL events in each call of a section: one, or one for each of its transfers. */
#include <stdlib.h>

#include "cli/comm/trace/comm_trace.h"

/* The events of one rank in one section (the timed calls of one size). */
struct part {
	const struct comm_rank_trace *t;
	size_t begin, end;
	bool is_cut; /* the trace has lost events of the section */
	uint32_t n_blocks, iterations;
	uint32_t *n_kernels; /* for each block: number of KERNEL events */
	uint32_t *n_seen;    /* for each block: number of KERNEL events before the current event */
};

static bool is_kernel(const gpul_comm_event *e)
{
	return e->kind == GPUL_COMM_EVENT_KERNEL;
}

/* Allocate the counters for the events of one rank in one section; false: no memory. */
static bool open_part(const struct comm_rank_trace *t, size_t section, struct part *out)
{
	const uint64_t first = t->sections[section].first_event;
	const uint64_t next = section + 1 < t->n_sections ? t->sections[section + 1].first_event : t->n + t->n_lost;

	*out = (struct part){ .t = t,
			      .begin = first < t->n ? first : t->n,
			      .end = next < t->n ? next : t->n,
			      .is_cut = next > t->n,
			      .iterations = t->sections[section].iterations };
	for (size_t i = out->begin; i < out->end; i++)
		out->n_blocks = t->events[i].block >= out->n_blocks ? t->events[i].block + 1 : out->n_blocks;
	out->n_kernels = calloc((size_t)out->n_blocks + 1, sizeof *out->n_kernels);
	out->n_seen = calloc((size_t)out->n_blocks + 1, sizeof *out->n_seen);
	for (size_t i = out->begin; out->n_kernels && i < out->end; i++)
		out->n_kernels[t->events[i].block] += is_kernel(&t->events[i]);
	return out->n_kernels && out->n_seen;
}

/* Return the number of KERNEL events that a block records for one call; 1 if events are lost, because the number is then unknown. */
static uint32_t kernels_per_call(const struct part *p, uint32_t block)
{
	const uint32_t n = p->is_cut || !p->iterations ? 1 : p->n_kernels[block] / p->iterations;

	return n ? n : 1;
}

/* Count the calls that all blocks have recorded in full. */
static uint32_t count_calls(const struct part *p)
{
	uint32_t least = p->begin < p->end ? UINT32_MAX : 0;

	for (uint32_t b = 0; b < p->n_blocks; b++) {
		const uint32_t n = p->n_kernels[b] / kernels_per_call(p, b);

		/* A block that had no data has no KERNEL event, and is ignored.  If the trace has lost events, a block without one is
		 * not ignored: its events may be among the lost ones. */
		if ((n || p->is_cut) && n < least)
			least = n;
	}
	return least == UINT32_MAX ? 0 : least;
}

static void mark_call(struct part *p, uint32_t call, unsigned char *events)
{
	for (size_t i = p->begin; i < p->end; i++) {
		const gpul_comm_event *e = &p->t->events[i];

		events[i] = p->n_seen[e->block] / kernels_per_call(p, e->block) == call;
		p->n_seen[e->block] += is_kernel(e);
	}
}

/* Find the last call of a section.  Returns false if there is no memory; out->section remains NULL if there is no such call. */
static bool find_in_section(const struct comm_rank_trace *ranks, int n_ranks, size_t section, struct comm_last_call *out)
{
	struct part parts[GPUL_COMM_MAX_RANKS] = { { 0 } };
	uint32_t n_calls = UINT32_MAX;
	bool enough = true;

	for (int r = 0; enough && r < n_ranks; r++) {
		enough = open_part(&ranks[r], section, &parts[r]);
		if (enough && count_calls(&parts[r]) < n_calls)
			n_calls = count_calls(&parts[r]);
	}
	for (int r = 0; enough && n_calls && r < n_ranks; r++)
		mark_call(&parts[r], n_calls - 1, out->events[r]);
	if (enough && n_calls) {
		out->section = &ranks[0].sections[section];
		out->is_last = section + 1 == ranks[0].n_sections && n_calls == out->section->iterations;
	}
	for (int r = 0; r < n_ranks; r++) {
		free(parts[r].n_kernels);
		free(parts[r].n_seen);
	}
	return enough;
}

bool comm_last_call_find(const struct comm_rank_trace *ranks, int n_ranks, struct comm_last_call *out)
{
	bool enough = true;

	*out = (struct comm_last_call){ 0 };
	for (int r = 0; r < n_ranks; r++) {
		out->events[r] = calloc(ranks[r].n + 1, 1);
		enough = enough && out->events[r];
	}
	for (size_t s = ranks[0].n_sections; enough && s-- && !out->section;)
		enough = find_in_section(ranks, n_ranks, s, out);
	return enough;
}

void comm_last_call_free(struct comm_last_call *last)
{
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++)
		free(last->events[r]);
}
