/* map_svg.c — draws the picture of gpuload map as an SVG file.
 *
 *      MARGIN  BOX      GAP  BAND  GAP  BOX     MARGIN
 *             ┌───────┐     ┌────┐     ┌───────┐
 *             │ owner │────>│    │<────│ peer  │     two processes per row of ROW pixels
 *             └───────┘     │    │     └───────┘     */
#include <stdio.h>
#include <string.h>

#include "cli/share/map.h"

enum { MARGIN = 20, BOX = 290, GAP = 60, BAND = 190, ROW = 170, BOX_HEIGHT = 150, TOP = 60, LINE = 18, PAD = 12 };
enum { LEFT_X = MARGIN, BAND_X = LEFT_X + BOX + GAP, RIGHT_X = BAND_X + BAND + GAP, WIDTH = RIGHT_X + BOX + MARGIN };
enum { CONTROL_HEIGHT = 34 };

/* The colours are plain, because not every viewer supports CSS custom properties; a media query selects dark colours. */
/* clang-format off */
static const char style[] =
	"<style>\n"
	"  text { font: 13px ui-monospace, Menlo, Consolas, monospace; white-space: pre; }\n"
	"  text { fill: #1f2328; }\n"
	"  .head { font-weight: bold; }\n"
	"  .paper { fill: #ffffff; }\n"
	"  .box { fill: #f6f8fa; stroke: #8c959f; }\n"
	"  .band { fill: #ddf4ff; stroke: #8c959f; }\n"
	"  .control { fill: #fff8c5; stroke: #8c959f; }\n"
	"  text.soft { fill: #59636e; }\n"
	"  text.cpu { fill: #0550ae; }\n"
	"  text.gpu { fill: #116329; }\n"
	"  path { fill: none; stroke-width: 1.5; }\n"
	"  path.cpu { stroke: #0550ae; }\n"
	"  path.gpu { stroke: #116329; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    text { fill: #e6edf3; }\n"
	"    .paper { fill: #0d1117; }\n"
	"    .box { fill: #161b22; stroke: #6e7681; }\n"
	"    .band { fill: #0c2d4d; stroke: #6e7681; }\n"
	"    .control { fill: #3b2e00; stroke: #6e7681; }\n"
	"    text.soft { fill: #9198a1; }\n"
	"    text.cpu { fill: #79c0ff; }\n"
	"    text.gpu { fill: #56d364; }\n"
	"    path.cpu { stroke: #79c0ff; }\n"
	"    path.gpu { stroke: #56d364; }\n"
	"  }\n"
	"</style>\n";
/* clang-format on */

/* Append text with the special characters of XML escaped.  Bytes that are not ASCII are replaced, because they may be invalid UTF-8. */
static void add_escaped(struct out *o, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			out_text(o, "&lt;");
		else if (*text == '&')
			out_text(o, "&amp;");
		else
			out_bytes(o, *text < ' ' || *text > '~' ? "?" : text, 1);
	}
}

static void add_text(struct out *o, const char *class, int x, int y, const char *text)
{
	if (!*text)
		return;
	out_add(o, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
	add_escaped(o, text);
	out_text(o, "</text>\n");
}

static void add_rect(struct out *o, const char *class, int x, int y, int width, int height)
{
	out_add(o, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", class, x, y, width, height);
}

/* Draw an arrow from an address of a process to the band that represents the memory.  The tip is a path, because an SVG marker cannot
 * inherit the line's colour. */
static void add_arrow(struct out *o, const char *class, bool from_left, int y)
{
	int from = from_left ? LEFT_X + BOX : RIGHT_X, to = from_left ? BAND_X : BAND_X + BAND, back = from_left ? -7 : 7;

	out_add(o, "<path class=\"%s\" d=\"M%d %d H%d m%d -5 L%d %d l%d 5\"/>\n", class, from, y, to, back, to, y, back);
}

static void draw_process(struct out *o, const struct map_process *p, size_t i)
{
	bool left = i % 2 == 0;
	int x = left ? LEFT_X : RIGHT_X, y = TOP + (int)(i / 2) * ROW, text_x = x + PAD;
	char role[2 * MAP_TEXT_BYTES];

	out_text(o, "<g>\n");
	add_rect(o, "box", x, y, BOX, BOX_HEIGHT);
	add_text(o, "head", text_x, y + LINE + 4, p->title);
	snprintf(role, sizeof role, "%s, %s", p->role, p->access);
	add_text(o, "soft", text_x, y + 2 * LINE + 4, role);
	add_text(o, p->has_cpu ? "cpu" : "soft", text_x, y + 3 * LINE + 10, p->cpu[0]);
	add_text(o, "cpu", text_x, y + 4 * LINE + 10, p->cpu[1]);
	add_text(o, p->has_gpu ? "gpu" : "soft", text_x, y + 5 * LINE + 12, p->gpu[0]);
	add_text(o, "gpu", text_x, y + 6 * LINE + 12, p->gpu[1]);
	add_text(o, "soft", text_x, y + 7 * LINE + 16, p->device);
	if (p->has_cpu)
		add_arrow(o, "cpu", left, y + 3 * LINE + 6);
	if (p->has_gpu)
		add_arrow(o, "gpu", left, y + 5 * LINE + 8);
	out_text(o, "</g>\n");
}

static void draw_band(struct out *o, const struct map_picture *p, int height)
{
	int x = BAND_X + PAD, y = TOP + 4;

	add_rect(o, "band", BAND_X, TOP, BAND, height);
	if (p->control) {
		add_rect(o, "control", BAND_X, TOP, BAND, CONTROL_HEIGHT);
		add_text(o, "", x, TOP + LINE + 4, p->band[1]);
		y += CONTROL_HEIGHT;
	}
	add_text(o, "head", x, y + LINE, p->band[2]);
	add_text(o, "", x, y + 2 * LINE, p->band[3]);
	add_text(o, "soft", x, y + 3 * LINE + 8, p->band[0]);
	add_text(o, "soft", x, y + 4 * LINE + 8, p->band[4]);
	add_text(o, "soft", x, y + 5 * LINE + 8, p->band[5]);
}

void map_draw_svg(const struct map_picture *p, struct out *o)
{
	int rows = (int)(p->n + 1) / 2, band = rows * ROW - (ROW - BOX_HEIGHT), height = TOP + band + MARGIN;

	out_add(o,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\">\n",
		WIDTH, height, WIDTH, height);
	out_text(o, "<title>");
	add_escaped(o, p->title);
	out_text(o, "</title>\n");
	out_text(o, style);
	out_add(o, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", WIDTH, height);
	add_text(o, "head", MARGIN, 34, p->title);
	draw_band(o, p, band);
	for (size_t i = 0; i < p->n; i++)
		draw_process(o, &p->process[i], i);
	out_text(o, "</svg>\n");
}
