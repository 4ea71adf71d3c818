/* corpus.c — buffers, launches and comparisons for the cases of the corpus. */
#include "tests/corpus/corpus.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { GUARD_BYTES = 64 }; /* size of the guard after every buffer; a write to it is detected */

#define N_OF(a) (sizeof(a) / sizeof *(a))

/* ---- values --------------------------------------------------------------------------------
 */

/* splitmix64 (Steele, Lea, Flood, 2014): a good sequence for every seed, in five
 * lines. */
uint64_t corpus_random(struct corpus *c)
{
	uint64_t z = c->seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

void corpus_fill_i32(struct corpus *c, int32_t *out, size_t n)
{
	static const int32_t edge[] = { 0,   1,     -1,    2,      -2,    31,        32,        127,          128,
					255, 32767, 32768, -32768, 65535, INT32_MAX, INT32_MIN, INT32_MIN + 1 };

	for (size_t i = 0; i < n; i++)
		out[i] = i < N_OF(edge) ? edge[i] : (int32_t)corpus_random(c);
}

void corpus_fill_i64(struct corpus *c, int64_t *out, size_t n)
{
	static const int64_t edge[] = { 0,          1,         -1,        2,         INT32_MAX,     INT32_MIN,
					UINT32_MAX, 1ll << 32, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1ll << 62 };

	for (size_t i = 0; i < n; i++)
		out[i] = i < N_OF(edge) ? edge[i] : (int64_t)corpus_random(c);
}

void corpus_fill_f32(struct corpus *c, float *out, size_t n)
{
	static const uint32_t edge[] = {
		0,          0x80000000, 0x3f800000, 0xbf800000, /* +-0, +-1 */
		1,          0x80000001, 0x007fffff, 0x00800000, /* subnormal numbers and the least normal number */
		0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, /* largest numbers and infinities */
		0x7fc00000, 0x7f800001, 0xffffffff,             /* NaN: quiet, signalling, all ones */
	};

	for (size_t i = 0; i < n; i++) {
		uint32_t bits = i < N_OF(edge) ? edge[i] : (uint32_t)corpus_random(c);
		memcpy(&out[i], &bits, sizeof bits);
	}
}

void corpus_fill_f64(struct corpus *c, double *out, size_t n)
{
	static const uint64_t edge[] = {
		0,
		0x8000000000000000,
		0x3ff0000000000000,
		0xbff0000000000000,
		1,
		0x800fffffffffffff,
		0x0010000000000000,
		0x3ca0000000000000,
		0x7fefffffffffffff,
		0xffefffffffffffff,
		0x7ff0000000000000,
		0xfff0000000000000,
		0x7ff8000000000000,
		0x7ff0000000000001,
	};

	for (size_t i = 0; i < n; i++) {
		uint64_t bits = i < N_OF(edge) ? edge[i] : corpus_random(c);
		memcpy(&out[i], &bits, sizeof bits);
	}
}

void corpus_fill_unit(struct corpus *c, float *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (float)(int32_t)corpus_random(c) * 0x1p-31f;
}

/* ---- device memory -------------------------------------------------------------------------
 */

static bool failed(const struct corpus *c)
{
	return c->err.status != GPUL_OK;
}

CUdeviceptr corpus_out(struct corpus *c, size_t bytes)
{
	CUdeviceptr at = 0;

	if (failed(c))
		return 0;
	if (c->n_buffers == CORPUS_MAX_BUFFERS) {
		gpul_fail(&c->err, GPUL_EINVAL, 0, "a case has more than %d buffers", CORPUS_MAX_BUFFERS);
		return 0;
	}
	if (gpul_cu(c->drv, &c->err, cuMemAlloc(&at, bytes + GUARD_BYTES)))
		return 0;
	c->buffers[c->n_buffers++] = (struct corpus_buffer){ at, bytes };
	if (gpul_cu(c->drv, &c->err, cuMemsetD8Async(at, CORPUS_POISON, bytes + GUARD_BYTES, NULL)))
		return 0;
	gpul_cu(c->drv, &c->err, cuCtxSynchronize());
	return at;
}

CUdeviceptr corpus_in(struct corpus *c, const void *data, size_t bytes)
{
	CUdeviceptr at = corpus_out(c, bytes);

	if (!failed(c))
		gpul_cu(c->drv, &c->err, cuMemcpyHtoD(at, data, bytes));
	return at;
}

void corpus_get(struct corpus *c, void *data, CUdeviceptr from, size_t bytes)
{
	if (!failed(c))
		gpul_cu(c->drv, &c->err, cuMemcpyDtoH(data, from, bytes));
}

CUdeviceptr corpus_variable(struct corpus *c, const char *name, size_t bytes)
{
	CUdeviceptr at = 0;
	size_t have = 0;

	if (failed(c) || gpul_cu(c->drv, &c->err, cuModuleGetGlobal(&at, &have, c->module, name)))
		return 0;
	if (have != bytes)
		gpul_fail(&c->err, GPUL_EFORMAT, 0, "variable %s has %zu bytes, expected %zu", name, have, bytes);
	return at;
}

static void check_guard(struct corpus *c, const struct corpus_buffer *b)
{
	uint8_t guard[GUARD_BYTES];

	corpus_get(c, guard, b->at + b->bytes, sizeof guard);
	for (size_t i = 0; i < sizeof guard && !failed(c); i++)
		if (guard[i] != CORPUS_POISON)
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "the kernel wrote %zu bytes past the end of a buffer of %zu bytes", i + 1,
				  b->bytes);
}

void corpus_release(struct corpus *c)
{
	for (; c->n_buffers; c->n_buffers--) {
		struct corpus_buffer *b = &c->buffers[c->n_buffers - 1];
		check_guard(c, b);
		c->drv->cuMemFree(b->at);
	}
}

/* ---- launch --------------------------------------------------------------------------------
 */

void corpus_start(struct corpus *c, const char *kernel, struct corpus_shape shape, void **args)
{
	CUfunction f;

	if (failed(c) || gpul_cu(c->drv, &c->err, cuModuleGetFunction(&f, c->module, kernel)))
		return;
	unsigned grid_y = shape.grid_y ? shape.grid_y : 1, grid_z = shape.grid_z ? shape.grid_z : 1;
	unsigned block_y = shape.block_y ? shape.block_y : 1, block_z = shape.block_z ? shape.block_z : 1;
	if (shape.cooperative)
		gpul_cu(c->drv, &c->err,
			cuLaunchCooperativeKernel(f, shape.grid_x, grid_y, grid_z, shape.block_x, block_y, block_z, shape.shared_bytes,
						  NULL, args));
	else
		gpul_cu(c->drv, &c->err,
			cuLaunchKernel(f, shape.grid_x, grid_y, grid_z, shape.block_x, block_y, block_z, shape.shared_bytes, NULL, args,
				       NULL));
}

void corpus_wait(struct corpus *c)
{
	if (!failed(c))
		gpul_cu(c->drv, &c->err, cuCtxSynchronize());
}

void corpus_launch(struct corpus *c, const char *kernel, struct corpus_shape shape, void **args)
{
	corpus_start(c, kernel, shape, args);
	corpus_wait(c);
}

/* ---- comparison ----------------------------------------------------------------------------
 */

void corpus_same_u8(struct corpus *c, const char *what, const uint8_t *got, const uint8_t *want, size_t n)
{
	for (size_t i = 0; i < n && !failed(c); i++)
		if (got[i] != want[i])
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "%s[%zu] is %u, expected %u", what, i, got[i], want[i]);
}

void corpus_same_i32(struct corpus *c, const char *what, const int32_t *got, const int32_t *want, size_t n)
{
	for (size_t i = 0; i < n && !failed(c); i++)
		if (got[i] != want[i])
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "%s[%zu] is %" PRId32 ", expected %" PRId32, what, i, got[i], want[i]);
}

void corpus_same_i64(struct corpus *c, const char *what, const int64_t *got, const int64_t *want, size_t n)
{
	for (size_t i = 0; i < n && !failed(c); i++)
		if (got[i] != want[i])
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "%s[%zu] is %" PRId64 ", expected %" PRId64, what, i, got[i], want[i]);
}

static uint32_t f32_bits(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof bits);
	return isnan(v) ? 0x7fffffff : bits;
}

void corpus_same_f32(struct corpus *c, const char *what, const float *got, const float *want, size_t n)
{
	for (size_t i = 0; i < n && !failed(c); i++) {
		uint32_t bits;
		memcpy(&bits, &got[i], sizeof bits);
		if (bits != f32_bits(want[i]))
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "%s[%zu] is %a (0x%08" PRIx32 "), expected %a (0x%08" PRIx32 ")", what, i,
				  (double)got[i], bits, (double)want[i], f32_bits(want[i]));
	}
}

void corpus_same_f64(struct corpus *c, const char *what, const double *got, const double *want, size_t n)
{
	for (size_t i = 0; i < n && !failed(c); i++)
		if (!(isnan(got[i]) && isnan(want[i])) && memcmp(&got[i], &want[i], sizeof got[i]) != 0)
			gpul_fail(&c->err, GPUL_EFORMAT, 0, "%s[%zu] is %a, expected %a", what, i, got[i], want[i]);
}
