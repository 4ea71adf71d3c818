/* link.h — relocatable device code, LTO too, to one image that loads: by NVIDIA's nvJitLink, opened
 * when first needed; for the software driver, to PTX. */
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
	const void *bytes; /* as gpul_image_unpack() gives them; PTX ends in NUL */
	size_t n_bytes;    /* without that NUL */
	const char *name;  /* for messages: file, member */
} gpul_link_input;

typedef struct gpul_linked {
	gpul_image_kind kind; /* CUBIN; PTX where PTX was asked for */
	void *bytes;          /* PTX: a NUL follows, not counted */
	size_t n_bytes;
	char *log;            /* what the linker had to say; NULL: nothing */
} gpul_linked;

typedef struct gpul_link_options {
	uint32_t cc;          /* device to link for */
	char suffix;          /* 'a', 'f' or 0 */
	bool to_ptx;          /* for a driver that runs PTX only: inputs must be PTX or LTO */
	const char *const *arguments; /* for nvJitLink besides, then NULL; NULL: none */
	bool no_cache;        /* neither look into the cache (cache.h) nor fill it */
} gpul_link_options;

/** Link.
 *
 * nvJitLink works in a child of this process (fork): it does not survive every damaged input.
 * The result has at least one kernel: an input that is not relocatable, which nvJitLink takes and
 * drops, is refused before.
 *
 * @inputs    n of them; borrowed
 * @n         at least 1
 * @options   borrowed
 * @out       filled in, on failure too (then only log may be set): gpul_linked_free()
 * Errors  GPUL_EUNSUPPORTED no nvJitLink here, or one too old for the device; GPUL_EFORMAT an
 *         input is not relocatable, or the linker refused: its own words with the symbol and the
 *         input, and what to do about it; GPUL_ENOMEM
 * Threads any thread may call
 * Source  nvJitLink documentation */
gpul_status gpul_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *options,
		      gpul_linked *out, gpul_error *err);
void gpul_linked_free(gpul_linked *l); /* a zeroed one is fine; cannot fail */

/** Which nvJitLink is used.
 *
 * @path   borrowed, stays; untouched on failure
 * @major  13 of CUDA 13.0; may be NULL
 * @minor  0 of it; may be NULL
 * Errors  GPUL_EUNSUPPORTED none was found; the text says where it was looked for
 * Threads any thread may call
 * Source  nvJitLink documentation: nvJitLinkVersion */
gpul_status gpul_link_find(const char **path, int *major, int *minor, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
