/* test_texture.c — texture and surface objects, read and written by kernels. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_READS = 64 };

static CUdeviceptr results, coordinates;

/* Compile a kernel: thread n loads four coordinates, executes `body`, which sets r0 to r3, and stores these registers. */
static CUfunction compile(const char *body, CUmodule *module)
{
	static const char frame[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
				    ".visible .entry k(.param .u64 object, .param .u64 at, .param .u64 out)\n{\n"
				    ".reg .b64 o, a, d, w; .reg .b32 t, x, y, z, l, r0, r1, r2, r3; .reg .b16 h0, h1; .reg .pred p;\n"
				    "ld.param.u64 o, [object]; ld.param.u64 a, [at]; ld.param.u64 d, [out];\n"
				    "mov.u32 t, %%tid.x; mul.wide.u32 w, t, 16; add.u64 a, a, w; add.u64 d, d, w;\n"
				    "ld.global.v4.b32 {x, y, z, l}, [a]; mov.b32 r0, 0; mov.b32 r1, 0; mov.b32 r2, 0; mov.b32 r3, 0;\n"
				    "%s\n"
				    "st.global.v4.b32 [d], {r0, r1, r2, r3}; ret;\n}\n";
	static char text[4096];
	CUfunction f;

	snprintf(text, sizeof text, frame, body);
	ok(cuModuleLoadData(module, text));
	ok(cuModuleGetFunction(&f, *module, "k"));
	return f;
}

static CUresult run_kernel(const char *body, uint64_t object, const float (*at)[4], unsigned n, void *out)
{
	CUmodule module;
	CUfunction f = compile(body, &module);
	void *params[] = { &object, &coordinates, &results };
	CUresult r;

	ok(cuMemcpyHtoD(coordinates, at, n * 16));
	ok(cuLaunchKernel(f, 1, 1, 1, n, 1, 1, 0, NULL, params, NULL));
	r = cuCtxSynchronize();
	if (r)
		return r;
	ok(cuMemcpyDtoH(out, results, n * 16));
	ok(cuModuleUnload(module));
	return CUDA_SUCCESS;
}

static int set_up(void **state)
{
	make_context(state);
	ok(cuMemAlloc(&results, MAX_READS * 16));
	ok(cuMemAlloc(&coordinates, MAX_READS * 16));
	return 0;
}

static CUarray array_of(const void *data, size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
			unsigned flags, size_t row_bytes)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = { width, height, depth, format, channels, flags };
	CUarray a;

	ok(cuArray3DCreate(&a, &d));
	/* clang-format off */
	const CUDA_MEMCPY3D c = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = data, .srcPitch = row_bytes, .srcHeight = height ? height : 1,
				  .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = a, .WidthInBytes = row_bytes,
				  .Height = height ? height : 1, .Depth = depth ? depth : 1 };
	/* clang-format on */
	ok(cuMemcpy3D(&c));
	return a;
}

static CUtexObject texture_of(CUarray a, CUaddress_mode mode, CUfilter_mode filter, unsigned flags)
{
	const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a };
	const CUDA_TEXTURE_DESC d = { { mode, mode, mode }, filter, flags, .borderColor = { 7, 8, 9, 10 } };
	CUtexObject t;

	ok(cuTexObjectCreate(&t, &r, &d, NULL));
	return t;
}

#define TEX(geometry, at) "tex." geometry ".v4.f32.f32 {r0, r1, r2, r3}, [o, {" at "}];"

static void check_1d(CUaddress_mode mode, CUfilter_mode filter, unsigned flags, const float (*at)[4], const float *expect, unsigned n)
{
	const float data[4] = { 10, 20, 30, 50 };
	CUarray a = array_of(data, 4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0, sizeof data);
	CUtexObject t = texture_of(a, mode, filter, flags);
	float out[MAX_READS][4];

	ok(run_kernel(TEX("1d", "x"), t, at, n, out));
	for (unsigned k = 0; k < n; k++)
		if (!(fabsf(out[k][0] - expect[k]) < 1e-4f))
			fail_msg("mode %d, filter %d, flags %u: read %u at %g is %g, expected %g", (int)mode, (int)filter, flags, k,
				 (double)at[k][0], (double)out[k][0], (double)expect[k]);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
}

static void point_reads_follow_the_address_modes(void **state)
{
	const float texels[][4] = { { -1.5f }, { -0.5f }, { 0 }, { 0.99f }, { 1 }, { 3.5f }, { 4 }, { 100 } };
	const float unit[][4] = { { -0.3f }, { -0.1f }, { 0 }, { 0.3f }, { 0.6f }, { 0.9f }, { 1.1f }, { 1.3f }, { 2.1f } };

	(void)state;
	check_1d(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0, texels, (float[]){ 10, 10, 10, 10, 20, 50, 50, 50 }, 8);
	check_1d(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, 0, texels, (float[]){ 10, 10, 10, 10, 20, 50, 50, 50 }, 8);
	check_1d(CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_POINT, 0, texels, (float[]){ 7, 7, 10, 10, 20, 50, 7, 7 }, 8);
	check_1d(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 2, unit, (float[]){ 10, 10, 10, 20, 30, 50, 50, 50, 50 }, 9);
	check_1d(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, 2, unit, (float[]){ 30, 50, 10, 20, 30, 50, 10, 20, 10 }, 9);
	check_1d(CU_TR_ADDRESS_MODE_MIRROR, CU_TR_FILTER_MODE_POINT, 2, unit, (float[]){ 20, 10, 10, 20, 30, 50, 50, 30, 10 }, 9);
	check_1d(CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_POINT, 2, unit, (float[]){ 7, 7, 10, 20, 30, 50, 7, 7, 7 }, 9);
}

static void linear_reads_weigh_neighbours_by_multiples_of_a_256th(void **state)
{
	const float at[][4] = { { 0.5f }, { 1 }, { 1.25f }, { 3.5f }, { 4 }, { 0 }, { 0.5f + 1 / 256.f }, { 0.5f + 1 / 1024.f } };
	const float unit[][4] = { { 0 }, { 0.125f }, { 1 }, { 0.25f } };

	(void)state;
	check_1d(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0, at, (float[]){ 10, 15, 17.5f, 50, 50, 10, 10 + 10 / 256.f, 10 }, 8);
	check_1d(CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_LINEAR, 0, at,
		 (float[]){ 8.5f, 11, 12.25f, 28.5f, 17.75f, 7.75f, 8 + 138 / 256.f, 8.5f }, 8); /* texels of the border count in y, too */
	check_1d(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_LINEAR, 2, unit, (float[]){ 30, 10, 30, 15 }, 4);
	check_1d(CU_TR_ADDRESS_MODE_MIRROR, CU_TR_FILTER_MODE_LINEAR, 2, unit, (float[]){ 10, 10, 50, 15 }, 4);
}

/* Lanes with the same handle are read together; lanes with different handles of one texture are read one by one. */
static void check_lanes(CUarray a, CUaddress_mode mode, CUfilter_mode filter, unsigned flags, const char *body)
{
	/* clang-format off */
	static const float odd[] = { 0, -0.0f, 1e-30f, -1e-30f, 0.49999997f, 0.99999994f, 1, -1, 2, 2.0000002f, -2.5f, 8388609, -8388609,
				     16777216, 3e9f, -3e9f, 1e20f, INFINITY, -INFINITY, NAN, 5, 4.9999995f, 5.5f, 0.1f, 0.3f, -0.7f };
	/* clang-format on */
	enum { N = sizeof odd / sizeof *odd };
	CUtexObject t = texture_of(a, mode, filter, flags), other = texture_of(a, mode, filter, flags);
	uint32_t together[MAX_READS][4], apart[MAX_READS][4];
	float at[MAX_READS][4];

	for (unsigned round = 0; round < 8; round++) {
		for (unsigned k = 0; k < MAX_READS; k++) {
			const float inside = (float)(k * 37 % 64) / (flags & CU_TRSF_NORMALIZED_COORDINATES ? 41.f : 7.f) - 0.4f;

			at[k][0] = (k + round) % 3 ? odd[(k + 5 * round) % N] : inside;
			at[k][1] = k % 2 ? odd[(k * 7 + round) % N] : 1 - inside;
			memset(&at[k][2], 0, 8);
		}
		ok(run_kernel(body, t, (const float(*)[4])at, MAX_READS, together));
		for (unsigned k = 0; k < MAX_READS; k += 2)
			memcpy(&at[k][2], &(uint64_t){ other - t }, 8);
		ok(run_kernel(body, t, (const float(*)[4])at, MAX_READS, apart));
		assert_memory_equal(together, apart, sizeof apart);
	}
	ok(cuTexObjectDestroy(t));
	ok(cuTexObjectDestroy(other));
}

static void lanes_of_a_warp_are_read_as_if_one_by_one(void **state)
{
	/* clang-format off */
	static const CUarray_format formats[] = { CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8,
						  CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_HALF };
	/* clang-format on */
	static const float numbers[20] = { 1, -2, 3e-39f, 4e30f, -0.0f, 0.1f, -0.2f, 1 / 3.f, 5,        1e-5f,
					   1, 2,  3,      4,     NAN,   6,    7,     8,       INFINITY, 9 };

	(void)state;
	for (unsigned k = 0; k < 6 * 2 * 2; k++) {
		const bool flat = k / 6 & 1;
		const unsigned channels = k / 12 ? 2 : 1, bytes = k % 6 == 0 ? 4 : k % 6 < 3 ? 1 : 2;
		CUarray a = array_of(numbers, 5, flat ? 0 : 2, 0, formats[k % 6], channels, 0, 5 * bytes * channels);

		for (unsigned mode = 0; mode < 4; mode++)
			for (unsigned f = 0; f < 4; f++)
				check_lanes(a, (CUaddress_mode)mode, (CUfilter_mode)(f & 1), f & 2 ? CU_TRSF_NORMALIZED_COORDINATES : 0,
					    flat ? "mov.b64 w, {z, l}; add.u64 o, o, w; " TEX("1d", "x")
						 : "mov.b64 w, {z, l}; add.u64 o, o, w; " TEX("2d", "x, y"));
		ok(cuArrayDestroy(a));
	}
}

static void integers_are_read_as_they_are_or_as_fractions(void **state)
{
	const int8_t small[8] = { -128, -127, 127, 0, 1, 2, 3, 4 };
	const uint16_t wide[4] = { 0, 65535, 32768, 7 }, halves[4] = { 0x3c00, 0xc000, 0x0001, 0x7c00 };
	const float at[][4] = { { 0 }, { 1 }, { 2 }, { 3 } };
	int32_t ints[4][4];
	float floats[4][4];
	CUarray a = array_of(small, 4, 0, 0, CU_AD_FORMAT_SIGNED_INT8, 2, 0, 8);
	CUtexObject t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);

	(void)state;
	ok(run_kernel("tex.1d.v4.s32.f32 {r0, r1, r2, r3}, [o, {x}];", t, at, 4, ints));
	assert_int_equal(ints[0][0], -128);
	assert_int_equal(ints[0][1], -127);
	assert_int_equal(ints[3][1], 4);
	ok(cuTexObjectDestroy(t));
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	ok(run_kernel(TEX("1d", "x"), t, at, 4, floats));
	assert_true(floats[0][0] == -1 && floats[0][1] == -1 && floats[1][0] == 1 && floats[2][0] == 1 / 127.f);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
	a = array_of(wide, 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT16, 1, 0, 8);
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	ok(run_kernel(TEX("1d", "x"), t, at, 4, floats));
	assert_true(floats[0][0] == 0 && floats[1][0] == 1 && floats[2][0] == 32768 / 65535.f);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
	a = array_of(halves, 4, 0, 0, CU_AD_FORMAT_HALF, 1, 0, 8);
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	ok(run_kernel(TEX("1d", "x"), t, at, 4, floats));
	assert_true(floats[0][0] == 1 && floats[1][0] == -2 && floats[2][0] == 0x1p-24f && isinf(floats[3][0]));
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
}

static void srgb_is_converted_to_linear_light(void **state)
{
	const uint8_t data[4] = { 0, 10, 128, 255 };
	const float at[][4] = { { 0 } };
	float out[1][4];
	CUarray a = array_of(data, 1, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0, 4);
	CUtexObject t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_SRGB);

	(void)state;
	ok(run_kernel(TEX("1d", "x"), t, at, 1, out));
	assert_true(out[0][0] == 0 && out[0][3] == 1);
	assert_true(fabsf(out[0][1] - 10 / 255.f / 12.92f) < 1e-4f && fabsf(out[0][2] - 0.21586f) < 1e-3f);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
}

/* data[z][y][x] = 100 z + 10 y + x */
static void fill_box(float *data, unsigned width, unsigned height, unsigned depth)
{
	for (unsigned k = 0; k < width * height * depth; k++)
		data[k] = (float)(k / (width * height) * 100 + k / width % height * 10 + k % width);
}

static void each_geometry_finds_its_texel(void **state)
{
	float data[12 * 4 * 4], out[3][4];
	const float at[][4] = { { 1.5f, 2.5f, 2.5f }, { 0.5f, 3.5f, 1.5f }, { 3, 1, 2 } };
	CUarray a;
	CUtexObject t;

	(void)state;
	fill_box(data, 4, 4, 12);
	a = array_of(data, 4, 4, 3, CU_AD_FORMAT_FLOAT, 1, 0, 16);
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	ok(run_kernel(TEX("3d", "x, y, z, z"), t, at, 3, out));
	assert_true(out[0][0] == 221 && out[1][0] == 130 && out[2][0] == 213);
	ok(cuTexObjectDestroy(t));
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
	ok(run_kernel(TEX("3d", "x, y, z, z"), t, at, 3, out));
	assert_true(out[0][0] == 221 && out[1][0] == 130 && fabsf(out[2][0] - 157.5f) < 1e-3f);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
	a = array_of(data, 4, 4, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED, 16);
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	ok(run_kernel("cvt.rzi.u32.f32 l, z; " TEX("a2d", "l, x, y, y"), t, at, 3, out));
	assert_true(out[0][0] == 221 && out[1][0] == 130 && out[2][0] == 213);
	ok(run_kernel("mov.b32 l, 77; " TEX("a2d", "l, x, y, y"), t, at, 1, out));
	assert_true(out[0][0] == 421);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
	a = array_of(data, 4, 0, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED, 16);
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	ok(run_kernel("mov.b32 l, 5; " TEX("a1d", "l, x"), t, at, 3, out));
	assert_true(out[0][0] == 111 && out[2][0] == 113);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
}

static void a_direction_selects_the_face_of_a_cubemap(void **state)
{
	float data[12 * 4 * 4], out[6][4];
	const float at[][4] = { { 1, 0.1f, 0.1f },  { -1, 0.1f, 0.1f }, { 0.1f, 1, 0.1f },
				{ 0.1f, -1, 0.1f }, { 0.1f, 0.1f, 1 },  { 0.1f, 0.1f, -1 } };
	static const float texel[6] = { 11, 12, 22, 12, 12, 11 };
	CUarray a;
	CUtexObject t;

	(void)state;
	fill_box(data, 4, 4, 12);
	a = array_of(data, 4, 4, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED, 16);
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES);
	for (unsigned layer = 0; layer < 2; layer++) {
		ok(run_kernel(layer ? "mov.b32 l, 1; " TEX("acube", "l, x, y, z") : "mov.b32 l, 0; " TEX("acube", "l, x, y, z"), t, at, 6,
			      out));
		for (unsigned k = 0; k < 6; k++)
			assert_true(out[k][0] == (float)(100 * (6 * layer + k)) + texel[k]);
	}
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
}

static void gathers_return_one_component_of_four_texels(void **state)
{
	float data[4 * 4 * 2], out[1][4];
	const float at[][4] = { { 2, 2 } };
	CUarray a;
	CUtexObject t;

	(void)state;
	fill_box(data, 8, 4, 1);
	a = array_of(data, 4, 4, 0, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_TEXTURE_GATHER, 32);
	t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	ok(run_kernel("tld4.g.2d.v4.f32.f32 {r0, r1, r2, r3}, [o, {x, y}];", t, at, 1, out));
	assert_true(out[0][0] == 23 && out[0][1] == 25 && out[0][2] == 15 && out[0][3] == 13);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
}

static void levels_are_chosen_and_blended(void **state)
{
	const CUDA_ARRAY3D_DESCRIPTOR d = { .Width = 8, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1 };
	CUDA_TEXTURE_DESC s = { .flags = CU_TRSF_NORMALIZED_COORDINATES, .maxMipmapLevelClamp = 10 };
	const float at[][4] = { { .5f, .5f, 0 }, { .5f, .5f, 1.2f }, { .5f, .5f, 1.75f }, { .5f, .5f, 9 }, { .5f, .5f, -1 } };
	CUmipmappedArray m;
	CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY };
	float data[64], out[5][4];
	CUtexObject t;

	(void)state;
	ok(cuMipmappedArrayCreate(&m, &d, 4));
	for (unsigned k = 0; k < 4; k++) {
		const size_t n = 8u >> k;
		CUarray level;

		for (unsigned e = 0; e < 64; e++)
			data[e] = (float)(10 * k);
		ok(cuMipmappedArrayGetLevel(&level, m, k));
		/* clang-format off */
		const CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = data, .srcPitch = 4 * n,
					  .dstMemoryType = CU_MEMORYTYPE_ARRAY, .dstArray = level, .WidthInBytes = 4 * n, .Height = n };
		/* clang-format on */
		ok(cuMemcpy2D(&c));
	}
	r.res.mipmap.hMipmappedArray = m;
	ok(cuTexObjectCreate(&t, &r, &s, NULL));
	ok(run_kernel("tex.level.2d.v4.f32.f32 {r0, r1, r2, r3}, [o, {x, y}], z;", t, at, 5, out));
	assert_true(out[0][0] == 0 && out[1][0] == 10 && out[2][0] == 20 && out[3][0] == 30 && out[4][0] == 0);
	ok(cuTexObjectDestroy(t));
	s.mipmapFilterMode = s.filterMode = CU_TR_FILTER_MODE_LINEAR;
	ok(cuTexObjectCreate(&t, &r, &s, NULL));
	ok(run_kernel("tex.level.2d.v4.f32.f32 {r0, r1, r2, r3}, [o, {x, y}], z;", t, at, 5, out));
	assert_true(fabsf(out[1][0] - 12) < 0.05f && fabsf(out[2][0] - 17.5f) < 1e-3f && out[3][0] == 30);
	ok(run_kernel(
		"mov.b32 r0, 0f3f000000; tex.grad.2d.v4.f32.f32 {r0, r1, r2, r3}, [o, {x, y}], {r0, 0f00000000}, {0f00000000, 0f00000000};",
		t, at, 1, out));
	assert_true(fabsf(out[0][0] - 20) < 0.05f);
	ok(cuTexObjectDestroy(t));
	s.flags = 0;
	ok(cuTexObjectCreate(&t, &r, &s, NULL)); /* NVIDIA documents this flag as required, but its driver accepts 0 */
	ok(cuTexObjectDestroy(t));
	ok(cuMipmappedArrayDestroy(m));
}

static void linear_memory_is_fetched_by_number(void **state)
{
	const int32_t at[][4] = { { 0 }, { 3 }, { 99 }, { 100 }, { -1 } };
	float data[100], out[5][4];
	CUdeviceptr p;
	CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_LINEAR, .res.linear = { 0, CU_AD_FORMAT_FLOAT, 1, sizeof data } };
	const CUDA_TEXTURE_DESC s = { 0 };
	CUtexObject t;

	(void)state;
	fill_box(data, 100, 1, 1);
	ok(cuMemAlloc(&p, sizeof data));
	ok(cuMemcpyHtoD(p, data, sizeof data));
	r.res.linear.devPtr = p;
	ok(cuTexObjectCreate(&t, &r, &s, NULL));
	ok(run_kernel("tex.1d.v4.f32.s32 {r0, r1, r2, r3}, [o, {x}];", t, (const float(*)[4])at, 5, out));
	assert_true(out[0][0] == 0 && out[1][0] == 3 && out[2][0] == 99 && out[3][0] == 0 && out[4][0] == 0);
	ok(cuTexObjectDestroy(t));
	r.res.linear.devPtr = p + 4;
	fails(cuTexObjectCreate(&t, &r, &s, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
}

static void memory_with_a_pitch_is_read_in_two_dimensions(void **state)
{
	const float at[][4] = { { 1.5f, 2.5f }, { 2, 2 } };
	float data[4][8], out[2][4];
	CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_PITCH2D, .res.pitch2D = { 0, CU_AD_FORMAT_FLOAT, 1, 5, 4, 32 } };
	const CUDA_TEXTURE_DESC s = { .addressMode = { 1, 1, 1 }, .filterMode = CU_TR_FILTER_MODE_LINEAR };
	CUdeviceptr p;
	CUtexObject t;

	(void)state;
	fill_box(data[0], 8, 4, 1);
	ok(cuMemAlloc(&p, sizeof data));
	ok(cuMemcpyHtoD(p, data, sizeof data));
	r.res.pitch2D.devPtr = p;
	ok(cuTexObjectCreate(&t, &r, &s, NULL));
	ok(run_kernel(TEX("2d", "x, y"), t, at, 2, out));
	assert_true(out[0][0] == 21 && fabsf(out[1][0] - 16.5f) < 1e-4f);
	ok(cuTexObjectDestroy(t));
	r.res.pitch2D.pitchInBytes = 36;
	fails(cuTexObjectCreate(&t, &r, &s, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemFree(p));
}

static CUsurfObject surface_of(CUarray a)
{
	const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a };
	CUsurfObject s;

	ok(cuSurfObjectCreate(&s, &r));
	return s;
}

static void surfaces_are_loaded_stored_and_reduced(void **state)
{
	const int32_t at[][4] = { { 0, 0, 0 }, { 4, 1, 5 }, { 12, 3, 6 }, { 16, 0, 7 }, { -4, 2, 8 } };
	float data[16], back[16];
	uint32_t out[5][4];
	CUarray a;
	CUsurfObject s;

	(void)state;
	fill_box(data, 4, 4, 1);
	a = array_of(data, 4, 4, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST, 16);
	s = surface_of(a);
	ok(run_kernel("suld.b.2d.b32.zero {r0}, [o, {x, y}]; suld.b.2d.b32.clamp {r1}, [o, {x, y}];", s, (const float(*)[4])at, 5, out));
	float *read = (float *)out;
	assert_true(read[0] == 0 && read[4] == 11 && read[8] == 33 && read[12] == 0 && read[16] == 0);
	assert_true(read[13] == 3 && read[17] == 20);
	ok(run_kernel("cvt.rn.f32.s32 r0, z; sust.b.2d.b32.zero [o, {x, y}], {r0};", s, (const float(*)[4])at, 5, out));
	ok(cuMemcpyAtoH(back, a, 0, 16));
	assert_true(back[0] == 0 && back[1] == 1 && back[3] == 3);
	/* clang-format off */
	const CUDA_MEMCPY2D c = { .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = a, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back,
				  .dstPitch = 16, .WidthInBytes = 16, .Height = 4 };
	/* clang-format on */
	ok(cuMemcpy2D(&c));
	assert_true(back[5] == 5 && back[15] == 6);
	ok(cuSurfObjectDestroy(s));
	ok(cuArrayDestroy(a));
	uint32_t words[4] = { 1, 2, 3, 0xffffffff };

	a = array_of(words, 4, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST, 16);
	s = surface_of(a);
	ok(run_kernel(
		"mov.b32 r0, 5; mov.b32 x, 4; sured.b.add.1d.u32.trap [o, {x}], r0; mov.b32 x, 12; sured.b.max.1d.s32.trap [o, {x}], r0;",
		s, (const float(*)[4])at, 5, out));
	ok(cuMemcpyAtoH(words, a, 0, 16));
	assert_int_equal(words[1], 27);
	assert_int_equal(words[3], 5);
	ok(cuSurfObjectDestroy(s));
	ok(cuArrayDestroy(a));
}

static void queries_return_the_properties_of_a_texture(void **state)
{
	float data[4 * 6] = { 0 };
	const float at[][4] = { { 0 } };
	uint32_t out[1][4];
	CUarray a = array_of(data, 6, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0, 24);
	CUtexObject t = texture_of(a, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);

	(void)state;
	ok(run_kernel("txq.width.b32 r0, [o]; txq.height.b32 r1, [o];", t, at, 1, out));
	assert_int_equal(out[0][0], 6);
	assert_int_equal(out[0][1], 4);
	ok(cuTexObjectDestroy(t));
	ok(cuArrayDestroy(a));
}

static void objects_return_their_descriptions(void **state)
{
	float data[4] = { 0 };
	CUarray a = array_of(data, 4, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0, 16);
	CUtexObject t = texture_of(a, CU_TR_ADDRESS_MODE_MIRROR, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
	CUDA_RESOURCE_DESC r;
	CUDA_TEXTURE_DESC d;
	CUDA_RESOURCE_VIEW_DESC v;
	size_t width;

	(void)state;
	ok(cuTexObjectGetResourceDesc(&r, t));
	assert_ptr_equal(r.res.array.hArray, a);
	ok(cuTexObjectGetTextureDesc(&d, t));
	assert_int_equal(d.addressMode[1], CU_TR_ADDRESS_MODE_MIRROR);
	assert_int_equal(d.flags, CU_TRSF_NORMALIZED_COORDINATES);
	ok(cuTexObjectGetResourceViewDesc(&v, t));
	ok(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, 0));
	assert_true(width >= 1 << 27);
	ok(cuTexObjectDestroy(t));
	if (on_software_driver())
		fails(cuTexObjectDestroy(t), CUDA_ERROR_INVALID_VALUE);
	ok(cuArrayDestroy(a));
}

static const char reference_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				    ".global .texref t; .global .surfref s;\n"
				    ".visible .entry k(.param .u64 out)\n{\n"
				    ".reg .b64 d, o; .reg .b32 r0, r1, r2, r3, x;\n"
				    "ld.param.u64 d, [out];\n"
				    "tex.1d.v4.f32.f32 {r0, r1, r2, r3}, [t, {0f3fc00000}]; st.global.b32 [d], r0;\n"
				    "mov.u64 o, t; tex.1d.v4.f32.f32 {r0, r1, r2, r3}, [o, {0f40200000}]; st.global.b32 [d+4], r0;\n"
				    "suld.b.1d.b32.trap {x}, [s, {12}]; st.global.b32 [d+8], x; ret;\n}\n";

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* cuda.h deprecates texture references */
static void references_of_a_module_are_bound_by_calls(void **state)
{
	const float data[4] = { 10, 20, 30, 50 };
	CUarray a = array_of(data, 4, 0, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST, sizeof data), bound = NULL;
	void *params[] = { &results };
	float out[3];
	CUmodule module;
	CUfunction f;
	CUtexref t, again;
	CUsurfref s;

	(void)state;
	if (!on_software_driver())
		skip(); /* newer drivers have no texture references for newer GPUs */
	ok(cuModuleLoadData(&module, reference_ptx));
	ok(cuModuleGetFunction(&f, module, "k"));
	ok(cuModuleGetTexRef(&t, module, "t"));
	ok(cuModuleGetTexRef(&again, module, "t"));
	assert_ptr_equal(t, again);
	fails(cuModuleGetTexRef(&again, module, "s"), CUDA_ERROR_NOT_FOUND);
	ok(cuModuleGetSurfRef(&s, module, "s"));
	fails(cuTexRefGetArray(&bound, t), CUDA_ERROR_INVALID_VALUE);
	ok(cuTexRefSetArray(t, a, CU_TRSA_OVERRIDE_FORMAT));
	ok(cuTexRefGetArray(&bound, t));
	assert_ptr_equal(bound, a);
	ok(cuSurfRefSetArray(s, a, 0));
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ok(cuTexRefSetFilterMode(t, CU_TR_FILTER_MODE_LINEAR));
	ok(cuMemcpyDtoH(out, results, sizeof out));
	assert_true(out[0] == 20 && out[1] == 30 && out[2] == 50);
	ok(cuMemcpyHtoD(coordinates, (const float[4]){ 1, 2, 4, 8 }, 16));
	ok(cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 1));
	ok(cuTexRefSetFilterMode(t, CU_TR_FILTER_MODE_POINT));
	ok(cuTexRefSetAddress(NULL, t, coordinates, 16));
	ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	ok(cuMemcpyDtoH(out, results, sizeof out));
	assert_true(out[0] == 2 && out[1] == 4);
	ok(cuModuleUnload(module));
	ok(cuArrayDestroy(a));
}

/* Run a faulting kernel in a separate context, because the fault makes the context unusable. */
static CUresult fault_of(const char *body, bool surface, int32_t x)
{
	const int32_t at[][4] = { { x } };
	float out[1][4], data[4] = { 0 };
	void *own = NULL;
	CUarray a;
	CUresult r;

	set_up(&own);
	a = array_of(data, 4, 0, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST, 16);
	r = run_kernel(body, surface ? surface_of(a) : 12345, (const float(*)[4])at, 1, out);
	assert_int_equal(destroy_context(&own), 0);
	return r;
}

static void a_faulting_access_ends_the_kernel(void **state)
{
	(void)state;
	if (!on_software_driver())
		skip();
	fails(fault_of("suld.b.1d.b32.trap {r0}, [o, {x}];", true, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(fault_of("sust.b.1d.b32.trap [o, {x}], {r0};", true, -4), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(fault_of("suld.b.1d.b32.trap {r0}, [o, {x}];", true, 2), CUDA_ERROR_MISALIGNED_ADDRESS);
	fails(fault_of(TEX("1d", "x"), false, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
	fails(fault_of(TEX("1d", "x"), true, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(point_reads_follow_the_address_modes),
		cmocka_unit_test(linear_reads_weigh_neighbours_by_multiples_of_a_256th),
		cmocka_unit_test(lanes_of_a_warp_are_read_as_if_one_by_one),
		cmocka_unit_test(integers_are_read_as_they_are_or_as_fractions),
		cmocka_unit_test(srgb_is_converted_to_linear_light),
		cmocka_unit_test(each_geometry_finds_its_texel),
		cmocka_unit_test(a_direction_selects_the_face_of_a_cubemap),
		cmocka_unit_test(gathers_return_one_component_of_four_texels),
		cmocka_unit_test(levels_are_chosen_and_blended),
		cmocka_unit_test(linear_memory_is_fetched_by_number),
		cmocka_unit_test(memory_with_a_pitch_is_read_in_two_dimensions),
		cmocka_unit_test(surfaces_are_loaded_stored_and_reduced),
		cmocka_unit_test(queries_return_the_properties_of_a_texture),
		cmocka_unit_test(objects_return_their_descriptions),
		cmocka_unit_test(references_of_a_module_are_bound_by_calls),
		cmocka_unit_test(a_faulting_access_ends_the_kernel),
	};

	return cmocka_run_group_tests(tests, set_up, destroy_context);
}
