/* fill.h — what stands after a buffer's '=': zeros, ones, iota, rand, a number, @FILE. */
#ifndef GPULOAD_CLI_LIB_FILL_H
#define GPULOAD_CLI_LIB_FILL_H

#include <stddef.h>

#include "core/error.h"
#include "loader/signature/signature.h"

/** Make a buffer's contents.
 *
 *     zeros                all bytes 0
 *     ones                 the number 1
 *     5, -1.5, 0xff        that number
 *     iota[:START[:STEP]]  START + i x STEP (0 and 1); integers wrap at their width
 *     rand[:SEED]          splitmix64 of SEED (0) and i: integers over their whole range,
 *                          floats k / 2^p in [0, 1), p the bits of precision (f64 53, f32 24,
 *                          f16 11, bf16 8)
 *     @FILE                a .npy file of the same type and size, else the raw bytes
 *
 * @t      element type
 * @fill   the text
 * @dir    folder that a relative @FILE is in; NULL: the current one
 * @count  elements; 0: as many as @FILE holds, set on success
 * @out    owned by the caller: free(); *count elements; untouched on failure
 * Errors  GPUL_EINVAL not a fill, a number out of the type's range, or no count and no @FILE;
 *         GPUL_ESYS, GPUL_EFORMAT @FILE missing, of another type or size; GPUL_ENOMEM
 * Threads any thread may call
 * Source  splitmix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators */
gpul_status fill_make(gpul_type t, const char *fill, const char *dir, size_t *count, void **out,
		      gpul_error *err);

/** Make contents where they shall lie.
 *
 * @t      element type
 * @fill   as above, but no @FILE
 * @count  elements
 * @out    room for them; all bytes 0
 * Errors  GPUL_EINVAL not a fill, or a number out of the type's range
 * Threads any thread may call
 * Source  as above */
gpul_status fill_in_place(gpul_type t, const char *fill, size_t count, void *out,
			  gpul_error *err);

/** Memory for a buffer, zeroed; refuses what this machine does not have.
 *
 * @t      element type
 * @count  elements
 * @out    owned by the caller: free(); untouched on failure
 * Errors  GPUL_ENOMEM more than this machine's memory
 * Threads any thread may call
 * Source  - */
gpul_status fill_alloc(gpul_type t, size_t count, void **out, gpul_error *err);

/** @FILE's bytes for a struct passed by value: the path is taken relative to dir.
 *
 * @path     without the @
 * @dir      as above
 * @out      owned by the caller: free(); untouched on failure
 * @n_bytes  their number
 * Errors  GPUL_ESYS missing, a folder, not to be read; GPUL_EFORMAT empty; GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status fill_read_file(const char *path, const char *dir, void **out, size_t *n_bytes,
			   gpul_error *err);

#endif
