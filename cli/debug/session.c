/* session.c — manages the selected lane and the sources of gpuload step, and waits for the kernel. */
#include "cli/debug/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file/file.h"

/* ---- sources ------------------------------------------------------------------------------------------------------------ */

static void cut_lines(struct source *src)
{
	char *rest = src->text, *line;

	while (rest && (line = strsep(&rest, "\n"))) {
		const char **at = gpul_array_push(&src->line);

		line[strcspn(line, "\r")] = '\0';
		for (char *c = line; *c; c++)
			*c = (unsigned char)*c < ' ' && *c != '\t' ? ' ' : *c;
		if (at)
			*at = line;
	}
}

static struct source *find_source(struct session *s, const char *name)
{
	for (size_t k = 0; k < s->sources.n; k++)
		if (!strcmp(s->sources.at[k].name, name))
			return &s->sources.at[k];
	return NULL;
}

/* Store a source, and take ownership of its text.  Text NULL: the file cannot be read; the entry prevents another attempt. */
static struct source *keep_source(struct session *s, const char *name, char *text)
{
	struct source *src = gpul_array_push(&s->sources);

	if (!src) {
		free(text);
		return NULL;
	}
	src->name = strdup(name);
	src->text = text;
	if (text)
		cut_lines(src);
	return src;
}

static char *read_file(const char *path)
{
	gpul_file file;
	char *text;

	if (gpul_file_open_regular(path, &file, NULL))
		return NULL;
	text = strndup((const char *)file.bytes, file.n_bytes);
	gpul_file_close(&file);
	return text;
}

const struct source *session_cuda(struct session *s, uint32_t *line)
{
	const char *path = debug_row_get(&s->at, "file");
	struct source *src;

	*line = (uint32_t)debug_row_number(&s->at, "line");
	if (!s->stopped || !*path || !*line)
		return NULL;
	src = find_source(s, path);
	if (!src)
		src = keep_source(s, path, read_file(path));
	return src && src->text ? src : NULL;
}

const struct source *session_ptx(struct session *s, uint32_t *line)
{
	const char *program = debug_row_get(&s->at, "program");
	struct debug_rows rows = { 0 };
	struct out text = { 0 };
	struct source *src;

	*line = (uint32_t)debug_row_number(&s->at, "ptxline");
	if (!s->stopped || !*program)
		return NULL;
	src = find_source(s, program);
	if (src)
		return src;
	if (debug_link_ask(s->link, &rows, NULL, "listing\t%s", program))
		return NULL;
	for (size_t k = 0; k < rows.row.n; k++) {
		out_text(&text, rows.row.at[k].text);
		out_text(&text, "\n");
	}
	out_bytes(&text, "", 1);
	debug_rows_free(&rows);
	return keep_source(s, program, text.at);
}

const char *session_path(const char *path)
{
	static char here[4096];
	const size_t n = *here || getcwd(here, sizeof here) ? strlen(here) : 0;

	return n > 1 && !strncmp(path, here, n) && path[n] == '/' ? path + n + 1 : path;
}

/* ---- stopping ----------------------------------------------------------------------------------------------------------- */

/* Print the source line at which the kernel stopped: the next instruction, and the lanes that execute it. */
static void print_stop(struct session *s, const struct debug_row *event, struct out *out)
{
	const char *reason = debug_row_get(event, "reason"), *text = debug_row_get(event, "text"), *file = debug_row_get(&s->at, "file");
	const uint64_t id = debug_row_number(event, "id");
	uint32_t line;
	const struct source *cuda;

	if (id)
		out_add(out, "%s %llu%s%s\n", !strcmp(reason, "data breakpoint") ? "watchpoint" : "breakpoint", (unsigned long long)id,
			*text ? ": " : "", text);
	else if (*text)
		out_add(out, "%s\n", text);
	else if (strcmp(reason, "step") != 0)
		out_add(out, "%s\n", reason);
	if (!*debug_row_get(&s->at, "kernel"))
		return;
	out_add(out, "#%s %s block %s warp %s lane %u mask %s  %s:%s%s%s\n", debug_row_get(&s->at, "count"),
		debug_row_get(&s->at, "kernel"), debug_row_get(&s->at, "block"), debug_row_get(&s->at, "warp"), s->lane,
		debug_row_get(&s->at, "mask"), *file ? session_path(file) : debug_row_get(&s->at, "ptx"),
		*file ? debug_row_get(&s->at, "line") : debug_row_get(&s->at, "ptxline"), *file ? "  ptx:" : "",
		*file ? debug_row_get(&s->at, "ptxline") : "");
	cuda = session_cuda(s, &line);
	if (cuda && line <= cuda->line.n)
		out_add(out, "  %5u  %s\n", line, cuda->line.at[line - 1]);
	out_add(out, "    ptx  %s\n", debug_row_get(&s->at, "insn"));
}

static void read_status(struct session *s)
{
	struct debug_rows rows = { 0 };

	debug_row_free(&s->at);
	s->stopped = false;
	if (!debug_link_ask(s->link, &rows, NULL, "status") && rows.row.n) {
		s->at = rows.row.at[0];
		rows.row.at[0].text = NULL;
		s->stopped = !strcmp(debug_row_get(&s->at, "state"), "stopped");
	}
	debug_rows_free(&rows);
}

static void take_stop(struct session *s, const struct debug_row *event, struct out *out)
{
	const uint64_t block = s->block;
	const unsigned warp = s->warp;

	read_status(s);
	if (!s->stopped)
		return;
	s->frame = 0;
	if (*debug_row_get(&s->at, "kernel")) {
		s->block = debug_row_number(&s->at, "block");
		s->warp = (unsigned)debug_row_number(&s->at, "warp");
		/* After a step of the same warp, keep the selected lane if it is active. */
		if (strcmp(debug_row_get(event, "reason"), "step") != 0 || block != s->block || warp != s->warp ||
		    !(debug_row_hex(&s->at, "mask") >> s->lane & 1))
			s->lane = (unsigned)debug_row_number(event, "lane");
	}
	print_stop(s, event, out);
}

void session_refresh(struct session *s, struct out *out)
{
	struct debug_row event = { 0 };

	take_stop(s, &event, out);
}

void session_wait(struct session *s, struct out *out)
{
	struct debug_row event;

	s->stopped = false;
	while (!s->stopped && !s->ended) {
		if (!debug_link_event(s->link, 200, &event)) {
			s->ended = debug_link_ended(s->link);
			if (s->idle)
				s->idle(s->idle_user);
			if (s->interrupted && *s->interrupted && !s->ended) {
				*s->interrupted = false;
				(void)debug_link_ask(s->link, NULL, NULL, "go\tpause");
			}
			continue;
		}
		s->has_launched |= !strcmp(event.field[0], "launch");
		if (!strcmp(event.field[0], "stopped"))
			take_stop(s, &event, out);
		else if (!strcmp(event.field[0], "launch"))
			out_add(out, "launch of %s, grid %s, block %s\n", debug_row_get(&event, "kernel"), debug_row_get(&event, "grid"),
				debug_row_get(&event, "block"));
		debug_row_free(&event);
	}
	if (s->ended && !debug_link_has_failed(s->link))
		out_text(out,
			 s->has_launched || s->attached ? "the program has ended\n" : "the program has ended without launching a kernel\n");
}

void session_free(struct session *s)
{
	for (size_t k = 0; k < s->sources.n; k++) {
		free(s->sources.at[k].name);
		free(s->sources.at[k].text);
		gpul_array_free(&s->sources.at[k].line);
	}
	gpul_array_free(&s->sources);
	debug_row_free(&s->at);
}
