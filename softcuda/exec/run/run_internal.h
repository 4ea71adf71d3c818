/* run_internal.h — definitions for the handlers of control-flow, memory and warp operations. */
#ifndef GPULOAD_SOFTCUDA_EXEC_RUN_RUN_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_RUN_RUN_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

#define HANDLER(name) const struct insn *GPUL_BUILD(op_##name)(struct warp *w, const struct insn *i)
#define X(name) op_fn GPUL_BUILD(op_##name);
GPUL_CORE_OPS(X)
#undef X

/* A memory fence.  ThreadSanitizer does not support fences: there an atomic exchange on an otherwise unused word takes the
 * place of the fence. */
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
/* Under ThreadSanitizer, which does not treat a 16-byte move as atomic, each element is one access.  Relaxed
 * accesses become acquire or release, because ThreadSanitizer ignores the order that fences create: it finds
 * races of plain accesses, but no missing fences. */
enum {
	LOAD_ORDER = UNDER_TSAN ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED,
	STORE_ORDER = UNDER_TSAN ? __ATOMIC_RELEASE : __ATOMIC_RELAXED,
	WHOLE_BYTES = UNDER_TSAN ? 0 : 16,
};

/* Execute the statement for every active lane l; a plain loop if all lanes are active. */
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

/* A type in device memory: a kernel may access the same bytes with several types. */
#define MEMORY_TYPE(type) type __attribute__((may_alias))

/* 16 bytes, loaded or stored by one move instruction, which is atomic on CPUs with AVX or LSE2. */
typedef uint64_t vector16 __attribute__((vector_size(16), may_alias));

/* The cost of one poll in backward branches: a loop that polls memory yields sooner than a loop that computes, after four
 * polls.  Measured with POLL_COST 32 and 250 on one core: a FIFO push and sync took 9.3 and 3.7 us, a push of
 * 64 blocks 3.6 and 0.8 us. */
enum { POLL_COST = 250 };

#endif
