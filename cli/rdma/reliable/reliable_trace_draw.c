/* reliable_trace_draw.c — draws the datagrams of a message: as events for trace viewers, and as SVG.
 *
 *     chunk 10  ├──── path 0, packet 7 ────┤            one row for each chunk, a bar for each datagram: from its sending until it is
 *     chunk 11  ├──── path 0, packet 8 ───────x├─── path 1, packet 4 ──┤     acknowledged, or found lost (x) */
#include <stdio.h>

#include "cli/lib/bench/bench_plot.h"
#include "cli/lib/json/trace_events.h"
#include "cli/rdma/reliable/reliable_trace.h"

enum { LEFT = 90, WIDTH = 900, RIGHT = 24, TOP = 90, BELOW = 60, ROW = 16, LEAST_ROW = 2, MOST_HEIGHT = 4000, LABELLED_ROW = 12 };

/* clang-format off */
static const char style[] =
	"  .acked { fill: #2da44e; }\n"
	"  .lost { fill: #cf222e; }\n"
	"  .unknown { fill: #8c959f; }\n"
	"  .acked, .lost, .unknown { fill-opacity: 0.65; }\n";
/* clang-format on */

static const char *class_of(const struct reliable_datagram *d)
{
	return d->end == GPUL_REL_ACKED ? "acked" : d->end == GPUL_REL_SENT ? "unknown" : "lost";
}

/* When a datagram's bar ends: nothing is known of a copy that was not needed any more, so its bar ends with the message. */
static uint64_t end_of(const struct reliable_trace *t, const struct reliable_datagram *d)
{
	return d->end == GPUL_REL_SENT ? t->ended_ns - t->begun_ns : d->ended_ns;
}

static void name_end(const struct reliable_datagram *d, char *text, size_t n_bytes)
{
	if (d->end == GPUL_REL_LOST)
		snprintf(text, n_bytes, "lost: packet %u has arrived", d->later);
	else
		snprintf(text, n_bytes, "%s",
			 d->end == GPUL_REL_ACKED       ? "acknowledged"
			 : d->end == GPUL_REL_TIMED_OUT ? "given up by a time-out"
							: "not needed any more");
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

void reliable_trace_json(const struct reliable_trace *t, struct json *j)
{
	char text[64];

	json_begin(j, NULL, '{');
	json_text(j, "displayTimeUnit", "ns");
	json_begin(j, "traceEvents", '[');
	snprintf(text, sizeof text, "message %llu, %llu bytes", (unsigned long long)t->message, (unsigned long long)t->bytes);
	trace_name_process(j, 1, text);
	for (unsigned i = 0; i < t->n_datagrams; i++) {
		const struct reliable_datagram *d = &t->datagrams[i];

		if (!d->again) {
			snprintf(text, sizeof text, "chunk %u", d->chunk);
			trace_name_track(j, 1, d->chunk + 1, text);
		}
		snprintf(text, sizeof text, "path %u, packet %u%s", d->path, d->packet, d->again ? ", again" : "");
		trace_begin_slice(j, 1, d->chunk + 1, text, (int64_t)d->sent_ns, (int64_t)end_of(t, d));
		json_begin(j, "args", '{');
		name_end(d, text, sizeof text);
		json_text(j, "end", text);
		json_end(j, '}');
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
}

/* ---- the drawing ---------------------------------------------------------------------------------------------------- */

static double x_of(const struct reliable_trace *t, uint64_t ns)
{
	return LEFT + WIDTH * (double)ns / (double)(t->ended_ns - t->begun_ns + 1);
}

static void add_axis(const struct reliable_trace *t, const struct plot_panel *p, struct out *o)
{
	const double range_us = (double)(t->ended_ns - t->begun_ns) * 1e-3, step = plot_step(range_us, 8);

	plot_add_box(o, p, "one row for each chunk: green until acknowledged, red until found lost");
	for (double us = 0; us <= range_us; us += step) {
		char label[32];

		snprintf(label, sizeof label, "%g", us);
		plot_add_tick(o, p, x_of(t, (uint64_t)(us * 1e3)), label);
	}
	plot_add_x_title(o, LEFT + WIDTH / 2, p->y + p->height, "microseconds since the message was posted");
}

static void add_bar(const struct reliable_trace *t, const struct reliable_datagram *d, int row, struct out *o)
{
	const double x = x_of(t, d->sent_ns), width = x_of(t, end_of(t, d)) - x;
	const int y = TOP + (int)d->chunk * row;
	char end[64];

	name_end(d, end, sizeof end);
	out_add(o,
		"<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>chunk %u, path %u, packet %u: %s</title></rect>\n",
		class_of(d), x, y, width > 1 ? width : 1, row > 3 ? row - 2 : row, d->chunk, d->path, d->packet, end);
	if (row >= LABELLED_ROW && width > 70)
		out_add(o, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">path %u p%u</text>\n", x + 3, y + row - 5, d->path, d->packet);
}

void reliable_trace_svg(const struct reliable_trace *t, struct out *o)
{
	const int n = (int)t->n_rows, fit = n ? MOST_HEIGHT / n : ROW, row = fit > ROW ? ROW : fit < LEAST_ROW ? LEAST_ROW : fit;
	const struct plot_panel p = { .x = LEFT, .y = TOP, .width = WIDTH, .height = n * row };
	char title[128];

	snprintf(title, sizeof title, "message %llu, %llu bytes: %u chunks in %u datagrams", (unsigned long long)t->message,
		 (unsigned long long)t->bytes, t->n_chunks, t->n_datagrams);
	plot_begin(o, LEFT + WIDTH + RIGHT, TOP + p.height + BELOW, "gpuload rdma bench: ", title, style);
	add_axis(t, &p, o);
	for (int i = 0; row >= LABELLED_ROW && i < n; i++)
		out_add(o, "<text class=\"tick\" x=\"%d\" y=\"%d\">chunk %d</text>\n", 20, TOP + i * row + row - 5, i);
	for (unsigned i = 0; i < t->n_datagrams; i++)
		add_bar(t, &t->datagrams[i], row, o);
	out_text(o, "</svg>\n");
}
