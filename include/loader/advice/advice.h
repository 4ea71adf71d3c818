/* advice.h — gives advice on messages of compilers, linkers, JITs, CUDA and NCCL: the cause, and what to do.
 *
 *     ptxas error   : Undefined reference to 'VecAdd2' in '<input>'
 *       → VecAdd2 is only declared here: define it in this file, or ... */
#ifndef GPULOAD_LOADER_ADVICE_ADVICE_H
#define GPULOAD_LOADER_ADVICE_ADVICE_H

#include <stddef.h>

#include "core/error.h"
#include "loader/image/source.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPUL_ADVICE_BYTES 240

/** Give advice on a tool's message, as one sentence in buf; NULL: unknown message.
 *
 * message may be a whole log: the advice is for the first known message in it.  Names are shown as in C++.  Any thread. */
const char *gpul_advice(const char *message, char buf[GPUL_ADVICE_BYTES]);

/** Append advice on a compiler's or linker's message to the error's text, as much as fits.  Does nothing if there is no
 * advice or err is NULL; errors of CUDA bring their own advice (gpul_cu_status()). */
void gpul_advise(gpul_error *err);

/** Give advice, in one sentence, on a file that will not work as its user may expect: its device code is not linked yet, the device
 * link dropped a kernel, or the host code of other files cannot refer to its kernels.
 *
 * The text is in buf or is static; NULL: no advice.  Files with more than 16 MiB of device code are not
 * examined.  Only one thread at a time may use a source. */
const char *gpul_advice_file(gpul_source *source, char buf[GPUL_ADVICE_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
