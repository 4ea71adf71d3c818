/* bare_ptx.c — reads the target and ptxas options of a PTX file from the lines before its first declaration. */
#include <ctype.h>
#include <string.h>

#include "loader/image/images_internal.h"

typedef struct reader {
	const char *at, *end;
	const char *options; /* from a `// ptxas options:` comment; NULL: none */
	size_t options_bytes;
} reader;

static size_t left(const reader *r)
{
	return (size_t)(r->end - r->at);
}

static bool at_space(const reader *r)
{
	return isspace((unsigned char)*r->at);
}

static void read_comment(reader *r, const char *text, size_t n)
{
	size_t known = sizeof GPUL_PTX_OPTIONS - 1;

	if (n <= known || memcmp(text, GPUL_PTX_OPTIONS, known) != 0)
		return;
	for (text += known, n -= known; n && isspace((unsigned char)*text); text++)
		n--;
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	r->options = n ? text : NULL;
	r->options_bytes = n;
}

static void skip_blank(reader *r)
{
	while (left(r)) {
		const char *stop;

		if (at_space(r)) {
			r->at++;
		} else if (left(r) > 1 && memcmp(r->at, "//", 2) == 0) {
			stop = memchr(r->at, '\n', left(r));
			stop = stop ? stop : r->end;
			read_comment(r, r->at, (size_t)(stop - r->at));
			r->at = stop;
		} else if (left(r) > 1 && memcmp(r->at, "/*", 2) == 0) {
			stop = memmem(r->at + 2, left(r) - 2, "*/", 2);
			r->at = stop ? stop + 2 : r->end;
		} else if (*r->at == '#') { /* a line marker of the C preprocessor */
			stop = memchr(r->at, '\n', left(r));
			r->at = stop ? stop : r->end;
		} else {
			return;
		}
	}
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Read the next word.  The result is empty if another character follows, which is not consumed. */
static gpul_span next_word(reader *r)
{
	const char *start;

	skip_blank(r);
	start = r->at;
	while (left(r) && is_word(*r->at))
		r->at++;
	return (gpul_span){ (const unsigned char *)start, (size_t)(r->at - start) };
}

static bool is_equal(gpul_span w, const char *text)
{
	return w.n == strlen(text) && memcmp(w.at, text, w.n) == 0;
}

/* Read a target such as sm_90a. */
static void read_arch(gpul_span w, gpul_image *image)
{
	unsigned sm = 0;
	size_t i = 3;

	if (w.n < 4 || memcmp(w.at, "sm_", 3) != 0)
		return;
	for (; i < w.n && isdigit(w.at[i]) && sm < 1000; i++)
		sm = sm * 10 + (unsigned)(w.at[i] - '0');
	image->sm = (uint16_t)sm;
	if (i < w.n && (w.at[i] == 'a' || w.at[i] == 'f'))
		image->suffix = (char)w.at[i];
}

/* Read the operands of .target, such as "sm_90a, texmode_unified, debug". */
static void read_target(reader *r, gpul_image *image)
{
	gpul_span w = next_word(r);

	read_arch(w, image);
	for (skip_blank(r); left(r) && *r->at == ','; skip_blank(r)) {
		r->at++;
		image->debug |= is_equal(next_word(r), "debug");
	}
}

gpul_status gpul_walk_ptx(const gpul_walk *w, gpul_span s)
{
	reader r = { .at = (const char *)s.at, .end = (const char *)s.at + s.n };
	gpul_image *image = gpul_walk_add(w, GPUL_NEW_UNIT);
	const unsigned char *file_end = w->file.at + w->file.n;

	if (!image)
		return GPUL_ENOMEM;
	image->kind = GPUL_IMAGE_PTX;
	image->stored = s.at;
	image->offset = (uint64_t)(s.at - w->file.at);
	image->bytes = image->stored_bytes = strnlen(r.at, s.n);
	/* PTX at the end of a mapped file is terminated, too, because a NUL follows the bytes of a gpul_file */
	image->ended = image->bytes < s.n || (w->source.bytes && s.at + s.n == file_end);
	if (is_equal(next_word(&r), ".version")) {
		next_word(&r);
		if (is_equal(next_word(&r), ".target"))
			read_target(&r, image);
	}
	image->options = r.options;
	image->options_bytes = r.options_bytes;
	return GPUL_OK;
}
