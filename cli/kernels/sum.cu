/* sum.cu — the kernels for one step of a sum, whose order of additions depends only on the number of elements (drawn in
 * cli/sum/cli_sum.h).
 *
 * Block b adds up chunk b of the data, 16 rows of 4 KiB, and writes one number of 8 bytes.  Each thread issues its 16 loads of 16
 * bytes, one from every row, before it uses the first one: the loads in flight hide the latency of the memory.  The element type is a
 * parameter, because the code that loads, and that adds up the results of a block, is the same for all types. */
#include "loader/signature/signature.h"

enum { ROWS = 16, THREADS = 256, WARP = 32, WARPS = THREADS / WARP, VECTOR_BYTES = 16,
       ROW_BYTES = THREADS * VECTOR_BYTES, CHUNK_BYTES = ROWS * ROW_BYTES };

typedef long long i64;
typedef unsigned long long u64;

/* ---- loading --------------------------------------------------------------------------------- */

/* Load a vector if it ends within the data (spare >= 0); otherwise return zeros. */
static __device__ __forceinline__ uint4 load_if(const char *vector, i64 spare)
{
	uint4 v;

	asm volatile("{.reg .pred p;mov.u32 %0,0;mov.u32 %1,0;mov.u32 %2,0;mov.u32 %3,0;setp.ge.s64 p,%5,0;"
		     "@p ld.global.cs.v4.u32 {%0,%1,%2,%3},[%4];}"
		     : "=&r"(v.x), "=&r"(v.y), "=&r"(v.z), "=&r"(v.w) : "l"(vector), "l"(spare));
	return v;
}

/* Load a thread's vectors of the last chunk.  left: number of bytes from `data` to the end of the data; bytes after the end become 0. */
static __device__ __noinline__ void load_last(const char *data, i64 left, uint4 *rows)
{
	uint4 loaded[ROWS];

#pragma unroll
	for (int r = 0; r < ROWS; r++)
		loaded[r] = load_if(data + r * ROW_BYTES, left - r * ROW_BYTES - VECTOR_BYTES);
#pragma unroll
	for (int r = 0; r < ROWS; r++)
		rows[r] = loaded[r];
	if (left > 0 && left % ROW_BYTES < VECTOR_BYTES)  /* the data ends within a vector of this thread */
#pragma unroll 1
		for (i64 b = left - left % ROW_BYTES; b < left; b++)
			((char *)&rows[b / ROW_BYTES])[b % ROW_BYTES] = data[b];
}

/* Load a thread's vectors of a chunk. V: a vector type of 16 bytes. */
template <typename V> static __device__ __forceinline__ void load_rows(const char *data, u64 bytes, V *rows)
{
	const u64 at = (u64)blockIdx.x * CHUNK_BYTES + threadIdx.x * VECTOR_BYTES;

	if ((u64)(blockIdx.x + 1) * CHUNK_BYTES <= bytes) {
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			rows[r] = __ldcs((const V *)(data + at + r * ROW_BYTES));
	} else {
		V last[ROWS];  /* in local memory */

		load_last(data + at, (i64)(bytes - at), (uint4 *)last);
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			rows[r] = last[r];
	}
}

/* ---- integers: they wrap around at 64 bits, so every order gives the same sum ---------------- */

static __device__ u64 add_8(unsigned word, u64 sum) { return __dp4a(word, 0x01010101u, (unsigned)sum); }
static __device__ u64 add_16(unsigned word, u64 sum) { return __dp2a_lo(word, 0x0101u, (unsigned)sum); }

static __device__ u64 add_32(unsigned word, u64 sum)
{
	asm("mad.wide.u32 %0, %1, 1, %0;" : "+l"(sum) : "r"(word));
	return sum;
}

/* Add up the unsigned elements of 8, 16 or 32 bits in all words. */
template <u64 ADD(unsigned, u64)> static __device__ u64 add_words(const uint4 *rows)
{
	u64 sum = 0;

#pragma unroll
	for (int r = 0; r < ROWS; r++)
		sum = ADD(rows[r].x, ADD(rows[r].y, ADD(rows[r].z, ADD(rows[r].w, sum))));
	return sum;
}

/* Add signed elements as unsigned ones: inverting the sign bits (flip) makes each element larger by the value of the sign bit,
 * which is subtracted from the sum later. */
static __device__ __forceinline__ u64 add_narrow(uint4 *rows, unsigned type)
{
	const unsigned flip = type == GPUL_I8 ? 0x80808080 : type == GPUL_I16 ? 0x80008000 : type == GPUL_I32 ? 0x80000000 : 0;
	const u64 added = flip & 0x80, added_16 = flip & 0x8000, added_32 = flip & 0x80000000;
	const int words = ROWS * 4;

#pragma unroll
	for (int r = 0; r < ROWS; r++)
		rows[r] = make_uint4(rows[r].x ^ flip, rows[r].y ^ flip, rows[r].z ^ flip, rows[r].w ^ flip);
	if (type <= GPUL_U8)
		return add_words<add_8>(rows) - added * 4 * words;
	if (type <= GPUL_U16)
		return add_words<add_16>(rows) - added_16 * 2 * words;
	return add_words<add_32>(rows) - added_32 * words;
}

static __device__ __forceinline__ u64 add_wide(const ulonglong2 *rows)
{
	u64 sum = 0;

#pragma unroll
	for (int r = 0; r < ROWS; r++)
		sum += rows[r].x + rows[r].y;
	return sum;
}

/* ---- floats: neighbouring rows are added in pairs, then neighbouring columns ------------------ */

struct f64 {
	typedef ulonglong2 vector;
	enum { COLUMNS = 2 };
	static __device__ void widen(ulonglong2 v, double *out)
	{
		out[0] = __longlong_as_double((i64)v.x);
		out[1] = __longlong_as_double((i64)v.y);
	}
};

struct f32 {
	typedef uint4 vector;
	enum { COLUMNS = 4 };
	static __device__ void widen(uint4 v, double *out)
	{
		asm("cvt.f64.f32 %0, %1;" : "=d"(out[0]) : "r"(v.x));
		asm("cvt.f64.f32 %0, %1;" : "=d"(out[1]) : "r"(v.y));
		asm("cvt.f64.f32 %0, %1;" : "=d"(out[2]) : "r"(v.z));
		asm("cvt.f64.f32 %0, %1;" : "=d"(out[3]) : "r"(v.w));
	}
};

struct f16 {
	static __device__ void widen_two(unsigned word, double *out)
	{
		asm("{.reg .b16 l,h;.reg .b32 f,g;mov.b32 {l,h},%2;cvt.f32.f16 f,l;cvt.f32.f16 g,h;"
		    "cvt.f64.f32 %0,f;cvt.f64.f32 %1,g;}"
		    : "=d"(out[0]), "=d"(out[1]) : "r"(word));
	}
};

struct bf16 {
	static __device__ void widen_two(unsigned word, double *out)
	{
		asm("{.reg .b32 l,h;shl.b32 l,%2,16;and.b32 h,%2,-65536;cvt.f64.f32 %0,l;cvt.f64.f32 %1,h;}"
		    : "=d"(out[0]), "=d"(out[1]) : "r"(word));
	}
};

template <typename T> struct halves {
	typedef uint4 vector;
	enum { COLUMNS = 8 };
	static __device__ void widen(uint4 v, double *out)
	{
		T::widen_two(v.x, out);
		T::widen_two(v.y, out + 2);
		T::widen_two(v.z, out + 4);
		T::widen_two(v.w, out + 6);
	}
};

/* Adds up N rows in pairs, separately for each column of the vector. */
template <typename T, int N> struct pairs {
	static __device__ void add(const typename T::vector *rows, double *out)
	{
		double second[T::COLUMNS];

		pairs<T, N / 2>::add(rows, out);
		pairs<T, N / 2>::add(rows + N / 2, second);
#pragma unroll
		for (int c = 0; c < T::COLUMNS; c++)
			out[c] += second[c];
	}
};
template <typename T> struct pairs<T, 1> {
	static __device__ void add(const typename T::vector *rows, double *out) { T::widen(rows[0], out); }
};

template <typename T> static __device__ double add_floats(const typename T::vector *rows)
{
	double c[T::COLUMNS];

	pairs<T, ROWS>::add(rows, c);
#pragma unroll
	for (int width = T::COLUMNS / 2; width; width /= 2)
#pragma unroll
		for (int i = 0; i < width; i++)
			c[i] = c[2 * i] + c[2 * i + 1];
	return c[0];
}

/* ---- the block ------------------------------------------------------------------------------- */

template <typename W> static __device__ W add_lanes(W a, int lanes)
{
	for (int distance = 1; distance < lanes; distance *= 2)
		a += __shfl_xor_sync(~0u, a, distance);
	return a;
}

template <typename W> static __device__ void add_threads(W a, void *out)
{
	__shared__ W of_warp[WARPS];

	a = add_lanes(a, WARP);
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = a;
	__syncthreads();
	if (threadIdx.x < WARP) {
		a = add_lanes(of_warp[threadIdx.x % WARPS], WARPS);
		if (threadIdx.x == 0)
			((W *)out)[blockIdx.x] = a;
	}
}

/* Write the sum of chunk b to out[b]: a double for floats, else a u64 (i64 has the same bits).  type: a gpul_type of at most 32 bits. */
extern "C" __global__ void __launch_bounds__(THREADS) sum_chunks(const char *data, u64 bytes, void *out, unsigned type)
{
	uint4 rows[ROWS];

	load_rows(data, bytes, rows);
	if (type < GPUL_F16)
		add_threads(add_narrow(rows, type), out);
	else
		add_threads(type == GPUL_F16    ? add_floats<halves<f16>>(rows)
			    : type == GPUL_BF16 ? add_floats<halves<bf16>>(rows)
						: add_floats<f32>(rows),
			    out);
}

/* Like sum_chunks(), for types of 64 bits.  The kernel is separate, because an interpreter keeps all registers of a kernel in
 * memory: those of sum_chunks() are too many for the cache. */
extern "C" __global__ void __launch_bounds__(THREADS) sum_chunks_64(const char *data, u64 bytes, void *out, unsigned type)
{
	ulonglong2 rows[ROWS];

	load_rows(data, bytes, rows);
	if (type == GPUL_F64)
		add_threads(add_floats<f64>(rows), out);
	else
		add_threads(add_wide(rows), out);
}
