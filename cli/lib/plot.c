/* plot.c — the frame of a plot as SVG. */
#include "cli/lib/plot.h"

#include <math.h>

enum { TICK_DISTANCE = 34 };

struct plot_panel plot_panel(int i)
{
	return (struct plot_panel){ .x = PLOT_LEFT + i * (PLOT_PANEL + PLOT_GAP), .width = PLOT_PANEL,
				    .bytes_log = { INFINITY, -INFINITY } };
}

int plot_width(int n)
{
	return plot_panel(n - 1).x + PLOT_PANEL + PLOT_RIGHT;
}

static double log_of(uint64_t bytes)
{
	return log2(bytes ? (double)bytes : 0.5);
}

void plot_note(struct plot_panel *p, uint64_t bytes, double value)
{
	p->bytes_log[0] = fmin(p->bytes_log[0], log_of(bytes));
	p->bytes_log[1] = fmax(p->bytes_log[1], log_of(bytes));
	if (value <= 0)
		return;
	p->least = p->least > 0 ? fmin(p->least, value) : value;
	p->most = fmax(p->most, value);
}

/* log10 of the values at the bottom and at the top. */
static void find_decades(const struct plot_panel *p, int out[2])
{
	out[0] = p->most > 0 ? (int)floor(log10(p->least)) : 0;
	out[1] = p->most > 0 ? (int)ceil(log10(p->most)) : 1;
	if (out[1] == out[0])
		out[1]++;
}

double plot_x(const struct plot_panel *p, uint64_t bytes)
{
	const double range = p->bytes_log[1] - p->bytes_log[0];
	const double part = range > 0 ? (log_of(bytes) - p->bytes_log[0]) / range : 0.5;

	return p->x + PLOT_INSIDE + part * (p->width - 2 * PLOT_INSIDE);
}

double plot_y(const struct plot_panel *p, double value)
{
	int decade[2];

	find_decades(p, decade);
	return PLOT_TOP + PLOT_HEIGHT * (1 - (log10(value) - decade[0]) / (decade[1] - decade[0]));
}

void plot_add_size(struct out *o, uint64_t bytes)
{
	static const char units[] = "KMGT";
	int unit = -1;

	while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
		bytes /= 1024;
		unit++;
	}
	out_u64(o, bytes);
	out_bytes(o, &units[unit < 0 ? 0 : unit], unit >= 0);
}

void plot_add_frame(struct out *o, const struct plot_panel *p, const char *title, const char *x_title, const uint64_t *sizes, unsigned n_sizes)
{
	double last = -INFINITY;
	int decade[2];

	out_add(o, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", p->x, PLOT_TOP, p->width, PLOT_HEIGHT);
	out_add(o, "<text class=\"panel\" x=\"%d\" y=\"%d\">%s</text>\n", p->x, PLOT_TOP - 8, title);
	find_decades(p, decade);
	for (int d = decade[0]; d <= decade[1]; d++) {
		const double at = plot_y(p, pow(10, d));

		out_add(o, "<path class=\"grid\" d=\"M%d %.1f h%d\"/>\n", p->x, at, p->width);
		out_add(o, "<text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.*f</text>\n", p->x - 8, at + 4, d < 0 ? -d : 0,
			pow(10, d));
	}
	for (unsigned i = 0; i < n_sizes; i++) {
		const double at = plot_x(p, sizes[i]);

		if (fabs(at - last) < TICK_DISTANCE)
			continue;
		out_add(o, "<text class=\"soft tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">", at, PLOT_TOP + PLOT_HEIGHT + 17);
		plot_add_size(o, sizes[i]);
		out_text(o, "</text>\n");
		last = at;
	}
	out_add(o, "<text class=\"soft\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", p->x + p->width / 2,
		PLOT_TOP + PLOT_HEIGHT + 40, x_title);
}
