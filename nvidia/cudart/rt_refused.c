/* rt_refused.c — defines the calls that are not implemented: each returns cudaErrorNotSupported and logs its name.
 *
 * This file does not include NVIDIA's header, because each function here is defined without parameters.  That is safe: in the
 * calling conventions of x86-64 and arm64 the caller removes the arguments. */
#include "nvidia/cudart/rt_refused_internal.h"
#include "nvidia/cudart/rt_refuse_internal.h"

#define REASON(key, text) static const char key[] = text;
GPUL_RT_REASONS(REASON)
#undef REASON

#define CALL(name, reason) \
	int name(void); \
	int name(void) \
	{ \
		return gpul_rt_refuse(#name, reason); \
	}
#define PTSZ(name, reason) CALL(name, reason) CALL(name##_ptsz, reason)
GPUL_RT_REFUSED(CALL, PTSZ)
