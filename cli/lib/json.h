/* json.h — JSON written as it is made: no tree in memory, one line of text an object.
 *
 *     struct json j = { 0 };
 *     json_begin(&j, NULL, '{');
 *     json_text(&j, "file", path);              a member; inside [ ] the key is NULL
 *     json_begin(&j, "grid", '[');  json_u64(&j, NULL, 4);  json_end(&j, ']');
 *     json_end(&j, '}');
 *     json_print(&j, err);                      {"file":"a.ptx","grid":[4]}
 *
 * The caller opens and closes in order; commas and escapes are this module's.  Keys are texts of
 * the program's own that need no escapes. */
#ifndef GPULOAD_CLI_LIB_JSON_H
#define GPULOAD_CLI_LIB_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/out.h"
#include "core/error.h"
#include "loader/signature/signature.h"

struct json {
	struct out out;
	bool comma; /* one is due before the next value */
};

void json_begin(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_end(struct json *j, char bracket);                    /* '}' or ']' */

/* One value, as a member called key or, with NULL, as an element. */
void json_text(struct json *j, const char *key, const char *text);
void json_chars(struct json *j, const char *key, const char *text, size_t n);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value); /* inf and nan: null */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* An array of n numbers. */
void json_u32s(struct json *j, const char *key, const uint32_t *values, size_t n);

/* An element of a buffer as a number with all its digits (64-bit ones too); inf, nan: texts. */
void json_element(struct json *j, const char *key, gpul_type t, const void *bytes);

/** Write what was made, and a line end, to stdout; free it.
 *
 * @j  a closed object; empty afterwards, also when this fails
 * Errors  those of out_flush()
 * Threads one at a time
 * Source  RFC 8259 */
gpul_status json_print(struct json *j, gpul_error *err);

#endif
