/* signature_launch_internal.h — interval analysis of one launch of a kernel: computes how far its threads access each buffer.
 *
 *     an assumed launch: grid, block, values of the scalars ── intervals.c: the range of every SSA value
 *         ── branches.c: the ranges after a branch ── assume.c: sizes of the buffers
 *
 * The facts in signature.h hold for every launch. If they do not determine the size of each buffer, assume.c assumes a launch and
 * values of the scalars, and interval analysis computes the bytes that this launch can access. */
#ifndef GPULOAD_LOADER_SIGNATURE_INTERVAL_SIGNATURE_LAUNCH_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_INTERVAL_SIGNATURE_LAUNCH_INTERNAL_H

#include "loader/signature/ssa_internal.h"
#include "loader/signature/infer_internal.h"
#include "loader/signature/interval/range_internal.h"

typedef struct gpul_interval {
	enum { INTERVAL_NONE, INTERVAL_NUMBER, INTERVAL_POINTER, INTERVAL_VARIABLE } kind;
	uint8_t n_growths;
	uint8_t zeros; /* the number, or the offset, is a multiple of 2^zeros */
	int64_t size;  /* for a VARIABLE: size in bytes of the smallest variable into which the value may point */
	uint64_t base; /* for a POINTER: set of leaves; the value points into the buffer of one of them, at an offset of r bytes */
	gpul_range r;  /* for a NUMBER: the range of the value; else: the range of the offset in bytes */
} gpul_interval;

/* Return the interval of a number with this range. */
gpul_interval gpul_interval_number(gpul_range r);
gpul_interval gpul_interval_join(gpul_interval a, gpul_interval b);
/* Return a + b, or a - b, in a register of this many bits. */
gpul_interval gpul_interval_add(gpul_interval a, gpul_interval b, bool subtract, unsigned bits);
/* Return the result of an instruction with the sources s, of which missing ones are 0. */
gpul_interval gpul_interval_evaluate(const gpul_ptx_inst *in, const gpul_interval s[3]);

/* Return the bits of a register of a type; 64 for a type without a size. */
unsigned gpul_type_bits(uint16_t type);
bool gpul_type_is_unsigned(uint16_t type);
bool gpul_type_is_float(uint16_t type);

typedef struct gpul_assumed_launch {
	uint32_t grid[3], block[3];
	int64_t value[DATAFLOW_MAX_LEAVES]; /* for each leaf that is a scalar: its value */
	uint64_t zeros;                     /* set of leaves: buffers whose elements are 0 and are only loaded */
} gpul_assumed_launch;

typedef struct gpul_intervals {
	const gpul_inference *i;
	const gpul_dataflow_func *fn; /* the analysed kernel */
	const gpul_assumed_launch *launch;
	gpul_cfg cfg;
	gpul_interval *values; /* interval of each SSA value */
	uint32_t *def;         /* for each SSA value: the only instruction that writes it, or NONE */
	bool *compared;        /* for each SSA value: true if a branch may depend on it */
	uint32_t *idom;        /* for each block: its immediate dominator, or NONE */
	uint32_t *order;       /* for each block: its number in reverse postorder, or NONE if it is not reachable */
	bool *executed;        /* for each block: true if a thread may reach it */
	bool changed, descending;
} gpul_intervals;

/* Compute the dominators; false: out of memory. */
bool gpul_branches_open(gpul_intervals *v);

/* Return 1 if the guard of an instruction is true or there is none, 0 if it is false, -1 if it is unknown. */
int gpul_guard_holds(const gpul_intervals *v, uint32_t inst);

/* True if control can pass from a block to its successor `to`. */
bool gpul_edge_is_taken(const gpul_intervals *v, uint32_t from, uint32_t to);

/* Return the range of a value where instruction inst reads it, refined by dominating branches and the instruction's guard. */
gpul_range gpul_range_at(const gpul_intervals *v, uint32_t value, uint32_t inst);
/* Return the range of a value if control passes along an edge. */
gpul_range gpul_range_on_edge(const gpul_intervals *v, uint32_t value, uint32_t from, uint32_t to);

/* Return the interval of an operand that is not an address; branches and guards before its use are ignored. */
gpul_interval gpul_interval_anywhere(const gpul_intervals *v, const gpul_ptx_operand *o);
/* Return the interval of an operand where instruction inst reads it. */
gpul_interval gpul_interval_of(const gpul_intervals *v, const gpul_ptx_operand *o, uint32_t inst);

/* Run the analysis of the kernel for one launch; release *out with gpul_intervals_close().  Returns false if out of memory, or the
 * analysis does not end; *out is empty. */
bool gpul_intervals_open(const gpul_inference *i, const gpul_assumed_launch *launch, gpul_intervals *out);
void gpul_intervals_close(gpul_intervals *v);

/* Complete a signature that lacks only buffer sizes, if an assumed launch determines them. */
void gpul_assume_launch(gpul_inference *i);

#endif
