/* ptxas_options.h — the options that PTX came with: for ptxas, or for the driver's compiler in its
 * place.
 *
 *     fatbin entry ── "-O2 -maxrregcount=32" ──┐
 *     // ptxas options: -O2 -maxrregcount=32 ──┴──> CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_MAX_REGISTERS
 *
 * nvcc puts its -maxrregcount and -Xptxas into the fatbin beside the PTX; the driver honours some of
 * them when it loads a fatbin, and cannot when it is given the PTX alone.  An extracted PTX keeps
 * them as a comment on its first line. */
#ifndef GPULOAD_LOADER_LINK_PTXAS_OPTIONS_H
#define GPULOAD_LOADER_LINK_PTXAS_OPTIONS_H

#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The options that PTX carries on its first line (GPUL_PTX_OPTIONS in images.h); borrowed from it; NULL: it carries none.
 *
 * @text     PTX
 * @n_bytes  its length
 * @n        set to the options' length
 * Any thread. */
const char *gpul_ptxas_options_in(const char *text, size_t n_bytes, size_t *n);

#define GPUL_PTXAS_MOST 8 /* options that the driver's compiler knows too */

typedef struct gpul_ptxas_options {
	CUjit_option keys[GPUL_PTXAS_MOST];
	void *values[GPUL_PTXAS_MOST]; /* numbers in place of pointers, as cuda.h has it */
	unsigned n;
	char unknown[80]; /* options that the driver has no counterpart for, blank between; "" none */
} gpul_ptxas_options;

/** Options of ptxas as options of cuLibraryLoadData.
 *
 * What only makes ptxas talk (-v) is dropped; of one given twice the last counts.
 *
 * @text     as on ptxas's command line
 * @n_bytes  its length; NUL ends it too
 * @out      filled in
 * Any thread. */
void gpul_ptxas_options_parse(const char *text, size_t n_bytes, gpul_ptxas_options *out);

#ifdef __cplusplus
}
#endif

#endif
