/* Integer arithmetic, vector loads and stores, bit fields, switch tables, local memory, 128 bits. */
#include <stdint.h>

extern "C" __global__ void intops(const int *a, const int *b, int *o, const long long *la,
				  long long *lo)
{
	int i = threadIdx.x;
	int x = a[i], y = b[i];
	unsigned ux = x, uy = y;
	long long p = la[i];

	o[i] = x * y + x / y + x % y + (int)(ux / uy) + (int)(ux % uy)
	     + (x << (y & 31)) + (x >> (y & 31)) + (ux >> (y & 31))
	     + min(x, y) + (int)max(ux, uy) + abs(x) + (~x)
	     + __mulhi(x, y) + (int)__umulhi(ux, uy) + __mul24(x, y)
	     + __funnelshift_l(x, y, 5) + __sad(x, y, ux) + __usad(ux, uy, 3) + __dp4a(x, y, 3)
	     + (x > y ? x : -y) + (short)x + (signed char)y + __vadd4(x, y);
	lo[i] = p * (p + 1) / (x | 1) + p % (y | 1) + __mul64hi(p, p)
	      + __popcll(p) + __clzll(p) + __brevll(p)
	      + ((unsigned long long)p >> (x & 63)) + (p << (y & 63));
}

struct __align__(16) V4 {
	int x, y, z, w;
};

extern "C" __global__ void vecmem(const V4 *a, V4 *b, const short4 *s, uchar4 *c, double2 *d)
{
	int i = threadIdx.x;
	V4 v = a[i];

	v.x += v.w;
	b[i] = v;
	short4 q = s[i];
	c[i] = make_uchar4(q.x, q.y, q.z, q.w);
	d[i] = make_double2(q.x, q.y);
}

extern "C" __global__ void bf(unsigned *a)
{
	int i = threadIdx.x;
	unsigned v = a[i], r, s, t;
	int f;

	asm("bfe.u32 %0, %1, 4, 8;" : "=r"(r) : "r"(v));
	asm("bfi.b32 %0, %1, %2, 3, 5;" : "=r"(s) : "r"(v), "r"(r));
	asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(t) : "r"(v), "r"(r), "r"(s));
	asm("bfind.u32 %0, %1;" : "=r"(f) : "r"(v));
	asm("vadd.u32.u32.u32 %0, %1, %2;" : "=r"(r) : "r"(v), "r"(s));
	a[i] = r + s + t + f;
}

/* The array a has one element more than there are threads. */
extern "C" __global__ void sw(const int *a, int *b)
{
	int i = threadIdx.x;
	int r;

	switch (a[i]) {
	case 0: r = 5; break;
	case 1: r = a[i + 1]; break;
	case 2: r = 17 * i; break;
	case 3: r = i ^ 9; break;
	case 4: r = i - 9; break;
	case 5: r = i | 9; break;
	case 6: r = i / 9; break;
	case 7: r = b[i] * 4; break;
	default: r = 0;
	}
	b[i] = r;
}

extern "C" __global__ void local(const int *a, int *b, int k)
{
	int t[32];

	for (int j = 0; j < 32; j++)
		t[j] = a[j] * j;
	b[threadIdx.x] = t[(k + threadIdx.x) & 31];
}

extern "C" __global__ void u128(const unsigned long long *a, unsigned long long *b)
{
	unsigned __int128 x = a[0];

	x = x * a[1] + a[2];
	b[0] = (unsigned long long)x;
	b[1] = (unsigned long long)(x >> 64);
}
