/* ls.h — what `gpuload ls` tells of a kernel, before it is printed. */
#ifndef GPULOAD_CLI_LS_H
#define GPULOAD_CLI_LS_H

#include <stdint.h>

#include "loader/signature.h"
#include "ptx/module.h"

/* Registers as declared: PTX is not allocated yet, so these are virtual ones. */
struct ls_registers { uint32_t b16, b32, b64, b128, predicates; };

struct ls_kernel {
	const gpul_ptx_func *func;
	gpul_signature *signature;    /* owned */
	char *demangled;              /* owned; NULL: the name is not a C++ one */
	struct ls_registers registers;
	/* Variables of the body, and those of the module that its code names. */
	uint64_t shared_bytes, local_bytes, const_bytes;
};

/** Fill one row.
 *
 * @m     borrowed; must outlive *out
 * @f     a kernel of m with a body
 * @out   owned by the caller: ls_kernel_free(), also after a failure
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  PTX ISA 9.0, 5.1 (state spaces) */
gpul_status ls_kernel(const gpul_ptx_module *m, const gpul_ptx_func *f, struct ls_kernel *out,
		      gpul_error *err);
void ls_kernel_free(struct ls_kernel *k);

#endif
