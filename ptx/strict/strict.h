/* strict.h — refuses PTX that NVIDIA's ptxas refuses, even if the software driver could run it. */
#ifndef GPULOAD_PTX_STRICT_STRICT_H
#define GPULOAD_PTX_STRICT_STRICT_H

#include "ptx/module.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPUL_PTX_NEWEST 90u /* the newest .version that the check supports: 9.0, of CUDA 13.0 */

/** Return the newest .version that the driver of a CUDA version accepts, as major * 10 + minor.
 *
 * @cuda  as cuDriverGetVersion() reports it, 13000 for 13.0; at least 11000
 * Errors  none
 * Source  PTX ISA 9.0, Release Notes */
unsigned gpul_ptx_newest_of_cuda(int cuda);

/** Check a parsed module as ptxas does, for the module's .version and .target.
 *
 * @m          borrowed; the result of gpul_ptx_parse()
 * @text       the source text, borrowed; it is checked for details that the parsed module does not contain, such as control characters
 * @text_bytes its size in bytes
 * @file_name  for messages only
 * @newest     the newest accepted .version, as gpul_ptx_newest_of_cuda() returns it
 * Errors  GPUL_EUNSUPPORTED the .version is newer than `newest`, or does not exist; GPUL_EFORMAT ptxas refuses the module.
 *         Both have the first error as "kernel.ptx:12:7: abs has no type .u32: expected .s16, .s32, ...", and native = its line
 * Threads any thread may call; the module is only read
 * Source  PTX ISA 9.0; ptxas of CUDA 13.0 */
gpul_status gpul_ptx_check_strict(const gpul_ptx_module *m, const char *text, size_t text_bytes, const char *file_name, unsigned newest,
				  gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
