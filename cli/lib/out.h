/* out.h — a text buffer to which pieces are appended, and which is written in large blocks.
 *
 *     struct out o = { 0 };                an empty buffer owns no memory
 *     out_text(&o, "sm_"); out_u64(&o, 90);
 *     out_flush(&o);                       to stdout, in one write
 *
 * In a listing of 30,000 kernels, printf costs more than everything else, because it parses its format for every
 * number.  A failed allocation sets .failed, which stays set, so that a caller checks once, at the end. */
#ifndef GPULOAD_CLI_LIB_OUT_H
#define GPULOAD_CLI_LIB_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/error.h"

struct out {
	char *at; /* owned: out_free() */
	size_t n, room;
	bool failed; /* out of memory: text added afterwards was lost */
};

/* Make room for n more bytes; false: no memory. */
bool out_reserve(struct out *o, size_t n);

/* Append n bytes, or a NUL-terminated text.  Both functions are inline, because a listing calls them most often, and because the
 * compiler then knows the length of a literal. */
static inline void out_bytes(struct out *o, const void *bytes, size_t n)
{
	if (n && (o->room - o->n >= n || out_reserve(o, n))) {
		memcpy(o->at + o->n, bytes, n);
		o->n += n;
	}
}
static inline void out_text(struct out *o, const char *text)
{
	out_bytes(o, text, strlen(text));
}
/* Append characters of drawings, such as "┌─" or "──▶": in UTF-8, or in ASCII ("+-", "-->") if the locale has no UTF-8. */
void out_drawing(struct out *o, const char *text);
/* Append a decimal number. */
void out_u64(struct out *o, uint64_t value);
/* Append formatted text as printf does, cut off at 511 bytes.  It is slow: use it only for text that is rare. */
void out_add(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Append n times the same character. */
void out_repeat(struct out *o, char c, size_t n);

/* Append a name that was read from a file: control characters become '?', because such a name must not control the terminal. */
void out_name(struct out *o, const char *name, size_t n);

/* Append a column: a text padded with blanks on the right to width bytes, or a number padded on the left. */
void out_left(struct out *o, const char *text, size_t width);
void out_right(struct out *o, uint64_t value, size_t width);

/** Write the text to stdout and empty the buffer; its memory is kept for reuse.
 *
 * @o  the buffer; emptied even after a failure
 * Errors  GPUL_ENOMEM o->failed is set; GPUL_ESYS stdout cannot be written (native = errno; EPIPE: the reader has closed the pipe)
 * Threads one at a time */
gpul_status out_flush(struct out *o, gpul_error *err);
void out_free(struct out *o); /* accepts an *o of zeros; cannot fail */

/** True if the environment names a locale with UTF-8.
 *
 * Reads the first of LC_ALL, LC_CTYPE and LANG that is set and not empty.  The locale need not be installed, because its name tells which
 * characters the terminal shows.
 *
 * Threads any thread may call, but not while another one changes the environment
 * Source  POSIX.1-2017, XBD 8.2 Internationalization Variables */
bool locale_has_utf8(void);

#endif
