/* fault.c — run rounds of the scenarios, each with a random victim, moment, number of ranks and transport.
 *
 *     build/tests/comm/fault/fault                            a few rounds of each
 *     build/tests/comm/fault/fault --full                     the numbers that gpuload must pass; ranks must end within 2 s
 *     build/tests/comm/fault/fault --only kill --rounds 1000 --seed 7 --ranks 2-8
 *
 * --transport net: the network between all ranks.  GPULOAD_DRIVER selects the driver. */
#include "tests/comm/fault/fault.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/fault/count.h"

enum { HANGS_MS = 120000, BAR_MS = 2000, MOST_ROUNDS = 100000, MOST_STEPS = 48, MOST_DELAY_US = 3000, WHOLE_RUN_US = 250000 };

struct options {
	const char *only;
	unsigned rounds;
	uint64_t seed;
	int least, most; /* range of the number of ranks */
	bool full;
	gpul_comm_transport transport; /* AUTO: chosen at random in each round */
};

struct run {
	const struct options *o;
	struct shared *s;
	int shared_fd;
	char folder[64];
	uint64_t random;
	/* statistics of the current scenario */
	uint64_t *delays_ns;
	unsigned n_delays, phases[N_PHASES];
};

static uint64_t draw_number(struct run *run, uint64_t limit)
{
	run->random = run->random * 6364136223846793005u + 1442695040888963407u;
	return (run->random >> 33) % limit;
}

/* ---- one round -------------------------------------------------------------------------------------------------- */

static void choose_round(struct run *run, const struct scenario *sc)
{
	struct shared *s = run->s;
	const int least = run->o->least > sc->least_ranks ? run->o->least : sc->least_ranks;
	const int most = run->o->most > least ? run->o->most : least;

	memset(s, 0, sizeof *s);
	s->deed = sc->deed;
	s->place = sc->place;
	s->n_ranks = least + (int)draw_number(run, (uint64_t)(most - least + 1));
	s->victim = sc->deed == DEED_NOTHING ? -1 : (int)draw_number(run, (uint64_t)s->n_ranks);
	s->transport = draw_number(run, 4) == 0 ? GPUL_COMM_HOST : GPUL_COMM_TRANSPORT_AUTO;
	s->algo = draw_number(run, 2) ? (gpul_comm_algo)draw_number(run, GPUL_COMM_N_ALGOS) : GPUL_COMM_ALGO_AUTO;
	s->proto = draw_number(run, 2) ? (gpul_comm_proto)draw_number(run, GPUL_COMM_N_PROTOS) : GPUL_COMM_PROTO_AUTO;
	if (run->o->transport != GPUL_COMM_TRANSPORT_AUTO)
		s->transport = run->o->transport;
	s->has_network = s->transport == GPUL_COMM_NET;
	if (s->has_network) { /* the network supports only some algorithms and protocols */
		s->proto = GPUL_COMM_PROTO_AUTO;
		s->algo = s->algo == GPUL_COMM_ONE_SHOT || s->algo == GPUL_COMM_TWO_LEVEL ? GPUL_COMM_RING : s->algo;
	}
	s->at_step = sc->deed == DEED_NO_MEMORY || sc->deed == DEED_NO_WINDOW ? 0 : (uint32_t)draw_number(run, MOST_STEPS);
	s->n_cycles = sc->deed == DEED_NOTHING || sc->deed == DEED_NO_MEMORY ? 2 : 0;
	s->seed = draw_number(run, 1u << 31);
	s->timeout_ms = sc->timeout_ms;
	s->create_timeout_ms = sc->create_timeout_ms;
}

static bool all_others_done(const struct shared *s)
{
	for (int r = 0; r < s->n_ranks; r++)
		if (r != s->victim && !atomic_load(&s->ranks[r].done))
			return false;
	return true;
}

static bool has_ended(pid_t launcher, int *status)
{
	return waitpid(launcher, status, WNOHANG) == launcher;
}

/* True if the launcher has ended; kill() cannot tell, because it also succeeds for a zombie. */
static bool is_zombie(pid_t launcher)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)launcher, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == launcher;
}

/* Send a signal to the victim, at the chosen step or at a random time; returns the time of the signal. */
static uint64_t strike(struct run *run, pid_t launcher, int signal)
{
	struct outcome *victim = &run->s->ranks[run->s->victim];
	const bool by_time = draw_number(run, 4) == 0;
	const uint64_t delay_us = draw_number(run, by_time ? WHOLE_RUN_US : MOST_DELAY_US);
	const uint64_t until = gpul_clock_ns() + (uint64_t)HANGS_MS * 1000000;
	uint64_t now;

	while (atomic_load(&victim->steps) <= (by_time ? 0 : run->s->at_step) && gpul_clock_ns() < until && !is_zombie(launcher))
		(void)usleep(50);
	(void)usleep((useconds_t)delay_us);
	if (victim->pid == 0)
		return 0;
	run->phases[atomic_load(&victim->phase)]++;
	now = gpul_clock_ns();
	(void)kill(victim->pid, signal);
	return now;
}

static bool await_end(struct shared *s, pid_t launcher, char text[TEXT_BYTES])
{
	const uint64_t until = gpul_clock_ns() + (uint64_t)HANGS_MS * 1000000;
	bool continued = false;
	int status = 0;

	while (!has_ended(launcher, &status)) {
		if (!continued && s->victim >= 0 && all_others_done(s)) {
			continued = true;
			atomic_store(&s->others_done, 1);
			if (s->deed == DEED_IS_STOPPED)
				(void)kill(s->ranks[s->victim].pid, SIGCONT);
		}
		if (gpul_clock_ns() > until) {
			for (int r = 0; r < s->n_ranks; r++)
				if (!atomic_load(&s->ranks[r].done))
					(void)complain(text, "rank %d has not ended after %d s; it is in phase %u", r, HANGS_MS / 1000,
						       s->ranks[r].phase);
			(void)kill(launcher, SIGKILL);
			while (waitpid(-1, NULL, 0) > 0) /* when the launcher dies, the kernel kills the ranks (PR_SET_PDEATHSIG) */
				;
			return false;
		}
		(void)usleep(500);
	}
	return status == 0 || complain(text, "the launcher ended with wait status %#x", (unsigned)status);
}

/* Check that nothing is left: files of sockets and locks, processes, names in /dev/shm. */
static bool nothing_left(const struct run *run, char text[TEXT_BYTES])
{
	DIR *d = opendir(run->folder);
	char why[FAULT_TEXT] = "";
	bool clean = d != NULL;

	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.')
			clean = complain(text, "%s/%.200s is left", run->folder, e->d_name);
	if (d)
		(void)closedir(d);
	for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) != -1 || errno != ECHILD;) {
		clean = complain(text, "a process is left");
		if (pid == 0)
			(void)usleep(1000);
	}
	if (clean && !names_clean(run->folder, why))
		clean = complain(text, "%.300s", why);
	return clean;
}

static bool ranks_agree(const struct run *run, const struct scenario *sc, uint64_t struck_ns, char text[TEXT_BYTES])
{
	const struct shared *s = run->s;

	for (int r = 0; r < s->n_ranks; r++) {
		const struct outcome *o = &s->ranks[r];
		const bool may_end = r == s->victim && (s->deed == DEED_IS_KILLED || s->deed == DEED_KILLS_ITSELF || s->deed == DEED_EXITS);

		if (!o->done && !may_end)
			return complain(text, "rank %d ended without a result", r);
		if (o->complaint[0])
			return complain(text, "rank %d: %.350s", r, o->complaint);
		if (run->o->full && sc->deed == DEED_IS_KILLED && r != s->victim && o->ended_ns - struck_ns > BAR_MS * 1000000ull)
			return complain(text, "rank %d ended %.0f ms after the SIGKILL", r, (double)(o->ended_ns - struck_ns) / 1e6);
	}
	return sc->check(s, text);
}

/* Record the time from the signal until the last of the other ranks ended or, for an abort, until the GPU's kernel ended. */
static void note_delay(struct run *run, uint64_t struck_ns)
{
	const struct shared *s = run->s;
	uint64_t last = 0;

	if (s->deed == DEED_ABORTS) {
		run->delays_ns[run->n_delays++] = s->ranks[s->victim].abort_ns;
		return;
	}
	for (int r = 0; struck_ns && r < s->n_ranks; r++)
		if (r != s->victim && s->ranks[r].ended_ns > struck_ns + last)
			last = s->ranks[r].ended_ns - struck_ns;
	if (last)
		run->delays_ns[run->n_delays++] = last;
}

static bool run_round(struct run *run, const struct scenario *sc, char text[TEXT_BYTES])
{
	uint64_t struck_ns = 0;
	pid_t launcher;

	choose_round(run, sc);
	launcher = launch(run->s, run->shared_fd, run->folder);
	if (launcher < 0)
		return complain(text, "fork: %s", strerror(errno));
	if (sc->deed == DEED_IS_KILLED || sc->deed == DEED_IS_STOPPED)
		struck_ns = strike(run, launcher, sc->deed == DEED_IS_KILLED ? SIGKILL : SIGSTOP);
	if (!await_end(run->s, launcher, text) || !ranks_agree(run, sc, struck_ns, text) || !nothing_left(run, text))
		return false;
	note_delay(run, struck_ns);
	return true;
}

/* ---- all rounds ------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void print_delays(struct run *run)
{
	static const char *const names[N_PHASES] = { "start", "create", "alloc", "calls", "graph", "free", "destroy" };
	const unsigned n = run->n_delays;

	if (n) {
		qsort(run->delays_ns, n, sizeof *run->delays_ns, by_size);
		printf("; the ranks had ended after %.1f ms (median), %.1f (99 %%), %.1f (maximum)", (double)run->delays_ns[n / 2] / 1e6,
		       (double)run->delays_ns[(uint64_t)n * 99 / 100] / 1e6, (double)run->delays_ns[n - 1] / 1e6);
	}
	for (int p = 0, first = 1; p < N_PHASES; p++)
		if (run->phases[p]) {
			printf("%s %s %u", first ? "; victims in" : ",", names[p], run->phases[p]);
			first = 0;
		}
	printf("\n");
}

static void print_outcomes(const struct shared *s)
{
	for (int r = 0; r < s->n_ranks; r++)
		printf("    rank %d, phase %u, step %u: %s\n", r, s->ranks[r].phase, s->ranks[r].steps,
		       s->ranks[r].done ? s->ranks[r].text : "no result");
}

/* Run all rounds of a scenario.  Returns 1 if it failed, else 0. */
static int run_scenario(struct run *run, const struct scenario *sc)
{
	const unsigned rounds = run->o->rounds ? run->o->rounds : run->o->full ? sc->many : sc->few;

	run->n_delays = 0;
	memset(run->phases, 0, sizeof run->phases);
	if (!permitted(sc->place)) {
		printf("skip %s: %s: not permitted here\n", sc->name, sc->what);
		return 0;
	}
	for (unsigned i = 0; i < rounds; i++) {
		char text[TEXT_BYTES] = "";
		const uint64_t seed = run->random = run->o->seed + i;

		if (!run_round(run, sc, text)) {
			printf("FAIL %s: %s: %s\n    %d ranks, victim %d (pid %d); again with --only %s --seed %llu --rounds 1\n", sc->name,
			       sc->what, text, run->s->n_ranks, run->s->victim,
			       run->s->victim < 0 ? 0 : (int)run->s->ranks[run->s->victim].pid, sc->name, (unsigned long long)seed);
			print_outcomes(run->s);
			return 1;
		}
	}
	printf("ok   %s: %s: %u rounds", sc->name, sc->what, rounds);
	print_delays(run);
	return 0;
}

static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = { { "only", 1, NULL, 'o' },
						 { "rounds", 1, NULL, 'r' },
						 { "seed", 1, NULL, 's' },
						 { "ranks", 1, NULL, 'n' },
						 { "full", 0, NULL, 'f' },
						 { "transport", 1, NULL, 't' },
						 { 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'o')
			o->only = optarg;
		else if (c == 'r')
			o->rounds = (unsigned)atoi(optarg);
		else if (c == 's')
			o->seed = strtoull(optarg, NULL, 0);
		else if (c == 'n' && sscanf(optarg, "%d-%d", &o->least, &o->most) == 1)
			o->most = o->least;
		else if (c == 'f')
			o->full = true;
		else if (c == 't' && gpul_comm_transport_parse(optarg, &o->transport))
			continue;
		else if (c != 'n')
			return 2;
	}
	return optind != argc || o->least < 2 || o->most > MOST_RANKS || o->least > o->most || o->rounds > MOST_ROUNDS ? 2 : 0;
}

static int be_rank(const char *number)
{
	struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(number), 0);

	return s == MAP_FAILED ? 2 : rank_main(s);
}

int main(int argc, char **argv)
{
	struct options o = { .seed = gpul_clock_ns() & 0xffffff, .least = 2, .most = 4 };
	struct run run = { .o = &o, .folder = "/tmp/gpuload-ranks-XXXXXX" };
	int failed = 0;

	if (argc == 3 && strcmp(argv[1], "--rank") == 0)
		return be_rank(argv[2]);
	if (parse(argc, argv, &o)) {
		fprintf(stderr,
			"usage: fault [--only SCENARIO] [--rounds N] [--seed N] [--ranks MIN-MAX (2-%d)] [--transport NAME] [--full]\n",
			MOST_RANKS);
		return 2;
	}
	run.shared_fd = memfd_create("fault", 0);
	run.delays_ns = calloc(MOST_ROUNDS, sizeof *run.delays_ns);
	if (run.shared_fd < 0 || ftruncate(run.shared_fd, sizeof *run.s) || !run.delays_ns || !mkdtemp(run.folder))
		return 1;
	run.s = mmap(NULL, sizeof *run.s, PROT_READ | PROT_WRITE, MAP_SHARED, run.shared_fd, 0);
	(void)setenv("GPULOAD_RUNTIME_DIR", run.folder, 1);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	names_private();
	for (unsigned i = 0; i < n_scenarios; i++)
		if (!o.only || strcmp(o.only, scenarios[i].name) == 0)
			failed += run_scenario(&run, &scenarios[i]);
	printf("seed %llu\n", (unsigned long long)o.seed);
	free(run.delays_ns);
	(void)rmdir(run.folder);
	return failed != 0;
}
