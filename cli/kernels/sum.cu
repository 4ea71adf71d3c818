/* sum.cu — one step of a sum whose order depends on the number of elements alone; sum.h draws it.
 *
 * Block b adds up chunk b of the data and writes one number.  Its threads stand side by side along the rows; each
 * has a load of 16 bytes from every row on its way before it uses the first: that hides the memory's latency.
 * sum.ptx, which the command carries, is made of this, for drivers and GPUs as old as can be:
 *
 *     nvcc -ptx -arch=sm_75 cli/kernels/sum.cu -o - |
 *             sed 's|^.version .*|.version 6.4|; s|^.target .*|.target sm_70|' > cli/kernels/sum.ptx */

enum { ROWS = 16, THREADS = 256, WARP = 32, WARPS = THREADS / WARP };

typedef long long i64;
typedef unsigned long long u64;

struct f16 {
	unsigned short bits;
	__device__ operator double() const
	{
		float f;

		asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
		return f;
	}
};

struct bf16 {
	unsigned short bits;
	__device__ operator double() const { return __uint_as_float((unsigned)bits << 16); }
};

/* What elements become before they are added.  Integers wrap at 64 bits, so their order does not matter, and one
 * sum a thread is enough, made of sums within a vector; floats need one for each column of the vector. */
template <typename T> struct wide {
	typedef double type, within;
	enum { COLUMNS = 16 / sizeof(T) };
};
#define WIDE_INTEGER(T, to, inside)       \
	template <> struct wide<T> {      \
		typedef to type;          \
		typedef inside within;    \
		enum { COLUMNS = 1 };     \
	};
WIDE_INTEGER(signed char, i64, int)
WIDE_INTEGER(unsigned char, u64, unsigned)
WIDE_INTEGER(short, i64, int)
WIDE_INTEGER(unsigned short, u64, unsigned)
WIDE_INTEGER(int, i64, i64)
WIDE_INTEGER(unsigned, u64, u64)
WIDE_INTEGER(i64, i64, i64)
WIDE_INTEGER(u64, u64, u64)

template <typename T> union vector {
	enum { N = 16 / sizeof(T) };
	uint4 bits;
	T at[N];
};

template <typename T> struct columns { typename wide<T>::type at[wide<T>::COLUMNS]; };

template <typename T> static __device__ columns<T> widen(const vector<T> &v)
{
	columns<T> c;

	if constexpr (wide<T>::COLUMNS == 1) {
		typename wide<T>::within sum = 0;

#pragma unroll
		for (int e = 0; e < vector<T>::N; e++)
			sum += v.at[e];
		c.at[0] = sum;
	} else {
#pragma unroll
		for (int e = 0; e < vector<T>::N; e++)
			c.at[e] = v.at[e];
	}
	return c;
}

/* N rows, in pairs of neighbours. */
template <typename T, int N> struct pairs {
	static __device__ columns<T> add(const vector<T> *rows)
	{
		columns<T> a = pairs<T, N / 2>::add(rows), b = pairs<T, N / 2>::add(rows + N / 2);

#pragma unroll
		for (int e = 0; e < wide<T>::COLUMNS; e++)
			a.at[e] += b.at[e];
		return a;
	}
};
template <typename T> struct pairs<T, 1> {
	static __device__ columns<T> add(const vector<T> *rows) { return widen(rows[0]); }
};

/* A vector of which some elements, or all, lie beyond the end: those are 0.  A function of its own, as there are 16
 * calls in each kernel, of which one block makes use. */
template <typename T> static __device__ __noinline__ vector<T> load_last(const T *data, u64 first, u64 n)
{
	vector<T> v;

	if (first + vector<T>::N <= n) {
		v.bits = *(const uint4 *)(data + first);
		return v;
	}
	v.bits = make_uint4(0, 0, 0, 0);
#pragma unroll
	for (int e = 0; e < vector<T>::N; e++)
		if (first + e < n)
			v.at[e] = data[first + e];
	return v;
}

template <typename T> static __device__ columns<T> add_rows(const T *data, u64 first, u64 n)
{
	const u64 row = THREADS * vector<T>::N;
	vector<T> rows[ROWS];

	if ((u64)(blockIdx.x + 1) * (ROWS * row) <= n) {
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			rows[r].bits = __ldcs((const uint4 *)(data + first + r * row));
	} else {
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			rows[r] = load_last(data, first + r * row, n);
	}
	return pairs<T, ROWS>::add(rows);
}

template <typename W> static __device__ W add_lanes(W a, int lanes)
{
	for (int distance = 1; distance < lanes; distance *= 2)
		a += __shfl_xor_sync(~0u, a, distance);
	return a;
}

template <typename T> static __device__ void sum(const T *data, u64 n, typename wide<T>::type *out)
{
	__shared__ typename wide<T>::type of_warp[WARPS];
	const u64 first = ((u64)blockIdx.x * ROWS * THREADS + threadIdx.x) * vector<T>::N;
	columns<T> c = add_rows(data, first, n);

#pragma unroll
	for (int width = wide<T>::COLUMNS / 2; width; width /= 2)
#pragma unroll
		for (int e = 0; e < width; e++)
			c.at[e] = c.at[2 * e] + c.at[2 * e + 1];
	c.at[0] = add_lanes(c.at[0], WARP);
	if (threadIdx.x % WARP == 0)
		of_warp[threadIdx.x / WARP] = c.at[0];
	__syncthreads();
	if (threadIdx.x < WARP) {
		c.at[0] = add_lanes(of_warp[threadIdx.x % WARPS], WARPS);
		if (threadIdx.x == 0)
			out[blockIdx.x] = c.at[0];
	}
}

#define KERNEL(name, T)                                                                                    \
	extern "C" __global__ void __launch_bounds__(THREADS) name(const T *data, u64 n, wide<T>::type *out) \
	{                                                                                                  \
		sum(data, n, out);                                                                         \
	}
KERNEL(sum_i8, signed char)
KERNEL(sum_u8, unsigned char)
KERNEL(sum_i16, short)
KERNEL(sum_u16, unsigned short)
KERNEL(sum_i32, int)
KERNEL(sum_u32, unsigned)
KERNEL(sum_i64, i64)
KERNEL(sum_u64, u64)
KERNEL(sum_f16, f16)
KERNEL(sum_bf16, bf16)
KERNEL(sum_f32, float)
KERNEL(sum_f64, double)
