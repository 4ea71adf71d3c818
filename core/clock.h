/* clock.h — time that only goes forward. */
#ifndef GPULOAD_CORE_CLOCK_H
#define GPULOAD_CORE_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Nanoseconds since some moment before this process started (CLOCK_MONOTONIC).  Any thread. */
uint64_t gpul_clock_ns(void);

#ifdef __cplusplus
}
#endif

#endif
