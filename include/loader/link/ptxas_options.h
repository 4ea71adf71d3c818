/* ptxas_options.h — converts the ptxas options that accompany PTX to options of the driver's JIT compiler.
 *
 *     fatbin entry ── "-O2 -maxrregcount=32" ──┐
 *     // ptxas options: -O2 -maxrregcount=32 ──┴──> CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_MAX_REGISTERS
 *
 * nvcc stores its -maxrregcount and -Xptxas options in the fatbin beside the PTX; the driver applies some of them when it loads a
 * fatbin, but not when it loads the PTX alone.  gpuload extract writes them as a comment on the first line of the PTX. */
#ifndef GPULOAD_LOADER_LINK_PTXAS_OPTIONS_H
#define GPULOAD_LOADER_LINK_PTXAS_OPTIONS_H

#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Find the options on the first line of PTX (GPUL_PTX_OPTIONS in images.h); borrowed from text; NULL: none.
 *
 * @text     PTX
 * @n_bytes  its length
 * @n        set to the options' length.  Any thread. */
const char *gpul_ptxas_options_in(const char *text, size_t n_bytes, size_t *n);

#define GPUL_PTXAS_MAX 8 /* maximum number of options that can be converted */

typedef struct gpul_ptxas_options {
	CUjit_option keys[GPUL_PTXAS_MAX];
	void *values[GPUL_PTXAS_MAX]; /* numbers cast to pointers, as cuLibraryLoadData expects */
	unsigned n;
	char unknown[80]; /* options without an equivalent in the driver, separated by blanks; "": none */
} gpul_ptxas_options;

/** Convert options of ptxas to options of cuLibraryLoadData.
 *
 * Options that only affect messages (-v) are dropped; if an option is given twice, the last one applies.
 *
 * @text     as on the command line of ptxas
 * @n_bytes  its maximum length; the text also ends at a NUL
 * @out      filled in.  Any thread. */
void gpul_ptxas_options_parse(const char *text, size_t n_bytes, gpul_ptxas_options *out);

#ifdef __cplusplus
}
#endif

#endif
