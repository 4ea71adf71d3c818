/* samples.h — the median, minimum, maximum and percentiles of a benchmark's samples. */
#ifndef GPULOAD_CLI_LIB_BENCH_SAMPLES_H
#define GPULOAD_CLI_LIB_BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* Sort in ascending order: numbers, or times in ns. */
void samples_sort(double *at, size_t n);
void samples_sort_ns(int64_t *at, size_t n);

struct samples_spread {
	double median, least, most; /* of an even number of samples, the median is the mean of the middle two */
};

/* Return the spread of n >= 1 samples; sorts them. */
struct samples_spread samples_spread_of(double *at, size_t n);

/* Return a percentile (nearest rank) of n >= 1 sorted samples, in thousandths: 500 is the median, 1000 the largest sample. */
int64_t samples_percentile(const int64_t *sorted, uint64_t n, unsigned per_mille);

#endif
