/* includes.c — finds the headers that a CUDA C++ source may include.
 *
 * This is not a preprocessor: it may find too many includes, but never too few.  Text in comments and
 * strings is treated as code if that can only add files to the key. */
#include "core/cache/cache.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/file/file.h"

enum { MAX_FILES = 10000, MAX_BYTES = 256 << 20 };

struct scan {
	gpul_cache_key *key;
	GPUL_ARRAY(const char *) folders; /* folders of -I, borrowed */
	GPUL_ARRAY(char *) files;         /* paths of the files to scan, without symbolic links; owned */
	size_t n_bytes;
	const char *toolkit;
	const char *source_name;
	bool ok; /* false: do not cache the result */
};

/* ---- files ------------------------------------------------------------------------------- */

/* Append a file to the list, if the file exists and is not in the list yet. */
static void add_file(struct scan *s, const char *path)
{
	char *real = realpath(path, NULL);

	if (!real)
		return;
	for (size_t i = 0; i < s->files.n; i++)
		if (!strcmp(s->files.at[i], real)) {
			free(real);
			return;
		}
	if (*s->toolkit && !strncmp(real, s->toolkit, strlen(s->toolkit))) {
		free(real);
		return;
	}
	char **row = s->files.n < MAX_FILES ? gpul_array_push(&s->files) : NULL;
	if (row)
		*row = real;
	else
		free(real);
	s->ok &= row != NULL;
}

/* Add the file folder/name to the list, if the file exists; name has n bytes. */
static void add_in(struct scan *s, const char *folder, size_t folder_bytes, const char *name, size_t n)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof path, "%.*s%s%.*s", (int)folder_bytes, folder, folder_bytes ? "/" : "", (int)n, name);

	if (length > 0 && (size_t)length < sizeof path)
		add_file(s, path);
}

static void add_beside(struct scan *s, const char *file, const char *name, size_t n)
{
	const char *slash = strrchr(file, '/');

	add_in(s, file, slash == file ? 1 : slash ? (size_t)(slash - file) : 0, name, n);
}

/* Add every file to which <name> or "name" in the file `includer` may refer. */
static void add_include(struct scan *s, const char *includer, const char *name, size_t n)
{
	if (n >= PATH_MAX)
		return;
	if (*name == '/') {
		add_in(s, "", 0, name, n);
		return;
	}
	add_beside(s, includer, name, n);
	add_beside(s, s->source_name, name, n);
	add_in(s, "", 0, name, n); /* the current folder */
	for (size_t i = 0; i < s->folders.n; i++)
		add_in(s, s->folders.at[i], strlen(s->folders.at[i]), name, n);
}

/* ---- directives -------------------------------------------------------------------------- */

/* Copy the text, and join each line that ends in a backslash with the next line; the caller frees the copy. */
static char *join_lines(const char *text, size_t n_bytes)
{
	char *out = malloc(n_bytes + 1), *to = out;

	if (!out)
		return NULL;
	for (size_t i = 0; i < n_bytes && text[i]; i++) {
		if (text[i] == '\\' && i + 1 < n_bytes && text[i + 1] == '\n')
			i++;
		else if (text[i] == '\\' && i + 2 < n_bytes && text[i + 1] == '\r' && text[i + 2] == '\n')
			i += 2;
		else
			*to++ = text[i];
	}
	*to = 0;
	return out;
}

/* Skip white space and comments on a line. */
static const char *skip_blanks(const char *at)
{
	for (;;) {
		at += strspn(at, " \t\v\f");
		const char *end = at[0] == '/' && at[1] == '*' ? strstr(at + 2, "*/") : NULL;
		if (!end)
			return at;
		at = end + 2;
	}
}

/* Add the files to which <name> or "name" at `at` may refer.  False: `at` is something else, so the name comes from a macro. */
static bool add_named(struct scan *s, const char *includer, const char *at)
{
	const char *end = *at == '<' || *at == '"' ? strpbrk(at + 1, *at == '<' ? ">\n" : "\"\n") : NULL;

	if (!end || *end == '\n')
		return false;
	add_include(s, includer, at + 1, (size_t)(end - at - 1));
	return true;
}

/* True if a '#' begins a directive: only blanks or the end of a comment come before it on its line. */
static bool begins_line(const char *text, const char *hash)
{
	bool ended_comment = false;

	for (; hash > text && hash[-1] != '\n'; hash--) {
		ended_comment |= hash[-1] == '/' && hash - text > 1 && hash[-2] == '*';
		if (!strchr(" \t\v\f\r", hash[-1]) && !ended_comment)
			return false;
	}
	return true;
}

static void scan_directives(struct scan *s, const char *includer, const char *text)
{
	for (const char *hash = strchr(text, '#'); hash && s->ok; hash = strchr(hash + 1, '#')) {
		const char *at = skip_blanks(hash + 1);

		if (!begins_line(text, hash))
			continue;
		if (!strncmp(at, "embed", 5)) {
			s->ok = false;
		} else if (!strncmp(at, "include", 7)) {
			at += strncmp(at, "include_next", 12) ? 7 : 12;
			s->ok &= add_named(s, includer, skip_blanks(at));
		}
	}
}

/* Add the file of each __has_include(<x>), because its value depends on whether x exists; "#ifdef __has_include" is skipped. */
static void scan_has_include(struct scan *s, const char *includer, const char *text)
{
	static const char word[] = "__has_include";

	for (const char *at = strstr(text, word); at && s->ok; at = strstr(at, word)) {
		at += sizeof word - 1;
		if (!strncmp(at, "_next", 5))
			at += 5;
		at = skip_blanks(at);
		if (*at == '(')
			s->ok &= add_named(s, includer, skip_blanks(at + 1));
	}
}

/* False if the text may compile differently in the next run, or spells '#' as "%:", which scan_directives() does not find. */
static bool is_reproducible(const char *text)
{
	static const char *const words[] = { "__DATE__", "__TIME__", "__TIMESTAMP__", "%:", "__has_embed" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(text, words[i]))
			return false;
	return true;
}

static void scan_text(struct scan *s, const char *includer, const char *text, size_t n_bytes)
{
	char *joined = join_lines(text, n_bytes);

	s->ok &= joined && is_reproducible(joined);
	if (s->ok) {
		scan_directives(s, includer, joined);
		scan_has_include(s, includer, joined);
	}
	free(joined);
}

static void scan_file(struct scan *s, const char *path)
{
	gpul_file file = { 0 };
	gpul_status st = gpul_file_open(path, &file, NULL);

	gpul_cache_key_add_text(s->key, path);
	if (st == GPUL_EFORMAT) { /* the file is empty */
		gpul_cache_key_add_text(s->key, NULL);
		return;
	}
	/* the path is a folder, or a file that cannot be read: NVRTC ignores it, too */
	if (st)
		return;
	s->n_bytes += file.n_bytes;
	s->ok &= s->n_bytes <= MAX_BYTES;
	if (s->ok) {
		gpul_cache_key_add(s->key, file.bytes, file.n_bytes);
		scan_text(s, path, file.bytes, file.n_bytes);
	}
	gpul_file_close(&file);
}

/* ---- options ----------------------------------------------------------------------------- */

/* Return the value of an option: "name=value", "name" "value" or, for a short name, "namevalue".  NULL: `option` is another option.
 * *took_next is set if the value is the next argument. */
static const char *option_value(const char *const *option, const char *name, bool *took_next)
{
	size_t n = strlen(name);

	*took_next = false;
	if (strncmp(*option, name, n))
		return NULL;
	if ((*option)[n] == '=')
		return *option + n + 1;
	if ((*option)[n])
		return n == 2 ? *option + n : NULL;
	*took_next = option[1] != NULL;
	return option[1];
}

/* True if an option makes NVRTC read or write files that are not searched for here. */
static bool names_files(const char *option)
{
	return strncmp(option, "-D", 2) &&
	       (strstr(option, "pch") || strstr(option, "time") || strstr(option, "file") || strstr(option, "optf") || *option != '-');
}

static void scan_options(struct scan *s, const char *const *options, bool includes)
{
	static const char *const paths[] = { "--include-path", "-I" };
	static const char *const headers[] = { "--pre-include", "-include" };
	bool took_next = false;

	for (; options && *options && s->ok; options += took_next ? 2 : 1) {
		const char *folder = NULL, *header = NULL;

		took_next = false;
		for (int i = 0; i < 2 && !folder; i++)
			folder = option_value(options, paths[i], &took_next);
		for (int i = 0; i < 2 && !folder && !header; i++)
			header = option_value(options, headers[i], &took_next);
		const char **row = folder && !includes ? gpul_array_push(&s->folders) : NULL;
		if (row)
			*row = folder;
		else if (folder && !includes)
			s->ok = false;
		if (header && includes)
			add_include(s, s->source_name, header, strlen(header));
		if (!folder && !header && names_files(*options))
			s->ok = false;
	}
}

/* ---- entry point ------------------------------------------------------------------------- */

bool gpul_includes_add(gpul_cache_key *key, const char *source, const char *name, const char *const *options, const char *toolkit)
{
	struct scan s = { .key = key, .toolkit = toolkit, .source_name = name, .ok = true };

	scan_options(&s, options, false);
	scan_options(&s, options, true);
	if (s.ok)
		scan_text(&s, name, source, strlen(source));
	for (size_t i = 0; i < s.files.n && s.ok; i++)
		scan_file(&s, s.files.at[i]);
	for (size_t i = 0; i < s.files.n; i++)
		free(s.files.at[i]);
	gpul_array_free(&s.files);
	gpul_array_free(&s.folders);
	return s.ok;
}
