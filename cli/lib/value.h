/* value.h — numbers of every element type: read from text, kept as bytes, printed. */
#ifndef GPULOAD_CLI_LIB_VALUE_H
#define GPULOAD_CLI_LIB_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/signature/signature.h"

#define VALUE_TEXT_BYTES 40  /* room for any element as text */

/* One number, wide enough for every type: floats in f, integers in i (two's complement). */
struct value {
	bool is_float, is_unsigned;
	double f;
	uint64_t i;
};

/** The type whose name is the first name_bytes of name ("f32"); GPUL_TYPE_NONE: none. */
gpul_type value_type(const char *name, size_t name_bytes);
bool value_type_is_float(gpul_type t);
bool value_type_is_signed(gpul_type t);  /* signed integer */

/** Read a number of type t: decimal, 0x hexadecimal, floats also as 1e-3, inf, nan, 0x1p-3.
 *
 * @t     the type it must fit
 * @text  all of it must be the number
 * @out   the number's gpul_type_bytes(t) bytes, little-endian as the GPU keeps them
 * Errors  GPUL_EINVAL not a number, or out of the type's range: the range is shown
 * Threads any thread may call
 * Source  - */
gpul_status value_parse(gpul_type t, const char *text, void *out, gpul_error *err);

/** A size or count: decimal or 0x, then K, M or G (1024, 1024², 1024³).
 *
 * @text        all of it must be the number
 * @text_bytes  its length
 * @out         the number
 * Errors  GPUL_EINVAL not such a number, or above SIZE_MAX
 * Threads any thread may call
 * Source  - */
gpul_status value_parse_size(const char *text, size_t text_bytes, size_t *out, gpul_error *err);

/** Seconds as people write them ("5", "0.2"), in milliseconds, rounded up; INT_MAX at most.
 *
 * @option  what it is for, as in messages: "wait"
 * @text    all of it must be the number
 * @out_ms  the time
 * Errors  GPUL_EINVAL not a number, or below 0
 * Threads any thread may call
 * Source  - */
gpul_status value_parse_seconds(const char *option, const char *text, int *out_ms,
				gpul_error *err);

struct value value_load(gpul_type t, const void *bytes);

/** Store an integer (wrapped to the type's width) or a float rounded to nearest even. */
void value_store_int(gpul_type t, uint64_t i, void *out);
void value_store_float(gpul_type t, double f, void *out);

/** The shortest text that reads back as the same element; returns buf. */
const char *value_print(gpul_type t, const void *bytes, char buf[VALUE_TEXT_BYTES]);

#endif
