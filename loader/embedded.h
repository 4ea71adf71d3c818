/* embedded.h — loads the PTX that the build put into the program (core/file/embed.h). */
#ifndef GPULOAD_LOADER_EMBEDDED_H
#define GPULOAD_LOADER_EMBEDDED_H

#include "core/file/embed.h"
#include "loader/loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Unpack embedded PTX and load it.
 *
 * @drv   borrowed; must outlive *out; a context must be current
 * @file  defined by GPUL_EMBED()
 * @out   owned by the caller: gpul_module_unload(); untouched on failure
 * Errors  those of gpul_embedded_text() and gpul_module_load_ptx() */
gpul_status gpul_module_load_embedded(const gpul_driver *drv, const gpul_embedded *file, gpul_module **out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
