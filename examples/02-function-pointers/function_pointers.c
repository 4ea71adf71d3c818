/* function_pointers.c — reads device function pointers from a module, and passes them to a kernel.
 *
 *     function_pointers [ops.ptx other.ptx]           runs the lesson
 *     function_pointers --wrong [ops.ptx other.ptx]   also calls a pointer of another module, which is an error
 *
 * Every result is compared with one that the host computes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/context.h"
#include "loader/loader.h"
#include "loader/symbol/symbol.h"

enum { N = 1000, N_OPERATIONS = 4, BLOCK = 128 };

static float add(float a, float b)
{
	return a + b;
}
static float multiply(float a, float b)
{
	return a * b;
}
static float larger(float a, float b)
{
	return a > b ? a : b;
}
static float distance(float a, float b)
{
	return a > b ? a - b : b - a;
}

static float (*const host_operation[N_OPERATIONS])(float, float) = { add, multiply, larger, distance };

struct lesson {
	const gpul_driver *drv;
	gpul_module *ops, *other;
	CUdeviceptr a, b, c, which;
	float host_a[N], host_b[N];
	int32_t host_which[N];
};

/* ---- data -------------------------------------------------------------------------- */

static gpul_status upload(struct lesson *l, CUdeviceptr *to, const void *from, size_t bytes, gpul_error *err)
{
	const gpul_driver *drv = l->drv;
	gpul_status st = gpul_cu(drv, err, cuMemAlloc(to, bytes));

	return st ? st : gpul_cu(drv, err, cuMemcpyHtoD(*to, from, bytes));
}

static gpul_status make_data(struct lesson *l, gpul_error *err)
{
	gpul_status st;

	for (int i = 0; i < N; i++) {
		l->host_a[i] = (float)i;
		l->host_b[i] = (float)(N - 3 * i);
		l->host_which[i] = i % N_OPERATIONS;
	}
	st = upload(l, &l->a, l->host_a, sizeof l->host_a, err);
	if (!st)
		st = upload(l, &l->b, l->host_b, sizeof l->host_b, err);
	if (!st)
		st = upload(l, &l->which, l->host_which, sizeof l->host_which, err);
	return st ? st : upload(l, &l->c, l->host_a, sizeof l->host_a, err);
}

static void free_data(struct lesson *l)
{
	const CUdeviceptr all[] = { l->a, l->b, l->c, l->which };

	for (int i = 0; i < 4; i++)
		if (all[i])
			l->drv->cuMemFree(all[i]);
}

/* Compare c with the host's results; element i uses operation which[i]. */
static gpul_status check_results(struct lesson *l, const char *what, const int32_t *which, gpul_error *err)
{
	static float c[N];
	gpul_status st = gpul_cu(l->drv, err, cuMemcpyDtoH(c, l->c, sizeof c));

	if (st)
		return st;
	for (int i = 0; i < N; i++) {
		float expected = host_operation[which[i]](l->host_a[i], l->host_b[i]);

		if (c[i] != expected)
			return gpul_fail(err, GPUL_EFORMAT, i, "%s: c[%d] is %g, expected %g", what, i, c[i], expected);
	}
	printf("%-28s %d results equal to the host's\n", what, N);
	return GPUL_OK;
}

/* ---- kernels ----------------------------------------------------------------------- */

static gpul_status launch_kernel(struct lesson *l, const gpul_module *m, const char *name, void **args, const size_t *bytes, size_t n,
				 gpul_error *err)
{
	static const gpul_launch_config config = { .grid = { (N + BLOCK - 1) / BLOCK, 1, 1 }, .block = { BLOCK, 1, 1 } };
	const gpul_kernel *k;
	gpul_status st = gpul_kernel_find(m, name, &k, err);

	if (!st)
		st = gpul_kernel_launch(k, &config, args, bytes, n, err);
	return st ? st : gpul_cu(l->drv, err, cuCtxSynchronize());
}

static gpul_status apply(struct lesson *l, const gpul_module *m, uint64_t function, gpul_error *err)
{
	int32_t n = N;
	void *args[] = { &function, &l->a, &l->b, &l->c, &n };
	const size_t bytes[] = { 8, 8, 8, 8, 4 };

	return launch_kernel(l, m, "apply", args, bytes, 5, err);
}

/* The kernel reads the table itself; the host does not handle pointers. */
static gpul_status table_in_the_kernel(struct lesson *l, gpul_error *err)
{
	int32_t n = N;
	void *args[] = { &l->which, &l->a, &l->b, &l->c, &n };
	const size_t bytes[] = { 8, 8, 8, 8, 4 };
	gpul_status st = launch_kernel(l, l->ops, "apply_each", args, bytes, 5, err);

	return st ? st : check_results(l, "chosen by each element", l->host_which, err);
}

/* The host reads a pointer from the table, and passes it to a kernel of the same module. */
static gpul_status pointer_from_the_table(struct lesson *l, int which, gpul_error *err)
{
	static int32_t always[N];
	bool is_kernel;
	const char *name = gpul_function_pointer_target(l->ops, "table", (size_t)which, &is_kernel);
	char what[40];
	uint64_t function;
	gpul_status st = gpul_function_pointer(l->ops, "table", (size_t)which, &function, err);

	if (st)
		return st;
	for (int i = 0; i < N; i++)
		always[i] = which;
	snprintf(what, sizeof what, "table[%d] = 0x%" PRIx64 "%s%.16s", which, function, name ? ", " : "", name ? name : "");
	st = apply(l, l->ops, function, err);
	return st ? st : check_results(l, what, always, err);
}

/* Read a variable that is 0 until a kernel has stored a pointer in it. */
static gpul_status pointer_made_by_a_kernel(struct lesson *l, gpul_error *err)
{
	static int32_t always[N];
	int32_t which = 3;
	uint64_t function;
	gpul_error early = { 0 };
	gpul_status st;

	if (gpul_function_pointer(l->ops, "chosen", 0, &function, &early) != GPUL_EFORMAT)
		return gpul_fail(err, GPUL_EFORMAT, 0, "'chosen' should be 0 before choose()");
	printf("%-28s %s\n", "before choose():", early.text);
	st = launch_kernel(l, l->ops, "choose", (void *[]){ &which }, (const size_t[]){ 4 }, 1, err);
	if (!st)
		st = gpul_function_pointer(l->ops, "chosen", 0, &function, err);
	if (!st)
		st = apply(l, l->ops, function, err);
	for (int i = 0; i < N; i++)
		always[i] = which;
	return st ? st : check_results(l, "chosen by choose(3)", always, err);
}

/* Both modules have a table.  A pointer is valid only in the module that it was read from, and its
 * value does not show which module that is. */
static gpul_status pointer_of_another_module(struct lesson *l, bool try_it, gpul_error *err)
{
	uint64_t ours, theirs;
	gpul_status st = gpul_function_pointer(l->ops, "table", 1, &ours, err);

	if (!st)
		st = gpul_function_pointer(l->other, "table", 0, &theirs, err);
	if (st)
		return st;
	printf("%-28s 0x%" PRIx64 " is valid in ops, 0x%" PRIx64 " in other, each in its own module only\n", "two modules:", ours, theirs);
	return try_it ? apply(l, l->other, ours, err) : GPUL_OK;
}

static gpul_status run_lesson(struct lesson *l, const char *ops, const char *other, bool wrong, gpul_error *err)
{
	gpul_status st = gpul_module_load_file(l->drv, ops, NULL, &l->ops, err);

	if (!st)
		st = gpul_module_load_file(l->drv, other, NULL, &l->other, err);
	if (!st)
		st = make_data(l, err);
	if (!st)
		st = table_in_the_kernel(l, err);
	for (int i = 0; !st && i < N_OPERATIONS; i++)
		st = pointer_from_the_table(l, i, err);
	if (!st)
		st = pointer_made_by_a_kernel(l, err);
	return st ? st : pointer_of_another_module(l, wrong, err);
}

int main(int argc, char **argv)
{
	static struct lesson l;
	bool wrong = argc > 1 && strcmp(argv[1], "--wrong") == 0;
	char **files = argv + 1 + wrong;
	bool given = argc == 3 + wrong;
	gpul_context context = { 0 };
	gpul_error err = { 0 };
	gpul_status st = gpul_driver_open(GPUL_DRIVER_AUTO, &l.drv, &err);

	if (!st)
		st = gpul_context_open(l.drv, 0, &context, &err);
	if (!st)
		st = run_lesson(&l, given ? files[0] : "ops.ptx", given ? files[1] : "other.ptx", wrong, &err);
	if (l.drv)
		free_data(&l);
	gpul_module_unload(l.ops);
	gpul_module_unload(l.other);
	gpul_context_close(&context);
	if (st)
		fprintf(stderr, "function_pointers: %s\n", err.text);
	return st != GPUL_OK;
}
