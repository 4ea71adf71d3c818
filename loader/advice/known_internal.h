/* known_internal.h — declares the tables of known messages, one for each kind of tool. */
#ifndef GPULOAD_LOADER_ADVICE_KNOWN_INTERNAL_H
#define GPULOAD_LOADER_ADVICE_KNOWN_INTERNAL_H

#include <stddef.h>

/* A row matches a line that contains `part` and, after it, `and_part`; the name for the advice follows `part` in the line.  The
 * first matching row is used, so rows for special messages come before rows for general ones. */
struct gpul_known_message {
	const char *part, *and_part; /* and_part is "" if there is no second part */
	const char *advice;          /* text of the advice, in which %s is replaced by the name */
};

struct gpul_known_table {
	const char *where; /* the rows apply only to lines that contain this text; NULL: to all lines */
	const struct gpul_known_message *rows;
	size_t n;
};

extern const struct gpul_known_table gpul_known_ptx, gpul_known_ptxas; /* messages of ptxas, and of the JIT compilers that contain it */
extern const struct gpul_known_table gpul_known_compilers, gpul_known_nvcc; /* of nvcc, of the programs that it starts, and of NVRTC */
extern const struct gpul_known_table gpul_known_link, gpul_known_nvlink;    /* of nvlink, nvJitLink, host linkers and the dynamic loader */
extern const struct gpul_known_table gpul_known_nccl, gpul_known_nccl_warning;
extern const struct gpul_known_table gpul_known_python; /* of PyTorch, CuPy, Numba, CMake, drivers and containers */

/* Return the advice on a CUDA driver or runtime error that a line contains by name or text; NULL: none. */
const char *gpul_known_cuda_error(const char *line);

#endif
