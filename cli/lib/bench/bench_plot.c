/* bench_plot.c — draws the axes, frames, lines and legend of a plot as SVG. */
#include "cli/lib/bench/bench_plot.h"

#include <math.h>
#include <stdio.h>

enum { TICK_DISTANCE = 34 };

struct plot_panel plot_panel(int i)
{
	return (struct plot_panel){ .x = PLOT_LEFT + i * (PLOT_PANEL + PLOT_GAP),
				    .y = PLOT_TOP,
				    .width = PLOT_PANEL,
				    .height = PLOT_HEIGHT,
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

/* Find log10 of the values at the bottom and at the top of the y axis. */
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
	return p->y + p->height * (1 - (log10(value) - decade[0]) / (decade[1] - decade[0]));
}

double plot_step(double range, int n)
{
	const double raw = range / n, power = pow(10, floor(log10(raw)));

	return (raw <= power ? 1 : raw <= 2 * power ? 2 : raw <= 5 * power ? 5 : 10) * power;
}

/* ---- frames ------------------------------------------------------------------------------------------------------- */

void plot_begin(struct out *o, int width, int height, const char *command, const char *title, const char *style)
{
	svg_begin(o, width, height, title, style);
	out_add(o, "<text class=\"head\" x=\"%d\" y=\"34\">%s", PLOT_LEFT, command);
	svg_name(o, title);
	out_text(o, "</text>\n");
}

void plot_add_box(struct out *o, const struct plot_panel *p, const char *title)
{
	out_add(o, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", p->x, p->y, p->width, p->height);
	out_add(o, "<text class=\"panel\" x=\"%d\" y=\"%d\">%s</text>\n", p->x, p->y - 8, title);
}

void plot_add_level(struct out *o, const struct plot_panel *p, double y, const char *label)
{
	out_add(o, "<path class=\"grid\" d=\"M%d %.1f h%d\"/>\n", p->x, y, p->width);
	if (label)
		out_add(o, "<text class=\"soft\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n", p->x - 8, y + 4, label);
}

void plot_add_decades(struct out *o, const struct plot_panel *p, bool labels)
{
	char label[64];
	int decade[2];

	find_decades(p, decade);
	for (int d = decade[0]; d <= decade[1]; d++) {
		(void)snprintf(label, sizeof label, "%.*f", d < 0 ? -d : 0, pow(10, d));
		plot_add_level(o, p, plot_y(p, pow(10, d)), labels ? label : NULL);
	}
}

void plot_add_tick(struct out *o, const struct plot_panel *p, double x, const char *label)
{
	out_add(o, "<text class=\"soft tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%s</text>\n", x, p->y + p->height + 17, label);
}

void plot_add_x_title(struct out *o, int middle_x, int bottom_y, const char *title)
{
	out_add(o, "<text class=\"soft\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">%s</text>\n", middle_x, bottom_y + 40, title);
}

/* Format a size as options accept it, such as 64K. */
static const char *size_text(uint64_t bytes, char buf[24])
{
	static const char *const units[] = { "", "K", "M", "G", "T" };
	int unit = 0;

	for (; bytes >= 1024 && bytes % 1024 == 0 && unit < 4; unit++)
		bytes /= 1024;
	(void)snprintf(buf, 24, "%llu%s", (unsigned long long)bytes, units[unit]);
	return buf;
}

void plot_add_size(struct out *o, uint64_t bytes)
{
	char text[24];

	out_text(o, size_text(bytes, text));
}

void plot_add_frame(struct out *o, const struct plot_panel *p, const char *title, const char *x_title, const uint64_t *sizes,
		    unsigned n_sizes)
{
	double last = -INFINITY;
	char text[24];

	plot_add_box(o, p, title);
	plot_add_decades(o, p, true);
	for (unsigned i = 0; i < n_sizes; i++) {
		const double at = plot_x(p, sizes[i]);

		if (fabs(at - last) < TICK_DISTANCE)
			continue;
		plot_add_tick(o, p, at, size_text(sizes[i], text));
		last = at;
	}
	plot_add_x_title(o, p->x + p->width / 2, p->y + p->height, x_title);
}

/* ---- the legend and the lines --------------------------------------------------------------------------------------- */

void plot_add_key(struct out *o, int x, int y, const char *css, const char *more_css)
{
	out_add(o, "<path class=\"%s%s\" d=\"M%d %d h30\"/>\n", css, more_css, x, y);
}

void plot_add_name(struct out *o, int x, int y, const char *name)
{
	out_add(o, "<text x=\"%d\" y=\"%d\">%s</text>\n", x, y + 4, name);
}

void plot_line_add(struct plot_line *l, double x, double y)
{
	if (!l->begun)
		out_add(l->o, "<path class=\"%s%s\" d=\"%s", l->css, l->more_css, l->move);
	out_add(l->o, "%s%.1f %.1f", l->begun ? " " : "", x, y);
	l->begun = true;
}

void plot_line_end(const struct plot_line *l, const char *title)
{
	if (l->begun && title)
		out_add(l->o, "\"><title>%s</title></path>\n", title);
	else if (l->begun)
		out_text(l->o, "\"/>\n");
}
