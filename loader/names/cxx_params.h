/* cxx_params.h — reads the parameter types in a kernel's demangled C++ name.
 *
 *     _Z6vecaddPKdS0_Pdi  ── demangle.h ──>  vecadd(double const*, double const*, double*, int)
 *                                                   f64, loaded    f64, loaded    f64      i32
 *
 * A name gives types, but not the sizes of structs; an extern "C" name gives nothing.  A caller that has the sizes
 * from another source (kernels.h, the driver) compares both. */
#ifndef GPULOAD_LOADER_NAMES_CXX_PARAMS_H
#define GPULOAD_LOADER_NAMES_CXX_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/signature/signature.h"

typedef struct gpul_cxx_param {
	const char *text; /* the type as in C++, text_bytes long; points into the demangled name */
	size_t text_bytes;
	uint32_t bytes; /* size of the parameter; 0: unknown type */
	gpul_type type; /* type of the value or, for a pointer, of its elements; NONE: not in gpul_type */
	bool pointer;   /* a pointer to data, not to a function or another pointer */
	bool constant;  /* a pointer to const, whose elements are loaded, but never stored */
} gpul_cxx_param;

#define GPUL_CXX_NO_LIST SIZE_MAX /* the name has no parameter list */

/** Fill in the first `room` parameters of a demangled name.
 *
 * Returns the number of all parameters: 0 for "f()", GPUL_CXX_NO_LIST for "f".
 * @out may be NULL if room is 0.  Any thread. */
size_t gpul_cxx_params(const char *demangled, gpul_cxx_param *out, size_t room);

#endif
