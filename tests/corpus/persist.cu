/* Persistent kernels that exchange messages with a CPU thread while they run.
 *
 * The ring: a block claims a slot with head, waits until the CPU has freed it, writes 16 bytes with
 * one store, and waits until tail shows that the CPU has read them. */
#include <stdint.h>

struct Fifo {
	ulonglong2 *buf;
	uint64_t *head;       /* next slot to claim, GPU only */
	uint64_t *tail;       /* first slot that the CPU has not yet read; only the CPU writes it */
	uint64_t *tailcache;  /* the kernel writes it once, at the end */
	uint64_t size;        /* number of slots */
};

__device__ __forceinline__ void store_slot(ulonglong2 *p, uint64_t a, uint64_t b)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" :: "l"(p), "l"(a), "l"(b) : "memory");
}

__device__ __forceinline__ uint64_t load_acquire(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

__device__ __forceinline__ void store_release(uint64_t *p, uint64_t v)
{
	asm volatile("st.release.sys.global.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
}

__device__ __forceinline__ uint64_t add_release(uint64_t *p, uint64_t v)
{
	uint64_t old;

	asm volatile("atom.add.release.sys.global.u64 %0, [%1], %2;" : "=l"(old) : "l"(p), "l"(v) : "memory");
	return old;
}

__device__ __forceinline__ void reduce_release(uint64_t *p, uint64_t v)
{
	asm volatile("red.release.sys.global.add.u64 [%0], %1;" :: "l"(p), "l"(v) : "memory");
}

extern "C" __global__ void persist(Fifo f, volatile uint64_t *stop, uint64_t n)
{
	for (uint64_t i = 0; i < n && !*stop; i++) {
		__syncthreads();
		if (threadIdx.x == 0) {
			uint64_t h = add_release(f.head, 1);
			while (h >= load_acquire(f.tail) + f.size)
				__nanosleep(64);
			store_slot(&f.buf[h % f.size], (h << 16) | 1, i | 0x8000000000000000ull);
			while (load_acquire(f.tail) <= h)
				__nanosleep(32);
		}
		__syncthreads();
	}
	if (threadIdx.x == 0) {
		__threadfence_system();
		store_release(f.tailcache, n);
		reduce_release(f.tailcache, 1);
	}
}

extern "C" __global__ void flagwait(uint32_t *flag, uint32_t want, uint64_t *out)
{
	if (threadIdx.x == 0) {
		uint32_t v;
		do {
			asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
		} while (v != want);
	}
	__syncthreads();
	uint64_t t;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	out[threadIdx.x] = t + clock64();
}
