/* case_integer.c — kernels with integers.  The references compute in unsigned types, which wrap as PTX
 * does. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/corpus/corpus.h"

typedef uint32_t u32;
typedef uint64_t u64;
__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 signed_wide;

static void hist(struct corpus *c)
{
	enum { N = 100003 };
	static uint8_t d[N];
	int32_t got[256], want[256] = { 0 };
	size_t n = N;

	for (size_t i = 0; i < N; i++) { /* half of the input is one value: many atomics on one address */
		uint64_t r = corpus_random(c);
		d[i] = (r & 256) ? 255 : (uint8_t)r;
		want[d[i]]++;
	}
	memset(got, 0, sizeof got);
	CUdeviceptr dd = corpus_in(c, d, N), dh = corpus_in(c, got, sizeof got);
	corpus_launch(c, "hist", (struct corpus_shape){ .grid_x = 9, .block_x = 192 }, (void *[]){ &dd, &dh, &n });
	corpus_get(c, got, dh, sizeof got);
	corpus_same_i32(c, "h", got, want, 256);
}

static void reduce_i64(struct corpus *c)
{
	enum { N = 9999 };
	static int64_t x[N];
	int64_t got = 0;
	u64 want = 0;
	int n = N;

	corpus_fill_i64(c, x, N);
	for (int i = 0; i < N; i++)
		want += (u64)x[i];
	CUdeviceptr dx = corpus_in(c, x, sizeof x), out = corpus_in(c, &got, sizeof got);
	corpus_launch(c, "reduce_i64", (struct corpus_shape){ .grid_x = 5, .block_x = 256 }, (void *[]){ &dx, &out, &n });
	corpus_get(c, &got, out, sizeof got);
	corpus_same_i64(c, "sum", &got, &(int64_t){ (int64_t)want }, 1);
}

static void reduce_int(struct corpus *c)
{
	enum { N = 1000 };
	static int32_t x[N];
	int32_t got = 0;
	u32 want = 0;
	int n = N;

	corpus_fill_i32(c, x, N);
	for (int i = 0; i < N; i++)
		want += (u32)x[i];
	CUdeviceptr dx = corpus_in(c, x, sizeof x), out = corpus_in(c, &got, sizeof got);
	corpus_launch(c, "reduce_int", (struct corpus_shape){ .grid_x = 4, .block_x = 256 }, (void *[]){ &dx, &out, &n });
	corpus_get(c, &got, out, sizeof got);
	corpus_same_i32(c, "sum", &got, &(int32_t){ (int32_t)want }, 1);
}

static void bigparam(struct corpus *c)
{
	struct {
		int32_t a[64];
	} big;
	int32_t got[96], want[96];

	corpus_fill_i32(c, big.a, 64);
	for (int i = 0; i < 96; i++)
		want[i] = big.a[i & 63];
	CUdeviceptr out = corpus_out(c, sizeof got);
	corpus_launch(c, "bigparam", (struct corpus_shape){ .grid_x = 1, .block_x = 96 }, (void *[]){ &big, &out });
	corpus_get(c, got, out, sizeof got);
	corpus_same_i32(c, "o", got, want, 96);
}

/* ---- intops: one function for each intrinsic of CUDA C++ ------------------------------------
 */

static u32 mulhi_s32(int32_t a, int32_t b)
{
	return (u32)(((int64_t)a * b) >> 32);
}
static u32 mulhi_u32(u32 a, u32 b)
{
	return (u32)(((u64)a * b) >> 32);
}
static int32_t low24(int32_t v)
{
	return (int32_t)((u32)v << 8) >> 8;
}
static u32 mul24(int32_t a, int32_t b)
{
	return (u32)((int64_t)low24(a) * low24(b));
}
static u32 funnel_left(u32 low, u32 high, unsigned by)
{
	return high << by | low >> (32 - by);
}
static u32 sad_s32(int32_t a, int32_t b, u32 c)
{
	return (a > b ? (u32)a - (u32)b : (u32)b - (u32)a) + c;
}
static u32 sad_u32(u32 a, u32 b, u32 c)
{
	return (a > b ? a - b : b - a) + c;
}
static u32 absolute(int32_t a)
{
	return a < 0 ? 0 - (u32)a : (u32)a;
}

static u32 dot4_s8(int32_t a, int32_t b, u32 c)
{
	for (int i = 0; i < 32; i += 8)
		c += (u32)((int8_t)((u32)a >> i) * (int8_t)((u32)b >> i));
	return c;
}

static u32 add4_u8(u32 a, u32 b)
{
	u32 r = 0;

	for (int i = 0; i < 32; i += 8)
		r |= (((a >> i) + (b >> i)) & 0xff) << i;
	return r;
}

static int32_t intops_32(int32_t x, int32_t y)
{
	u32 ux = (u32)x, uy = (u32)y, r;

	r = ux * uy + (u32)(x / y) + (u32)(x % y) + ux / uy + ux % uy;
	r += (ux << (uy & 31)) + (u32)(x >> (uy & 31)) + (ux >> (uy & 31));
	r += (u32)(x < y ? x : y) + (ux > uy ? ux : uy) + absolute(x) + ~ux;
	r += mulhi_s32(x, y) + mulhi_u32(ux, uy) + mul24(x, y);
	r += funnel_left(ux, uy, 5) + sad_s32(x, y, ux) + sad_u32(ux, uy, 3) + dot4_s8(x, y, 3);
	r += x > y ? ux : 0 - uy;
	r += (u32)(int16_t)ux + (u32)(int8_t)uy + add4_u8(ux, uy);
	return (int32_t)r;
}

static u64 reverse64(u64 v)
{
	u64 r = 0;

	for (int i = 0; i < 64; i++)
		r |= (v >> i & 1) << (63 - i);
	return r;
}

static int64_t intops_64(int64_t p, int32_t x, int32_t y)
{
	u64 up = (u64)p, r;

	r = (u64)((int64_t)(up * (up + 1)) / (x | 1)) + (u64)(p % (y | 1));
	r += (u64)(((signed_wide)p * p) >> 64);
	r += (u64)__builtin_popcountll(up) + (u64)(up ? __builtin_clzll(up) : 64) + reverse64(up);
	r += (up >> ((u32)x & 63)) + (up << ((u32)y & 63));
	return (int64_t)r;
}

/* PTX does not define division by zero and INT_MIN / -1: change these operands. */
static void make_defined(int32_t *x, int32_t *y, int64_t *p)
{
	if (*y == 0)
		*y = 7;
	if (*x == INT32_MIN && *y == -1)
		*y = -2;
	if (*p == INT64_MIN && (*y | 1) == -1)
		*p += 2;
	if ((int64_t)((u64)*p * ((u64)*p + 1)) == INT64_MIN && (*x | 1) == -1)
		*x += 4;
}

static void intops(struct corpus *c)
{
	enum { N = 1024, EDGES = 17 };
	static int32_t a[N], b[N], got[N], want[N];
	static int64_t la[N], lgot[N], lwant[N];

	corpus_fill_i32(c, a, N);
	corpus_fill_i32(c, b, N);
	corpus_fill_i64(c, la, N);
	for (int i = 0; i < EDGES * EDGES; i++) { /* every pair of extreme values */
		a[i] = a[i / EDGES];
		b[i] = b[i % EDGES];
	}
	for (int i = 0; i < N; i++) {
		make_defined(&a[i], &b[i], &la[i]);
		want[i] = intops_32(a[i], b[i]);
		lwant[i] = intops_64(la[i], a[i], b[i]);
	}
	CUdeviceptr da = corpus_in(c, a, sizeof a), db = corpus_in(c, b, sizeof b);
	CUdeviceptr dl = corpus_in(c, la, sizeof la);
	CUdeviceptr o = corpus_out(c, sizeof got), lo = corpus_out(c, sizeof lgot);
	corpus_launch(c, "intops", (struct corpus_shape){ .grid_x = 1, .block_x = N }, (void *[]){ &da, &db, &o, &dl, &lo });
	corpus_get(c, got, o, sizeof got);
	corpus_get(c, lgot, lo, sizeof lgot);
	corpus_same_i32(c, "o", got, want, N);
	corpus_same_i64(c, "lo", lgot, lwant, N);
}

/* ---- vectors, bit fields, tables, local memory
 * ----------------------------------------------- */

static void vecmem(struct corpus *c)
{
	enum { N = 100 };
	static int32_t a[N][4], b[N][4], want_b[N][4];
	static int16_t s[N][4];
	int32_t random[N * 2];
	static uint8_t got_c[N][4], want_c[N][4];
	static double got_d[N][2], want_d[N][2];

	corpus_fill_i32(c, a[0], N * 4);
	corpus_fill_i32(c, random, N * 2);
	memcpy(s, random, sizeof s);
	memcpy(want_b, a, sizeof a);
	for (int i = 0; i < N; i++) {
		want_b[i][0] = (int32_t)((u32)a[i][0] + (u32)a[i][3]);
		for (int k = 0; k < 4; k++)
			want_c[i][k] = (uint8_t)s[i][k];
		for (int k = 0; k < 2; k++)
			want_d[i][k] = s[i][k];
	}
	CUdeviceptr da = corpus_in(c, a, sizeof a), db = corpus_out(c, sizeof b), ds = corpus_in(c, s, sizeof s);
	CUdeviceptr dc = corpus_out(c, sizeof got_c), dd = corpus_out(c, sizeof got_d);
	corpus_launch(c, "vecmem", (struct corpus_shape){ .grid_x = 1, .block_x = N }, (void *[]){ &da, &db, &ds, &dc, &dd });
	corpus_get(c, b, db, sizeof b);
	corpus_get(c, got_c, dc, sizeof got_c);
	corpus_get(c, got_d, dd, sizeof got_d);
	corpus_same_i32(c, "b", b[0], want_b[0], N * 4);
	corpus_same_u8(c, "c", got_c[0], want_c[0], N * 4);
	corpus_same_f64(c, "d", got_d[0], want_d[0], N * 2);
}

static u32 bf_reference(u32 v)
{
	u32 r = v >> 4 & 0xff;
	u32 s = (r & ~(31u << 3)) | (v & 31) << 3;
	u32 t = v ^ r ^ s;
	u32 f = v ? 31 - (u32)__builtin_clz(v) : UINT32_MAX;

	return v + s + s + t + f;
}

static void bf(struct corpus *c)
{
	enum { N = 512 };
	static int32_t a[N], got[N], want[N];

	corpus_fill_i32(c, a, N);
	for (int i = 0; i < N; i++)
		want[i] = (int32_t)bf_reference((u32)a[i]);
	CUdeviceptr da = corpus_in(c, a, sizeof a);
	corpus_launch(c, "bf", (struct corpus_shape){ .grid_x = 1, .block_x = N }, (void *[]){ &da });
	corpus_get(c, got, da, sizeof got);
	corpus_same_i32(c, "a", got, want, N);
}

static int32_t sw_reference(const int32_t *a, const int32_t *b, int i)
{
	switch (a[i]) {
	case 0:
		return 5;
	case 1:
		return a[i + 1];
	case 2:
		return 17 * i;
	case 3:
		return i ^ 9;
	case 4:
		return i - 9;
	case 5:
		return i | 9;
	case 6:
		return i / 9;
	case 7:
		return (int32_t)((u32)b[i] * 4);
	default:
		return 0;
	}
}

static void sw(struct corpus *c)
{
	enum { N = 256 };
	static int32_t a[N + 1], b[N], got[N], want[N];

	for (int i = 0; i <= N; i++) /* -1 to 8: also the values on both sides of the table */
		a[i] = (int32_t)(corpus_random(c) % 10) - 1;
	a[5] = INT32_MIN;
	a[6] = INT32_MAX;
	corpus_fill_i32(c, b, N);
	for (int i = 0; i < N; i++)
		want[i] = sw_reference(a, b, i);
	CUdeviceptr da = corpus_in(c, a, sizeof a), db = corpus_in(c, b, sizeof b);
	corpus_launch(c, "sw", (struct corpus_shape){ .grid_x = 1, .block_x = N }, (void *[]){ &da, &db });
	corpus_get(c, got, db, sizeof got);
	corpus_same_i32(c, "b", got, want, N);
}

static void local(struct corpus *c)
{
	enum { N = 100 };
	int32_t a[32], got[N], want[N], k = -3;

	corpus_fill_i32(c, a, 32);
	for (int i = 0; i < N; i++) {
		u32 j = ((u32)k + (u32)i) & 31;
		want[i] = (int32_t)((u32)a[j] * j);
	}
	CUdeviceptr da = corpus_in(c, a, sizeof a), db = corpus_out(c, sizeof got);
	corpus_launch(c, "local", (struct corpus_shape){ .grid_x = 1, .block_x = N }, (void *[]){ &da, &db, &k });
	corpus_get(c, got, db, sizeof got);
	corpus_same_i32(c, "b", got, want, N);
}

static void u128(struct corpus *c)
{
	static const u64 edge[][3] = { { 0, 0, 0 },
				       { UINT64_MAX, UINT64_MAX, UINT64_MAX },
				       { 1ull << 63, 2, UINT64_MAX },
				       { 0x123456789abcdef0, 0xfedcba9876543210, 1 } };

	for (int i = 0; i < 4; i++) {
		wide x = (wide)edge[i][0] * edge[i][1] + edge[i][2];
		int64_t want[2] = { (int64_t)(u64)x, (int64_t)(u64)(x >> 64) }, got[2];
		CUdeviceptr da = corpus_in(c, edge[i], sizeof edge[i]), db = corpus_out(c, sizeof got);
		corpus_launch(c, "u128", (struct corpus_shape){ .grid_x = 1, .block_x = 1 }, (void *[]){ &da, &db });
		corpus_get(c, got, db, sizeof got);
		corpus_same_i64(c, "b", got, want, 2);
	}
}

const struct corpus_case corpus_integer_cases[] = {
	{ "hist", "hist", hist },
	{ "reduce", "reduce_i64", reduce_i64 },
	{ "reduce", "reduce_int", reduce_int },
	{ "const", "bigparam", bigparam },
	{ "intops", "intops", intops },
	{ "intops", "vecmem", vecmem },
	{ "intops", "bf", bf },
	{ "intops", "sw", sw },
	{ "intops", "local", local },
	{ "intops", "u128", u128 },
	{ NULL, NULL, NULL },
};
