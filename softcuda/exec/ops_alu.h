/* ops_alu.h — the arithmetic operations, each once: X(NAME) has the handler op_NAME. */
#ifndef GPULOAD_SOFTCUDA_EXEC_OPS_ALU_H
#define GPULOAD_SOFTCUDA_EXEC_OPS_ALU_H

#define GPUL_ALU_OPS(X) \
	X(ADD_S32)

#endif
