/* options.h — defines the options for loading a file: which code is loaded, and how it is compiled and linked. */
#ifndef GPULOAD_LOADER_CHOOSE_OPTIONS_H
#define GPULOAD_LOADER_CHOOSE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_load_options {
	int device;                    /* ordinal of the device on which the code will run; default 0 */
	const char *const *nvrtc_args; /* options for NVRTC (-I, -D, --std ...), terminated by NULL; NULL: no options */
	bool verbose_log;              /* log the registers and spills that the driver's compiler reports */
	const char *kernel;            /* the kernel that the caller will look up: if the file has several units
	                        * (select.h), the unit with this kernel is loaded.  NULL: exactly one unit
	                        * may have kernels, unless all are to be linked */
	/* If code is linked to PTX (link.h), link only what `kernel` reaches (NULL: what any kernel reaches).  The module then lacks the
	 * other kernels, and the variables that only they use. */
	bool kernel_only;
	bool link_all;                /* with kernel_only: also link large functions that are referenced only by a table of functions */
	uint32_t only_sm;             /* consider images for this architecture only; 0: all that can run on the device */
	char only_suffix;             /* used with only_sm: suffix 'a' or 'f'; 0: any suffix or none */
	uint32_t only_kind;           /* consider images of this enum gpul_image_kind only; 0: any */
	const char *const *link_args; /* options for nvJitLink, terminated by NULL; NULL: no options */
	bool no_cache;                /* compile and link again, without the cache (cache.h) */
	/* Called for each image that was considered, in order, with its verdict (enum gpul_verdict) in one sentence; NULL: not called. */
	void (*explain)(void *context, const char *line);
	void *explain_context;
	/* Called when CUDA C++ does not compile, with all messages of the compiler: each error has its source line, as the
	 * compiler shows it.  NULL: only the first error is reported, in the gpul_error. */
	void (*compiler_log)(void *context, const char *log);
	void *compiler_log_context;
} gpul_load_options;

#ifdef __cplusplus
}
#endif

#endif
