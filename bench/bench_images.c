/* bench_images.c — measures how much time and memory it takes to list the images in libraries.
 *
 *     bench_images [--runs N] FILE...
 *
 * Prints the fastest of N runs: the wall-clock time from opening the file to closing it, and the CPU time
 * of all threads in that run, which does not depend on whether other processes used the cores.  Peak
 * memory is the maximum of the process up to then. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench/timed.h"
#include "loader/image/source.h"

struct cost {
	double wall_ms, cpu_ms;
	size_t n_images;
	uint64_t stored_bytes;
};

static long peak_mb(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss / 1024;
}

static gpul_status run_once(const char *path, struct cost *c, gpul_error *err)
{
	const double start = now_ms(), cpu = cpu_ms();
	gpul_source *source = NULL;
	const gpul_images *list;
	const gpul_image *image;
	gpul_status st = gpul_source_open(path, &source, err);

	if (!st)
		st = gpul_source_images(source, NULL, &list, err);
	if (st) {
		gpul_source_close(source);
		return st;
	}
	image = gpul_images_all(list, &c->n_images);
	c->stored_bytes = 0;
	for (size_t i = 0; i < c->n_images; i++)
		c->stored_bytes += image[i].stored_bytes;
	gpul_source_close(source);
	c->wall_ms = now_ms() - start;
	c->cpu_ms = cpu_ms() - cpu;
	return GPUL_OK;
}

static int measure_file(const char *path, int n_runs)
{
	struct cost best = { 0 }, c = { 0 };
	gpul_error err = { 0 };

	for (int i = 0; i < n_runs; i++) {
		if (run_once(path, &c, &err)) {
			fprintf(stderr, "bench_images: %s\n", err.text);
			return 1;
		}
		if (i == 0 || c.wall_ms < best.wall_ms)
			best = c;
	}
	printf("%-56s %6zu images %8.1f MB %7.2f ms  (cpu %7.2f ms)  peak %4ld MB\n", path, best.n_images, (double)best.stored_bytes * 1e-6,
	       best.wall_ms, best.cpu_ms, peak_mb());
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "runs", required_argument, NULL, 'r' }, { 0 } };
	int n_runs = 10, failed = 0;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		if (c != 'r' || (n_runs = atoi(optarg)) < 1) {
			fprintf(stderr, "usage: bench_images [--runs N] FILE...\n");
			return 2;
		}
	if (optind == argc)
		printf("bench_images: no files given, nothing measured\n");
	for (int i = optind; i < argc; i++)
		failed |= measure_file(argv[i], n_runs);
	return failed;
}
