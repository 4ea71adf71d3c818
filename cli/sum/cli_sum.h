/* cli_sum.h — adds up a buffer on a GPU or on the CPU, in the same order, so that the sums agree bit for bit.
 *
 * Floats become f64 and integers i64 or u64 before they are added; integers wrap around.  The order depends only on the
 * type and the count, not on the driver, the GPU or the kind of memory:
 *
 *     data    ┌────────────┬────────────┬──────┬─ ─   chunks of 64 KiB; the last chunk is padded with 0
 *             └─────┬──────┴─────┬──────┴──┬───┴─ ─
 *                   ▼            ▼         ▼
 *     sums    ┌────────────┬────────────┬──────┬─ ─   one per chunk; they are the data of the next step, until one is left
 *
 *     chunk    ·  ·  ·  ·    row 0         16 rows of 4 KiB.  In each column rows 0 and 1, 2 and 3, ... are added,
 *              ·  ·  ·  ·    row 1         then the results in pairs, until one row is left; in that row the
 *               ...                        neighbours 0 and 1, 2 and 3, ..., then the results in pairs, until one
 *              ·  ·  ·  ·    row 15        number is left.
 *
 * Adding in pairs is more precise than adding in sequence: the error grows with the logarithm of the count. */
#ifndef GPULOAD_CLI_SUM_CLI_SUM_H
#define GPULOAD_CLI_SUM_CLI_SUM_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/lib/value.h"
#include "driver/driver.h"
#include "loader/signature/signature.h"

enum { SUM_ROW_BYTES = 4096, SUM_ROWS = 16, SUM_CHUNK_BYTES = SUM_ROWS * SUM_ROW_BYTES };

struct sum {
	gpul_type type;         /* f64, i64 or u64 */
	unsigned char bytes[8]; /* the sum, in the format of value.h */
};

/* Return the type of the sum of elements of type t. */
gpul_type sum_type(gpul_type t);
/* Return the number of chunks into which count elements are divided; it is the number of sums after one step. */
size_t sum_chunks(gpul_type t, size_t count);

/** Add up count elements on the CPU.
 *
 * @t      element type
 * @data   count elements
 * @count  at least 1
 * @out    filled in
 * Errors  GPUL_ENOMEM */
gpul_status sum_on_cpu(gpul_type t, const void *data, size_t count, struct sum *out, gpul_error *err);

/* The loaded kernel, and device memory for the sums of chunks. */
struct sum_gpu;

/** Load the kernel.
 *
 * @drv    borrowed; must outlive *out; all calls below need the same current context
 * @t      element type
 * @count  maximum number of elements of a sum
 * @out    owned by the caller: sum_gpu_destroy(); untouched on failure
 * Errors  GPUL_ECUDA, GPUL_ENOMEM
 * Threads any thread may call; one object belongs to one thread at a time */
gpul_status sum_gpu_create(const gpul_driver *drv, gpul_type t, size_t count, struct sum_gpu **out, gpul_error *err);
void sum_gpu_destroy(struct sum_gpu *g); /* accepts NULL */

/* How the kernel reads the data: directly by loads, so that host memory is read over the bus, or staged, after the copy engine has
 * copied it piece by piece to the device (sum_stage.h). */
enum sum_access { SUM_QUICKEST, SUM_DIRECT, SUM_STAGED };

/* Choose for measurements how the kernel reads the data; the default is SUM_QUICKEST. */
void sum_gpu_choose(struct sum_gpu *g, enum sum_access way);

/** Start the sum on the GPU; the result is ready when the work in the stream is complete.
 *
 * @g       created for this type and at least count elements
 * @data    GPU address, aligned to 16 bytes, of any memory that the GPU can read
 * @count   at least 1
 * @stream  NULL: the default stream
 * Errors  GPUL_EINVAL data is not aligned, or count is 0 or too large; GPUL_ECUDA
 * Threads one at a time */
gpul_status sum_gpu_start(struct sum_gpu *g, CUdeviceptr data, size_t count, CUstream stream, gpul_error *err);

/** Wait for a started sum.
 *
 * @g           after sum_gpu_start()
 * @stream      the stream of sum_gpu_start()
 * @timeout_ms  < 0: no limit
 * @out         filled in
 * Errors  GPUL_ESYS native = ETIMEDOUT; GPUL_ECUDA the kernel failed
 * Threads one at a time */
gpul_status sum_gpu_finish(struct sum_gpu *g, CUstream stream, int timeout_ms, struct sum *out, gpul_error *err);

/** Load the kernel, add up on the GPU, and wait.
 *
 * @drv         borrowed; a context must be current
 * @t           element type
 * @data        GPU address, aligned to 16 bytes
 * @count       at least 1
 * @timeout_ms  < 0: no limit
 * @out         filled in
 * Errors  as sum_gpu_create(), sum_gpu_start(), sum_gpu_finish() */
gpul_status sum_on_gpu(const gpul_driver *drv, gpul_type t, CUdeviceptr data, size_t count, int timeout_ms, struct sum *out,
		       gpul_error *err);

/** Add up device memory on the CPU, after copying it to the host.
 *
 * @drv    borrowed; a context must be current
 * @t      element type
 * @data   GPU address
 * @count  at least 1
 * @out    filled in
 * Errors  GPUL_ENOMEM, GPUL_ECUDA */
gpul_status sum_of_copy(const gpul_driver *drv, gpul_type t, CUdeviceptr data, size_t count, struct sum *out, gpul_error *err);

/* True if two sums are equal bit for bit, or if both are NaN. */
bool sum_equal(const struct sum *a, const struct sum *b);

/* Print a sum with enough digits to be unique; returns buf. */
const char *sum_print(const struct sum *s, char buf[VALUE_TEXT_BYTES]);

#endif
