/* sum_stage.h — copies host memory to the GPU with its copy engine, one piece ahead of the kernels.
 *
 *     copies   ┌ piece 0 ┬ piece 1 ┬ piece 2 ┬ piece 3 ─ ─     a separate stream
 *              └────┬────┴────┬────┴────┬────┘
 *     kernels       └ sum 0   └ sum 1   └ sum 2                the caller's stream
 *
 * A kernel reads host memory in requests of 128 bytes, whatever the size of its loads.  The copy engine requests 256 bytes, which costs
 * less bandwidth for headers: 55.3 instead of 51.3 GB/s on PCIe 5.0 x16 (docs/measured.md).  The pieces use three buffers in turn. */
#ifndef GPULOAD_CLI_SUM_SUM_STAGE_H
#define GPULOAD_CLI_SUM_SUM_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/driver.h"

enum { SUM_PIECE_BYTES = 8 << 20 };

struct sum_stage;

/* True if staging is faster: for host memory of more than one piece, on a GPU with separate memory (integrated GPUs and
 * the software driver keep device memory in host memory). */
bool sum_stage_pays(const gpul_driver *drv, CUdeviceptr data, size_t bytes);

/** Allocate the buffers.
 *
 * @drv  borrowed; must outlive *out; all calls below need the same current context
 * @out  owned by the caller: sum_stage_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM; GPUL_ECUDA
 * Threads any thread may call; one object belongs to one thread at a time */
gpul_status sum_stage_create(const gpul_driver *drv, struct sum_stage **out, gpul_error *err);
void sum_stage_destroy(struct sum_stage *s); /* accepts NULL; waits for running copies */

/** Begin with new data: its copies start when the work that is in the stream now has ended.
 *
 * @s       a stage
 * @stream  the stream of the kernels
 * Errors  GPUL_ECUDA
 * Threads one at a time */
gpul_status sum_stage_begin(struct sum_stage *s, CUstream stream, gpul_error *err);

/** Queue the copy of one piece, and make the stream wait for it.
 *
 * @s       after sum_stage_begin()
 * @data    host memory that the GPU can read
 * @bytes   at most SUM_PIECE_BYTES
 * @stream  the stream of sum_stage_begin()
 * @out     device address of the piece, for kernels that are launched into the stream now
 * Errors  GPUL_ECUDA
 * Threads one at a time */
gpul_status sum_stage_copy(struct sum_stage *s, CUdeviceptr data, size_t bytes, CUstream stream, CUdeviceptr *out, gpul_error *err);

/** Release the buffer of the piece when the kernels that are in the stream now have ended.
 *
 * @s       after sum_stage_copy()
 * @stream  the stream of sum_stage_begin()
 * Errors  GPUL_ECUDA
 * Threads one at a time */
gpul_status sum_stage_release(struct sum_stage *s, CUstream stream, gpul_error *err);

#endif
