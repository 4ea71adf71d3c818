/* async_internal.h — asynchronous copies and mbarriers: the structs that decode_async.c fills and run_async.c reads.
 *
 * A lane performs its copy immediately, when it executes the cp.async instruction. PTX allows this, because it only defines the latest
 * time at which the bytes must have arrived. So cp.async.commit_group and cp.async.wait_group do nothing.
 *
 * The 64 bits of an mbarrier are opaque to PTX programs (PTX ISA 9.7.13.15.1).  The interpreter's layout:
 *
 *     63      62          41 40          20 19           0
 *    ┌───────┬──────────────┬──────────────┬──────────────┐  expected: arrivals that a phase needs;
 *    │ phase │ bytes + bias │   expected   │   pending    │  pending: arrivals still missing; bytes:
 *    └───────┴──────────────┴──────────────┴──────────────┘  expect_tx minus complete_tx, signed */
#ifndef GPULOAD_SOFTCUDA_EXEC_ASYNC_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_ASYNC_INTERNAL_H

#include "softcuda/exec/program_internal.h"

/* One copy instruction.  `to`, `from` and `barrier` are never executed: they hold address operands for resolve(), which needs an insn. */
struct async_copy {
	struct insn to, from, barrier;
	struct insn step;      /* cp.reduce: the atomic operation for each element; step.b is the value to add */
	uint8_t element_bytes; /* cp.reduce: size of an element */
	bool has_barrier;
	bool has_source_bytes; /* cp.async: only source_bytes bytes are copied; the rest of `to` is set to zero */
	bool ignores;          /* cp.async: source_bytes is a predicate; if it is true, nothing is read and `to` is set to zero */
	opref source_bytes;    /* bulk copies: the number of bytes */
	/* CP_MULTICAST: bit r is set if the cluster's block of rank r gets a copy; `to` and `barrier` are offsets in its shared memory */
	opref ranks;
};

/* offset of step.b, the values that cp.reduce adds, in the scratch bank (bank 3) */
enum { REDUCE_VALUE_AT = 512 };

enum {                     /* bits of insn->n of OP_MBAR_ARRIVE */
       MBAR_ARRIVES = 1,   /* the lane arrives at the mbarrier; without this bit only the byte count changes */
       MBAR_EXPECTS = 2,   /* expect_tx: the phase waits for c more bytes (operand c) */
       MBAR_COMPLETES = 4, /* complete_tx: c bytes of the phase have arrived (operand c) */
       MBAR_DROPS = 8,     /* arrive_drop: later phases expect fewer arrivals */
};
/* bits of insn->n of OP_MBAR_TEST */
enum { MBAR_PARITY = 1, MBAR_YIELDS = 2 };

/* ---- the layout of mbarriers ------------------------------------------------------------------ */

typedef uint64_t __attribute__((may_alias)) mbarrier_word;

/* clang-format off */
enum {
	COUNT_BITS = 20, EXPECTED_AT = 20, BYTES_AT = 41, BYTES_BITS = 22, PHASE_AT = 63,
	COUNT_MASK = (1 << COUNT_BITS) - 1, BYTES_BIAS = 1 << (BYTES_BITS - 1),
};
/* clang-format on */

static inline uint32_t pending_arrivals(uint64_t m)
{
	return (uint32_t)m & COUNT_MASK;
}
static inline uint32_t expected_arrivals(uint64_t m)
{
	return (uint32_t)(m >> EXPECTED_AT) & COUNT_MASK;
}

static inline int32_t missing_bytes(uint64_t m)
{
	return (int32_t)(m >> BYTES_AT & ((1u << BYTES_BITS) - 1)) - BYTES_BIAS;
}

/* Pack the fields of an mbarrier.  If no arrival is pending and all expected bytes have been copied, the next phase begins. */
static inline uint64_t pack_mbarrier(uint64_t phase, int32_t bytes, uint32_t expect, uint32_t wait)
{
	if (!wait && !bytes) {
		phase ^= 1;
		wait = expect;
	}
	return phase << PHASE_AT | (uint64_t)(uint32_t)(bytes + BYTES_BIAS) << BYTES_AT | (uint64_t)expect << EXPECTED_AT | wait;
}

/* Apply one lane's arrival and bytes to the mbarrier.  Returns false if fewer than `count` arrivals are pending in the phase. */
static inline bool update_mbarrier(const struct insn *i, mbarrier_word *m, uint32_t count, uint32_t bytes)
{
	uint32_t expect = expected_arrivals(*m), wait = pending_arrivals(*m), n = i->n & MBAR_ARRIVES ? count : 0;
	int32_t due = missing_bytes(*m);

	if (n > wait || (i->n & MBAR_DROPS && n > expect))
		return false;
	if (i->n & MBAR_EXPECTS)
		due += (int32_t)bytes;
	if (i->n & MBAR_COMPLETES)
		due -= (int32_t)bytes;
	if (i->n & MBAR_DROPS)
		expect -= n;
	*m = pack_mbarrier(*m >> PHASE_AT, due, expect, wait - n);
	return true;
}

#endif
