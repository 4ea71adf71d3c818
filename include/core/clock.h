/* clock.h — reads the monotonic clock. */
#ifndef GPULOAD_CORE_CLOCK_H
#define GPULOAD_CORE_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return the nanoseconds of CLOCK_MONOTONIC, which never goes back.  Any thread. */
uint64_t gpul_clock_ns(void);

#ifdef __cplusplus
}
#endif

#endif
