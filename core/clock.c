/* clock.c — reads CLOCK_MONOTONIC. */
#include "core/clock.h"

#include <time.h>

uint64_t gpul_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail: the clock exists on every Linux */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
