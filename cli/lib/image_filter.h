/* image_filter.h — --sm, --kind and --match: which images of a file a command is about. */
#ifndef GPULOAD_CLI_LIB_IMAGE_FILTER_H
#define GPULOAD_CLI_LIB_IMAGE_FILTER_H

#include "cli/ls/cxx_names.h"
#include "loader/image/images.h"

#define IMAGE_SM_OPT { "sm", "ARCH", "only images for ARCH: 90 or sm_90 is sm_90 and sm_90a, 90a that alone", NULL }
#define IMAGE_KIND_OPT { "kind", "KIND", "only images of this kind", "ptx cubin lto" }

struct image_filter {
	uint16_t sm;          /* 90 of sm_90; 0: any */
	char suffix;          /* with sm: 'a' or 'f'; 0: any, and none */
	gpul_image_kind kind; /* 0: any */
	const char *match;    /* glob on kernels' names; NULL: any; borrowed */
};

/** Read the options' values, each of which may be NULL: not given.
 *
 * @sm     "90", "90a", "sm_90", "compute_90"
 * @kind   "ptx", "cubin", "lto"
 * @match  a glob, as of the shell
 * @out    filled in
 * Errors  GPUL_EINVAL not such a value: what would be one
 * Threads any thread may call
 * Source  - */
gpul_status image_filter_parse(const char *sm, const char *kind, const char *match,
			       struct image_filter *out, gpul_error *err);

/** Is the image of the kind and for the architecture asked for? */
bool image_filter_takes(const struct image_filter *f, const gpul_image *image);

/** Does the glob fit the kernel's name: mangled, as C++ has it, or that without the return type
 * and the parameters?
 *
 * mangled is the name in the image; name is the same of cxx_names_get(), NULL: no memory for it. */
bool image_filter_matches(const struct image_filter *f, const char *mangled,
			  const struct cxx_name *name);

#endif
