/* ptxas_options.c — converts options of ptxas to options of the driver's JIT compiler. */
#include "loader/link/ptxas_options.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/images.h"

enum value_kind { NUMBER, CACHE_MODE, NO_VALUE, IGNORED, IGNORED_WITH_VALUE };

static const struct row {
	const char *name, *short_name; /* without the one or two leading dashes */
	enum value_kind value;
	CUjit_option key;
} rows[] = {
	{ "maxrregcount", "maxrregcount", NUMBER, CU_JIT_MAX_REGISTERS },
	{ "opt-level", "O", NUMBER, CU_JIT_OPTIMIZATION_LEVEL },
	{ "def-load-cache", "dlcm", CACHE_MODE, CU_JIT_CACHE_MODE },
	{ "device-debug", "g", NO_VALUE, CU_JIT_GENERATE_DEBUG_INFO },
	{ "generate-line-info", "lineinfo", NO_VALUE, CU_JIT_GENERATE_LINE_INFO },
	{ "maxntid", "maxntid", NUMBER, CU_JIT_MAX_THREADS_PER_BLOCK },
	{ "minnctapersm", "minnctapersm", NUMBER, CU_JIT_MIN_CTA_PER_SM },
	{ "verbose", "v", IGNORED, 0 },
	{ "warn-on-spills", "warn-spills", IGNORED, 0 },
	{ "suppress-stack-size-warning", "suppress-stack-size-warning", IGNORED, 0 },
	{ "disable-warnings", "w", IGNORED, 0 },
	{ "compile-only", "c", IGNORED, 0 },       /* nvcc -dc sets it for relocatable PTX */
	{ "machine", "m", IGNORED_WITH_VALUE, 0 }, /* the value is always 64 */
};

struct word {
	const char *at;
	size_t n;
};

static struct word next_word(const char **p, const char *end)
{
	struct word w;

	while (*p < end && **p && isspace((unsigned char)**p))
		++*p;
	w.at = *p;
	while (*p < end && **p && !isspace((unsigned char)**p))
		++*p;
	w.n = (size_t)(*p - w.at);
	return w;
}

static bool is_name(const struct word *w, const char *name, struct word *rest)
{
	size_t n = strlen(name);

	if (w->n < n || memcmp(w->at, name, n) != 0)
		return false;
	*rest = (struct word){ w->at + n, w->n - n };
	return true;
}

/* Find the table row of an option ("-O2", "--opt-level=2", "-maxrregcount"); *value is set to the rest of the word. */
static const struct row *find_row(struct word w, struct word *value)
{
	if (w.n < 2 || *w.at != '-')
		return NULL;
	w.at++, w.n--;
	if (*w.at == '-')
		w.at++, w.n--;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		bool attached;

		if (!is_name(&w, r->name, value) && !is_name(&w, r->short_name, value))
			continue;
		attached = strlen(r->short_name) == 1 && value->n && (r->value == NUMBER || r->value == IGNORED_WITH_VALUE);
		if (value->n && *value->at == '=')
			value->at++, value->n--;
		else if (value->n && !attached)
			continue; /* the option only begins with this name, but is longer */
		return r;
	}
	return NULL;
}

/* Parse the value of -dlcm: cg or ca. */
static unsigned parse_cache_mode(struct word w)
{
	return w.n == 2 && w.at[1] == 'g'   ? CU_JIT_CACHE_OPTION_CG
	       : w.n == 2 && w.at[1] == 'a' ? CU_JIT_CACHE_OPTION_CA
					    : CU_JIT_CACHE_OPTION_NONE;
}

static void set_option(gpul_ptxas_options *out, CUjit_option key, unsigned long value)
{
	unsigned i = 0;

	while (i < out->n && out->keys[i] != key)
		i++;
	if (i == GPUL_PTXAS_MAX)
		return;
	out->keys[i] = key;
	out->values[i] = (void *)(uintptr_t)value;
	out->n += i == out->n;
}

static void add_unknown(gpul_ptxas_options *out, struct word w)
{
	size_t used = strlen(out->unknown), room = sizeof out->unknown - used;

	if (w.n + 2 > room)
		return;
	if (used)
		out->unknown[used++] = ' ';
	memcpy(out->unknown + used, w.at, w.n);
	out->unknown[used + w.n] = '\0';
}

static unsigned long parse_number(struct word w)
{
	unsigned long n = 0;

	for (size_t i = 0; i < w.n && isdigit((unsigned char)w.at[i]) && n < UINT32_MAX / 10; i++)
		n = n * 10 + (unsigned long)(w.at[i] - '0');
	return n;
}

_Static_assert(GPUL_PTXAS_MAX >= 7, "one element for every option that the driver has");

void gpul_ptxas_options_parse(const char *text, size_t n_bytes, gpul_ptxas_options *out)
{
	const char *p = text, *end = text + n_bytes;

	*out = (gpul_ptxas_options){ 0 };
	for (struct word w = next_word(&p, end); w.n; w = next_word(&p, end)) {
		struct word value = { 0 };
		const struct row *r = find_row(w, &value);

		if (r && !value.n && r->value != NO_VALUE && r->value != IGNORED)
			value = next_word(&p, end); /* the value is a word of its own, as in "-maxrregcount 32" */
		if (!r)
			add_unknown(out, w);
		else if (r->value == NUMBER)
			set_option(out, r->key, parse_number(value));
		else if (r->value == CACHE_MODE)
			set_option(out, r->key, parse_cache_mode(value));
		else if (r->value == NO_VALUE)
			set_option(out, r->key, 1);
	}
}

const char *gpul_ptxas_options_in(const char *text, size_t n_bytes, size_t *n)
{
	static const char begin[] = GPUL_PTX_OPTIONS " ";
	const size_t n_begin = sizeof begin - 1;
	const char *newline;

	if (n_bytes < n_begin || memcmp(text, begin, n_begin) != 0)
		return NULL;
	newline = memchr(text, '\n', n_bytes);
	*n = (newline ? (size_t)(newline - text) : n_bytes) - n_begin;
	return text + n_begin;
}
