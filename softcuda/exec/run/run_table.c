/* run_table.c — the table of arithmetic handlers, compiled for one instruction set, by operation (ops_alu.h). */
#include "softcuda/exec/run/lanes_internal.h"

op_fn *const GPUL_BUILD(gpul_alu_table)[N_OPS - OP_ALU_FIRST] = {
#define X(name) [OP_##name - OP_ALU_FIRST] = GPUL_BUILD(op_##name),
	GPUL_ALU_OPS(X)
#undef X
};
