/* support.c — the context and the kernels of the driver API tests. */
#include "tests/softcuda/api/support.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const char kernels_ptx[] = ".version 7.5\n"
			   ".target sm_75\n"
			   ".address_size 64\n"
			   "\n"
			   ".visible .global .align 4 .u32 counter = 7;\n"
			   ".visible .const .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
			   "\n"
			   "// c[i] = a[i] + b[i]\n"
			   ".visible .entry vecadd(.param .u64 c, .param .u64 a, .param .u64 b, .param .u32 n)\n"
			   "{\n"
			   "	.reg .pred %p;\n"
			   "	.reg .b32 %r<6>;\n"
			   "	.reg .b64 %rd<8>;\n"
			   "	.reg .f64 %f<4>;\n"
			   "	ld.param.u64 %rd1, [c];\n"
			   "	ld.param.u64 %rd2, [a];\n"
			   "	ld.param.u64 %rd3, [b];\n"
			   "	ld.param.u32 %r1, [n];\n"
			   "	mov.u32 %r2, %ctaid.x;\n"
			   "	mov.u32 %r3, %ntid.x;\n"
			   "	mov.u32 %r4, %tid.x;\n"
			   "	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
			   "	setp.ge.u32 %p, %r5, %r1;\n"
			   "	@%p bra DONE;\n"
			   "	mul.wide.u32 %rd4, %r5, 8;\n"
			   "	add.s64 %rd5, %rd2, %rd4;\n"
			   "	add.s64 %rd6, %rd3, %rd4;\n"
			   "	add.s64 %rd7, %rd1, %rd4;\n"
			   "	ld.global.f64 %f1, [%rd5];\n"
			   "	ld.global.f64 %f2, [%rd6];\n"
			   "	add.f64 %f3, %f1, %f2;\n"
			   "	st.global.f64 [%rd7], %f3;\n"
			   "DONE:\n"
			   "	ret;\n"
			   "}\n"
			   "\n"
			   "// *word = value\n"
			   ".visible .entry put(.param .u64 word, .param .u32 value)\n"
			   "{\n"
			   "	.reg .b64 %rd1;\n"
			   "	.reg .b32 %r1;\n"
			   "	ld.param.u64 %rd1, [word];\n"
			   "	ld.param.u32 %r1, [value];\n"
			   "	st.volatile.global.u32 [%rd1], %r1;\n"
			   "	ret;\n"
			   "}\n"
			   "\n"
			   "// while (!*flag) ;  *seen = *flag\n"
			   ".visible .entry spin(.param .u64 flag, .param .u64 seen)\n"
			   "{\n"
			   "	.reg .pred %p;\n"
			   "	.reg .b64 %rd<3>;\n"
			   "	.reg .b32 %r1;\n"
			   "	ld.param.u64 %rd1, [flag];\n"
			   "	ld.param.u64 %rd2, [seen];\n"
			   "AGAIN:\n"
			   "	ld.volatile.global.u32 %r1, [%rd1];\n"
			   "	setp.eq.u32 %p, %r1, 0;\n"
			   "	@%p bra AGAIN;\n"
			   "	st.volatile.global.u32 [%rd2], %r1;\n"
			   "	ret;\n"
			   "}\n"
			   "\n"
			   "// *sum += 1 by every thread\n"
			   ".visible .entry count(.param .u64 sum)\n"
			   "{\n"
			   "	.reg .b64 %rd1;\n"
			   "	.reg .b32 %r1;\n"
			   "	ld.param.u64 %rd1, [sum];\n"
			   "	atom.global.add.u32 %r1, [%rd1], 1;\n"
			   "	ret;\n"
			   "}\n"
			   "\n"
			   "// counter += table[1]\n"
			   ".visible .entry bump()\n"
			   "{\n"
			   "	.reg .b32 %r<4>;\n"
			   "	ld.const.u32 %r1, [table+4];\n"
			   "	ld.global.u32 %r2, [counter];\n"
			   "	add.u32 %r3, %r1, %r2;\n"
			   "	st.global.u32 [counter], %r3;\n"
			   "	ret;\n"
			   "}\n"
			   "\n"
			   "// the last byte of the dynamic shared memory, written and read back into *out\n"
			   ".extern .shared .align 16 .b8 dynamic[];\n"
			   ".visible .entry shared_end(.param .u64 out, .param .u32 bytes)\n"
			   "{\n"
			   "	.reg .b64 %rd1;\n"
			   "	.reg .b32 %r<5>;\n"
			   "	ld.param.u64 %rd1, [out];\n"
			   "	ld.param.u32 %r1, [bytes];\n"
			   "	mov.u32 %r2, dynamic;\n"
			   "	add.u32 %r2, %r2, %r1;\n"
			   "	mov.u32 %r3, 77;\n"
			   "	st.shared.u8 [%r2+-1], %r3;\n"
			   "	ld.shared.u8 %r4, [%r2+-1];\n"
			   "	st.global.u32 [%rd1], %r4;\n"
			   "	ret;\n"
			   "}\n"
			   "\n"
			   ".visible .entry fall() { trap; }\n"
			   "\n"
			   ".visible .entry at_most_64() .maxntid 64 { ret; }\n";

bool on_software_driver(void)
{
	return dlsym(RTLD_DEFAULT, "gpuloadSoftLastFault") != NULL;
}

int make_context(void **state)
{
	CUcontext ctx;
	CUdevice dev;

	if (cuInit(0) || cuDeviceGet(&dev, 0) || cuCtxCreate(&ctx, NULL, 0, dev))
		return -1;
	*state = ctx;
	return 0;
}

int destroy_context(void **state)
{
	return cuCtxDestroy(*state) == CUDA_SUCCESS ? 0 : -1;
}

CUfunction get_kernel(const char *name)
{
	CUmodule module;
	CUfunction f;

	ok(cuModuleLoadData(&module, kernels_ptx));
	ok(cuModuleGetFunction(&f, module, name));
	return f;
}

void launch(CUfunction f, unsigned blocks, unsigned threads, CUstream stream, void **params)
{
	ok(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream, params, NULL));
}

uint32_t *make_flag(void)
{
	void *flag;

	ok(cuMemHostAlloc(&flag, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP));
	*(uint32_t *)flag = 0;
	return flag;
}

void raise_flag(uint32_t *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static FILE *printed;
static int screen;

char *map_apart(size_t bytes)
{
	static uintptr_t next = 0x200000000000;
	char *p = mmap((void *)next, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	next += (bytes + 0xfffff) & ~(uintptr_t)0xfffff;
	return p;
}

void catch_stderr(void)
{
	printed = tmpfile();
	screen = dup(STDERR_FILENO);
	assert_true(printed && screen >= 0);
	dup2(fileno(printed), STDERR_FILENO);
}

int lines_with(const char *text)
{
	char line[1024];
	int n = 0;

	rewind(printed);
	while (fgets(line, sizeof line, printed))
		n += strstr(line, text) != NULL;
	return n;
}

void release_stderr(void)
{
	dup2(screen, STDERR_FILENO);
	close(screen);
	fclose(printed);
}

void wait_a_tick(void)
{
	const struct timespec tick = { .tv_nsec = 20000000 };

	nanosleep(&tick, NULL);
}
