/* samples.c — sorts samples, and finds their median and percentiles. */
#include "cli/lib/bench/samples.h"

#include <stdlib.h>

static int compare_numbers(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int compare_times(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void samples_sort(double *at, size_t n)
{
	qsort(at, n, sizeof *at, compare_numbers);
}

void samples_sort_ns(int64_t *at, size_t n)
{
	qsort(at, n, sizeof *at, compare_times);
}

struct samples_spread samples_spread_of(double *at, size_t n)
{
	samples_sort(at, n);
	return (struct samples_spread){ .median = n % 2 ? at[n / 2] : (at[n / 2 - 1] + at[n / 2]) / 2, .least = at[0], .most = at[n - 1] };
}

/* Compute the index (nearest rank) in integers, because a product of doubles could be slightly above the exact value. */
int64_t samples_percentile(const int64_t *sorted, uint64_t n, unsigned per_mille)
{
	return sorted[(n * per_mille + 999) / 1000 - 1];
}
