// All lanes write different values to one word, by one instruction.
// expect: global memory
// With -DRIGHT, this file compiles to a kernel without the fault.
// gpuload run: out:u32[1] --grid 1 --block 32
#ifdef RIGHT
#define ENTRY extern "C" __global__ void same_instruction_right
#define FIX(...) __VA_ARGS__
#else
#define ENTRY extern "C" __global__ void same_instruction
#define FIX(...)
#endif

ENTRY(unsigned *out)
{
#ifdef RIGHT
	*out = 7;
#else
	*out = threadIdx.x;
#endif
}
