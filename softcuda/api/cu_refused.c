/* cu_refused.c — the calls of the driver API that are exported but not implemented.
 *
 * Each call is a function without parameters, which is safe, because in the calling conventions of x86-64 and arm64 the caller
 * removes the arguments.  The functions have other names in C, because <cuda.h> declares some of the symbols. */
#include "softcuda/api/base/cu_state_internal.h"
#include "softcuda/api/cu_refused_calls_internal.h"

#include <stdatomic.h>

enum reason {
#define REASON(key, text) WHY_##key,
	SOFT_REASONS(REASON)
#undef REASON
};

static const char *const reasons[] = {
#define REASON(key, text) [WHY_##key] = text,
	SOFT_REASONS(REASON)
#undef REASON
};

/* Log the first call of each function.  The cuCheckpoint* calls do not require cuInit(), because they act on another process. */
static CUresult refuse_call(const char *symbol, enum reason why, atomic_flag *logged)
{
	CUresult r = why == WHY_CHECKPOINTS ? CUDA_SUCCESS : soft_check_initialised();

	if (r || atomic_flag_test_and_set(logged))
		return r ? r : CUDA_ERROR_NOT_SUPPORTED;
	return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "%s: not supported: %s", symbol, reasons[why]);
}

#define REFUSED_CALL(symbol, why) \
	EXPORT CUresult soft_refused_##symbol(void) \
	{ \
		static atomic_flag logged = ATOMIC_FLAG_INIT; \
\
		return refuse_call(#symbol, WHY_##why, &logged); \
	}
#define CALL(name, since, symbol, why)             REFUSED_CALL(symbol, why)
#define PTDS(name, since, symbol, per_thread, why) REFUSED_CALL(symbol, why) REFUSED_CALL(per_thread, why)
SOFT_REFUSED(CALL, PTDS)
#undef CALL
#undef PTDS
