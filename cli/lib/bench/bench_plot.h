/* bench_plot.h — a plot as SVG: panels side by side, sizes in bytes on the x axis, values on the y axis, both logarithmic.
 *
 *     PLOT_LEFT  PLOT_PANEL        PLOT_GAP  PLOT_PANEL         PLOT_RIGHT
 *               ┌────────────────┐          ┌────────────────┐
 *               │ panel 0        │          │ panel 1        │  PLOT_HEIGHT, PLOT_TOP pixels from the top
 *               └────────────────┘          └────────────────┘
 *                8   1K   64K  1M            8   1K   64K  1M   PLOT_BELOW
 *
 *     plot_begin(o, plot_width(2), PLOT_FILE_HEIGHT, "gpuload comm: ", title, style);
 *     struct plot_panel p = plot_panel(0);
 *     plot_note(&p, bytes, value);   for each point, so that the axes contain it
 *     plot_add_frame(o, &p, "time of a call, us", "bytes", sizes, n_sizes);
 *     struct plot_line line = { o, "line", "", "M", false };
 *     plot_line_add(&line, plot_x(&p, bytes), plot_y(&p, value));   for each point of a curve
 *     plot_line_end(&line, NULL);
 *     out_text(o, "</svg>\n");
 *
 * A plot with another layout sets the position and the size of its panels, and calls the functions that add one part of a frame. */
#ifndef GPULOAD_CLI_LIB_BENCH_BENCH_PLOT_H
#define GPULOAD_CLI_LIB_BENCH_BENCH_PLOT_H

#include "cli/lib/out.h"

/* clang-format off */
enum {
	PLOT_LEFT = 74, PLOT_PANEL = 380, PLOT_GAP = 70, PLOT_RIGHT = 24, PLOT_TOP = 112, PLOT_HEIGHT = 260, PLOT_INSIDE = 18,
	PLOT_LEGEND_Y = 62, PLOT_BELOW = 60, PLOT_FILE_HEIGHT = PLOT_TOP + PLOT_HEIGHT + PLOT_BELOW,
};
/* clang-format on */

struct plot_panel {
	int x, y, width, height; /* position and size of the frame, in pixels */
	double bytes_log[2];     /* log2 of the smallest and the largest size */
	double least, most;      /* smallest and largest value; 0: no value yet */
};

/* Return panel number i of several panels side by side, without points.  The caller may change its position and size. */
struct plot_panel plot_panel(int i);
/* Return the width of a file with n panels. */
int plot_width(int n);

/* Extend the axes so that a point fits; a value that is not positive extends the x axis only. */
void plot_note(struct plot_panel *p, uint64_t bytes, double value);

/* Return the position of a size or of a value, in pixels; call it after plot_note() of all points. */
double plot_x(const struct plot_panel *p, uint64_t bytes);
double plot_y(const struct plot_panel *p, double value);

/* Append the start of a file with a headline: the command, and the title of the file, which may contain any characters. */
void plot_begin(struct out *o, int width, int height, const char *command, const char *title, const char *style);

/* Append the frame with its titles, a line for each power of 10, and the sizes below it.  The sizes are in ascending order; a size
 * that is too close to the previous one is left out. */
void plot_add_frame(struct out *o, const struct plot_panel *p, const char *title, const char *x_title, const uint64_t *sizes,
		    unsigned n_sizes);

/* The following functions append a part of a frame: the box with its title above; a line at y with a label (NULL: none); a line for
 * each power of 10, with or without labels; a label below the frame at x; the title of the x axis. */
void plot_add_box(struct out *o, const struct plot_panel *p, const char *title);
void plot_add_level(struct out *o, const struct plot_panel *p, double y, const char *label);
void plot_add_decades(struct out *o, const struct plot_panel *p, bool labels);
void plot_add_tick(struct out *o, const struct plot_panel *p, double x, const char *label);
void plot_add_x_title(struct out *o, int middle_x, int bottom_y, const char *title);

/* The following functions append a part of a legend's entry at x, y: a line of 30 pixels, and a name. */
void plot_add_key(struct out *o, int x, int y, const char *css, const char *more_css);
void plot_add_name(struct out *o, int x, int y, const char *name);

/* A line through points; if there are none, nothing is appended. */
struct plot_line {
	struct out *o;
	const char *css, *more_css; /* CSS classes of the line; more_css begins with a blank, or is empty */
	const char *move;           /* the SVG command that starts the line: "M" or "M " */
	bool begun;
};
void plot_line_add(struct plot_line *l, double x, double y);
void plot_line_end(const struct plot_line *l, const char *title); /* title is NULL if there is none */

/* Return the distance between about n ticks on a linear axis: 1, 2 or 5 times a power of 10. */
double plot_step(double range, int n);

/* Append a size as options accept it: 256, 64K, 1M. */
void plot_add_size(struct out *o, uint64_t bytes);

/* svg.c writes the start of each SVG file: its size, its title, and the styles that all plots have.
 *
 * Classes of text: head, panel, soft, tick; of rect: paper (the background), frame; of path: grid.  A path is a line of 2 pixels
 * without a fill.  Colours are plain, because not every viewer supports CSS custom properties; a media query selects dark ones. */

/* Append the start of an SVG file of width x height pixels, with its background; the caller appends "</svg>\n" at the end.  style:
 * further CSS rules, with line ends.  The title may contain any characters. */
void svg_begin(struct out *o, int width, int height, const char *title, const char *style);

/* Append a name, with '?' for characters that are special in XML or not printable ASCII. */
void svg_name(struct out *o, const char *name);

#endif
