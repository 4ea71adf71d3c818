/* fifo_bench_svg.c — draws the throughput and latency that gpuload fifo bench has measured as an SVG file.
 *
 *       LEFT   PANEL      GAP   PANEL      ...
 *              ┌──────────┐     ┌──────────┐
 *      push    │ 1 slot   │     │ 128 slots│     one column of panels per size, ACROSS columns side by side, then the next
 *              └──────────┘     └──────────┘     sizes below; x is the number of threads; y is the rate in triggers per
 *              ┌──────────┐     ┌──────────┐     second, or the latency; the axes are logarithmic, equal in all panels of
 *      + sync  │          │     │          │     a kind
 *              └──────────┘     └──────────┘
 *              ┌──────────┐     ┌──────────┐     a vertical bar is the spread: from the slowest to the fastest run; of
 *      latency │          │     │          │     the latency, from the median to the 99th percentile
 *              └──────────┘     └──────────┘     */
#include <math.h>
#include <stdio.h>

#include "cli/fifo/bench/fifo_bench.h"
#include "cli/lib/bench/bench_plot.h"

enum { LEFT = PLOT_LEFT, PANEL = 250, GAP = 22, RIGHT = PLOT_RIGHT, TOP = 124, HEIGHT = 220, ROW = HEIGHT + 62 };
enum { MOST_SIZES = 16, ACROSS = 4, LEGEND_Y = 66 };

/* The panels of a size, from top to bottom. */
enum metric { PUSH, PUSH_SYNC, LATENCY, N_METRICS };

/* Points also differ in shape, for readers who cannot distinguish colours: squares for mode shared, circles for mode lanes, both filled
 * for pushes with release order; triangles for the curve that fifo_bench_peer.c measures. */
/* clang-format off */
static const char style[] =
	"  path.relaxed { stroke-width: 1.3; stroke-dasharray: 6 4; }\n"
	"  path.peer { stroke: #6e7781; stroke-dasharray: 2 4; }\n"
	"  path.shared { stroke: #0550ae; }\n"
	"  path.lanes { stroke: #bc4c00; }\n"
	"  path.spread { stroke-width: 1; stroke-dasharray: none; opacity: 0.7; }\n"
	"  .dot { stroke-width: 1.4; }\n"
	"  .dot.shared { fill: #0550ae; stroke: #0550ae; }\n"
	"  .dot.lanes { fill: #bc4c00; stroke: #bc4c00; }\n"
	"  .dot.peer { fill: #6e7781; stroke: #6e7781; }\n"
	"  .dot.relaxed { fill: #ffffff; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    path.peer { stroke: #9198a1; }\n"
	"    path.shared { stroke: #79c0ff; }\n"
	"    path.lanes { stroke: #ffa657; }\n"
	"    .dot.shared { fill: #79c0ff; stroke: #79c0ff; }\n"
	"    .dot.lanes { fill: #ffa657; stroke: #ffa657; }\n"
	"    .dot.peer { fill: #9198a1; stroke: #9198a1; }\n"
	"    .dot.relaxed { fill: #0d1117; }\n"
	"  }\n";
/* clang-format on */

/* The curves of a panel: each mode with relaxed and with release order, and the curve of fifo_bench_peer.c, which has release order. */
enum curve { SHARED_RELAXED, SHARED_RELEASE, LANES_RELAXED, LANES_RELEASE, PEER, N_CURVES };

struct plot {
	const struct fifo_bench_request *r;
	const struct fifo_bench_result *result;
	struct out *o;
	unsigned size[MOST_SIZES], n_sizes;
	struct plot_panel rates, latencies; /* axes shared by all panels of a kind; x: threads; y: million triggers per second, or us */
};

/* A point of a curve: the value and its spread; value 0: there is no point. */
struct point {
	double value, least, most;
};

static const char *class_of(enum curve curve)
{
	return curve == PEER ? "peer" : curve < LANES_RELAXED ? "shared" : "lanes";
}

static bool is_relaxed(enum curve curve)
{
	return curve == SHARED_RELAXED || curve == LANES_RELAXED;
}

/* Return the point that a row adds to a curve; its value is 0 if it was not measured, or if the row belongs to another curve. */
static struct point point_of(const struct plot *p, const struct fifo_row *row, enum curve curve, enum metric metric)
{
	const struct fifo_peer *peer = fifo_peer_of(row->config);
	const enum fifo_mode mode = curve < LANES_RELAXED ? FIFO_SHARED : FIFO_LANES;
	const enum fifo_op op = (metric == PUSH ? FIFO_PUSH : FIFO_PUSH_SYNC) + (is_relaxed(curve) ? 0 : 1);
	const struct samples_spread *rate = &row->rate[op];
	const int64_t *ns = row->latency.to_sync.ns;
	double known;

	if (curve == PEER) {
		known = p->result->interprets || !peer || metric == LATENCY ? 0 : metric == PUSH ? peer->push : peer->push_sync;
		return (struct point){ known, known, known };
	}
	if (row->mode != mode || (metric == LATENCY && is_relaxed(curve)))
		return (struct point){ 0 };
	if (metric == LATENCY)
		return (struct point){ (double)ns[0] / 1e3, (double)ns[0] / 1e3, (double)ns[2] / 1e3 };
	return (struct point){ rate->median / 1e6, rate->least / 1e6, rate->most / 1e6 };
}

static void find_ranges(struct plot *p)
{
	p->rates = p->latencies = plot_panel(0);
	for (unsigned i = 0; i < p->result->n_rows; i++) {
		const struct fifo_row *row = &p->result->row[i];
		bool known = false;

		for (unsigned s = 0; s < p->n_sizes; s++)
			known = known || p->size[s] == row->config.size;
		if (!known && p->n_sizes < MOST_SIZES)
			p->size[p->n_sizes++] = row->config.size;
		for (int k = 0; k < N_CURVES * N_METRICS; k++) {
			const enum metric metric = (enum metric)(k % N_METRICS);
			const struct point at = point_of(p, row, (enum curve)(k / N_METRICS), metric);
			struct plot_panel *axes = metric == LATENCY ? &p->latencies : &p->rates;

			plot_note(axes, row->config.parallel, at.least > 0 ? at.least : at.value);
			plot_note(axes, row->config.parallel, at.value > 0 ? at.most : 0);
		}
	}
}

/* ---- coordinates ---------------------------------------------------------------------- */

static int panel_x(unsigned s)
{
	return LEFT + (int)(s % ACROSS) * (PANEL + GAP);
}

static int panel_y(unsigned s, enum metric metric)
{
	return TOP + ((int)(s / ACROSS) * N_METRICS + (int)metric) * ROW;
}

static struct plot_panel panel_of(const struct plot *p, unsigned s, enum metric metric)
{
	struct plot_panel panel = metric == LATENCY ? p->latencies : p->rates;

	panel.x = panel_x(s);
	panel.y = panel_y(s, metric);
	panel.width = PANEL;
	panel.height = HEIGHT;
	return panel;
}

/* ---- drawing --------------------------------------------------------------------- */

static void add_frame(const struct plot *p, unsigned s, enum metric metric)
{
	static const char *const titles[] = { "push", "push + sync each", "latency, push to sync" };
	const struct plot_panel panel = panel_of(p, s, metric);
	char title[64];

	snprintf(title, sizeof title, "%s, %u slot%s", titles[metric], p->size[s], p->size[s] == 1 ? "" : "s");
	plot_add_box(p->o, &panel, title);
	plot_add_decades(p->o, &panel, s % ACROSS == 0);
}

/* Add the labels below a panel: the thread counts of its rows, each once. */
static void add_threads(const struct plot *p, unsigned s, enum metric metric)
{
	const struct plot_panel panel = panel_of(p, s, metric);
	double last = -INFINITY;
	char label[16];

	for (unsigned i = 0; i < p->result->n_rows; i++) {
		const struct fifo_row *row = &p->result->row[i];
		const double x = plot_x(&panel, row->config.parallel);

		if (row->mode != p->result->row[0].mode || row->config.size != p->size[s] || fabs(x - last) < 22)
			continue;
		snprintf(label, sizeof label, "%u", row->config.parallel);
		plot_add_tick(p->o, &panel, x, label);
		last = x;
	}
}

static void add_dot(const struct plot *p, enum curve curve, double x, double y, const char *title)
{
	const char *relaxed = is_relaxed(curve) ? " relaxed" : "";

	if (curve == PEER)
		out_add(p->o, "<path class=\"dot peer\" d=\"M%.1f %.1f l3.6 6.4 h-7.2 z\">", x, y - 4);
	else if (curve < LANES_RELAXED)
		out_add(p->o, "<rect class=\"dot shared%s\" x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\">", relaxed, x - 3, y - 3);
	else
		out_add(p->o, "<circle class=\"dot lanes%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\">", relaxed, x, y);
	out_add(p->o, "<title>%s</title></%s>\n", title, curve == PEER ? "path" : curve < LANES_RELAXED ? "rect" : "circle");
}

static const char *name_of(enum curve curve)
{
	switch (curve) {
	case SHARED_RELAXED:
		return "shared, relaxed";
	case SHARED_RELEASE:
		return "shared, release";
	case LANES_RELAXED:
		return "lanes, relaxed";
	case LANES_RELEASE:
		return "lanes, release";
	default:
		return fifo_peer_name;
	}
}

/* True if the row has a point of this curve in the panels of size s.  The curve of fifo_bench_peer.c has points in the first mode only. */
static bool point_in_panel(const struct plot *p, const struct fifo_row *row, unsigned s, enum curve curve, enum metric metric,
			   struct point *at)
{
	*at = point_of(p, row, curve, metric);
	return row->config.size == p->size[s] && at->value > 0 && !(curve == PEER && row->mode != p->result->row[0].mode);
}

/* Draw the line of a curve, and the spread of each point.  Rows are sorted by mode and then by threads. */
static void add_line(const struct plot *p, unsigned s, enum metric metric, enum curve curve)
{
	const struct plot_panel panel = panel_of(p, s, metric);
	struct plot_line line = { p->o, class_of(curve), is_relaxed(curve) ? " relaxed" : "", "M ", false };
	struct point at;

	for (unsigned i = 0; i < p->result->n_rows; i++)
		if (point_in_panel(p, &p->result->row[i], s, curve, metric, &at))
			plot_line_add(&line, plot_x(&panel, p->result->row[i].config.parallel), plot_y(&panel, at.value));
	plot_line_end(&line, NULL);
	for (unsigned i = 0; i < p->result->n_rows; i++)
		if (point_in_panel(p, &p->result->row[i], s, curve, metric, &at) && at.most > at.least && at.least > 0)
			out_add(p->o, "<path class=\"spread %s\" d=\"M%.1f %.1f V%.1f\"/>\n", class_of(curve),
				plot_x(&panel, p->result->row[i].config.parallel), plot_y(&panel, at.least), plot_y(&panel, at.most));
}

static void add_dots(const struct plot *p, unsigned s, enum metric metric, enum curve curve)
{
	const struct plot_panel panel = panel_of(p, s, metric);
	char title[200];
	struct point at;

	for (unsigned i = 0; i < p->result->n_rows; i++) {
		const struct fifo_row *row = &p->result->row[i];

		if (!point_in_panel(p, row, s, curve, metric, &at))
			continue;
		if (metric == LATENCY)
			snprintf(title, sizeof title, "%s, %u slots, %u threads: median %.3g us, 99 %% %.3g us", name_of(curve),
				 row->config.size, row->config.parallel, at.value, at.most);
		else
			snprintf(title, sizeof title, "%s, %u slots, %u threads: %.3g M/s (%.3g to %.3g)", name_of(curve), row->config.size,
				 row->config.parallel, at.value, at.least, at.most);
		add_dot(p, curve, plot_x(&panel, row->config.parallel), plot_y(&panel, at.value), title);
	}
}

static void add_legend(const struct plot *p)
{
	int x = LEFT;

	for (int curve = 0; curve < N_CURVES; curve++) {
		const enum fifo_mode mode = curve < LANES_RELAXED ? FIFO_SHARED : FIFO_LANES;
		const bool there = curve == PEER ? !p->result->interprets : p->r->mode[mode];

		if (!there)
			continue;
		plot_add_key(p->o, x, LEGEND_Y, class_of((enum curve)curve), is_relaxed((enum curve)curve) ? " relaxed" : "");
		add_dot(p, (enum curve)curve, x + 15, LEGEND_Y, name_of((enum curve)curve));
		plot_add_name(p->o, x + 37, LEGEND_Y, name_of((enum curve)curve));
		x += 150;
	}
	out_add(p->o,
		"<text class=\"soft\" x=\"%d\" y=\"%d\">Bars: the slowest to the fastest of %u runs; latency: the median to "
		"the 99th percentile.%s%s</text>\n",
		LEFT, LEGEND_Y + 20, p->r->repeat, p->result->interprets ? "" : " ", p->result->interprets ? "" : fifo_peer_about);
}

static void add_axes(const struct plot *p, int width)
{
	for (unsigned s = 0; s < p->n_sizes; s += ACROSS)
		for (int metric = 0; metric < N_METRICS; metric++)
			out_add(p->o, "<text class=\"soft\" text-anchor=\"middle\" transform=\"translate(22 %d) rotate(-90)\">%s</text>\n",
				panel_y(s, (enum metric)metric) + HEIGHT / 2,
				metric == LATENCY ? "microseconds" : "million triggers per second");
	plot_add_x_title(p->o, (LEFT + width - RIGHT) / 2, panel_y(p->n_sizes - 1, LATENCY) + HEIGHT,
			 "threads that push, each in a separate block");
}

void fifo_bench_svg(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o)
{
	struct plot p = { .r = r, .result = result, .o = o };
	char title[sizeof result->gpu + 32];
	int width, height;

	find_ranges(&p);
	width = LEFT + (int)(p.n_sizes < ACROSS ? p.n_sizes : ACROSS) * (PANEL + GAP) - GAP + RIGHT;
	width = width < 860 ? 860 : width;
	height = panel_y(p.n_sizes - 1, LATENCY) + HEIGHT + 58;
	snprintf(title, sizeof title, "gpuload fifo bench: %s", result->gpu);
	svg_begin(o, width, height, title, style);
	out_add(o, "<text class=\"head\" x=\"%d\" y=\"34\">From GPU threads to a CPU thread: ", LEFT);
	svg_name(o, result->gpu);
	out_add(o, ", %s memory, median of %u</text>\n", gpul_mem_kind_name(result->kind), r->repeat);
	add_legend(&p);
	for (unsigned k = 0; k < N_METRICS * p.n_sizes; k++) {
		const unsigned s = k / N_METRICS;
		const enum metric metric = (enum metric)(k % N_METRICS);

		add_frame(&p, s, metric);
		add_threads(&p, s, metric);
		for (int curve = N_CURVES; curve-- > 0;)
			add_line(&p, s, metric, (enum curve)curve);
		for (int curve = N_CURVES; curve-- > 0;)
			add_dots(&p, s, metric, (enum curve)curve);
	}
	add_axes(&p, width);
	out_text(o, "</svg>\n");
}
