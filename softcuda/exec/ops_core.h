/* ops_core.h — the list of control-flow, memory and warp operations: X(NAME) has the handler op_NAME. */
#ifndef GPULOAD_SOFTCUDA_EXEC_OPS_CORE_H
#define GPULOAD_SOFTCUDA_EXEC_OPS_CORE_H

/* Operations of run_control.c.  GUARD calls the handler insn->inner for the lanes whose predicate is true. */
/* clang-format off */
#define GPUL_CONTROL_OPS(X) \
	X(GUARD) X(GUARD_NOT) X(NOP) X(EXIT) X(RET) X(BRA) X(BRA_IF) X(BRA_IFNOT) X(BRX) \
	X(CALL) X(CALL_POINTER) X(CALL_BUILTIN) X(TRAP) X(REFUSED) X(NANOSLEEP) \
	X(BAR_SYNC) X(BAR_CLUSTER) X(CLUSTER_ARRIVE) X(BAR_ARRIVE) X(BAR_RED_POPC) X(BAR_RED_AND) X(BAR_RED_OR) X(BAR_WARP) \
	X(FENCE) X(FENCE_SC) X(READ_CLOCK)
/* clang-format on */

/* Operations of run_stack.c. */
#define GPUL_STACK_OPS(X) X(ALLOCA) X(STACKSAVE) X(STACKRESTORE)

/* Operations of run_warp.c. */
/* clang-format off */
#define GPUL_WARP_OPS(X) \
	X(SHFL_UP) X(SHFL_DOWN) X(SHFL_BFLY) X(SHFL_IDX) \
	X(VOTE_ALL) X(VOTE_ANY) X(VOTE_UNI) X(VOTE_BALLOT) X(ACTIVEMASK) X(ELECT) \
	X(MATCH_ANY_32) X(MATCH_ANY_64) X(MATCH_ALL_32) X(MATCH_ALL_64) \
	X(REDUX_ADD) X(REDUX_MIN_U32) X(REDUX_MAX_U32) X(REDUX_MIN_S32) X(REDUX_MAX_S32) \
	X(REDUX_AND) X(REDUX_OR) X(REDUX_XOR) X(REDUX_F32)
/* clang-format on */

/* Operations of run_mma_float.c, run_mma.c, run_wgmma.c and run_matrix.c. */
/* clang-format off */
#define GPUL_MATRIX_OPS(X) \
	X(MMA_FLOAT) X(MMA_F64) X(MMA_INT) X(MMA_BITS) X(MMA_QUADS) X(WGMMA_FLOAT) X(WGMMA_INT) \
	X(LDMATRIX) X(STMATRIX) X(MOVMATRIX)
/* clang-format on */

/* Operations of run_address.c: width conversions, which decoding inserts around an instruction, and address conversions. */
/* clang-format off */
#define GPUL_ADDRESS_OPS(X) \
	X(CUT_32_16) X(CUT_64_16) X(CUT_64_32) \
	X(EXT_U16_32) X(EXT_S16_32) X(EXT_U16_64) X(EXT_S16_64) X(EXT_U32_64) X(EXT_S32_64) \
	X(ADDR_32) X(ADDR_64) X(LOCAL_ADDR_32) X(LOCAL_ADDR_64) \
	X(MAPA_32) X(MAPA_64) X(CTARANK_32) X(CTARANK_64) \
	X(TO_GENERIC) X(FROM_GENERIC) X(ISSPACEP) X(ISSPACEP_CONST)
/* clang-format on */

/* Kinds of loads: X(name, type in memory, type in register).  LD_U8_32 loads a byte into a 32-bit register. */
/* clang-format off */
#define GPUL_LOAD_KINDS(X) \
	X(U8_16, uint8_t, uint16_t) X(S8_16, int8_t, int16_t) X(U8_32, uint8_t, uint32_t) \
	X(S8_32, int8_t, int32_t) X(U8_64, uint8_t, uint64_t) X(S8_64, int8_t, int64_t) \
	X(U16_16, uint16_t, uint16_t) X(U16_32, uint16_t, uint32_t) X(S16_32, int16_t, int32_t) \
	X(U16_64, uint16_t, uint64_t) X(S16_64, int16_t, int64_t) X(U32_32, uint32_t, uint32_t) \
	X(U32_64, uint32_t, uint64_t) X(S32_64, int32_t, int64_t) X(U64_64, uint64_t, uint64_t)
#define GPUL_STORE_KINDS(X) \
	X(8_16, uint8_t, uint16_t) X(8_32, uint8_t, uint32_t) X(8_64, uint8_t, uint64_t) \
	X(16_16, uint16_t, uint16_t) X(16_32, uint16_t, uint32_t) X(16_64, uint16_t, uint64_t) \
	X(32_32, uint32_t, uint32_t) X(32_64, uint32_t, uint64_t) X(64_64, uint64_t, uint64_t)
/* clang-format on */

/* clang-format off */
enum load_kind {   /* values of insn->e of LDV, LDO and LD_PARAM */
#define X(name, memory, reg) KIND_##name,
	GPUL_LOAD_KINDS(X)
#undef X
};
/* clang-format on */

/* Operations of run_load.c, run_store.c.  LDV, STV: vectors; LDO, STO: volatile, relaxed, acquire, release; insn->e: a KIND_... value. */
/* clang-format off */
#define GPUL_LOAD_OPS(X) \
	X(LD_U8_16) X(LD_S8_16) X(LD_U8_32) X(LD_S8_32) X(LD_U8_64) X(LD_S8_64) X(LD_U16_16) \
	X(LD_U16_32) X(LD_S16_32) X(LD_U16_64) X(LD_S16_64) X(LD_U32_32) X(LD_U32_64) X(LD_S32_64) \
	X(LD_U64_64) X(LDV) X(LDO) X(LD_PARAM) X(PREFETCH)
#define GPUL_STORE_OPS(X) \
	X(ST_8_16) X(ST_8_32) X(ST_8_64) X(ST_16_16) X(ST_16_32) X(ST_16_64) X(ST_32_32) \
	X(ST_32_64) X(ST_64_64) X(STV) X(STO)
/* clang-format on */

/* Operations of run_atomic.c.  red is executed as an atom that writes its result to the scratch bank. */
/* clang-format off */
#define GPUL_ATOMIC_OPS(X) \
	X(ATOM_ADD_32) X(ATOM_ADD_64) X(ATOM_MIN_U32) X(ATOM_MIN_S32) X(ATOM_MIN_U64) X(ATOM_MIN_S64) \
	X(ATOM_MAX_U32) X(ATOM_MAX_S32) X(ATOM_MAX_U64) X(ATOM_MAX_S64) X(ATOM_AND_32) X(ATOM_AND_64) \
	X(ATOM_OR_32) X(ATOM_OR_64) X(ATOM_XOR_32) X(ATOM_XOR_64) X(ATOM_EXCH_32) X(ATOM_EXCH_64) \
	X(ATOM_CAS_16) X(ATOM_CAS_32) X(ATOM_CAS_64) X(ATOM_INC_U32) X(ATOM_DEC_U32) \
	X(ATOM_ADD_F32) X(ATOM_ADD_F64) X(ATOM_ADD_F16) X(ATOM_ADD_BF16) X(ATOM_ADD_F16X2) \
	X(ATOM_ADD_BF16X2) X(ATOM_MIN_F16) X(ATOM_MAX_F16) X(ATOM_MIN_F16X2) X(ATOM_MAX_F16X2) \
	X(ATOM_MIN_BF16) X(ATOM_MAX_BF16) X(ATOM_MIN_BF16X2) X(ATOM_MAX_BF16X2) \
	X(ATOM_CAS_128) X(ATOM_EXCH_128)
/* clang-format on */

/* Operations of run_multimem.c. */
#define GPUL_MULTIMEM_OPS(X) X(MULTIMEM_LOAD) X(MULTIMEM_STORE) X(MULTIMEM_UPDATE)

/* Operations of run_async.c and run_tensor.c. */
/* clang-format off */
#define GPUL_ASYNC_OPS(X) \
	X(CP_ASYNC) X(CP_BULK) X(CP_MULTICAST) X(CP_REDUCE) X(MBAR_INIT) X(MBAR_ARRIVE) X(MBAR_TEST) X(MBAR_PENDING) \
	X(TENSOR_LOAD) X(TENSOR_STORE) X(TENSOR_REDUCE) X(TENSOR_MAP_REPLACE) X(TENSOR_MAP_COPY)
/* clang-format on */

/* Operations of run_texture.c and run_surface.c. */
#define GPUL_TEXTURE_OPS(X) X(TEX) X(TLD4) X(TXQ) X(SULD) X(SUST) X(SURED) X(ISTYPEP)

/* clang-format off */
#define GPUL_CORE_OPS(X) \
	GPUL_TEXTURE_OPS(X) \
	GPUL_CONTROL_OPS(X) GPUL_STACK_OPS(X) GPUL_WARP_OPS(X) GPUL_MATRIX_OPS(X) GPUL_ADDRESS_OPS(X) GPUL_LOAD_OPS(X) \
	GPUL_STORE_OPS(X) GPUL_ATOMIC_OPS(X) GPUL_MULTIMEM_OPS(X) GPUL_ASYNC_OPS(X)
/* clang-format on */

#endif
