/* case_call.c — function pointers, recursion, virtual calls. */
#include <math.h>

#include "tests/corpus/corpus.h"

enum { N = 300, BYTES = N * sizeof(float) };

/* op_add, op_mul and op_max of fnptr.cu.  max returns the number if the other operand is NaN, and +0 > -0. */
static float apply(int op, float a, float b)
{
	if (op == 0)
		return a + b;
	if (op == 1)
		return a * b;
	if (isnan(a) || isnan(b))
		return isnan(a) ? b : a;
	if (a == b)
		return signbit(a) ? b : a;
	return a > b ? a : b;
}

static void fnptr(struct corpus *c)
{
	static float a[N], b[N], got[N], want[N];
	static int32_t op[N];
	int n = N;

	corpus_fill_f32(c, a, N);
	corpus_fill_f32(c, b, N);
	for (int i = 0; i < N; i++) { /* warps whose lanes call all three functions, and warps that call one */
		op[i] = i < 200 ? (int32_t)(corpus_random(c) % 3) : i / 32 % 3;
		if (i < 225)
			a[i] = a[i / 15], b[i] = b[i % 15];
		want[i] = apply(op[i], a[i], b[i]);
	}
	CUdeviceptr da = corpus_in(c, a, BYTES), db = corpus_in(c, b, BYTES), dc = corpus_out(c, BYTES);
	CUdeviceptr dop = corpus_in(c, op, sizeof op);
	corpus_launch(c, "fnptr", (struct corpus_shape){ .grid_x = 3, .block_x = 128 }, (void *[]){ &da, &db, &dc, &dop, &n });
	corpus_get(c, got, dc, BYTES);
	corpus_same_f32(c, "c", got, want, N);
}

/* The function to call is an argument: its address is read from the module's table. */
static void fnptr2(struct corpus *c)
{
	static float a[N], b[N], got[N], want[N];
	uint64_t table[3];
	int n = N;

	corpus_fill_f32(c, a, N);
	corpus_fill_f32(c, b, N);
	CUdeviceptr da = corpus_in(c, a, BYTES), db = corpus_in(c, b, BYTES), dc = corpus_out(c, BYTES);
	corpus_get(c, table, corpus_variable(c, "table", sizeof table), sizeof table);
	for (int op = 0; op < 3; op++) {
		for (int i = 0; i < N; i++)
			want[i] = apply(op, a[i], b[i]);
		corpus_launch(c, "fnptr2", (struct corpus_shape){ .grid_x = 2, .block_x = 160 },
			      (void *[]){ &table[op], &da, &db, &dc, &n });
		corpus_get(c, got, dc, BYTES);
		corpus_same_f32(c, "c", got, want, N);
	}
}

static void recurse(struct corpus *c)
{
	static const int32_t fib[16] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610 };
	int32_t got[64], want[64];

	for (int i = 0; i < 64; i++)
		want[i] = fib[i & 15];
	CUdeviceptr out = corpus_out(c, sizeof got);
	corpus_launch(c, "recurse", (struct corpus_shape){ .grid_x = 1, .block_x = 64 }, (void *[]){ &out });
	corpus_get(c, got, out, sizeof got);
	corpus_same_i32(c, "o", got, want, 64);
}

static void virt(struct corpus *c)
{
	int32_t got[40], want[40], k = 1000;

	for (int i = 0; i < 40; i++)
		want[i] = i & 1 ? k + 1 : k * 3;
	CUdeviceptr out = corpus_out(c, sizeof got);
	corpus_launch(c, "virt", (struct corpus_shape){ .grid_x = 1, .block_x = 40 }, (void *[]){ &out, &k });
	corpus_get(c, got, out, sizeof got);
	corpus_same_i32(c, "o", got, want, 40);
}

const struct corpus_case corpus_call_cases[] = {
	{ "fnptr", "fnptr", fnptr }, { "fnptr", "fnptr2", fnptr2 }, { "fnptr", "recurse", recurse },
	{ "fnptr", "virt", virt },   { NULL, NULL, NULL },
};
