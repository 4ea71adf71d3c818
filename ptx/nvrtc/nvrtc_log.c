/* nvrtc_log.c — reorders NVRTC's messages, with those about the user's file first.
 *
 *     kernel.cu(3): error: ...      a message begins in column 0 with FILE(LINE):, and goes on to the next one
 *       source line
 *         ^
 *     2 errors detected ...         the last line belongs to no file
 *
 * A host header, such as cuda.h, causes a hundred messages, which would hide the helpful one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/nvrtc/nvrtc_internal.h"

enum { SHOWN_OF_HEADERS = 3 };

struct message {
	const char *at;
	size_t n;
	enum { OF_FILE, OF_HEADER, OF_NONE } kind;
};

/* Return the message that begins at `at`; .n is 0 at the end of the log. */
static struct message next_message(const char *at, const char *name)
{
	const size_t n_name = strlen(name);
	struct message m = { at, 0, OF_NONE };
	const char *line = at, *end, *place;

	do {
		end = strchrnul(line, '\n');
		place = memmem(line, (size_t)(end - line), "): ", 3);
		if (line > at &&
		    (place || !strncmp(line, "Error limit", 11) || memmem(line, (size_t)(end - line), " detected in the comp", 21)) &&
		    *line != ' ')
			break;
		if (line == at && place && *line != ' ')
			m.kind = !strncmp(line, name, n_name) && line[n_name] == '(' ? OF_FILE : OF_HEADER;
		line = *end ? end + 1 : end;
	} while (*line);
	m.n = (size_t)(line - at);
	return m;
}

bool ptx_nvrtc_log_has_error_in(const char *log, const char *name)
{
	for (struct message m = next_message(log, name); m.n; m = next_message(m.at + m.n, name))
		if (m.kind == OF_FILE && memmem(m.at, m.n, "error", 5))
			return true;
	return false;
}

char *ptx_nvrtc_ordered_log(const char *log, const char *name)
{
	char *text = NULL;
	size_t n_bytes;
	unsigned n_of_headers = 0;
	FILE *to = open_memstream(&text, &n_bytes);

	if (!to)
		return NULL;
	for (int kind = OF_FILE; kind <= OF_NONE; kind++) {
		for (struct message m = next_message(log, name); m.n; m = next_message(m.at + m.n, name)) {
			if ((int)m.kind != kind)
				continue;
			if (kind != OF_HEADER || n_of_headers++ < SHOWN_OF_HEADERS)
				fwrite(m.at, 1, m.n, to);
		}
		if (kind == OF_HEADER && n_of_headers > SHOWN_OF_HEADERS)
			fprintf(to, "%u more messages about headers are not shown\n\n", n_of_headers - SHOWN_OF_HEADERS);
	}
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}
