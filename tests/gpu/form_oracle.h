/* form_oracle.h — the committed results of a GPU: one line of text for each instruction form.
 *
 *     # comment
 *     NAME INPUT bits RESULT      INPUT: a hash of the form's PTX and operands; RESULT: a hash of all result bytes
 *     NAME INPUT rows HEX         for a form that is compared within a bound: the bytes of the result's rows
 *
 * A hash is FNV-1a with 64 bits, 16 hexadecimal digits.  A line whose INPUT differs belongs to an older version of the
 * form: it is reported as outdated, and its result is not compared. */
#ifndef GPULOAD_TESTS_GPU_FORM_ORACLE_H
#define GPULOAD_TESTS_GPU_FORM_ORACLE_H

#include <stdio.h>

#include "tests/gpu/forms.h"

/* Write the line of a form.  result: f->rows * f->out_bytes bytes. */
void form_oracle_write(FILE *to, const struct form *f, const void *result);

typedef enum form_verdict {
	FORM_AGREES,
	FORM_DIFFERS,
	FORM_OUTDATED, /* the file has a line for an older version of the form */
	FORM_UNKNOWN,  /* the file has no line for the form */
} form_verdict;

/* Compare a result with the form's line in `oracle`, the NUL-terminated text of such a file. */
form_verdict form_oracle_compare(const char *oracle, const struct form *f, const void *result);

#endif
