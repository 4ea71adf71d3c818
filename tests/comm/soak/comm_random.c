/* comm_random.c — random calls of comm.h, by ranks that are processes or threads; every result is checked.
 *
 *     comm_random [--seed S] [--first K] [--cases N] [--ranks MIN:MAX] [--bytes MAX]
 *                 [--call NAME] [--algo NAME] [--proto NAME] [--transport NAME] [--gpu-direct yes|no] [--nic NAME,...]
 *                 [--threads | --netns A,B --address IP | --host 0|1 --address IP]
 *
 * Case K of seed S is always the same: size, offsets, type, operation, ranks, protocol, algorithm, transport, in place.  The BATCH_CASES
 * cases from a multiple of BATCH_CASES on share one communicator.  With --netns the ranks are alternately on two hosts, which are
 * network namespaces of ip-netns(8); IP is an address of host A.  --nic: the NICs of all ranks.  With --host 0 this program starts only
 * the even ranks, and with --host 1 and the same other options, on a second machine, the odd ranks; IP is an address of the machine with
 * --host 0. With --threads the ranks are threads of this process, whose kernels run at the same time on one GPU.  A failure prints the
 * commands that run the case alone, and with the cases before it. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/comm/soak/soak.h"

enum { BATCH_TIMEOUT_S = 300 };

static double seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Wait for the ranks' processes.  After the first failure or a time-out, the other ranks are killed if they do not end in some seconds. */
static bool wait_for_ranks(const pid_t *pids, int n)
{
	double deadline = seconds() + BATCH_TIMEOUT_S;
	bool ended[MAX_SOAK_RANKS] = { false }, good = true;

	for (int left = n; left > 0;) {
		for (int r = 0; r < n; r++) {
			int status;

			if (ended[r] || waitpid(pids[r], &status, WNOHANG) != pids[r])
				continue;
			ended[r] = true;
			left--;
			if (status != 0 && good) {
				good = false;
				deadline = seconds() + 5;
				if (WIFSIGNALED(status))
					(void)fprintf(stderr, "rank %d ended by signal %d\n", r, WTERMSIG(status));
			}
		}
		for (int r = 0; r < n && seconds() > deadline; r++)
			if (!ended[r]) {
				good = false;
				(void)kill(pids[r], SIGKILL);
			}
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000 * 1000 }, NULL);
	}
	return good;
}

/* Set the address of rank 0; with --netns, enter the namespace of a rank, and name its host. */
static void enter_host(const struct limits *limits, unsigned long first, gpul_comm_job *job)
{
	const char *comma = limits->netns ? strchr(limits->netns, ',') : NULL;
	char path[128];
	int fd;

	if (limits->address) {
		(void)snprintf(job->address, sizeof job->address, "%s:%lu", limits->address, 21000 + first % 10000);
		(void)snprintf(job->secret, sizeof job->secret, "a secret of this test");
		(void)snprintf(job->host, sizeof job->host, "host-%d", job->rank % 2);
	}
	if (!comma)
		return;
	(void)snprintf(job->host, sizeof job->host, "%.*s", job->rank % 2 ? 40 : (int)(comma - limits->netns),
		       job->rank % 2 ? comma + 1 : limits->netns);
	(void)snprintf(path, sizeof path, "/run/netns/%s", job->host);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET)) {
		(void)fprintf(stderr, "comm_random: %s: %s\n", path, strerror(errno));
		_exit(1);
	}
	(void)close(fd);
}

struct rank_thread {
	const struct limits *limits;
	const struct batch *batch;
	gpul_comm_job job;
	unsigned long first;
	unsigned n;
	pthread_t thread;
	int exit_status;
};

static void *play_on_thread(void *argument)
{
	struct rank_thread *t = argument;

	t->exit_status = play_batch(t->limits, t->batch, &t->job, t->first, t->n);
	return NULL;
}

static bool play_by_threads(const struct limits *limits, const struct batch *b, const gpul_comm_job *job, unsigned long first, unsigned n)
{
	struct rank_thread ranks[MAX_SOAK_RANKS];
	bool good = true;

	for (int r = 0; r < b->n_ranks; r++) {
		ranks[r] = (struct rank_thread){ .limits = limits, .batch = b, .job = *job, .first = first, .n = n };
		ranks[r].job.rank = r;
		if (pthread_create(&ranks[r].thread, NULL, play_on_thread, &ranks[r]))
			abort();
	}
	for (int r = 0; r < b->n_ranks; r++) {
		(void)pthread_join(ranks[r].thread, NULL);
		good = good && ranks[r].exit_status == 0;
	}
	return good;
}

static bool run_batch(const struct limits *limits, unsigned long first, unsigned n)
{
	gpul_comm_job job = { .source = "test" };
	pid_t pids[MAX_SOAK_RANKS];
	struct batch b;
	int n_here = 0;

	make_batch(limits, first / BATCH_CASES, &b);
	job.size = b.n_ranks;
	(void)snprintf(job.name, sizeof job.name, "random-%d-%lu", limits->host < 0 ? (int)getpid() : 0, first);
	if (limits->threads)
		return play_by_threads(limits, &b, &job, first, n);
	for (job.rank = 0; job.rank < b.n_ranks; job.rank++) {
		if (limits->host >= 0 && job.rank % 2 != limits->host)
			continue;
		pids[n_here] = fork();
		if (pids[n_here] < 0)
			abort();
		if (pids[n_here] == 0) {
			enter_host(limits, first, &job);
			_exit(play_batch(limits, &b, &job, first, n));
		}
		n_here++;
	}
	return wait_for_ranks(pids, n_here);
}

static int find_name(const char *text, const char *(*name)(int), int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(text, name(i)) == 0)
			return i;
	(void)fprintf(stderr, "comm_random: unknown name '%s'\n", text);
	exit(2);
}

static const char *call_name(int i)
{
	return gpul_comm_call_name((gpul_comm_call)i);
}
static const char *algo_name(int i)
{
	return gpul_comm_algo_name((gpul_comm_algo)i);
}
static const char *proto_name(int i)
{
	return gpul_comm_proto_name((gpul_comm_proto)i);
}
static const char *transport_name(int i)
{
	return gpul_comm_transport_name((gpul_comm_transport)i);
}

static const char *no_or_yes(int i)
{
	return i ? "yes" : "no";
}

static void parse_ranks(const char *text, struct limits *limits)
{
	char after;

	if (sscanf(text, "%d:%d%c", &limits->min_ranks, &limits->max_ranks, &after) != 2 || limits->min_ranks < 1 ||
	    limits->max_ranks < limits->min_ranks || limits->max_ranks > MAX_SOAK_RANKS) {
		(void)fprintf(stderr, "comm_random: --ranks %s: wanted MIN:MAX, from 1 to %d\n", text, MAX_SOAK_RANKS);
		exit(2);
	}
}

static void parse(int argc, char **argv, struct limits *limits, unsigned long *first, unsigned long *n_cases)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' },      { "first", 1, NULL, 'f' },      { "cases", 1, NULL, 'n' },   { "ranks", 1, NULL, 'r' },
		{ "bytes", 1, NULL, 'b' },     { "call", 1, NULL, 'c' },       { "algo", 1, NULL, 'a' },    { "proto", 1, NULL, 'p' },
		{ "transport", 1, NULL, 't' }, { "gpu-direct", 1, NULL, 'g' }, { "netns", 1, NULL, 'N' },   { "address", 1, NULL, 'A' },
		{ "nic", 1, NULL, 'i' },       { "host", 1, NULL, 'h' },       { "threads", 0, NULL, 'T' }, { NULL, 0, NULL, 0 },
	};

	for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;)
		switch (o) {
		case 's':
			limits->seed = strtoull(optarg, NULL, 10);
			break;
		case 'f':
			*first = strtoul(optarg, NULL, 10);
			break;
		case 'n':
			*n_cases = strtoul(optarg, NULL, 10);
			break;
		case 'r':
			parse_ranks(optarg, limits);
			break;
		case 'b':
			limits->max_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'c':
			limits->call = find_name(optarg, call_name, GPUL_COMM_N_CALLS);
			break;
		case 'a':
			limits->algo = find_name(optarg, algo_name, GPUL_COMM_N_ALGOS);
			break;
		case 'p':
			limits->proto = find_name(optarg, proto_name, GPUL_COMM_N_PROTOS);
			break;
		case 't':
			limits->transport = find_name(optarg, transport_name, GPUL_COMM_N_TRANSPORTS);
			break;
		case 'g':
			limits->gpu_direct = find_name(optarg, no_or_yes, 2);
			break;
		case 'N':
			limits->netns = optarg;
			break;
		case 'A':
			limits->address = optarg;
			break;
		case 'h':
			limits->host = atoi(optarg) & 1;
			break;
		case 'i':
			limits->nics = optarg;
			break;
		case 'T':
			limits->threads = true;
			break;
		default:
			exit(2);
		}
	if (limits->threads && limits->address) {
		(void)fprintf(stderr, "comm_random: the threads of a process are on one host: --threads or --address, not both\n");
		exit(2);
	}
	if ((limits->netns && !strchr(limits->netns, ',')) || (limits->netns || limits->host >= 0) != (limits->address != NULL)) {
		(void)fprintf(stderr, "comm_random: --netns A,B and --host K need --address, and it needs one of them\n");
		exit(2);
	}
}

/* Print the options of this run that affect the case. */
static void print_replay(int argc, char **argv, unsigned long first, unsigned long n)
{
	(void)fprintf(stderr, "  %s", argv[0]);
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "--first", 7) == 0 || strncmp(argv[i], "--cases", 7) == 0)
			i += strchr(argv[i], '=') == NULL;
		else
			(void)fprintf(stderr, " %s", argv[i]);
	(void)fprintf(stderr, " --first %lu --cases %lu\n", first, n);
}

int main(int argc, char **argv)
{
	struct limits limits = { .seed = 1,
				 .min_ranks = 2,
				 .max_ranks = MAX_SOAK_RANKS,
				 .max_bytes = 96 << 10,
				 .call = -1,
				 .algo = -1,
				 .proto = -1,
				 .transport = -1,
				 .host = -1,
				 .gpu_direct = -1 };
	unsigned long first = 0, n_cases = 1000;
	const double start = seconds();

	parse(argc, argv, &limits, &first, &n_cases);
	if (limits.threads)
		(void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	for (unsigned long at = first, end = first + n_cases; at < end;) {
		const unsigned long next = (at / BATCH_CASES + 1) * BATCH_CASES, stop = next < end ? next : end;

		if (!run_batch(&limits, at, (unsigned)(stop - at))) {
			(void)fprintf(stderr, "the batch can be run again by\n");
			print_replay(argc, argv, at, stop - at);
			(void)fprintf(stderr, "and a case of it alone, by --first CASE --cases 1\n");
			return 1;
		}
		at = stop;
		if (isatty(2))
			(void)fprintf(stderr, "\r%lu cases, %.0f s", at - first, seconds() - start);
	}
	(void)printf("%lu cases of seed %llu: 0 wrong, %.1f s\n", n_cases, (unsigned long long)limits.seed, seconds() - start);
	return 0;
}
