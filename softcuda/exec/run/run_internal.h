/* run_internal.h — definitions for the handlers of control-flow, memory and warp operations. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_RUN_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_RUN_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

#define HANDLER(name) const struct insn *GPUL_BUILD(op_##name)(struct warp * w, const struct insn *i)
#define X(name)       op_fn GPUL_BUILD(op_##name);
GPUL_CORE_OPS(X)
#undef X

/* THREAD_FENCE: a memory fence.  ThreadSanitizer builds use an atomic exchange of an unused word, because it supports no fences. */
#if defined(__SANITIZE_THREAD__) /* gcc */
#define UNDER_TSAN 1
#elif defined(__has_feature) /* clang */
#define UNDER_TSAN __has_feature(thread_sanitizer)
#else
#define UNDER_TSAN 0
#endif
#if UNDER_TSAN
static _Atomic int fence_word __attribute__((unused));
#define THREAD_FENCE(order) atomic_exchange(&fence_word, 0)
#else
#define THREAD_FENCE(order) atomic_thread_fence(order)
#endif
/* The ordered loads and stores (LDO, STO) are acquire and release accesses even if the instruction is only relaxed, because the
 * accesses of the lanes must keep their order (NEXT_ACCESS), and ThreadSanitizer ignores the order that fences create.
 * ThreadSanitizer does not treat a 16-byte move as atomic either, so its builds access each element separately (WHOLE_BYTES). */
enum {
	LOAD_ORDER = __ATOMIC_ACQUIRE,
	STORE_ORDER = __ATOMIC_RELEASE,
	WHOLE_BYTES = UNDER_TSAN ? 0 : 16,
};

/* Returns true if a *.sync instruction can run: all lanes of its member mask `named` are active or have exited, or the scheduler lets
 * the active lanes continue without the missing ones (`released`).  If it returns false, the handler must raise EVENT_SYNC. */
static inline bool lanes_have_arrived(struct warp_state *s, uint32_t named)
{
	struct split *p = &s->splits[s->current];

	if (!(named & s->w.live & ~s->w.mask) || p->released) {
		p->released = false;
		return true;
	}
	s->need = named;
	return false;
}

/* Execute the statement for every active lane l. */
#define FOR_LANES(l, w, statement) \
	do { \
		if ((w)->mask == ALL_LANES) { \
			for (unsigned l = 0; l < LANES; l++) { \
				statement; \
			} \
		} else { \
			EACH_ACTIVE(l, w) \
			{ \
				statement; \
			} \
		} \
	} while (0)

/* A type in device memory: a kernel may access the same bytes with several types. */
#define MEMORY_TYPE(type) type __attribute__((may_alias))

/* 16 bytes, loaded or stored by one move instruction, which is atomic on CPUs with AVX or LSE2. */
typedef uint64_t vector16 __attribute__((vector_size(16), may_alias));

/* Four words: the vector of one lane, or one register in four lanes. */
typedef uint32_t quad __attribute__((vector_size(16), may_alias));

/* Transpose: the vectors of four lanes become the words of four registers, or the reverse. */
static inline void transpose_quads(const quad in[4], quad out[4])
{
#if __has_builtin(__builtin_shufflevector) /* GCC 11 does not have this builtin */
	const quad low01 = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5), high01 = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
	const quad low23 = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5), high23 = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);

	out[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
	out[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
	out[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
	out[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
#else
	for (unsigned k = 0; k < 4; k++)
		out[k] = (quad){ in[0][k], in[1][k], in[2][k], in[3][k] };
#endif
}

/* NEXT_ACCESS keeps the order of the accesses of lanes, so that a warp's access to an aligned line of 128 bytes looks like one
 * access, as on a GPU: if a warp loads a line by one instruction, and reads the last 8 bytes that another warp stored to the line by
 * one instruction, it reads all bytes of that store.  The PTX ISA does not guarantee this, but NCCL's protocol LL128 needs it: the
 * last word of a line is a flag.
 *
 *     store   word 0, 1, 2, ... 15     ascending addresses
 *     load    word 15, ... 2, 1, 0     descending addresses: the flag is loaded before the data
 *
 * This holds, even between processes, for stores of vectors and for loads and stores with .volatile, .relaxed, .acquire, .release or .mmio,
 * with elements of up to 8 bytes or vectors of 16 bytes.  On x86-64, loads are not reordered with loads, nor stores with stores, and the
 * compiler keeps the order of acquire loads, release stores and volatile accesses.  Other CPUs need a fence between the lanes. */
#if defined(__x86_64__)
#define NEXT_ACCESS(order) ((void)0)
#else
#define NEXT_ACCESS(order) THREAD_FENCE(order)
#endif

/* A poll counts as this many backward branches, so that a loop that polls memory yields after four polls, sooner than a loop that
 * computes. Measured on one core: with POLL_COST 32, a FIFO push and sync took 9.3 us, with 250 it took 3.7 us; a push of 64 blocks
 * took 3.6 and 0.8 us.  If several lanes of a warp poll the same words again, a poll takes longer, and the warp yields after a single
 * poll (WARP_POLL_COST). */
enum { POLL_COST = 250, WARP_POLL_COST = 1000 };

#endif
