/* own_folder.h — finds the folder of this library; the build and the installation put other files next to the library. */
#ifndef GPULOAD_CORE_OWN_FOLDER_H
#define GPULOAD_CORE_OWN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Get the folder of the library or program that contains this code, without symbolic links; false: unknown.  Any thread. */
bool gpul_own_folder(char *folder, size_t folder_bytes);

#ifdef __cplusplus
}
#endif

#endif
