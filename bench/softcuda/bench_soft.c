/* bench_soft.c — measures how long the interpreter takes for one instruction of one thread.
 *
 *     bench_soft [--runs N] [--only KERNEL] [--tool NAME[:OPTIONS]]
 *
 * Each kernel runs with one worker, and with one worker for each CPU.  "ns" is the wall-clock time of the fastest run,
 * divided by the number of thread-instructions: an instruction counts once for each active lane.
 *
 * With --tool each kernel runs without and with a tool of softcuda/tools, in turn; the table shows the CPU time of the
 * fastest run without and with it; the last line is the geometric mean of their ratios. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/softcuda/session.h"
#include "bench/timed.h"
#include "cli/lib/bench/samples.h"

enum { MAX_RUNS = 101 };

struct job {
	const char *name, *path, *kernel;
	void (*setup)(struct session *s);
	struct session_shape shape;
};

static void fill_f32(float *p, size_t n)
{
	for (size_t i = 0; p && i < n; i++)
		p[i] = (float)(i * 2654435761u % 1000) * 0.001f;
}

static void setup_vecadd(struct session *s)
{
	enum { N = 1 << 20 };

	for (int k = 0; k < 2; k++) {
		double *p = session_param_buffer(s, N * sizeof *p);
		for (size_t i = 0; p && i < N; i++)
			p[i] = (double)i;
	}
	session_param_buffer(s, N * sizeof(double));
	session_param_i32(s, N);
}

static void setup_saxpy(struct session *s)
{
	enum { N = 1 << 20 };
	float a = 1.5f;

	session_param(s, &a, sizeof a, sizeof a);
	fill_f32(session_param_buffer(s, N * sizeof(float)), N);
	fill_f32(session_param_buffer(s, N * sizeof(float)), N);
	session_param_i32(s, N);
}

static void setup_fmaloop(struct session *s)
{
	fill_f32(session_param_buffer(s, 65536 * sizeof(float)), 65536);
	session_param_i32(s, 1024);
}

static void setup_reduce(struct session *s)
{
	enum { N = 4 << 20 };

	fill_f32(session_param_buffer(s, N * sizeof(float)), N);
	session_param_buffer(s, sizeof(float));
	session_param_i32(s, N);
}

static void setup_matmul(struct session *s)
{
	enum { N = 512 };

	for (int k = 0; k < 3; k++)
		fill_f32(session_param_buffer(s, N * N * sizeof(float)), N * N);
	session_param_i32(s, N);
}

static void setup_transpose(struct session *s)
{
	enum { N = 1024 };

	fill_f32(session_param_buffer(s, N * N * sizeof(float)), N * N);
	session_param_buffer(s, N * N * sizeof(float));
	session_param_i32(s, N);
	session_param_i32(s, N);
}

static void setup_hist(struct session *s)
{
	enum { N = 4 << 20 };
	uint64_t n = N;
	unsigned char *d = session_param_buffer(s, N);

	for (size_t i = 0; d && i < N; i++)
		d[i] = (unsigned char)((i * 2654435761u) >> 13);
	session_param_buffer(s, 256 * sizeof(uint32_t));
	session_param(s, &n, sizeof n, sizeof n);
}

static void setup_mandel(struct session *s)
{
	session_param_buffer(s, 512 * 512 * sizeof(int32_t));
	session_param_i32(s, 512);
	session_param_i32(s, 512);
	session_param_i32(s, 256);
}

static void setup_nbody(struct session *s)
{
	enum { N = 4096 };

	fill_f32(session_param_buffer(s, N * 16), N * 4);
	session_param_buffer(s, N * 16);
	session_param_i32(s, N);
}

#define CORPUS  "tests/corpus/ptx/"
#define KERNELS GPUL_KERNELS "/bench/kernels/kernels.ptx"
static const struct job jobs[] = {
	{ "vecadd f64 1M", CORPUS "vecadd.sm_90.ptx", "vecadd", setup_vecadd, { { 4096, 1, 1 }, { 256, 1, 1 } } },
	{ "saxpy 1M", CORPUS "saxpy.sm_90.ptx", "saxpy", setup_saxpy, { { 1024, 1, 1 }, { 256, 1, 1 } } },
	{ "fma loop", KERNELS, "fmaloop", setup_fmaloop, { { 256, 1, 1 }, { 256, 1, 1 } } },
	{ "reduce 4M", CORPUS "reduce.sm_90.ptx", "reduce", setup_reduce, { { 256, 1, 1 }, { 256, 1, 1 } } },
	{ "matmul 512", CORPUS "matmul.sm_90.ptx", "matmul", setup_matmul, { { 32, 32, 1 }, { 16, 16, 1 } } },
	{ "transpose 1k^2", CORPUS "transpose.sm_90.ptx", "transpose", setup_transpose, { { 32, 32, 1 }, { 32, 8, 1 } } },
	{ "histogram 4M", CORPUS "hist.sm_90.ptx", "hist", setup_hist, { { 256, 1, 1 }, { 256, 1, 1 } } },
	{ "mandelbrot 512^2", KERNELS, "mandel", setup_mandel, { { 32, 32, 1 }, { 16, 16, 1 } } },
	{ "split warp", "bench/kernels/split.ptx", "split", setup_fmaloop, { { 256, 1, 1 }, { 256, 1, 1 } } },
	{ "nbody 4096", KERNELS, "nbody", setup_nbody, { { 16, 1, 1 }, { 256, 1, 1 } } },
};

static _Bool measure_job(const struct job *j, unsigned n_workers, int runs)
{
	struct session s;
	double ms[MAX_RUNS], least_cpu = 1e30;
	uint64_t instructions = 0;

	if (session_open(&s, j->path, j->kernel, n_workers))
		j->setup(&s);
	for (int i = -1; i < runs && s.err.status == GPUL_OK; i++) { /* -1: a warm-up run */
		double start = now_ms(), cpu = cpu_ms();
		instructions = session_finish(&s, session_start(&s, &j->shape));
		cpu = cpu_ms() - cpu;
		if (i >= 0)
			ms[i] = now_ms() - start;
		least_cpu = cpu < least_cpu ? cpu : least_cpu;
	}
	if (s.err.status == GPUL_OK) {
		samples_sort(ms, (size_t)runs);
		double to_ns = 1e6 / (double)instructions;
		printf("| %-16s | %7s | %10.1f M | %8.2f | %9.2f | %7.3f | %7.3f |\n", j->name, n_workers ? "1" : "all",
		       (double)instructions * 1e-6, ms[0], ms[runs / 2], ms[0] * to_ns, least_cpu * to_ns);
	} else {
		fprintf(stderr, "bench_soft: %s: %s\n", j->name, s.err.text);
	}
	fflush(stdout);
	session_close(&s);
	return s.err.status == GPUL_OK;
}

/* ---- the cost of a tool ------------------------------------------------------------------------------------------ */

/* Run the kernel once.  Returns its CPU time in ms; -1: it failed. */
static double run_once(struct session *s, const struct job *j)
{
	const double cpu = cpu_ms();

	session_finish(s, session_start(s, &j->shape));
	return s->err.status ? -1 : cpu_ms() - cpu;
}

/* Time a kernel without and with the tool, and print a row.  The logarithm of the ratio is added to *sum. */
static _Bool measure_tool(const struct job *j, unsigned n_workers, int runs, double *sum)
{
	struct session s[2];
	double least[2] = { 1e30, 1e30 };
	_Bool ok = session_open(&s[0], j->path, j->kernel, n_workers);

	ok &= session_open_watched(&s[1], j->path, j->kernel, n_workers);
	for (int k = 0; ok && k < 2; k++)
		j->setup(&s[k]);
	for (int i = -1; ok && i < runs; i++) /* -1: a warm-up run */
		for (int k = 0; k < 2; k++) {
			const double ms = run_once(&s[k], j);

			ok &= ms >= 0;
			least[k] = i >= 0 && ms < least[k] ? ms : least[k];
		}
	for (int k = 0; k < 2; k++) {
		if (s[k].err.status)
			fprintf(stderr, "bench_soft: %s: %s\n", j->name, s[k].err.text);
		session_close(&s[k]);
	}
	if (!ok)
		return 0;
	printf("| %-16s | %7s | %10.2f | %9.2f | %6.2f |\n", j->name, n_workers ? "1" : "all", least[0], least[1], least[1] / least[0]);
	fflush(stdout);
	*sum += log(least[1] / least[0]);
	return 1;
}

static int measure_cost(const char *tool, const char *only, int runs)
{
	double sum[2] = { 0 };
	int failed = 0, n = 0;
	gpul_error err = { 0 };

	if (session_start_tools(tool, &err)) {
		fprintf(stderr, "bench_soft: --tool %s: %s\n", tool, err.text);
		return 1;
	}
	printf("| kernel           | workers | ms without | ms with   | ratio  |   %s\n", tool);
	puts("|------------------|--------:|-----------:|----------:|-------:|");
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		if (only && !strstr(jobs[i].name, only))
			continue;
		n++;
		for (unsigned workers = 2; workers-- > 0;)
			failed |= !measure_tool(&jobs[i], workers, runs, &sum[workers]);
	}
	if (n && !failed)
		printf("geometric mean: %.2f with 1 worker, %.2f with one for each CPU\n", exp(sum[1] / n), exp(sum[0] / n));
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, 'o' },
		{ "tool", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	const char *only = NULL, *tool = NULL;
	int runs = 9, failed = 0;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'r')
			runs = atoi(optarg);
		else if (opt == 'o')
			only = optarg;
		else if (opt == 't')
			tool = optarg;
		if (opt == '?' || runs < 1 || runs > MAX_RUNS) {
			fprintf(stderr, "usage: bench_soft [--runs 1..%d] [--only KERNEL] [--tool NAME[:OPTIONS]]\n", MAX_RUNS);
			return 2;
		}
	}
	if (tool)
		return measure_cost(tool, only, runs);
	puts("| kernel           | workers | thread-instr |   min ms | median ms | ns wall | "
	     "ns CPU  |");
	puts("|------------------|--------:|-------------:|---------:|----------:|--------:|---"
	     "-----:|");
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		if (!only || strstr(jobs[i].name, only))
			for (unsigned workers = 2; workers-- > 0;) /* first 1 worker, then 0, which means one for each CPU */
				failed |= !measure_job(&jobs[i], workers, runs);
	return failed;
}
