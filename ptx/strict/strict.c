/* strict.c — checks .version and .target, and runs the other checks over the module. */
#include "ptx/strict/strict_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For each major version of PTX, its last minor version.  All earlier minor versions exist. */
static const unsigned char newest_minor[] = { [1] = 5, [2] = 3, [3] = 2, [4] = 3, [5] = 1, [6] = 5, [7] = 8, [8] = 8, [9] = 0 };

/* For each GPU architecture, the first .version that supports its targets sm_N, sm_Na and sm_Nf; 0: there is no such target. */
static const struct {
	unsigned char sm, plain, a, f;
} targets[] = {
	{ 10, 10, 0, 0 },    { 11, 10, 0, 0 },    { 12, 12, 0, 0 },    { 13, 12, 0, 0 },    { 20, 20, 0, 0 },    { 21, 20, 0, 0 },
	{ 30, 30, 0, 0 },    { 32, 40, 0, 0 },    { 35, 31, 0, 0 },    { 37, 41, 0, 0 },    { 50, 40, 0, 0 },    { 52, 41, 0, 0 },
	{ 53, 42, 0, 0 },    { 60, 50, 0, 0 },    { 61, 50, 0, 0 },    { 62, 50, 0, 0 },    { 70, 60, 0, 0 },    { 72, 61, 0, 0 },
	{ 75, 63, 0, 0 },    { 80, 70, 0, 0 },    { 82, 62, 0, 0 },    { 86, 71, 0, 0 },    { 87, 74, 0, 0 },    { 88, 73, 0, 0 },
	{ 89, 78, 0, 0 },    { 90, 78, 80, 0 },   { 100, 86, 86, 88 }, { 101, 86, 86, 88 }, { 103, 88, 88, 88 }, { 110, 90, 90, 90 },
	{ 120, 87, 87, 88 }, { 121, 88, 88, 88 },
};

unsigned gpul_ptx_newest_of_cuda(int cuda)
{
	static const struct {
		int cuda;
		unsigned version;
	} rows[] = {
		{ 13000, 90 }, { 12090, 88 }, { 12080, 87 }, { 12070, 86 }, { 12050, 85 }, { 12040, 84 },
		{ 12030, 83 }, { 12020, 82 }, { 12010, 81 }, { 12000, 80 }, { 11080, 78 }, { 11070, 77 },
		{ 11060, 76 }, { 11050, 75 }, { 11040, 74 }, { 11030, 73 }, { 11020, 72 }, { 11010, 71 },
	};

	if (cuda >= 13010) /* since 13.0, each minor version of CUDA has its own PTX version */
		return 90 + (unsigned)(cuda / 1000 - 13) * 10 + (unsigned)(cuda % 1000 / 10);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (cuda >= rows[i].cuda)
			return rows[i].version;
	return 70;
}

/* ---- .version and .target ----------------------------------------------------------------- */

/* Find the first occurrence of a directive outside comments, because the parsed module does not contain its position.  Returns
 * false if there is none. */
static bool find_directive(const char *text, size_t n_bytes, const char *word, uint32_t *line, uint32_t *column)
{
	const char *end = text + n_bytes, *line_start = text;
	size_t n = strlen(word);

	*line = 1;
	for (const char *at = text; at < end; at++) {
		if (at + 1 < end && at[0] == '/' && at[1] == '/') {
			at = memchr(at, '\n', (size_t)(end - at));
		} else if (at + 1 < end && at[0] == '/' && at[1] == '*') {
			const char *close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);

			for (; close && at < close; at++)
				if (*at == '\n') {
					++*line;
					line_start = at + 1;
				}
			at = close ? close + 1 : NULL;
		} else if ((size_t)(end - at) >= n && !memcmp(at, word, n)) {
			*column = (uint32_t)(at - line_start) + 1;
			return true;
		}
		if (!at)
			break;
		if (*at == '\n') {
			++*line;
			line_start = at + 1;
		}
	}
	*line = *column = 1;
	return false;
}

static gpul_status check_version(struct strict *s, const char *text, size_t n_bytes, unsigned newest)
{
	unsigned major = s->m->version_major, minor = s->m->version_minor;
	uint32_t line, column;

	find_directive(text, n_bytes, ".version", &line, &column);
	if (major > newest / 10 || (major == newest / 10 && minor > newest % 10))
		return gpul_fail(s->err, GPUL_EUNSUPPORTED, (int)line,
				 "%.100s:%u:%u: .version %u.%u is newer than %u.%u, the newest that is supported", s->file_name, line,
				 column, major, minor, newest / 10, newest % 10);
	if (major * 10 + minor > GPUL_PTX_NEWEST)
		return GPUL_OK;
	if (major < 1 || minor > newest_minor[major])
		return gpul_fail(s->err, GPUL_EUNSUPPORTED, (int)line, "%.100s:%u:%u: .version %u.%u does not exist", s->file_name, line,
				 column, major, minor);
	return GPUL_OK;
}

static gpul_status check_options(struct strict *s, uint32_t line, uint32_t column)
{
	static const char *const options[] = { "debug", "texmode_unified", "texmode_independent", "map_f64_to_f32" };

	for (const char *at = gpul_ptx_name(s->m, s->m->target); *at; at += strspn(at, ", ")) {
		size_t n_bytes = strcspn(at, ", ");
		bool known = !strncmp(at, "sm_", 3) || !strncmp(at, "compute_", 8);

		for (size_t i = 0; !known && i < sizeof options / sizeof *options; i++)
			known = strlen(options[i]) == n_bytes && !memcmp(at, options[i], n_bytes);
		if (!known)
			return strict_fail(s, line, column, ".target has no option '%.*s'", (int)n_bytes, at);
		if (!strncmp(at, "texmode_unified", n_bytes) && strstr(gpul_ptx_name(s->m, s->m->target), "texmode_independent"))
			return strict_fail(s, line, column, ".target has both texmode_unified and texmode_independent");
		if (!strncmp(at, "map_f64_to_f32", n_bytes) && s->sm >= 13)
			return strict_fail(s, line, column, "map_f64_to_f32 is not accepted for sm_13 and higher");
		at += n_bytes;
	}
	return GPUL_OK;
}

static gpul_status check_target(struct strict *s, const char *text, size_t n_bytes)
{
	const char suffix[2] = { s->m->sm_suffix, '\0' };
	uint32_t line, column;
	unsigned since = 0;

	find_directive(text, n_bytes, ".target", &line, &column);
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
		if (targets[i].sm == s->sm)
			since = *suffix == 'a' ? targets[i].a : *suffix == 'f' ? targets[i].f : *suffix ? 0 : targets[i].plain;
	if (s->version > GPUL_PTX_NEWEST && s->sm)
		return GPUL_OK;
	if (!since)
		return strict_fail(s, line, column, ".target sm_%u%s does not exist", s->sm, suffix);
	if (s->version < since)
		return strict_fail(s, line, column, ".target sm_%u%s needs .version %u.%u or higher; this module has %u.%u", s->sm, suffix,
				   since / 10, since % 10, s->version / 10, s->version % 10);
	if (s->m->debug && !find_directive(text, n_bytes, ".section", &(uint32_t){ 0 }, &(uint32_t){ 0 }))
		return strict_fail(s, line, column, ".target has the option debug, but the module has no debug information (a .section)");
	return check_options(s, line, column);
}

/* ---- the module --------------------------------------------------------------------------- */

gpul_status gpul_ptx_check_strict(const gpul_ptx_module *m, const char *text, size_t text_bytes, const char *file_name, unsigned newest,
				  gpul_error *err)
{
	struct strict *s = calloc(1, sizeof *s);
	gpul_status st;

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to check %.100s", file_name);
	s->m = m;
	s->file_name = file_name;
	s->version = m->version_major * 10 + m->version_minor;
	s->sm = m->sm;
	s->err = err;
	st = check_version(s, text, text_bytes, newest);
	if (!st)
		st = check_target(s, text, text_bytes);
	if (!st)
		st = strict_check_text(s, text, text_bytes);
	if (!st)
		st = strict_check_declarations(s);
	if (!st)
		st = strict_check_abi(s);
	for (uint32_t i = 0; !st && i < m->n_funcs; i++)
		st = strict_check_function(s, &m->funcs[i]);
	free(s);
	return st;
}
