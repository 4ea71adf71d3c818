/* json.h — what every --json shares.  Without cJSON at build, only json_missing() is left. */
#ifndef GPULOAD_CLI_JSON_H
#define GPULOAD_CLI_JSON_H

#include "core/error.h"
#include "loader/signature.h"

/** The error of a --json that this build cannot do.
 *
 * Errors  GPUL_EUNSUPPORTED always
 * Threads any thread may call
 * Source  - */
gpul_status json_missing(gpul_error *err);

#if GPUL_HAVE_CJSON
#include <cjson/cJSON.h>

/** An element as a JSON number with all digits (64-bit ones too); inf and nan as strings. */
cJSON *json_element(gpul_type t, const void *bytes);

/** Print an object on stdout and delete it.
 *
 * @object  owned by the call, also when it fails; NULL is GPUL_ENOMEM
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  RFC 8259 */
gpul_status json_print(cJSON *object, gpul_error *err);

/** An array of n unsigned numbers. */
cJSON *json_u32s(const uint32_t *values, size_t n);
#endif

#endif
