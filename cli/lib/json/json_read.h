/* json_read.h — parse JSON text into a tree, for the messages of a debug adapter. */
#ifndef GPULOAD_CLI_LIB_JSON_JSON_READ_H
#define GPULOAD_CLI_LIB_JSON_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct json_value {
	enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT } kind;
	const char *key;  /* name of a member of an object; else NULL */
	const char *text; /* JSON_TEXT: UTF-8 */
	double number;
	/* first: the first element or member of this value; next: the next one in the same array or object */
	struct json_value *first, *next;
};

/** Parse a text that is one JSON value.
 *
 * @text  the JSON; need not be NUL-terminated; not used after the call
 * @n     its size in bytes
 * @out   owned by the caller: json_free(); untouched on failure
 * Errors  GPUL_EFORMAT with the offset; more than 64 nested values; GPUL_ENOMEM
 * Source  RFC 8259 */
gpul_status json_parse(const char *text, size_t n, struct json_value **out, gpul_error *err);
void json_free(struct json_value *v); /* accepts NULL */

/* Return a member of an object; NULL: v is NULL or not an object, or has no such member. */
const struct json_value *json_get(const struct json_value *v, const char *key);
/* Each function returns the value of a member that has the type in the function's name; `other` if there is no such member. */
const char *json_get_text(const struct json_value *v, const char *key, const char *other);
int64_t json_get_integer(const struct json_value *v, const char *key, int64_t other);
bool json_get_bool(const struct json_value *v, const char *key, bool other);

#endif
