/* ops_core.h — the operations of control, memory and the warp, each once: X(NAME) has the handler op_NAME. */
#ifndef GPULOAD_SOFTCUDA_EXEC_OPS_CORE_H
#define GPULOAD_SOFTCUDA_EXEC_OPS_CORE_H

#define GPUL_CORE_OPS(X) \
	X(EXIT)

#endif
