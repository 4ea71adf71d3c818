/* npy.c — see npy.h. */
#include "cli/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6

static const char *const descrs[GPUL_N_TYPES] = {
	[GPUL_I8] = "|i1",  [GPUL_U8] = "|u1",  [GPUL_I16] = "<i2",  [GPUL_U16] = "<u2",
	[GPUL_I32] = "<i4", [GPUL_U32] = "<u4", [GPUL_I64] = "<i8",  [GPUL_U64] = "<u8",
	[GPUL_F16] = "<f2", [GPUL_F32] = "<f4", [GPUL_BF16] = "<u2", [GPUL_F64] = "<f8",
};

bool npy_recognise(const void *bytes, size_t n_bytes)
{
	return n_bytes >= MAGIC_BYTES && !memcmp(bytes, MAGIC, MAGIC_BYTES);
}

/* The header dictionary is a Python literal with three known keys; NumPy writes it one way
 * only, so finding a key and reading what follows is enough.  NULL: no such key. */
static const char *after_key(const char *header, const char *key)
{
	const char *p = strstr(header, key);

	if (!p)
		return NULL;
	p += strlen(key);
	return p + strspn(p, " :");
}

/* (), (3,) or (3, 4) to 1, 3, 12. */
static bool parse_shape(const char *p, size_t *count, unsigned *n_dims)
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
		++*n_dims;
	}
	return true;
}

static gpul_status parse_header(const char *header, const char *path, gpul_type t,
				size_t *count, gpul_error *err)
{
	const char *descr = after_key(header, "'descr'"),
		   *order = after_key(header, "'fortran_order'");
	const char *shape = after_key(header, "'shape'"),
		   *close = descr && *descr == '\'' ? strchr(descr + 1, '\'') : NULL;
	unsigned n_dims;
	char dtype[24] = "a structured type";

	if (!descr || !order || !shape || !parse_shape(shape, count, &n_dims))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: not a .npy header: no descr, fortran_order and shape",
				 path);
	if (close && close - descr - 1 < (int)sizeof dtype)
		snprintf(dtype, sizeof dtype, "%.*s", (int)(close - descr - 1), descr + 1);
	if (dtype[0] == '>')
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: holds big-endian %s; save it with a.astype('%s')", path,
				 dtype, descrs[t]);
	if (strcmp(dtype, descrs[t]) && !(t == GPUL_BF16 && !strcmp(dtype, "<V2")))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: holds elements of dtype %s, but a buffer of %s needs %s",
				 path, dtype, gpul_type_name(t), descrs[t]);
	if (!strncmp(order, "True", 4) && n_dims > 1)
		return gpul_fail(
			err, GPUL_EFORMAT, 0,
			"%s: is in Fortran order; save it with numpy.ascontiguousarray(a)",
			path);
	return GPUL_OK;
}

gpul_status npy_parse(const void *bytes, size_t n_bytes, const char *path, gpul_type t,
		      struct npy *out, gpul_error *err)
{
	const unsigned char *b = bytes;
	size_t prefix = n_bytes > MAGIC_BYTES && b[MAGIC_BYTES] >= 2 ? 12 : 10, header_bytes,
	       data_bytes;
	char *header;
	gpul_status st;

	if (!npy_recognise(bytes, n_bytes) || n_bytes < prefix)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: not a whole .npy file", path);
	header_bytes = b[8] | (size_t)b[9] << 8;
	if (prefix == 12)
		header_bytes |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
	if (header_bytes > n_bytes - prefix)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: the .npy header is cut short",
				 path);
	header = strndup((const char *)b + prefix, header_bytes);
	if (!header)
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory for its header", path);
	st = parse_header(header, path, t, &out->count, err);
	free(header);
	if (st)
		return st;
	out->data = b + prefix + header_bytes;
	data_bytes = n_bytes - prefix - header_bytes;
	if (data_bytes % gpul_type_bytes(t) || data_bytes / gpul_type_bytes(t) != out->count)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: its shape says %zu elements of %zu bytes, but %zu bytes "
				 "of data follow",
				 path, out->count, gpul_type_bytes(t), data_bytes);
	return GPUL_OK;
}

gpul_status npy_write(const char *path, gpul_type t, const void *data, size_t count,
		      gpul_error *err)
{
	char header[128];
	unsigned n;
	FILE *f = fopen(path, "wb");
	bool ok;

	if (!f)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot be written: %s", path,
				 strerror(errno));
	/* Prefix and header together are a multiple of 64 bytes, so that data can be mapped
	 * aligned. */
	n = (unsigned)snprintf(header, sizeof header,
			       "{'descr': '%s', 'fortran_order': False, 'shape': (%zu,), }",
			       descrs[t], count);
	memset(header + n, ' ', sizeof header - n);
	header[128 - 10 - 1] = '\n';
	ok = fwrite(MAGIC "\x01\x00\x76\x00", 1, 10, f) == 10 &&
	     fwrite(header, 1, 118, f) == 118 &&
	     fwrite(data, gpul_type_bytes(t), count, f) == count;
	if (fclose(f) || !ok)
		return gpul_fail(err, GPUL_ESYS, errno, "%s: cannot be written: %s", path,
				 strerror(errno));
	return GPUL_OK;
}
