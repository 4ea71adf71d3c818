/* relsim.c — run seeds of the simulation of a reliable connection: relsim --seeds 1-1000 [--jobs 2] [--failures 5] | --seed 7 --trace | --rate */
#include "tests/rdma/reliable/relsim.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"

enum { MOST_STEPS = 2000000, SEED_S = 10 };
static const uint64_t MOST_NS = UINT64_C(3000) * 1000000000;

/* ---- random numbers, reports ------------------------------------------------------------------------------------ */

uint64_t sim_random(struct sim *s)
{
	uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint32_t sim_below(struct sim *s, uint32_t n)
{
	return (uint32_t)((sim_random(s) >> 32) * n >> 32);
}

bool sim_chance(struct sim *s, unsigned permille)
{
	return permille && sim_below(s, 1000) < permille;
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list args;

	if (s->error)
		return;
	va_start(args, fmt);
	vsnprintf(s->text, sizeof s->text, fmt, args);
	va_end(args);
	s->error = s->text;
}

void sim_trace(const struct sim *s, const char *fmt, ...)
{
	va_list args;

	if (!s->trace)
		return;
	printf("%12.3f us  ", (double)s->now_ns * 1e-3);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

/* ---- one seed -------------------------------------------------------------------------------------------------------- */

static void choose(struct sim *s)
{
	static const unsigned paths[] = { 1, 1, 2, 4, 16, 256 };
	static const uint32_t windows[] = { 64, 128, 256, 1024 };
	static const int thresholds[] = { 0, 1, 3, 3, 20 };
	const uint32_t window = windows[sim_below(s, 4)];

	/* clang-format off */
	s->o = (gpul_rel_options){
		.chunk_bytes = 64 + sim_below(s, 400), .window = window, .messages = 1u << sim_below(s, 6),
		.n_paths = paths[sim_below(s, 6)], .spread = (gpul_rel_spread)sim_below(s, 3), .burst = 1 + sim_below(s, 8),
		.control = (gpul_rel_control_kind)sim_below(s, 3), .path_window = sim_chance(s, 500) ? 1 + sim_below(s, window) : 0,
		.threshold = thresholds[sim_below(s, 5)], .rto_min_ns = sim_chance(s, 500) ? 20000 : 0,
		.rto_max_ns = UINT64_C(200000000), .ack_every = 1 + sim_below(s, 16), .silence_ns = UINT64_C(20000000000),
		.credit = sim_chance(s, 300) ? 1 + sim_below(s, sim_chance(s, 500) ? 4 : window) : 0, .rate = 1000000 + sim_below(s, 2000) * 1000000ull,
		.first = sim_chance(s, 700) ? 0u - sim_below(s, 300) : (uint32_t)sim_random(s),
	};
	/* clang-format on */
	s->o.writes = sim_chance(s, 400);
	if (s->o.writes)
		s->o.fence_ns = sim_chance(s, 500) ? 100000 : 0;
	s->most_bytes = s->o.chunk_bytes * (window / 2 - s->o.writes);
	if (s->most_bytes > MOST_MESSAGE / 2)
		s->most_bytes = MOST_MESSAGE / 2;
	if (sim_chance(s, 500))
		s->most_bytes = s->o.chunk_bytes * 3;
	s->n_messages = 1 + sim_below(s, 40);
	s->hostile = sim_chance(s, 100);
	net_choose(s);
}

/* If there are several paths, let one die, or work again; at least one that is not closed always works. */
static void change_paths(struct sim *s)
{
	unsigned path = sim_below(s, s->o.n_paths), n_alive = 0;

	s->net.change_ns = s->now_ns + s->net.delay_ns * (1 + sim_below(s, 400));
	for (unsigned i = 0; i < s->o.n_paths; i++)
		n_alive += !s->net.dead[i] && !s->ends[0].closed[i] && !s->ends[1].closed[i];
	while (!n_alive && (s->ends[0].closed[path] || s->ends[1].closed[path]))
		path = (path + 1) % s->o.n_paths;
	if (s->o.n_paths > 1 && (s->net.dead[path] || n_alive > 1))
		s->net.dead[path] = !s->net.dead[path];
	sim_trace(s, "path %u %s", path, s->net.dead[path] ? "dies" : "works");
}

/* Advance to the next time at which something happens; false: nothing ever does. */
static bool advance(struct sim *s)
{
	uint64_t next_ns = net_next_ns(s);

	for (unsigned e = 0; e < ENDS; e++) {
		const struct end *end = &s->ends[e];
		uint64_t ns = end->failed ? UINT64_MAX : gpul_rel_wake_ns(end->rel);

		if (ns < end->paused_until_ns && ns != UINT64_MAX)
			ns = end->paused_until_ns;
		if (end->paused_until_ns > s->now_ns && end->paused_until_ns < ns)
			ns = end->paused_until_ns;
		next_ns = ns < next_ns ? ns : next_ns;
	}
	if (next_ns == UINT64_MAX)
		return false;
	s->now_ns = next_ns > s->now_ns ? next_ns : s->now_ns + (net_next_ns(s) > s->now_ns);
	return true;
}

/* A path that times out again and again backs off, and never becomes so slow that it is useless. */
static void check_back_off(struct sim *s, unsigned e)
{
	const struct end *end = &s->ends[e];
	gpul_rel_counters n;
	gpul_rel_path_info path;

	gpul_rel_count(end->rel, &n);
	if (end->failed && n.timeouts > end->timeouts_before + s->o.n_paths * (30 + s->o.silence_ns / s->o.rto_max_ns))
		sim_fail(s, "end %u: %llu time-outs in a silent network", e, (unsigned long long)(n.timeouts - end->timeouts_before));
	for (unsigned i = 0; i < s->o.n_paths; i++) {
		gpul_rel_path_about(end->rel, i, &path);
		if (s->o.control == GPUL_REL_TIMELY && path.rate < s->o.rate / 2000)
			sim_fail(s, "end %u: path %u has a rate of %llu bytes/s", e, i, (unsigned long long)path.rate);
	}
}

static void check_end(struct sim *s)
{
	for (unsigned e = 0; e < ENDS && !s->hostile; e++)
		check_back_off(s, e);
	for (unsigned e = 0; e < ENDS && !s->hostile; e++) {
		const struct end *end = &s->ends[e];

		if (end->failed && s->net.all_dead_ns == UINT64_MAX)
			sim_fail(s, "end %u has failed, but a path worked: %s", e, end->why.what);
		if (end->failed && end->failed_ns - s->net.all_dead_ns > s->o.silence_ns + 5 * s->o.rto_max_ns)
			sim_fail(s, "end %u failed %.3f s after the network", e, (double)(end->failed_ns - s->net.all_dead_ns) * 1e-9);
		if (!end->failed && end->n_acked != s->n_messages && s->net.all_dead_ns == UINT64_MAX)
			sim_fail(s, "end %u: %u of %u messages are acknowledged, and nothing will happen any more", e, end->n_acked,
				 s->n_messages);
		if (!end->failed && gpul_rel_backlog(end->rel))
			sim_fail(s, "end %u neither fails nor finishes", e);
	}
}

static bool run_seed(struct sim *s, uint64_t seed, bool trace)
{
	unsigned n_steps = 0;

	*s = (struct sim){ .seed = seed, .random = seed, .trace = trace };
	choose(s);
	for (unsigned e = 0; e < ENDS; e++)
		end_create(s, e);
	while (!s->error && !(end_finished(s, 0) && end_finished(s, 1))) {
		if (s->n_heap && net_next_ns(s) <= s->now_ns) {
			struct datagram *d = net_take(s);

			end_receive(s, d);
			free(d);
		}
		if (s->now_ns >= s->net.change_ns)
			change_paths(s);
		s->freed = false;
		for (unsigned e = 0; e < ENDS; e++)
			end_run(s, e);
		if (net_next_ns(s) > s->now_ns && !advance(s) && !s->freed)
			break;
		if (s->now_ns > MOST_NS || ++n_steps > MOST_STEPS) {
			if (!s->hostile)
				sim_fail(s, "not finished after %u steps", n_steps);
			break;
		}
	}
	check_end(s);
	for (unsigned e = 0; e < ENDS; e++)
		end_destroy(s, e);
	net_free(s);
	if (s->error) {
		printf("seed %" PRIu64 ": %.3f s: %s\n", seed, (double)s->now_ns * 1e-9, s->error);
		fflush(stdout);
	}
	return !s->error;
}

static int run_seeds(uint64_t first, uint64_t last, unsigned job, unsigned n_jobs, int most_failures)
{
	const struct itimerval limit = { .it_value = { .tv_sec = SEED_S } };
	struct sim *s = malloc(sizeof *s);
	int n_failed = 0;

	for (uint64_t seed = first + job; s && seed <= last && n_failed < most_failures; seed += n_jobs) {
		setitimer(ITIMER_VIRTUAL, &limit, NULL); /* CPU time, because a planted mistake may never return */
		n_failed += !run_seed(s, seed, false);
	}
	free(s);
	fflush(stdout);
	return n_failed ? 1 : s ? 0 : 2;
}

/* ---- speed ----------------------------------------------------------------------------------------------------------------- */

/* Chunks a second through two ends on one core, without a network. */
static int measure_rate(void)
{
	const gpul_rel_options common = {
		.window = 4096, .threshold = 3, .control = GPUL_REL_FIXED, .ack_every = 32, .n_paths = 4, .burst = 32
	};
	gpul_rel *ends[ENDS];
	gpul_rdma_failure why = { 0 };
	const uint64_t begin_ns = gpul_clock_ns();
	uint64_t now_ns = 0, n_chunks = 0;
	gpul_rel_datagram d;
	gpul_rel_event v;
	gpul_rel_chunk c;

	for (unsigned e = 0; e < ENDS; e++) {
		gpul_rel_options o = common;

		o.token = e, o.peer_token = !e;
		if (gpul_rel_create(&o, 0, &ends[e], NULL))
			return 1;
	}
	while (gpul_clock_ns() - begin_ns < UINT64_C(2000000000)) {
		now_ns += 1000;
		while (gpul_rel_send(ends[0], &(gpul_rel_message){ .bytes = 1 << 20, .notify = true }))
			;
		for (unsigned e = 0; e < ENDS; e++)
			while (gpul_rel_next(ends[e], now_ns, &d)) {
				n_chunks += d.bytes != 0;
				if (!gpul_rel_receive(ends[!e], now_ns, d.header, d.header_bytes + d.bytes, &c, &why))
					return 1;
			}
		for (unsigned e = 0; e < ENDS; e++)
			while (gpul_rel_poll(ends[e], &v))
				;
	}
	printf("%.1f million chunks/s, both ends on one core\n", (double)n_chunks / (double)(gpul_clock_ns() - begin_ns) * 1e3);
	for (unsigned e = 0; e < ENDS; e++)
		gpul_rel_destroy(ends[e]);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t first = 1, last = 1000;
	unsigned n_jobs = 1;
	bool trace = false;
	int status = 0, st, most_failures = 5;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--seeds") && i + 1 < argc)
			sscanf(argv[++i], "%" SCNu64 "-%" SCNu64, &first, &last);
		else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
			first = last = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--jobs") && i + 1 < argc)
			n_jobs = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--failures") && i + 1 < argc)
			most_failures = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--trace"))
			trace = true;
		else if (!strcmp(argv[i], "--rate"))
			return measure_rate();
		else
			return 2;
	}
	if (trace) {
		struct sim *s = malloc(sizeof *s);

		status = s ? !run_seed(s, first, true) : 2;
		free(s);
		return status;
	}
	for (unsigned job = 0; job < n_jobs; job++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(run_seeds(first, last, job, n_jobs, most_failures));
		}
	while (wait(&st) > 0) {
		if (WIFSIGNALED(st))
			printf("a job was ended by signal %d\n", WTERMSIG(st));
		status |= WIFEXITED(st) ? WEXITSTATUS(st) : 1;
	}
	printf("seeds %" PRIu64 "-%" PRIu64 ": %s\n", first, last, status ? "failed" : "all right");
	return status;
}
