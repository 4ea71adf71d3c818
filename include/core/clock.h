/* clock.h — reads the monotonic clock. */
#ifndef GPULOAD_CORE_CLOCK_H
#define GPULOAD_CORE_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Return the time of CLOCK_MONOTONIC in ns; it never decreases.  Any thread. */
uint64_t gpul_clock_ns(void);

#ifdef __cplusplus
}
#endif

#endif
