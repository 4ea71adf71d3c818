/* toolkit.h — opens NVIDIA's toolkit libraries (NVRTC, nvJitLink) when they are first needed.
 *
 * These places are searched in this order:
 *
 *     an environment variable    the path of the file or of its folder; if it is set, nothing else is searched
 *     $CUDA_HOME, /usr/local/cuda
 *     the loader's own path      LD_LIBRARY_PATH, ldconfig
 *     cuda-wheels                in a parent folder of this program or library, or in lib/gpuload there:
 *                                configure.py --install-deps downloads it to build/cuda-wheels, and ninja install
 *                                copies it to <prefix>/lib/gpuload/cuda-wheels
 *     <prefix>/lib/gpuload       the prefix that configure.py was given, for programs that link libgpuload.a */
#ifndef GPULOAD_CORE_TOOLKIT_H
#define GPULOAD_CORE_TOOLKIT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PATH_MAX of Linux, which -std=c11 hides */
enum { GPUL_TOOLKIT_PATH_BYTES = 4096 };

/* An entry point: the name of the function, and the offset of its pointer in the table. */
typedef struct gpul_toolkit_entry {
	const char *name;
	size_t offset;
} gpul_toolkit_entry;

typedef struct gpul_toolkit_library {
	const char *variable;               /* environment variable that contains its path, such as "GPULOAD_NVRTC" */
	const char *const *names;           /* file names to try in each folder, best first; terminated by NULL */
	const gpul_toolkit_entry *entries;  /* required functions; terminated by a NULL name */
	void *table;                        /* the struct that receives the functions' addresses */
	void (*opened)(void);               /* called once, after table and path are filled in */
	const char *needed_for, *otherwise; /* start and end of the message that is written if the library is missing */
	const char *oldest;                 /* the first version with all entries, such as "CUDA 12.0" */

	/* filled in by gpul_toolkit_open() */
	char path[GPUL_TOOLKIT_PATH_BYTES]; /* the path that was opened, without symbolic links; "": unknown */
	bool tried;
	gpul_error why_not; /* .status is GPUL_OK if the library is open */
} gpul_toolkit_library;

/** Open a library and fill its table, once; every later call returns the first result.
 *
 * @library  static, because it stays in use: NVIDIA's libraries do not support dlclose()
 * Errors  GPUL_EUNSUPPORTED the library was not found (the text lists the places that were searched), or it lacks an entry point
 * Source  POSIX dlopen() */
gpul_status gpul_toolkit_open(gpul_toolkit_library *library, gpul_error *err);

/** Get the path of the library that gpul_toolkit_open() would open, without opening it (which takes 10 ms) and
 * without symbolic links.  False, path untouched: not found, or only dlopen() can find it.  Any thread. */
bool gpul_toolkit_locate(const gpul_toolkit_library *library, char path[GPUL_TOOLKIT_PATH_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
