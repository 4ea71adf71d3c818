/* host_code.c — separates the kernels of a CUDA C++ text from its host code, without parsing C++.
 *
 * A declaration at the outermost level ends at ';' or with the '}' of a body.  A function that is declared with none of
 * __global__, __device__ and constexpr is host code.  A macro that the file itself defines as __device__ counts as
 * __device__. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/nvrtc/nvrtc.h"
#include "ptx/nvrtc/nvrtc_internal.h"

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Skip a comment, string, character constant or preprocessor line at `at`; returns `at` if there is none. */
static const char *skip_no_code(const char *at, bool line_start)
{
	const char quote = *at, *end;

	if (at[0] == '/' && at[1] == '/')
		return at + strcspn(at, "\n");
	if (at[0] == '/' && at[1] == '*') {
		end = strstr(at + 2, "*/");
		return end ? end + 2 : at + strlen(at);
	}
	if (quote == '"' || quote == '\'') {
		for (at++; *at && *at != quote && *at != '\n'; at++)
			at += *at == '\\' && at[1];
		return at + (*at == quote);
	}
	if (quote == '#' && line_start) {
		while (*at && *at != '\n')
			at += at[0] == '\\' && at[1] ? 2 : 1;
		return at;
	}
	return at;
}

/* A token of code: a word, or one character; n is 0 at the end of the text. */
struct token {
	const char *at;
	size_t n;
};

static struct token next_token(const char *at, const char *begin)
{
	bool line_start = at == begin || at[-1] == '\n';

	while (*at) {
		const char *next = skip_no_code(at, line_start);

		if (next == at && !isspace((unsigned char)*at))
			break;
		line_start = next == at ? *at == '\n' || line_start : false;
		at = next == at ? at + 1 : next;
	}
	size_t n = *at != '\0';
	if (is_word(*at))
		while (is_word(at[n]))
			n++;
	return (struct token){ at, n };
}

static bool token_is(struct token t, const char *word)
{
	return strlen(word) == t.n && !memcmp(t.at, word, t.n);
}

static bool is_one_of(struct token t, const char *const *words)
{
	for (; *words; words++)
		if (token_is(t, *words))
			return true;
	return false;
}

/* Return the end of a block: after the '}' that matches the '{' at `at`. */
static const char *skip_block(const char *at, const char *begin)
{
	unsigned depth = 0;

	for (struct token t = next_token(at, begin); t.n; t = next_token(at, begin)) {
		at = t.at + t.n;
		depth += *t.at == '{';
		if (*t.at == '}' && --depth == 0)
			break;
	}
	return at;
}

/* ---- declarations -------------------------------------------------------------------------- */

struct declaration {
	const char *start;                       /* first token of the declaration; NULL: no token yet */
	unsigned parentheses;                    /* number of open parentheses */
	bool is_namespace;                       /* namespace or extern "C" */
	bool has_call, has_equals, has_operator; /* has_call: a '(' that does not belong to an attribute */
	bool is_for_device, uses_host;
	struct token before;
};

/* True if the file defines the word as a macro that contains __device__ or __global__. */
static bool is_device_macro(struct token t, const char *text)
{
	for (const char *at = strstr(text, "#define"); at; at = strstr(at + 1, "#define")) {
		const char *name = at + 7 + strspn(at + 7, " \t"), *end = name + strcspn(name, "\n"), *rest = name + t.n;

		if (strncmp(name, t.at, t.n) != 0 || is_word(*rest) || rest >= end)
			continue;
		if (memmem(rest, (size_t)(end - rest), "__device__", 10) || memmem(rest, (size_t)(end - rest), "__global__", 10))
			return true;
	}
	return false;
}

static void note_token(struct declaration *d, struct token t, const char *text)
{
	static const char *const device[] = { "__global__", "__device__", "__constant__", "constexpr", NULL };
	static const char *const attributes[] = { "__align__", "alignas", "__attribute__", "__launch_bounds__", "decltype", NULL };
	bool outside = d->parentheses == 0;

	if (!d->start)
		d->start = t.at;
	if (is_word(*t.at)) {
		d->is_namespace |= token_is(t, "namespace") || (token_is(t, "extern") && t.at[t.n + strspn(t.at + t.n, " \t")] == '"');
		d->has_operator |= token_is(t, "operator");
		d->uses_host |= token_is(t, "std") || (t.n > 4 && !memcmp(t.at, "cuda", 4) && isupper((unsigned char)t.at[4]));
		if (outside)
			d->is_for_device |= is_one_of(t, device) || is_device_macro(t, text);
	} else if (*t.at == '(') {
		d->has_call |= outside && !is_one_of(d->before, attributes);
		d->parentheses++;
	} else if (*t.at == ')' && d->parentheses) {
		d->parentheses--;
	} else if (*t.at == '=' && outside) {
		d->has_equals = true;
	}
	d->before = t;
}

static bool is_function(const struct declaration *d)
{
	return d->has_call && (!d->has_equals || d->has_operator);
}

static bool contains_word(const char *from, const char *to, const char *word, const char *begin)
{
	for (struct token t = next_token(from, begin); t.n && t.at < to; t = next_token(t.at + t.n, begin))
		if (token_is(t, word))
			return true;
	return false;
}

/* Overwrite text with blanks, but keep its line ends. */
static void blank(char *copy, const char *text, const char *from, const char *to)
{
	for (; from < to; from++)
		if (*from != '\n')
			copy[from - text] = ' ';
}

char *ptx_nvrtc_without_host_code(const char *text)
{
	char *copy = strdup(text);
	struct declaration d = { 0 };
	bool changed = false;

	if (!copy)
		return NULL;
	for (struct token t = next_token(text, text); t.n;) {
		const char *end = t.at + t.n;
		bool ends = *t.at == '}', is_host = false;

		if (*t.at == ';' && d.parentheses == 0) {
			ends = true;
			is_host = d.start && d.uses_host && !d.is_for_device;
		} else if (*t.at == '{' && d.parentheses == 0 && d.is_namespace && !d.has_call) {
			ends = true;
		} else if (*t.at == '{' && d.parentheses == 0) {
			end = skip_block(t.at, text);
			ends = is_function(&d);
			is_host = ends && !d.is_for_device;
			/* a declaration that names std, such as std::string, is host code */
			d.uses_host |= !ends && contains_word(t.at, end, "std", text);
		} else if (!ends) {
			note_token(&d, t, text);
		}
		if (is_host && d.start) {
			blank(copy, text, d.start, end);
			changed = true;
		}
		if (ends)
			d = (struct declaration){ 0 };
		t = next_token(end, text);
	}
	if (changed)
		return copy;
	free(copy);
	return NULL;
}

unsigned gpul_nvrtc_main_line(const char *text)
{
	unsigned depth = 0, line = 1;
	const char *counted = text;

	for (struct token t = next_token(text, text), next; t.n; t = next) {
		next = next_token(t.at + t.n, text);
		depth += *t.at == '{';
		depth -= *t.at == '}' && depth > 0;
		for (; counted < t.at; counted++)
			line += *counted == '\n';
		if (depth == 0 && token_is(t, "main") && token_is(next, "("))
			return line;
	}
	return 0;
}
