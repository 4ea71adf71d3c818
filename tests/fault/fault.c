/* fault.c — run the scenarios, with options for scenario, number of rounds, driver and kind of memory.
 *
 *     build/tests/fault/fault                              a few rounds of each: seconds
 *     build/tests/fault/fault --full                       the numbers that gpuload must pass
 *     build/tests/fault/fault --driver nvidia --times 20   on a GPU
 *     build/tests/fault/fault --only kill-owner --kind host-numa --times 1000 --jobs 2 */
#include "tests/fault/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/fault/child.h"
#include "tests/fault/count.h"
#include "tests/fault/process.h"

enum { MOST_JOBS = 64 };

struct scenario {
	const char *name;
	const char *what;
	fault_scenario *run;
	unsigned few, gpu, full; /* number of rounds by default, on a GPU, and with --full */
	bool each_kind;          /* run with each kind of memory; false: only with the first requested kind */
	bool one_job;            /* --jobs is ignored: many processes are started, or delays are measured that other jobs would increase */
};

static const struct scenario scenarios[] = {
	{ "kill-owner", "SIGKILL of the owner at each of 12 steps", kill_owner, 3, 20, 1000, true, false },
	{ "kill-attacher", "SIGKILL of an attacher at each of 12 steps", kill_attacher, 3, 20, 1000, true, false },
	{ "orphans", "the owner is killed while three readers run", orphans, 1, 20, 100, true, false },
	{ "restarts", "an owner restarts over a stale socket file", restarts, 10, 20, 1000, false, false },
	{ "storm", "64 processes attach and detach concurrently", storm, 20, 100, 10000, true, true },
	{ "few-descriptors", "owner or attacher at the limit of open files", few_descriptors, 2, 2, 100, false, false },
	{ "stopped-peer", "SIGSTOP of an attacher: other processes continue", stopped_peer, 2, 4, 50, false, false },
	{ "stopped-owner", "SIGSTOP of the owner: calls end after their time-outs", stopped_owner, 2, 4, 50, false, false },
	{ "other-user", "owner and attacher each refuse another user", other_user, 1, 2, 10, false, false },
	{ "other-namespaces", "owner and attacher in new network and pid namespaces", other_namespaces, 1, 2, 25, true, false },
	{ "kill-proxy", "SIGKILL of a proxy's process at each of 10 steps", kill_proxy, 3, 20, 1000, false, false },
	{ "kill-pusher", "SIGKILL of the kernels' process at each of 8 steps", kill_pusher, 3, 20, 1000, false, true },
	{ "stopped-proxy", "SIGSTOP of a proxy: kernels time out, or continue after SIGCONT", stopped_proxy, 2, 4, 50, false, false },
	{ "hostile-clients", "connections that send false data to an owner", hostile_clients, 10, 20, 10000, true, false },
	{ "hostile-servers", "owners that send false data to an attacher", hostile_servers, 10, 20, 10000, false, false },
};
enum { N_SCENARIOS = sizeof scenarios / sizeof scenarios[0], N_DRIVERS = 3 };

struct options {
	gpul_driver_choice driver;
	const char *only;
	gpul_mem_kind kinds[GPUL_MEM_N_KINDS];
	unsigned n_kinds, times, jobs;
	bool full;
};

static int count[3]; /* number of runs with each verdict */

bool fault_failed(struct fault *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->text, sizeof f->text, fmt, args);
	va_end(args);
	return false;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
	(void)s, (void)type, (void)at;
	return remove(path);
}

/* ---- delays ----------------------------------------------------------------------------------- */

enum { MOST_DELAY_NS = 10 * 1000 * 1000 }; /* the longest delays that --full allows */

/* Allocate zeroed memory that this process shares with its children. */
static void *map_shared(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

void fault_noticed(struct fault *f, uint64_t delay_ns)
{
	unsigned i = f->delays->n++;

	if (i < FAULT_MOST_DELAYS)
		f->delays->ns[i] = delay_ns;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Describe the delays in text; false: a delay exceeds MOST_DELAY_NS, and hold_to_bar is set. */
static bool describe_delays(struct fault_delays *d, bool hold_to_bar, char text[FAULT_TEXT])
{
	const unsigned n = d->n < FAULT_MOST_DELAYS ? d->n : FAULT_MOST_DELAYS;

	if (!n)
		return true;
	qsort(d->ns, n, sizeof d->ns[0], by_size);
	snprintf(text, FAULT_TEXT, "%u kills were noticed after %.2f ms (median), %.2f ms (99 %%), %.2f ms (maximum)", n,
		 (double)d->ns[n / 2] / 1e6, (double)d->ns[(uint64_t)n * 99 / 100] / 1e6, (double)d->ns[n - 1] / 1e6);
	return !hold_to_bar || d->ns[n - 1] <= MOST_DELAY_NS;
}

/* ---- jobs ------------------------------------------------------------------------------------- */

/* Run one job in a separate process, because a failed scenario may leave children, which are killed with the job. */
static int run_job(struct fault *f, const struct scenario *s, int out)
{
	enum fault_verdict verdict;

	strcpy(f->folder, "/tmp/gpuload-fault-XXXXXX");
	if (!mkdtemp(f->folder))
		return FAULT_FAILED;
	setenv("GPULOAD_RUNTIME_DIR", f->folder, 1);
	names_private();
	f->died_ns = map_shared(sizeof *f->died_ns);
	if (!f->died_ns)
		return FAULT_FAILED;
	verdict = s->run(f);
	if (verdict == FAULT_FAILED && f->not_here)
		verdict = FAULT_SKIPPED;
	if (verdict == FAULT_OK)
		f->text[0] = '\0';
	nftw(f->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (write(out, f->text, sizeof f->text) < 0)
		return FAULT_FAILED;
	return (int)verdict;
}

/* Wait for the jobs; returns the worst verdict and its text. */
static enum fault_verdict collect_jobs(pid_t pids[], int texts[], unsigned n, char text[FAULT_TEXT])
{
	enum fault_verdict verdict = FAULT_OK;

	for (unsigned i = 0; i < n; i++) {
		char job_text[FAULT_TEXT] = "the job ended without a result";
		int status = -1, mine;

		waitpid(pids[i], &status, 0);
		if (read(texts[i], job_text, sizeof job_text) < 0)
			strcpy(job_text, strerror(errno));
		close(texts[i]);
		mine = WIFEXITED(status) ? WEXITSTATUS(status) : FAULT_FAILED;
		if (i == 0 || (mine != FAULT_OK && verdict != FAULT_FAILED)) {
			verdict = (enum fault_verdict)mine;
			memcpy(text, job_text, sizeof job_text);
		}
	}
	return verdict;
}

/* Run the scenario with its rounds divided among jobs. */
static enum fault_verdict run_in_jobs(const struct fault *of, const struct scenario *s, unsigned n_jobs, char text[FAULT_TEXT])
{
	pid_t pids[MOST_JOBS];
	int texts[MOST_JOBS], pipes[2];
	unsigned n = of->times < n_jobs ? of->times : n_jobs;

	for (unsigned i = 0; i < n; i++) {
		struct fault f = *of;

		f.times = of->times / n + (i < of->times % n);
		if (pipe2(pipes, O_CLOEXEC))
			return FAULT_FAILED;
		fflush(NULL);
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(run_job(&f, s, pipes[1]));
		close(pipes[1]);
		texts[i] = pipes[0];
	}
	return collect_jobs(pids, texts, n, text);
}

/* ---- the GPU's memory ----------------------------------------------------------------------- */

static size_t free_bytes(const struct process *p)
{
	size_t free = 0, total;

	return p->drv.cuMemGetInfo(&free, &total) ? 0 : free;
}

/* Wait until free memory stops growing, because the system frees the memory of killed processes with a delay. */
static size_t settled_bytes(const struct process *p, size_t wanted)
{
	size_t before = 0, now = free_bytes(p);

	for (int still = 0, tries = 0; tries < 100 && (now < wanted || still < 3); tries++) {
		usleep(100000);
		before = now;
		now = free_bytes(p);
		still = now > before ? 0 : still + 1;
	}
	return now;
}

/* A process that measures the GPU's free memory before and after a scenario. */
static int meter_role(const struct fault *f, int line, const void *arg)
{
	struct process p;
	struct note n = { .command = 'b' };
	size_t before, after;
	gpul_error err = { 0 };

	(void)arg;
	if (process_open(f, &p, &err))
		return 1;
	before = settled_bytes(&p, 0);
	if (!note_send(line, &n) || !note_receive(line, -1, &n))
		return 1;
	after = settled_bytes(&p, before);
	n.good = after >= before;
	snprintf(n.text, sizeof n.text, "the GPU has %zu bytes less free memory than before", before - after);
	note_send(line, &n);
	process_close(&p);
	return 0;
}

static enum fault_verdict run_with_meter(const struct fault *f, const struct scenario *s, unsigned n_jobs, char text[FAULT_TEXT])
{
	struct child meter;
	struct note n = { .command = 'a' };
	enum fault_verdict verdict;

	if (f->driver != GPUL_DRIVER_NVIDIA)
		return run_in_jobs(f, s, n_jobs, text);
	if (!child_start(f, meter_role, NULL, &meter))
		return FAULT_FAILED;
	if (!note_receive(meter.line, FAULT_WAIT_MS, &n)) {
		child_kill(&meter);
		strcpy(text, "no GPU");
		return FAULT_SKIPPED;
	}
	verdict = run_in_jobs(f, s, n_jobs, text);
	if (!child_do(&meter, 'a', 0, &n) || (verdict == FAULT_OK && !n.good)) {
		verdict = FAULT_FAILED;
		memcpy(text, n.text, sizeof n.text);
	}
	child_end(&meter, FAULT_WAIT_MS);
	return verdict;
}

static void run_scenario(const struct scenario *s, const struct options *o, gpul_mem_kind kind)
{
	static const char *const verdict_names[] = { "ok", "FAIL", "skip" };
	struct fault f = { .driver = o->driver, .kind = kind, .delays = map_shared(sizeof *f.delays) };
	char text[FAULT_TEXT] = "";
	uint64_t from = gpul_clock_ns();
	enum fault_verdict verdict;

	f.times = o->times ? o->times : o->full ? s->full : o->driver == GPUL_DRIVER_NVIDIA ? s->gpu : s->few;
	verdict = f.delays ? run_with_meter(&f, s, s->one_job ? 1 : o->jobs, text) : FAULT_FAILED;
	if (verdict == FAULT_OK && !describe_delays(f.delays, o->full || o->driver == GPUL_DRIVER_NVIDIA, text))
		verdict = FAULT_FAILED;
	if (f.delays)
		munmap(f.delays, sizeof *f.delays);
	count[verdict]++;
	printf("%-5s%s, %s, %u times: %s (%.1f s)%s%s\n", verdict_names[verdict], s->name, gpul_mem_kind_name(kind), f.times, s->what,
	       (double)(gpul_clock_ns() - from) / 1e9, text[0] ? ": " : "", text);
	fflush(stdout);
}

static bool parse(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "driver", required_argument, NULL, 'd' },
		{ "kind", required_argument, NULL, 'k' },
		{ "only", required_argument, NULL, 'o' },
		{ "times", required_argument, NULL, 't' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "full", no_argument, NULL, 'f' },
		{ 0 },
	};
	bool good = true;

	for (int c; good && (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (c) {
		case 'd':
			good = gpul_driver_choice_parse(optarg, &o->driver);
			break;
		case 'k':
			good = o->n_kinds < GPUL_MEM_N_KINDS && gpul_mem_kind_parse(optarg, &o->kinds[o->n_kinds++]);
			break;
		case 'o':
			o->only = optarg;
			break;
		case 't':
			o->times = (unsigned)atoi(optarg);
			break;
		case 'j':
			o->jobs = (unsigned)atoi(optarg);
			break;
		case 'f':
			o->full = true;
			break;
		default:
			good = false;
		}
	}
	return good && optind == argc && o->jobs <= MOST_JOBS;
}

static void usage(void)
{
	fprintf(stderr, "usage: fault [--driver nvidia|soft] [--kind KIND]... [--only SCENARIO] [--times N] [--jobs N] [--full]\n");
	for (int i = 0; i < N_SCENARIOS; i++)
		fprintf(stderr, "  %-18s%s\n", scenarios[i].name, scenarios[i].what);
}

/* Set defaults.  Opening NVIDIA's driver takes 0.2 s, and opening the software driver 1 ms, so the default for NVIDIA's driver is more
 * jobs and fewer kinds of memory. */
static void set_defaults(struct options *o)
{
	static const gpul_mem_kind usual[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_DEVICE_IPC };
	bool nvidia = o->driver == GPUL_DRIVER_NVIDIA;

	if (!o->n_kinds) {
		memcpy(o->kinds, usual, sizeof usual);
		o->n_kinds = nvidia ? 2 : sizeof usual / sizeof usual[0];
	}
	if (!o->jobs)
		o->jobs = nvidia ? 10 : 1;
}

/* Unless GPULOAD_SOFT_DRIVER is set, use the software driver that was built with this program. */
static void set_soft_driver(const char *program)
{
	char path[4096];
	const char *end = strrchr(program, '/');

	snprintf(path, sizeof path, "%.*s/../../softcuda/libcuda-soft.so", end ? (int)(end - program) : 1, end ? program : ".");
	if (access(path, R_OK) == 0)
		setenv("GPULOAD_SOFT_DRIVER", path, 0);
}

int main(int argc, char **argv)
{
	struct options o = { .driver = GPUL_DRIVER_SOFT };

	if (!parse(argc, argv, &o)) {
		usage();
		return 2;
	}
	set_defaults(&o);
	signal(SIGPIPE, SIG_IGN);
	set_soft_driver(argv[0]);
	for (int i = 0; i < N_SCENARIOS; i++)
		for (unsigned k = 0; k < (scenarios[i].each_kind ? o.n_kinds : 1); k++)
			if (!o.only || strcmp(o.only, scenarios[i].name) == 0)
				run_scenario(&scenarios[i], &o, o.kinds[k]);
	printf("%d passed, %d failed, %d skipped\n", count[FAULT_OK], count[FAULT_FAILED], count[FAULT_SKIPPED]);
	if (count[FAULT_FAILED])
		return 1;
	return count[FAULT_OK] ? 0 : count[FAULT_SKIPPED] ? 77 : 2;
}
