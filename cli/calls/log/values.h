/* values.h — writes a value of a CUDA type as text or as JSON. */
#ifndef GPULOAD_CLI_CALLS_LOG_VALUES_H
#define GPULOAD_CLI_CALLS_LOG_VALUES_H

#include "cli/calls/log/event.h"
#include "cli/calls/log/kernel_names.h"
#include "cli/lib/json/cli_json.h"
#include "cli/lib/out.h"

struct value_context {
	const struct kernel_names *names;
	int pid;
};

/* Append a value of type->n_bytes bytes as text: 4096, 0x7f00, CUDA_SUCCESS, {x=1, y=2}.  is_kernel: with the name of the kernel. */
void value_add_text(struct out *o, const struct value_context *c, const struct calls_type *type, bool is_kernel, const uint8_t *bytes);

/* Write a value as a JSON member (key NULL: as an element): numbers as numbers, addresses and constants as strings, structs as objects. */
void value_add_json(struct json *j, const struct value_context *c, const struct calls_type *type, const char *key, const uint8_t *bytes);

/* Return the name of a constant; NULL: none. */
const char *value_constant(const struct calls_type *type, int64_t value);

/* Return the name of the kernel that a call launches; NULL: it launches none, or the name is unknown. */
const char *value_launched_kernel(const struct value_context *c, const struct calls_event *e);

/* Append a text in quotation marks, with escapes. */
void value_add_quoted(struct out *o, const struct calls_piece *p);

#endif
