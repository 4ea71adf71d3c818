/* multimem_internal.h — decoded multimem.ld_reduce, .st and .red: the vector of elements, and the operation that combines two elements.
 *
 *     ld_reduce   d = copy of device 0 · copy of device 1 · ...      [a] is a multicast address: each device of the
 *     st          each copy = b                                      multicast team has a copy at the same offset
 *     red         each copy = copy · b
 *
 * Copies are combined in the order of the team, the order in which cuMulticastAddDevice added the devices; on a GPU, the NVLink
 * switch chooses the order.  Partial results have the type of the elements (the default, PTX ISA 9.0, 9.7.9.14).  With .acc::f32 or
 * .acc::f16 they are f32 or f16, and only the final result is rounded to the elements' type, to nearest even.  Subnormals are kept. */
#ifndef GPULOAD_SOFTCUDA_EXEC_MULTIMEM_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_MULTIMEM_INTERNAL_H

#include "softcuda/exec/engine_internal.h"

/* bytes of the longest vector */
enum { MULTIMEM_BYTES = 16 };

/* X(name, type of an element in memory, result of the operation on elements a and b). */
/* clang-format off */
#define GPUL_MULTIMEM_INTEGER(X) \
	X(ADD_32, uint32_t, a + b) X(ADD_64, uint64_t, a + b) \
	X(MIN_U32, uint32_t, a < b ? a : b) X(MAX_U32, uint32_t, a > b ? a : b) \
	X(MIN_S32, int32_t, a < b ? a : b) X(MAX_S32, int32_t, a > b ? a : b) \
	X(MIN_U64, uint64_t, a < b ? a : b) X(MAX_U64, uint64_t, a > b ? a : b) \
	X(MIN_S64, int64_t, a < b ? a : b) X(MAX_S64, int64_t, a > b ? a : b) \
	X(AND_32, uint32_t, a & b) X(AND_64, uint64_t, a & b) X(OR_32, uint32_t, a | b) \
	X(OR_64, uint64_t, a | b) X(XOR_32, uint32_t, a ^ b) X(XOR_64, uint64_t, a ^ b)
#define GPUL_MULTIMEM_FLOAT(X) \
	X(ADD_F32, uint32_t, add_f32(a, b)) X(ADD_F64, uint64_t, add_f64(a, b)) \
	X(ADD_F16, uint16_t, half_op(a, b, sum_of_halves)) X(MIN_F16, uint16_t, half_op(a, b, min_f32)) \
	X(MAX_F16, uint16_t, half_op(a, b, max_f32)) X(ADD_BF16, uint16_t, brain_op(a, b, sum_of_halves)) \
	X(MIN_BF16, uint16_t, brain_op(a, b, min_f32)) X(MAX_BF16, uint16_t, brain_op(a, b, max_f32)) \
	X(ADD_E4M3, uint8_t, small_op(a, b, sum_of_halves, &format_e4m3)) X(MIN_E4M3, uint8_t, small_op(a, b, min_f32, &format_e4m3)) \
	X(MAX_E4M3, uint8_t, small_op(a, b, max_f32, &format_e4m3)) X(ADD_E5M2, uint8_t, small_op(a, b, sum_of_halves, &format_e5m2)) \
	X(MIN_E5M2, uint8_t, small_op(a, b, min_f32, &format_e5m2)) X(MAX_E5M2, uint8_t, small_op(a, b, max_f32, &format_e5m2))
#define GPUL_MULTIMEM_OPERATIONS(X) GPUL_MULTIMEM_INTEGER(X) GPUL_MULTIMEM_FLOAT(X)
/* clang-format on */

enum multimem_operation {
#define X(name, type, result) MULTIMEM_##name,
	GPUL_MULTIMEM_OPERATIONS(X)
#undef X
		MULTIMEM_NONE /* for multimem.st, which combines nothing */
};

struct multimem {                           /* insn->object of the MULTIMEM operations */
	struct insn address;                /* never executed; its a, imm and flags describe the address operand */
	opref data[8];                      /* the registers of the vector */
	uint8_t n, reg_bytes, memory_bytes; /* number of registers; width of a register, and of its value in memory */
	uint8_t bytes;                      /* size of the whole vector: 4, 8 or 16 */
	uint8_t operation;                  /* a value of enum multimem_operation */
	bool widens;                        /* partial results have the next wider type, because of .acc::f32 or .acc::f16 */
};

#endif
