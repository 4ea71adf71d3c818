/* run_internal.h — what the core's handler files share: how a handler is named, and jumps. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_RUN_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_RUN_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

#define HANDLER(name) const struct insn *GPUL_BUILD(op_##name)(struct warp *w, const struct insn *i)
#define X(name) op_fn GPUL_BUILD(op_##name);
GPUL_CORE_OPS(X)
#undef X

/* Fences order what the compiler and the CPU may move.  ThreadSanitizer does not know fences: there an
 * atomic exchange on a word of nobody's stands for one. */
#if defined(__SANITIZE_THREAD__)     /* gcc */
#define UNDER_TSAN 1
#elif defined(__has_feature)         /* clang */
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
/* It does not take a vector's move for an atomic either: there each element is one.  And since it does not see what
 * fences order, a relaxed access is as if it had its fence: races of plain accesses are found, missing fences are not. */
enum {
	LOAD_ORDER = UNDER_TSAN ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED,
	STORE_ORDER = UNDER_TSAN ? __ATOMIC_RELEASE : __ATOMIC_RELAXED,
	WHOLE_BYTES = UNDER_TSAN ? 0 : 16,
};

/* The same statement for every lane that runs, as a plain loop when all do. */
#define FOR_LANES(l, w, statement)                                                          \
	do {                                                                                \
		if ((w)->mask == ALL_LANES) {                                               \
			for (unsigned l = 0; l < LANES; l++) {                              \
				statement;                                                  \
			}                                                                   \
		} else {                                                                    \
			EACH_ACTIVE(l, w) {                                                 \
				statement;                                                  \
			}                                                                   \
		}                                                                           \
	} while (0)

/* The memory's types: a kernel may read what it likes as what it likes. */
#define MEMORY_TYPE(type) type __attribute__((may_alias))

/* Sixteen bytes as one move, where the instruction set moves them whole (AVX, LSE2). */
typedef uint64_t vector16 __attribute__((vector_size(16), may_alias));

/* A loop that asks memory for news should let others run sooner than one that computes: after four looks.  Measured
 * from 32 to 250, on one core: a FIFO's push and sync took 9.3 to 3.7 us, a push of 64 blocks 3.6 to 0.8 us. */
enum { POLL_COST = 250 };

#endif
