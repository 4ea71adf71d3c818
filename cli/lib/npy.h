/* npy.h — NumPy's array files (.npy): read by `@FILE`, written by `--save`.
 *
 *     \x93NUMPY  major minor  header_bytes (u16; u32 from 2.0)  {'descr': '<f8', ...}\n  data
 *
 * gpuload supports arrays of one plain little-endian type, in C order or with one dimension. */
#ifndef GPULOAD_CLI_LIB_NPY_H
#define GPULOAD_CLI_LIB_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/signature/signature.h"

struct npy {
	const unsigned char *data; /* points into the parsed bytes */
	size_t count;              /* number of elements: the product of the dimensions */
};

/** True if the bytes begin with the magic number of a .npy file. */
bool npy_recognise(const void *bytes, size_t n_bytes);

/** Parse a .npy file and check that its elements have type t.
 *
 * @bytes    the whole file
 * @n_bytes  its size in bytes
 * @path     for messages
 * @t        the required element type; for bf16, which NumPy does not have, '<u2' and '<V2' are accepted
 * @out      points into bytes
 * Errors  GPUL_EFORMAT not a .npy header, another dtype, big-endian, Fortran order with several
 *         dimensions, or less or more data than the shape needs
 * Source  NumPy Enhancement Proposal 1 (format versions 1.0, 2.0, 3.0) */
gpul_status npy_parse(const void *bytes, size_t n_bytes, const char *path, gpul_type t, struct npy *out, gpul_error *err);

enum { NPY_MAX_DIMS = 4, NPY_HEADER_BYTES = 192 };

/* Type and shape of a .npy file, enough to allocate a buffer before the file is parsed. */
struct npy_about {
	gpul_type type;
	unsigned n_dims;
	uint64_t dim[NPY_MAX_DIMS];
};

/** Read the type and the shape from the header of a .npy file.
 *
 * @bytes    the whole file
 * @n_bytes  its size in bytes
 * @path     for messages
 * @out      filled in
 * Errors  GPUL_EFORMAT not a .npy header, a dtype that is not a plain little-endian number, more than NPY_MAX_DIMS dimensions
 * Source  NumPy Enhancement Proposal 1 (format versions 1.0, 2.0, 3.0) */
gpul_status npy_describe(const void *bytes, size_t n_bytes, const char *path, struct npy_about *out, gpul_error *err);

/* Return the NumPy dtype of a type, such as "<f4"; "<V2" for bf16, as the Python package ml_dtypes writes it; "" for NONE. */
const char *npy_dtype(gpul_type t);
/* Return the element type of a NumPy dtype; GPUL_TYPE_NONE: the dtype is not a plain number. */
gpul_type npy_type(const char *dtype);

/* Write the header of a .npy file with elements of type t and this shape to out; returns its size in bytes, a multiple of 64. */
size_t npy_header(gpul_type t, const uint64_t *dim, unsigned n_dims, char out[NPY_HEADER_BYTES]);

/** Write a one-dimensional .npy file.
 *
 * @path   created or overwritten
 * @t      element type; bf16 elements are written as their bits, with dtype '<u2'
 * @data   count elements
 * @count  number of elements
 * Errors  GPUL_ESYS cannot be written
 * Source  NumPy Enhancement Proposal 1 */
gpul_status npy_write(const char *path, gpul_type t, const void *data, size_t count, gpul_error *err);

#endif
