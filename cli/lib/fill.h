/* fill.h — creates the contents of a buffer from a FILL: zeros, ones, iota, rand, a number, @FILE. */
#ifndef GPULOAD_CLI_LIB_FILL_H
#define GPULOAD_CLI_LIB_FILL_H

#include <stddef.h>

#include "core/error.h"
#include "loader/signature/signature.h"

/** Allocate a buffer and fill it.
 *
 *     zeros                every byte is 0
 *     ones                 every element is 1
 *     5, -1.5, 0xff        every element is this number
 *     iota[:START[:STEP]]  element i is START + i x STEP (defaults 0 and 1); integers wrap around
 *     rand[:SEED]          splitmix64 of SEED (default 0) and i: integers of any value, floats k / 2^p
 *                          in [0, 1), where p is the precision in bits (f64 53, f32 24, f16 11,
 *                          bf16 8)
 *     @FILE                a .npy file of the same type and size, or a file of raw elements
 *
 * @t      element type
 * @fill   one of the forms above
 * @dir    folder of a relative @FILE; NULL: the current folder
 * @count  number of elements; 0: set to the number in @FILE
 * @out    owned by the caller: free(); *count elements; untouched on failure
 * Errors  GPUL_EINVAL unknown fill, a number out of the range of the type, or neither a count nor
 *         @FILE; GPUL_ESYS, GPUL_EFORMAT @FILE is missing or has another type or size; GPUL_ENOMEM
 * Source  splitmix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators */
gpul_status fill_make(gpul_type t, const char *fill, const char *dir, size_t *count, void **out, gpul_error *err);

/** Fill existing memory.
 *
 * @t      element type
 * @fill   as for fill_make(), except @FILE
 * @count  number of elements
 * @out    zeroed memory for count elements
 * Errors  GPUL_EINVAL unknown fill, or a number out of the range of the type
 * Source  as fill_make() */
gpul_status fill_in_place(gpul_type t, const char *fill, size_t count, void *out, gpul_error *err);

/** Allocate zeroed memory for a buffer; refuses more than the physical memory of this machine.
 *
 * @t      element type
 * @count  number of elements
 * @out    owned by the caller: free(); untouched on failure
 * Errors  GPUL_ENOMEM */
gpul_status fill_alloc(gpul_type t, size_t count, void **out, gpul_error *err);

/** Read a whole file, which contains a struct that is passed to a kernel by value.
 *
 * @path     without the @
 * @dir      folder of a relative path; NULL: the current folder
 * @out      owned by the caller: free(); untouched on failure
 * @n_bytes  set to the size of the file in bytes
 * Errors  GPUL_ESYS missing, a folder, not readable; GPUL_EFORMAT empty; GPUL_ENOMEM */
gpul_status fill_read_file(const char *path, const char *dir, void **out, size_t *n_bytes, gpul_error *err);

#endif
