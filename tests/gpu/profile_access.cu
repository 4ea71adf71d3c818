// profile_access.cu: kernels with one access each, whose sectors and bank conflicts profile_ncu.py compares with a GPU's.
//
// gpuload run: 'inout:u32[4096]=zeros' --grid 2 --block 64
//
// The accesses are written in PTX, so that the compiler neither removes nor divides them.  It cannot know that the result is never KEPT.

#define KEPT   0x12345678u
#define thread threadIdx.x
#define lane   (threadIdx.x % 32)

/* A kernel whose threads access global or shared memory at an offset in bytes.  access: the instruction and its operands. */
#define GLOBAL(name, offset, access) \
	extern "C" __global__ void name(unsigned *p) \
	{ \
		const size_t at = __cvta_generic_to_global((char *)p + (offset)); \
		unsigned a = thread, b = thread, c = thread, d = thread; \
		access; \
		if (a + b + c + d == KEPT) \
			*p = a; \
	}
#define SHARED(name, offset, access) \
	extern "C" __global__ void name(unsigned *p) \
	{ \
		__shared__ uint4 s[512]; \
		const size_t at = __cvta_generic_to_shared((char *)s + (offset)); \
		unsigned a = thread, b = thread, c = thread, d = thread; \
		access; \
		if (a == KEPT) \
			*p = a; \
	}
#define LOAD(from)    asm volatile("ld." from ".u32 %0, [%1];" : "=r"(a) : "l"(at))
#define LOAD_8(from)  asm volatile("ld." from ".v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(d) : "l"(at))
#define LOAD_16(from) asm volatile("ld." from ".v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(at))
#define STORE(to)     asm volatile("st." to ".u32 [%1], %0;" ::"r"(a), "l"(at) : "memory")
#define STORE_8(to)   asm volatile("st." to ".v2.u32 [%2], {%0, %1};" ::"r"(a), "r"(b), "l"(at) : "memory")
#define STORE_16(to)  asm volatile("st." to ".v4.u32 [%4], {%0, %1, %2, %3};" ::"r"(a), "r"(b), "r"(c), "r"(d), "l"(at) : "memory")
#define ADD           asm volatile("red.shared.add.u32 [%0], 1;" ::"l"(at) : "memory")

GLOBAL(load_stride_1, thread * 4, LOAD("global"))
GLOBAL(load_stride_2, thread * 8, LOAD("global"))
GLOBAL(load_stride_4, thread * 16, LOAD("global"))
GLOBAL(load_stride_8, thread * 32, LOAD("global"))
GLOBAL(load_stride_32, thread * 128, LOAD("global"))
GLOBAL(load_misaligned, thread * 4 + 4, LOAD("global"))
GLOBAL(load_same_word, 64, LOAD("global"))
GLOBAL(load_reversed, (63 - thread) * 4, LOAD("global"))
GLOBAL(load_8_bytes, thread * 8, LOAD_8("global"))
GLOBAL(load_16_bytes, thread * 16, LOAD_16("global"))
GLOBAL(store_stride_1, thread * 4, STORE("global"))
GLOBAL(store_stride_2, thread * 8, STORE("global"))
GLOBAL(store_16_bytes, thread * 16, STORE_16("global"))
SHARED(shared_stride_1, lane * 4, LOAD("volatile.shared"))
SHARED(shared_stride_2, lane * 8, LOAD("volatile.shared"))
SHARED(shared_stride_3, lane * 12, LOAD("volatile.shared"))
SHARED(shared_stride_4, lane * 16, LOAD("volatile.shared"))
SHARED(shared_stride_8, lane * 32, LOAD("volatile.shared"))
SHARED(shared_stride_16, lane * 64, LOAD("volatile.shared"))
SHARED(shared_stride_32, lane * 128, LOAD("volatile.shared"))
SHARED(shared_stride_33, lane * 132, LOAD("volatile.shared"))
SHARED(shared_same_word, 64, LOAD("volatile.shared"))
SHARED(shared_two_words, lane % 2 * 128, LOAD("volatile.shared"))
SHARED(shared_8_bytes, lane * 8, LOAD_8("volatile.shared"))
SHARED(shared_8_bytes_stride_2, lane * 16, LOAD_8("volatile.shared"))
SHARED(shared_8_bytes_same, 64, LOAD_8("volatile.shared"))
SHARED(shared_16_bytes, lane * 16, LOAD_16("volatile.shared"))
SHARED(shared_16_bytes_stride_2, lane * 32, LOAD_16("volatile.shared"))
SHARED(shared_store_stride_2, lane * 8, STORE("volatile.shared"))
SHARED(shared_store_8_bytes, lane * 8, STORE_8("volatile.shared"))
SHARED(shared_atomic_stride_1, lane * 4, ADD)
SHARED(shared_atomic_same_word, 64, ADD)
