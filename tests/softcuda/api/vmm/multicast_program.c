/* multicast_program.c — two devices with a multicast object run the kernels that the arguments name, to test what tools observe of
 * multimem.  tests/softcuda/tools/test_multicast.py runs it.
 *
 *     multicast_program [KERNEL:TARGET] ...        kernel k runs on device k % 2; all run at the same time
 *
 * TARGET: m (the multicast address), 0 or 1 (the memory of this device), 0b or 1b (its second address), end (the last 4 bytes), odd (a
 * misaligned address), past (the first address after the object), gone (an unmapped address), hole (where device 1 has no memory). */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M2 = 2 << 20 };

/* A kernel in which each thread uses one word of [x]. */
#define KERNEL(name, body) \
	".visible .entry " name "(.param .u64 x, .param .u64 out) { .reg .b64 %x, %o, %a; .reg .b32 %t, %v; .reg .pred %p;\n" \
	"ld.param.u64 %x, [x]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %x; mad.wide.u32 %o, %t, 4, %o; add.u32 %t, %t, 1;\n" body \
	" ret; }\n"
static const char ptx[] = ".version 8.1\n.target sm_90\n.address_size 64\n" /* reports refer to the lines of this text: */
	KERNEL("sum", "multimem.ld_reduce.weak.global.add.u32 %v, [%a]; st.global.u32 [%o], %v;")
		KERNEL("put", "multimem.st.weak.global.u32 [%a], %t;") KERNEL("add", "multimem.red.relaxed.sys.global.add.u32 [%a], %t;")
			KERNEL("wide", "multimem.st.weak.global.v4.f32 [%x], {%v, %v, %v, %v};") KERNEL("store", "st.global.u32 [%a], %t;")
				KERNEL("load", "ld.global.u32 %v, [%a]; st.global.u32 [%o], %v;")
	/* send stores data, then raises a flag; receive waits for the flag, then reads the data. */
	KERNEL("send", "multimem.st.weak.global.u32 [%a], %t; multimem.red.release.sys.global.add.u32 [%x+256], 1;")
		KERNEL("send_early", "multimem.st.weak.global.u32 [%a], %t; multimem.red.relaxed.sys.global.add.u32 [%x+256], 1;") KERNEL(
			"receive", "again: ld.acquire.sys.global.u32 %v, [%x+256]; setp.ne.u32 %p, %v, 32; @%p bra again;"
				   "ld.global.u32 %v, [%a]; st.global.u32 [%o], %v;")
			KERNEL("receive_sum",
			       "again: multimem.ld_reduce.acquire.sys.global.min.u32 %v, [%x+256]; setp.ne.u32 %p, %v, 32; @%p bra again;"
			       "multimem.ld_reduce.weak.global.add.u32 %v, [%a]; st.global.u32 [%o], %v;");

static void ok(CUresult r)
{
	const char *name = "?";

	if (!r)
		return;
	cuGetErrorName(r, &name);
	printf("%s\n", name);
	exit(1);
}

static CUdeviceptr map(CUmemGenericAllocationHandle h, size_t bytes)
{
	const CUmemAccessDesc to[2] = {
		{ .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
		{ .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE }
	};
	CUdeviceptr p;

	ok(cuMemAddressReserve(&p, bytes, 0, 0, 0));
	ok(cuMemMap(p, bytes, 0, h, 0));
	ok(cuMemSetAccess(p, bytes, to, 2));
	return p;
}

static CUdeviceptr at[2], other[2], multicast, gone; /* multicast: 4 MiB, whose last 2 MiB have no memory of device 1 */

/* Make the multicast object.  The memory of each device also has a second address, as NCCL maps the memory of peers. */
static void make_team(void)
{
	const CUmulticastObjectProp object_prop = { .numDevices = 2, .size = 2 * M2 };
	CUmemGenericAllocationHandle object;

	ok(cuMulticastCreate(&object, &object_prop));
	for (int d = 0; d < 2; d++)
		ok(cuMulticastAddDevice(object, d));
	for (int d = 0; d < 2; d++) {
		const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
						   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d } };
		CUmemGenericAllocationHandle memory;

		ok(cuMemCreate(&memory, M2, &prop, 0));
		other[d] = map(memory, M2);
		ok(cuMulticastBindMem(object, 0, memory, 0, M2, 0));
		at[d] = map(memory, M2);
	}
	multicast = map(object, 2 * M2);
	gone = map(object, 2 * M2);
	ok(cuMemUnmap(gone, 2 * M2));
}

static CUdeviceptr address_of(const char *target)
{
	static const char *const names[] = { "m", "0", "1", "0b", "1b", "end", "odd", "hole", "past", "gone" };
	const CUdeviceptr m = multicast;
	const CUdeviceptr addresses[] = { m, at[0], at[1], other[0], other[1], m + M2 - 4, m + 2, m + M2, m + 2 * M2, gone };

	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (!strcmp(target, names[k]))
			return addresses[k];
	exit(2);
}

int main(int argc, char **argv)
{
	CUcontext context[2];
	CUfunction f[2][16];
	CUstream stream[16];
	CUdeviceptr out[2];

	ok(cuInit(0));
	for (int d = 0; d < 2; d++) {
		CUmodule module;

		ok(cuDevicePrimaryCtxRetain(&context[d], d));
		ok(cuCtxSetCurrent(context[d]));
		ok(cuModuleLoadData(&module, ptx));
		ok(cuMemAlloc(&out[d], 128));
		for (int k = 1; k < argc && k < 16; k++) {
			argv[k][strcspn(argv[k], ":")] = '\0';
			ok(cuModuleGetFunction(&f[d][k], module, argv[k]));
		}
	}
	make_team();
	for (int k = 1; k < argc && k < 16; k++) {
		const int d = (k - 1) % 2;
		CUdeviceptr x = address_of(argv[k] + strlen(argv[k]) + 1);

		ok(cuCtxSetCurrent(context[d]));
		ok(cuStreamCreate(&stream[k], CU_STREAM_NON_BLOCKING));
		ok(cuLaunchKernel(f[d][k], 1, 1, 1, 32, 1, 1, 0, stream[k], (void *[]){ &x, &out[d] }, NULL));
	}
	for (int d = 0; d < 2; d++) {
		ok(cuCtxSetCurrent(context[d]));
		ok(cuCtxSynchronize());
		ok(cuMemFree(out[d]));
	}
	puts("done");
	return 0;
}
