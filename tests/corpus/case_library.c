/* case_library.c — library functions in kernels: mathematical functions and CUB. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/corpus/corpus.h"

enum { N = 512, THREADS = 128, BLOCKS = N / THREADS };

/* ---- mathematical functions: bounds as in the CUDA C++ Programming Guide, Mathematical Functions ---- */

/* A bound is in units in the last place of the result, in addition to its rounding.  near: a fast
 * function, whose guarantee is an absolute error of 2^-20 for arguments in [-8, 8]. */
struct function {
	const char *name;
	double bound;
	bool near;
	long double (*of)(long double x, long double y);
};

/* clang-format off */
#define F(f) static long double ref_##f(long double x, long double y) { (void)y; return f##l(x); }
/* clang-format on */
/* clang-format off */
F(sin)
F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(exp) F(exp2) F(expm1) F(log)
F(log2) F(log10) F(log1p) F(sqrt) F(cbrt) F(erf) F(erfc) F(tgamma)
/* clang-format on */
#undef F
#define F(f) \
	static long double ref_##f(long double x, long double y) \
	{ \
		return f##l(x, y); \
	}
	F(pow) F(fmod) F(atan2) F(hypot)
#undef F
		static long double ref_rsqrt(long double x, long double y)
{
	(void)y;
	return 1 / sqrtl(x);
}
static long double ref_divide(long double x, long double y)
{
	return x / y;
}

/* The functions, in the same order as in mathf.cu and mathd.cu. */
static const struct function floats[] = {
	{ "sinf", 2, false, ref_sin },       { "cosf", 2, false, ref_cos },         { "tanf", 4, false, ref_tan },
	{ "asinf", 2, false, ref_asin },     { "acosf", 2, false, ref_acos },       { "atanf", 2, false, ref_atan },
	{ "sinhf", 3, false, ref_sinh },     { "coshf", 2, false, ref_cosh },       { "tanhf", 2, false, ref_tanh },
	{ "expf", 2, false, ref_exp },       { "exp2f", 2, false, ref_exp2 },       { "expm1f", 1, false, ref_expm1 },
	{ "logf", 1, false, ref_log },       { "log2f", 1, false, ref_log2 },       { "log10f", 2, false, ref_log10 },
	{ "log1pf", 1, false, ref_log1p },   { "sqrtf", 0, false, ref_sqrt },       { "rsqrtf", 2, false, ref_rsqrt },
	{ "cbrtf", 1, false, ref_cbrt },     { "erff", 2, false, ref_erf },         { "erfcf", 4, false, ref_erfc },
	{ "tgammaf", 5, false, ref_tgamma }, { "powf", 4, false, ref_pow },         { "fmodf", 0, false, ref_fmod },
	{ "atan2f", 3, false, ref_atan2 },   { "hypotf", 3, false, ref_hypot },     { "__sinf", 2, true, ref_sin },
	{ "__cosf", 2, true, ref_cos },      { "__expf", 12, true, ref_exp },       { "__logf", 3, true, ref_log },
	{ "__powf", 400, true, ref_pow },    { "__fdividef", 2, true, ref_divide },
};
static const struct function doubles[] = {
	{ "sin", 2, false, ref_sin },     { "cos", 2, false, ref_cos },        { "tan", 2, false, ref_tan },
	{ "exp", 1, false, ref_exp },     { "exp2", 1, false, ref_exp2 },      { "log", 1, false, ref_log },
	{ "log2", 1, false, ref_log2 },   { "log10", 1, false, ref_log10 },    { "sqrt", 0, false, ref_sqrt },
	{ "rsqrt", 1, false, ref_rsqrt }, { "cbrt", 1, false, ref_cbrt },      { "tanh", 2, false, ref_tanh },
	{ "erf", 2, false, ref_erf },     { "tgamma", 10, false, ref_tgamma }, { "pow", 2, false, ref_pow },
	{ "fmod", 0, false, ref_fmod },   { "atan2", 2, false, ref_atan2 },    { "hypot", 2, false, ref_hypot },
};
enum { N_FLOATS = sizeof floats / sizeof *floats, N_DOUBLES = sizeof doubles / sizeof *doubles };

/* Whether got differs from the exact value by at most the bound.  digits, least, most: the type's number of significant
 * bits, least exponent and largest number. */
static bool is_near(double got, long double want, const struct function *f, int digits, int least, long double most)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (isinf(want) || isinf(got))
		return got == (double)want || (fabsl(want) > most && fabs(got) >= (double)most) ||
		       (isinf(got) && fabsl(want) >= most * (1 - ldexpl(f->bound, -digits)));
	int e = want == 0 ? least : ilogbl(want);
	long double unit = ldexpl(1, (e < least ? least : e) - digits + 1);
	return fabsl(got - want) <= (f->bound + 0.5L) * unit + (f->near ? 0x1p-20L : 0);
}

static void check_function(struct corpus *c, const struct function *f, const double *x, const double *y, const double *got, bool wide)
{
	for (int i = 0; i < N && c->err.status == GPUL_OK; i++) {
		long double want = f->of(x[i], y[i]);

		if (f->near && !(fabs(x[i]) <= 8 && fabs(y[i]) <= 8 && fabs(y[i]) >= 0x1p-20 && isnormal(x[i])))
			continue;
		if (f->near && f->of == ref_pow && x[i] < 0)
			continue;
		if (!is_near(got[i], want, f, wide ? 53 : 24, wide ? -1022 : -126, wide ? 0x1.fffffffffffffp1023L : 0x1.fffffep127L))
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "%s(%a, %a) is %a, expected %La within %g units", f->name, x[i], y[i], got[i],
				  want, f->bound);
	}
}

/* Small, medium and large arguments of both signs, and the extreme values. */
static void fill_arguments(struct corpus *c, double *out)
{
	static const double edge[] = { 0, -0.0, 1, -1, 0.5, 2, 100, INFINITY, -INFINITY, NAN, 3, 10 };
	static const double scale[] = { 1, 8, 80, 1000 };

	for (int i = 0; i < N; i++) {
		double unit = (double)(int64_t)corpus_random(c) * 0x1p-63;

		out[i] = i < 144 ? edge[i % 12] : unit * scale[i % 4];
	}
}

static void run_mathf(struct corpus *c)
{
	static double x[N], y[N], got[N];
	static float a[N], b[N], out[N_FLOATS * N];
	int n = N;

	fill_arguments(c, x);
	fill_arguments(c, y);
	for (int i = 0; i < N; i++) {
		a[i] = (float)x[i];
		b[i] = (float)(i < 144 ? x[i / 12] : y[i]);
		x[i] = (double)a[i];
		y[i] = (double)b[i];
	}
	CUdeviceptr da = corpus_in(c, a, sizeof a), db = corpus_in(c, b, sizeof b), to = corpus_out(c, sizeof out);
	corpus_launch(c, "mathf", (struct corpus_shape){ .grid_x = BLOCKS, .block_x = THREADS }, (void *[]){ &da, &db, &to, &n });
	corpus_get(c, out, to, sizeof out);
	for (int k = 0; k < N_FLOATS; k++) {
		for (int i = 0; i < N; i++)
			got[i] = (double)out[k * N + i];
		check_function(c, &floats[k], x, y, got, false);
	}
}

static void run_mathd(struct corpus *c)
{
	static double x[N], y[N], out[N_DOUBLES * N];
	int n = N;

	fill_arguments(c, x);
	fill_arguments(c, y);
	for (int i = 0; i < 144; i++)
		y[i] = x[i / 12];
	CUdeviceptr dx = corpus_in(c, x, sizeof x), dy = corpus_in(c, y, sizeof y), to = corpus_out(c, sizeof out);
	corpus_launch(c, "mathd", (struct corpus_shape){ .grid_x = BLOCKS, .block_x = THREADS }, (void *[]){ &dx, &dy, &to, &n });
	corpus_get(c, out, to, sizeof out);
	/* On other machines, long double may be the same as double, which is not exact enough as a reference. */
	for (int k = 0; k < N_DOUBLES && LDBL_MANT_DIG > DBL_MANT_DIG; k++)
		check_function(c, &doubles[k], x, y, out + k * N, true);
}

/* ---- CUB ------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

static void run_cubsum(struct corpus *c)
{
	static int32_t in[N], out[N + 1], want[N + 1];
	uint32_t sum = 0;

	corpus_fill_i32(c, in, N);
	for (int i = 0; i < N; i++) {
		want[i] = (int32_t)sum;
		sum += (uint32_t)in[i];
	}
	want[N] = (int32_t)sum;
	CUdeviceptr from = corpus_in(c, in, sizeof in), to = corpus_out(c, sizeof out);
	corpus_launch(c, "cubsum", (struct corpus_shape){ .grid_x = 1, .block_x = THREADS }, (void *[]){ &from, &to });
	corpus_get(c, out, to, sizeof out);
	corpus_same_i32(c, "out", out, want, N + 1);
}

static void run_cubsort(struct corpus *c)
{
	static int32_t in[N], out[N];

	corpus_fill_i32(c, in, N);
	CUdeviceptr from = corpus_in(c, in, sizeof in), to = corpus_out(c, sizeof out);
	corpus_launch(c, "cubsort", (struct corpus_shape){ .grid_x = 1, .block_x = THREADS }, (void *[]){ &from, &to });
	corpus_get(c, out, to, sizeof out);
	qsort(in, N, sizeof *in, by_value);
	corpus_same_i32(c, "out", out, in, N);
}

const struct corpus_case corpus_library_cases[] = {
	{ "mathf", "mathf", run_mathf },
	{ "mathd", "mathd", run_mathd },
	{ "cub", "cubsum", run_cubsum },
	{ "cub", "cubsort", run_cubsort },
	{ 0 },
};
