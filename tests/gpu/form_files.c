/* form_files.c — reads the files of an instruction form, compares rows of results, finds a form's results in a dump. */
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/forms.h"

/* ---- reading --------------------------------------------------------------------------------- */

static bool parse_check(struct form *f, const char *text)
{
	static const struct {
		const char *name;
		form_check check;
	} known[] = {
		{ "f16:", FORM_F16 }, { "bf16:", FORM_BF16 }, { "f32:abs:", FORM_F32_ABS }, { "f32:", FORM_F32 }, { "f64:", FORM_F64 },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		size_t n = strlen(known[i].name);
		if (!strncmp(text, known[i].name, n)) {
			f->check = known[i].check;
			f->bound = strtod(text + n, NULL);
			return true;
		}
	}
	f->check = FORM_BITS;
	return !strcmp(text, "bits");
}

/* Parse the two comment lines at the start of the PTX. */
static bool parse_head(struct form *f)
{
	char check[64] = "";
	const char *text = f->ptx.bytes;
	const char *rows = strstr(text, "// rows: ");

	if (sscanf(text, "// form: %119[^\n]", f->title) != 1 || !rows ||
	    sscanf(rows, "// rows: %zu in: %zu out: %zu check: %63s", &f->rows, &f->in_bytes, &f->out_bytes, check) != 4)
		return false;
	return f->rows && f->in_bytes && f->out_bytes && f->in.n_bytes == f->rows * f->in_bytes && parse_check(f, check);
}

static int with_form(const char *folder, const char *file, int (*each)(const struct form *, void *), void *user)
{
	struct form f = { 0 };
	gpul_error err = { 0 };
	char path[4096];
	int result = 1;

	snprintf(f.name, sizeof f.name, "%.*s", (int)strcspn(file, "."), file);
	snprintf(path, sizeof path, "%s/%s.ptx", folder, f.name);
	if (gpul_file_open(path, &f.ptx, &err) == GPUL_OK) {
		snprintf(path, sizeof path, "%s/%s.in", folder, f.name);
		gpul_file_open(path, &f.in, &err);
	}
	if (err.status)
		fprintf(stderr, "forms: %s\n", err.text);
	else if (!parse_head(&f))
		fprintf(stderr, "forms: %s: the first lines do not match the size of the .in file\n", f.name);
	else
		result = each(&f, user);
	gpul_file_close(&f.in);
	gpul_file_close(&f.ptx);
	return result;
}

static int is_ptx(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return n > 4 && !strcmp(e->d_name + n - 4, ".ptx");
}

int forms_each(const char *folder, int (*each)(const struct form *f, void *user), void *user)
{
	struct dirent **names = NULL;
	int n = scandir(folder, &names, is_ptx, alphasort), result = n <= 0;

	if (n <= 0)
		fprintf(stderr, "forms: no .ptx files in %s\n", folder);
	for (int i = 0; i < n; i++) {
		if (!result)
			result = with_form(folder, names[i]->d_name, each, user);
		free(names[i]);
	}
	free(names);
	return result;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Convert floating-point bits to an integer with the same order, so that a difference is in ULP. */
static int64_t ordered(uint64_t bits, unsigned width)
{
	uint64_t sign = 1ull << (width - 1), magnitude = bits & (sign - 1);

	return bits & sign ? -(int64_t)magnitude : (int64_t)magnitude;
}

static bool within_ulp(const char *a, const char *b, unsigned width, unsigned mantissa, double bound)
{
	uint64_t x = 0, y = 0, inf = ((1ull << (width - 1 - mantissa)) - 1) << mantissa;

	memcpy(&x, a, width / 8);
	memcpy(&y, b, width / 8);
	int64_t p = ordered(x, width), q = ordered(y, width);
	bool nan_a = (uint64_t)llabs(p) > inf, nan_b = (uint64_t)llabs(q) > inf;
	if (nan_a || nan_b)
		return nan_a && nan_b;
	return (double)(p > q ? (uint64_t)p - (uint64_t)q : (uint64_t)q - (uint64_t)p) <= bound;
}

static bool within_error(const char *a, const char *b, double bound)
{
	float x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (isnan(x) && isnan(y)) || x == y || fabs((double)x - (double)y) <= bound;
}

static bool element_agrees(const struct form *f, const char *a, const char *b)
{
	switch (f->check) {
	case FORM_F16:
		return within_ulp(a, b, 16, 10, f->bound);
	case FORM_BF16:
		return within_ulp(a, b, 16, 7, f->bound);
	case FORM_F32:
		return within_ulp(a, b, 32, 23, f->bound);
	case FORM_F64:
		return within_ulp(a, b, 64, 52, f->bound);
	case FORM_F32_ABS:
		return within_error(a, b, f->bound);
	case FORM_BITS:
		break;
	}
	return *a == *b;
}

bool form_row_agrees(const struct form *f, const void *reference, const void *other)
{
	static const size_t element_bytes[] = {
		[FORM_BITS] = 1, [FORM_F16] = 2, [FORM_BF16] = 2, [FORM_F32] = 4, [FORM_F64] = 8, [FORM_F32_ABS] = 4
	};
	const char *a = reference, *b = other;
	size_t step = element_bytes[f->check];

	for (size_t i = 0; i + step <= f->out_bytes; i += step)
		if (!element_agrees(f, a + i, b + i))
			return false;
	return true;
}

/* ---- dumps ----------------------------------------------------------------------------------- */

gpul_status form_dump_open(const char *path, struct form_dump *out, gpul_error *err)
{
	return gpul_file_open(path, &out->file, err);
}

void form_dump_close(struct form_dump *d)
{
	gpul_file_close(&d->file);
}

struct form_result form_dump_find(const struct form_dump *d, const char *name)
{
	const char *at = d->file.bytes, *end = at + d->file.n_bytes;
	size_t name_bytes = strlen(name);

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		char status[16] = "";
		size_t bytes = 0;
		if (!line_end || sscanf(at, "%*s %15s %zu", status, &bytes) != 2 || bytes > (size_t)(end - line_end - 1))
			break;
		if (!strncmp(at, name, name_bytes) && at[name_bytes] == ' ')
			return !strcmp(status, "ok") ? (struct form_result){ .bytes = line_end + 1 }
						     : (struct form_result){ .why = at + name_bytes + 1,
									     .why_bytes = (size_t)(line_end - at) - name_bytes - 1 };
		at = line_end + 1 + bytes;
	}
	return (struct form_result){ .why = "not in the dump", .why_bytes = strlen("not in the dump") };
}
