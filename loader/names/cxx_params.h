/* cxx_params.h — what a kernel's demangled C++ name tells of its parameters.
 *
 *     _Z6vecaddPKdS0_Pdi  ── demangle.h ──>  vecadd(double const*, double const*, double*, int)
 *                                                   f64, loaded    f64, loaded    f64      i32
 *
 * A name tells types, not sizes, and a mangled name without a parameter list tells nothing:
 * extern "C".  Who has the sizes as well (kernels.h, the driver) holds the two together. */
#ifndef GPULOAD_LOADER_NAMES_CXX_PARAMS_H
#define GPULOAD_LOADER_NAMES_CXX_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/signature/signature.h"

typedef struct gpul_cxx_param {
	const char *text; /* as written in C++; points into the demangled name, text_bytes long */
	size_t text_bytes;
	uint32_t bytes; /* size of the parameter; 0: its type's size is not known by name */
	gpul_type type; /* of the value, or of what a pointer leads to; NONE: none of ours */
	bool pointer;   /* an address of data: not of a function, not of a pointer */
	bool constant;  /* pointer to const: what it leads to is loaded, never stored */
} gpul_cxx_param;

#define GPUL_CXX_NO_LIST SIZE_MAX /* the name has no parameter list */

/** The parameters of a demangled name, in order: up to room of them are filled in.
 *
 * The number there are is returned, as snprintf does: 0 for "f()", GPUL_CXX_NO_LIST for "f".
 * @out may be NULL when room is 0.  Any thread. */
size_t gpul_cxx_params(const char *demangled, gpul_cxx_param *out, size_t room);

#endif
