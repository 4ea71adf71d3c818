/* npy.c — parse and write the headers of .npy files. */
#include "cli/lib/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/new_file.h"

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6

static const char *const descrs[GPUL_N_TYPES] = {
	[GPUL_I8] = "|i1",  [GPUL_U8] = "|u1",  [GPUL_I16] = "<i2", [GPUL_U16] = "<u2", [GPUL_I32] = "<i4",  [GPUL_U32] = "<u4",
	[GPUL_I64] = "<i8", [GPUL_U64] = "<u8", [GPUL_F16] = "<f2", [GPUL_F32] = "<f4", [GPUL_BF16] = "<u2", [GPUL_F64] = "<f8",
};

bool npy_recognise(const void *bytes, size_t n_bytes)
{
	return n_bytes >= MAGIC_BYTES && !memcmp(bytes, MAGIC, MAGIC_BYTES);
}

/* Find the text after a key of the header; NULL: the key is missing.  The header is a Python dictionary with three known keys,
 * which NumPy writes in one form only, so a search for the key is enough. */
static const char *after_key(const char *header, const char *key)
{
	const char *p = strstr(header, key);

	if (!p)
		return NULL;
	p += strlen(key);
	return p + strspn(p, " :");
}

/* Parse (), (3,) or (3, 4): *count becomes 1, 3 or 12; dim gets the first NPY_MAX_DIMS numbers. */
static bool parse_shape(const char *p, size_t *count, uint64_t *dim, unsigned *n_dims)
{
	*count = 1;
	*n_dims = 0;
	if (*p++ != '(')
		return false;
	for (p += strspn(p, " "); *p != ')'; p += strspn(p, ", ")) {
		char *end;
		unsigned long long n;

		if (*p < '0' || *p > '9')
			return false;
		errno = 0;
		n = strtoull(p, &end, 10);
		if (errno || __builtin_mul_overflow(*count, (size_t)n, count))
			return false;
		p = end;
		if (*n_dims < NPY_MAX_DIMS)
			dim[*n_dims] = n;
		++*n_dims;
	}
	return true;
}

static gpul_status parse_header(const char *header, const char *path, gpul_type t, size_t *count, gpul_error *err)
{
	const char *descr = after_key(header, "'descr'"), *order = after_key(header, "'fortran_order'");
	const char *shape = after_key(header, "'shape'"), *close = descr && *descr == '\'' ? strchr(descr + 1, '\'') : NULL;
	uint64_t dim[NPY_MAX_DIMS];
	unsigned n_dims;
	char dtype[24] = "a structured type";

	if (!descr || !order || !shape || !parse_shape(shape, count, dim, &n_dims))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: not a .npy header: descr, fortran_order or shape is missing", path);
	if (close && close - descr - 1 < (int)sizeof dtype)
		snprintf(dtype, sizeof dtype, "%.*s", (int)(close - descr - 1), descr + 1);
	if (dtype[0] == '>')
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: contains big-endian elements (%s); save it with a.astype('%s')", path, dtype,
				 descrs[t]);
	if (strcmp(dtype, descrs[t]) && !(t == GPUL_BF16 && !strcmp(dtype, "<V2")))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: contains elements of dtype %s, but a buffer of %s needs %s", path, dtype,
				 gpul_type_name(t), descrs[t]);
	if (!strncmp(order, "True", 4) && n_dims > 1)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: is in Fortran order; save it with numpy.ascontiguousarray(a)", path);
	return GPUL_OK;
}

/* Copy the header dictionary as a NUL-terminated string, and find the offset of the data. */
static gpul_status copy_header(const unsigned char *b, size_t n_bytes, const char *path, char **header, size_t *data_at, gpul_error *err)
{
	size_t prefix = n_bytes > MAGIC_BYTES && b[MAGIC_BYTES] >= 2 ? 12 : 10, header_bytes;

	if (!npy_recognise(b, n_bytes) || n_bytes < prefix)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: the .npy file is truncated", path);
	header_bytes = b[8] | (size_t)b[9] << 8;
	if (prefix == 12)
		header_bytes |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
	if (header_bytes > n_bytes - prefix)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: the .npy header is truncated", path);
	*header = strndup((const char *)b + prefix, header_bytes);
	if (!*header)
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory for the .npy header", path);
	*data_at = prefix + header_bytes;
	return GPUL_OK;
}

gpul_status npy_parse(const void *bytes, size_t n_bytes, const char *path, gpul_type t, struct npy *out, gpul_error *err)
{
	size_t data_at, data_bytes;
	char *header;
	gpul_status st = copy_header(bytes, n_bytes, path, &header, &data_at, err);

	if (st)
		return st;
	st = parse_header(header, path, t, &out->count, err);
	free(header);
	if (st)
		return st;
	out->data = (const unsigned char *)bytes + data_at;
	data_bytes = n_bytes - data_at;
	if (data_bytes % gpul_type_bytes(t) || data_bytes / gpul_type_bytes(t) != out->count)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: the shape has %zu elements of %zu bytes, but the file has %zu bytes "
				 "of data",
				 path, out->count, gpul_type_bytes(t), data_bytes);
	return GPUL_OK;
}

static gpul_status describe_header(const char *header, const char *path, struct npy_about *out, gpul_error *err)
{
	const char *descr = after_key(header, "'descr'"), *shape = after_key(header, "'shape'");
	char dtype[8] = "";
	size_t count;

	if (!descr || !shape || !parse_shape(shape, &count, out->dim, &out->n_dims))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: not a .npy header: descr, fortran_order or shape is missing", path);
	if (sscanf(descr, "'%7[^']'", dtype) != 1 || !(out->type = npy_type(dtype)))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: the elements are not plain little-endian numbers: %.24s", path, descr);
	if (out->n_dims > NPY_MAX_DIMS)
		return gpul_fail(err, GPUL_EFORMAT, (int)out->n_dims, "%s: has %u dimensions, the limit is %d; reshape the array", path,
				 out->n_dims, NPY_MAX_DIMS);
	return GPUL_OK;
}

gpul_status npy_describe(const void *bytes, size_t n_bytes, const char *path, struct npy_about *out, gpul_error *err)
{
	size_t data_at;
	char *header;
	gpul_status st = copy_header(bytes, n_bytes, path, &header, &data_at, err);

	if (st)
		return st;
	st = describe_header(header, path, out, err);
	free(header);
	return st;
}

const char *npy_dtype(gpul_type t)
{
	if (t == GPUL_BF16)
		return "<V2";
	return t > GPUL_TYPE_NONE && t < GPUL_N_TYPES ? descrs[t] : "";
}

gpul_type npy_type(const char *dtype)
{
	for (gpul_type t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++)
		if (!strcmp(dtype, npy_dtype(t)))
			return t;
	return GPUL_TYPE_NONE;
}

/* The header is padded so that the length of prefix and header is a multiple of 64 bytes: the data of a mapped file is then aligned. */
size_t npy_header(gpul_type t, const uint64_t *dim, unsigned n_dims, char out[NPY_HEADER_BYTES])
{
	size_t bytes, n = 10;

	memset(out, ' ', NPY_HEADER_BYTES);
	n += (size_t)sprintf(out + n, "{'descr': '%s', 'fortran_order': False, 'shape': (", descrs[t]);
	for (unsigned i = 0; i < n_dims && i < NPY_MAX_DIMS; i++)
		n += (size_t)sprintf(out + n, "%s%" PRIu64 "%s", i ? ", " : "", dim[i], n_dims == 1 ? "," : "");
	n += (size_t)sprintf(out + n, "), }");
	out[n] = ' ';
	bytes = n < 128 ? 128 : NPY_HEADER_BYTES;
	out[bytes - 1] = '\n';
	memcpy(out, MAGIC "\x01\x00", 8);
	out[8] = (char)(unsigned char)(bytes - 10);
	out[9] = 0;
	return bytes;
}

gpul_status npy_write(const char *path, gpul_type t, const void *data, size_t count, gpul_error *err)
{
	char header[NPY_HEADER_BYTES];
	size_t n = npy_header(t, &(uint64_t){ count }, 1, header);

	return file_overwrite(path, header, n, data, count * gpul_type_bytes(t), err);
}
