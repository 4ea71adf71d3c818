/* wrap.c — breaks help texts into lines of at most 79 columns. */
#include "cli/help/help.h"

#include <stdbool.h>
#include <string.h>

enum { LINE_COLUMNS = 79 };

size_t cli_columns(const char *text, size_t text_bytes)
{
	size_t n = 0;

	for (size_t k = 0; k < text_bytes; k++)
		n += (text[k] & 0xc0) != 0x80; /* counts all bytes except continuation bytes of UTF-8 */
	return n;
}

void cli_fill(const char *text, size_t text_bytes, size_t column, size_t indent)
{
	const char *end = text + text_bytes;
	bool first = true;

	while (text < end) {
		const char *word = text + strspn(text, " \n"), *after = word;
		size_t width;

		while (after < end && *after != ' ' && *after != '\n')
			after++;
		if (word >= after)
			break;
		width = cli_columns(word, (size_t)(after - word));
		if (!first && column + 1 + width > LINE_COLUMNS) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			putchar(' ');
			column++;
		}
		fwrite(word, 1, (size_t)(after - word), stdout);
		column += width;
		first = false;
		text = after;
	}
	putchar('\n');
}

struct line {
	const char *at;
	size_t bytes, indent;
};

static struct line line_at(const char *text)
{
	struct line l = { text, strcspn(text, "\n"), strspn(text, " ") };

	l.indent = l.indent < l.bytes ? l.indent : l.bytes;
	return l;
}

/* Return the offset of the last column of a line, which begins after the last run of two or more blanks; 0: there is only one column. */
static size_t text_column(const struct line *l)
{
	size_t found = 0;

	for (size_t k = l->indent + 1; k + 2 < l->bytes; k++)
		if (l->at[k] == ' ' && l->at[k + 1] == ' ' && l->at[k + 2] != ' ')
			found = k + 2;
	return found;
}

/* Find the end of the paragraph that starts with line l: either all following text in column 0, or an item with its continuation
 * lines. *is_long is set if one of its lines is longer than 79 columns. */
static const char *paragraph_end(const struct line *l, size_t indent, bool *is_long)
{
	struct line next = *l;

	*is_long = false;
	do {
		*is_long |= cli_columns(next.at, next.bytes) > LINE_COLUMNS;
		next = line_at(next.at + next.bytes + (next.at[next.bytes] == '\n'));
	} while (*next.at && next.bytes > next.indent && next.indent == indent && (indent || !l->indent));
	return next.at;
}

void cli_print_wrapped(const char *text)
{
	while (*text) {
		const struct line l = line_at(text);
		const size_t item = l.indent ? text_column(&l) : 0, indent = item ? cli_columns(l.at, item) : l.indent;
		const char *end;
		bool is_long;

		if (l.bytes == l.indent) { /* an empty line */
			putchar('\n');
			text += l.bytes + 1;
			continue;
		}
		end = l.indent && !item ? l.at + l.bytes + 1 : paragraph_end(&l, indent, &is_long);
		if (l.indent && !item) /* an example of a command, whose lines are never broken */
			is_long = false;
		if (!is_long) {
			fwrite(l.at, 1, (size_t)(end - l.at), stdout);
		} else {
			fwrite(l.at, 1, item, stdout);
			cli_fill(l.at + item, (size_t)(end - l.at) - item, indent, indent);
		}
		text = end;
	}
}
