/* signature_internal.h — creates signatures: from the declaration of a kernel, or with n zeroed parameters. */
#ifndef GPULOAD_LOADER_SIGNATURE_SIGNATURE_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_SIGNATURE_INTERNAL_H

#include "loader/signature/signature.h"

typedef struct gpul_signature_owned {
	gpul_signature s; /* the first member, because gpul_signature_destroy() gets its address */
	char why_not[160];
	bool blocked; /* incomplete, and not only because sizes of buffers are unknown */
} gpul_signature_owned;

/** Create a signature from the kernel's declaration alone: offsets, sizes, structs, launch bounds;
 * complete, with roles UNKNOWN.
 *
 * @m     borrowed; must outlive *out
 * @f     a kernel of m
 * @out   owned by the caller: gpul_signature_destroy(&(*out)->s); untouched on failure
 * Errors  GPUL_EINVAL f is not a kernel with a body; GPUL_ENOMEM
 * Source  PTX ISA 9.0, 5.1.6 */
gpul_status gpul_signature_declared(const gpul_ptx_module *m, const gpul_ptx_func *f, gpul_signature_owned **out, gpul_error *err);

/* Create a complete signature of n zeroed parameters; NULL: out of memory. */
gpul_signature_owned *gpul_signature_blank(const char *kernel, size_t n_params);

/* Mark a signature as incomplete; the first reason given is kept. */
void gpul_incomplete(gpul_signature_owned *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Mark a signature as incomplete, because the size of a buffer is unknown; an assumed launch may show the size. */
void gpul_unsized(gpul_signature_owned *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
