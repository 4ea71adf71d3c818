/* fifo_end.h — one more actor: a process with one end of a FIFO, or the other.  By notes (child.h) of one letter:
 *
 *     both      'o' make the memory and offer it   'a' attach   'v' the next event within value ms   'x' let go
 *               'b' what I hold now is the baseline   'c' count   'e' end
 *     kernels   'p' push (text: struct pushes)   'w' wait for their end, value: abort when the proxy is gone
 *               'k' no more kernels
 *     proxy     'l' poll, handle, release for ever   's' start the thread (value: of enum serving)
 *               'n' wait until the thread has ended by itself; value: ns after the last death
 *               'h' how many triggers were handled   'd' drain   'z' stop   'i' what came, and the rest of it, is right
 *
 * Answers: status and native of the error, and what is said below. */
#ifndef GPULOAD_TESTS_FAULT_FIFO_END_H
#define GPULOAD_TESTS_FAULT_FIFO_END_H

#include "tests/fault/child.h"
#include "tests/fault/step.h"
#include "tests/proxy/ends.h"

enum { FIFO_SLOTS = 32, FIFO_LANES = 2, FIFO_BLOCKS = 2 };

enum serving { SERVE_SPINNING, SERVE_SLEEPING, SERVE_HOLDING };  /* the last one handles, and releases nothing */

child_role fifo_end_role;  /* arg: const struct step *, where it dies; NULL: it lives */

/* Start one. */
bool fifo_end_start(struct fault *f, const struct step *dies, struct child *out);

/* Memory of owner's: the other one attaches.  False: f->text says why, or one of the two has died (dead_is_fine). */
bool fifo_lease(struct fault *f, const struct child *owner, const struct child *guest, bool dead_is_fine);

/* 'p' and 'w': answers and what came of it. */
bool fifo_push(struct fault *f, const struct child *kernels, const struct pushes *p);
bool fifo_pushed(struct fault *f, const struct child *kernels, bool aborts, struct pushed *out);

/* 'i': the proxy's process has had what it should; *next: what block 0 is to push next (n_right 0: nothing came). */
bool fifo_checked(struct fault *f, const struct child *proxy, uint64_t *n_right, uint64_t *next);

/* 'v' is to be that the other one has ended. */
bool fifo_lost(struct fault *f, const struct child *survivor);

#endif
