// A bulk copy reads values of ordinary stores without a proxy fence after the stores.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[64]=iota out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void proxy_fence_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void proxy_fence
#define FIX(...)
#endif

__shared__ __align__(128) unsigned s[64];
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x;

	s[t] = in[63 - t];
	FIX(asm volatile("fence.proxy.async.shared::cta;" ::: "memory");)
	__syncthreads();
	if (!t) {
		asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
			     :: "l"(out), "r"((unsigned)__cvta_generic_to_shared(s)) : "memory");
		asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
	}
}
