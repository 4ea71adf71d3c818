/* real.h — finds and opens the NVIDIA library that one of gpuload's libraries replaces.
 *
 *     client ── dlopen("libnvrtc.so.13") ──> ours ── dlopen("/…/nvidia/cu13/lib/libnvrtc.so.13") ──> NVIDIA's
 *
 * Both have the same name, so NVIDIA's is opened by its path.  These folders are searched in this order, first for the file of the
 * same CUDA version as ours, then for other versions:
 *
 *     an environment variable        the path of the file or of its folder; if it is set, nothing else is searched
 *     site-packages/nvidia           of the Python packages that have a library loaded in this process, and of
 *                                    $GPULOAD_SITE_PACKAGES, $VIRTUAL_ENV, $CONDA_PREFIX
 *     $CONDA_PREFIX/lib
 *     $CUDA_HOME, $CUDA_PATH, /usr/local/cuda: lib64, lib
 *     LD_LIBRARY_PATH, /usr/lib/<machine>, /usr/lib
 *     cuda-wheels                    in a parent folder of this library, or in lib/gpuload there */
#ifndef GPULOAD_NVIDIA_REAL_H
#define GPULOAD_NVIDIA_REAL_H

#include <stdbool.h>
#include <stddef.h>

enum { TOOLCHAIN_PATH_BYTES = 4096 };

typedef struct toolchain_entry {
	const char *name;
	size_t offset;
} toolchain_entry;

typedef struct toolchain_real {
	const char *variable; /* environment variable with the path of the library: "GPULOAD_NVRTC" */
	const char *stem;     /* file name of the library without its version: "libnvrtc.so" */
	const char *wheel;    /* folder of the library's wheel for CUDA 12, below nvidia/: "cuda_nvrtc" */
	const char *package;  /* name of a package that contains the library, for the message if the library is missing */
	/* the functions, terminated by a NULL name; a function that the library lacks becomes NULL in the table */
	const toolchain_entry *entries;
	void *table;                                    /* the struct that receives the functions' addresses */
	void (*opened)(void *handle, const char *path); /* called once after the table is filled in; may be NULL */
	char path[TOOLCHAIN_PATH_BYTES];                /* set by toolchain_open(); "": not found */
} toolchain_real;

/** Open a library and fill its table, once; later calls return the first result. A missing library is reported on stderr.
 *
 * @real  static: it stays open
 * Returns true if the library is open
 * Source  POSIX dlopen(); the layout of NVIDIA's wheels as installed by pip */
bool toolchain_open(toolchain_real *real);

/** Find one of NVIDIA's libraries or programs, and visit each place where it may be.
 *
 * @variable  environment variable with the path of the file or of its folder
 * @wheel     folder below nvidia/ in site-packages that is searched, in addition to nvidia/cu13 and nvidia/cu12
 * @sub       sub-folders of a toolkit or wheel to search, best first, then NULL
 * @files     file names, best first, then NULL
 * @visit     called for each existing file that is not part of gpuload, until it returns true
 * @context   passed to visit
 * Returns true if a call of visit returned true
 * Source  the layout of NVIDIA's toolkits and wheels */
bool toolchain_search(const char *variable, const char *wheel, const char *const *sub, const char *const *files,
		      bool (*visit)(const char *path, void *context), void *context);

#endif
