/* run_core_table.c — the table of control-flow, memory and warp handlers, compiled for one instruction set, by operation (ops_core.h). */
#include "softcuda/exec/run/run_internal.h"

op_fn *const GPUL_BUILD(gpul_core_table)[OP_N_CORE] = {
#define X(name) [OP_##name] = GPUL_BUILD(op_##name),
	GPUL_CORE_OPS(X)
#undef X
};
