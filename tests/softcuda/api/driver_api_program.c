/* driver_api_program.c — an ordinary driver API program: it includes only <cuda.h> and is linked with -lcuda.  It
 * adds two vectors and checks the result.  test_driver_api_program.sh runs it on the software driver. */
#include <cuda.h>

#include <stdio.h>
#include <stdlib.h>

static const char ptx[] = ".version 8.0\n"
			  ".target sm_80\n"
			  ".address_size 64\n"
			  ".visible .entry vecAdd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
			  "{\n"
			  "	.reg .pred %p<2>;\n"
			  "	.reg .b32 %r<6>;\n"
			  "	.reg .f32 %f<4>;\n"
			  "	.reg .b64 %rd<11>;\n"
			  "	ld.param.u64 %rd1, [a];\n"
			  "	ld.param.u64 %rd2, [b];\n"
			  "	ld.param.u64 %rd3, [c];\n"
			  "	ld.param.u32 %r2, [n];\n"
			  "	mov.u32 %r3, %ctaid.x;\n"
			  "	mov.u32 %r4, %ntid.x;\n"
			  "	mov.u32 %r5, %tid.x;\n"
			  "	mad.lo.s32 %r1, %r3, %r4, %r5;\n"
			  "	setp.ge.s32 %p1, %r1, %r2;\n"
			  "	@%p1 bra DONE;\n"
			  "	cvta.to.global.u64 %rd4, %rd1;\n"
			  "	mul.wide.s32 %rd5, %r1, 4;\n"
			  "	add.s64 %rd6, %rd4, %rd5;\n"
			  "	cvta.to.global.u64 %rd7, %rd2;\n"
			  "	add.s64 %rd8, %rd7, %rd5;\n"
			  "	ld.global.f32 %f1, [%rd8];\n"
			  "	ld.global.f32 %f2, [%rd6];\n"
			  "	add.f32 %f3, %f2, %f1;\n"
			  "	cvta.to.global.u64 %rd9, %rd3;\n"
			  "	add.s64 %rd10, %rd9, %rd5;\n"
			  "	st.global.f32 [%rd10], %f3;\n"
			  "DONE:\n"
			  "	ret;\n"
			  "}\n";

#define CHECK(call) \
	do { \
		CUresult r_ = (call); \
		const char *name_ = "?"; \
		if (r_ != CUDA_SUCCESS) { \
			cuGetErrorName(r_, &name_); \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, name_); \
			exit(1); \
		} \
	} while (0)

enum { N = 50000 };

int main(void)
{
	size_t bytes = N * sizeof(float);
	float *a = malloc(bytes), *b = malloc(bytes), *c = malloc(bytes);
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction vec_add;
	CUdeviceptr da, db, dc;
	char name[100];
	int n = N, wrong = 0;
	void *args[] = { &da, &db, &dc, &n };

	if (!a || !b || !c)
		return 1;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDeviceGetName(name, sizeof name, device));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, ptx));
	CHECK(cuModuleGetFunction(&vec_add, module, "vecAdd"));
	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	CHECK(cuMemAlloc(&da, bytes));
	CHECK(cuMemAlloc(&db, bytes));
	CHECK(cuMemAlloc(&dc, bytes));
	CHECK(cuMemcpyHtoD(da, a, bytes));
	CHECK(cuMemcpyHtoD(db, b, bytes));
	CHECK(cuLaunchKernel(vec_add, (N + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
	CHECK(cuMemcpyDtoH(c, dc, bytes));
	for (int i = 0; i < N; i++)
		wrong += c[i] != (float)(3 * i);
	CHECK(cuMemFree(da));
	CHECK(cuMemFree(db));
	CHECK(cuMemFree(dc));
	CHECK(cuModuleUnload(module));
	CHECK(cuDevicePrimaryCtxRelease(device));
	free(a);
	free(b);
	free(c);
	printf("%s: %d of %d elements are wrong\n", name, wrong, N);
	return wrong != 0;
}
