/* cxx_names.h — finds the C++ names of kernels; each name is demangled only once.
 *
 * A library contains the same kernels for several architectures, and demangling is the most expensive
 * step of listing a kernel, so the results are kept until the end. */
#ifndef GPULOAD_CLI_LS_CXX_NAMES_H
#define GPULOAD_CLI_LS_CXX_NAMES_H

#include "loader/names/cxx_params.h"
#include "loader/image/kernels/kernels.h"

struct cxx_name {
	const char *mangled;
	const char *demangled; /* NULL: not a C++ name, or this machine has no demangler */
	size_t n_demangled;    /* length of `demangled` in bytes */
	size_t n_params;       /* GPUL_CXX_NO_LIST: the name has no parameter list */
	const gpul_cxx_param *params;
};

struct cxx_names; /* opaque; the struct is defined in cxx_names.c */

struct cxx_names *cxx_names_create(void);        /* NULL: no memory */
void cxx_names_destroy(struct cxx_names *names); /* accepts NULL; cannot fail */

/** Demangle a name, or return the result of an earlier call; borrowed from names.  NULL: no memory.  One thread at a time. */
const struct cxx_name *cxx_names_get(struct cxx_names *names, const char *mangled);

/** Return the types of a kernel's parameters according to its C++ name, one for each parameter.  NULL: name is NULL or has no
 * parameter list, or its parameters differ from the kernel's in number or size. */
const gpul_cxx_param *cxx_name_types(const struct cxx_name *name, const gpul_kernel_info *kernel);

/** True if a shell glob matches a kernel's mangled name, its C++ name, or its C++ name without return type and parameters, or if
 * glob is NULL. If name is NULL, only the mangled name is compared. */
bool cxx_name_matches(const char *glob, const char *mangled, const struct cxx_name *name);

#endif
