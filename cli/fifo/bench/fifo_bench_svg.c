/* fifo_bench_svg.c — the throughput of gpuload fifo bench as an SVG file.
 *
 *       LEFT   PANEL      GAP   PANEL      ...
 *             ┌──────────┐     ┌──────────┐
 *      push   │ 1 slot   │     │ 128 slots│      one panel per size; x is the number of threads, y is the rate in
 *             └──────────┘     └──────────┘      triggers per second; both axes are logarithmic, equal in all panels
 *             ┌──────────┐     ┌──────────┐
 *      + sync │          │     │          │
 *             └──────────┘     └──────────┘     */
#include <math.h>
#include <stdio.h>

#include "cli/fifo/bench/fifo_bench.h"
#include "cli/lib/svg.h"

enum { LEFT = 74, PANEL = 250, GAP = 22, RIGHT = 24, TOP = 124, HEIGHT = 220, ROW = HEIGHT + 62, INSIDE = 18 };
enum { MOST_SIZES = 16, LEGEND_Y = 66 };

/* For readers who cannot distinguish colours, points differ in shape, too: squares for shared, discs for lanes. */
/* clang-format off */
static const char style[] =
	"  path.relaxed { stroke-width: 1.3; stroke-dasharray: 6 4; }\n"
	"  path.peer { stroke: #6e7781; stroke-dasharray: 2 4; }\n"
	"  path.shared { stroke: #0550ae; }\n"
	"  path.lanes { stroke: #bc4c00; }\n"
	"  .dot.shared { fill: #0550ae; }\n"
	"  .dot.lanes { fill: #bc4c00; }\n"
	"  .dot.peer { fill: #6e7781; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    path.peer { stroke: #9198a1; }\n"
	"    path.shared { stroke: #79c0ff; }\n"
	"    path.lanes { stroke: #ffa657; }\n"
	"    .dot.shared { fill: #79c0ff; }\n"
	"    .dot.lanes { fill: #ffa657; }\n"
	"    .dot.peer { fill: #9198a1; }\n"
	"  }\n";
/* clang-format on */

/* The curves of a panel: each mode with relaxed and with release order, and the peer's, which has release order. */
enum curve { SHARED_RELAXED, SHARED_RELEASE, LANES_RELAXED, LANES_RELEASE, PEER, N_CURVES };

struct plot {
	const struct fifo_bench_request *r;
	const struct fifo_bench_result *result;
	struct out *o;
	unsigned size[MOST_SIZES], n_sizes;
	double threads_log[2];  /* log2 of the smallest and the largest number of threads */
	int decade[2];          /* log10 of the rate at the bottom and at the top, in million triggers per second */
};

static const char *class_of(enum curve curve)
{
	return curve == PEER ? "peer" : curve < LANES_RELAXED ? "shared" : "lanes";
}

static bool is_relaxed(enum curve curve)
{
	return curve == SHARED_RELAXED || curve == LANES_RELAXED;
}

/* Rate of a curve in a row, in million triggers per second; 0: not measured, or the row belongs to another curve. */
static double value_of(const struct plot *p, const struct fifo_row *row, enum curve curve, bool sync)
{
	const struct fifo_peer *peer = fifo_peer_of(row->config);
	const enum fifo_mode mode = curve < LANES_RELAXED ? FIFO_SHARED : FIFO_LANES;
	const enum fifo_op relaxed = sync ? FIFO_PUSH_SYNC : FIFO_PUSH;

	if (curve == PEER)
		return p->result->interprets || !peer ? 0 : sync ? peer->push_sync : peer->push;
	return row->mode != mode ? 0 : row->rate[is_relaxed(curve) ? relaxed : relaxed + 1].median / 1e6;
}

static void find_ranges(struct plot *p)
{
	double least = INFINITY, most = 0;

	p->threads_log[0] = INFINITY;
	for (unsigned i = 0; i < p->result->n_rows; i++) {
		const struct fifo_row *row = &p->result->row[i];
		const double threads = log2(row->config.parallel);
		bool known = false;

		for (unsigned s = 0; s < p->n_sizes; s++)
			known = known || p->size[s] == row->config.size;
		if (!known && p->n_sizes < MOST_SIZES)
			p->size[p->n_sizes++] = row->config.size;
		p->threads_log[0] = fmin(p->threads_log[0], threads);
		p->threads_log[1] = fmax(p->threads_log[1], threads);
		for (int curve = 0; curve < 2 * N_CURVES; curve++) {
			const double value = value_of(p, row, (enum curve)(curve / 2), curve % 2);

			least = value > 0 ? fmin(least, value) : least;
			most = fmax(most, value);
		}
	}
	p->decade[0] = (int)floor(log10(least));
	p->decade[1] = (int)ceil(log10(most));
	if (p->decade[1] == p->decade[0])
		p->decade[1]++;
}

/* ---- coordinates ---------------------------------------------------------------------- */

static int panel_x(unsigned s)
{
	return LEFT + (int)s * (PANEL + GAP);
}

static int panel_y(bool sync)
{
	return TOP + (sync ? ROW : 0);
}

static double x_of(const struct plot *p, unsigned s, unsigned threads)
{
	const double range = p->threads_log[1] - p->threads_log[0];
	const double part = range > 0 ? (log2(threads) - p->threads_log[0]) / range : 0.5;

	return panel_x(s) + INSIDE + part * (PANEL - 2 * INSIDE);
}

static double y_of(const struct plot *p, bool sync, double millions)
{
	const double part = (log10(millions) - p->decade[0]) / (p->decade[1] - p->decade[0]);

	return panel_y(sync) + HEIGHT * (1 - part);
}

/* ---- drawing --------------------------------------------------------------------- */

static void add_frame(const struct plot *p, unsigned s, bool sync)
{
	const int x = panel_x(s), y = panel_y(sync);

	out_add(p->o, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", x, y, PANEL, HEIGHT);
	out_add(p->o, "<text class=\"panel\" x=\"%d\" y=\"%d\">%s, %u slot%s</text>\n", x, y - 8,
		sync ? "push + sync each" : "push", p->size[s], p->size[s] == 1 ? "" : "s");
	for (int d = p->decade[0]; d <= p->decade[1]; d++) {
		const double at = y_of(p, sync, pow(10, d));

		out_add(p->o, "<path class=\"grid\" d=\"M%d %.1f h%d\"/>\n", x, at, PANEL);
		if (s == 0)
			out_add(p->o, "<text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.*f</text>\n", x - 8,
				at + 4, d < 0 ? -d : 0, pow(10, d));
	}
}

/* Axis labels below a panel: the thread counts of its rows, each once. */
static void add_threads(const struct plot *p, unsigned s, bool sync)
{
	double last = -INFINITY;

	for (unsigned i = 0; i < p->result->n_rows; i++) {
		const struct fifo_row *row = &p->result->row[i];
		const double x = x_of(p, s, row->config.parallel);

		if (row->mode != p->result->row[0].mode || row->config.size != p->size[s] || fabs(x - last) < 22)
			continue;
		out_add(p->o, "<text class=\"soft tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%u</text>\n", x,
			panel_y(sync) + HEIGHT + 17, row->config.parallel);
		last = x;
	}
}

static void add_dot(const struct plot *p, enum curve curve, double x, double y)
{
	if (class_of(curve)[0] == 's')
		out_add(p->o, "<rect class=\"dot shared\" x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\">", x - 3, y - 3);
	else
		out_add(p->o, "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">", class_of(curve), x, y,
			curve == PEER ? "2.5" : "3.4");
}

static const char *name_of(enum curve curve)
{
	switch (curve) {
	case SHARED_RELAXED: return "shared, relaxed";
	case SHARED_RELEASE: return "shared, release";
	case LANES_RELAXED: return "lanes, relaxed";
	case LANES_RELEASE: return "lanes, release";
	default: return fifo_peer_name;
	}
}

/* Draw one curve.  Rows are sorted by mode and then by threads; the peer's curve uses the rows of the first measured mode. */
static void add_curve(const struct plot *p, unsigned s, bool sync, enum curve curve)
{
	const char *end = curve == PEER || curve >= LANES_RELAXED ? "</circle>\n" : "</rect>\n";
	bool begun = false;

	for (int dots = 0; dots < 2; dots++) {
		for (unsigned i = 0; i < p->result->n_rows; i++) {
			const struct fifo_row *row = &p->result->row[i];
			const double value = value_of(p, row, curve, sync);
			const double x = x_of(p, s, row->config.parallel);

			if (row->config.size != p->size[s] || value <= 0 ||
			    (curve == PEER && row->mode != p->result->row[0].mode))
				continue;
			if (dots) {
				add_dot(p, curve, x, y_of(p, sync, value));
				out_add(p->o, "<title>%s, %u slots, %u threads: %.3g M/s</title>%s", name_of(curve),
					row->config.size, row->config.parallel, value, end);
			} else if (!begun) {
				begun = true;
				out_add(p->o, "<path class=\"%s%s\" d=\"M", class_of(curve),
					is_relaxed(curve) ? " relaxed" : "");
			}
			if (!dots)
				out_add(p->o, " %.1f %.1f", x, y_of(p, sync, value));
		}
		if (!dots && begun)
			out_text(p->o, "\"/>\n");
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
		out_add(p->o, "<path class=\"%s%s\" d=\"M%d %d h30\"/>\n", class_of((enum curve)curve),
			is_relaxed((enum curve)curve) ? " relaxed" : "", x, LEGEND_Y);
		add_dot(p, (enum curve)curve, x + 15, LEGEND_Y);
		out_text(p->o, curve == PEER || curve >= LANES_RELAXED ? "</circle>\n" : "</rect>\n");
		out_add(p->o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 37, LEGEND_Y + 4, name_of((enum curve)curve));
		x += 150;
	}
	if (!p->result->interprets)
		out_add(p->o, "<text class=\"soft\" x=\"%d\" y=\"%d\">%s</text>\n", LEFT, LEGEND_Y + 20, fifo_peer_about);
}

static void add_axes(const struct plot *p, int width)
{
	for (int sync = 0; sync < 2; sync++)
		out_add(p->o,
			"<text class=\"soft\" text-anchor=\"middle\" transform=\"translate(22 %d) rotate(-90)\">million "
			"triggers per second</text>\n",
			panel_y(sync) + HEIGHT / 2);
	out_add(p->o, "<text class=\"soft\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">threads that push, each in a "
		  "separate block</text>\n",
		(LEFT + width - RIGHT) / 2, panel_y(true) + HEIGHT + 40);
}

void fifo_bench_svg(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o)
{
	struct plot p = { .r = r, .result = result, .o = o };
	char title[sizeof result->gpu + 32];
	int width, height = panel_y(true) + HEIGHT + 58;

	find_ranges(&p);
	width = panel_x(p.n_sizes) - GAP + RIGHT;
	width = width < 860 ? 860 : width;
	snprintf(title, sizeof title, "gpuload fifo bench: %s", result->gpu);
	svg_begin(o, width, height, title, style);
	out_add(o, "<text class=\"head\" x=\"%d\" y=\"34\">From GPU threads to a CPU thread: ", LEFT);
	svg_name(o, result->gpu);
	out_add(o, ", %s memory, median of %u</text>\n", gpul_mem_kind_name(result->kind), r->repeat);
	add_legend(&p);
	for (unsigned s = 0; s < 2 * p.n_sizes; s++) {
		add_frame(&p, s / 2, s % 2);
		add_threads(&p, s / 2, s % 2);
		for (int curve = N_CURVES; curve-- > 0;)
			add_curve(&p, s / 2, s % 2, (enum curve)curve);
	}
	add_axes(&p, width);
	out_text(o, "</svg>\n");
}
