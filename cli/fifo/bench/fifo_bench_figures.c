/* fifo_bench_figures.c — medians of rates and percentiles of latencies. */
#include <math.h>
#include <stdlib.h>

#include "cli/fifo/bench/fifo_bench.h"

const double fifo_percentiles[FIFO_N_PERCENTILES] = { 50, 90, 99, 99.9, 100 };

static int by_rate(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct fifo_rate fifo_rate_of(double *per_s, unsigned n)
{
	qsort(per_s, n, sizeof *per_s, by_rate);
	return (struct fifo_rate){ .median = n % 2 ? per_s[n / 2] : (per_s[n / 2 - 1] + per_s[n / 2]) / 2,
				   .least = per_s[0],
				   .most = per_s[n - 1] };
}

static int by_time(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void fifo_latency_of(int64_t *ns, uint64_t n, struct fifo_latency *out)
{
	qsort(ns, n, sizeof *ns, by_time);
	for (int i = 0; i < FIFO_N_PERCENTILES; i++) {
		/* In integer thousandths, because a product of doubles could be slightly above the exact rank. */
		const uint64_t per_mille = (uint64_t)lround(fifo_percentiles[i] * 10);

		const int64_t value = ns[(n * per_mille + 999) / 1000 - 1];

		out->ns[i] = value > 0 ? value : 0;
	}
}
