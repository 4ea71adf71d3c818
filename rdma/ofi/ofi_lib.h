/* ofi_lib.h — libfabric as a table of functions, opened when it is first needed.
 *
 * The table contains the functions that the library exports.  All other functions of its API are inline,
 * and call through objects that the exported functions return, so a test that installs another table controls all calls. */
#ifndef GPULOAD_RDMA_OFI_OFI_LIB_H
#define GPULOAD_RDMA_OFI_OFI_LIB_H

#include "core/error.h"

#if GPUL_HAVE_LIBFABRIC
#include <rdma/fabric.h>

#define GPUL_OFI_CALLS(X) X(fi_getinfo) X(fi_freeinfo) X(fi_dupinfo) X(fi_fabric) X(fi_strerror) X(fi_version)

struct gpul_ofi {
#define X(fn) __typeof__(fn) *fn;
	GPUL_OFI_CALLS(X)
#undef X
};
#endif

struct gpul_ofi;

/** Open libfabric.so.1 ($GPULOAD_LIBFABRIC: another path); only the first call opens it.  This takes 0.2 s, because libfabric's
 * providers search for their hardware.  Sets the environment variable FI_OFI_RXM_BUFFER_SIZE, if it is not set, to save memory.
 *
 * @out  valid until the process ends
 * @err  explains a failure
 * Errors  GPUL_EUNSUPPORTED it is not installed, too old, or gpuload was built without its headers
 * Source  POSIX dlopen() */
gpul_status gpul_ofi_open(const struct gpul_ofi **out, gpul_error *err);

/* For tests: make gpul_ofi_open() return this table from now on; NULL: the library's table again. */
void gpul_ofi_use(const struct gpul_ofi *table);

#endif
