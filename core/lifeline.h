/* lifeline.h — a word in shared memory into which the system writes that this process has died, the moment it dies.
 *
 *     gpul_lifeline_hold(word) ──> the word is HELD ──┬─ gpul_lifeline_let_go ──> NONE
 *                                                     └─ SIGKILL, a crash, exit, exec ──> LOST
 *
 * A pidfd, a socket's or a pipe's other end tell of a death when the dead process' memory has been taken down and its
 * descriptors are closed: a process with a gigabyte of small pages takes a quarter of a second to get there, one with a
 * GPU's context as long as its driver likes.  The kernel marks the futexes that a dying thread holds before all that.  It is
 * meant for locks; here a thread that does nothing else holds one for as long as the process lives. */
#ifndef GPULOAD_CORE_LIFELINE_H
#define GPULOAD_CORE_LIFELINE_H

#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpul_life {
	GPUL_LIFE_NONE,  /* nobody holds it, or who did let go */
	GPUL_LIFE_HELD,
	GPUL_LIFE_LOST,  /* who held it has died */
} gpul_life;

typedef struct gpul_lifeline gpul_lifeline;  /* opaque: lifeline.c */

/** Hold a word: start a thread that sleeps until gpul_lifeline_let_go().
 *
 * @word  shared with other processes, aligned to 4 bytes; borrowed, must outlive *out.  Whatever it says, it is HELD then.
 *        Others may write anything into it: that misleads those who read it, and nobody else
 * @out   owned by the caller: gpul_lifeline_let_go(); untouched on failure
 * Errors  GPUL_ESYS the system has no more threads, or knows no robust futexes; GPUL_ENOMEM
 * Threads any thread may call
 * Source  Linux get_robust_list(2) (set_robust_list), Documentation/locking/robust-futex-ABI.rst */
gpul_status gpul_lifeline_hold(uint32_t *word, gpul_lifeline **out, gpul_error *err);

/* End the thread; the word is NONE then, unless somebody else holds it.  NULL is fine. */
void gpul_lifeline_let_go(gpul_lifeline *l);

/* What a word says.  Any thread of any process. */
gpul_life gpul_lifeline_read(const uint32_t *word);
/* A word that is LOST becomes NONE: whose death it was, is known. */
void gpul_lifeline_forget(uint32_t *word);

#ifdef __cplusplus
}
#endif

#endif
