/* sum_stage.h — host memory, brought to the GPU by its copy engine a piece ahead of the kernels.
 *
 *     copies   ┌ piece 0 ┬ piece 1 ┬ piece 2 ┬ piece 3 ─ ─     a stream of its own
 *              └────┬────┴────┬────┴────┬────┘
 *     kernels       └ sum 0   └ sum 1   └ sum 2                the caller's stream
 *
 * A kernel that reads host memory asks for 128 bytes at a time, whatever its loads look like, and so spends more of the
 * bus on headers than the copy engine does, which asks for 256: 51.3 against 55.3 GB/s on PCIe 5.0 x16
 * (docs/measured.md).  The pieces take turns in three buffers. */
#ifndef GPULOAD_CLI_SUM_SUM_STAGE_H
#define GPULOAD_CLI_SUM_SUM_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

enum { SUM_PIECE_BYTES = 8 << 20 };

struct sum_stage;

/* Whether it pays: host memory, more than a piece of it, and a GPU with memory of its own (an integrated one, and the
 * software driver, have device memory in host memory). */
bool sum_stage_pays(const gpul_driver *drv, CUdeviceptr data, size_t bytes);

/** Make the buffers.
 *
 * @drv  borrowed; must outlive *out; a context must be current, the same for all calls below
 * @out  owned by the caller: sum_stage_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM; GPUL_ECUDA
 * Threads any thread may call; one object belongs to one thread at a time
 * Source  - */
gpul_status sum_stage_create(const gpul_driver *drv, struct sum_stage **out, gpul_error *err);
void sum_stage_destroy(struct sum_stage *s);  /* NULL is fine; waits for what still runs */

/** Begin with new data: copies wait for what is in the stream now.
 *
 * @s       created
 * @stream  of the kernels
 * Errors  GPUL_ECUDA
 * Threads one at a time
 * Source  - */
gpul_status sum_stage_begin(struct sum_stage *s, CUstream stream, gpul_error *err);

/** Queue the copy of one piece, and have the stream wait for it.
 *
 * @s       begun
 * @data    host memory that the GPU can read
 * @bytes   at most SUM_PIECE_BYTES
 * @stream  the same
 * @out     where the piece will be, for kernels that are launched into the stream now
 * Errors  GPUL_ECUDA
 * Threads one at a time
 * Source  - */
gpul_status sum_stage_copy(struct sum_stage *s, CUdeviceptr data, size_t bytes, CUstream stream,
			    CUdeviceptr *out, gpul_error *err);

/** The kernels that read the piece are in the stream: behind them, its buffer may be used again.
 *
 * @s       a piece was brought
 * @stream  the same
 * Errors  GPUL_ECUDA
 * Threads one at a time
 * Source  - */
gpul_status sum_stage_release(struct sum_stage *s, CUstream stream, gpul_error *err);

#endif
