/* out.h — text that is made piece by piece and written in large blocks.
 *
 *     struct out o = { 0 };                an empty one owns nothing
 *     out_text(&o, "sm_"); out_u64(&o, 90);
 *     out_flush(&o);                       to stdout, in one write
 *
 * printf costs more than all else in a listing of 30,000 kernels: it reads its format anew for
 * each number.  Running out of memory sticks (.failed), so that a writer asks once, at the end. */
#ifndef GPULOAD_CLI_LIB_OUT_H
#define GPULOAD_CLI_LIB_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/error.h"

struct out {
	char *at;      /* owned: out_free() */
	size_t n, room;
	bool failed;   /* no memory: what was added since is not there */
};

/* Make room for n more bytes; false: no memory. */
bool out_reserve(struct out *o, size_t n);

/* Add bytes; a NUL-terminated text; a number; n times the same character.  The first two are what
 * a listing spends its time in, and so are inline: the length of a literal is known then. */
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
void out_u64(struct out *o, uint64_t value);
/* Add what printf would write, for what is short and seldom; cut off at 511 bytes. */
void out_add(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void out_repeat(struct out *o, char c, size_t n);

/* Add a name out of a file: control characters become '?', so that no file can send a terminal
 * commands. */
void out_name(struct out *o, const char *name, size_t n);

/* Add what fills a column: padded at the right to width bytes, or a number padded at the left. */
void out_left(struct out *o, const char *text, size_t width);
void out_right(struct out *o, uint64_t value, size_t width);

/** Write to stdout, and empty the buffer; its room is kept.
 *
 * @o  to be written; emptied even when that fails
 * Errors  GPUL_ENOMEM o failed; GPUL_ESYS stdout takes no more (native = errno; EPIPE: whoever
 *         read has gone)
 * Threads one at a time
 * Source  - */
gpul_status out_flush(struct out *o, gpul_error *err);
void out_free(struct out *o); /* a zeroed one is fine; cannot fail */

#endif
