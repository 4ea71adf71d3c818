/* registers.h — applies the option -maxrregcount, which NVIDIA's compilers apply to machine code, to PTX, as .maxnreg. */
#ifndef GPULOAD_NVIDIA_REGISTERS_H
#define GPULOAD_NVIDIA_REGISTERS_H

#include <stddef.h>

/** Find the register limit in the options of a compiler: -maxrregcount=N, --maxrregcount=N, or N in the next option.
 *
 * @n_options  number of options
 * @options    borrowed; the last of several limits counts
 * Returns the limit; 0: there is none
 * Errors  none
 * Source  NVRTC and ptxas, options */
unsigned toolchain_max_registers(int n_options, const char *const *options);

/** Write PTX whose kernels have the limit, as gpul_ptx_limit_registers() sets it.
 *
 * @ptx        borrowed
 * @ptx_bytes  length of the text
 * @limit      registers of a thread; 0: no limit
 * Returns the text, NUL-terminated, owned by the caller: free(); NULL: there is no limit, or ptx/parse does not accept the text
 * Errors  none
 * Source  PTX ISA 9.0, .maxnreg */
char *toolchain_limit_registers(const char *ptx, size_t ptx_bytes, unsigned limit);

#endif
