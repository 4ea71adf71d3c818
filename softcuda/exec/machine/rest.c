/* rest.c — how a worker leaves the CPU to other threads while its blocks wait.
 *
 *     blocks without progress    sched_yield()
 *     quiet for NAP_AFTER_NS     sleeps between rounds (naps), each for a fraction of the time waited so far
 *     threads wait for CPUs      sleeps at the start of each period of REST_PERIOD_NS (rests), at the same time in all processes
 *
 * The rest is a workaround for Linux since 6.13 (measured on 6.18), whose scheduler starves other groups of processes (sessions with
 * sched_autogroup, or control groups): each time the weight of the running group changes, because one of its threads falls asleep
 * or wakes up, reweight_entity() calls place_entity(), which increases the group's lag as if it were not running. So the virtual
 * run time of a group whose threads often sleep and wake does not advance. It was measured with /sys/kernel/debug/sched/debug: in
 * 100 ms on the CPU the group's se->vruntime decreased by 0.8 ms, and a command of another session waited 33 s. The cause is
 * not polling: four pairs of processes that exchange bytes through pipes starve others for 5 s. A starved
 * group runs only when no thread of the starving group is on the CPU, so all waiting workers rest at the same time. Source: Linux commit
 * 6d71a9c61604, and its revert, https://lkml.iu.edu/hypermail/linux/kernel/2602.2/04151.html */
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "core/clock.h"
#include "softcuda/exec/warp/warp_internal.h"

/* A nap is a short sleep of a worker whose blocks have polled in vain for NAP_AFTER_NS, which is longer than a rank waits for another in a
 * small collective on an idle machine.  It takes 15 us more than its length; NAP_MOST_NS limits how late a change of the polled word is
 * seen.  A rest, of REST_NS in each REST_PERIOD_NS, lets starved processes run: workers rest only if some thread of the system waited for a
 * CPU for SHORT_PERCENT of the last period. */
enum {
	NAP_AFTER_NS = 400000,
	NAP_PART = 16,
	NAP_LEAST_NS = 1000,
	NAP_MOST_NS = 50000,
	REST_PERIOD_NS = 100000000,
	REST_NS = 4000000,
	SHORT_PERCENT = 40,
};

static void sleep_ns(uint64_t ns)
{
	const struct timespec t = { .tv_nsec = (long)ns };

	nanosleep(&t, NULL);
}

/* Return how many microseconds, since boot, at least one thread has waited for a CPU; 0: unknown.  Source: Linux, accounting/psi.rst */
static uint64_t stalled_us(void)
{
	FILE *f = fopen("/proc/pressure/cpu", "re");
	unsigned long long us = 0;

	if (f && fscanf(f, "some avg10=%*f avg60=%*f avg300=%*f total=%llu", &us) != 1)
		us = 0;
	if (f)
		fclose(f);
	return us;
}

/* Return true if threads had to wait for CPUs since the previous check; checks are made once per period. */
static bool cpus_are_short(struct worker *k, uint64_t now)
{
	uint64_t stalled, elapsed_us = (now - k->pressure_ns) / 1000;

	if (now / REST_PERIOD_NS == k->pressure_ns / REST_PERIOD_NS)
		return k->cpus_short;
	stalled = stalled_us();
	k->cpus_short = k->pressure_ns && k->stalled_us && (stalled - k->stalled_us) * 100 >= elapsed_us * SHORT_PERCENT;
	k->pressure_ns = now;
	k->stalled_us = stalled;
	return k->cpus_short;
}

void gpul_worker_rest(struct worker *k, bool quiet)
{
	const uint64_t now = gpul_clock_ns(), phase = now % REST_PERIOD_NS;
	uint64_t part;

	if (quiet && !k->quiet_ns)
		k->quiet_ns = now;
	if (cpus_are_short(k, now) && phase < REST_NS) {
		sleep_ns(REST_NS - phase);
		return;
	}
	if (!quiet || now - k->quiet_ns < NAP_AFTER_NS) {
		sched_yield();
		return;
	}
	part = (now - k->quiet_ns) / NAP_PART;
	sleep_ns(part < NAP_LEAST_NS ? NAP_LEAST_NS : part > NAP_MOST_NS ? NAP_MOST_NS : part);
}
