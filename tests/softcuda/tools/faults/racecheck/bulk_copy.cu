// The destination of a bulk copy is read before the wait for its mbarrier.
// expect: shared memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: u32[64]=iota out:u32[64] --grid 1 --block 64
#ifdef RIGHT
#define ENTRY extern "C" __global__ void bulk_copy_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void bulk_copy
#define FIX(...)
#endif

__shared__ __align__(128) unsigned s[64];
__shared__ unsigned long long bar;
ENTRY(const unsigned *in, unsigned *out)
{
	unsigned t = threadIdx.x, m = (unsigned)__cvta_generic_to_shared(&bar), done = 0;

	if (!t) {
		asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(m) : "memory");
		asm volatile("fence.proxy.async;" ::: "memory");
	}
	__syncthreads();
	if (!t) {
		asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], 256; }" :: "r"(m) : "memory");
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
			     :: "r"((unsigned)__cvta_generic_to_shared(s)), "l"(in), "r"(m) : "memory");
	}
#ifdef RIGHT
	while (!done)
		asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
			     : "=r"(done) : "r"(m) : "memory");
#endif
	out[t] = s[63 - t] + done;
}
