/* run_core_table.c — this build's handlers of the operations in ops_core.h. */
#include "softcuda/exec/run/run_internal.h"

op_fn *const GPUL_BUILD(gpul_core_table)[OP_N_CORE] = {
#define X(name) [OP_##name] = GPUL_BUILD(op_##name),
	GPUL_CORE_OPS(X)
#undef X
};
