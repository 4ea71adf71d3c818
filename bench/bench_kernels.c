/* bench_kernels.c — measures how long it takes to list the images of a file and all kernels in them.
 *
 *     bench_kernels [--runs N] [FILE...]       without files: the toolkit's libcublas and libnccl
 *
 * Prints the best of N runs: the wall-clock time, because all cores read the kernels, and the CPU time of
 * all threads, which other processes affect less.  One more run decompresses only, on one core; it shows
 * the share of decompression. */
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench/timed.h"
#include "loader/image/kernels/kernels.h"
#include "loader/image/source.h"

struct figures {
	double list_ms, kernels_ms, cpu_ms, unpack_ms;
	size_t n_images, n_kernels, n_params, n_damaged;
};

static gpul_status count_kernels(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
				 gpul_error *err)
{
	struct figures *f = context;

	(void)image;
	(void)err;
	f->n_damaged += failed != NULL;
	f->n_kernels += table->n;
	for (size_t i = 0; i < table->n; i++)
		f->n_params += table->at[i].n_params;
	return GPUL_OK;
}

static double unpack_all(const gpul_images *images)
{
	gpul_unpacked u = { 0 };
	double start = cpu_ms();
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);

	for (size_t i = 0; i < n; i++)
		if (all[i].kind != GPUL_IMAGE_LTO)
			gpul_image_unpack(&all[i], &u, NULL);
	gpul_unpacked_free(&u);
	return cpu_ms() - start;
}

static gpul_status run_once(const char *path, struct figures *best, gpul_error *err)
{
	struct figures f = { 0 };
	gpul_source *source = NULL;
	const gpul_images *images;
	double start = now_ms(), cpu;
	gpul_status st = gpul_source_open(path, &source, err);

	if (!st)
		st = gpul_source_images(source, NULL, &images, err);
	if (st) {
		gpul_source_close(source);
		return st;
	}
	keep_least(&best->list_ms, now_ms() - start);
	start = now_ms();
	cpu = cpu_ms();
	st = gpul_kernels_visit(images, NULL, count_kernels, &f, NULL, err);
	keep_least(&best->cpu_ms, cpu_ms() - cpu);
	keep_least(&best->kernels_ms, now_ms() - start);
	gpul_images_all(images, &best->n_images);
	best->n_kernels = f.n_kernels;
	best->n_params = f.n_params;
	best->n_damaged = f.n_damaged;
	if (!st)
		keep_least(&best->unpack_ms, unpack_all(images));
	gpul_source_close(source);
	return st;
}

static int measure_file(const char *path, int n_runs)
{
	struct figures best = { 0 };
	gpul_error err = { 0 };
	struct rusage used;

	for (int i = 0; i < n_runs; i++)
		if (run_once(path, &best, &err)) {
			fprintf(stderr, "bench_kernels: %s\n", err.text);
			return 1;
		}
	getrusage(RUSAGE_SELF, &used);
	printf("%s\n  %zu images, %zu kernels, %zu parameters, %zu images damaged\n"
	       "  images %.1f ms; kernels %.1f ms (CPU %.1f ms, of which decompression %.1f ms)\n"
	       "  peak so far %ld MB\n",
	       path, best.n_images, best.n_kernels, best.n_params, best.n_damaged, best.list_ms, best.kernels_ms, best.cpu_ms,
	       best.unpack_ms, used.ru_maxrss / 1024);
	return best.n_damaged != 0;
}

/* Measure the two libraries of docs/measured.md, if a toolkit is installed. */
static int measure_toolkit(int n_runs)
{
	glob_t found = { 0 };
	int failed = 0;

	glob("/usr/local/cuda/lib64/libcublas.so.[0-9]*", 0, NULL, &found);
	glob("/usr/local/cuda/lib64/libnccl.so.[0-9]", GLOB_APPEND, NULL, &found);
	if (found.gl_pathc == 0)
		printf("bench_kernels: no libraries in /usr/local/cuda: give files as arguments\n");
	for (size_t i = 0; i < found.gl_pathc; i++)
		failed |= measure_file(found.gl_pathv[i], n_runs);
	globfree(&found);
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "runs", required_argument, NULL, 'r' }, { 0 } };
	int n_runs = 5, failed = 0;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		if (c != 'r' || (n_runs = atoi(optarg)) < 1) {
			fprintf(stderr, "usage: bench_kernels [--runs N] [FILE...]\n");
			return 2;
		}
	if (optind == argc)
		return measure_toolkit(n_runs);
	for (int i = optind; i < argc; i++)
		failed |= measure_file(argv[i], n_runs);
	return failed;
}
