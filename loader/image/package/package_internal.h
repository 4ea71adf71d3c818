/* package_internal.h — declares the reader for each kind of package. */
#ifndef GPULOAD_LOADER_IMAGE_PACKAGE_PACKAGE_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_PACKAGE_PACKAGE_INTERNAL_H

#include <stdint.h>
#include <string.h>

#include "loader/image/package/package.h"

#define GPUL_PACKAGE_LIMIT ((uint64_t)8 << 30) /* maximum size of a member, and of a decompressed tar file */
#define GPUL_PACKAGE_HEAD  4096                /* bytes of a member that are read to recognise it */

typedef struct gpul_package { /* the arguments of gpul_package_visit() */
	const unsigned char *bytes;
	uint64_t n_bytes;
	const char *name;
	gpul_package_visitor *visit;
	void *context;
} gpul_package;

gpul_status gpul_zip_visit(const gpul_package *p, gpul_error *err);
gpul_status gpul_tar_visit(const gpul_package *p, gpul_error *err);
bool gpul_is_tar(const unsigned char *bytes, uint64_t n_bytes);

/* Decompress a file that is one gzip or zstd stream; *out is owned: free(). */
gpul_status gpul_unpack_gzip(const gpul_package *p, unsigned char **out, uint64_t *n_out, gpul_error *err);
gpul_status gpul_unpack_zstd(const gpul_package *p, unsigned char **out, uint64_t *n_out, gpul_error *err);

#endif
