/* rdma_bench_svg.c — draws the result of gpuload rdma bench as an SVG file.
 *
 *     ┌──────────────────┐     ┌──────────────────┐   x: bytes per message (cli/lib/bench/bench_plot.h)
 *     │ Gbit/s           │     │ latency, us      │   this end and the server; p50 and p99
 *     └──────────────────┘     └──────────────────┘ */
#include <stdio.h>

#include "cli/lib/bench/bench_plot.h"
#include "cli/rdma/rdma_bench.h"

/* Points also differ in shape, for readers who cannot distinguish colours: discs for this end, squares for the server. */
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
	struct plot_panel panels[2];
};

/* Return the value that a curve has for a row; 0: not measured. */
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

static void find_ranges(struct plot *p)
{
	p->panels[0] = plot_panel(0);
	p->panels[1] = plot_panel(1);
	for (unsigned i = 0; i < p->r->n_rows; i++)
		for (int k = 0; k < 2 * N_VALUES; k++)
			plot_note(&p->panels[k / 2 != RATE], p->r->row[i].bytes, value_of(&p->r->row[i], k % 2, (enum value)(k / 2)));
}

/* ---- drawing --------------------------------------------------------------------------- */

static void add_panel(const struct plot *p, int panel)
{
	const bool half = p->r->shape.mode == RDMA_LAT || p->r->shape.mode == RDMA_PUT_LAT;
	uint64_t sizes[sizeof p->r->row / sizeof *p->r->row];

	for (unsigned i = 0; i < p->r->n_rows; i++)
		sizes[i] = p->r->row[i].bytes;
	plot_add_frame(p->o, &p->panels[panel],
		       panel == 0 ? "Gbit/s"
		       : half     ? "half a round trip, us"
				  : "latency of a request, us",
		       "bytes per message", sizes, p->r->n_rows);
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
	struct plot_line line = { p->o, there ? "there" : "here", value == P99 ? " p99" : "", "M ", false };

	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double x = value_of(&p->r->row[i], there, value);

		if (x > 0)
			plot_line_add(&line, plot_x(&p->panels[panel], p->r->row[i].bytes), plot_y(&p->panels[panel], x));
	}
	plot_line_end(&line, NULL);
	for (unsigned i = 0; i < p->r->n_rows; i++) {
		const double x = value_of(&p->r->row[i], there, value);

		if (x <= 0)
			continue;
		add_dot(p, there, plot_x(&p->panels[panel], p->r->row[i].bytes), plot_y(&p->panels[panel], x));
		out_add(p->o, "<title>%s, %s", name, value == P50 ? "p50, " : value == P99 ? "p99, " : "");
		plot_add_size(p->o, p->r->row[i].bytes);
		out_add(p->o, ": %.3g %s</title>%s\n", x, unit, there ? "</rect>" : "</circle>");
	}
}

static void add_legend(const struct plot *p)
{
	static const char *const names[] = { "this end", "server", "p99" };
	int x = PLOT_LEFT;

	for (int i = 0; i < 3; i++, x += 130) {
		plot_add_key(p->o, x, PLOT_LEGEND_Y, i == 1 ? "there" : "here", i == 2 ? " p99" : "");
		if (i < 2) {
			add_dot(p, i == 1, x + 15, PLOT_LEGEND_Y);
			out_text(p->o, i == 1 ? "</rect>\n" : "</circle>\n");
		}
		plot_add_name(p->o, x + 37, PLOT_LEGEND_Y, names[i]);
	}
}

void rdma_bench_svg(const struct rdma_bench_result *r, struct out *o)
{
	struct plot p = { .r = r, .o = o };
	char title[256];

	find_ranges(&p);
	snprintf(title, sizeof title, "%s: %s, %s memory to %s memory", rdma_mode_names[r->shape.mode], r->here.device, r->here.memory,
		 r->there.memory);
	plot_begin(o, plot_width(2), PLOT_FILE_HEIGHT, "gpuload rdma bench, ", title, style);
	add_legend(&p);
	for (int panel = 0; panel < 2; panel++)
		add_panel(&p, panel);
	for (int value = N_VALUES; value-- > 0;)
		for (int there = 2; there-- > 0;)
			add_curve(&p, there, (enum value)value);
	out_text(o, "</svg>\n");
}
