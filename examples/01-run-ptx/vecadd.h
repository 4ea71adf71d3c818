/* vecadd.h — what run_ptx.c and vecadd.cu share. */
#ifndef VECADD_H
#define VECADD_H

#include <stdint.h>

#define VECADD_BLOCK 256 /* threads */

#ifdef __cplusplus
extern "C"
#endif
	/* Launch vecadd with <<<>>> and time it; 0: done, *ms is the time of all launches
	   together. */
	int
	vecadd_by_runtime(uint64_t a, uint64_t b, uint64_t c, int n, int launches, float *ms);

#endif
