/* bench_ptx.c — measures how fast PTX is parsed and printed, and how the time grows with the size of the text.
 *
 *     bench_ptx [--runs N] [FILE...]
 *
 * Without files, it generates PTX similar to that of compilers: 4 MB and 40 MB, each once as many kernels of
 * 200 instructions, and once as one kernel.  Prints the best of N runs, as CPU time of the only thread, which
 * other processes hardly affect. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "ptx/module.h"

struct text {
	char *at;
	size_t n_bytes, room;
};

static void append_text(struct text *t, const char *line)
{
	size_t n = strlen(line);

	if (t->n_bytes + n < t->room) {
		memcpy(t->at + t->n_bytes, line, n);
		t->n_bytes += n;
	}
}

static void append_head(struct text *t, unsigned kernel)
{
	char line[512];

	snprintf(line, sizeof line,
		 "\n\t// .globl\tkernel_%u\n.visible .entry kernel_%u(\n\t.param .u64 "
		 "kernel_%u_param_0,\n"
		 "\t.param .u32 kernel_%u_param_1\n)\n{\n\t.reg .pred \t%%p<50>;\n\t.reg .f32 "
		 "\t%%f<400>;\n"
		 "\t.reg .b32 \t%%r<400>;\n\t.reg .b64 \t%%rd<400>;\n\n"
		 "\tld.param.u64 \t%%rd1, [kernel_%u_param_0];\n\tld.param.u32 \t%%r2, "
		 "[kernel_%u_param_1];\n",
		 kernel, kernel, kernel, kernel, kernel, kernel);
	append_text(t, line);
}

/* Append one basic block of a loop, with the instructions that compilers generate most often. */
static void append_block(struct text *t, unsigned kernel, unsigned block)
{
	char line[1024];
	unsigned r = block * 8 % 380 + 2;

	snprintf(line, sizeof line,
		 "\n$L__BB%u_%u:\n"
		 "\tmul.wide.s32 \t%%rd%u, %%r%u, 4;\n\tadd.s64 \t%%rd%u, %%rd1, %%rd%u;\n"
		 "\tld.global.nc.f32 \t%%f%u, [%%rd%u+16];\n\tfma.rn.f32 \t%%f%u, %%f%u, "
		 "0f3F800000, %%f%u;\n"
		 "\tst.global.f32 \t[%%rd%u], %%f%u;\n\tmov.u32 \t%%r%u, %%tid.x;\n"
		 "\tsetp.lt.s32 \t%%p%u, %%r%u, %%r2;\n\t@%%p%u bra \t$L__BB%u_%u;\n",
		 kernel, block, r, r, r + 1, r, r, r + 1, r + 1, r, r, r + 1, r + 1, r, block % 50, r, block % 50, kernel, block);
	append_text(t, line);
}

static struct text generate_ptx(size_t n_bytes, unsigned blocks_per_kernel)
{
	struct text t = { .at = malloc(n_bytes + 65536), .room = n_bytes + 65536 };
	unsigned kernel = 0;

	if (!t.at)
		return t;
	append_text(&t, ".version 8.4\n.target sm_90\n.address_size 64\n");
	for (; t.n_bytes < n_bytes; kernel++) {
		append_head(&t, kernel);
		for (unsigned b = 0; b < blocks_per_kernel && t.n_bytes < n_bytes; b++)
			append_block(&t, kernel, b);
		append_text(&t, "\tret;\n\n}\n");
	}
	return t;
}

struct times {
	double parse_ms, print_ms;
};

/* Parse and print once, and keep each time that is lower than the best so far. */
static gpul_status run_once(const char *name, const struct text *t, struct times *best, gpul_error *err)
{
	gpul_ptx_module *m = NULL;
	char *printed = NULL;
	double start = cpu_ms(), parsed, done;
	gpul_status st = gpul_ptx_parse(t->at, t->n_bytes, name, &m, err);

	if (st)
		return st;
	parsed = cpu_ms();
	st = gpul_ptx_print(m, &printed, NULL, err);
	done = cpu_ms();
	keep_least(&best->parse_ms, parsed - start);
	keep_least(&best->print_ms, done - parsed);
	free(printed);
	gpul_ptx_module_destroy(m);
	return st;
}

static int measure_text(const char *name, const struct text *t, int n_runs)
{
	struct times best = { 0, 0 };
	gpul_error err = { 0 };

	for (int i = 0; i < n_runs; i++)
		if (run_once(name, t, &best, &err)) {
			fprintf(stderr, "bench_ptx: %s\n", err.text);
			return 1;
		}
	double mb = (double)t->n_bytes * 1e-6;
	printf("%-24s %8.1f MB   parse %8.2f ms %7.1f MB/s   print %8.2f ms\n", name, mb, best.parse_ms, mb / (best.parse_ms * 1e-3),
	       best.print_ms);
	return 0;
}

static int measure_generated(const char *name, size_t n_bytes, unsigned blocks_per_kernel, int n_runs)
{
	struct text t = generate_ptx(n_bytes, blocks_per_kernel);
	int failed = 1;

	if (t.at)
		failed = measure_text(name, &t, n_runs);
	else
		fprintf(stderr, "bench_ptx: no memory for %zu bytes\n", n_bytes);
	free(t.at);
	return failed;
}

static int measure_file(const char *path, int n_runs)
{
	FILE *f = fopen(path, "rb");
	struct text t = { .room = 256u << 20 };
	int failed;

	if (!f) {
		fprintf(stderr, "bench_ptx: cannot open %s\n", path);
		return 1;
	}
	t.at = malloc(t.room);
	if (t.at)
		t.n_bytes = fread(t.at, 1, t.room, f);
	fclose(f);
	failed = measure_text(path, &t, n_runs);
	free(t.at);
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "runs", required_argument, NULL, 'r' }, { 0 } };
	int n_runs = 5, failed = 0;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c != 'r' || (n_runs = atoi(optarg)) < 1) {
			fprintf(stderr, "usage: bench_ptx [--runs N] [FILE...]\n");
			return 2;
		}
	}
	for (int i = optind; i < argc; i++)
		failed |= measure_file(argv[i], n_runs);
	if (optind == argc) {
		failed |= measure_generated("kernels, 4 MB", 4000000, 25, n_runs);
		failed |= measure_generated("kernels, 40 MB", 40000000, 25, n_runs);
		failed |= measure_generated("one kernel, 4 MB", 4000000, 1u << 30, n_runs);
		failed |= measure_generated("one kernel, 40 MB", 40000000, 1u << 30, n_runs);
	}
	return failed;
}
