/* bell.h — wakes polling threads that sleep because they had no work for a while.
 *
 *     thread with work:      gpul_bell_ring()            an atomic addition; a system call only while a thread sleeps
 *     thread that polls:     nothing found ─ gpul_bell_is_quiet()? ─ no: its usual short nap
 *                                                                └ yes: gpul_bell_sleep(), until a thread rings or the time is over
 *
 * Some work arrives without a ring, for example when a kernel writes a word, so a sleeping thread still polls from time to time. */
#ifndef GPULOAD_CORE_THREAD_BELL_H
#define GPULOAD_CORE_THREAD_BELL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ready to use when all bytes are 0. */
typedef struct gpul_bell {
	uint32_t rung, sleepers;
} gpul_bell;

/* A thread's record of the latest ring that it has noticed.  Ready to use when all bytes are 0. */
typedef struct gpul_bell_ear {
	uint32_t heard;
	uint64_t since_ns; /* time of gpul_clock_ns() at which the thread noticed the latest gpul_bell_ring() */
} gpul_bell_ear;

/* time without a ring after which the bell is quiet */
enum { GPUL_BELL_QUIET_MS = 1000 };

/* Wake the sleeping threads, because there is work, or will be soon.  Any thread. */
void gpul_bell_ring(gpul_bell *b);
/* True if no thread has rung for GPUL_BELL_QUIET_MS.  @ear: belongs to the calling thread; no other thread uses it. */
bool gpul_bell_is_quiet(const gpul_bell *b, gpul_bell_ear *ear);
/* Sleep until a thread rings, at most most_ms.  Returns immediately if a thread has rung since gpul_bell_is_quiet(). */
void gpul_bell_sleep(gpul_bell *b, const gpul_bell_ear *ear, unsigned most_ms);

#ifdef __cplusplus
}
#endif

#endif
