/* blame.c — who keeps whom waiting: the rank at the end of a chain of waits.
 *
 *     rank 3 ──waits for──> rank 2 ──waits for──> rank 1, whose kernels wait for no rank: rank 1 is the cause
 *
 * When a wait times out, the rank that it waited for is often innocent: it waits itself.  So each rank publishes for which ranks
 * its kernels wait at present, and the rank whose wait times out first follows the chain. */
#include <stdio.h>
#include <time.h>

#include "comm/comm_internal.h"
#include "core/clock.h"

/* A wait is over when its word has not changed for a while; the kernel writes it once in a millisecond on a GPU, but an
 * interpreted kernel gets the CPU less often.  Short time-outs need a shorter memory. */
static uint64_t fresh_ms(const gpul_comm *c)
{
	const int quarter = c->options.timeout_ms / 4, most = c->interprets ? 2000 : 500;

	return quarter < 50 ? 50 : quarter > most ? (uint64_t)most : (uint64_t)quarter;
}

void gpul_comm_publish_waits(gpul_comm *c)
{
	const gpul_comm_report *r = &c->control->report;
	const uint64_t now = gpul_clock_ns();
	uint32_t waits = 0;

	for (int b = 0; b < GPUL_COMM_MAX_BLOCKS; b++) {
		const uint64_t word = __atomic_load_n(&c->control->waits[b], __ATOMIC_RELAXED);

		if (word != c->waits_seen[b] && (word & 0xff) < (unsigned)c->n_ranks)
			c->waits_ns[word & 0xff] = now;
		c->waits_seen[b] = word;
	}
	for (int p = 0; p < c->n_ranks; p++)
		if (c->waits_ns[p] && now - c->waits_ns[p] < fresh_ms(c) * 1000 * 1000)
			waits |= 1u << p;
	/* A kernel whose wait has timed out has left, but its rank is not the cause. */
	if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) == GPUL_COMM_REPORT_READY && r->peer >= 0 && r->peer < c->n_ranks)
		waits |= 1u << r->peer;
	gpul_boot_set_waits(c->boot, waits & ~(1u << c->rank));
}

/* The end of the chain of waits that begins at a rank: a stopped rank, else one that does not wait; -1: all of them wait. */
static int end_of_chain(const gpul_comm *c, int first, bool *stopped)
{
	const unsigned silent_ms = (unsigned)fresh_ms(c);
	uint32_t reached = 1u << first, todo = reached;
	int late = -1;

	*stopped = false;
	while (todo) {
		const int r = __builtin_ctz(todo);
		uint32_t waits;

		todo &= todo - 1;
		if (r == c->rank)  /* its kernel has just waited */
			continue;
		if (gpul_boot_silent_ms(c->boot, r) >= silent_ms) {
			*stopped = true;
			return r;
		}
		waits = gpul_boot_waits(c->boot, r) & (uint32_t)((1ull << c->n_ranks) - 1);
		if (!waits && late < 0)
			late = r;
		todo |= waits & ~reached;
		reached |= waits;
	}
	return late;
}

/* Let the ranks find out which waits are over, and which processes are stopped.  False: the communicator has failed meanwhile. */
static bool let_ranks_look(gpul_comm *c)
{
	const struct timespec nap = { .tv_nsec = 5 * 1000 * 1000 };
	const uint64_t until = gpul_clock_ns() + (fresh_ms(c) + 50) * 1000 * 1000;

	while (gpul_clock_ns() < until && !atomic_load(&c->failed) && !atomic_load(&c->stop)) {
		gpul_comm_publish_waits(c);
		(void)nanosleep(&nap, NULL);
	}
	return !atomic_load(&c->failed);
}

static const char *thing(uint32_t what)
{
	static const char *const things[] = {
		[GPUL_COMM_WAITED_FOR_DATA] = "data", [GPUL_COMM_WAITED_FOR_CREDIT] = "a credit",
		[GPUL_COMM_WAITED_FOR_OFFER] = "an offer", [GPUL_COMM_WAITED_FOR_GREETING] = "a greeting",
		[GPUL_COMM_WAITED_FOR_GOODBYE] = "the end of a call",
	};

	return what < sizeof things / sizeof *things && things[what] ? things[what] : "data";
}

void gpul_comm_timed_out(gpul_comm *c)
{
	const gpul_comm_report *r = &c->control->report;
	const int timeout_ms = c->options.timeout_ms;
	char wait[96];
	bool stopped;
	int culprit;

	if (!let_ranks_look(c))
		return;
	(void)snprintf(wait, sizeof wait, "rank %d waited %d ms for %s of rank %d", c->rank, timeout_ms, thing(r->what), (int)r->peer);
	culprit = end_of_chain(c, r->peer, &stopped);
	if (stopped)
		gpul_comm_fail(c, GPUL_COMM_RANK_STALLED, culprit, "rank %d (pid %d) does not run: is it stopped, by SIGSTOP or a debugger?  %s",
			       culprit, (int)c->paths[culprit].pid, wait);
	else if (culprit < 0)
		gpul_comm_fail(c, GPUL_COMM_TIMED_OUT, r->peer, "%s (pid %d), which waits, too: they have made different calls, or send "
			       "before they receive; put such calls into one group", wait, (int)c->paths[r->peer].pid);
	else if (culprit == r->peer)
		gpul_comm_fail(c, GPUL_COMM_TIMED_OUT, culprit, "%s (pid %d), which runs, but has not made the same call, or whose GPU is busy",
			       wait, (int)c->paths[culprit].pid);
	else
		gpul_comm_fail(c, GPUL_COMM_TIMED_OUT, culprit, "rank %d (pid %d) runs, but has not made the same call, or its GPU is busy: %s, "
			       "which waits for rank %d in turn", culprit, (int)c->paths[culprit].pid, wait, culprit);
}
