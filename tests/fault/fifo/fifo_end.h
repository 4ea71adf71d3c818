/* fifo_end.h — an actor with one end of a FIFO, controlled by notes (child.h) with a command of one letter:
 *
 *     both      'o' create and offer the memory   'a' attach   'v' the next event within value ms   'x' detach
 *               'b' count: the baseline for 'c'   'c' count, compare with 'b'   'e' exit
 *     kernels   'p' push (text: struct pushes)   'w' wait for the kernels' end; value 1: abort when the proxy has ended
 *               'k' unload the kernels
 *     proxy     'l' poll, handle, release in a loop   's' start the thread (value: of enum serving)
 *               'n' wait until the thread has ended by itself; value: ns since the last victim was killed
 *               'h' number of handled triggers   'd' drain   'z' stop   'i' check all triggers, handled or not
 *
 * Answers have the error's status and native, and the values that are described below. */
#ifndef GPULOAD_TESTS_FAULT_FIFO_FIFO_END_H
#define GPULOAD_TESTS_FAULT_FIFO_FIFO_END_H

#include "tests/fault/child.h"
#include "tests/fault/step.h"
#include "tests/proxy/ends.h"

enum { FIFO_SLOTS = 32, FIFO_LANES = 2, FIFO_BLOCKS = 2 };

enum serving { SERVE_SPINNING, SERVE_SLEEPING, SERVE_HOLDING }; /* HOLDING: never releases slots */

child_role fifo_end_role; /* arg: const struct step *, at which the actor kills itself; NULL: never */

/* Start the actor, which kills itself at the step dies (NULL: never). */
bool fifo_end_start(struct fault *f, const struct step *dies, struct child *out);

/* The owner offers its memory and the other actor attaches.  False: the reason is in f->text; with dead_is_fine, one
 * of the two may have been killed. */
bool fifo_lease(struct fault *f, const struct child *owner, const struct child *guest, bool dead_is_fine);

/* Send 'p'; send 'w' and store its answer in *out. */
bool fifo_push(struct fault *f, const struct child *kernels, const struct pushes *p);
bool fifo_pushed(struct fault *f, const struct child *kernels, bool aborts, struct pushed *out);

/* Send 'i', which checks the triggers that arrived at the proxy's process.  *next: the number that block 0 pushes next
 * (n_right 0: no trigger arrived). */
bool fifo_checked(struct fault *f, const struct child *proxy, uint64_t *n_right, uint64_t *next);

/* Send 'v'; the event must report that the other process has ended. */
bool fifo_lost(struct fault *f, const struct child *survivor);

#endif
