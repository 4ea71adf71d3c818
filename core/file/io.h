/* io.h — reads or writes exactly n bytes, with as many calls of read() or write() as needed. */
#ifndef GPULOAD_CORE_FILE_IO_H
#define GPULOAD_CORE_FILE_IO_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Read n_bytes.  Returns false on an error (errno is set) or an early end of file (errno is 0).  Interrupted calls are repeated. */
bool gpul_read_all(int fd, void *bytes, size_t n_bytes);
/** Write n_bytes.  Returns false on an error; errno is set.  Interrupted calls are repeated. */
bool gpul_write_all(int fd, const void *bytes, size_t n_bytes);

#ifdef __cplusplus
}
#endif

#endif
