/* test_array.c — CUDA arrays and mipmapped arrays, and copies from and to them. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <string.h>

static CUarray make(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels, unsigned flags)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = width, .Height = height, .Depth = depth, .Format = format, .NumChannels = channels, .Flags = flags
	};
	CUarray a = NULL;

	ok(cuArray3DCreate(&a, &d));
	return a;
}

static CUresult try_make(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels, unsigned flags)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = {
		.Width = width, .Height = height, .Depth = depth, .Format = format, .NumChannels = channels, .Flags = flags
	};
	CUarray a = NULL;
	CUresult r = cuArray3DCreate(&a, &d);

	if (!r)
		ok(cuArrayDestroy(a));
	return r;
}

static void fill(uint8_t *bytes, size_t n)
{
	for (size_t k = 0; k < n; k++)
		bytes[k] = (uint8_t)(k * 7 + k / 251);
}

static void an_array_has_the_description_of_its_creation(void **state)
{
	CUDA_ARRAY_DESCRIPTOR flat;
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUarray a;

	(void)state;
	ok(cuArrayCreate(&a, &(CUDA_ARRAY_DESCRIPTOR){ .Width = 20, .Height = 10, .Format = CU_AD_FORMAT_HALF, .NumChannels = 2 }));
	ok(cuArrayGetDescriptor(&flat, a));
	assert_int_equal(flat.Width, 20);
	assert_int_equal(flat.Height, 10);
	assert_int_equal(flat.Format, CU_AD_FORMAT_HALF);
	assert_int_equal(flat.NumChannels, 2);
	ok(cuArray3DGetDescriptor(&d, a));
	assert_int_equal(d.Depth, 0);
	assert_int_equal(d.Flags, 0);
	ok(cuArrayDestroy(a));
	if (on_software_driver()) {
		fails(cuArrayGetDescriptor(&flat, a), CUDA_ERROR_INVALID_HANDLE);
		fails(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
	}
	a = make(8, 8, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
	ok(cuArray3DGetDescriptor(&d, a));
	assert_int_equal(d.Depth, 5);
	assert_int_equal(d.Flags, CUDA_ARRAY3D_LAYERED);
	ok(cuArrayDestroy(a));
}

static void impossible_arrays_are_refused(void **state)
{
	const CUarray_format f = CU_AD_FORMAT_FLOAT;

	(void)state;
	fails(try_make(0, 4, 0, f, 1, 0), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 4, 0, f, 3, 0), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 4, 0, (CUarray_format)0x77, 1, 0), CUDA_ERROR_INVALID_VALUE);
	if (on_software_driver())
		fails(try_make(4, 4, 0, CU_AD_FORMAT_BC1_UNORM, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
	fails(try_make(4, 4, 0, (CUarray_format)0, 1, 0), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(131073, 0, 0, f, 1, 0), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(16, 65537, 0, f, 1, 0), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(16385, 2, 2, f, 1, 0), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 0, 4, f, 1, 0), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 0, 0, f, 1, CUDA_ARRAY3D_LAYERED), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 5, 6, f, 1, CUDA_ARRAY3D_CUBEMAP), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 4, 5, f, 1, CUDA_ARRAY3D_CUBEMAP), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 4, 13, f, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED), CUDA_ERROR_INVALID_VALUE);
	fails(try_make(4, 0, 0, f, 1, CUDA_ARRAY3D_TEXTURE_GATHER), CUDA_ERROR_INVALID_VALUE);
	ok(try_make(4, 4, 6, f, 1, CUDA_ARRAY3D_CUBEMAP));
	ok(try_make(4, 4, 12, f, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
	ok(try_make(4, 0, 3, f, 4, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST));
	ok(try_make(4, 4, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0));
	fails(try_make(4, 4, 0, CU_AD_FORMAT_UNORM_INT8X4, 2, 0), CUDA_ERROR_INVALID_VALUE);
}

static void arrays_count_as_memory_of_the_device(void **state)
{
	size_t before, with, after, total;
	CUarray a;

	(void)state;
	ok(cuMemGetInfo(&before, &total));
	a = make(1024, 256, 0, CU_AD_FORMAT_FLOAT, 4, 0);
	ok(cuMemGetInfo(&with, &total));
	ok(cuArrayDestroy(a));
	ok(cuMemGetInfo(&after, &total));
	if (on_software_driver()) {
		assert_true(with <= before - (4 << 20) || with < before);
		assert_true(after > with || after == before);
	}
}

static void a_box_is_copied_through_an_array_and_back(void **state)
{
	enum { W = 40, H = 12, D = 3 };
	uint8_t in[D][H][W], out[D][H][W];
	CUarray a = make(W / 4, H, D, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0);
	CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = in,
			    .srcPitch = W,
			    .srcHeight = H,
			    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			    .dstArray = a,
			    .WidthInBytes = W,
			    .Height = H,
			    .Depth = D };

	(void)state;
	fill((uint8_t *)in, sizeof in);
	memset(out, 0, sizeof out);
	ok(cuMemcpy3D(&c));
	c = (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			     .srcArray = a,
			     .srcXInBytes = 8,
			     .srcY = 3,
			     .srcZ = 1,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .dstHost = out,
			     .dstPitch = W,
			     .dstHeight = H,
			     .dstXInBytes = 4,
			     .dstY = 1,
			     .WidthInBytes = 20,
			     .Height = 5,
			     .Depth = 2 };
	ok(cuMemcpy3D(&c));
	for (size_t z = 0; z < 2; z++)
		for (size_t y = 0; y < 5; y++)
			assert_memory_equal(&out[z][y + 1][4], &in[z + 1][y + 3][8], 20);
	assert_int_equal(out[0][0][4], 0);
	assert_int_equal(out[0][1][3], 0);
	c.Depth = 3;
	fails(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
	c.Depth = 2;
	c.WidthInBytes = 36;
	fails(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
	c.WidthInBytes = 20;
	c.srcLOD = 1;
	fails(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);
	ok(cuArrayDestroy(a));
	c.srcLOD = 0;
	if (on_software_driver())
		assert_int_not_equal(cuMemcpy3D(&c), CUDA_SUCCESS);
}

static void rows_are_copied_between_arrays_and_device_memory(void **state)
{
	enum { W = 32, H = 6 };
	uint8_t in[H][W], out[H][W];
	CUarray a = make(W, H, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), b = make(W, H, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
	CUdeviceptr d;
	size_t pitch;
	CUstream s;

	(void)state;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuMemAllocPitch(&d, &pitch, W, H, 4));
	fill((uint8_t *)in, sizeof in);
	memset(out, 0, sizeof out);
	CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			    .srcHost = in,
			    .srcPitch = W,
			    .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			    .dstArray = a,
			    .WidthInBytes = W,
			    .Height = H };

	ok(cuMemcpy2DAsync(&c, s));
	c = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			     .srcArray = a,
			     .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			     .dstArray = b,
			     .WidthInBytes = W,
			     .Height = H };
	ok(cuMemcpy2DAsync(&c, s));
	c = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			     .srcArray = b,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			     .dstDevice = d,
			     .dstPitch = pitch,
			     .WidthInBytes = W,
			     .Height = H };
	ok(cuMemcpy2DAsync(&c, s));
	c = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			     .srcDevice = d,
			     .srcPitch = pitch,
			     .dstMemoryType = CU_MEMORYTYPE_HOST,
			     .dstHost = out,
			     .dstPitch = W,
			     .WidthInBytes = W,
			     .Height = H };
	ok(cuMemcpy2DAsync(&c, s));
	ok(cuStreamSynchronize(s));
	assert_memory_equal(in, out, sizeof in);
	ok(cuArrayDestroy(a));
	ok(cuArrayDestroy(b));
	ok(cuMemFree(d));
	ok(cuStreamDestroy(s));
}

static void bytes_are_copied_at_an_offset_of_an_array(void **state)
{
	enum { N = 256 };
	uint8_t in[N], out[N] = { 0 };
	CUarray a = make(N, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), b = make(N, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
	CUdeviceptr d;

	(void)state;
	ok(cuMemAlloc(&d, N));
	fill(in, N);
	ok(cuMemcpyHtoA(a, 0, in, N));
	ok(cuMemcpyAtoA(b, 16, a, 0, N - 16));
	ok(cuMemcpyAtoD(d, b, 16, 64));
	ok(cuMemcpyDtoA(b, 128, d, 64));
	ok(cuMemcpyAtoH(out, b, 128, 64));
	assert_memory_equal(in, out, 64);
	ok(cuMemcpyHtoAAsync(b, 0, in + 100, 50, NULL));
	ok(cuMemcpyAtoHAsync(out, b, 0, 50, NULL));
	ok(cuCtxSynchronize());
	assert_memory_equal(in + 100, out, 50);
	fails(cuMemcpyAtoH(out, b, N - 10, 11), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemcpyAtoH(out, b, N - 10, 10));
	ok(cuArrayDestroy(a));
	ok(cuArrayDestroy(b));
	ok(cuMemFree(d));
}

static void a_copy_to_an_array_waits_for_the_kernel_before_it(void **state)
{
	uint8_t *in, out[64];
	CUarray a = make(64, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
	uint32_t *flag = make_flag();
	CUstream s;

	(void)state;
	ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ok(cuMemHostAlloc((void **)&in, 64, 0));
	fill(in, 64);
	CUdeviceptr p = (uintptr_t)flag, seen = p;
	void *params[] = { &p, &seen };

	launch(get_kernel("spin"), 1, 1, s, params);
	ok(cuMemcpyHtoAAsync(a, 0, in, 64, s));
	raise_flag(flag);
	ok(cuStreamSynchronize(s));
	ok(cuMemcpyAtoH(out, a, 0, 64));
	assert_memory_equal(in, out, 64);
	ok(cuMemFreeHost(in));
	ok(cuStreamDestroy(s));
	ok(cuArrayDestroy(a));
}

static void levels_of_a_mipmapped_array_are_arrays_of_half_the_size(void **state)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = { .Width = 20, .Height = 6, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1 };
	static const size_t widths[] = { 20, 10, 5, 2, 1 }, heights[] = { 6, 3, 1, 1, 1 };
	CUDA_ARRAY3D_DESCRIPTOR got;
	CUmipmappedArray m;
	CUarray level;
	float in[10], out[10];

	(void)state;
	ok(cuMipmappedArrayCreate(&m, &d, 100));
	for (unsigned k = 0; k < 5; k++) {
		ok(cuMipmappedArrayGetLevel(&level, m, k));
		ok(cuArray3DGetDescriptor(&got, level));
		assert_int_equal(got.Width, widths[k]);
		assert_int_equal(got.Height, heights[k]);
	}
	fails(cuMipmappedArrayGetLevel(&level, m, 5), CUDA_ERROR_INVALID_VALUE);
	ok(cuMipmappedArrayGetLevel(&level, m, 1));
	fill((uint8_t *)in, sizeof in);
	ok(cuMemcpyHtoA(level, 0, in, sizeof in));
	ok(cuMemcpyAtoH(out, level, 0, sizeof in));
	assert_memory_equal(in, out, sizeof in);
	fails(cuMemcpyHtoA(level, 40, in, sizeof in), CUDA_ERROR_INVALID_VALUE); /* byte 40 is in the second row */
	if (on_software_driver())
		fails(cuArrayDestroy(level), CUDA_ERROR_INVALID_VALUE);
	ok(cuMipmappedArrayDestroy(m));
	if (on_software_driver()) {
		fails(cuArray3DGetDescriptor(&got, level), CUDA_ERROR_INVALID_HANDLE);
		fails(cuMipmappedArrayDestroy(m), CUDA_ERROR_INVALID_HANDLE);
	}
}

static void properties_that_an_array_lacks_are_refused(void **state)
{
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUarray plane, a = make(64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0);

	(void)state;
	fails(cuArrayGetSparseProperties(&sparse, a), CUDA_ERROR_INVALID_VALUE);
	fails(cuArrayGetPlane(&plane, a, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuArrayGetMemoryRequirements(&needs, a, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuArrayDestroy(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_has_the_description_of_its_creation),
		cmocka_unit_test(impossible_arrays_are_refused),
		cmocka_unit_test(arrays_count_as_memory_of_the_device),
		cmocka_unit_test(a_box_is_copied_through_an_array_and_back),
		cmocka_unit_test(rows_are_copied_between_arrays_and_device_memory),
		cmocka_unit_test(bytes_are_copied_at_an_offset_of_an_array),
		cmocka_unit_test(a_copy_to_an_array_waits_for_the_kernel_before_it),
		cmocka_unit_test(levels_of_a_mipmapped_array_are_arrays_of_half_the_size),
		cmocka_unit_test(properties_that_an_array_lacks_are_refused),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
