/* kill.c — scenarios: SIGKILL of the owner, and of an attacher, at each of 12 steps: the other side notices, and nothing leaks. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/fault/actors.h"
#include "tests/fault/count.h"

enum { ROUNDS = 50 }; /* number of sums that a kernel computes while a process is killed */

static const struct step owner_steps[N_STEPS] = {
	{ "the driver is open", "open", 1, 0 },
	{ "memory is created", "created", 1, 0 },
	{ "memory is exported", "exported", 1, 0 },
	{ "the socket is bound to its name", "bound", 1, 0 },
	{ "the socket listens", "listening", 1, 0 },
	{ "a peer has connected", "accepted", 1, 0 },
	{ "HELLO is read", "received", 1, 0 },
	{ "OFFER is sent", "sent", 1, 0 },
	{ "a peer is attached", "attached", 1, 0 },
	{ "a peer's kernel reads", "a reader runs", 1, 0 },
	{ "the peer has detached", "detach seen", 1, 0 },
	{ "the lease is over", "destroyed", 1, 0 },
};
enum { LISTENING = 4, OFFER_SENT = 7, ATTACHED, READER_RUNS, DETACH_SEEN, LEASE_OVER }; /* indexes of owner_steps */

static const struct step attacher_steps[N_STEPS] = {
	{ "the driver is open", "open", 1, 0 },
	{ "it has connected", "connected", 1, 0 },
	{ "HELLO is sent", "sent", 1, 0 },
	{ "OFFER is read", "received", 1, 0 },
	{ "memory is imported", "imported", 1, 0 },
	{ "memory is mapped", "mapped", 1, 0 },
	{ "READY is sent", "sent", 2, 0 },
	{ "it is attached", "attached", 1, 0 },
	{ "its kernel reads", "a kernel runs", 1, 0 },
	{ "its kernel has read", "summed", 1, 0 },
	{ "it detaches", "draining", 1, 0 },
	{ "it has detached", "closed", 1, 0 },
};
enum { OPEN, CONNECTED, READY_SENT = 6, CLOSED = 11 }; /* indexes of attacher_steps */

/* True when the victim killed itself at its step. */
static bool died_there(struct fault *f, struct child *victim)
{
	int status = child_end(victim, FAULT_WAIT_MS);

	if (status > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	return fault_failed(f, "the victim was not killed at its step: wait status %#x", status);
}

/* ---- the owner is killed --------------------------------------------------------------------- */

static bool attach_fails_without_owner(struct fault *f, const struct child *survivor)
{
	struct note n;

	if (!child_do(survivor, 'a', FAULT_WAIT_MS, &n))
		fault_failed(f, "no answer from the attacher");
	else if (n.good || (n.native != ENOENT && n.native != ECONNREFUSED))
		fault_failed(f, "attaching without an owner: %s", n.good ? "done" : n.text);
	else
		return true;
	return false;
}

static bool expect_event(struct fault *f, const struct child *survivor, gpul_ipc_event_kind wanted)
{
	struct note n;

	if (!child_do(survivor, 'v', FAULT_WAIT_MS, &n) || !n.good)
		fault_failed(f, "waiting for %s: %s", gpul_ipc_event_name(wanted), n.text);
	else if (n.event != (int)wanted)
		fault_failed(f, "the attacher reported %s instead of %s", gpul_ipc_event_name((gpul_ipc_event_kind)n.event),
			     gpul_ipc_event_name(wanted));
	else
		return true;
	return false;
}

/* Check an attacher whose owner was killed: the memory is still usable, OWNER_DIED is reported, detaching works. */
static bool survives_owner(struct fault *f, const struct child *survivor)
{
	return must(f, survivor, 's', 0) && expect_event(f, survivor, GPUL_IPC_OWNER_DIED) && must(f, survivor, 's', 0) &&
	       must(f, survivor, 'x', 0);
}

/* If the owner is killed during the handshake, attaching must fail immediately with a reason, or it had already succeeded. */
static bool handshake_ends(struct fault *f, const struct child *survivor)
{
	struct note n;

	if (!child_do(survivor, 'a', FAULT_WAIT_MS, &n))
		fault_failed(f, "no answer from the attacher");
	else if (n.good)
		return survives_owner(f, survivor);
	else if (n.native == ETIMEDOUT || !n.text[0])
		fault_failed(f, "attaching to an owner that was killed: %s", n.text);
	else
		return true;
	return false;
}

/* Send the commands that bring a ready owner to the step at which it is killed. */
static bool lead_owner_to(struct fault *f, int step, struct child *owner, const struct child *survivor)
{
	struct note n = { .command = step == READER_RUNS ? 'k' : 'd' };

	if (step <= OFFER_SENT)
		return handshake_ends(f, survivor);
	if (!must(f, survivor, 'a', FAULT_WAIT_MS))
		return false;
	if (step == ATTACHED)
		return survives_owner(f, survivor);
	if (step == DETACH_SEEN)
		return must(f, survivor, 'x', 0);
	if (step == READER_RUNS && !must(f, survivor, 'r', ROUNDS))
		return false;
	note_send(owner->line, &n);
	if (step == READER_RUNS)
		return died_there(f, owner) && must(f, survivor, 'w', 0) && survives_owner(f, survivor);
	return expect_event(f, survivor, GPUL_IPC_DETACHED) && must(f, survivor, 's', 0) && must(f, survivor, 'x', 0);
}

static bool kill_owner_at(struct fault *f, int index, const struct child *survivor)
{
	bool file = f->kind == GPUL_MEM_MEMFD || f->kind == GPUL_MEM_SHM; /* this kind of memory has a descriptor before it is offered */
	struct step step = owner_steps[index];
	struct actor how = { .dies = &step };
	struct child owner;
	struct note n;
	bool ready, good;

	if (file && strcmp(step.point, "exported") == 0)
		step.point = "binding";
	if (!child_start(f, owner_role, &how, &owner))
		return false;
	ready = note_receive(owner.line, FAULT_WAIT_MS, &n);
	if (ready && n.command != 'r')
		good = fault_failed(f, "%s", n.text);
	else if (ready != (index > LISTENING))
		good = fault_failed(f, "the owner is %s", ready ? "ready" : "ended already");
	else
		good = ready ? lead_owner_to(f, index, &owner, survivor) : attach_fails_without_owner(f, survivor);
	if (good && owner.pid)
		good = died_there(f, &owner);
	child_kill(&owner);
	return good && must(f, survivor, 'c', 0) && names_clean(f->folder, f->text);
}

/* Run one complete round without a kill, so that drivers have allocated all memory that they keep; then count. */
static bool warm_up(struct fault *f, const struct child *survivor)
{
	struct actor lives = { 0 };
	struct child owner;

	return owner_start(f, &lives, &owner) && must(f, survivor, 'a', FAULT_WAIT_MS) && must(f, survivor, 's', 0) &&
	       must(f, survivor, 'x', 0) && owner_event(f, &owner, GPUL_IPC_ATTACHED) && owner_event(f, &owner, GPUL_IPC_DETACHED) &&
	       actor_end(f, &owner) && must(f, survivor, 'b', 0);
}

static bool all_steps(struct fault *f, const struct step steps[], const struct child *survivor,
		      bool kill_at(struct fault *, int, const struct child *))
{
	for (unsigned round = 0; round < f->times; round++)
		for (int i = 0; i < N_STEPS; i++) {
			char why[FAULT_TEXT];

			if (kill_at(f, i, survivor))
				continue;
			memcpy(why, f->text, sizeof why);
			return fault_failed(f, "round %u, killed when %s: %.400s", round, steps[i].what, why);
		}
	return true;
}

enum fault_verdict kill_owner(struct fault *f)
{
	struct actor lives = { 0 };
	struct child survivor = { 0 };
	bool good = attacher_start(f, &lives, &survivor) && warm_up(f, &survivor) && all_steps(f, owner_steps, &survivor, kill_owner_at) &&
		    actor_end(f, &survivor);

	child_kill(&survivor);
	return good ? FAULT_OK : FAULT_FAILED;
}

/* ---- an attacher is killed ------------------------------------------------------------------- */

/* Collect the events that the owner reports for one pid until it answers 'c': one bit for each kind of event. */
static bool collect_events(struct fault *f, const struct child *owner, pid_t pid, unsigned *kinds)
{
	struct note n = { .command = 'c' };

	*kinds = 0;
	if (!note_send(owner->line, &n))
		return false;
	while (note_receive(owner->line, FAULT_WAIT_MS, &n)) {
		if (n.command == 'v' && n.value == pid)
			*kinds |= 1u << n.event;
		if (n.command == 'c' && !n.good)
			fault_failed(f, "%s", n.text);
		if (n.command == 'c')
			return n.good;
	}
	return fault_failed(f, "no answer from the owner");
}

static bool events_are_right(int step, unsigned kinds)
{
	enum { ATT = 1 << GPUL_IPC_ATTACHED, DET = 1 << GPUL_IPC_DETACHED, DIED = 1 << GPUL_IPC_PEER_DIED, REF = 1 << GPUL_IPC_REFUSED };

	if (step == OPEN)
		return kinds == 0;
	if (step == CONNECTED) /* the attacher may have ended before it was accepted */
		return kinds == 0 || kinds == REF || kinds == DIED;
	if (step < READY_SENT)
		return kinds == REF || kinds == DIED;
	if (step == CLOSED)
		return kinds == (ATT | DET);
	return kinds == (ATT | DIED);
}

static bool kill_attacher_at(struct fault *f, int index, const struct child *owner)
{
	struct actor how = { .dies = &attacher_steps[index] };
	struct child victim;
	struct note n;
	unsigned kinds;
	pid_t pid;

	if (!attacher_start(f, &how, &victim))
		return false;
	pid = victim.pid;
	for (const char *c = "arwx"; *c && child_do(&victim, *c, *c == 'a' ? FAULT_WAIT_MS : ROUNDS, &n); c++)
		if (n.command != *c || !n.good) {
			fault_failed(f, "'%c': %s", *c, n.text);
			child_kill(&victim);
			return false;
		}
	if (!died_there(f, &victim) || !collect_events(f, owner, pid, &kinds))
		return false;
	if (!events_are_right(index, kinds))
		return fault_failed(f, "the owner reported the wrong events: %#x", kinds);
	return must(f, owner, 's', 0) && names_clean(f->folder, f->text);
}

enum fault_verdict kill_attacher(struct fault *f)
{
	struct actor lives = { 0 };
	struct child owner = { 0 };
	bool good = owner_start(f, &lives, &owner) && all_steps(f, attacher_steps, &owner, kill_attacher_at) && actor_end(f, &owner);

	child_kill(&owner);
	return good ? FAULT_OK : FAULT_FAILED;
}
