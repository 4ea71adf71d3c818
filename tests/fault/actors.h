/* actors.h — an owner and an attacher that do what they are told, by notes (child.h) of one letter.
 *
 *     owner   says 'r' (ready) or 'f' (failed) of itself, and 'v' for each event; hears
 *             'c' let all go and count   's' sum   'k' a reader runs   'd' end the lease   'l', 'e' as below
 *     attacher  hears
 *             'a' attach within value ms   'r' start value rounds of sums   'w' wait for them   's' sum
 *             'v' the next event within value ms   'x' close   'b' what I hold now is the baseline
 *             'm' attach, look and close value times   'c' count   'q' ask, within value ms
 *             'l' have only value descriptors more; < 0: as many as ever   'e' end */
#ifndef GPULOAD_TESTS_FAULT_ACTORS_H
#define GPULOAD_TESTS_FAULT_ACTORS_H

#include "tests/fault/child.h"
#include "tests/fault/step.h"

#define SHARE_NAME "buffer"
enum { N_STEPS = 12 };

/* How an actor is to be; all zero will do. */
struct actor {
	const struct step *dies;   /* NULL: it lives */
	size_t bytes;              /* owner: 0: SHARED_BYTES */
	int step_timeout_ms;       /* owner: 0: the library's own */
	const char *name;          /* NULL: SHARE_NAME */
	uid_t uid;                 /* after the driver is open; 0: as we are */
	int namespaces;            /* CLONE_NEW*; may not be permitted: exit status 77 */
	bool gone_quiet;           /* owner: do not say 'v' (thousands of events that nobody reads) */
};

child_role owner_role, attacher_role;

/* Go on as such an actor: in new namespaces.  Returns -1 in the process that goes on (which may be another than
 * the one that called); else this process has waited for that one and is to end with what is returned. */
int actor_begin(const struct actor *a);
/* As another user from here on. */
bool actor_become(const struct actor *a);
/* Have only so many descriptors more than now. */
bool actor_limit(int64_t n_more);

/* Start one; wait until the owner is ready.  False: f->text says why. */
bool owner_start(struct fault *f, const struct actor *a, struct child *out);
bool attacher_start(struct fault *f, const struct actor *a, struct child *out);

/* child_do() whose answer must be good.  False: f->text says what was to be done and what came. */
bool must(struct fault *f, const struct child *c, char command, int64_t value);

/* 'a' that must succeed, of an owner with little patience: an attacher that is kept from the CPU for longer is turned
 * away for that, and tries again. */
bool must_attach(struct fault *f, const struct child *c);

/* The owner's next 'v' within the usual time.  False: none, f->text says so. */
bool owner_event(struct fault *f, const struct child *owner, gpul_ipc_event_kind wanted);

/* End in order: exit status 0.  False: f->text says what it was. */
bool actor_end(struct fault *f, struct child *c);

#endif
