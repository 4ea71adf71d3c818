/* signature.h — what a kernel takes, and what its PTX tells about each parameter. */
#ifndef GPULOAD_LOADER_SIGNATURE_H
#define GPULOAD_LOADER_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "ptx/module.h"

typedef enum gpul_type {  /* element types that gpuload knows; the CLI spells them i8 ... f64 */
	GPUL_TYPE_NONE, GPUL_I8, GPUL_U8, GPUL_I16, GPUL_U16, GPUL_I32, GPUL_U32, GPUL_I64, GPUL_U64,
	GPUL_F16, GPUL_BF16, GPUL_F32, GPUL_F64, GPUL_N_TYPES
} gpul_type;

const char *gpul_type_name(gpul_type t);     /* "f32" */
size_t gpul_type_bytes(gpul_type t);

typedef enum gpul_param_role {
	GPUL_ROLE_UNKNOWN,   /* nothing tells */
	GPUL_ROLE_SCALAR,    /* used as a value */
	GPUL_ROLE_COUNT,     /* a value that bounds the thread index: elements of the buffers */
	GPUL_ROLE_BUFFER,    /* an address that is loaded from or stored to */
	GPUL_ROLE_STRUCT,    /* passed by value, more than a scalar */
} gpul_param_role;

typedef struct gpul_param {
	uint32_t offset, bytes, align;   /* in the parameter buffer */
	gpul_param_role role;
	gpul_type type;         /* SCALAR, COUNT: of the value; BUFFER: of the elements, NONE when loads disagree */
	bool loaded, stored;    /* BUFFER: by the kernel, atomics count as both */
	uint32_t vector;        /* BUFFER: elements per access as loaded (2 of v2.f64), 1 usually */
} gpul_param;

typedef struct gpul_signature {
	const char *kernel;      /* mangled */
	gpul_param *params;
	size_t n_params;
	bool complete;           /* every parameter's role and type could be told: run may invent arguments */
	const char *why_not;     /* not complete: what could not be told, one phrase */
	uint32_t grid_dims;      /* 1, 2 or 3: the highest of x, y, z that the kernel reads of %tid or %ctaid */
	uint32_t reqntid[3], maxntid[3];  /* 0: not given */
	bool uses_dynamic_shared;
} gpul_signature;

/** Work out a kernel's signature from how its PTX uses each parameter.
 *
 * @m     borrowed
 * @f     a kernel of m with a body
 * @out   owned by the caller: gpul_signature_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  PTX ISA 9.0, 5.1.6 (parameters), 9.7.9 (loads and stores) */
gpul_status gpul_signature_infer(const gpul_ptx_module *m, const gpul_ptx_func *f,
				 gpul_signature **out, gpul_error *err);
void gpul_signature_destroy(gpul_signature *s);  /* NULL is fine */

/** "vecadd(f64 *, f64 *, f64 *, i32)" into buf; returns the length the whole needs, as snprintf does. */
size_t gpul_signature_print(const gpul_signature *s, char *buf, size_t buf_bytes);

#endif
