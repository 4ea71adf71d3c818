/* async_internal.h — what decode_async.c tells run_async.c: copies of two or three addresses, and
 * the words of an mbarrier.
 *
 * A copy is done at once, by the lane that asks for it: PTX says when the bytes must have arrived,
 * never that they must not have arrived yet.  So commit and wait of groups have nothing to do.
 *
 * A PTX program never looks into an mbarrier, so its 64 bits are ours (PTX ISA 9.7.13.15.1: opaque):
 *
 *     63      62          41 40          20 19           0
 *    ┌───────┬──────────────┬──────────────┬──────────────┐  expected, pending: arrivals of a phase,
 *    │ phase │ bytes + bias │   expected   │   pending    │  and those it still waits for;
 *    └───────┴──────────────┴──────────────┴──────────────┘  bytes: announced less arrived, signed */
#ifndef GPULOAD_SOFTCUDA_EXEC_ASYNC_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_ASYNC_INTERNAL_H

#include "softcuda/exec/program_internal.h"

/* Each address is an instruction of its own, which is not run: what address resolving reads. */
struct async_copy {
	struct insn to, from, barrier;
	bool has_barrier;
	bool has_source_bytes;   /* cp.async: source_bytes are read, the rest of `to` is zero */
	bool ignores;            /* cp.async: source_bytes is a predicate: true reads nothing */
	opref source_bytes;      /* bulk: the whole number of bytes */
};

enum {  /* OP_MBAR_ARRIVE's flags above those of its address; its n says what is there */
	MBAR_ARRIVES = 1,        /* else it only counts bytes */
	MBAR_EXPECTS = 2,        /* c bytes more are announced */
	MBAR_COMPLETES = 4,      /* c bytes came */
	MBAR_DROPS = 8,          /* the phases to come expect as many fewer */
};
enum { MBAR_PARITY = 1, MBAR_YIELDS = 2 };  /* OP_MBAR_TEST's n */

#endif
