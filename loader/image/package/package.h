/* package.h — reads the files in a package: a wheel (.whl) or other zip file, or a tar file, plain or compressed by gzip or zstd.
 *
 *     package ── zip.c: central directory │ tar.c: headers ──> members that may contain device code ──> visitor
 *
 * Such members are recognised by their first bytes and their name (recognise.h); other members are not unpacked. */
#ifndef GPULOAD_LOADER_IMAGE_PACKAGE_PACKAGE_H
#define GPULOAD_LOADER_IMAGE_PACKAGE_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** True if these bytes are the start of a package.  For tar files, 512 bytes are needed.  Any thread. */
bool gpul_is_package(const void *bytes, size_t n_bytes);

/** True if a file with this start and name may contain device code: PTX, cubins, fatbins, objects, archives, libraries
 * and programs. False for CUDA C++, which must be compiled first.  Any thread. */
bool gpul_may_contain_code(const void *bytes, size_t n_bytes, const char *name);

/* Receives one member.  bytes are valid until the call returns.  failed: NULL, or why the member cannot be read (bytes is NULL);
 * return a failure to stop. */
typedef gpul_status gpul_package_visitor(const char *name, const void *bytes, size_t n_bytes, const gpul_error *failed, void *context,
					 gpul_error *err);

/** Visit the members that may contain device code, in the order of the package.
 *
 * Only one member is in memory at a time, but a compressed tar file is decompressed as a whole.
 *
 * @bytes    the package
 * @n_bytes  its length
 * @name     name of the package, for messages
 * @visit    called for each member; a status other than GPUL_OK ends the visits and is returned
 * @context  passed to visit
 * Errors  GPUL_EFORMAT the package is damaged or cut off, or larger than 8 GiB when decompressed; GPUL_EUNSUPPORTED compressed by a
 *         method that this build lacks; GPUL_ENOMEM; what visit returned
 * Source  PKWARE's APPNOTE 6.3.10 (zip), POSIX.1-2017 pax, "ustar Interchange Format" */
gpul_status gpul_package_visit(const void *bytes, size_t n_bytes, const char *name, gpul_package_visitor *visit, void *context,
			       gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
