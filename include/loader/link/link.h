/* link.h — links relocatable device code, including LTO code, into one image that a driver can load: machine code with NVIDIA's
 * nvJitLink, which is opened when first needed; or PTX, for a driver that runs only PTX. */
#ifndef GPULOAD_LOADER_LINK_LINK_H
#define GPULOAD_LOADER_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/image/images.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_link_input {
	gpul_image_kind kind;
	const void *bytes; /* the image as gpul_image_unpack() returns it; PTX ends in NUL */
	size_t n_bytes;    /* without the NUL at the end of PTX */
	const char *name;  /* name for messages: the file and the member */
} gpul_link_input;

typedef struct gpul_linked {
	gpul_image_kind kind; /* PTX if options.to_ptx; else CUBIN */
	void *bytes;          /* if PTX: a NUL follows, not counted in n_bytes */
	size_t n_bytes;
	char *log;                    /* the linker's log; NULL: empty */
	size_t n_left_out, n_failing; /* ptx/link/prune.h: number of functions that were left out of the PTX, and number of functions
				       * that fail if they are called */
} gpul_linked;

typedef struct gpul_link_options {
	uint32_t cc;                  /* compute capability of the device to link for: 90 for 9.0 */
	char suffix;                  /* suffix of the target: 'a', 'f' or 0 */
	bool to_ptx;                  /* for a driver that runs PTX only: inputs must be PTX or LTO */
	const char *const *arguments; /* more options for nvJitLink, terminated by NULL; NULL: no options */
	bool no_cache;                /* do not use the cache (cache.h) */
	/* Omit the functions and variables that no wanted kernel reaches (ptx/link/prune.h), unless an input is LTO code. */
	bool prune;
	const char *kernel; /* the wanted kernel, as a user may write its name (loader/names/names.h); NULL: all kernels are wanted */
	bool link_all;      /* with prune: link functions that only a table refers to, however large they are */
} gpul_link_options;

/** Link n inputs into one image with at least one kernel.
 *
 * nvJitLink runs in a child process (fork), because it crashes on some damaged inputs.  An input that
 * is not relocatable is refused; nvJitLink would silently ignore it.
 *
 * @inputs    array of n inputs; borrowed
 * @n         at least 1
 * @options   borrowed
 * @out       filled in, on failure too (then only log may be set): gpul_linked_free()
 * Errors  GPUL_EUNSUPPORTED no nvJitLink is installed, or it is too old for the device; GPUL_EFORMAT an input is not relocatable,
 *         or the link failed: the linker's message with symbol and input, and what to do; GPUL_ENOMEM
 * Source  nvJitLink documentation */
gpul_status gpul_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *options, gpul_linked *out, gpul_error *err);
void gpul_linked_free(gpul_linked *l); /* accepts a zeroed *l; cannot fail */

/** Find the nvJitLink that gpul_link() uses.
 *
 * @path   borrowed, valid until the process ends; untouched on failure
 * @major  13 for CUDA 13.0; may be NULL
 * @minor  0 for CUDA 13.0; may be NULL
 * Errors  GPUL_EUNSUPPORTED none was found; the text lists the places searched
 * Source  nvJitLink documentation: nvJitLinkVersion */
gpul_status gpul_link_find(const char **path, int *major, int *minor, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
