/* stop.c — scenarios: a stopped process (SIGSTOP) does not delay others, and calls that wait for it end after their time-out. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "tests/fault/actors.h"

enum { STEP_MS = 300, PATIENCE_MS = 40 };

/* The steps in the handshake at which an attacher stops, before and after the OFFER. */
static const struct step stops[] = {
	{ "it has connected", "connected", 1, SIGSTOP },
	{ "OFFER is read", "received", 1, SIGSTOP },
};

static bool wait_until_stopped(struct fault *f, pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status))
		return true;
	return fault_failed(f, "the process did not stop at its step");
}

static bool attach_and_detach(struct fault *f, const struct child *c)
{
	return must_attach(f, c) && must(f, c, 's', 0) && must(f, c, 'x', 0);
}

/* Wait until the owner has refused pid, which must not be before its time-out. */
static bool wait_until_refused(struct fault *f, const struct child *owner, pid_t pid, uint64_t from_ns)
{
	struct note n;

	while (note_receive(owner->line, FAULT_WAIT_MS, &n)) {
		if (n.command != 'v' || n.value != pid)
			continue;
		if (n.event != GPUL_IPC_REFUSED)
			return fault_failed(f, "the owner reported %s", gpul_ipc_event_name((gpul_ipc_event_kind)n.event));
		if (gpul_clock_ns() - from_ns < (uint64_t)fault_step_ms(f, STEP_MS) * 1000000)
			return fault_failed(f, "refused before the time-out: %s", n.text);
		return true;
	}
	return fault_failed(f, "not refused");
}

static bool stop_in_handshake(struct fault *f, const struct step *step, const struct child *owner, const struct child *other)
{
	struct actor how = { .dies = step };
	struct child victim;
	struct note n = { .command = 'a', .value = FAULT_WAIT_MS };
	uint64_t from = gpul_clock_ns();
	bool good;

	if (!attacher_start(f, &how, &victim))
		return false;
	good = note_send(victim.line, &n) && wait_until_stopped(f, victim.pid) && attach_and_detach(f, other) &&
	       attach_and_detach(f, other) && wait_until_refused(f, owner, victim.pid, from);
	kill(victim.pid, SIGCONT);
	if (good && (!note_receive(victim.line, FAULT_WAIT_MS, &n) || n.good || !n.text[0]))
		good = fault_failed(f, "refused, but the attacher got no reason");
	good = good && attach_and_detach(f, &victim) && actor_end(f, &victim);
	child_kill(&victim);
	return good;
}

static bool stop_attached(struct fault *f, const struct child *other)
{
	struct actor lives = { 0 };
	struct child victim;
	bool good;

	if (!attacher_start(f, &lives, &victim))
		return false;
	good = must_attach(f, &victim) && kill(victim.pid, SIGSTOP) == 0 && wait_until_stopped(f, victim.pid) &&
	       attach_and_detach(f, other) && attach_and_detach(f, other) && kill(victim.pid, SIGCONT) == 0 && must(f, &victim, 's', 0) &&
	       must(f, &victim, 'x', 0) && actor_end(f, &victim);
	child_kill(&victim);
	return good;
}

enum fault_verdict stopped_peer(struct fault *f)
{
	struct actor lives = { 0 }, patient = { .step_timeout_ms = fault_step_ms(f, STEP_MS) };
	struct child owner = { 0 }, other = { 0 };
	bool good = owner_start(f, &patient, &owner) && attacher_start(f, &lives, &other) && attach_and_detach(f, &other);

	for (unsigned i = 0; good && i < f->times; i++)
		good = stop_in_handshake(f, &stops[i % 2], &owner, &other) && stop_attached(f, &other);
	good = good && actor_end(f, &owner) && actor_end(f, &other);
	child_kill(&owner);
	child_kill(&other);
	return good ? FAULT_OK : FAULT_FAILED;
}

/* ---- the owner is stopped -------------------------------------------------------------------- */

/* The command must fail with ETIMEDOUT, and not before its time-out. */
static bool times_out(struct fault *f, const struct child *c, char command)
{
	struct note n;

	if (!child_do(c, command, PATIENCE_MS, &n))
		return fault_failed(f, "'%c': no answer", command);
	if (n.good || n.native != ETIMEDOUT)
		return fault_failed(f, "'%c' with a stopped owner: %s", command, n.good ? "done" : n.text);
	return n.value >= PATIENCE_MS - 1 || fault_failed(f, "'%c' ended after %lld ms, before its time-out", command, (long long)n.value);
}

/* A stopped owner keeps its name and memory, and there is no OWNER_DIED. */
static bool keeps_lease(struct fault *f, const struct child *attached)
{
	struct actor second = { 0 };
	struct child owner;
	struct note n;

	if (!child_do(attached, 'v', PATIENCE_MS, &n) || !n.good || n.event != GPUL_IPC_NONE)
		return fault_failed(f, "event %s from a stopped owner", gpul_ipc_event_name((gpul_ipc_event_kind)n.event));
	if (!must(f, attached, 's', 0))
		return false;
	if (!owner_start(f, &second, &owner)) {
		f->not_here = false;
		return strstr(f->text, "already shares") != NULL; /* another process still offers the name */
	}
	child_kill(&owner);
	return fault_failed(f, "the name of a stopped owner was taken by another process");
}

enum fault_verdict stopped_owner(struct fault *f)
{
	struct actor lives = { .gone_quiet = true };
	struct child owner = { 0 }, attached = { 0 }, late = { 0 };
	bool good = owner_start(f, &lives, &owner) && attacher_start(f, &lives, &attached) && attacher_start(f, &lives, &late) &&
		    attach_and_detach(f, &late) && must(f, &late, 'b', 0) && must(f, &attached, 'a', FAULT_WAIT_MS);

	for (unsigned i = 0; good && i < f->times; i++)
		good = kill(owner.pid, SIGSTOP) == 0 && wait_until_stopped(f, owner.pid) && times_out(f, &late, 'a') &&
		       times_out(f, &late, 'q') && keeps_lease(f, &attached) && kill(owner.pid, SIGCONT) == 0 &&
		       attach_and_detach(f, &late) && must(f, &late, 'c', 0);
	good = good && must(f, &attached, 'x', 0) && actor_end(f, &owner) && actor_end(f, &attached) && actor_end(f, &late);
	child_kill(&owner);
	child_kill(&attached);
	child_kill(&late);
	return good ? FAULT_OK : FAULT_FAILED;
}
