/* ls_rows.h — the kernels of all images of a file as rows in memory, for --group, --sort and --diff. */
#ifndef GPULOAD_CLI_LS_LS_ROWS_H
#define GPULOAD_CLI_LS_LS_ROWS_H

#include "cli/ls/ls.h"
#include "core/array.h"

struct ls_row {
	gpul_kernel_info info;      /* name: borrowed from cxx; params: owned by the rows */
	const struct cxx_name *cxx; /* borrowed from ls->names */
	size_t image;               /* index of the image */
	gpul_image_kind kind;
	uint32_t sm;   /* number of the architecture: 90 for sm_90a */
	char arch[16]; /* such as "sm_90a" */
};

struct ls_rows {
	GPUL_ARRAY(struct ls_row) list;
};

/** Collect the selected kernels of a file.  A damaged image is reported on stderr, and ls->failed is set.
 *
 * @ls      the command line
 * @path    path of the file, for messages
 * @images  images of the file
 * @out     owned by the caller: ls_rows_free(), even after a failure
 * Errors  GPUL_ENOMEM
 * Threads one at a time */
gpul_status ls_rows_collect(struct ls *ls, const char *path, const gpul_images *images, struct ls_rows *out, gpul_error *err);
void ls_rows_free(struct ls_rows *rows); /* accepts *rows of zeros; cannot fail */

/** Print the kernels of a file as --group and --sort request.
 *
 * @ls      the command line
 * @path    path of the file
 * @images  images of the file
 * Errors  GPUL_ENOMEM; as out_flush()
 * Threads one at a time */
gpul_status ls_sorted(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err);

/** Compare the kernels of two files, and print those that are gone, new or changed.
 *
 * @ls    the command line
 * @old   path of the old file
 * @new_  path of the new file
 * Errors  of gpul_source_open() and gpul_source_images(); GPUL_ENOMEM; as out_flush()
 * Threads one at a time */
gpul_status ls_diff(struct ls *ls, const char *old, const char *new_, gpul_error *err);

#endif
