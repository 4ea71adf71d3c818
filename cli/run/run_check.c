/* run_check.c — compares buffers with what --expect gives, and writes the files of --save. */
#include "cli/run/cli_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/fill.h"
#include "cli/lib/new_file.h"
#include "cli/lib/npy.h"

/* NaN equals NaN; infinities must be equal; other numbers may differ by atol + rtol x |want|. */
static bool float_agrees(double got, double want, const struct run_request *q)
{
	if (isnan(got) || isnan(want))
		return isnan(got) && isnan(want);
	if (got == want)
		return true;
	if (isinf(got) || isinf(want))
		return false;
	return fabs(got - want) <= q->atol + q->rtol * fabs(want);
}

static void check_elements(const struct run_request *q, const struct arg *a, struct run_check *c)
{
	size_t bytes = gpul_type_bytes(a->type);
	const unsigned char *want = c->expected;

	for (size_t i = 0; i < a->count; i++) {
		const unsigned char *g = a->data + i * bytes, *w = want + i * bytes;
		bool agrees = !memcmp(g, w, bytes);

		if (!agrees && value_type_is_float(a->type))
			agrees = float_agrees(value_load(a->type, g).f, value_load(a->type, w).f, q);
		if (agrees)
			continue;
		if (c->n_wrong++ == 0) {
			c->first_wrong = i;
			c->unwritten = arg_unwritten(a, i);
			value_print(a->type, g, c->got);
			value_print(a->type, w, c->want);
		}
	}
	c->ok = c->n_wrong == 0;
}

/* ---- sums -------------------------------------------------------------------------- */

/* Neumaier's compensated sum, whose rounding error does not grow with the number of elements. */
static double sum_floats(const struct arg *a)
{
	double sum = 0, lost = 0;

	for (size_t i = 0; i < a->count; i++) {
		double v = value_load(a->type, a->data + i * gpul_type_bytes(a->type)).f, t = sum + v;

		if (!isfinite(t))
			lost = 0;
		else
			lost += fabs(sum) >= fabs(v) ? (sum - t) + v : (v - t) + sum;
		sum = t;
	}
	return sum + lost;
}

static gpul_type sum_type(gpul_type t)
{
	return value_type_is_float(t) ? GPUL_F64 : value_type_is_signed(t) ? GPUL_I64 : GPUL_U64;
}

static void check_sum(const struct run_request *q, const struct arg *a, struct run_check *c)
{
	gpul_type t = sum_type(a->type);
	unsigned char got[8];
	uint64_t sum = 0;

	/* Integers are added modulo 2^64: the sum of 64-bit numbers may wrap around, and so must the number after "sum:". */
	for (size_t i = 0; t != GPUL_F64 && i < a->count; i++)
		sum += value_load(a->type, a->data + i * gpul_type_bytes(a->type)).i;
	if (t == GPUL_F64)
		value_store_float(t, sum_floats(a), got);
	else
		value_store_int(t, sum, got);
	value_print(t, got, c->got);
	value_print(t, c->expected, c->want);
	c->ok = t == GPUL_F64 ? float_agrees(value_load(t, got).f, value_load(t, c->expected).f, q) : !memcmp(got, c->expected, 8);
	c->n_wrong = !c->ok;
}

/* ---- all checks -------------------------------------------------------------------- */

/* Convert the WHAT of an --expect option to bytes: one sum, or the contents of the whole buffer. */
static gpul_status prepare_check(const struct arg *a, struct run_check *c, gpul_error *err)
{
	const char *what = c->target->what;
	size_t count = a->count;

	c->is_sum = !strncmp(what, "sum:", 4);
	if (!c->is_sum)
		return fill_make(a->type, what, c->target->dir, &count, &c->expected, err);
	c->expected = calloc(1, 8);
	if (!c->expected)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to compute a sum");
	return value_parse(sum_type(a->type), what + 4, c->expected, err);
}

gpul_status run_check_prepare(struct run *r, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	r->checks = calloc(r->ask.n_expects + 1, sizeof *r->checks);
	if (!r->checks)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu checks", r->ask.n_expects);
	for (size_t i = 0; st == GPUL_OK && i < r->ask.n_expects; i++) {
		r->checks[i].target = &r->ask.expects[i];
		st = prepare_check(&r->ask.args[r->ask.expects[i].arg], &r->checks[i], err);
	}
	return st;
}

void run_check_all(struct run *r)
{
	for (size_t i = 0; i < r->ask.n_expects; i++) {
		const struct arg *a = &r->ask.args[r->checks[i].target->arg];

		if (r->checks[i].is_sum)
			check_sum(&r->ask, a, &r->checks[i]);
		else
			check_elements(&r->ask, a, &r->checks[i]);
	}
}

void run_check_free(struct run *r)
{
	for (size_t i = 0; r->checks && i < r->ask.n_expects; i++)
		free(r->checks[i].expected);
	free(r->checks);
	r->checks = NULL;
}

size_t run_explain_checks(const struct run *r, char *buf, size_t buf_bytes)
{
	size_t n_failed = 0;

	for (size_t i = 0; i < r->ask.n_expects; i++) {
		const struct run_check *c = &r->checks[i];

		if (c->ok || n_failed++)
			continue;
		if (c->is_sum)
			snprintf(buf, buf_bytes, "argument %zu: the sum of the elements is %s, expected %s", c->target->arg, c->got,
				 c->want);
		else
			snprintf(buf, buf_bytes,
				 "argument %zu: element %zu is %s%s, expected %s; %zu of %zu "
				 "are wrong",
				 c->target->arg, c->first_wrong, c->unwritten ? "unwritten, still " : "", c->got, c->want, c->n_wrong,
				 r->ask.args[c->target->arg].count);
	}
	return n_failed;
}

gpul_status run_save_all(const struct run *r, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0; st == GPUL_OK && i < r->ask.n_saves; i++) {
		const struct run_target *t = &r->ask.saves[i];
		const struct arg *a = &r->ask.args[t->arg];
		size_t n = strlen(t->what);

		if (n >= 4 && !strcmp(t->what + n - 4, ".npy"))
			st = npy_write(t->what, a->type, a->data, a->count, err);
		else
			st = file_overwrite(t->what, NULL, 0, a->data, a->bytes, err);
	}
	return st;
}
