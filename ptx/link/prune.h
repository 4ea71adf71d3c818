/* prune.h — removes the parts of relocatable PTX that a kernel does not reach, before the PTX is parsed and linked.
 *
 *     kernel k ── body names ──> function f ── body names ──> variable table ── initializer names ──> functions g1, g2 ...
 *
 * Only declarations are parsed; in bodies and initializers, only the names are read. Removed parts become empty lines, so that
 * line numbers in messages stay correct.
 *
 * A table can refer to 100 MB of functions, as in NCCL, although a launch calls only one of them. If the total size of the
 * functions to which only initializers refer exceeds table_bytes, each of them gets a body that fails with a message when it is called. */
#ifndef GPULOAD_PTX_LINK_PRUNE_H
#define GPULOAD_PTX_LINK_PRUNE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ptx_text {
	const char *text; /* borrowed */
	size_t n_bytes;
	char *pruned; /* set by gpul_ptx_prune(): the remaining text, which the caller must free(); NULL: no text remains */
	size_t pruned_bytes;
} gpul_ptx_text;

typedef struct gpul_ptx_prune_options {
	bool (*is_root)(void *context, const char *kernel); /* returns true if the kernel with this mangled name is wanted */
	void *context;
	size_t table_bytes; /* limit of the total size of functions to which only initializers refer; SIZE_MAX: always link them */
} gpul_ptx_prune_options;

typedef struct gpul_ptx_prune_result {
	/* number of functions and kernels with a body: all, removed ones, and ones that fail if they are called */
	size_t n_functions, n_left_out, n_failing;
	const char *failing; /* PTX of a function that the failing bodies call, which must be linked, too; static; NULL: no body fails */
} gpul_ptx_prune_result;

/** Find the declarations that the wanted kernels reach in all texts together, and remove the others.
 *
 * @texts    array of n texts; their .pruned members are set on success, and untouched on failure
 * @n        at least 1
 * @options  borrowed
 * @out      filled in on success
 * Errors  GPUL_EFORMAT a text cannot be divided into declarations, or no text has a wanted kernel: link the texts as they are;
 *         GPUL_ENOMEM
 * Source  PTX ISA 9.0, Linking Directives */
gpul_status gpul_ptx_prune(gpul_ptx_text *texts, size_t n, const gpul_ptx_prune_options *options, gpul_ptx_prune_result *out,
			   gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
