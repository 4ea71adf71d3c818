/* forms.h — the files of an instruction form, and a dump of a driver's results. */
#ifndef GPULOAD_TESTS_GPU_FORMS_H
#define GPULOAD_TESTS_GPU_FORMS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/file/file.h"

typedef enum form_check {
	FORM_BITS,
	FORM_F16,
	FORM_BF16,
	FORM_F32,
	FORM_F64,     /* FORM_F16 to FORM_F64: equal within a number of ULP */
	FORM_F32_ABS, /* equal within an absolute error */
} form_check;

struct form {
	char name[96];                    /* name of the form's files, without suffix */
	char title[120];                  /* such as "add.rn.ftz.f32" */
	size_t rows, in_bytes, out_bytes; /* number of rows; bytes of one row */
	form_check check;
	double bound; /* largest accepted difference, in ULP or absolute */
	gpul_file ptx, in;
};

/* Call each() with every form of a folder, in the order of names, until it returns nonzero.  Returns that value; 1 if a file is
 * malformed, after printing an error; else 0. */
int forms_each(const char *folder, int (*each)(const struct form *f, void *user), void *user);

/* True if two output rows are equal by the form's check.  All NaN values count as equal, except for FORM_BITS. */
bool form_row_agrees(const struct form *f, const void *reference, const void *other);

struct form_dump {
	gpul_file file;
};

struct form_result {
	const char *bytes; /* NULL: the driver refused the form, or the form is not in the dump */
	const char *why;
	size_t why_bytes;
};

gpul_status form_dump_open(const char *path, struct form_dump *out, gpul_error *err);
void form_dump_close(struct form_dump *d);
struct form_result form_dump_find(const struct form_dump *d, const char *name);

#endif
