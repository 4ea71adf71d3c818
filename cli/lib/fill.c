/* fill.c — parse a FILL and generate or read the elements. */
#include "cli/lib/fill.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/lib/npy.h"
#include "cli/lib/value.h"
#include "core/file/file.h"

/* ---- files ------------------------------------------------------------------------- */

gpul_status fill_read_file(const char *path, const char *dir, void **out, size_t *n_bytes, gpul_error *err)
{
	gpul_file file;
	char *joined = NULL;
	void *bytes;
	gpul_status st;

	if (dir && path[0] != '/' && asprintf(&joined, "%s/%s", dir, path) < 0)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a path");
	st = gpul_file_open(joined ? joined : path, &file, err);
	free(joined);
	if (st)
		return st;
	bytes = malloc(file.n_bytes);
	if (bytes) {
		memcpy(bytes, file.bytes, file.n_bytes);
		st = gpul_file_check(&file, path, err);
		if (st) {
			free(bytes);
		} else {
			*out = bytes;
			*n_bytes = file.n_bytes;
		}
	} else {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "%s: no memory for the %zu bytes of the file", path, file.n_bytes);
	}
	gpul_file_close(&file);
	return st;
}

/* Find the start of the elements in a file's bytes, and their number. */
static gpul_status find_elements(gpul_type t, const char *path, const void *bytes, size_t n_bytes, struct npy *out, gpul_error *err)
{
	if (npy_recognise(bytes, n_bytes))
		return npy_parse(bytes, n_bytes, path, t, out, err);
	if (n_bytes % gpul_type_bytes(t))
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: size %zu is not a multiple of %zu bytes (%s)", path, n_bytes,
				 gpul_type_bytes(t), gpul_type_name(t));
	*out = (struct npy){ bytes, n_bytes / gpul_type_bytes(t) };
	return GPUL_OK;
}

static gpul_status make_from_file(gpul_type t, const char *path, const char *dir, size_t *count, void **out, gpul_error *err)
{
	struct npy elements;
	void *bytes;
	size_t n_bytes;
	gpul_status st = fill_read_file(path, dir, &bytes, &n_bytes, err);

	if (st)
		return st;
	st = find_elements(t, path, bytes, n_bytes, &elements, err);
	if (st)
		goto free_bytes;
	if (elements.count == 0 || (*count && *count != elements.count)) {
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%s: contains %zu elements of type %s, but the buffer has %zu", path, elements.count,
			       gpul_type_name(t), *count);
		goto free_bytes;
	}
	*count = elements.count;
	memmove(bytes, elements.data, elements.count * gpul_type_bytes(t));
	*out = bytes;
	return GPUL_OK;
free_bytes:
	free(bytes);
	return st;
}

/* ---- generators -------------------------------------------------------------------- */

static uint64_t splitmix64(uint64_t seed, uint64_t i)
{
	uint64_t z = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

static void fill_rand(gpul_type t, size_t count, uint64_t seed, unsigned char *out)
{
	static const int precision[GPUL_N_TYPES] = {
		[GPUL_F16] = 11,
		[GPUL_BF16] = 8,
		[GPUL_F32] = 24,
		[GPUL_F64] = 53,
	};
	size_t bytes = gpul_type_bytes(t);

	for (size_t i = 0; i < count; i++, out += bytes) {
		uint64_t r = splitmix64(seed, i);

		if (precision[t])
			value_store_float(t, (double)(r >> (64 - precision[t])) / (double)(UINT64_C(1) << precision[t]), out);
		else
			value_store_int(t, r, out);
	}
}

static void fill_iota(gpul_type t, size_t count, const void *start, const void *step, unsigned char *out)
{
	struct value a = value_load(t, start), b = value_load(t, step);
	size_t bytes = gpul_type_bytes(t);

	for (size_t i = 0; i < count; i++, out += bytes) {
		if (a.is_float)
			value_store_float(t, a.f + (double)i * b.f, out);
		else
			value_store_int(t, a.i + i * b.i, out);
	}
}

/* ---- the grammar ------------------------------------------------------------------- */

/* A fill, split at its colons: "iota:5:2" has the name "iota" and the parts "5" and "2"; a missing part has a default. */
struct fill_words {
	char name[8];
	char part[2][48];
	size_t n_parts;
};

static bool split_fill(const char *fill, struct fill_words *w)
{
	size_t n = strcspn(fill, ":");

	*w = (struct fill_words){ .n_parts = 0 };
	if (n >= sizeof w->name)
		return false;
	memcpy(w->name, fill, n);
	for (fill += n; *fill == ':'; fill += n) {
		n = strcspn(++fill, ":");
		if (w->n_parts == 2 || n == 0 || n >= sizeof w->part[0])
			return false;
		memcpy(w->part[w->n_parts++], fill, n);
	}
	return true;
}

static gpul_status fill_iota_or_rand(gpul_type t, const struct fill_words *w, size_t count, void *out, gpul_error *err)
{
	unsigned char start[8], step[8];
	uint64_t seed = 0;
	gpul_status st = GPUL_OK;

	value_store_int(t, 0, start);
	value_store_int(t, 1, step);
	if (!strcmp(w->name, "rand")) {
		if (w->n_parts == 1)
			st = value_parse(GPUL_U64, w->part[0], &seed, err);
		if (st == GPUL_OK)
			fill_rand(t, count, seed, out);
		return st;
	}
	if (w->n_parts > 0)
		st = value_parse(t, w->part[0], start, err);
	if (st == GPUL_OK && w->n_parts > 1)
		st = value_parse(t, w->part[1], step, err);
	if (st == GPUL_OK)
		fill_iota(t, count, start, step, out);
	return st;
}

gpul_status fill_in_place(gpul_type t, const char *fill, size_t count, void *out, gpul_error *err)
{
	unsigned char *at = out;
	struct fill_words w;
	bool known = split_fill(fill, &w);
	unsigned char number[8];
	gpul_status st;

	if (known && !strcmp(fill, "zeros"))
		return GPUL_OK; /* the memory is zeroed already */
	if (known && (!strcmp(w.name, "iota") || (!strcmp(w.name, "rand") && w.n_parts < 2)))
		return fill_iota_or_rand(t, &w, count, out, err);
	if (known && !strcmp(fill, "ones"))
		fill = "1";
	else if (!strchr("+-.0123456789", fill[0]) && strcmp(fill, "inf") && strcmp(fill, "nan"))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "'%s' does not describe the contents of a buffer; expected zeros, ones, "
				 "iota[:START[:STEP]], rand[:SEED], NUMBER or @FILE",
				 fill);
	st = value_parse(t, fill, number, err);
	for (size_t i = 0; st == GPUL_OK && i < count; i++)
		memcpy(at + i * gpul_type_bytes(t), number, gpul_type_bytes(t));
	return st;
}

gpul_status fill_alloc(gpul_type t, size_t count, void **out, gpul_error *err)
{
	size_t bytes = gpul_type_bytes(t), most = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	void *p = count <= most / bytes ? calloc(count, bytes) : NULL;

	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "a buffer of %zu %s elements does not fit in this machine's memory (%zu MiB)", count,
				 gpul_type_name(t), most >> 20);
	*out = p;
	return GPUL_OK;
}

gpul_status fill_make(gpul_type t, const char *fill, const char *dir, size_t *count, void **out, gpul_error *err)
{
	void *data;
	gpul_status st;

	if (fill[0] == '@')
		return make_from_file(t, fill + 1, dir, count, out, err);
	if (*count == 0)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a buffer without a count, such as f32[], needs its contents from a file (@FILE), not '%s'", fill);
	st = fill_alloc(t, *count, &data, err);
	if (st)
		return st;
	st = fill_in_place(t, fill, *count, data, err);
	if (st) {
		free(data);
		return st;
	}
	*out = data;
	return GPUL_OK;
}
