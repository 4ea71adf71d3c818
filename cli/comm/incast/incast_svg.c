/* incast_svg.c — draws the depth of the queue over time, both modes in one picture.
 *
 *     LEFT  PANEL                            PLOT_RIGHT
 *          ┌────────────────────────────────┐
 *          │ queue, KiB                     │   x: ms since the first message; both axes are linear.
 *          └────────────────────────────────┘   The dashed lines: room of the queue, window of the receiver */
#include <math.h>
#include <stdio.h>

#include "cli/comm/incast/incast.h"
#include "cli/lib/bench/bench_plot.h"

enum { LEFT = PLOT_LEFT, PANEL = 760, TOP = PLOT_TOP, HEIGHT = 300, COLUMNS = PANEL };

/* clang-format off */
static const char style[] =
	"  path.sender { stroke: #bc4c00; stroke-width: 1.3; }\n"
	"  path.receiver { stroke: #0550ae; stroke-width: 1.3; }\n"
	"  path.limit { stroke: #8c959f; stroke-width: 1.3; stroke-dasharray: 6 4; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    path.sender { stroke: #ffa657; }\n"
	"    path.receiver { stroke: #79c0ff; }\n"
	"  }\n";
/* clang-format on */

struct plot {
	const struct incast_result *r;
	struct out *o;
	double most_ms, most_kib;
};

static double limit_kib(const struct incast_result *r)
{
	return r->private_network ? (double)r->q.queue_bytes / 1024 : 0;
}

static void find_ranges(struct plot *p)
{
	p->most_ms = 1;
	p->most_kib = fmax(1, limit_kib(p->r));
	for (int m = 0; m < INCAST_N_MODES; m++) {
		const struct incast_figures *f = &p->r->figures[m];

		p->most_ms = fmax(p->most_ms, (double)f->ns / 1e6);
		p->most_kib = fmax(p->most_kib, (double)f->queue_most / 1024);
	}
	p->most_kib *= 1.05;
}

static double x_of(const struct plot *p, double ms)
{
	return LEFT + ms / p->most_ms * PANEL;
}

static double y_of(const struct plot *p, double kib)
{
	return TOP + HEIGHT * (1 - kib / p->most_kib);
}

static void add_frame(const struct plot *p)
{
	const struct plot_panel panel = { .x = LEFT, .y = TOP, .width = PANEL, .height = HEIGHT };
	const double x_step = plot_step(p->most_ms, 8), y_step = plot_step(p->most_kib, 6);
	char label[32];

	plot_add_box(p->o, &panel,
		     p->r->private_network ? "queue in front of the receiver, KiB" : "bytes between the senders and the receiver, KiB");
	for (int i = 0; i * y_step <= p->most_kib; i++) {
		(void)snprintf(label, sizeof label, "%g", i * y_step);
		plot_add_level(p->o, &panel, y_of(p, i * y_step), label);
	}
	for (int i = 0; i * x_step <= p->most_ms; i++) {
		(void)snprintf(label, sizeof label, "%g", i * x_step);
		plot_add_tick(p->o, &panel, x_of(p, i * x_step), label);
	}
	plot_add_x_title(p->o, LEFT + PANEL / 2, TOP + HEIGHT, "ms since the first message");
}

static void add_limit(const struct plot *p, double kib, const char *name)
{
	if (kib <= 0 || kib > p->most_kib)
		return;
	out_add(p->o, "<path class=\"limit\" d=\"M%d %.1f h%d\"><title>%s: %.1f KiB</title></path>\n", LEFT, y_of(p, kib), PANEL, name,
		kib);
	out_add(p->o, "<text class=\"soft tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT + PANEL - 6, y_of(p, kib) - 4,
		name);
}

/* Draw a line through the samples.  If several samples are in one pixel column, use the largest. */
static void add_curve(const struct plot *p, int mode)
{
	const struct incast_figures *f = &p->r->figures[mode];
	double deepest[COLUMNS];
	const char *before = "M";

	if (!f->measured)
		return;
	for (int i = 0; i < COLUMNS; i++)
		deepest[i] = -1;
	for (size_t i = 0; i < f->n_samples; i++) {
		const int at = (int)((double)f->samples[i].ns / 1e6 / p->most_ms * COLUMNS);

		if (at < COLUMNS)
			deepest[at] = fmax(deepest[at], (double)f->samples[i].bytes / 1024);
	}
	out_add(p->o, "<path class=\"%s\" d=\"", incast_mode_names[mode]);
	for (int i = 0; i < COLUMNS; i++) {
		if (deepest[i] < 0)
			continue;
		out_add(p->o, "%s%d %.1f", before, LEFT + i, y_of(p, deepest[i]));
		before = " ";
	}
	out_add(p->o, "\"><title>%s-driven: mean %.1f KiB, at most %.1f KiB</title></path>\n", incast_mode_names[mode],
		(double)f->queue_mean / 1024, (double)f->queue_most / 1024);
}

static void add_legend(const struct plot *p)
{
	char name[128];
	int x = LEFT;

	for (int m = 0; m < INCAST_N_MODES; m++) {
		const struct incast_figures *f = &p->r->figures[m];

		if (!f->measured)
			continue;
		(void)snprintf(name, sizeof name, "%s-driven: %.3g GB/s, probe p99 %.2g ms", incast_mode_names[m],
			       f->ns ? (double)f->bytes / (double)f->ns : 0, (double)f->probe.p99_ns / 1e6);
		plot_add_key(p->o, x, PLOT_LEGEND_Y, incast_mode_names[m], "");
		plot_add_name(p->o, x + 37, PLOT_LEGEND_Y, name);
		x += 380;
	}
}

void incast_svg(const struct incast_result *r, struct out *o)
{
	struct plot p = { .r = r, .o = o };
	char title[160];
	int n;

	find_ranges(&p);
	n = snprintf(title, sizeof title, "%d senders, one receiver", r->n_ranks - 1);
	if (r->private_network)
		(void)snprintf(title + n, sizeof title - (size_t)n, ", %.4g Gbit/s", (double)r->q.rate_bits / 1e9);
	plot_begin(o, LEFT + PANEL + PLOT_RIGHT, TOP + HEIGHT + PLOT_BELOW, "gpuload comm incast: ", title, style);
	add_legend(&p);
	add_frame(&p);
	add_limit(&p, limit_kib(r), "room of the queue");
	if (r->q.modes[INCAST_RECEIVER])
		add_limit(&p, (double)r->window_bytes / 1024, "window of the receiver");
	for (int m = 0; m < INCAST_N_MODES; m++)
		add_curve(&p, m);
	out_text(o, "</svg>\n");
}
