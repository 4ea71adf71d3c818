/* actors.h — an owner and an attacher, controlled by notes (child.h) with a command of one letter.
 *
 *     owner     sends 'r' (ready) or 'f' (failed) at its start, and 'v' for each event; commands:
 *             'c' wait until all detached, check counts   's' sum   'k' a reader runs   'd' end the lease
 *     attacher  commands:
 *             'a' attach within value ms   'r' start value rounds of sums   'w' wait for them   's' sum
 *             'v' the next event within value ms   'x' detach   'b' count: the baseline for 'c'
 *             'm' attach, read and detach value times   'c' count, compare with 'b'   'q' query, within value ms
 *             'l' limit to value more descriptors; < 0: no limit   'e' exit (owner and attacher) */
#ifndef GPULOAD_TESTS_FAULT_ACTORS_H
#define GPULOAD_TESTS_FAULT_ACTORS_H

#include "tests/fault/child.h"
#include "tests/fault/step.h"

#define SHARE_NAME "buffer"
enum { N_STEPS = 12 };

/* Options of an actor; all zero: the defaults. */
struct actor {
	const struct step *dies; /* the step at which the actor kills itself; NULL: none */
	size_t bytes;            /* size of an owner's memory; 0: SHARED_BYTES */
	int step_timeout_ms;     /* time-out of an owner for a handshake step; 0: the library's default */
	const char *name;        /* name of the share; NULL: SHARE_NAME */
	uid_t uid;               /* user id to change to after the driver is open; 0: unchanged */
	int namespaces;          /* CLONE_NEW* flags; exit status 77 if not permitted */
	bool gone_quiet;         /* owner: do not report events ('v'), because the scenario causes thousands and reads none */
};

child_role owner_role, attacher_role;

/* Enter the actor's new namespaces, which may need a new process.  Returns -1 in the process that continues as the
 * actor.  Otherwise the caller has waited for that process and must exit with the returned status. */
int actor_begin(const struct actor *a);
/* Change to the user a->uid. */
bool actor_become(const struct actor *a);
/* Limit this process to n_more descriptors more than it has now. */
bool actor_limit(int64_t n_more);

/* Start an actor; for an owner, wait until it is ready.  False: the reason is in f->text. */
bool owner_start(struct fault *f, const struct actor *a, struct child *out);
bool attacher_start(struct fault *f, const struct actor *a, struct child *out);

/* Call child_do(); the command must succeed.  False: f->text has the command and the reply. */
bool must(struct fault *f, const struct child *c, char command, int64_t value);

/* Send 'a', which must succeed.  Try again if the owner refused the attacher after a time-out, because on a busy machine
 * the attacher may get no CPU time for that long. */
bool must_attach(struct fault *f, const struct child *c);

/* Receive the owner's next event note ('v') within FAULT_WAIT_MS.  False: the reason is in f->text. */
bool owner_event(struct fault *f, const struct child *owner, gpul_ipc_event_kind wanted);

/* End the actor, which must exit with status 0.  False: the reason is in f->text. */
bool actor_end(struct fault *f, struct child *c);

#endif
