/* case_float.c — kernels with floating point.  Every operation is correctly rounded, so every bit
 * must be equal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/corpus/corpus.h"

static void vecadd(struct corpus *c)
{
	enum { N = 1000, BYTES = N * sizeof(double) }; /* some threads of the last block are out of range */
	static double a[N], b[N], got[N], want[N];
	int n = N;

	corpus_fill_f64(c, a, N);
	corpus_fill_f64(c, b, N);
	b[0] = a[1];   /* 0 + -0 */
	b[10] = a[11]; /* infinity - infinity */
	for (int i = 0; i < N; i++)
		want[i] = a[i] + b[i];
	CUdeviceptr da = corpus_in(c, a, BYTES), db = corpus_in(c, b, BYTES), dc = corpus_out(c, BYTES);
	corpus_launch(c, "vecadd", (struct corpus_shape){ .grid_x = 4, .block_x = 256 }, (void *[]){ &da, &db, &dc, &n });
	corpus_get(c, got, dc, BYTES);
	corpus_same_f64(c, "c", got, want, N);
}

static void saxpy_once(struct corpus *c, float a)
{
	enum { N = 5000, BYTES = N * sizeof(float) }; /* more than one round of the grid's stride */
	static float x[N], y[N], got[N], want[N];
	int n = N;

	corpus_fill_f32(c, x, N);
	corpus_fill_f32(c, y, N);
	for (int i = 0; i < N; i++)
		want[i] = fmaf(a, x[i], y[i]);
	CUdeviceptr dx = corpus_in(c, x, BYTES), dy = corpus_in(c, y, BYTES);
	corpus_launch(c, "saxpy", (struct corpus_shape){ .grid_x = 7, .block_x = 96 }, (void *[]){ &a, &dx, &dy, &n });
	corpus_get(c, got, dy, BYTES);
	corpus_same_f32(c, "y", got, want, N);
}

static void saxpy(struct corpus *c)
{
	saxpy_once(c, 1.1f);
	saxpy_once(c, 0x1p-140f);
	saxpy_once(c, -INFINITY);
}

/* The kernel's order of additions: each thread's stride, then lanes 16, 8, 4, 2, 1 apart, then
 * warps. */
static float fold_warp(const float *lane)
{
	float s[32];

	memcpy(s, lane, sizeof s);
	for (int o = 16; o; o >>= 1)
		for (int l = 0; l < o; l++)
			s[l] += s[l + o];
	return s[0];
}

static float reduce_block(const float *x, int n, int threads)
{
	float lane[1024] = { 0 }, warp[32] = { 0 };

	for (int t = 0; t < threads; t++)
		for (int i = t; i < n; i += threads)
			lane[t] += x[i];
	for (int w = 0; w < threads / 32; w++)
		warp[w] = fold_warp(lane + 32 * w);
	return fold_warp(warp);
}

static void reduce_with(struct corpus *c, const float *x, int n, unsigned blocks, unsigned threads, float want)
{
	float zero = 0, got = -1;
	CUdeviceptr dx = corpus_in(c, x, (size_t)n * sizeof *x), out = corpus_in(c, &zero, sizeof zero);

	corpus_launch(c, "reduce", (struct corpus_shape){ .grid_x = blocks, .block_x = threads }, (void *[]){ &dx, &out, &n });
	corpus_get(c, &got, out, sizeof got);
	corpus_same_f32(c, "sum", &got, &want, 1);
}

static void reduce(struct corpus *c)
{
	enum { N = 10007 };
	static float x[N];
	float exact = 0;

	/* One block has a fixed order, so any values can be compared. */
	corpus_fill_unit(c, x, N);
	reduce_with(c, x, N, 1, 512, 0 + reduce_block(x, N, 512));
	reduce_with(c, x, 33, 1, 32, 0 + reduce_block(x, 33, 32));
	/* Several blocks add in any order: with integers below 2^24 every order is exact. */
	for (int i = 0; i < N; i++) {
		x[i] = (float)(int)(corpus_random(c) % 201) - 100;
		exact += x[i];
	}
	reduce_with(c, x, N, 13, 1024, exact);
}

static void transpose(struct corpus *c)
{
	enum { W = 75, H = 50, BYTES = W * H * sizeof(float) }; /* not multiples of the tile */
	static float in[H * W], got[W * H], want[W * H];
	int w = W, h = H;

	corpus_fill_unit(c, in, W * H);
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			want[x * H + y] = in[y * W + x];
	CUdeviceptr di = corpus_in(c, in, BYTES), out = corpus_out(c, BYTES);
	corpus_launch(c, "transpose", (struct corpus_shape){ .grid_x = 3, .grid_y = 2, .block_x = 32, .block_y = 8 },
		      (void *[]){ &di, &out, &w, &h });
	corpus_get(c, got, out, BYTES);
	corpus_same_f32(c, "out", got, want, W * H);
}

static void matmul(struct corpus *c)
{
	enum { N = 48, BYTES = N * N * sizeof(float) };
	static float a[N * N], b[N * N], got[N * N], want[N * N];
	int n = N;

	corpus_fill_unit(c, a, N * N);
	corpus_fill_unit(c, b, N * N);
	for (int r = 0; r < N; r++)
		for (int col = 0; col < N; col++) {
			float s = 0;
			for (int k = 0; k < N; k++)
				s = fmaf(a[r * N + k], b[k * N + col], s);
			want[r * N + col] = s;
		}
	CUdeviceptr da = corpus_in(c, a, BYTES), db = corpus_in(c, b, BYTES), dc = corpus_out(c, BYTES);
	corpus_launch(c, "matmul", (struct corpus_shape){ .grid_x = N / 16, .grid_y = N / 16, .block_x = 16, .block_y = 16 },
		      (void *[]){ &da, &db, &dc, &n });
	corpus_get(c, got, dc, BYTES);
	corpus_same_f32(c, "C", got, want, N * N);
}

static void poly_reference(const float *x, const float *coef, float *y, int n)
{
	static const float gtab[4] = { 1, 2, 3, 4 };

	for (int i = 0; i < n; i++) {
		float s = 0, v = x[i ^ 1]; /* the kernel reads its neighbour's polynomial in shared memory */
		for (int k = 0; k < 16; k++)
			s = fmaf(s, v, coef[k]);
		y[i] = s + gtab[i & 3];
	}
}

static void poly(struct corpus *c)
{
	enum { N = 1000, BYTES = N * sizeof(float), THREADS = 128 };
	static float x[N], got[N], want[N];
	float coef[16];
	int n = N, counter = 0, zero = 0;

	corpus_fill_unit(c, x, N);
	corpus_fill_unit(c, coef, 16);
	corpus_fill_f32(c, x, 15);
	poly_reference(x, coef, want, N);
	CUdeviceptr at_coef = corpus_variable(c, "coef", sizeof coef);
	CUdeviceptr at_counter = corpus_variable(c, "counter", sizeof counter);
	CUdeviceptr dx = corpus_in(c, x, BYTES), dy = corpus_out(c, BYTES);
	if (!c->err.status)
		gpul_cu(c->drv, &c->err, cuMemcpyHtoD(at_coef, coef, sizeof coef));
	if (!c->err.status)
		gpul_cu(c->drv, &c->err, cuMemcpyHtoD(at_counter, &zero, sizeof zero));
	corpus_launch(c, "poly", (struct corpus_shape){ .grid_x = 8, .block_x = THREADS, .shared_bytes = THREADS * sizeof(float) },
		      (void *[]){ &dx, &dy, &n });
	corpus_get(c, got, dy, BYTES);
	corpus_same_f32(c, "y", got, want, N);
	corpus_get(c, &counter, at_counter, sizeof counter);
	corpus_same_i32(c, "counter", &counter, &n, 1);
}

const struct corpus_case corpus_float_cases[] = {
	{ "vecadd", "vecadd", vecadd }, { "saxpy", "saxpy", saxpy },
	{ "reduce", "reduce", reduce }, { "transpose", "transpose", transpose },
	{ "matmul", "matmul", matmul }, { "const", "poly", poly },
	{ NULL, NULL, NULL },
};
