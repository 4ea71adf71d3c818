/* map_text.c — draws the picture of gpuload map in characters.
 *
 *     ┌─ pid 4711 gpuload ─────┐   ┌─ host-numa, node 0 ──┐   ┌─ pid 4720 python3 ─────┐
 *     │ CPU 0x7f3a40001000     │──▶│ data 64 MiB          │◀──│ CPU 0x7fd0c0001000     │
 *
 * The box of a process has BOX_LINES lines; a row has two such boxes, with the memory between them.  After MAX_ROWS rows, the other
  * processes are only listed, one per line. */
#include <string.h>

#include "cli/share/map.h"

enum { BOX_WIDTH = 26, BAND_WIDTH = 22, ARROW_WIDTH = 3, BOX_LINES = 9, MAX_ROWS = 6 };
/* Lines of a row of boxes, counted from 0: those with the arrows of CPU and GPU, and the line below the control page. */
enum { LINE_CPU = 3, LINE_GPU = 5, LINE_CUT = 2 };

/* Draw an edge of a box, such as "┌─ TITLE ────┐" or "└──────┘". */
static void draw_edge(struct out *o, const char *left, const char *title, const char *right, size_t width)
{
	size_t n = strlen(title), used = 2;

	out_drawing(o, left);
	if (n) {
		n = n > width - 6 ? width - 6 : n;
		out_drawing(o, "─ ");
		out_name(o, title, n);
		out_drawing(o, " ");
		used += n + 3;
	}
	for (; used < width; used++)
		out_drawing(o, "─");
	out_drawing(o, right);
}

/* Draw a line of a box: "│ TEXT       │". */
static void draw_text(struct out *o, const char *text, size_t width)
{
	size_t n = strlen(text);

	n = n > width - 4 ? width - 4 : n;
	out_drawing(o, "│ ");
	out_name(o, text, n);
	out_repeat(o, ' ', width - 4 - n);
	out_drawing(o, " │");
}

static const char *box_text(const struct map_process *p, size_t line)
{
	const char *const texts[] = { "", p->role, p->access, p->cpu[0], p->cpu[1], p->gpu[0], p->gpu[1], p->device };

	return texts[line];
}

static void box_line(struct out *o, const struct map_process *p, size_t line)
{
	if (!p)
		out_repeat(o, ' ', BOX_WIDTH);
	else if (line == 0)
		draw_edge(o, "┌", p->title, "┐", BOX_WIDTH);
	else if (line == BOX_LINES - 1)
		draw_edge(o, "└", "", "┘", BOX_WIDTH);
	else
		draw_text(o, box_text(p, line), BOX_WIDTH);
}

static bool has_arrow(const struct map_process *p, size_t line)
{
	return p && ((line == LINE_CPU && p->has_cpu) || (line == LINE_GPU && p->has_gpu));
}

static void band_line(struct out *o, const struct map_picture *p, size_t row, size_t line, bool last)
{
	/* For each line of the first row of boxes, an index into p->band; 0: the line is empty. */
	static const size_t with[BOX_LINES] = { 0, 1, 0, 2, 3, 4, 5, 0, 0 };

	if (row == 0 && line == 0)
		draw_edge(o, "┌", p->band[0], "┐", BAND_WIDTH);
	else if (last && line == BOX_LINES - 1)
		draw_edge(o, "└", "", "┘", BAND_WIDTH);
	else if (row == 0 && line == LINE_CUT && p->control)
		draw_edge(o, "├", "", "┤", BAND_WIDTH);
	else
		draw_text(o, row == 0 && with[line] ? p->band[with[line]] : "", BAND_WIDTH);
}

static void draw_row(struct out *o, const struct map_picture *p, size_t row, bool last)
{
	const struct map_process *left = 2 * row < p->n ? &p->process[2 * row] : NULL,
				 *right = 2 * row + 1 < p->n ? &p->process[2 * row + 1] : NULL;

	for (size_t line = 0; line < BOX_LINES; line++) {
		box_line(o, left, line);
		out_drawing(o, has_arrow(left, line) ? "──▶" : "   ");
		band_line(o, p, row, line, last);
		out_drawing(o, has_arrow(right, line) ? "◀──" : "   ");
		if (right)
			box_line(o, right, line);
		while (o->n && o->at[o->n - 1] == ' ')
			o->n--;
		out_text(o, "\n");
	}
}

/* Print one line: "pid 4720 python3, peer in slot 7, read-only, CPU 0x7f..., GPU 0x7f..., on GPU-5f3a91c2". */
static void list_process(struct out *o, const struct map_process *p)
{
	const char *const words[] = { p->title, p->role, p->access, p->cpu[0], p->gpu[0], p->device };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		out_text(o, i ? ", " : "");
		out_name(o, words[i], strlen(words[i]));
	}
	out_text(o, "\n");
}

void map_draw_text(const struct map_picture *p, struct out *o)
{
	size_t rows = (p->n + 1) / 2;

	out_name(o, p->title, strlen(p->title));
	out_text(o, "\n\n");
	rows = rows > MAX_ROWS ? MAX_ROWS : rows;
	for (size_t row = 0; row < rows; row++)
		draw_row(o, p, row, row + 1 == rows);
	if (p->n > 2 * rows)
		out_text(o, "\nand\n");
	for (size_t i = 2 * rows; i < p->n; i++)
		list_process(o, &p->process[i]);
}
