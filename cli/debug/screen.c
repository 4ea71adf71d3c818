/* screen.c — draws the windows of gpuload step with ncurses.
 *
 *     ┌ kernel, block, warp, lane, moment ─────────────┐
 *     │ CUDA C++                │ PTX                   │   the current lines are in reverse video
 *     │ warps: a mark per lane  │ registers of the lane │   changed registers are bold and marked *
 *     │ shared memory, or what commands and the program printed                        │
 *     └ keys, or the command that is typed ────────────┘ */
#include "cli/debug/debug.h"

#if GPUL_HAVE_NCURSES

#include <fcntl.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_ROWS = 16, LEAST_COLUMNS = 60, TAB = 4 };

struct screen {
	struct session *s;
	int output;               /* the program's stdout and stderr */
	struct out text;          /* the output of commands and of the program */
	struct debug_rows before; /* registers at the previous stop */
	bool shows_memory;
	int scrolled;   /* how many lines the text is scrolled up */
	char line[200]; /* the command that the user is typing */
	bool types;
};

/* ---- text in a rectangle ------------------------------------------------------------------------------------------- */

struct box {
	int y, x, rows, columns;
};

/* Print a line of a box, cut off at its right edge, with tabs expanded. */
static void put_line(const struct box *b, int row, const char *text, attr_t attributes)
{
	int column = 0;

	if (row < 0 || row >= b->rows)
		return;
	attr_on(attributes, NULL);
	move(b->y + row, b->x);
	for (; *text && column < b->columns; text++) {
		if (*text == '\t') {
			do
				addch(' ');
			while (++column % TAB && column < b->columns);
			continue;
		}
		addch((chtype)(unsigned char)*text);
		column += ((unsigned char)*text & 0xc0) != 0x80;
	}
	for (; attributes & A_REVERSE && column < b->columns; column++)
		addch(' ');
	attr_off(attributes, NULL);
}

static void put_title(struct box *b, const char *title)
{
	mvhline(b->y, b->x, ACS_HLINE, b->columns);
	mvaddnstr(b->y, b->x + 1, title, b->columns - 2);
	b->y++;
	b->rows--;
}

static void draw_source(struct box b, const char *title, const struct source *src, uint32_t line)
{
	char text[400];

	put_title(&b, title);
	if (!src)
		return;
	for (int row = 0; row < b.rows; row++) {
		const int64_t n = (int64_t)line + row - b.rows / 2;

		if (n < 1 || (uint64_t)n > src->line.n)
			continue;
		snprintf(text, sizeof text, "%s%4lld %.380s", n == line ? ">" : " ", (long long)n, src->line.at[n - 1]);
		put_line(&b, row, text, n == line ? A_REVERSE : 0);
	}
}

/* ---- warps, registers, memory ---------------------------------------------------------------------------------------- */

static void draw_warps(const struct screen *w, struct box b)
{
	struct debug_rows rows = { 0 };
	size_t first = 0;

	put_title(&b, " warps: # active  . elsewhere ");
	(void)debug_link_ask(w->s->link, &rows, NULL, "warps");
	for (size_t k = 0; k < rows.row.n; k++)
		if (!strcmp(debug_row_get(&rows.row.at[k], "state"), "current") && k >= (size_t)b.rows)
			first = k - (size_t)b.rows + 1;
	for (size_t k = first; k < rows.row.n && k - first < (size_t)b.rows; k++) {
		const struct debug_row *r = &rows.row.at[k];
		const uint64_t mask = debug_row_hex(r, "mask"), live = debug_row_hex(r, "live");
		const bool line = debug_row_number(r, "line");
		char lanes[33], text[160];

		for (unsigned l = 0; l < 32; l++)
			lanes[l] = mask >> l & 1 ? '#' : live >> l & 1 ? '.' : ' ';
		lanes[32] = '\0';
		snprintf(text, sizeof text, "%3s.%-2s %s %s %s%s", debug_row_get(r, "block"), debug_row_get(r, "warp"), lanes,
			 debug_row_get(r, "state"), line ? "line " : "ptx:", debug_row_get(r, line ? "line" : "ptxline"));
		put_line(&b, (int)(k - first), text, !strcmp(debug_row_get(r, "state"), "current") ? A_BOLD : 0);
	}
	debug_rows_free(&rows);
}

static bool has_changed(const struct screen *w, const struct debug_row *r, size_t k)
{
	const struct debug_row *old = k < w->before.row.n ? &w->before.row.at[k] : NULL;

	return old && !strcmp(debug_row_get(old, "name"), debug_row_get(r, "name")) &&
	       strcmp(debug_row_get(old, "bits"), debug_row_get(r, "bits")) != 0;
}

static void draw_registers(struct screen *w, struct box b)
{
	enum { WIDTH = 30 };
	const struct session *s = w->s;
	const int columns = b.columns / WIDTH > 0 ? b.columns / WIDTH : 1;
	struct debug_rows rows = { 0 };
	char text[200];

	snprintf(text, sizeof text, " lane %u of block %llu warp %u ", s->lane, (unsigned long long)s->block, s->warp);
	put_title(&b, text);
	(void)debug_link_ask(s->link, &rows, NULL, "registers\t%llu\t%u\t%u\t%u", (unsigned long long)s->block, s->warp, s->lane, s->frame);
	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];
		const struct box cell = { b.y, b.x + (int)k / b.rows * WIDTH, b.rows, WIDTH - 1 };
		const bool changed = has_changed(w, r, k);

		if ((int)k / b.rows >= columns)
			break;
		snprintf(text, sizeof text, "%c%-8s %-4s %s", changed ? '*' : ' ', debug_row_get(r, "name"), debug_row_get(r, "type"),
			 debug_row_get(r, "value"));
		put_line(&cell, (int)k % b.rows, text, changed ? A_BOLD : 0);
	}
	debug_rows_free(&w->before);
	w->before = rows;
}

static void draw_memory(const struct screen *w, struct box b)
{
	const struct session *s = w->s;
	const int per_row = (b.columns - 8) / 36 > 1 ? 16 * ((b.columns - 8) / 36) : 16;
	struct debug_rows rows = { 0 };
	const char *digits = "";

	put_title(&b, " shared memory ");
	if (!debug_link_ask(s->link, &rows, NULL, "memory\tshared\t0\t%d\t%llu\t%u\t%u", per_row * b.rows, (unsigned long long)s->block,
			    s->warp, s->lane) &&
	    rows.row.n)
		digits = debug_row_get(&rows.row.at[0], "bytes");
	for (size_t k = 0; digits[2 * k]; k++) {
		const int row = (int)k / per_row, column = (int)k % per_row;

		if (!column)
			mvprintw(b.y + row, b.x, "%5zu ", k);
		mvaddnstr(b.y + row, b.x + 6 + column * 2 + column / 4, digits + 2 * k, 2);
	}
	debug_rows_free(&rows);
}

/* Draw the last lines of the text. */
static void draw_text(const struct screen *w, struct box b)
{
	int left = b.rows + w->scrolled, row = b.rows + w->scrolled;
	const char *end = w->text.at + w->text.n;
	char text[400];

	put_title(&b, " output (m: memory, PgUp PgDn: scroll) ");
	row = left = left - 1;
	while (w->text.n && end > w->text.at && row > 0) {
		const char *begin = end - 1;

		while (begin > w->text.at && begin[-1] != '\n')
			begin--;
		snprintf(text, sizeof text, "%.*s", (int)(end - begin - (end[-1] == '\n')), begin);
		row--;
		if (row < b.rows)
			put_line(&b, row, text, 0);
		end = begin;
	}
}

/* ---- the whole screen ------------------------------------------------------------------------------------------------------ */

static void draw_head(const struct screen *w, int columns)
{
	const struct debug_row *at = &w->s->at;
	const struct box b = { 0, 0, 1, columns };
	char text[300];

	if (*debug_row_get(at, "kernel"))
		snprintf(text, sizeof text, " %s  block %s warp %s mask %s  #%s  %s %s", debug_row_get(at, "kernel"),
			 debug_row_get(at, "block"), debug_row_get(at, "warp"), debug_row_get(at, "mask"), debug_row_get(at, "count"),
			 debug_row_get(at, "reason"), debug_row_get(at, "text"));
	else
		snprintf(text, sizeof text, " %s", w->s->ended ? "the program has ended: press q to quit" : debug_row_get(at, "text"));
	put_line(&b, 0, text, A_REVERSE);
}

static void draw(struct screen *w)
{
	int rows, columns, upper, middle;
	const struct source *cuda, *ptx;
	uint32_t line, ptx_line;
	struct box b;

	getmaxyx(stdscr, rows, columns);
	erase();
	if (rows < LEAST_ROWS || columns < LEAST_COLUMNS) {
		mvprintw(0, 0, "the terminal needs %d x %d characters", LEAST_COLUMNS, LEAST_ROWS);
		refresh();
		return;
	}
	upper = (rows - 2) * 2 / 5;
	middle = (rows - 2) * 3 / 10;
	draw_head(w, columns);
	cuda = session_cuda(w->s, &line);
	ptx = session_ptx(w->s, &ptx_line);
	if (cuda)
		draw_source((struct box){ 1, 0, upper, columns / 2 - 1 }, " CUDA C++ ", cuda, line);
	draw_source((struct box){ 1, cuda ? columns / 2 : 0, upper, cuda ? columns - columns / 2 : columns }, " PTX ", ptx, ptx_line);
	if (w->s->stopped && *debug_row_get(&w->s->at, "kernel")) {
		draw_warps(w, (struct box){ 1 + upper, 0, middle, columns / 2 - 1 });
		draw_registers(w, (struct box){ 1 + upper, columns / 2, middle, columns - columns / 2 });
	}
	b = (struct box){ 1 + upper + middle, 0, rows - 2 - upper - middle, columns };
	if (w->shows_memory && w->s->stopped)
		draw_memory(w, b);
	else
		draw_text(w, b);
	b = (struct box){ rows - 1, 0, 1, columns };
	if (w->types)
		mvprintw(rows - 1, 0, ":%.*s", columns - 2, w->line);
	else
		put_line(
			&b, 0,
			"s line  n over  i insn  o out  c continue  b back  B line back  r reverse  w warp  d diverge  a barrier  : command  h help  q quit",
			A_REVERSE);
	refresh();
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------ */

static void take_output(void *user)
{
	struct screen *w = user;
	char bytes[4096];
	ssize_t n;

	while ((n = read(w->output, bytes, sizeof bytes)) > 0)
		for (ssize_t k = 0; k < n; k++)
			out_bytes(&w->text, bytes[k] >= ' ' || bytes[k] == '\n' || bytes[k] == '\t' || bytes[k] & 0x80 ? &bytes[k] : "?",
				  1);
}

static void execute(struct screen *w, const char *command)
{
	w->scrolled = 0;
	w->shows_memory = false;
	out_add(&w->text, ":%s\n", command);
	if (w->s->ended && strcmp(command, "q") != 0)
		out_text(&w->text, "error: the program has ended\n");
	else
		session_command(w->s, command, &w->text);
	take_output(w);
}

/* Execute the command that belongs to a key.  The memory window stays visible while stepping. */
static void execute_key(struct screen *w, const char *command)
{
	const bool memory = w->shows_memory;

	execute(w, command);
	w->shows_memory = memory && w->s->stopped;
}

static void select_lane(struct screen *w, const char *what, unsigned n)
{
	struct out silent = { 0 };
	char command[40];

	snprintf(command, sizeof command, "%s %u", what, n);
	session_command(w->s, command, &silent);
	out_free(&silent);
}

static void take_typed(struct screen *w, int key)
{
	const size_t n = strlen(w->line);

	if (key == '\n' || key == KEY_ENTER) {
		w->types = false;
		if (n)
			execute(w, w->line);
	} else if (key == 27 || (!n && (key == KEY_BACKSPACE || key == 127 || key == 8))) {
		w->types = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
		w->line[n - 1] = '\0';
	} else if (key >= ' ' && key < 127 && n + 1 < sizeof w->line) {
		w->line[n] = (char)key;
		w->line[n + 1] = '\0';
	}
}

static void take_key(struct screen *w, int key)
{
	static const struct {
		int key;
		const char *command;
	} commands[] = {
		{ 's', "s" },         { 'n', "n" },      { 'i', "i" },       { 'I', "si" },      { 'o', "out" },
		{ 'c', "c" },         { 'b', "back" },   { 'B', "bs" },      { 'r', "rc" },      { 'R', "restart" },
		{ 'w', "warp+" },     { 'k', "block+" }, { 'd', "diverge" }, { 'a', "barrier" }, { 'h', "help" },
		{ KEY_F(1), "help" }, { 'p', "params" }, { 'W', "where" },   { 'q', "q" },
	};
	struct session *s = w->s;

	for (size_t k = 0; k < sizeof commands / sizeof commands[0]; k++)
		if (commands[k].key == key)
			execute_key(w, commands[k].command);
	switch (key) {
	case ':':
		w->types = true;
		w->line[0] = '\0';
		break;
	case 'm':
		w->shows_memory = !w->shows_memory;
		break;
	case KEY_LEFT:
		select_lane(w, "lane", s->lane ? s->lane - 1 : 31);
		break;
	case KEY_RIGHT:
		select_lane(w, "lane", (s->lane + 1) % 32);
		break;
	case KEY_UP:
		if (s->warp)
			select_lane(w, "warp", s->warp - 1);
		break;
	case KEY_DOWN:
		select_lane(w, "warp", s->warp + 1);
		break;
	case KEY_PPAGE:
		w->scrolled += 5;
		break;
	case KEY_NPAGE:
		w->scrolled -= w->scrolled < 5 ? w->scrolled : 5;
		break;
	default:
		break;
	}
}

/* getch() returns at this interval even without a key, because a signal such as SIGWINCH that arrives before getch() does not wake it. */
enum { LOOK_MS = 250 };

static bool terminal_has_gone(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR | POLLNVAL);
}

gpul_status step_screen(struct session *s, int output, gpul_error *err)
{
	struct screen w = { .s = s, .output = output };
	SCREEN *terminal;

	setlocale(LC_CTYPE, "");
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return gpul_fail(err, GPUL_ESYS, 0, "the type of this terminal ($TERM) is unknown: use gpuload step --plain");
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	timeout(LOOK_MS);
	if (output >= 0)
		fcntl(output, F_SETFL, O_NONBLOCK);
	s->idle = take_output;
	s->idle_user = &w;
	while (!s->quits) {
		int key;

		take_output(&w);
		draw(&w);
		curs_set(w.types);
		key = getch();
		if (key == ERR && terminal_has_gone())
			break;
		if (key == ERR)
			continue;
		if (w.types)
			take_typed(&w, key);
		else
			take_key(&w, key);
	}
	endwin();
	delscreen(terminal);
	if (w.s->ended && w.text.n)
		fwrite(w.text.at, 1, w.text.n, stdout);
	out_free(&w.text);
	debug_rows_free(&w.before);
	return GPUL_OK;
}

#else

gpul_status step_screen(struct session *s, int output, gpul_error *err)
{
	(void)s, (void)output;
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "gpuload was built without ncurses: use gpuload step --plain, or install libncurses-dev and build again");
}

#endif
