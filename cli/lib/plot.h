/* plot.h — the frame of a plot as SVG: panels side by side, sizes in bytes on the x axis, values on the y axis, both logarithmic.
 *
 *     PLOT_LEFT  PLOT_PANEL        PLOT_GAP  PLOT_PANEL         PLOT_RIGHT
 *               ┌────────────────┐          ┌────────────────┐
 *               │ panel 0        │          │ panel 1        │  PLOT_HEIGHT, PLOT_TOP pixels from the top
 *               └────────────────┘          └────────────────┘
 *                8   1K   64K  1M            8   1K   64K  1M   PLOT_BELOW
 *
 *     svg_begin(o, plot_width(2), PLOT_FILE_HEIGHT, title, style);
 *     struct plot_panel p = plot_panel(0);
 *     plot_note(&p, bytes, value);   for each point, so that the axes contain it
 *     plot_add_frame(o, &p, "time of a call, us", "bytes", sizes, n_sizes);
 *     ... curves, at plot_x() and plot_y() ... */
#ifndef GPULOAD_CLI_LIB_PLOT_H
#define GPULOAD_CLI_LIB_PLOT_H

#include "cli/lib/svg.h"

enum {
	PLOT_LEFT = 74, PLOT_PANEL = 380, PLOT_GAP = 70, PLOT_RIGHT = 24, PLOT_TOP = 112, PLOT_HEIGHT = 260, PLOT_INSIDE = 18,
	PLOT_LEGEND_Y = 62, PLOT_BELOW = 60, PLOT_FILE_HEIGHT = PLOT_TOP + PLOT_HEIGHT + PLOT_BELOW,
};

struct plot_panel {
	int x, width;                 /* coordinates of the frame, in pixels */
	double bytes_log[2];          /* log2 of the smallest and the largest size */
	double least, most;           /* values; 0: none yet */
};

/* Panel number i of several, without points.  Its width may be changed. */
struct plot_panel plot_panel(int i);
/* The width of a file with n panels. */
int plot_width(int n);

/* Extend the axes so that a point fits; a value that is not positive extends the x axis only. */
void plot_note(struct plot_panel *p, uint64_t bytes, double value);

/* The place of a size or of a value, in pixels; after all points are noted. */
double plot_x(const struct plot_panel *p, uint64_t bytes);
double plot_y(const struct plot_panel *p, double value);

/* Append the frame with its titles, a line for each power of 10, and the sizes below it, in
 * ascending order; a size that is too close to the previous one is left out. */
void plot_add_frame(struct out *o, const struct plot_panel *p, const char *title, const char *x_title, const uint64_t *sizes, unsigned n_sizes);

/* Append a size as options take it: 256, 64K, 1M. */
void plot_add_size(struct out *o, uint64_t bytes);

#endif
