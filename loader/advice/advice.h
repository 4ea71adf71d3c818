/* advice.h — what to do about the words of a compiler, a linker or a JIT: the messages that people
 * meet on the way to a kernel, and what is behind each.
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

/** What to do about a message, as one sentence in buf; NULL: nothing is known of it.
 *
 * said may be a whole log: the first message that is known counts.  Names in it are shown as in C++.
 * Any thread. */
const char *gpul_advice(const char *said, char buf[GPUL_ADVICE_BYTES]);

/** Add the advice to an error's own text, as far as it has room; does nothing where there is none, or
 * where err is NULL. */
void gpul_advise(gpul_error *err);

/** What is likely to surprise about a file with device code, or without, as one sentence: it waits for
 * its device link, the device link dropped a kernel, no host code can name its kernels.
 *
 * The text is in buf or is static; NULL: no advice.  Files with more than 16 MiB of device code are not examined.
 * The thread that the source belongs to. */
const char *gpul_advice_file(gpul_source *source, char buf[GPUL_ADVICE_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
