/* sum.h — add up a buffer, on a GPU and on the CPU, in one order: the sums agree bit for bit.
 *
 * Floats become f64 and integers i64 or u64 before they are added; integers wrap there.  The order depends on type
 * and count alone, not on the driver, the GPU or the kind of memory:
 *
 *     data    ┌────────────┬────────────┬──────┬─ ─   chunks of 64 KiB; what is missing of the last counts as 0
 *             └─────┬──────┴─────┬──────┴──┬───┴─ ─
 *                   ▼            ▼         ▼
 *     sums    ┌────────────┬────────────┬──────┬─ ─   of one chunk each: data again, until one is left
 *
 *     chunk    ·  ·  ·  ·    row 0         16 rows of 4 KiB.  In each column rows 0 and 1, 2 and 3, ... are added,
 *              ·  ·  ·  ·    row 1         then the results in pairs, until one row is left; in that row the
 *               ...                        neighbours 0 and 1, 2 and 3, ..., then the results in pairs, until one
 *              ·  ·  ·  ·    row 15        number is left.
 *
 * Pairs of pairs lose less than adding one after the other: the error grows with the logarithm of the count. */
#ifndef GPULOAD_CLI_SUM_SUM_H
#define GPULOAD_CLI_SUM_SUM_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/lib/value.h"
#include "driver/driver.h"
#include "loader/signature/signature.h"

enum { SUM_ROW_BYTES = 4096, SUM_ROWS = 16, SUM_CHUNK_BYTES = SUM_ROWS * SUM_ROW_BYTES };

struct sum {
	gpul_type type;          /* f64, i64 or u64 */
	unsigned char bytes[8];  /* the number, as value.h keeps it */
};

/* What elements of type t are added up as. */
gpul_type sum_type(gpul_type t);
/* How many chunks count elements make: what is left to add up after one step. */
size_t sum_chunks(gpul_type t, size_t count);

/** Add up on the CPU.
 *
 * @t      element type
 * @data   count elements
 * @count  at least 1
 * @out    filled
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status sum_on_cpu(gpul_type t, const void *data, size_t count, struct sum *out, gpul_error *err);

/* The kernels, loaded, and a little device memory for the sums of chunks. */
struct sum_gpu;

/** Load the kernels.
 *
 * @drv    borrowed; must outlive *out; a context must be current, the same for all calls below
 * @count  the most elements that will be added up
 * @t      of this type
 * @out    owned by the caller: sum_gpu_destroy(); untouched on failure
 * Errors  GPUL_ECUDA, GPUL_ENOMEM
 * Threads any thread may call; one object belongs to one thread at a time
 * Source  - */
gpul_status sum_gpu_create(const gpul_driver *drv, gpul_type t, size_t count, struct sum_gpu **out,
			   gpul_error *err);
void sum_gpu_destroy(struct sum_gpu *g);  /* NULL is fine */

/* How the kernels get at data: by themselves, over a bus where there is one; or the copy engine brings it, a piece
 * ahead of them (sum_stage.h). */
enum sum_access { SUM_QUICKEST, SUM_DIRECT, SUM_STAGED };

/* Choose the way, for measuring the one against the other; it is SUM_QUICKEST otherwise. */
void sum_gpu_choose(struct sum_gpu *g, enum sum_access way);

/** Have the GPU add up; it is done when the stream is.
 *
 * @g       created for this type and at least count elements
 * @data    as the GPU sees it, aligned to 16 bytes; any memory that the GPU can read
 * @count   at least 1
 * @stream  NULL: the default stream
 * Errors  GPUL_EINVAL not aligned, no or too many elements; GPUL_ECUDA
 * Threads one at a time
 * Source  - */
gpul_status sum_gpu_start(struct sum_gpu *g, CUdeviceptr data, size_t count, CUstream stream,
			  gpul_error *err);

/** Wait for it.
 *
 * @g           a sum was started
 * @stream      the same
 * @timeout_ms  < 0: for ever
 * @out         filled
 * Errors  GPUL_ESYS native = ETIMEDOUT; GPUL_ECUDA the kernel failed: why, where the driver tells
 * Threads one at a time
 * Source  - */
gpul_status sum_gpu_finish(struct sum_gpu *g, CUstream stream, int timeout_ms, struct sum *out,
			   gpul_error *err);

/** All of it at once.
 *
 * @drv         borrowed; a context must be current
 * @t           element type
 * @data        as the GPU sees it
 * @count       at least 1
 * @timeout_ms  < 0: for ever
 * @out         filled
 * Errors  as above
 * Threads any thread may call
 * Source  - */
gpul_status sum_on_gpu(const gpul_driver *drv, gpul_type t, CUdeviceptr data, size_t count, int timeout_ms,
		       struct sum *out, gpul_error *err);

/** What the CPU makes of memory that it does not see: it is copied first.
 *
 * @drv    borrowed; a context must be current
 * @t      element type
 * @data   as the GPU sees it
 * @count  at least 1
 * @out    filled
 * Errors  GPUL_ENOMEM, GPUL_ECUDA
 * Threads any thread may call
 * Source  - */
gpul_status sum_of_copy(const gpul_driver *drv, gpul_type t, CUdeviceptr data, size_t count, struct sum *out,
			gpul_error *err);

/* The same number, bit for bit; one NaN is as good as another. */
bool sum_equal(const struct sum *a, const struct sum *b);

/* With as many digits as tell it from every other; returns buf. */
const char *sum_print(const struct sum *s, char buf[VALUE_TEXT_BYTES]);

#endif
