/* rdma_bench_svg.c — the result of gpuload rdma bench as an SVG file.
 *
 *     LEFT  PANEL                GAP  PANEL               RIGHT
 *          ┌──────────────────┐     ┌──────────────────┐
 *          │ Gbit/s           │     │ latency, us      │   x: bytes per message; all axes are logarithmic
 *          └──────────────────┘     └──────────────────┘   this end and the server; p50 and p99 */
#include <math.h>
#include <stdio.h>

#include "cli/lib/svg.h"
#include "cli/rdma/rdma_bench.h"

enum { LEFT = 74, PANEL = 380, GAP = 70, RIGHT = 24, TOP = 112, HEIGHT = 260, INSIDE = 18, LEGEND_Y = 62, BELOW = 60 };

/* For readers who cannot distinguish colours, points differ in shape, too: discs for this end, squares for the server. */
/* clang-format off */
static const char style[] =
	"  path.p99 { stroke-width: 1.3; stroke-dasharray: 6 4; }\n"
	"  path.here { stroke: #0550ae; }\n"
	"  path.there { stroke: #bc4c00; }\n"
	"  .dot.here { fill: #0550ae; }\n"
	"  .dot.there { fill: #bc4c00; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    path.here { stroke: #79c0ff; }\n"
	"    path.there { stroke: #ffa657; }\n"
	"    .dot.here { fill: #79c0ff; }\n"
	"    .dot.there { fill: #ffa657; }\n"
	"  }\n";
/* clang-format on */

enum value { RATE, P50, P99, N_VALUES };

struct plot {
	const struct rdma_bench_result *r;
	struct out *o;
	double bytes_log[2];   /* log2 of the smallest and the largest size */
	int decade[2][2];      /* of each panel: log10 of the values at the bottom and at the top */
};

/* 0: not measured. */
static double value_of(const struct rdma_row *row, bool there, enum value value)
{
	const struct rdma_figures *f = there ? &row->there : &row->here;

	switch (value) {
	case RATE:
		return f->ns ? (double)f->bytes * 8 / (double)f->ns : 0;
	case P50:
		return (double)f->p50_ns / 1e3;
	default:
		return (double)f->p99_ns / 1e3;
	}
}

static double bytes_log(uint64_t bytes)
{
	return log2(bytes ? (double)bytes : 0.5);
}

static void find_ranges(struct plot *p)
{
	double least[2] = { INFINITY, INFINITY }, most[2] = { 0, 0 };

	p->bytes_log[0] = INFINITY;
	p->bytes_log[1] = -INFINITY;
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const struct rdma_row *row = &p->r->row[i];

		p->bytes_log[0] = fmin(p->bytes_log[0], bytes_log(row->bytes));
		p->bytes_log[1] = fmax(p->bytes_log[1], bytes_log(row->bytes));
		for (int k = 0; k < 2 * N_VALUES; k++) {
			const double x = value_of(row, k % 2, (enum value)(k / 2));
			const int panel = k / 2 != RATE;

			least[panel] = x > 0 ? fmin(least[panel], x) : least[panel];
			most[panel] = fmax(most[panel], x);
		}
	}
	for (int panel = 0; panel < 2; panel++) {
		const bool any = most[panel] > 0;

		p->decade[panel][0] = any ? (int)floor(log10(least[panel])) : 0;
		p->decade[panel][1] = any ? (int)ceil(log10(most[panel])) : 1;
		if (p->decade[panel][1] == p->decade[panel][0])
			p->decade[panel][1]++;
	}
}

/* ---- coordinates ---------------------------------------------------------------------- */

static int panel_x(int panel)
{
	return LEFT + panel * (PANEL + GAP);
}

static double x_of(const struct plot *p, int panel, uint64_t bytes)
{
	const double range = p->bytes_log[1] - p->bytes_log[0];

	return panel_x(panel) + INSIDE + (range > 0 ? (bytes_log(bytes) - p->bytes_log[0]) / range : 0.5) * (PANEL - 2 * INSIDE);
}

static double y_of(const struct plot *p, int panel, double value)
{
	const int *d = p->decade[panel];

	return TOP + HEIGHT * (1 - (log10(value) - d[0]) / (d[1] - d[0]));
}

/* ---- drawing --------------------------------------------------------------------------- */

/* A size as --sizes takes it: 256, 64K, 1M. */
static void add_size(struct out *o, uint64_t bytes)
{
	static const char units[] = "KMG";
	int unit = -1;

	while (bytes >= 1024 && bytes % 1024 == 0 && unit < 2) {
		bytes /= 1024;
		unit++;
	}
	out_u64(o, bytes);
	out_bytes(o, &units[unit < 0 ? 0 : unit], unit >= 0);
}

static void add_panel(const struct plot *p, int panel)
{
	const bool half = p->r->shape.mode == RDMA_LAT || p->r->shape.mode == RDMA_PUT_LAT;
	const int x = panel_x(panel);
	double last = -INFINITY;

	out_add(p->o, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", x, TOP, PANEL, HEIGHT);
	out_add(p->o, "<text class=\"panel\" x=\"%d\" y=\"%d\">%s</text>\n", x, TOP - 8,
		panel == 0 ? "Gbit/s" : half ? "half a round trip, us" : "latency of a request, us");
	for (int d = p->decade[panel][0]; d <= p->decade[panel][1]; d++) {
		const double at = y_of(p, panel, pow(10, d));

		out_add(p->o, "<path class=\"grid\" d=\"M%d %.1f h%d\"/>\n", x, at, PANEL);
		out_add(p->o, "<text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.*f</text>\n", x - 8, at + 4, d < 0 ? -d : 0,
			pow(10, d));
	}
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double at = x_of(p, panel, p->r->row[i].bytes);

		if (fabs(at - last) < 26)
			continue;
		out_add(p->o, "<text class=\"soft tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">", at, TOP + HEIGHT + 17);
		add_size(p->o, p->r->row[i].bytes);
		out_text(p->o, "</text>\n");
		last = at;
	}
	out_add(p->o, "<text class=\"soft\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">bytes per message</text>\n", x + PANEL / 2,
		TOP + HEIGHT + 40);
}

static void add_dot(const struct plot *p, bool there, double x, double y)
{
	if (there)
		out_add(p->o, "<rect class=\"dot there\" x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\">", x - 3, y - 3);
	else
		out_add(p->o, "<circle class=\"dot here\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.4\">", x, y);
}

static void add_curve(const struct plot *p, bool there, enum value value)
{
	const int panel = value != RATE;
	const char *name = there ? "server" : "this end", *unit = value == RATE ? "Gbit/s" : "us";
	bool begun = false;

	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double x = value_of(&p->r->row[i], there, value);

		if (x <= 0)
			continue;
		if (!begun)
			out_add(p->o, "<path class=\"%s%s\" d=\"M", there ? "there" : "here", value == P99 ? " p99" : "");
		begun = true;
		out_add(p->o, " %.1f %.1f", x_of(p, panel, p->r->row[i].bytes), y_of(p, panel, x));
	}
	if (begun)
		out_text(p->o, "\"/>\n");
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double x = value_of(&p->r->row[i], there, value);

		if (x <= 0)
			continue;
		add_dot(p, there, x_of(p, panel, p->r->row[i].bytes), y_of(p, panel, x));
		out_add(p->o, "<title>%s, %s", name, value == P50 ? "p50, " : value == P99 ? "p99, " : "");
		add_size(p->o, p->r->row[i].bytes);
		out_add(p->o, ": %.3g %s</title>%s\n", x, unit, there ? "</rect>" : "</circle>");
	}
}

static void add_legend(const struct plot *p)
{
	static const char *const names[] = { "this end", "server", "p99" };
	int x = LEFT;

	for (int i = 0; i < 3; i++, x += 130) {
		out_add(p->o, "<path class=\"%s%s\" d=\"M%d %d h30\"/>\n", i == 1 ? "there" : "here", i == 2 ? " p99" : "", x, LEGEND_Y);
		if (i < 2) {
			add_dot(p, i == 1, x + 15, LEGEND_Y);
			out_text(p->o, i == 1 ? "</rect>\n" : "</circle>\n");
		}
		out_add(p->o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 37, LEGEND_Y + 4, names[i]);
	}
}

void rdma_bench_svg(const struct rdma_bench_result *r, struct out *o)
{
	struct plot p = { .r = r, .o = o };
	const int width = panel_x(1) + PANEL + RIGHT, height = TOP + HEIGHT + BELOW;
	char title[256];

	find_ranges(&p);
	snprintf(title, sizeof title, "%s: %s, %s memory to %s memory", rdma_mode_names[r->shape.mode], r->here.device, r->here.memory,
		 r->there.memory);
	svg_begin(o, width, height, title, style);
	out_add(o, "<text class=\"head\" x=\"%d\" y=\"34\">gpuload rdma bench, ", LEFT);
	svg_name(o, title);
	out_text(o, "</text>\n");
	add_legend(&p);
	for (int panel = 0; panel < 2; panel++)
		add_panel(&p, panel);
	for (int value = N_VALUES; value-- > 0;)
		for (int there = 2; there-- > 0;)
			add_curve(&p, there, (enum value)value);
	out_text(o, "</svg>\n");
}
