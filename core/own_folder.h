/* own_folder.h — where this code lies, for what was built or installed beside it. */
#ifndef GPULOAD_CORE_OWN_FOLDER_H
#define GPULOAD_CORE_OWN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The folder of the library or program that this code is in, without symbolic links; false: cannot be told.
 * Any thread. */
bool gpul_own_folder(char *folder, size_t folder_bytes);

#ifdef __cplusplus
}
#endif

#endif
