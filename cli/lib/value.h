/* value.h — parses, stores and prints numbers of every element type; prints times and rates with units. */
#ifndef GPULOAD_CLI_LIB_VALUE_H
#define GPULOAD_CLI_LIB_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/signature/signature.h"

#define VALUE_TEXT_BYTES 40 /* room for any element as text */

/* A number of any type: floats in f, integers in i (two's complement). */
struct value {
	bool is_float, is_unsigned;
	double f;
	uint64_t i;
};

/** Return the type whose name ("f32") is in the first name_bytes bytes of `name`; GPUL_TYPE_NONE: unknown. */
gpul_type value_type(const char *name, size_t name_bytes);
bool value_type_is_float(gpul_type t);
bool value_type_is_signed(gpul_type t); /* true for a signed integer */

/** Parse a number of type t: decimal or 0x hexadecimal; floats also as 1e-3, inf, nan, 0x1p-3.
 *
 * @t     type of the number
 * @text  the number and nothing else
 * @out   gets gpul_type_bytes(t) bytes, little-endian as on the GPU
 * Errors  GPUL_EINVAL not a number, or out of the range of the type; the message gives the range */
gpul_status value_parse(gpul_type t, const char *text, void *out, gpul_error *err);

/** Parse a size or a count: decimal or 0x, optionally followed by K, M or G (1024, 1024², 1024³).
 *
 * @text        the number and nothing else
 * @text_bytes  length of text
 * @out         the number
 * Errors  GPUL_EINVAL not a size, or above SIZE_MAX */
gpul_status value_parse_size(const char *text, size_t text_bytes, size_t *out, gpul_error *err);

/** Parse a decimal number, without K, M or G.
 *
 * @option  the option for the message, such as "--repeat"
 * @text    the number and nothing else; NULL: the option is not given, and *out keeps its value
 * @least   smallest number
 * @most    largest number, below ULLONG_MAX
 * @out     the number
 * Errors  GPUL_EINVAL not a number, or out of range */
gpul_status value_parse_count(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out, gpul_error *err);

/** Parse up to three sizes with colons between: "8", "8:1M", "8:256M:2".
 *
 * @text        the sizes
 * @text_bytes  length of text
 * @part        the sizes; those that are not given keep their value
 * @n_parts     their number; 4: there are more than three
 * Errors  as value_parse_size() */
gpul_status value_parse_sizes(const char *text, size_t text_bytes, size_t part[3], unsigned *n_parts, gpul_error *err);

/** Parse a time in seconds ("5", "0.2") into milliseconds, rounded up and at most INT_MAX.
 *
 * @option  name of the option for the message, such as "wait"
 * @text    the number and nothing else
 * @out_ms  the time in milliseconds
 * Errors  GPUL_EINVAL not a number, or below 0 */
gpul_status value_parse_seconds(const char *option, const char *text, int *out_ms, gpul_error *err);
/** Parse a time in seconds as value_parse_seconds(), but more than 0.
 *
 * @option  name of the option for the message, such as "wait"
 * @text    the number; NULL: the option is not given, and *out_ms keeps its value
 * @out_ms  the time in milliseconds
 * Errors  GPUL_EINVAL not a number, or not above 0 */
gpul_status value_parse_time(const char *option, const char *text, int *out_ms, gpul_error *err);

struct value value_load(gpul_type t, const void *bytes);

/** Store an integer (wrapped to the type's width), or a float (rounded to nearest even). */
void value_store_int(gpul_type t, uint64_t i, void *out);
void value_store_float(gpul_type t, double f, void *out);

/** Print an element with the fewest digits that parse back to it; returns buf. */
const char *value_print(gpul_type t, const void *bytes, char buf[VALUE_TEXT_BYTES]);

/* Times and rates with units for people; JSON has base units instead. */

#define UNITS_TEXT_BYTES 32

/** Write a time of at least 0 with four digits in the unit that fits: "184.2 us", "1.5 s".  Returns buf. */
const char *units_time(double seconds, char buf[UNITS_TEXT_BYTES]);

/** Write a rate of at least 0 with three digits and powers of 1000: "3.35 TB/s", "41 kB/s".  Returns buf. */
const char *units_rate(double bytes_per_s, char buf[UNITS_TEXT_BYTES]);

#endif
