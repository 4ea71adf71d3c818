/* run_line.c — find and parse the line `// gpuload run: ARG...` of a file. */
#include "cli/run/cli_run.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/message.h"
#include "loader/image/source.h"

static const char marker[] = "gpuload run:";

/* Split text into words in place; removing quotes never makes a word longer. */
static gpul_status split_words(char *text, struct run_line *l)
{
	char *in = text, *out = text;

	for (;;) {
		char quote = 0;

		while (isspace((unsigned char)*in))
			in++;
		if (!*in)
			return GPUL_OK;
		l->words[l->n_words++] = out;
		for (; *in && (quote || !isspace((unsigned char)*in)); in++) {
			if (*in == quote)
				quote = 0;
			else if (!quote && (*in == '\'' || *in == '"'))
				quote = *in;
			else if (*in == '\\' && quote != '\'' && in[1])
				*out++ = *++in;
			else
				*out++ = *in;
		}
		if (quote)
			return GPUL_EINVAL;
		in += *in != '\0'; /* skip the blank after the word now, because the NUL may overwrite it */
		*out++ = '\0';
	}
}

static gpul_status make_line(const char *path, const char *text, size_t n_bytes, unsigned number, struct run_line *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct run_line){ .text = strndup(text, n_bytes), .number = number };
	out->words = calloc(n_bytes / 2 + 2, sizeof *out->words);
	if (!out->text || !out->words)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "%s:%u: no memory for the line", path, number);
	else if (split_words(out->text, out))
		st = gpul_fail(err, GPUL_EINVAL, 0, "%s:%u: a quote in the `// %s` line is not closed", path, number, marker);
	else
		return GPUL_OK;
	run_line_free(out);
	return st;
}

void run_line_free(struct run_line *l)
{
	free(l->text);
	free(l->words);
	*l = (struct run_line){ 0 };
}

/* Return the value of --kernel in a line; NULL: the line has no --kernel. */
static const char *line_kernel(const struct run_line *l)
{
	for (size_t i = 0; i < l->n_words; i++) {
		if (!strncmp(l->words[i], "--kernel=", 9))
			return l->words[i] + 9;
		if (!strcmp(l->words[i], "--kernel") && i + 1 < l->n_words)
			return l->words[i + 1];
	}
	return NULL;
}

/* Return the text after "// gpuload run:"; NULL: the line does not begin with this. */
static const char *after_marker(const char *line, const char *end)
{
	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	if (end - line < 2 || line[0] != '/' || line[1] != '/')
		return NULL;
	for (line += 2; line < end && (*line == ' ' || *line == '\t'); line++)
		;
	if ((size_t)(end - line) < sizeof marker - 1 || memcmp(line, marker, sizeof marker - 1))
		return NULL;
	return line + sizeof marker - 1;
}

static gpul_status find_line(const char *text, size_t n_bytes, const char *path, const char *kernel, struct run_line *out, gpul_error *err)
{
	const char *end = text + n_bytes, *next;
	unsigned number = 1;

	for (const char *line = text; line < end; line = next, number++) {
		const char *newline = memchr(line, '\n', (size_t)(end - line)), *words, *named;
		gpul_status st;

		next = newline ? newline + 1 : end;
		words = after_marker(line, next);
		if (!words)
			continue;
		st = make_line(path, words, (size_t)(next - words), number, out, err);
		if (st)
			return st;
		named = line_kernel(out);
		if (!kernel || !named || !strcmp(kernel, named))
			return GPUL_OK;
		run_line_free(out);
	}
	return GPUL_OK;
}

gpul_status run_line_find(gpul_source *source, const char *kernel, struct run_line *out, gpul_error *err)
{
	size_t n_bytes;
	const void *bytes = gpul_source_bytes(source, &n_bytes);

	*out = (struct run_line){ 0 };
	switch (gpul_source_content(source)) {
	case GPUL_CONTENT_PTX:
	case GPUL_CONTENT_CUDA:
	case GPUL_CONTENT_TEXT:
	case GPUL_CONTENT_EMPTY: /* empty, because a PTX file may contain only comments */
		return find_line(bytes, n_bytes, gpul_source_name(source), kernel, out, err);
	default: /* binary files have no such line, and searching them could mean reading hundreds of megabytes */
		return GPUL_OK;
	}
}

/* ---- misspelt lines ------------------------------------------------------------------- */

/* Skip the letters of word, in upper or lower case and with blanks or punctuation between them; NULL: the letters differ.
 * *colon becomes true if a colon was skipped. */
static const char *skip_letters(const char *at, const char *end, const char *word, bool *colon)
{
	for (; *word; word++, at++) {
		for (; at < end && *at && strchr(" \t:-_=", *at); at++)
			*colon |= *at == ':';
		if (at == end || tolower((unsigned char)*at) != *word)
			return NULL;
	}
	return at;
}

/* True for a comment that was meant as a `// gpuload run:` line: after "gpuload run", in some spelling, there is a colon or a word
 * that looks like an argument or an option.  False for a sentence such as "gpuload run k.ptx runs it". */
static bool is_misspelt(const char *line, const char *end)
{
	bool colon_between = false;
	const char *word;

	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	if (end - line < 2 || line[0] != '/' || (line[1] != '/' && line[1] != '*'))
		return false;
	while (line < end && (*line == '/' || *line == '*'))
		line++;
	line = skip_letters(line, end, "gpuloadrun", &colon_between);
	if (!line || (line < end && (isalnum((unsigned char)*line) || *line == '_')))
		return false;
	for (word = line; word < end && isspace((unsigned char)*word); word++)
		;
	if (word == end)
		return colon_between;
	if (*word == ':' || (end - word > 2 && word[0] == '-' && word[1] == '-'))
		return true;
	for (; word < end && !isspace((unsigned char)*word); word++)
		if (*word == '=' || *word == '[')
			return true;
	return false;
}

void run_line_tell_misspelt(gpul_source *source)
{
	const gpul_content content = gpul_source_content(source);
	const char *text, *next;
	unsigned number = 1;
	size_t n_bytes;

	if (content != GPUL_CONTENT_PTX && content != GPUL_CONTENT_CUDA && content != GPUL_CONTENT_TEXT)
		return;
	text = gpul_source_bytes(source, &n_bytes);
	for (const char *line = text, *end = text + n_bytes; line < end; line = next, number++) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));

		next = newline ? newline + 1 : end;
		if (after_marker(line, next)) /* a correct line, for another kernel: the author knows the spelling */
			return;
		if (!is_misspelt(line, next))
			continue;
		cli_message("run", "%s:%u: this comment is ignored; write the arguments of a kernel as `// %s ARG...`",
			    gpul_source_name(source), number, marker);
		return;
	}
}

bool run_line_exists(gpul_source *source)
{
	struct run_line line = { 0 };
	const bool found = run_line_find(source, NULL, &line, NULL) || line.number;

	run_line_free(&line);
	return found;
}
