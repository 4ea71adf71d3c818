/* svg.c — writes the start of an SVG file. */
#include "cli/lib/bench/bench_plot.h"

/* clang-format off */
static const char common_style[] =
	"<style>\n"
	"  text { font: 13px system-ui, sans-serif; fill: #1f2328; }\n"
	"  .head { font-weight: bold; font-size: 15px; }\n"
	"  .panel { font-weight: bold; }\n"
	"  .soft { fill: #59636e; }\n"
	"  .tick { font-size: 11px; }\n"
	"  .paper { fill: #ffffff; }\n"
	"  .frame { fill: #f6f8fa; stroke: #d1d9e0; }\n"
	"  path { fill: none; stroke-width: 2; }\n"
	"  path.grid { stroke: #d1d9e0; stroke-width: 1; }\n"
	"  @media (prefers-color-scheme: dark) {\n"
	"    text { fill: #e6edf3; }\n"
	"    .soft { fill: #9198a1; }\n"
	"    .paper { fill: #0d1117; }\n"
	"    .frame { fill: #161b22; stroke: #3d444d; }\n"
	"    path.grid { stroke: #3d444d; }\n"
	"  }\n";
/* clang-format on */

void svg_name(struct out *o, const char *name)
{
	for (; *name; name++)
		out_bytes(o, *name < ' ' || *name > '~' || *name == '<' || *name == '&' ? "?" : name, 1);
}

void svg_begin(struct out *o, int width, int height, const char *title, const char *style)
{
	out_add(o, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n<title>",
		width, height, width, height);
	svg_name(o, title);
	out_text(o, "</title>\n");
	out_text(o, common_style);
	out_text(o, style);
	out_add(o, "</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
}
