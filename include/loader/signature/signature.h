/* signature.h — infers the sizes, roles and types of a kernel's parameters from its PTX. */
#ifndef GPULOAD_LOADER_SIGNATURE_SIGNATURE_H
#define GPULOAD_LOADER_SIGNATURE_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "ptx/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Element types; the CLI spells them i8 ... f64. */
typedef enum gpul_type {
	GPUL_TYPE_NONE,
	GPUL_I8,
	GPUL_U8,
	GPUL_I16,
	GPUL_U16,
	GPUL_I32,
	GPUL_U32,
	GPUL_I64,
	GPUL_U64,
	GPUL_F16,
	GPUL_BF16,
	GPUL_F32,
	GPUL_F64,
	GPUL_N_TYPES
} gpul_type;

/** Return the name, such as "f32"; NONE or out of range: "?". */
const char *gpul_type_name(gpul_type t);
/** Return the bytes of one element; NONE or out of range: 0. */
size_t gpul_type_bytes(gpul_type t);
/** Return the type with this name ("f32"), or GPUL_TYPE_NONE. */
gpul_type gpul_type_find(const char *name);

/* The most bytes that a buffer of an assumed launch may need. */
#define GPUL_ASSUMED_BYTES_MAX ((int64_t)64 << 20)

typedef enum gpul_param_role {
	GPUL_ROLE_UNKNOWN,  /* may be a pointer or a value; if its type is not NONE, the kernel does not use the parameter */
	GPUL_ROLE_SCALAR,   /* a value, or a parameter that is unused and too small for an address */
	GPUL_ROLE_COUNT,    /* a value that bounds the thread index: the element count of the buffers */
	GPUL_ROLE_BUFFER,   /* a pointer that is loaded from or stored to */
	GPUL_ROLE_STRUCT,   /* a struct or array, passed by value */
	GPUL_ROLE_FUNCTION, /* a device function pointer that is called (symbol.h) */
} gpul_param_role;

typedef struct gpul_param {
	uint32_t offset, bytes, align; /* in bytes; offset counts from the start of the parameter buffer or, for a member, of its struct */
	gpul_param_role role;
	gpul_type type;      /* type of the value, or of a BUFFER's elements; NONE: unknown */
	bool loaded, stored; /* BUFFER: the kernel loads from it, or stores to it; an atomic does both */
	/* BUFFER: elements per thread index: usually 1; 2 for double2[] (v2.f64).  N threads need N * vector elements. */
	uint32_t vector;
	uint32_t beyond; /* BUFFER: elements accessed past those N * vector: 1 for a[i + 1] */
	/* STRUCT: the members that the code loads, by position; NULL: none is known.  The code does not use other bytes. */
	struct gpul_param *members;
	uint32_t n_members;
	uint64_t elements; /* if .assumed: number of elements that a BUFFER needs */
	bool zeros;        /* if .assumed: the elements of the BUFFER must be 0 */
	int64_t value;     /* if .assumed: the value of a COUNT or integer SCALAR */
} gpul_param;

typedef struct gpul_signature {
	const char *kernel; /* mangled name; borrowed from the module */
	gpul_param *params;
	size_t n_params;
	/* Every role and type is known, and buffers of COUNT * vector + beyond elements
	 * (without a COUNT: threads * vector) are big enough, so that a caller can generate arguments. */
	bool complete;
	const char *why_not; /* not complete: the reason, one phrase; else NULL */
	/* True: the code does not show the sizes for every launch.  The signature is complete for one assumed
	 * launch only, with the elements, zeros and values in params[]. */
	bool assumed;
	uint32_t grid[3], block[3];
	uint32_t grid_dims; /* number of dimensions of %tid and %ctaid that the code reads, 1 to 3 */
	/* Whether the code reads %tid, and whether it reads %ctaid.  A kernel that does not read %ctaid does the same work in each
	 * block, so one block is enough. */
	bool reads_tid, reads_ctaid;
	uint32_t reqntid[3], maxntid[3]; /* launch bounds; 0: not declared */
	uint32_t shared_threads;         /* threads per block that fit in the .shared arrays; 0: any number */
	bool uses_dynamic_shared;
} gpul_signature;

/** Infer a kernel's signature from how its PTX uses each parameter.
 *
 * The signature contains only facts that the code proves.  If the code does not show a fact, the signature is
 * incomplete, but not wrong.
 *
 * @m     borrowed; must outlive *out, whose kernel name points into it
 * @f     a kernel of m with a body
 * @out   owned by the caller: gpul_signature_destroy(); untouched on failure
 * Errors  GPUL_EINVAL f is not a kernel with a body; GPUL_ENOMEM
 * Source  PTX ISA 9.0, 5.1.6 (parameters), 9.7.9 (loads and stores) */
gpul_status gpul_signature_infer(const gpul_ptx_module *m, const gpul_ptx_func *f, gpul_signature **out, gpul_error *err);
/** Free a signature; accepts NULL; cannot fail. */
void gpul_signature_destroy(gpul_signature *s);

/** Write "vecadd(f64 *, f64 *, f64 *, i32)" to buf; returns the length of the whole text, as snprintf does. */
size_t gpul_signature_print(const gpul_signature *s, char *buf, size_t buf_bytes);
/** Return the whole text of gpul_signature_print(); the caller frees it.  NULL: out of memory. */
char *gpul_signature_text(const gpul_signature *s);

#ifdef __cplusplus
}
#endif

#endif
