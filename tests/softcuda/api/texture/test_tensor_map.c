/* test_tensor_map.c — tensor maps, which a kernel gets as a parameter; the calls check the requirements of the driver API manual. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* Copies the 32 words of the box at (4, 3) to out.  Column 4 is at byte 16 of a row: a box must start at a multiple of 16 bytes. */
static const char kernel[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry k(.param .align 128 .b8 map[128], .param .u64 out) {\n"
	".reg .b64 %d<4>; .reg .b32 %r<8>; .reg .pred %p<3>; .shared .align 128 .b8 s[128]; .shared .align 8 .b64 m;\n"
	"mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;\n"
	"mov.u32 %r2, s; mov.u32 %r3, m; mov.u32 %r4, 4; mov.u32 %r5, 3; @%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0; @!%p1 bra WAIT;\n"
	"fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"
	"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d1, {%r4, %r5}], [%r3];\n"
	"WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT; shl.b32 %r6, %r1, 2; add.u32 %r6, %r2, %r6;\n"
	"ld.shared.u32 %r7, [%r6]; mad.wide.u32 %d3, %r1, 4, %d2; st.global.u32 [%d3], %r7; ret; }\n";

static CUresult encode(CUtensorMap *map, CUdeviceptr tensor, cuuint64_t stride, cuuint32_t box, CUtensorMapSwizzle swizzle)
{
	const cuuint64_t dims[2] = { 16, 9 };
	const cuuint32_t boxes[2] = { box, 4 }, steps[2] = { 1, 1 };

	return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, (void *)(uintptr_t)tensor, dims, &stride, boxes, steps,
				      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
				      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void a_kernel_copies_a_box_by_a_map_in_its_parameters(void **state)
{
	_Alignas(64) unsigned char bytes[16 + sizeof(CUtensorMap)];
	CUtensorMap *map = (void *)(bytes + 16); /* misaligned on purpose: only in a kernel's memory, a map must be aligned to 64 */
	uint32_t words[16 * 9], got[32];
	uint64_t second;
	CUdeviceptr tensor, other, out;
	CUmodule module;
	CUfunction f;

	(void)state;
	for (unsigned n = 0; n < 16 * 9; n++)
		words[n] = n;
	ok(cuMemAlloc(&other, sizeof words));
	ok(cuMemAlloc(&tensor, sizeof words));
	ok(cuMemAlloc(&out, sizeof got));
	ok(cuMemcpyHtoD(tensor, words, sizeof words));
	ok(encode(map, other, 64, 8, CU_TENSOR_MAP_SWIZZLE_NONE));
	ok(cuTensorMapReplaceAddress(map, (void *)(uintptr_t)tensor));
	memcpy(&second, bytes + 16 + 8, sizeof second);
	assert_int_equal(second, 0); /* CUTLASS changes a bit of this word in the maps of small tensors, so it must contain no field */
	ok(cuModuleLoadData(&module, kernel));
	ok(cuModuleGetFunction(&f, module, "k"));
	ok(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, (void *[]){ map, &out }, NULL));
	ok(cuMemcpyDtoH(got, out, sizeof got));
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(got[n], (3 + n / 8) * 16 + 4 + n % 8);
	ok(cuModuleUnload(module));
	ok(cuMemFree(tensor));
	ok(cuMemFree(other));
	ok(cuMemFree(out));
}

static void impossible_maps_are_refused(void **state)
{
	CUtensorMap map;
	CUdeviceptr tensor;

	(void)state;
	ok(cuMemAlloc(&tensor, 1024));
	fails(encode(NULL, tensor, 64, 8, CU_TENSOR_MAP_SWIZZLE_NONE), CUDA_ERROR_INVALID_VALUE);
	fails(encode(&map, tensor + 4, 64, 8, CU_TENSOR_MAP_SWIZZLE_NONE), CUDA_ERROR_INVALID_VALUE);
	fails(encode(&map, tensor, 72, 8, CU_TENSOR_MAP_SWIZZLE_NONE), CUDA_ERROR_INVALID_VALUE);
	fails(encode(&map, tensor, 64, 6, CU_TENSOR_MAP_SWIZZLE_NONE), CUDA_ERROR_INVALID_VALUE);
	fails(encode(&map, tensor, 64, 16, CU_TENSOR_MAP_SWIZZLE_32B), CUDA_ERROR_INVALID_VALUE);
	fails(encode(&map, tensor, 64, 0, CU_TENSOR_MAP_SWIZZLE_NONE), CUDA_ERROR_INVALID_VALUE);
	fails(encode(&map, tensor, 64, 257, CU_TENSOR_MAP_SWIZZLE_NONE), CUDA_ERROR_INVALID_VALUE);
	ok(encode(&map, tensor, 64, 16, CU_TENSOR_MAP_SWIZZLE_64B));
	ok(cuMemFree(tensor));
}

static CUtensorMap last_map;

/* Encode a map of rows with 8 elements; stride: distance of the rows in bytes. */
static CUresult encode_mode(CUdeviceptr tensor, int type, cuuint32_t rank, cuuint64_t stride, int interleave, int swizzle, int fill)
{
	const cuuint64_t dims[3] = { 8, 2, 2 }, strides[2] = { stride, 2 * stride };
	const cuuint32_t boxes[3] = { 8, 1, 1 }, steps[3] = { 1, 1, 1 };

	return cuTensorMapEncodeTiled(&last_map, (CUtensorMapDataType)type, rank, (void *)(uintptr_t)tensor, dims, strides, boxes, steps,
				      (CUtensorMapInterleave)interleave, (CUtensorMapSwizzle)swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
				      (CUtensorMapFloatOOBfill)fill);
}

/* The requirements that are checked are those of cuTensorMapEncodeTiled in the driver API manual. */
static void impossible_modes_are_refused(void **state)
{
	enum { NONE = CU_TENSOR_MAP_INTERLEAVE_NONE, BY_16 = CU_TENSOR_MAP_INTERLEAVE_16B, BY_32 = CU_TENSOR_MAP_INTERLEAVE_32B };
	enum { PLAIN = CU_TENSOR_MAP_SWIZZLE_NONE, OF_32 = CU_TENSOR_MAP_SWIZZLE_32B, ZEROS = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };
	enum {
		NANS = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
		U16 = CU_TENSOR_MAP_DATA_TYPE_UINT16,
		S64 = CU_TENSOR_MAP_DATA_TYPE_INT64
	};
	enum {
		F16 = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
		F64 = CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
		TF32_FTZ = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ
	};
	CUdeviceptr t;

	(void)state;
	ok(cuMemAlloc(&t, 1024));
	ok(encode_mode(t, F16, 2, 64, NONE, PLAIN, NANS));
	ok(encode_mode(t, F64, 2, 64, NONE, PLAIN, NANS));
	ok(encode_mode(t, TF32_FTZ, 2, 64, NONE, PLAIN, NANS));
	fails(encode_mode(t, U16, 2, 64, NONE, PLAIN, NANS), CUDA_ERROR_INVALID_VALUE);
	fails(encode_mode(t, S64, 2, 64, NONE, PLAIN, NANS), CUDA_ERROR_INVALID_VALUE);
	fails(encode_mode(t, F16, 2, 64, NONE, PLAIN, NANS + 1), CUDA_ERROR_INVALID_VALUE);
	fails(encode_mode(t, F16, 3, 64, BY_32 + 1, OF_32, ZEROS), CUDA_ERROR_INVALID_VALUE);
	fails(encode_mode(t, F16, 3, 64, NONE, 7, ZEROS), CUDA_ERROR_INVALID_VALUE);
	fails(encode_mode(t, F16, 2, 64, BY_16, PLAIN, ZEROS), CUDA_ERROR_INVALID_VALUE);
	ok(encode_mode(t, F16, 3, 64, BY_16, PLAIN, ZEROS));
	fails(encode_mode(t, F16, 3, 64, BY_32, PLAIN, ZEROS), CUDA_ERROR_INVALID_VALUE);
	ok(encode_mode(t, F16, 3, 64, BY_32, OF_32, ZEROS));
	fails(cuTensorMapReplaceAddress(&last_map, (void *)(uintptr_t)(t + 16)), CUDA_ERROR_INVALID_VALUE);
	ok(cuTensorMapReplaceAddress(&last_map, (void *)(uintptr_t)(t + 32)));
	fails(encode_mode(t, F16, 3, 48, BY_32, OF_32, ZEROS), CUDA_ERROR_INVALID_VALUE);
	fails(encode_mode(t + 16, F16, 3, 64, BY_32, OF_32, ZEROS), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(t));
}

static CUresult encode_pixels(CUtensorMap *map, CUdeviceptr tensor, int lower, int upper, cuuint32_t channels, cuuint32_t pixels)
{
	const cuuint64_t dims[4] = { 8, 6, 5, 2 }, strides[3] = { 32, 32 * 6, 32 * 6 * 5 };
	const cuuint32_t steps[4] = { 1, 1, 1, 1 };
	const int lowers[2] = { lower, -1 }, uppers[2] = { upper, -1 };

	return cuTensorMapEncodeIm2col(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, (void *)(uintptr_t)tensor, dims, strides, lowers, uppers,
				       channels, pixels, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
				       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void impossible_im2col_maps_are_refused(void **state)
{
	CUtensorMap map;
	CUdeviceptr tensor;

	(void)state;
	ok(cuMemAlloc(&tensor, 32 * 6 * 5 * 2));
	ok(encode_pixels(&map, tensor, -1, -1, 8, 64));
	ok(encode_pixels(&map, tensor, -128, 127, 4, 1024));
	fails(encode_pixels(NULL, tensor, -1, -1, 8, 64), CUDA_ERROR_INVALID_VALUE);
	fails(encode_pixels(&map, tensor, -129, -1, 8, 64), CUDA_ERROR_INVALID_VALUE);
	fails(encode_pixels(&map, tensor, -1, 128, 8, 64), CUDA_ERROR_INVALID_VALUE);
	fails(encode_pixels(&map, tensor, 2, -4, 8, 64), CUDA_ERROR_INVALID_VALUE); /* the box contains none of the 6 pixels of a row */
	fails(encode_pixels(&map, tensor, -1, -1, 257, 64), CUDA_ERROR_INVALID_VALUE);
	fails(encode_pixels(&map, tensor, -1, -1, 8, 0), CUDA_ERROR_INVALID_VALUE);
	fails(encode_pixels(&map, tensor, -1, -1, 8, 1025), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(tensor));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_copies_a_box_by_a_map_in_its_parameters),
		cmocka_unit_test(impossible_maps_are_refused),
		cmocka_unit_test(impossible_modes_are_refused),
		cmocka_unit_test(impossible_im2col_maps_are_refused),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
