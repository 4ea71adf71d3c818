/* image_filter.h — the options --sm, --kind and --match: which images of a file a command uses. */
#ifndef GPULOAD_CLI_LIB_OPTIONS_IMAGE_FILTER_H
#define GPULOAD_CLI_LIB_OPTIONS_IMAGE_FILTER_H

#include "core/error.h"
#include "loader/image/images.h"

#define IMAGE_SM_OPT   { "sm", "ARCH", "use only images for ARCH: 90 selects sm_90 and sm_90a, 90a only sm_90a", NULL }
#define IMAGE_KIND_OPT { "kind", "KIND", "use only images of this kind: ptx, cubin or lto", "ptx cubin lto" }

struct image_filter {
	uint16_t sm;          /* 90 for sm_90; 0: any architecture */
	char suffix;          /* suffix of the architecture, 'a' or 'f'; 0: any suffix, or none */
	gpul_image_kind kind; /* 0: any */
	const char *match;    /* shell glob for kernel names; NULL: any; borrowed; see cxx_name_matches() */
};

/** Parse the values of the options; a value is NULL if the option is not given.
 *
 * @sm     "90", "90a", "sm_90", "compute_90"
 * @kind   "ptx", "cubin", "lto"
 * @match  a shell glob
 * @out    filled in
 * Errors  GPUL_EINVAL not a valid value; the message gives the valid ones */
gpul_status image_filter_parse(const char *sm, const char *kind, const char *match, struct image_filter *out, gpul_error *err);

/** True if the image has the requested kind and architecture. */
bool image_filter_takes(const struct image_filter *f, const gpul_image *image);

#endif
