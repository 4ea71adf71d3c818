/* async_internal.h — asynchronous copies and mbarriers: the data that decode_async.c gives to run_async.c.
 *
 * The lane that starts a copy executes it at once.  PTX allows this, because it only defines when the bytes
 * must have arrived at the latest.  So cp.async.commit_group and wait_group do nothing.
 *
 * The 64 bits of an mbarrier are opaque to PTX programs (PTX ISA 9.7.13.15.1).  The interpreter's layout:
 *
 *     63      62          41 40          20 19           0
 *    ┌───────┬──────────────┬──────────────┬──────────────┐  expected, pending: arrivals of a phase,
 *    │ phase │ bytes + bias │   expected   │   pending    │  and arrivals still missing; bytes:
 *    └───────┴──────────────┴──────────────┴──────────────┘  announced minus completed, signed */
#ifndef GPULOAD_SOFTCUDA_EXEC_ASYNC_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_ASYNC_INTERNAL_H

#include "softcuda/exec/program_internal.h"

/* Each address has the form of an instruction that is never executed, because resolve() reads addresses from
 * instructions. */
struct async_copy {
	struct insn to, from, barrier;
	struct insn step;        /* reducing copies: the atomic operation on one element, whose value is in step.b */
	uint8_t element_bytes;   /* reducing copies */
	bool has_barrier;
	bool has_source_bytes;   /* cp.async: source_bytes bytes are copied, the rest of `to` is set to zero */
	bool ignores;            /* cp.async: source_bytes is a predicate: if true nothing is read, `to` is set to zero */
	opref source_bytes;      /* bulk copies: the number of bytes */
};

enum { REDUCE_VALUE_AT = 512 };  /* in the scratch bank: the values of the element that a reducing copy adds */

enum {  /* bits of insn->n of OP_MBAR_ARRIVE */
	MBAR_ARRIVES = 1,        /* the lane arrives; without this bit only the byte count changes */
	MBAR_EXPECTS = 2,        /* the phase also waits for c more bytes (operand c) */
	MBAR_COMPLETES = 4,      /* c bytes have been copied (operand c) */
	MBAR_DROPS = 8,          /* arrive_drop: later phases expect fewer arrivals */
};
enum { MBAR_PARITY = 1, MBAR_YIELDS = 2 };  /* bits of insn->n of OP_MBAR_TEST */

#endif
