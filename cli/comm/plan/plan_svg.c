/* plan_svg.c — draws the result of gpuload comm plan as an SVG file.
 *
 *     ┌──────────────────────────────────────┐   a line for each algorithm, with its best protocol
 *     │ time, us        ¦                    │   ¦ where another algorithm becomes the best
 *     └──────────────────────────────────────┘   with --check, measured times as hollow points */
#include <stdio.h>

#include "cli/comm/plan/cli_plan.h"
#include "cli/lib/bench/bench_plot.h"

/* clang-format off */
static const char style[] =
	"  path.change { stroke: #8c959f; stroke-width: 1; stroke-dasharray: 3 4; }\n"
	"  path.ring { stroke: #0550ae; }\n"
	"  path.oneshot { stroke: #bc4c00; }\n"
	"  path.direct { stroke: #8250df; }\n"
	"  path.tree { stroke: #1a7f37; }\n"
	"  path.twolevel { stroke: #bf3989; }\n"
	"  circle { fill: none; stroke-width: 1.6; }\n"
	"  circle.ring { stroke: #0550ae; }\n"
	"  circle.oneshot { stroke: #bc4c00; }\n"
	"  circle.direct { stroke: #8250df; }\n"
	"  circle.tree { stroke: #1a7f37; }\n"
	"  circle.twolevel { stroke: #bf3989; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    path.ring, circle.ring { stroke: #79c0ff; }\n"
	"    path.oneshot, circle.oneshot { stroke: #ffa657; }\n"
	"    path.direct, circle.direct { stroke: #d2a8ff; }\n"
	"    path.tree, circle.tree { stroke: #7ee787; }\n"
	"    path.twolevel, circle.twolevel { stroke: #ff9bce; }\n"
	"  }\n";
/* clang-format on */

enum { WIDTH = 2 * PLOT_PANEL };

/* Return the time of an algorithm with its best protocol; negative: the algorithm is not possible. */
static double time_of(const struct plan_row *row, gpul_comm_algo algo, gpul_comm_proto *proto)
{
	double best = -1;

	for (gpul_comm_proto p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++)
		if (row->us[algo][p] >= 0 && (best < 0 || row->us[algo][p] < best)) {
			best = row->us[algo][p];
			*proto = p;
		}
	return best;
}

static void note_all(const struct plan_result *r, struct plot_panel *p)
{
	gpul_comm_proto proto;

	for (unsigned i = 0; i < r->n_rows; i++)
		for (gpul_comm_algo a = GPUL_COMM_RING; a < GPUL_COMM_N_ALGOS; a++)
			plot_note(p, r->rows[i].bytes, time_of(&r->rows[i], a, &proto));
	for (unsigned i = 0; i < r->n_checks; i++)
		plot_note(p, r->checks[i].bytes, r->checks[i].measured_us);
}

/* Draw the line of an algorithm.  Returns true if it has any times. */
static bool add_line(const struct plan_result *r, const struct plot_panel *p, gpul_comm_algo algo, struct out *o)
{
	struct plot_line line = { o, gpul_comm_algo_name(algo), "", "M", false };
	gpul_comm_proto proto = GPUL_COMM_SIMPLE;

	for (unsigned i = 0; i < r->n_rows; i++) {
		const double us = time_of(&r->rows[i], algo, &proto);

		if (us >= 0)
			plot_line_add(&line, plot_x(p, r->rows[i].bytes), plot_y(p, us));
	}
	plot_line_end(&line, gpul_comm_algo_name(algo));
	return line.begun;
}

static void add_changes(const struct plan_result *r, const struct plot_panel *p, struct out *o)
{
	for (unsigned i = 1; i < r->n_ranges; i++) {
		if (r->ranges[i].algo == r->ranges[i - 1].algo)
			continue; /* the algorithm stays the same: only the protocol changes */
		out_add(o, "<path class=\"change\" d=\"M%.1f %d v%d\"><title>from %llu bytes: %s</title></path>\n",
			plot_x(p, r->ranges[i].from), PLOT_TOP, PLOT_HEIGHT, (unsigned long long)r->ranges[i].from,
			gpul_comm_algo_name(r->ranges[i].algo));
	}
}

static void add_checks(const struct plan_result *r, const struct plot_panel *p, struct out *o)
{
	for (unsigned i = 0; i < r->n_checks; i++) {
		const struct plan_check *c = &r->checks[i];

		out_add(o, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\"><title>%s/%s, ", gpul_comm_algo_name(c->algo),
			plot_x(p, c->bytes), plot_y(p, c->measured_us), gpul_comm_algo_name(c->algo), gpul_comm_proto_name(c->proto));
		plot_add_size(o, c->bytes);
		out_add(o, ": %.4g us measured, %.4g us predicted</title></circle>\n", c->measured_us, c->predicted_us);
	}
}

void plan_svg(const struct plan_result *r, struct out *o)
{
	struct plot_panel p = plot_panel(0);
	uint64_t sizes[PLAN_MOST_ROWS];
	int x = PLOT_LEFT;
	char title[160];

	p.width = WIDTH;
	for (unsigned i = 0; i < r->n_rows; i++)
		sizes[i] = r->rows[i].bytes;
	note_all(r, &p);
	(void)snprintf(title, sizeof title, "%s, %u ranks, %u a host: predicted times", gpul_comm_call_name(r->q.call), r->machine.n_ranks,
		       r->machine.ranks_per_host);
	plot_begin(o, PLOT_LEFT + WIDTH + PLOT_RIGHT, PLOT_FILE_HEIGHT, "gpuload comm plan: ", title, style);
	plot_add_frame(o, &p, "time of a call, us", "bytes", sizes, r->n_rows);
	add_changes(r, &p, o);
	for (gpul_comm_algo a = GPUL_COMM_RING; a < GPUL_COMM_N_ALGOS; a++) {
		if (!add_line(r, &p, a, o))
			continue;
		plot_add_key(o, x, PLOT_LEGEND_Y, gpul_comm_algo_name(a), "");
		plot_add_name(o, x + 37, PLOT_LEGEND_Y, gpul_comm_algo_name(a));
		x += 130;
	}
	add_checks(r, &p, o);
	out_text(o, "</svg>\n");
}
