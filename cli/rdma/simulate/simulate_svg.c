/* simulate_svg.c — draws the results of gpuload rdma simulate over time: the longest queue, the rate, and the flows that have arrived. */
#include <math.h>
#include <stdio.h>

#include "cli/lib/bench/bench_plot.h"
#include "cli/rdma/simulate/simulate.h"

/* clang-format off */
static const char style[] =
	"  path { stroke-width: 1.4; }\n"
	"  path.second { stroke-width: 1.2; stroke-dasharray: 5 3; }\n"
	"  path.r0 { stroke: #0550ae; }\n"
	"  path.r1 { stroke: #bc4c00; }\n"
	"  path.r2 { stroke: #1a7f37; }\n"
	"  path.r3 { stroke: #8250df; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    path.r0 { stroke: #79c0ff; }\n"
	"    path.r1 { stroke: #ffa657; }\n"
	"    path.r2 { stroke: #7ee787; }\n"
	"    path.r3 { stroke: #d2a8ff; }\n"
	"  }\n";
/* clang-format on */

enum panel { QUEUE, RATE, DONE, N_PANELS };

static const char *const titles[N_PANELS] = { "longest queue, KB", "rate, Gbit/s", "flows that have arrived, %" };

struct plot {
	const struct sim_result *r;
	struct out *o;
	double most_us, most[N_PANELS];
};

/* The value of a curve at sample i; the second curve of the rate is that of the victim, or of the slowest flow. */
static double value_of(const struct sim_run *run, unsigned i, enum panel panel, bool second)
{
	const struct sim_sample *s = &run->sample[i];
	const uint64_t before = !i ? 0 : second ? s[-1].second : s[-1].bytes, ns = s->ns - (i ? s[-1].ns : 0);

	if (panel == QUEUE)
		return (double)s->queue_bytes / 1e3;
	if (panel == DONE)
		return 100.0 * s->n_done / run->n_flows;
	return ns ? (double)((second ? s->second : s->bytes) - before) * 8 / (double)ns : 0;
}

static bool has_second(const struct sim_run *run)
{
	return run->victim_alone_ns || run->jain > 0;
}

static void find_ranges(struct plot *p)
{
	for (const struct sim_run *run = p->r->run; run < p->r->run + p->r->n_runs; run++)
		for (unsigned i = 0; i < run->n_samples; i++) {
			p->most_us = fmax(p->most_us, (double)run->sample[i].ns / 1e3);
			for (int k = 0; k < N_PANELS; k++)
				p->most[k] = fmax(p->most[k], value_of(run, i, (enum panel)k, false));
			if (has_second(run))
				p->most[RATE] = fmax(p->most[RATE], value_of(run, i, RATE, true));
		}
	for (int k = 0; k < N_PANELS; k++)
		p->most[k] = p->most[k] > 0 ? p->most[k] * 1.05 : 1;
}

static double x_of(const struct plot *p, const struct plot_panel *frame, double us)
{
	return frame->x + us / p->most_us * frame->width;
}

static double y_of(const struct plot *p, const struct plot_panel *frame, enum panel panel, double value)
{
	return frame->y + frame->height * (1 - value / p->most[panel]);
}

static void add_panel(const struct plot *p, enum panel panel)
{
	const struct plot_panel frame = plot_panel((int)panel);
	const double step_x = plot_step(p->most_us, 6), step_y = plot_step(p->most[panel], 8);
	char label[32];

	plot_add_box(p->o, &frame, titles[panel]);
	for (double y = 0; y <= p->most[panel]; y += step_y) {
		(void)snprintf(label, sizeof label, "%g", y);
		plot_add_level(p->o, &frame, y_of(p, &frame, panel, y), label);
	}
	for (double x = 0; x <= p->most_us; x += step_x) {
		(void)snprintf(label, sizeof label, "%g", x);
		plot_add_tick(p->o, &frame, x_of(p, &frame, x), label);
	}
	plot_add_x_title(p->o, frame.x + frame.width / 2, frame.y + frame.height, "time, us");
}

static void add_curve(const struct plot *p, unsigned run_index, enum panel panel, bool second)
{
	static const char *const css[SIM_MOST_RUNS] = { "r0", "r1", "r2", "r3" };
	const struct sim_run *run = &p->r->run[run_index];
	const struct plot_panel frame = plot_panel((int)panel);
	struct plot_line line = { p->o, css[run_index], second ? " second" : "", "M", false };

	for (unsigned i = 0; i < run->n_samples; i++)
		plot_line_add(&line, x_of(p, &frame, (double)run->sample[i].ns / 1e3),
			      y_of(p, &frame, panel, value_of(run, i, panel, second)));
	plot_line_end(&line, NULL);
}

static void add_legend(const struct plot *p)
{
	const struct sim_run *first = p->r->run;
	int x = PLOT_LEFT;
	char name[64], value[24], css[16];

	for (unsigned i = 0; i < p->r->n_runs; i++, x += 190) {
		(void)snprintf(css, sizeof css, "r%u", i);
		(void)snprintf(name, sizeof name, "%s %s", sim_opts[p->r->q->scenario->varies].name,
			       sim_value_text(p->r->q->scenario->varies, p->r->run[i].varied, value));
		plot_add_key(p->o, x, PLOT_LEGEND_Y, css, "");
		plot_add_name(p->o, x + 37, PLOT_LEGEND_Y, name);
	}
	if (has_second(first)) {
		plot_add_key(p->o, x, PLOT_LEGEND_Y, "r0", " second");
		plot_add_name(p->o, x + 37, PLOT_LEGEND_Y, first->victim_alone_ns ? "the victim" : "the slowest flow");
	}
}

void sim_svg(const struct sim_result *r, struct out *o)
{
	const int n_panels = r->run->jain > 0 ? DONE : N_PANELS;
	struct plot p = { .r = r, .o = o };

	find_ranges(&p);
	plot_begin(o, plot_width(n_panels), PLOT_FILE_HEIGHT, "gpuload rdma simulate ", r->q->scenario->name, style);
	add_legend(&p);
	for (int panel = 0; panel < n_panels; panel++) {
		add_panel(&p, (enum panel)panel);
		for (unsigned i = 0; i < r->n_runs; i++) {
			add_curve(&p, i, (enum panel)panel, false);
			if (panel == RATE && has_second(&r->run[i]))
				add_curve(&p, i, RATE, true);
		}
	}
	out_text(o, "</svg>\n");
}
