/* npy.h — NumPy's array files: what `@FILE` reads and `--save` writes.
 *
 *     \x93NUMPY  major minor  header_bytes (u16; u32 from 2.0)  {'descr': '<f8', ...}\n  data
 *
 * Only what maps onto a buffer: one plain little-endian type, C order (or one dimension). */
#ifndef GPULOAD_CLI_LIB_NPY_H
#define GPULOAD_CLI_LIB_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/signature/signature.h"

struct npy {
	const unsigned char *data;  /* into the bytes that were parsed */
	size_t count;               /* elements: the product of the shape */
};

/** True when the bytes begin like a .npy file. */
bool npy_recognise(const void *bytes, size_t n_bytes);

/** Parse a .npy file and check that it holds elements of type t.
 *
 * @bytes    the whole file
 * @n_bytes  its size in bytes
 * @path     for messages
 * @t        the wanted type; bf16, which NumPy lacks, is taken from '<u2' or '<V2'
 * @out      points into bytes
 * Errors  GPUL_EFORMAT not a .npy header, another dtype, big-endian, Fortran order with several
 *         dimensions, or data shorter or longer than the shape says
 * Threads any thread may call
 * Source  NumPy Enhancement Proposal 1 (format versions 1.0, 2.0, 3.0) */
gpul_status npy_parse(const void *bytes, size_t n_bytes, const char *path, gpul_type t,
		      struct npy *out, gpul_error *err);

enum { NPY_MAX_DIMS = 4, NPY_HEADER_BYTES = 192 };

/* What a .npy file is of: enough to make room for it before it is parsed. */
struct npy_about {
	gpul_type type;
	unsigned n_dims;
	uint64_t dim[NPY_MAX_DIMS];
};

/** Read the type and the shape that a .npy file states.
 *
 * @bytes    the whole file
 * @n_bytes  its size in bytes
 * @path     for messages
 * @out      filled
 * Errors  GPUL_EFORMAT not a .npy header, a dtype that is no plain little-endian number, more
 *         than NPY_MAX_DIMS dimensions
 * Threads any thread may call
 * Source  NumPy Enhancement Proposal 1 (format versions 1.0, 2.0, 3.0) */
gpul_status npy_describe(const void *bytes, size_t n_bytes, const char *path,
			 struct npy_about *out, gpul_error *err);

/* The dtype of a type, "<f4"; for bf16, which NumPy lacks, "<V2" as ml_dtypes has it.  NONE: "". */
const char *npy_dtype(gpul_type t);
/* The type of a dtype; GPUL_TYPE_NONE: no plain number. */
gpul_type npy_type(const char *dtype);

/* Make the header of a file of that type and shape; returns its size, a multiple of 64. */
size_t npy_header(gpul_type t, const uint64_t *dim, unsigned n_dims,
		  char out[NPY_HEADER_BYTES]);

/** Write a one-dimensional .npy file.
 *
 * @path   created or overwritten
 * @t      element type; bf16 is written as '<u2', its bits
 * @data   count elements
 * @count  their number
 * Errors  GPUL_ESYS cannot be written
 * Threads any thread may call
 * Source  NumPy Enhancement Proposal 1 */
gpul_status npy_write(const char *path, gpul_type t, const void *data, size_t count,
		      gpul_error *err);

#endif
