/* cli_json.h — a streaming JSON writer: it builds no tree in memory and writes one line per object.
 *
 *     struct json j = { 0 };
 *     json_begin(&j, NULL, '{');
 *     json_text(&j, "file", path);              a member; inside [ ] the key is NULL
 *     json_begin(&j, "grid", '[');  json_u64(&j, NULL, 4);  json_end(&j, ']');
 *     json_end(&j, '}');
 *     json_print(&j, err);                      {"file":"a.ptx","grid":[4]}
 *
 * The caller closes objects and arrays in the right order; the writer adds commas and escapes.  Keys are constants
 * of the program and need no escapes. */
#ifndef GPULOAD_CLI_LIB_JSON_CLI_JSON_H
#define GPULOAD_CLI_LIB_JSON_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/out.h"
#include "core/error.h"
#include "loader/signature/signature.h"

struct json {
	struct out out;
	bool comma; /* the next value needs a comma before it */
};

void json_begin(struct json *j, const char *key, char bracket); /* bracket: '{' or '[' */
void json_end(struct json *j, char bracket);                    /* bracket: '}' or ']' */

/* Write one value: as a member with this key or, if the key is NULL, as an element of an array. */
void json_text(struct json *j, const char *key, const char *text);
void json_chars(struct json *j, const char *key, const char *text, size_t n);
void json_u64(struct json *j, const char *key, uint64_t value);
void json_i64(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value); /* infinities and NaN are written as null */
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* Write an array of n numbers. */
void json_u32s(struct json *j, const char *key, const uint32_t *values, size_t n);

/* Write an element of a buffer with all its digits, even if it is a 64-bit integer; inf and nan become strings. */
void json_element(struct json *j, const char *key, gpul_type t, const void *bytes);

/** Write the text and a newline to stdout, and free the text.
 *
 * @j  a closed object; empty afterwards, even after a failure
 * Errors  as out_flush()
 * Threads one at a time
 * Source  RFC 8259 */
gpul_status json_print(struct json *j, gpul_error *err);

#endif
