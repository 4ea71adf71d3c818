/* absval_internal.h — defines abstract values: facts about a value that are true in every execution of a kernel.
 *
 *     an SSA value ──> one gpul_absval: the parameters into whose buffers the value may point, the parameters from which it is
 *                      computed, and how much it changes when the thread index grows by one
 *
 * Abstract values form a lattice: gpul_absval_join() is the join, "not defined" is the bottom.  The other functions are the transfer
 * functions of integer arithmetic. */
#ifndef GPULOAD_LOADER_SIGNATURE_ABSVAL_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_ABSVAL_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#define AV_UNBOUNDED UINT64_MAX /* value of a stride or offset that grows in a loop (widening) */

enum absval_flag {
	AV_TID = 1 << 0,         /* depends on %tid.x, or on block index times block size */
	AV_OUTER = 1 << 1,       /* depends on %ctaid, or on %tid.y or %tid.z */
	AV_NTID = 1 << 2,        /* computed from the block's size */
	AV_NCTAID = 1 << 3,      /* computed from the grid's size */
	AV_QUADRATIC = 1 << 4,   /* thread index times a number that grows with the launch */
	AV_LOCAL = 1 << 5,       /* address of a .local variable */
	AV_SHARED = 1 << 6,      /* address of a .shared variable */
	AV_VARIABLE = 1 << 7,    /* address of any other variable or function */
	AV_TWO_BASES = 1 << 8,   /* sum of two parameters, either of which may be the address */
	AV_LOADED = 1 << 9,      /* loaded from memory */
	AV_OPAQUE = 1 << 10,     /* result of an operation that the analysis does not model */
	AV_EXTERNAL = 1 << 11,   /* returned by a function outside the module */
	AV_NOT_UNIQUE = 1 << 12, /* the value was divided or masked, so several threads may have the same value */
	AV_NEGATIVE = 1 << 13,   /* a constant was subtracted: a[i - 1] */
};
#define AV_INDEX   (AV_TID | AV_OUTER)
#define AV_SIZES   (AV_NTID | AV_NCTAID)
#define AV_LAUNCH  (AV_INDEX | AV_SIZES)
#define AV_ADDRESS (AV_LOCAL | AV_SHARED | AV_VARIABLE)

/* An abstract value.  The first four fields are sets: bit k is parameter k or, for structs, member k (gpul_leaf, dataflow_internal.h). */
typedef struct gpul_absval {
	uint64_t base;         /* parameters into whose buffer the value may point */
	uint64_t bound;        /* parameters whose value the value may equal, plus or minus a constant */
	uint64_t linear;       /* parameters of which the value is a sum, perhaps with factors */
	uint64_t loaded_from;  /* parameters from whose buffer the value or an operand of it was loaded */
	uint64_t stride;       /* how much the value changes when %tid.x grows by one */
	uint64_t block_stride; /* how much the value changes when %ctaid * %ntid, the first index of the block, grows by one */
	uint64_t outer_stride; /* how much the value changes when an AV_OUTER index grows by one */
	uint64_t offset;       /* the largest sum of constants that was added to the value */
	uint64_t growth;       /* how much the offset grows in one iteration of a loop */
	uint64_t array_bytes;  /* size of the smallest .shared array that the value may point into; 0: none */
	uint32_t flags;        /* an OR of values of enum absval_flag */
	bool defined;          /* false: no definition was visited yet (bottom); the other fields are 0 */
	bool constant;         /* true: the value always equals the field `value` */
	uint8_t n_growths;     /* how often a stride or the offset grew: see widen() in dataflow.c */
	int64_t value;
} gpul_absval;

gpul_absval gpul_absval_constant(int64_t value);
gpul_absval gpul_absval_join(gpul_absval a, gpul_absval b);
/* Return the result of an operation on a that the analysis does not model. */
gpul_absval gpul_absval_opaque(gpul_absval a);
gpul_absval gpul_absval_neg(gpul_absval a);
/* Return a + b, or a - b.  pointers is the set of parameters known to be addresses. */
gpul_absval gpul_absval_add(uint64_t pointers, gpul_absval a, gpul_absval b, bool subtract);
gpul_absval gpul_absval_mul(gpul_absval a, gpul_absval b);
gpul_absval gpul_absval_exp2(gpul_absval a); /* 2 to the power of a */
gpul_absval gpul_absval_divide(gpul_absval a, gpul_absval b);
gpul_absval gpul_absval_remainder(gpul_absval a, gpul_absval b);
gpul_absval gpul_absval_and(gpul_absval a, gpul_absval b);
gpul_absval gpul_absval_min_max(gpul_absval a, gpul_absval b); /* Return min(a, b) or max(a, b). */

#endif
