/* comm_svg.c — the result of a collective of gpuload comm as an SVG file.
 *
 *     LEFT  PANEL                GAP  PANEL               RIGHT
 *          ┌──────────────────┐     ┌──────────────────┐
 *          │ bus bandwidth    │     │ time of a call   │   x: bytes; all axes are logarithmic
 *          └──────────────────┘     └──────────────────┘
 *
 * A line for the calls out of place, a dashed one for those in place; each point has the shape and the colour of its protocol:
 * a disc for LL, a diamond for LL128, a square for Simple. */
#include <math.h>
#include <stdio.h>

#include "cli/comm/comm_bench.h"
#include "cli/lib/svg.h"

enum { LEFT = 74, PANEL = 380, GAP = 70, RIGHT = 24, TOP = 112, HEIGHT = 260, INSIDE = 18, LEGEND_Y = 62, BELOW = 60 };

/* clang-format off */
static const char style[] =
	"  path.line { stroke: #8c959f; stroke-width: 1.5; }\n"
	"  path.in { stroke-dasharray: 5 4; }\n"
	"  .ll { fill: #bc4c00; }\n"
	"  .ll128 { fill: #1a7f37; }\n"
	"  .simple { fill: #0550ae; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    path.line { stroke: #9198a1; }\n"
	"    .ll { fill: #ffa657; }\n"
	"    .ll128 { fill: #7ee787; }\n"
	"    .simple { fill: #79c0ff; }\n"
	"  }\n";
/* clang-format on */

enum { RATE, TIME, N_PANELS };

struct plot {
	const struct comm_result *r;
	struct out *o;
	double bytes_log[2];          /* log2 of the smallest and the largest size */
	int decade[N_PANELS][2];      /* log10 of the values at the bottom and at the top */
};

/* 0: not measured. */
static double value_of(const struct comm_row *row, int place, int panel)
{
	const struct comm_figures *f = &row->figures[place];

	return !f->measured ? 0 : panel == RATE ? f->bus_gb_s : f->us;
}

static void find_ranges(struct plot *p)
{
	double least[N_PANELS] = { INFINITY, INFINITY }, most[N_PANELS] = { 0 };

	p->bytes_log[0] = INFINITY;
	p->bytes_log[1] = -INFINITY;
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const struct comm_row *row = &p->r->row[i];
		const double size = log2((double)row->bytes);

		p->bytes_log[0] = fmin(p->bytes_log[0], size);
		p->bytes_log[1] = fmax(p->bytes_log[1], size);
		for (int k = 0; k < 2 * N_PANELS; k++) {
			const double x = value_of(row, k % 2, k / 2);

			least[k / 2] = x > 0 ? fmin(least[k / 2], x) : least[k / 2];
			most[k / 2] = fmax(most[k / 2], x);
		}
	}
	for (int panel = 0; panel < N_PANELS; panel++) {
		const bool any = most[panel] > 0;

		p->decade[panel][0] = any ? (int)floor(log10(least[panel])) : 0;
		p->decade[panel][1] = any ? (int)ceil(log10(most[panel])) : 1;
		if (p->decade[panel][1] == p->decade[panel][0])
			p->decade[panel][1]++;
	}
}

/* ---- coordinates ------------------------------------------------------------------------------------------- */

static int panel_x(int panel)
{
	return LEFT + panel * (PANEL + GAP);
}

static double x_of(const struct plot *p, int panel, uint64_t bytes)
{
	const double range = p->bytes_log[1] - p->bytes_log[0];
	const double part = range > 0 ? (log2((double)bytes) - p->bytes_log[0]) / range : 0.5;

	return panel_x(panel) + INSIDE + part * (PANEL - 2 * INSIDE);
}

static double y_of(const struct plot *p, int panel, double value)
{
	const int *d = p->decade[panel];

	return TOP + HEIGHT * (1 - (log10(value) - d[0]) / (d[1] - d[0]));
}

/* ---- drawing ------------------------------------------------------------------------------------------------- */

static void add_panel(const struct plot *p, int panel)
{
	const int x = panel_x(panel);
	double last = -INFINITY;

	out_add(p->o, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", x, TOP, PANEL, HEIGHT);
	out_add(p->o, "<text class=\"panel\" x=\"%d\" y=\"%d\">%s</text>\n", x, TOP - 8,
		panel == RATE ? "bus bandwidth, GB/s" : "time of a call, us");
	for (int d = p->decade[panel][0]; d <= p->decade[panel][1]; d++) {
		const double at = y_of(p, panel, pow(10, d));

		out_add(p->o, "<path class=\"grid\" d=\"M%d %.1f h%d\"/>\n", x, at, PANEL);
		out_add(p->o, "<text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.*f</text>\n", x - 8, at + 4, d < 0 ? -d : 0,
			pow(10, d));
	}
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double at = x_of(p, panel, p->r->row[i].bytes);

		if (fabs(at - last) < 34)
			continue;
		out_add(p->o, "<text class=\"soft tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">", at, TOP + HEIGHT + 17);
		comm_add_size(p->o, p->r->row[i].bytes);
		out_text(p->o, "</text>\n");
		last = at;
	}
	out_add(p->o, "<text class=\"soft\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">bytes</text>\n", x + PANEL / 2, TOP + HEIGHT + 40);
}

/* The shape of a protocol, with its begin tag; the caller closes it by the returned text. */
static const char *add_dot(struct out *o, gpul_comm_proto proto, double x, double y)
{
	switch (proto) {
	case GPUL_COMM_LL:
		out_add(o, "<circle class=\"dot ll\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\">", x, y);
		return "</circle>\n";
	case GPUL_COMM_LL128:
		out_add(o, "<polygon class=\"dot ll128\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f\">", x, y - 5, x + 5, y, x, y + 5,
			x - 5, y);
		return "</polygon>\n";
	default:
		out_add(o, "<rect class=\"dot simple\" x=\"%.1f\" y=\"%.1f\" width=\"6.4\" height=\"6.4\">", x - 3.2, y - 3.2);
		return "</rect>\n";
	}
}

static void add_curve(const struct plot *p, int place, int panel)
{
	const char *unit = panel == RATE ? "GB/s" : "us", *before = "M";

	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double x = value_of(&p->r->row[i], place, panel);

		if (x <= 0)
			continue;
		if (*before == 'M')
			out_add(p->o, "<path class=\"line%s\" d=\"", place ? " in" : "");
		out_add(p->o, "%s%.1f %.1f", before, x_of(p, panel, p->r->row[i].bytes), y_of(p, panel, x));
		before = " ";
	}
	if (*before == ' ')
		out_text(p->o, "\"/>\n");
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const struct comm_row *row = &p->r->row[i];
		const double x = value_of(row, place, panel);
		const char *end;

		if (x <= 0)
			continue;
		end = add_dot(p->o, row->plan.proto, x_of(p, panel, row->bytes), y_of(p, panel, x));
		out_add(p->o, "<title>%s, ", place ? "in place" : "out of place");
		comm_add_size(p->o, row->bytes);
		out_add(p->o, ": %.4g %s, %s/%s, %u blocks of %u threads</title>%s", x, unit, gpul_comm_algo_name(row->plan.algo),
			gpul_comm_proto_name(row->plan.proto), row->plan.n_blocks, row->plan.n_threads, end);
	}
}

static void add_legend(struct out *o)
{
	static const char *const protos[] = { [GPUL_COMM_LL] = "LL", [GPUL_COMM_LL128] = "LL128", [GPUL_COMM_SIMPLE] = "Simple" };
	int x = LEFT;

	for (int place = 0; place < 2; place++, x += 140) {
		out_add(o, "<path class=\"line%s\" d=\"M%d %d h30\"/>\n", place ? " in" : "", x, LEGEND_Y);
		out_add(o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 37, LEGEND_Y + 4, place ? "in place" : "out of place");
	}
	for (int proto = GPUL_COMM_LL; proto <= GPUL_COMM_SIMPLE; proto++, x += 90) {
		out_text(o, add_dot(o, (gpul_comm_proto)proto, x + 15, LEGEND_Y));
		out_add(o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + 27, LEGEND_Y + 4, protos[proto]);
	}
}

void comm_svg(const struct comm_result *r, struct out *o)
{
	struct plot p = { .r = r, .o = o };
	char title[256];

	find_ranges(&p);
	(void)snprintf(title, sizeof title, "%s of %s, %d ranks, %s", gpul_comm_call_name(r->q.call), gpul_comm_dtype_name(r->q.dtype),
		       r->n_ranks, r->about[0].name);
	svg_begin(o, panel_x(1) + PANEL + RIGHT, TOP + HEIGHT + BELOW, title, style);
	out_add(o, "<text class=\"head\" x=\"%d\" y=\"34\">gpuload comm: ", LEFT);
	svg_name(o, title);
	out_text(o, "</text>\n");
	add_legend(o);
	for (int panel = 0; panel < N_PANELS; panel++) {
		add_panel(&p, panel);
		add_curve(&p, 1, panel);
		add_curve(&p, 0, panel);
	}
	out_text(o, "</svg>\n");
}
