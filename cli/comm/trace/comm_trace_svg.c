/* comm_trace_svg.c — draws the last timed call of gpuload comm --trace as an SVG file: the events of each block over time.
 *
 *              │ LEGEND_Y   wait for data ■   send ■ ...
 *     rank 0   │ block 0  ══▒▒▒══█████══▒▒══           a row of ROW pixels; x: time
 *              │ block 1  ══▒▒▒▒▒══████══▒══
 *     rank 1   │ ...
 *              └──┴──────┴──────┴──────┴─── us
 *
 * A call is drawn as a thin bar, with its steps and waits on top of it; a wait within a step covers that part of the step.
 * All events of a kind are one path, so that a picture of some hundred events remains small. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/comm/trace/comm_trace.h"
#include "cli/lib/bench/bench_plot.h"

/* clang-format off */
enum { LEFT = 118, WIDTH = 860, RIGHT = 24, TOP = 104, ROW = 20, BAR = 14, GAP = 9, LEGEND_Y = 74, BELOW = 50, MOST_ROWS = 48,
       MOST_HOSTS = 6 };
/* clang-format on */

/* clang-format off */
static const char style[] =
	"  path { stroke: none; }\n"
	"  text.in { font-size: 10px; fill: #ffffff; }\n"
	"  .kernel { fill: #d1d9e0; }\n"
	"  .data { fill: #fb8f44; }\n"
	"  .credit { fill: #d4a72c; }\n"
	"  .greeting { fill: #c297ff; }\n"
	"  .goodbye { fill: #ff80c8; }\n"
	"  .copy { fill: #1a7f37; }\n"
	"  .reduce { fill: #8250df; }\n"
	"  .send { fill: #0550ae; }\n"
	"  .recv { fill: #0a7b83; }\n"
	"  path.grid { stroke: #d1d9e0; stroke-width: 1; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    .kernel { fill: #3d444d; }\n"
	"    .copy { fill: #57ab5a; }\n"
	"    .reduce { fill: #a475f9; }\n"
	"    .send { fill: #539bf5; }\n"
	"    .recv { fill: #39c5cf; }\n"
	"    path.grid { stroke: #3d444d; }\n"
	"  }\n";
/* clang-format on */

static const struct kind {
	const char *css, *name;
} kinds[] = {
	[GPUL_COMM_EVENT_KERNEL] = { "kernel", "call" },
	[GPUL_COMM_EVENT_WAIT_DATA] = { "data", "wait for data" },
	[GPUL_COMM_EVENT_WAIT_CREDIT] = { "credit", "wait for credit" },
	[GPUL_COMM_EVENT_WAIT_GREETING] = { "greeting", "wait for greeting" },
	[GPUL_COMM_EVENT_WAIT_GOODBYE] = { "goodbye", "wait for goodbye" },
	[GPUL_COMM_EVENT_COPY] = { "copy", "copy" },
	[GPUL_COMM_EVENT_REDUCE] = { "reduce", "reduce" },
	[GPUL_COMM_EVENT_SEND] = { "send", "send" },
	[GPUL_COMM_EVENT_RECV] = { "recv", "receive" },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
/* The kinds of events in the order of drawing: the last one is on top. */
static const uint32_t drawing_order[N_KINDS] = {
	GPUL_COMM_EVENT_KERNEL,      GPUL_COMM_EVENT_SEND,          GPUL_COMM_EVENT_RECV,
	GPUL_COMM_EVENT_COPY,        GPUL_COMM_EVENT_REDUCE,        GPUL_COMM_EVENT_WAIT_DATA,
	GPUL_COMM_EVENT_WAIT_CREDIT, GPUL_COMM_EVENT_WAIT_GREETING, GPUL_COMM_EVENT_WAIT_GOODBYE,
};

struct picture {
	const struct comm_result *r;
	const struct comm_rank_trace *ranks;
	struct out *o;
	struct comm_last_call last;
	uint64_t begin_ns, end_ns;  /* earliest start and latest end of all events */
	uint32_t n_blocks, n_shown; /* number of blocks of a rank, and how many of them are drawn */
};

/* ---- what is drawn ---------------------------------------------------------------------------------------------- */

static void find_range(struct picture *p)
{
	p->begin_ns = UINT64_MAX;
	for (int r = 0; r < p->r->n_ranks; r++) {
		const struct comm_rank_trace *t = &p->ranks[r];

		for (size_t i = 0; i < t->n; i++) {
			const gpul_comm_event *e = &t->events[i];

			if (!p->last.events[r][i])
				continue;
			p->begin_ns = e->begin_ns < p->begin_ns ? e->begin_ns : p->begin_ns;
			p->end_ns = e->end_ns > p->end_ns ? e->end_ns : p->end_ns;
			p->n_blocks = e->block >= p->n_blocks ? e->block + 1 : p->n_blocks;
		}
	}
	if (p->begin_ns == UINT64_MAX)
		p->begin_ns = 0;
	if (p->end_ns <= p->begin_ns)
		p->end_ns = p->begin_ns + 1;
	p->n_shown = MOST_ROWS / (uint32_t)p->r->n_ranks;
	p->n_shown = p->n_shown < 1 ? 1 : p->n_shown > p->n_blocks ? p->n_blocks : p->n_shown;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------ */

static int y_of(const struct picture *p, int rank, uint32_t block)
{
	return TOP + rank * ((int)p->n_shown * ROW + GAP) + (int)block * ROW;
}

static double x_of(const struct picture *p, uint64_t ns)
{
	return LEFT + WIDTH * (double)(ns - p->begin_ns) / (double)(p->end_ns - p->begin_ns);
}

static bool is_shown(const struct picture *p, int rank, size_t i)
{
	const gpul_comm_event *e = &p->ranks[rank].events[i];

	return p->last.events[rank][i] && e->block < p->n_shown && e->kind < N_KINDS;
}

static bool add_kind(const struct picture *p, uint32_t kind)
{
	const int top = kind == GPUL_COMM_EVENT_KERNEL ? 5 : 0, height = kind == GPUL_COMM_EVENT_KERNEL ? 4 : BAR;
	bool any = false;

	for (int r = 0; r < p->r->n_ranks; r++)
		for (size_t i = 0; i < p->ranks[r].n; i++) {
			const gpul_comm_event *e = &p->ranks[r].events[i];
			double x, width;

			if (e->kind != kind || !is_shown(p, r, i))
				continue;
			if (!any)
				out_add(p->o, "<path class=\"%s\" d=\"", kinds[kind].css);
			any = true;
			x = x_of(p, e->begin_ns);
			width = fmax(0.3, x_of(p, e->end_ns > e->begin_ns ? e->end_ns : e->begin_ns) - x);
			out_add(p->o, "M%.1f %dh%.1fv%dh-%.1fz", x, y_of(p, r, e->block) + top, width, height, width);
		}
	if (any)
		out_add(p->o, "\"><title>%s</title></path>\n", kinds[kind].name);
	return any;
}

/* Label a long wait with the rank that it waits for. */
static void add_peers(const struct picture *p)
{
	for (int r = 0; r < p->r->n_ranks; r++)
		for (size_t i = 0; i < p->ranks[r].n; i++) {
			const gpul_comm_event *e = &p->ranks[r].events[i];

			if ((e->kind != GPUL_COMM_EVENT_WAIT_DATA && e->kind != GPUL_COMM_EVENT_WAIT_CREDIT) || e->peer < 0 ||
			    !is_shown(p, r, i) || x_of(p, e->end_ns) - x_of(p, e->begin_ns) < 44)
				continue;
			out_add(p->o, "<text class=\"in\" x=\"%.1f\" y=\"%d\">rank %d</text>\n", x_of(p, e->begin_ns) + 4,
				y_of(p, r, e->block) + 11, (int)e->peer);
		}
}

static void add_rows(const struct picture *p)
{
	for (int r = 0; r < p->r->n_ranks; r++) {
		out_add(p->o, "<text class=\"panel\" x=\"8\" y=\"%d\">rank %d</text>\n", y_of(p, r, 0) + 12, r);
		for (uint32_t b = 0; b < p->n_shown; b++)
			out_add(p->o, "<text class=\"soft tick\" text-anchor=\"end\" x=\"%d\" y=\"%d\">block %u</text>\n", LEFT - 8,
				y_of(p, r, b) + 11, b);
	}
}

static void add_axis(const struct picture *p, int bottom)
{
	const double range_us = (double)(p->end_ns - p->begin_ns) / 1e3, step = plot_step(range_us, 10);

	for (int i = 0; i * step <= range_us; i++) {
		const double x = LEFT + WIDTH * i * step / range_us;

		out_add(p->o, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, TOP - 6, bottom);
		out_add(p->o, "<text class=\"soft tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%.*f</text>\n", x, bottom + 16,
			step < 1 ? 1 : 0, i * step);
	}
	out_add(p->o, "<text class=\"soft\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">us", LEFT + WIDTH / 2, bottom + 36);
	if (p->n_shown < p->n_blocks)
		out_add(p->o, "; the first %u of %u blocks of each rank", p->n_shown, p->n_blocks);
	out_text(p->o, "</text>\n");
}

static void add_legend(struct out *o, const bool present[N_KINDS])
{
	int x = LEFT;

	for (uint32_t i = 1; i < N_KINDS; i++) {
		const uint32_t kind = drawing_order[i];

		if (!present[kind])
			continue;
		out_add(o, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"14\" height=\"12\"/>\n", kinds[kind].css, x, LEGEND_Y - 10);
		out_add(o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 19, LEGEND_Y, kinds[kind].name);
		x += 19 + 7 * (int)strlen(kinds[kind].name) + 22;
	}
}

/* Describe the drawn call in two lines. */
static void add_title(const struct picture *p)
{
	const struct comm_result *r = p->r;
	const struct comm_section *s = p->last.section;
	const struct comm_row *row = NULL;

	for (unsigned i = 0; s && i < r->n_rows; i++)
		row = r->row[i].bytes == s->bytes ? &r->row[i] : row;
	out_add(p->o, "<text class=\"head\" x=\"8\" y=\"24\">gpuload comm %s: ", gpul_comm_call_name(r->q.call));
	if (s)
		plot_add_size(p->o, s->bytes);
	out_add(p->o, " of %s, %d ranks, ", gpul_comm_dtype_name(r->q.dtype), r->n_ranks);
	svg_name(p->o, r->about[0].name);
	out_text(p->o, "</text>\n<text class=\"soft\" x=\"8\" y=\"45\">");
	if (row && s)
		out_add(p->o, "algorithm %s, protocol %s, %u block%s of %u threads; the last %s call, %s; ",
			gpul_comm_algo_name(row->plan.algo), gpul_comm_proto_name(row->plan.proto), row->plan.n_blocks,
			row->plan.n_blocks == 1 ? "" : "s", row->plan.n_threads, p->last.is_last ? "timed" : "recorded",
			s->in ? "in place" : "out of place");
	out_add(p->o, "ranks on one clock within %.4g us</text>\n", r->clock_bound_ns / 1e3);
	if (r->n_hosts < 2)
		return;
	out_text(p->o, "<text class=\"soft\" x=\"8\" y=\"60\">");
	for (int k = 0; k < r->n_ranks && k < MOST_HOSTS; k++) {
		out_add(p->o, "%srank %d on host ", k ? ", " : "", k);
		svg_name(p->o, r->about[k].host_name);
		if (r->about[k].host)
			out_add(p->o, " (within %.4g us)", r->rank_bound_ns[k] / 1e3);
	}
	out_text(p->o, r->n_ranks > MOST_HOSTS ? ", ...</text>\n" : "</text>\n");
}

void comm_trace_svg(const struct comm_result *result, const struct comm_rank_trace *ranks, struct out *o)
{
	struct picture p = { .r = result, .ranks = ranks, .o = o };
	bool present[N_KINDS] = { false };
	int bottom;

	if (!comm_last_call_find(ranks, result->n_ranks, &p.last)) {
		comm_last_call_free(&p.last);
		o->failed = true;
		return;
	}
	find_range(&p);
	bottom = y_of(&p, result->n_ranks, 0);
	svg_begin(o, LEFT + WIDTH + RIGHT, bottom + BELOW, gpul_comm_call_name(result->q.call), style);
	add_title(&p);
	add_axis(&p, bottom);
	add_rows(&p);
	for (uint32_t i = 0; i < N_KINDS; i++)
		present[drawing_order[i]] = add_kind(&p, drawing_order[i]);
	add_peers(&p);
	add_legend(o, present);
	out_text(o, "</svg>\n");
	comm_last_call_free(&p.last);
}
