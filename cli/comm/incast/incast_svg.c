/* incast_svg.c — the depth of the queue over time, both modes in one picture.
 *
 *     LEFT  PANEL                            RIGHT
 *          ┌────────────────────────────────┐
 *          │ queue, KiB                     │   x: ms since the first message; both axes are linear.
 *          └────────────────────────────────┘   The dashed lines: room of the queue, window of the receiver */
#include <math.h>
#include <stdio.h>

#include "cli/comm/incast/incast.h"
#include "cli/lib/svg.h"

enum { LEFT = 74, PANEL = 760, RIGHT = 24, TOP = 112, HEIGHT = 300, LEGEND_Y = 62, BELOW = 60, COLUMNS = PANEL };

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

/* A round number that divides a range into about n steps: 1, 2 or 5 times a power of 10. */
static double step_of(double range, int n)
{
	const double raw = range / n, power = pow(10, floor(log10(raw)));

	return (raw <= power ? 1 : raw <= 2 * power ? 2 : raw <= 5 * power ? 5 : 10) * power;
}

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
	const double x_step = step_of(p->most_ms, 8), y_step = step_of(p->most_kib, 6);

	out_add(p->o, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT, TOP, PANEL, HEIGHT);
	out_add(p->o, "<text class=\"panel\" x=\"%d\" y=\"%d\">%s, KiB</text>\n", LEFT, TOP - 8,
		p->r->private_network ? "queue in front of the receiver" : "bytes between the senders and the receiver");
	for (int i = 0; i * y_step <= p->most_kib; i++) {
		out_add(p->o, "<path class=\"grid\" d=\"M%d %.1f h%d\"/>\n", LEFT, y_of(p, i * y_step), PANEL);
		out_add(p->o, "<text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%g</text>\n", LEFT - 8, y_of(p, i * y_step) + 4,
			i * y_step);
	}
	for (int i = 0; i * x_step <= p->most_ms; i++)
		out_add(p->o, "<text class=\"soft tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%g</text>\n", x_of(p, i * x_step),
			TOP + HEIGHT + 17, i * x_step);
	out_add(p->o, "<text class=\"soft\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">ms since the first message</text>\n", LEFT + PANEL / 2,
		TOP + HEIGHT + 40);
}

static void add_limit(const struct plot *p, double kib, const char *name)
{
	if (kib <= 0 || kib > p->most_kib)
		return;
	out_add(p->o, "<path class=\"limit\" d=\"M%d %.1f h%d\"><title>%s: %.1f KiB</title></path>\n", LEFT, y_of(p, kib), PANEL, name, kib);
	out_add(p->o, "<text class=\"soft tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT + PANEL - 6, y_of(p, kib) - 4, name);
}

/* A line through the samples; of several that fall into one pixel column, the deepest. */
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
	int x = LEFT;

	for (int m = 0; m < INCAST_N_MODES; m++) {
		const struct incast_figures *f = &p->r->figures[m];

		if (!f->measured)
			continue;
		out_add(p->o, "<path class=\"%s\" d=\"M%d %d h30\"/>\n", incast_mode_names[m], x, LEGEND_Y);
		out_add(p->o, "<text x=\"%d\" y=\"%d\">%s-driven: %.3g GB/s, probe p99 %.2g ms</text>\n", x + 37, LEGEND_Y + 4,
			incast_mode_names[m], f->ns ? (double)f->bytes / (double)f->ns : 0, (double)f->probe.p99_ns / 1e6);
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
	svg_begin(o, LEFT + PANEL + RIGHT, TOP + HEIGHT + BELOW, title, style);
	out_add(o, "<text class=\"head\" x=\"%d\" y=\"34\">gpuload comm incast: ", LEFT);
	svg_name(o, title);
	out_text(o, "</text>\n");
	add_legend(&p);
	add_frame(&p);
	add_limit(&p, limit_kib(r), "room of the queue");
	if (r->q.modes[INCAST_RECEIVER])
		add_limit(&p, (double)r->window_bytes / 1024, "window of the receiver");
	for (int m = 0; m < INCAST_N_MODES; m++)
		add_curve(&p, m);
	out_text(o, "</svg>\n");
}
