/* cxx_names.h — kernels' C++ names, each demangled once.
 *
 * A library has the same kernels for several architectures, and demangling costs more than all
 * else that is done to a name: what was made of it is kept until the end. */
#ifndef GPULOAD_CLI_LS_CXX_NAMES_H
#define GPULOAD_CLI_LS_CXX_NAMES_H

#include "loader/names/cxx_params.h"
#include "loader/image/kernels/kernels.h"

struct cxx_name {
	const char *demangled; /* NULL: it is no C++ name, or nothing here can demangle */
	size_t n_demangled;
	size_t n_params;       /* GPUL_CXX_NO_LIST: the name tells nothing of them */
	const gpul_cxx_param *params;
};

struct cxx_names; /* opaque: cxx_names.c */

struct cxx_names *cxx_names_create(void); /* NULL: no memory */
void cxx_names_destroy(struct cxx_names *names); /* NULL is fine; cannot fail */

/** What a mangled name says; borrowed from names.  NULL: no memory.  Any thread, several at once. */
const struct cxx_name *cxx_names_get(struct cxx_names *names, const char *mangled);

/** The parameters' types as the name has them, one for each of the kernel's own; NULL where name
 * is NULL, tells nothing, or disagrees with the kernel about their number or their sizes. */
const gpul_cxx_param *cxx_name_types(const struct cxx_name *name, const gpul_kernel_info *kernel);

#endif
