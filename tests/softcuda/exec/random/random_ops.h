/* random_ops.h — the operations of random programs, for the code that prints programs and the reference that runs them. */
#ifndef GPULOAD_TESTS_SOFTCUDA_RANDOM_OPS_H
#define GPULOAD_TESTS_SOFTCUDA_RANDOM_OPS_H

enum alu_op { ALU_ADD, ALU_SUB, ALU_MUL, ALU_AND, ALU_OR, ALU_XOR, ALU_MIN, ALU_MAX, ALU_SHR, N_ALU_OPS };
enum warp_op { WARP_SHUFFLE, WARP_BALLOT, WARP_MATCH, WARP_ADD, N_WARP_OPS };
enum condition { COND_LESS, COND_BITS, COND_EQUAL, N_CONDITIONS };

/* A variable of a function that is not an argument starts as the first argument plus a multiple of this number. */
enum { FUNCTION_STEP = 77 };

extern const char *const alu_names[N_ALU_OPS];

#endif
