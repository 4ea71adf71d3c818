/* kill_fifo.c — scenarios with a FIFO between two processes: SIGKILL of the proxy's process or of the
 * kernels' process, and SIGSTOP. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/fault/actors.h"
#include "tests/fault/count.h"
#include "tests/fault/fifo/fifo_end.h"

enum { FEW = 1000, ENDLESS = 1000 * 1000 * 1000, SHORT_MS = 200, MOMENT_US = 4000 };

static const char from_outside[] = ""; /* the victim has no step: another process kills it */

/* The step at which a victim is killed, and the command that leads to it. */
struct fifo_step {
	struct step step;
	char command;
	int64_t value;
};

static bool died_by(struct fault *f, struct child *victim, int signal)
{
	int status = child_end(victim, FAULT_WAIT_MS);

	if (status > 0 && WIFSIGNALED(status) && WTERMSIG(status) == signal)
		return true;
	return fault_failed(f, "the victim was not killed at its step: wait status %#x", status);
}

/* Kill the victim at an arbitrary time, which differs in each round. */
static void kill_now(const struct fault *f, const struct child *victim, unsigned round)
{
	usleep(round * 2654435761u % MOMENT_US);
	*f->died_ns = gpul_clock_ns();
	kill(victim->pid, SIGKILL);
}

static bool offer(struct fault *f, const struct child *owner)
{
	struct note n;

	if (!child_do(owner, 'o', 0, &n))
		return fault_failed(f, "'o': no answer");
	f->not_here = n.status == GPUL_EUNSUPPORTED || (n.status == GPUL_ECUDA && n.native == CUDA_ERROR_NOT_SUPPORTED);
	return n.good || fault_failed(f, "'o': %s", n.text);
}

/* Release everything of this round and check for leaks. */
static bool clean(struct fault *f, const struct child *survivor)
{
	return must(f, survivor, 'x', 0) && must(f, survivor, 'c', 0) && names_clean(f->folder, f->text);
}

static unsigned flags_of_round(unsigned round)
{
	return (round >> 1 & 1 ? FIFO_PUSH_SHARE : 0) | (round >> 2 & 1 ? FIFO_PUSH_SYNC_EACH : 0);
}

/* ---- a round without a kill ------------------------------------------------------------------- */

/* Kernels push and the proxy handles all triggers, so that the survivor's driver has allocated what it keeps. */
static bool run_round(struct fault *f, const struct child *owner, const struct child *guest, const struct child *kernels,
		      const struct child *proxy)
{
	const struct pushes p = { .n_blocks = FIFO_BLOCKS, .count = FEW, .timeout_ns = FAULT_WAIT_MS * 1000000ull };
	struct pushed pushed;
	uint64_t n_right, next;

	if (!offer(f, owner) || !fifo_lease(f, owner, guest, false) || !must(f, proxy, 's', SERVE_SLEEPING) || !fifo_push(f, kernels, &p) ||
	    !fifo_pushed(f, kernels, true, &pushed) || !must(f, proxy, 'd', 0) || !must(f, proxy, 'z', 0) ||
	    !fifo_checked(f, proxy, &n_right, &next))
		return false;
	if (pushed.result != GPUL_FIFO_OK || n_right != FIFO_BLOCKS * FEW || next != FEW)
		return fault_failed(f, "result %u, %llu of %d triggers arrived", pushed.result, (unsigned long long)n_right,
				    FIFO_BLOCKS * FEW);
	return must(f, guest, 'x', 0) && must(f, owner, 'v', FAULT_WAIT_MS) && must(f, owner, 'x', 0);
}

static bool warm_up(struct fault *f, const struct child *survivor, bool has_kernels)
{
	struct child other = { 0 };
	bool good = fifo_end_start(f, NULL, &other);

	for (int owns = 0; good && owns < 2; owns++)
		good = run_round(f, owns ? survivor : &other, owns ? &other : survivor, has_kernels ? survivor : &other,
				 has_kernels ? &other : survivor);
	good = good && actor_end(f, &other) && must(f, survivor, 'b', 0);
	child_kill(&other);
	return good;
}

static bool all_steps(struct fault *f, const struct fifo_step steps[], unsigned n_steps, const struct child *survivor,
		      bool kill_at(struct fault *, const struct fifo_step *, unsigned, const struct child *))
{
	for (unsigned round = 0; round < f->times; round++)
		for (unsigned i = 0; i < n_steps; i++) {
			char why[FAULT_TEXT];

			if (kill_at(f, &steps[i], round, survivor))
				continue;
			memcpy(why, f->text, sizeof why);
			return fault_failed(f, "round %u, killed when %s: %.400s", round, steps[i].step.what, why);
		}
	return true;
}

/* Run one round without a kill, in which the survivor counts its resources, then kill a victim at each step. */
static enum fault_verdict campaign(struct fault *f, const struct fifo_step steps[], unsigned n_steps, bool survivor_has_kernels,
				   bool kill_at(struct fault *, const struct fifo_step *, unsigned, const struct child *))
{
	struct child survivor = { 0 };
	bool good = fifo_end_start(f, NULL, &survivor) && warm_up(f, &survivor, survivor_has_kernels) &&
		    all_steps(f, steps, n_steps, &survivor, kill_at) && actor_end(f, &survivor);

	child_kill(&survivor);
	return good ? FAULT_OK : FAULT_FAILED;
}

/* ---- the proxy is killed --------------------------------------------------------------------- */

static const struct fifo_step proxy_steps[] = {
	{ { "it is attached", "attached", 1, 0 }, 'l', 0 },
	{ { "it is about to poll", "polling", 1, 0 }, 'l', 0 },
	{ { "it has polled", "polled", 1, 0 }, 'l', 0 },
	{ { "it handles the first trigger", "handling", 1, 0 }, 'l', 0 },
	{ { "it is about to release", "releasing", 2, 0 }, 'l', 0 },
	{ { "one lane is released, the other lane is not", "between releases", 2, 0 }, 'l', 0 },
	{ { "all is released", "released", 3, 0 }, 'l', 0 },
	{ { "its thread handles", "handling", 100, 0 }, 's', SERVE_SPINNING },
	{ { "its thread sleeps", "sleeping", 1, 0 }, 's', SERVE_SLEEPING },
	{ { "its thread runs, at an arbitrary time", from_outside, 1, 0 }, 's', SERVE_SPINNING },
};
enum { N_PROXY_STEPS = sizeof proxy_steps / sizeof proxy_steps[0] };

/* The reaction of the kernels' process to the kill. */
enum ending { TIMES_OUT, ABORTS, TAKEN_OVER };

/* Choose the expected ending.  If the victim owns the memory, no second proxy can attach after the kill. */
static enum ending ending_of(const struct fifo_step *s, unsigned round, bool victim_owns)
{
	const unsigned which = (3 * round + (unsigned)(s - proxy_steps)) % 10;

	return which == 0 ? TIMES_OUT : which < 6 || victim_owns ? ABORTS : TAKEN_OVER;
}

static bool pushed_as(struct fault *f, const struct child *kernels, const struct pushes *p, enum ending end)
{
	const bool raises = p->flags & FIFO_PUSH_SHARE && !(p->flags & FIFO_PUSH_SYNC_EACH);
	struct pushed pushed;

	if (!fifo_pushed(f, kernels, end == ABORTS, &pushed))
		return false;
	if (end == TIMES_OUT && (pushed.result == GPUL_FIFO_TIMED_OUT || (raises && pushed.result == GPUL_FIFO_ABORTED)) &&
	    pushed.code == (raises ? GPUL_FIFO_CODE_TIMED_OUT : 0))
		return true;
	if (end == ABORTS && pushed.result == GPUL_FIFO_ABORTED && pushed.code == GPUL_FIFO_CODE_PEER_GONE && piece_is_lost(pushed.lost))
		return true;
	if (end == TAKEN_OVER && pushed.result == GPUL_FIFO_OK && pushed.code == 0 && pushed.n == p->n_blocks * p->count)
		return true;
	return fault_failed(f, "the kernels ended with %u after %llu triggers, code %#x, event %s", pushed.result,
			    (unsigned long long)pushed.n, pushed.code, gpul_ipc_event_name(pushed.lost));
}

/* A second proxy must get, in order, all triggers that the first proxy did not release. */
static bool take_over(struct fault *f, const struct child *kernels, const struct pushes *p)
{
	struct child heir = { 0 };
	uint64_t n_right, next;
	bool good = fifo_lost(f, kernels) && fifo_end_start(f, NULL, &heir) && fifo_lease(f, kernels, &heir, false) &&
		    must(f, &heir, 's', SERVE_SPINNING) && pushed_as(f, kernels, p, TAKEN_OVER) && must(f, &heir, 'd', 0) &&
		    must(f, &heir, 'z', 0) && fifo_checked(f, &heir, &n_right, &next);

	if (good && n_right && next && next != p->count)
		good = fault_failed(f, "the second proxy's last trigger was %llu", (unsigned long long)next);
	good = good && must(f, &heir, 'x', 0) && must(f, kernels, 'v', FAULT_WAIT_MS) && actor_end(f, &heir);
	child_kill(&heir);
	return good;
}

/* Attach, start the kernels, and kill the victim while it serves them. */
static bool kill_while_serving(struct fault *f, const struct fifo_step *s, unsigned round, struct child *victim, bool victim_owns,
			       const struct child *survivor, const struct pushes *p)
{
	const struct note go = { .command = s->command, .value = s->value };
	const struct child *owner = victim_owns ? victim : survivor, *guest = victim_owns ? survivor : victim;

	if (!offer(f, owner) || !fifo_lease(f, owner, guest, strcmp(s->step.point, "attached") == 0) || !fifo_push(f, survivor, p))
		return false;
	note_send(victim->line, &go); /* fails if the victim was already killed */
	if (s->step.point == from_outside)
		kill_now(f, victim, round);
	return died_by(f, victim, SIGKILL);
}

static bool kill_proxy_at(struct fault *f, const struct fifo_step *s, unsigned round, const struct child *survivor)
{
	const bool victim_owns = round & 1;
	const enum ending end = ending_of(s, round, victim_owns);
	struct pushes p = { .n_blocks = FIFO_BLOCKS, .flags = flags_of_round(round), .count = end == TAKEN_OVER ? FEW : ENDLESS };
	struct child victim = { 0 };
	bool good;

	p.timeout_ns = 1000000ull * (unsigned)(end == TIMES_OUT ? fault_step_ms(f, SHORT_MS) : FAULT_WAIT_MS);
	if (s->value == SERVE_SLEEPING)
		p.flags |= FIFO_PUSH_SYNC_EACH; /* each push waits for the proxy, which would otherwise never sleep */
	good = fifo_end_start(f, &s->step, &victim) && kill_while_serving(f, s, round, &victim, victim_owns, survivor, &p) &&
	       (end == TAKEN_OVER ? take_over(f, survivor, &p) : pushed_as(f, survivor, &p, end)) && must(f, survivor, 'k', 0) &&
	       clean(f, survivor);
	child_kill(&victim);
	return good;
}

enum fault_verdict kill_proxy(struct fault *f)
{
	return campaign(f, proxy_steps, N_PROXY_STEPS, true, kill_proxy_at);
}

/* ---- the kernels' process is killed ----------------------------------------------------------- */

/* Steps of the kernels' process.  The last value of a row is the mode of the proxy. */
static const struct fifo_step pusher_steps[] = {
	{ { "its driver is open", "open", 1, 0 }, 0, 0 },
	{ { "it is attached", "attached", 1, 0 }, 0, SERVE_SPINNING },
	{ { "it is about to launch", "launching", 1, 0 }, 'p', SERVE_SLEEPING },
	{ { "it has launched", "launched", 1, 0 }, 'p', SERVE_SLEEPING },
	{ { "its kernels push", "asking", 5, 0 }, 'p', SERVE_SPINNING },
	{ { "its kernels wait for the proxy", "asking", 10, 0 }, 'p', SERVE_HOLDING },
	{ { "at an arbitrary time", from_outside, 1, 0 }, 'p', SERVE_SLEEPING },
	{ { "its kernels have ended", "pushed", 1, 0 }, 'p', SERVE_SLEEPING },
};
enum { N_PUSHER_STEPS = sizeof pusher_steps / sizeof pusher_steps[0] };

/* Run until the victim is killed and the proxy's thread has ended by itself. */
static bool kill_while_pushing(struct fault *f, const struct fifo_step *s, unsigned round, struct child *victim,
			       const struct child *survivor, struct note *noticed)
{
	const struct pushes p = { .n_blocks = FIFO_BLOCKS,
				  .count = strcmp(s->step.point, "pushed") == 0 ? FEW : ENDLESS,
				  .timeout_ns = FAULT_WAIT_MS * 1000000ull,
				  .flags = flags_of_round(round) };
	struct note push = { .command = s->command }, wait = { .command = 'w' };

	*noticed = (struct note){ .command = 'n' };
	if (!must(f, survivor, 's', s->value) || !note_send(survivor->line, noticed))
		return false;
	memcpy(push.text, &p, sizeof p);
	if (s->command && note_send(victim->line, &push)) /* do not wait for an answer, before which the victim may be killed */
		note_send(victim->line, &wait);
	if (s->step.point == from_outside)
		kill_now(f, victim, round);
	if (!died_by(f, victim, SIGKILL))
		return false;
	return note_receive(survivor->line, 2 * FAULT_WAIT_MS, noticed) || fault_failed(f, "'n': no answer");
}

/* Check that the proxy ended because the other process ended, and that it got all triggers that were pushed. */
static bool ends_well(struct fault *f, const struct fifo_step *s, const struct child *survivor, const struct note *noticed)
{
	struct note stopped;
	uint64_t n_right, next;

	if (noticed->status != GPUL_ESYS || noticed->native != EPIPE)
		return fault_failed(f, "the proxy ended with %d, %d: %s", (int)noticed->status, noticed->native, noticed->text);
	if (s->command)
		fault_noticed(f, (uint64_t)noticed->value);
	if (!child_do(survivor, 'z', 0, &stopped) || stopped.native != EPIPE)
		return fault_failed(f, "the proxy stopped with: %s", stopped.text);
	if (!fifo_checked(f, survivor, &n_right, &next) || !fifo_lost(f, survivor))
		return false;
	if (strcmp(s->step.point, "pushed") == 0 && (n_right != FIFO_BLOCKS * FEW || next != FEW))
		return fault_failed(f, "of %d triggers, %llu arrived", FIFO_BLOCKS * FEW, (unsigned long long)n_right);
	return true;
}

static bool kill_pusher_at(struct fault *f, const struct fifo_step *s, unsigned round, const struct child *survivor)
{
	const bool victim_owns = round & 1;
	struct child victim = { 0 };
	const struct child *owner = victim_owns ? &victim : survivor, *guest = victim_owns ? survivor : &victim;
	struct note noticed;
	bool good = fifo_end_start(f, &s->step, &victim);

	if (good && strcmp(s->step.point, "open") == 0)
		return died_by(f, &victim, SIGKILL) && must(f, survivor, 'c', 0);
	good = good && offer(f, owner) && fifo_lease(f, owner, guest, strcmp(s->step.point, "attached") == 0) &&
	       kill_while_pushing(f, s, round, &victim, survivor, &noticed) && ends_well(f, s, survivor, &noticed) && clean(f, survivor);
	child_kill(&victim);
	return good;
}

enum fault_verdict kill_pusher(struct fault *f)
{
	return campaign(f, pusher_steps, N_PUSHER_STEPS, false, kill_pusher_at);
}

/* ---- the proxy is stopped --------------------------------------------------------------------- */

/* Stop the proxy: the kernels time out, or wait and continue after SIGCONT. */
static bool stop_once(struct fault *f, bool goes_on, const struct child *kernels, const struct child *proxy)
{
	const int timeout_ms = goes_on ? FAULT_WAIT_MS : fault_step_ms(f, SHORT_MS);
	const struct pushes p = { .n_blocks = FIFO_BLOCKS,
				  .count = goes_on ? 5 * FEW : ENDLESS,
				  .timeout_ns = (uint64_t)timeout_ms * 1000000,
				  .flags = FIFO_PUSH_SYNC_EACH };
	struct pushed pushed;
	uint64_t n_right, next;

	if (!offer(f, kernels) || !fifo_lease(f, kernels, proxy, false) || !must(f, proxy, 's', SERVE_SPINNING) ||
	    !fifo_push(f, kernels, &p))
		return false;
	usleep(1000);
	kill(proxy->pid, SIGSTOP);
	if (goes_on) {
		usleep(20000);
		kill(proxy->pid, SIGCONT);
	}
	if (!fifo_pushed(f, kernels, true, &pushed))
		return false;
	kill(proxy->pid, SIGCONT);
	if (pushed.result != (goes_on ? GPUL_FIFO_OK : GPUL_FIFO_TIMED_OUT) || pushed.code || pushed.lost != GPUL_IPC_NONE)
		return fault_failed(f, "the kernels ended with %u, code %#x, event %s", pushed.result, pushed.code,
				    gpul_ipc_event_name(pushed.lost));
	if (!must(f, proxy, 'd', 0) || !must(f, proxy, 'z', 0) || !fifo_checked(f, proxy, &n_right, &next))
		return false;
	if (n_right != pushed.n)
		return fault_failed(f, "%llu triggers were pushed, %llu arrived", (unsigned long long)pushed.n,
				    (unsigned long long)n_right);
	return must(f, kernels, 'k', 0) && must(f, proxy, 'x', 0) && must(f, kernels, 'v', FAULT_WAIT_MS) && clean(f, kernels);
}

enum fault_verdict stopped_proxy(struct fault *f)
{
	struct child kernels = { 0 }, proxy = { 0 };
	bool good = fifo_end_start(f, NULL, &kernels) && warm_up(f, &kernels, true) && fifo_end_start(f, NULL, &proxy);

	for (unsigned i = 0; good && i < f->times; i++)
		good = stop_once(f, i & 1, &kernels, &proxy);
	good = good && actor_end(f, &proxy) && actor_end(f, &kernels);
	if (proxy.pid)
		kill(proxy.pid, SIGCONT);
	child_kill(&proxy);
	child_kill(&kernels);
	return good ? FAULT_OK : FAULT_FAILED;
}
