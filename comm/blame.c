/* blame.c — finds the rank that causes a time-out: the last one in a chain of waiting ranks.
 *
 *     rank 3 ──waits for──> rank 2 ──waits for──> rank 1, whose kernels wait for no rank: rank 1 is the cause
 *
 * When a wait times out, the rank that it waited for is often not the cause, because it waits for yet another rank.  So the rank
 * whose wait times out first asks all ranks which rank their kernels wait for, collects the replies for a while, and follows the
 * chain.  A waiting kernel repeatedly changes a word in host memory (device/wait.cuh): if the word changes after the request, the
 * kernel still waits.  The time limit for replies is measured, not fixed: interpreted kernels on a busy machine get little CPU
 * time, so the limit is a multiple of the longest time between two changes of such a word. */
#include <stdio.h>
#include <time.h>

#include "comm/comm_internal.h"
#include "core/clock.h"

/* The bits of the word that a rank publishes with gpul_boot_set_waits():
 *
 *     63          48 47          34  33       32    31                                     0
 *    ┌──────────────┬──────────────┬─────────┬──────┬───────────────────────────────────────┐  asks: a kernel of this rank has timed
 *    │ gap in ms    │              │ answers │ asks │ ranks for which this rank's kernels   │  out.  answers: this rank has read such
 *    └──────────────┴──────────────┴─────────┴──────┴ have waited since `answers` was set ──┘  a request.  gap: see note_gap() */
#define ASKS    (1ull << 32)
#define ANSWERS (1ull << 33)
enum { GAP_SHIFT = 48, LONGEST_GAP_MS = 0xffff };

/* The shortest and the longest time to wait for the replies of the other ranks.  A waiting kernel changes its word every 0.7 ms on
 * a GPU, but more rarely if it is interpreted and the CPU is busy.  The maximum is needed because the gap that a rank measures may
 * also include the time between two short waits. */
/* clang-format off */
enum { LEAST_MS = 300, MOST_MS = 3000, INTERPRETED_LEAST_MS = 1000, INTERPRETED_MOST_MS = 15 * 1000, GAPS = 8, NAP_MS = 5,
       LEAST_UNDELIVERED_MS = 500 };
/* clang-format on */

static uint64_t least_ms(const gpul_comm *c)
{
	return c->interprets ? INTERPRETED_LEAST_MS : LEAST_MS;
}

static bool anyone_asks(const gpul_comm *c)
{
	for (int r = 0; r < c->n_ranks; r++)
		if (gpul_boot_waits(c->boot, r) & ASKS)
			return true;
	return false;
}

/* Record the time between two changes of a kernel's word.  The longest gaps of the current and of the previous period are kept.  A
 * period is a quarter of the time-out, so both lie within the wait that times out, and the time between two waits is not counted. */
static void note_gap(gpul_comm *c, uint64_t gap_ns, uint64_t now)
{
	struct wait_watch *w = &c->waits;

	if (now - w->gaps_ns > (uint64_t)(c->options.timeout_ms > 0 ? c->options.timeout_ms : 0) * 1000 * 1000 / 4) {
		w->gap_ns[0] = w->gap_ns[1];
		w->gap_ns[1] = 0;
		w->gaps_ns = now;
	}
	if (gap_ns > w->gap_ns[1])
		w->gap_ns[1] = gap_ns;
}

static uint64_t longest_gap_ms(const struct wait_watch *w)
{
	const uint64_t ms = (w->gap_ns[0] > w->gap_ns[1] ? w->gap_ns[0] : w->gap_ns[1]) / 1000000;

	return ms < LONGEST_GAP_MS ? ms : LONGEST_GAP_MS;
}

/* Return for how long puts must be unacknowledged before the network counts as the cause of a time-out. */
static unsigned undelivered_ms(const gpul_comm *c)
{
	const int half_ms = c->options.timeout_ms / 2;

	return half_ms > LEAST_UNDELIVERED_MS ? (unsigned)half_ms : LEAST_UNDELIVERED_MS;
}

void gpul_comm_watch_waits(gpul_comm *c)
{
	const gpul_comm_report *r = &c->control->report;
	const uint64_t now = gpul_clock_ns();
	struct wait_watch *w = &c->waits;
	const bool answers = w->asked; /* a word that changed before the request may be of a wait that has ended, so it does not count */
	bool changed = false;

	for (int b = 0; b < GPUL_COMM_MAX_BLOCKS; b++) {
		const uint64_t word = __atomic_load_n(&c->control->waits[b], __ATOMIC_RELAXED);

		if (word == w->seen[b])
			continue;
		changed = true;
		if (answers && (word & 0xff) < (unsigned)c->n_ranks)
			w->ranks |= 1u << (word & 0xff);
		if (w->seen_ns[b])
			note_gap(c, now - w->seen_ns[b], now);
		w->seen[b] = word;
		w->seen_ns[b] = now;
	}
	/* a kernel is waiting, although the library may not have launched it (it can be part of a CUDA graph), so wake the watch thread */
	if (changed)
		gpul_bell_ring(gpul_boot_bell(c->boot));
	if (!w->asked) {
		w->asked = anyone_asks(c);
		if (!w->asked)
			return;
		gpul_comm_network_report(c);
	}
	/* Check the network before this rank replies by ANSWERS, so that the asking rank receives a failure before the reply. */
	if (!atomic_load(&c->failed) &&
	    gpul_comm_network_undelivered(c, undelivered_ms(c), GPUL_COMM_TIMED_OUT, "a kernel has waited longer than options.timeout_ms"))
		return;
	/* A kernel whose wait has timed out has returned, so its word no longer changes.  Add the rank that it waited for,
	 * because otherwise this rank would look like the cause. */
	if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == GPUL_COMM_REPORT_READY && r->peer >= 0 && r->peer < c->n_ranks)
		w->ranks |= 1u << r->peer;
	gpul_boot_set_waits(c->boot, (gpul_boot_waits(c->boot, c->rank) & ASKS) | ANSWERS | longest_gap_ms(w) << GAP_SHIFT |
					     (w->ranks & ~(1u << c->rank)));
}

/* The ends of the chains of waiting ranks, according to the replies so far. */
struct chain {
	int silent; /* the rank that has not replied, because its process is stopped; -1: none */
	int late;   /* the rank whose kernels wait for no other rank; -1: none */
};

static struct chain follow_chain(const gpul_comm *c, int first)
{
	struct chain end = { -1, -1 };
	uint32_t reached = 1u << first, todo = reached;

	while (todo) {
		const int r = __builtin_ctz(todo);
		const uint64_t word = gpul_boot_waits(c->boot, r);
		const uint32_t waits = (uint32_t)word & (uint32_t)((1ull << c->n_ranks) - 1);

		todo &= todo - 1;
		if (r == c->rank) /* this rank is not the cause, because its own kernel has timed out */
			continue;
		if (!(word & ANSWERS) && end.silent < 0)
			end.silent = r;
		else if (word & ANSWERS && !waits && end.late < 0)
			end.late = r;
		todo |= waits & ~reached;
		reached |= waits;
	}
	return end;
}

/* Return how long to wait for replies: a multiple of the longest gap that any rank has published, within the limits above. */
static uint64_t patience_ms(const gpul_comm *c)
{
	const uint64_t least = least_ms(c), most = c->interprets ? INTERPRETED_MOST_MS : MOST_MS;
	uint64_t gap_ms = 0, ms;

	for (int r = 0; r < c->n_ranks; r++) {
		ms = gpul_boot_waits(c->boot, r) >> GAP_SHIFT;
		gap_ms = ms > gap_ms ? ms : gap_ms;
	}
	ms = least + GAPS * gap_ms;
	return ms < most ? ms : most;
}

/* Ask all ranks which ranks they wait for, and collect the replies until every rank of the chain waits (the chain is a cycle) or
 * the time limit has passed.  The time is the sum of the sleeps, so that it does not advance while the whole machine is busy or
 * suspended.  Returns false if the communicator has failed meanwhile. */
static bool ask_ranks(gpul_comm *c, int first, struct chain *end)
{
	const struct timespec nap = { .tv_nsec = NAP_MS * 1000 * 1000 };

	gpul_boot_set_waits(c->boot, gpul_boot_waits(c->boot, c->rank) | ASKS);
	*end = follow_chain(c, first);
	for (uint64_t ms = 0; !atomic_load(&c->failed) && !atomic_load(&c->stop); ms += NAP_MS) {
		gpul_comm_watch_waits(c);
		(void)nanosleep(&nap, NULL);
		*end = follow_chain(c, first);
		if ((end->silent < 0 && end->late < 0) || ms >= patience_ms(c))
			break;
		if (end->silent >= 0 && ms >= least_ms(c) && gpul_boot_silent_ms(c->boot, end->silent) >= least_ms(c))
			break;
	}
	return !atomic_load(&c->failed);
}

static const char *thing(uint32_t what)
{
	static const char *const things[] = {
		[GPUL_COMM_WAITED_FOR_DATA] = "data",
		[GPUL_COMM_WAITED_FOR_CREDIT] = "a credit",
		[GPUL_COMM_WAITED_FOR_OFFER] = "the address of a receive buffer",
		[GPUL_COMM_WAITED_FOR_GREETING] = "the start of the same call",
		[GPUL_COMM_WAITED_FOR_GOODBYE] = "the end of a call",
	};

	return what < sizeof things / sizeof *things && things[what] ? things[what] : "data";
}

void gpul_comm_timed_out(gpul_comm *c)
{
	const gpul_comm_report *r = &c->control->report;
	const int timeout_ms = c->options.timeout_ms;
	struct chain end;
	char wait[128];
	int culprit;

	if (!ask_ranks(c, r->peer, &end))
		return;
	culprit = end.silent >= 0 ? end.silent : end.late;
	(void)snprintf(wait, sizeof wait, "rank %d waited %d ms for %s from rank %d", c->rank, timeout_ms, thing(r->what), (int)r->peer);
	if (end.silent >= 0)
		gpul_comm_fail(c, GPUL_COMM_RANK_STALLED, culprit,
			       "rank %d (pid %d) is not running: is it stopped by SIGSTOP or a debugger?  %s", culprit,
			       (int)c->paths[culprit].pid, wait);
	else if (culprit < 0)
		gpul_comm_fail(c, GPUL_COMM_TIMED_OUT, r->peer,
			       "%s (pid %d), which also waits: they made different calls, or both send before they receive; "
			       "put such calls into one group",
			       wait, (int)c->paths[r->peer].pid);
	else if (culprit == r->peer)
		gpul_comm_fail(c, GPUL_COMM_TIMED_OUT, culprit,
			       "%s (pid %d): that process is running, but has not made the same call, or its GPU is busy", wait,
			       (int)c->paths[culprit].pid);
	else
		gpul_comm_fail(c, GPUL_COMM_TIMED_OUT, culprit,
			       "rank %d (pid %d) is running, but has not made the same call, or its GPU is busy: %s, which itself waits "
			       "for rank %d",
			       culprit, (int)c->paths[culprit].pid, wait, culprit);
}
