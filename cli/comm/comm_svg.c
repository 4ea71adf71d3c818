/* comm_svg.c — draws the result of a collective of gpuload comm as an SVG file.
 *
 *     ┌──────────────────┐     ┌──────────────────┐
 *     │ bus bandwidth    │     │ time of a call   │   x: bytes (cli/lib/bench/bench_plot.h)
 *     └──────────────────┘     └──────────────────┘
 *
 * A solid line for the calls out of place, a dashed one for those in place; each point has the shape and the colour of its
 * protocol: a disc for LL, a diamond for LL128, a square for Simple. */
#include <stdio.h>

#include "cli/comm/comm_bench.h"
#include "cli/lib/bench/bench_plot.h"

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
	struct plot_panel panels[N_PANELS];
};

/* Return the value that a curve has for a row; 0: not measured. */
static double value_of(const struct comm_row *row, int place, int panel)
{
	const struct comm_figures *f = &row->figures[place];

	return !f->measured ? 0 : panel == RATE ? f->bus_gb_s : f->us;
}

static void find_ranges(struct plot *p)
{
	for (int panel = 0; panel < N_PANELS; panel++) {
		p->panels[panel] = plot_panel(panel);
		for (unsigned i = 0; i < 2 * p->r->n_rows; i++)
			plot_note(&p->panels[panel], p->r->row[i / 2].bytes, value_of(&p->r->row[i / 2], i % 2, panel));
	}
}

/* ---- drawing ------------------------------------------------------------------------------------------------- */

static void add_panel(const struct plot *p, int panel)
{
	uint64_t sizes[COMM_MOST_ROWS];

	for (unsigned i = 0; i < p->r->n_rows; i++)
		sizes[i] = p->r->row[i].bytes;
	plot_add_frame(p->o, &p->panels[panel], panel == RATE ? "bus bandwidth, GB/s" : "time of a call, us", "bytes", sizes, p->r->n_rows);
}

/* Append the opening tag of a protocol's shape; the caller appends the returned closing tag. */
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
	const char *unit = panel == RATE ? "GB/s" : "us";
	struct plot_line line = { p->o, "line", place ? " in" : "", "M", false };

	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double x = value_of(&p->r->row[i], place, panel);

		if (x > 0)
			plot_line_add(&line, plot_x(&p->panels[panel], p->r->row[i].bytes), plot_y(&p->panels[panel], x));
	}
	plot_line_end(&line, NULL);
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const struct comm_row *row = &p->r->row[i];
		const double x = value_of(row, place, panel);
		const char *end;

		if (x <= 0)
			continue;
		end = add_dot(p->o, row->plan.proto, plot_x(&p->panels[panel], row->bytes), plot_y(&p->panels[panel], x));
		out_add(p->o, "<title>%s, ", place ? "in place" : "out of place");
		plot_add_size(p->o, row->bytes);
		out_add(p->o, ": %.4g %s, %s/%s, %u blocks of %u threads</title>%s", x, unit, gpul_comm_algo_name(row->plan.algo),
			gpul_comm_proto_name(row->plan.proto), row->plan.n_blocks, row->plan.n_threads, end);
	}
}

static void add_legend(struct out *o)
{
	static const char *const protos[] = { [GPUL_COMM_LL] = "LL", [GPUL_COMM_LL128] = "LL128", [GPUL_COMM_SIMPLE] = "Simple" };
	int x = PLOT_LEFT;

	for (int place = 0; place < 2; place++, x += 140) {
		plot_add_key(o, x, PLOT_LEGEND_Y, "line", place ? " in" : "");
		plot_add_name(o, x + 37, PLOT_LEGEND_Y, place ? "in place" : "out of place");
	}
	for (int proto = GPUL_COMM_LL; proto <= GPUL_COMM_SIMPLE; proto++, x += 90) {
		out_text(o, add_dot(o, (gpul_comm_proto)proto, x + 15, PLOT_LEGEND_Y));
		plot_add_name(o, x + 27, PLOT_LEGEND_Y, protos[proto]);
	}
}

void comm_svg(const struct comm_result *r, struct out *o)
{
	struct plot p = { .r = r, .o = o };
	char title[256];

	find_ranges(&p);
	(void)snprintf(title, sizeof title, "%s of %s, %d ranks, %s", gpul_comm_call_name(r->q.call), gpul_comm_dtype_name(r->q.dtype),
		       r->n_ranks, r->about[0].name);
	plot_begin(o, plot_width(N_PANELS), PLOT_FILE_HEIGHT, "gpuload comm: ", title, style);
	add_legend(o);
	for (int panel = 0; panel < N_PANELS; panel++) {
		add_panel(&p, panel);
		add_curve(&p, 1, panel);
		add_curve(&p, 0, panel);
	}
	out_text(o, "</svg>\n");
}
