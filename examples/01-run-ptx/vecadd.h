/* vecadd.h — declarations that run_ptx.c and vecadd.cu share. */
#ifndef VECADD_H
#define VECADD_H

#include <stdint.h>

#define VECADD_BLOCK 256 /* threads of a block */

#ifdef __cplusplus
extern "C"
#endif
	/* Launch vecadd with <<<>>>; *ms is the total time of all launches.  Returns 0 on
	   success. */
	int
	vecadd_by_runtime(uint64_t a, uint64_t b, uint64_t c, int n, int launches, float *ms);

#endif
