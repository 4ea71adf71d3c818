/* svg.h — the start of a plot as an SVG file: its size, its title, and the styles that all plots have.
 *
 * Classes of text: head, panel, soft, tick; of rect: paper (the background), frame; of path: grid.  A path is a line of 2 pixels
 * without a fill.  Colours are plain, because not every viewer supports CSS custom properties; a media query selects dark ones. */
#ifndef GPULOAD_CLI_LIB_BENCH_SVG_H
#define GPULOAD_CLI_LIB_BENCH_SVG_H

#include "cli/lib/out.h"

/* Append the start of a file of this size, with its background; the caller appends "</svg>\n"
 * at the end.  style: further rules, with line ends; the title may contain any characters. */
void svg_begin(struct out *o, int width, int height, const char *title, const char *style);

/* Append a name, with '?' for characters that are special in XML or not printable ASCII. */
void svg_name(struct out *o, const char *name);

#endif
