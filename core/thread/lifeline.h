/* lifeline.h — a word in shared memory that the kernel marks as soon as the process that holds it ends.
 *
 *     gpul_lifeline_hold(word) ──> the word is HELD ──┬─ gpul_lifeline_let_go ──> NONE
 *                                                     └─ SIGKILL, a crash, exit, exec ──> LOST
 *
 * A pidfd, or the other end of a socket or pipe, reports the end of a process only after its memory is freed and its
 * descriptors are closed: a quarter of a second for a gigabyte of small pages, longer with a GPU context.  Before that, the
 * kernel marks the robust futexes that the process' threads hold.  Robust futexes are made for locks; here a sleeping thread
 * holds one until the process ends. */
#ifndef GPULOAD_CORE_THREAD_LIFELINE_H
#define GPULOAD_CORE_THREAD_LIFELINE_H

#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_life {
	GPUL_LIFE_NONE, /* no process holds the word, or its holder has released it */
	GPUL_LIFE_HELD,
	GPUL_LIFE_LOST, /* the process that held the word has ended without releasing it */
} gpul_life;

typedef struct gpul_lifeline gpul_lifeline; /* opaque; the struct is defined in lifeline.c */

/** Hold a word: start a thread that sleeps until gpul_lifeline_let_go().
 *
 * @word  shared with other processes, aligned to 4 bytes; borrowed, must outlive *out.  Its previous value is overwritten.
 *        Another process that writes to it only affects gpul_lifeline_read()
 * @out   owned by the caller: gpul_lifeline_let_go(); untouched on failure
 * Errors  GPUL_ESYS the thread cannot be created, or the kernel does not support robust futexes; GPUL_ENOMEM
 * Source  Linux get_robust_list(2) (set_robust_list), Documentation/locking/robust-futex-ABI.rst */
gpul_status gpul_lifeline_hold(uint32_t *word, gpul_lifeline **out, gpul_error *err);

/* End the thread, and set the word to NONE unless another process now holds it.  Accepts NULL. */
void gpul_lifeline_let_go(gpul_lifeline *l);

/* Returns the state of a word.  Any thread of any process may call. */
gpul_life gpul_lifeline_read(const uint32_t *word);
/* Change LOST to NONE.  Call this after handling the end of the holder. */
void gpul_lifeline_forget(uint32_t *word);

#ifdef __cplusplus
}
#endif

#endif
