/* bench_nccl.c — measures NCCL's collectives between the GPUs of this machine in the same way as nccl-tests.
 *
 *     bench_nccl [--ranks 2] [--op allreduce,...] [--bytes 8:256M:2] [--mode plain|graph] [--library FILE] [--json]
 *
 * Each rank is a process with one GPU.  A row is the mean of 20 calls that are queued on a stream one after the other, after
 * 5 warm-up calls and a barrier of the processes (below 1 MiB: the median of 5 such means, each of 100 calls); the time is
 * that of the slowest rank.  In graph mode, a CUDA graph of 20 calls is launched.  Sizes and bus bandwidths are those of
 * nccl-tests.
 *
 * NVLink multicast is switched off (NCCL_NVLS_ENABLE=0) unless the variable is set. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/nccl/nccl.h"
#include "cli/comm/comm_bench.h"
#include "cli/lib/value.h"

static void print_head(const struct nccl_rank *b, const struct nccl_op *op, bool graph)
{
	if (b->rank || b->request->json)
		return;
	printf("# %s, %d ranks, %s\n", gpul_comm_call_name(op->call), b->ranks, graph ? "CUDA graph of 20 calls" : "calls on a stream");
	printf("#%58s %40s\n", "out-of-place", "in-place");
	printf("#%12s %12s %6s %6s  %9s %7s %7s %6s  %9s %7s %7s %6s\n", "size", "count", "type", "redop", "time", "algbw", "busbw",
	       "#wrong", "time", "algbw", "busbw", "#wrong");
	printf("#%12s %12s %6s %6s  %9s %7s %7s %6s  %9s %7s %7s %6s\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "",
	       "(us)", "(GB/s)", "(GB/s)", "");
}

static void print_half(const struct nccl_rank *b, const struct nccl_call *c, bool graph, double us, size_t n_wrong)
{
	double algbw = (double)c->bytes / us * 1e-3, busbw = algbw * comm_bus_factor(c->op->call, b->ranks);

	if (b->request->json)
		printf("{\"op\":\"%s\",\"library\":\"nccl\",\"ranks\":%d,\"mode\":\"%s\",\"in_place\":%s,\"bytes\":%zu,\"count\":%zu,"
		       "\"type\":\"f32\",\"us\":%.2f,\"algbw\":%.2f,\"busbw\":%.2f,\"wrong\":%zu}\n",
		       gpul_comm_call_name(c->op->call), b->ranks, graph ? "graph" : "plain", c->in_place ? "true" : "false", c->bytes,
		       c->count, us, algbw, busbw, n_wrong);
	else
		printf("  %9.2f %7.2f %7.2f %6zu", us, algbw, busbw, n_wrong);
}

/* Measure and print one row: this size out of place, and in place if the operation supports that. */
static gpul_status measure_size(const struct nccl_rank *b, const struct nccl_op *op, size_t bytes, bool graph, gpul_error *err)
{
	const struct gpul_comm_call_info *info = gpul_comm_call_info(op->call);
	struct nccl_call c = { .op = op, .count = bytes / sizeof(float) / (info->has_parts ? (size_t)b->ranks : 1) };
	gpul_status st = GPUL_OK;

	if (c.count == 0)
		return GPUL_OK;
	c.bytes = c.count * sizeof(float) * (info->has_parts ? (size_t)b->ranks : 1);
	if (!b->rank && !b->request->json)
		printf(" %12zu %12zu %6s %6s", c.bytes, c.count, "f32", info->reduces ? "sum" : "none");
	for (int in_place = 0; !st && in_place <= !info->transfers; in_place++) {
		size_t part = (size_t)b->rank * c.count * sizeof(float), n_wrong = 0;
		double us = 0;

		c.in_place = in_place;
		c.send = in_place ? b->recv : b->send;
		c.recv = b->recv;
		if (in_place && info->has_parts) { /* offsets as in NCCL's User Guide, "In-place Operations" */
			c.send += info->receives_parts ? part : 0;
			c.recv += info->receives_parts ? 0 : part;
		}
		st = nccl_measure(b, &c, graph, &us, &n_wrong, err);
		if (!st && !b->rank)
			print_half(b, &c, graph, us, n_wrong);
	}
	if (!b->rank && !b->request->json)
		printf(info->transfers ? "  %9s %7s %7s %6s\n" : "\n", "-", "-", "-", "-");
	return st;
}

static bool is_requested(const struct nccl_request *r, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = r->ops; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, name, n) && (p[n] == ',' || !p[n]))
			return true;
	return !strcmp(r->ops, "all");
}

static gpul_status measure_all(const struct nccl_rank *b, gpul_error *err)
{
	const struct nccl_request *r = b->request;
	int version = 0;
	gpul_status st = nccl_check(b, b->nccl.GetVersion(&version), "ncclGetVersion", err);

	if (!st && !b->rank && !r->json)
		printf("# NCCL %d.%d.%d, NCCL_NVLS_ENABLE=%s\n", version / 10000, version / 100 % 100, version % 100,
		       getenv("NCCL_NVLS_ENABLE"));
	st = st ? st : nccl_warm_up(b, err);
	for (int graph = 0; graph < 2; graph++)
		for (const struct nccl_op *op = nccl_ops; op < nccl_ops + nccl_n_ops; op++) {
			if (!is_requested(r, gpul_comm_call_name(op->call)) || !(graph ? r->graph : r->plain))
				continue;
			print_head(b, op, graph);
			for (size_t bytes = r->min_bytes; !st && bytes <= r->max_bytes; bytes *= r->factor) {
				st = measure_size(b, op, bytes, graph, err);
				fflush(stdout);
			}
		}
	return st;
}

static int run_rank(const struct nccl_request *r, int rank)
{
	struct nccl_rank b = { .request = r, .rank = rank, .ranks = r->ranks };
	gpul_error err = { 0 };
	gpul_status st = nccl_open_rank(&b, &err);

	st = st ? st : measure_all(&b, &err);
	if (st) {
		fprintf(stderr, "bench_nccl: rank %d: %s\n", rank, err.text);
		return 1; /* do not call ncclCommDestroy(): it would wait for the other ranks */
	}
	nccl_close_rank(&b);
	return 0;
}

/* Start the ranks and wait for them.  If a rank fails, the others are killed. */
static int run_ranks(const struct nccl_request *r)
{
	pid_t pids[NCCL_MAX_RANKS];
	int failed = 0;

	for (int rank = 0; rank < r->ranks; rank++) {
		pids[rank] = fork();
		if (pids[rank] == 0)
			exit(run_rank(r, rank));
		failed |= pids[rank] < 0;
	}
	for (int left = r->ranks; left > 0; left--) {
		int status = 0;

		if (failed)
			for (int rank = 0; rank < r->ranks; rank++)
				if (pids[rank] > 0)
					kill(pids[rank], SIGKILL);
		for (pid_t pid = wait(&status), *p = pids; p < pids + r->ranks; p++)
			if (*p == pid)
				*p = 0;
		failed |= status != 0;
	}
	return failed;
}

/* Count the GPUs of NVIDIA's driver in a child process, because a process that has called CUDA cannot fork the ranks. */
static int count_gpus(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		const gpul_driver *drv;
		gpul_error err;
		int n = 0;

		if (gpul_driver_open(GPUL_DRIVER_NVIDIA, &drv, &err) || drv->cuDeviceGetCount(&n))
			n = 0;
		_exit(n);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* Parse MIN, MIN:MAX or MIN:MAX:FACTOR. */
static bool parse_sizes(const char *text, struct nccl_request *r)
{
	size_t v[3] = { 0, 0, 2 };
	unsigned n;

	if (value_parse_sizes(text, strlen(text), v, &n, NULL))
		return false;
	r->min_bytes = v[0];
	r->max_bytes = n > 1 ? v[1] : v[0];
	r->factor = v[2];
	return v[0] >= sizeof(float) && r->max_bytes >= v[0] && v[2] >= 2;
}

static bool parse_option(struct nccl_request *r, int opt)
{
	switch (opt) {
	case 'n':
		r->ranks = atoi(optarg);
		return r->ranks >= 2 && r->ranks <= NCCL_MAX_RANKS;
	case 'o':
		r->ops = optarg;
		return true;
	case 'b':
		return parse_sizes(optarg, r);
	case 'm':
		r->plain = !strcmp(optarg, "plain");
		r->graph = !strcmp(optarg, "graph");
		return r->plain || r->graph;
	case 'l':
		r->library = optarg;
		return true;
	case 'j':
		return r->json = true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "ranks", required_argument, NULL, 'n' },
		{ "op", required_argument, NULL, 'o' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "mode", required_argument, NULL, 'm' },
		{ "library", required_argument, NULL, 'l' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	struct nccl_request r = {
		.ops = "all", .ranks = 2, .min_bytes = 8, .max_bytes = (size_t)256 << 20, .factor = 2, .plain = true, .graph = true
	};
	bool good = true;
	int n_gpus;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;)
		good &= parse_option(&r, opt);
	if (!good || optind < argc) {
		fputs("usage: bench_nccl [--ranks 2...8] [--op OP,...] [--bytes MIN:MAX:FACTOR] [--mode plain|graph] "
		      "[--library FILE] [--json]\n",
		      stderr);
		return 2;
	}
	n_gpus = count_gpus();
	if (n_gpus < r.ranks) {
		printf("bench_nccl: skipped: %d ranks need as many GPUs, this machine has %d\n", r.ranks, n_gpus);
		return 0;
	}
	r.meeting = mmap(NULL, sizeof *r.meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (r.meeting == MAP_FAILED) {
		perror("bench_nccl: mmap");
		return 1;
	}
	setenv("NCCL_NVLS_ENABLE", "0", 0);
	return run_ranks(&r);
}
