/* memory_rows.c — prints the table of bench_memory, as text and as JSON. */
#include "bench/memory/memory.h"

#include <stdio.h>

#include "cli/lib/bench/samples.h"

enum { MAX_ROWS = 64 };

static struct row {
	const char *what, *unit;
	int n;
	double p50, p99, bare, ratio; /* bare: the value for the driver's bare calls; 0: there is none */
} rows[MAX_ROWS];
static int n_rows;

static double quantile(double *v, int n, double share)
{
	samples_sort(v, (size_t)n);
	return v[(int)(share * (n - 1) + 0.5)];
}

void memory_rows_begin(const struct memory_bench *b)
{
	printf("%s driver, %d device%s; allocates and attaches %zu KiB, reads %zu KiB\n\n", b->drv->name, b->n_devices,
	       b->n_devices == 1 ? "" : "s", b->bytes >> 10, b->big_bytes >> 10);
	puts("| what | unit | n | p50 | p99 | bare p50 | ratio |");
	puts("|---|---|--:|--:|--:|--:|--:|");
}

void memory_row(const char *what, const char *unit, double *ours, double *bare, int n)
{
	static double ratio[MEMORY_MAX_SAMPLES];
	struct row r = { .what = what, .unit = unit, .n = n };

	for (int i = 0; bare && i < n; i++)
		ratio[i] = bare[i] > 0 ? ours[i] / bare[i] : 0;
	r.p50 = quantile(ours, n, 0.5);
	r.p99 = quantile(ours, n, 0.99);
	if (bare) {
		r.bare = quantile(bare, n, 0.5);
		r.ratio = quantile(ratio, n, 0.5);
		printf("| %s | %s | %d | %.4g | %.4g | %.4g | %.3f |\n", what, unit, n, r.p50, r.p99, r.bare, r.ratio);
	} else {
		printf("| %s | %s | %d | %.4g | %.4g | | |\n", what, unit, n, r.p50, r.p99);
	}
	fflush(stdout);
	if (n_rows < MAX_ROWS)
		rows[n_rows++] = r;
}

void memory_row_skipped(const char *what, const char *why)
{
	printf("| %s | skipped: %s | | | | | |\n", what, why);
	fflush(stdout);
}

void memory_rows_json(const struct memory_bench *b)
{
	putchar('\n');
	for (int i = 0; i < n_rows; i++) {
		const struct row *r = &rows[i];

		printf("{\"what\":\"%s\",\"driver\":\"%s\",\"unit\":\"%s\",\"n\":%d,\"p50\":%."
		       "6g,\"p99\":%.6g,"
		       "\"bytes\":%zu,\"big_bytes\":%zu",
		       r->what, b->drv->name, r->unit, r->n, r->p50, r->p99, b->bytes, b->big_bytes);
		if (r->bare > 0)
			printf(",\"bare_p50\":%.6g,\"ratio\":%.4f", r->bare, r->ratio);
		puts("}");
	}
}
