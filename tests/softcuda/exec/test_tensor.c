/* test_tensor.c — tensor copies: boxes of tensors between global and shared memory. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#include "softcuda/exec/tensor_map.h"

/* Thread 0 copies a box to shared memory, and all threads copy it to out; %x is the address of the tensor map. */
#define LOAD(dims, coordinates, bytes) \
	PTX_HEADER KERNEL_OUT( \
		"k") ".shared .align 1024 .b8 s[8192]; .shared .align 8 .b64 m;\n" \
		     "setp.eq.u32 %p1, %t, 0; mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, 1; mov.u32 %r4, 2; mov.u32 %r5, -1; mov.u32 %r6, 0;\n" \
		     "@%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0; @!%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [m], " bytes \
		     ";\n" \
		     "cp.async.bulk.tensor." dims ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%x, {" coordinates \
		     "}], [%r2];\n" \
		     "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT;\n" \
		     "shl.b32 %r7, %t, 2; add.u32 %r7, %r1, %r7; ld.shared.u32 %r8, [%r7]; st.global.u32 [%mine], %r8; ret; }"

static gpul_tensor_map *make_map(struct rig *r, void *tensor, gpul_tensor_type type, unsigned rank, const uint32_t *dims,
				 const uint16_t *box)
{
	gpul_tensor_map *m = rig_memory(r, GPUL_TENSOR_MAP_BYTES);
	uint64_t bytes = gpul_tensor_type_bytes(type);

	*m = (gpul_tensor_map){ .mark = GPUL_TENSOR_MAP_MARK, .address = (uintptr_t)tensor, .type = (uint8_t)type, .rank = (uint8_t)rank };
	for (unsigned d = 0; d < rank; d++) {
		m->last[d] = dims[d] - 1;
		m->box[d] = box[d];
		m->step[d] = 1;
		bytes *= dims[d];
		if (d + 1 < rank)
			m->stride[d] = bytes;
	}
	return m;
}

/* The box has 8 x 4 words and starts at column 4, row -1 of a tensor of 12 x 10, so its first row is outside of the tensor. */
static void a_box_is_copied_and_filled_with_zeros_outside_of_the_tensor(void **state)
{
	struct rig *r = rig_open(LOAD("2d", "4, %r5", "128"));
	uint32_t *tensor = rig_memory(r, 12 * 10 * 4), *out = rig_memory(r, 32 * 4);
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 2, (uint32_t[]){ 12, 10 }, (uint16_t[]){ 8, 4 });

	(void)state;
	for (unsigned n = 0; n < 120; n++)
		tensor[n] = n + 1;
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)m);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], n < 8 ? 0 : tensor[(n / 8 - 1) * 12 + n % 8 + 4]);
	m->fill_nan = true;
	m->type = GPUL_TENSOR_F32;
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)m);
	assert_int_equal(out[0], 0x7ff77ff7);
	assert_int_equal(out[8], tensor[4]);
	rig_close(r);
}

/* Thread 0 makes a map in shared memory, field by field, and copies it to global memory; then a box is loaded by this map. */
static void a_kernel_makes_a_map_and_loads_a_box_by_it(void **state)
{
#define FIELD(name, type, values) "@%p1 tensormap.replace.tile." name ".shared::cta.b1024." type " [%r9], " values ";\n"
	/* clang-format off */
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") ".shared .align 1024 .b8 s[128]; .shared .align 8 .b64 m; .shared .align 128 .b8 map[128];\n"
				 "mov.u32 %r9, map; setp.eq.u32 %p1, %t, 0; shl.b32 %r1, %t, 2; add.u32 %r1, %r9, %r1; shl.b32 %r2, %t, 2; cvt.u64.u32 %d1, %r2;\n"
				 "add.u64 %d1, %d1, %x; ld.global.u32 %r3, [%d1]; st.shared.u32 [%r1], %r3; bar.sync 0; ld.global.u64 %d2, [%x+128];\n"
				 "mov.u32 %r4, 12; mov.u64 %d3, 48;\n"
				 FIELD("global_address", "b64", "%d2") FIELD("rank", "b32", "1") FIELD("elemtype", "b32", "2")
				 FIELD("global_dim", "b32", "0, %r4") FIELD("global_dim", "b32", "1, 10") FIELD("global_stride", "b64", "0, %d3")
				 FIELD("box_dim", "b32", "0, 8") FIELD("box_dim", "b32", "1, 4") FIELD("element_stride", "b32", "1, 1")
				 FIELD("element_stride", "b32", "0, 1") FIELD("swizzle_mode", "b32", "0") FIELD("interleave_layout", "b32", "0")
				 FIELD("fill_mode", "b32", "0")
				 "bar.sync 0; tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%x], [%r9], 128;\n"
				 "fence.proxy.tensormap::generic.acquire.gpu [%x], 128; bar.sync 0;\n"
				 "mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r4, 4; mov.u32 %r5, 3;\n"
				 "@%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0; @!%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"
				 "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%x, {%r4, %r5}], [%r2];\n"
				 "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT;\n"
				 "shl.b32 %r7, %t, 2; add.u32 %r7, %r1, %r7; ld.shared.u32 %r8, [%r7]; st.global.u32 [%mine], %r8; ret; }");
	/* clang-format on */
	uint32_t *tensor = rig_memory(r, 12 * 10 * 4), *out = rig_memory(r, 32 * 4);
	uint64_t *map = rig_memory(r, 256);

	(void)state;
	map[0] = GPUL_TENSOR_MAP_MARK; /* the mark that cuTensorMapEncodeTiled() writes to each map; all fields are 0 */
	map[16] = (uintptr_t)tensor;
	for (unsigned n = 0; n < 120; n++)
		tensor[n] = n + 1;
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)map);
	for (unsigned n = 0; n < 32; n++)
		assert_int_equal(out[n], tensor[(n / 8 + 3) * 12 + n % 8 + 4]);
	rig_close(r);
#undef FIELD
}

/* The wrong fields are a box of 0, a step of 0, an unknown type, another rank, a row longer than the swizzle, and interleaved 2D. */
static void a_map_with_impossible_fields_is_a_fault(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 6; n++) {
		struct rig *r = rig_open(LOAD("2d", "4, %r5", "128"));
		gpul_tensor_map *m = make_map(r, rig_memory(r, 12 * 10 * 4), GPUL_TENSOR_U32, 2, (uint32_t[]){ 12, 10 },
					      (uint16_t[]){ 8, 4 });

		if (n == 0)
			m->box[1] = 0;
		else if (n == 1)
			m->step[1] = 0;
		else if (n == 2)
			m->type = GPUL_TENSOR_TYPES;
		else if (n == 3)
			m->rank = 3;
		else if (n == 4)
			m->box[0] = 12; /* rows of 48 bytes, longer than the 32 bytes of the swizzle */
		else
			m->interleave = 1;
		m->swizzle = n == 4; /* 1: swizzle in rows of 32 bytes */
		assert_int_equal(rig_run(r, "k", 1, 32, rig_memory(r, 32 * 4), (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
		assert_non_null(strstr(r->fault.text, "there is no tensor map of 2 dimensions"));
		rig_close(r);
	}
}

/* 16-byte piece p of row r is stored as piece p ^ r % 8 if the rows have 128 bytes, p ^ r / 2 % 4 if 64, and p ^ r / 4 % 2 if 32. */
static void rows_are_swizzled(void **state)
{
	(void)state;
	for (unsigned swizzle = 1; swizzle <= 3; swizzle++) {
		const unsigned words = 4u << swizzle, pieces = words / 4;
		struct rig *r = rig_open(swizzle == 3   ? LOAD("2d", "%r6, %r6", "1024")
					 : swizzle == 2 ? LOAD("2d", "%r6, %r6", "512")
							: LOAD("2d", "%r6, %r6", "256"));
		uint32_t *tensor = rig_memory(r, 8 * 32 * 4), *out = rig_memory(r, 8 * 32 * 4);
		gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 2, (uint32_t[]){ words, 8 }, (uint16_t[]){ (uint16_t)words, 8 });

		m->swizzle = (uint8_t)swizzle;
		for (unsigned n = 0; n < 8 * words; n++)
			tensor[n] = n;
		rig_expect_ok(r, "k", 1, 8 * words, out, (uintptr_t)m);
		for (unsigned row = 0; row < 8; row++)
			for (unsigned p = 0; p < pieces; p++)
				assert_int_equal(out[row * words + (p ^ row * pieces / 8) * 4], row * words + p * 4);
		rig_close(r);
	}
}

static void a_tensor_of_five_dimensions_is_copied_with_steps(void **state)
{
	struct rig *r = rig_open(LOAD("5d", "%r6, %r3, %r4, %r3, %r6", "128"));
	uint32_t *tensor = rig_memory(r, 4 * 6 * 5 * 4 * 3 * 4), *out = rig_memory(r, 32 * 4);
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_S32, 5, (uint32_t[]){ 4, 6, 5, 4, 3 }, (uint16_t[]){ 4, 3, 2, 1, 2 });

	(void)state;
	m->step[1] = 2; /* a step of 2 copies rows 1 and 3, but not row 2 */
	for (unsigned n = 0; n < 4 * 6 * 5 * 4 * 3; n++)
		tensor[n] = n;
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)m);
	for (unsigned n = 0; n < 32; n++) {
		const unsigned x = n % 4, y = 1 + n / 4 % 2 * 2, z = 2 + n / 8 % 2, u = 1, v = n / 16;

		assert_int_equal(out[n], x + 4 * (y + 6 * (z + 5 * (u + 4 * v))));
	}
	rig_close(r);
}

/* A map for convolutions with 3 x 3 weights, a border of 1 and steps (1, 2): 32 pixels of 4 channels. */
enum { CHANNELS = 8, WIDTH = 5, HEIGHT = 4, IMAGES = 3, PIXELS = 32 };

static gpul_tensor_map *make_pixel_map(struct rig *r, uint32_t *tensor)
{
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 4, (uint32_t[]){ CHANNELS, WIDTH, HEIGHT, IMAGES },
				      (uint16_t[]){ 4, 1, 1, 1 });

	m->im2col = true;
	m->pixels = PIXELS;
	m->lower[0] = m->lower[1] = m->upper[0] = m->upper[1] = -1;
	m->step[2] = 2;
	for (unsigned n = 0; n < CHANNELS * WIDTH * HEIGHT * IMAGES; n++)
		tensor[n] = n + 1;
	return m;
}

/* Return the index in the tensor of channel 4 of pixel n of a copy that starts at (w, h) = (1, 1), with offset (x, y); -1: outside. */
static int place_of_pixel(unsigned n, int x, int y)
{
	const unsigned q = n + 1 * WIDTH + 2; /* position counted from (w, h) = (-1, -1): pixel 0 is in the second row, at w = 1 */
	const int w = (int)(q % WIDTH) - 1 + x, h = (int)(q / WIDTH % 2) * 2 - 1 + y, image = (int)(q / WIDTH / 2);

	return w < 0 || w >= WIDTH || h < 0 || h >= HEIGHT || image >= IMAGES ? -1 : ((image * HEIGHT + h) * WIDTH + w) * CHANNELS + 4;
}

static void pixels_are_loaded_as_for_a_convolution(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") ".shared .align 1024 .b8 s[512]; .shared .align 8 .b64 m;\n"
		     "setp.eq.u32 %p1, %t, 0; mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, 1; mov.u32 %r4, 4; mov.u32 %r6, 0; mov.u16 %h1, 2; mov.u16 %h2, 1;\n"
		     "@%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0; @!%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [m], 512;\n"
		     "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%x, {%r4, %r3, %r3, %r6}], {%h1, %h2};\n"
		     "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%x, {%r4, %r3, %r3, %r6}], [%r2], {%h1, %h2};\n"
		     "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT;\n"
		     "shl.b32 %r7, %t, 2; add.u32 %r7, %r1, %r7; ld.shared.u32 %r8, [%r7]; st.global.u32 [%mine], %r8; ret; }");
	uint32_t *tensor = rig_memory(r, CHANNELS * WIDTH * HEIGHT * IMAGES * 4), *out = rig_memory(r, 4 * PIXELS * 4);
	gpul_tensor_map *m = make_pixel_map(r, tensor);

	(void)state;
	rig_expect_ok(r, "k", 1, 4 * PIXELS, out, (uintptr_t)m);
	for (unsigned n = 0; n < 4 * PIXELS; n++) {
		const int place = place_of_pixel(n / 4, 2, 1);

		assert_int_equal(out[n], place < 0 ? 0 : tensor[place + (int)(n % 4)]);
	}
	m->upper[0] = 1 - WIDTH; /* w = 1 is now past the last pixel; an H200 refuses to start a copy there, too */
	assert_int_equal(rig_run(r, "k", 1, 4 * PIXELS, out, (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "needs the coordinate of a pixel"));
	m->im2col = false;
	assert_int_equal(rig_run(r, "k", 1, 4 * PIXELS, out, (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "there is no tensor map of 4 dimensions and mode im2col"));
	rig_close(r);
}

static void pixels_are_stored_and_added(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") ".shared .align 128 .b8 s[512]; setp.eq.u32 %p1, %t, 0;\n"
		     "mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r2, %r1, %r2; add.u32 %r3, %t, 1; st.shared.u32 [%r2], %r3; mov.u32 %r4, 4;\n"
		     "mov.u32 %r3, 1; mov.u32 %r6, 0; fence.proxy.async; bar.sync 0; @!%p1 exit;\n"
		     "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%x, {%r4, %r3, %r3, %r6}], [%r1];\n"
		     "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group [%x, {%r4, %r3, %r3, %r6}], [%r1];\n"
		     "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret; }");
	const unsigned words = CHANNELS * WIDTH * HEIGHT * IMAGES;
	uint32_t *tensor = rig_memory(r, words * 4), want[CHANNELS * WIDTH * HEIGHT * IMAGES];
	gpul_tensor_map *m = make_pixel_map(r, tensor);

	(void)state;
	memcpy(want, tensor, sizeof want);
	m->lower[0] = m->lower[1] = m->upper[0] = m->upper[1] = 0;
	for (unsigned n = 0, w = 1, h = 1, image = 0; n < PIXELS && image < IMAGES; n++) {
		for (unsigned k = 0; k < 4; k++)
			want[((image * HEIGHT + h) * WIDTH + w) * CHANNELS + 4 + k] = 2 * (4 * n + k + 1);
		if (++w < WIDTH)
			continue;
		w = 0;
		h += 2;
		image += h >= HEIGHT;
		h = h >= HEIGHT ? 0 : h;
	}
	rig_expect_ok(r, "k", 1, 4 * PIXELS, rig_memory(r, 16 * PIXELS), (uintptr_t)m);
	for (unsigned n = 0; n < words; n++)
		assert_int_equal(tensor[n], want[n]);
	for (unsigned n = 0; n < 3; n++) { /* an H200 refuses these maps, too */
		m->lower[0] = n == 0 ? -1 : 0;
		m->upper[1] = n == 1 ? 1 : 0;
		m->upper[0] = n == 2 ? 1 - WIDTH : 0; /* the copy starts at w = 1, past the last pixel */
		assert_int_equal(rig_run(r, "k", 1, 4 * PIXELS, rig_memory(r, 16 * PIXELS), (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
		assert_non_null(
			strstr(r->fault.text, n < 2 ? "needs a map whose pixels are all inside" : "needs the coordinate of a pixel"));
	}
	rig_close(r);
}

/* ---- interleaved layouts: slices of 16 or 32 bytes of channels, of which a copy covers one ---------------------------------- */

static gpul_tensor_map *make_slice_map(struct rig *r, uint32_t *tensor, unsigned interleave, unsigned rank, const uint32_t *dims,
				       const uint16_t *box)
{
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, rank, dims, box);
	uint64_t bytes = 16 * interleave;

	m->interleave = (uint8_t)interleave;
	m->swizzle = interleave == 2;
	for (unsigned d = 0; d < rank; d++) {
		bytes *= dims[d];
		if (d + 1 < rank)
			m->stride[d] = bytes;
	}
	for (unsigned n = 0; n < bytes / 4; n++)
		tensor[n] = n + 1;
	return m;
}

/* A box of 4 x 2 pixels in 2 images of 5 x 4 pixels, from (3, 1) on, slice 2 of 3; slices of 32 bytes are swizzled. */
static void a_box_of_one_slice_is_copied(void **state)
{
	(void)state;
	for (unsigned interleave = 1; interleave <= 2; interleave++) {
		struct rig *r = rig_open(interleave == 1 ? LOAD("4d", "3, %r3, %r4, %r6", "256") : LOAD("4d", "3, %r3, %r4, %r6", "512"));
		const unsigned words = 4 * interleave;
		uint32_t *tensor = rig_memory(r, 5 * 4 * 3 * 2 * words * 4), *out = rig_memory(r, 16 * words * 4);
		gpul_tensor_map *m = make_slice_map(r, tensor, interleave, 4, (uint32_t[]){ 5, 4, 3, 2 }, (uint16_t[]){ 4, 2, 3, 2 });

		rig_expect_ok(r, "k", 1, 16 * words, out, (uintptr_t)m);
		for (unsigned n = 0; n < 16 * words; n++) {
			const unsigned slice = n / words, w = 3 + slice % 4, h = 1 + slice / 4 % 2, image = slice / 8;
			const unsigned at = interleave == 2 ? n ^ slice / 4 % 2 * 4 : n;

			assert_int_equal(out[at], w < 5 ? tensor[(((image * 3 + 2) * 4 + h) * 5 + w) * words + n % words] : 0);
		}
		m->step[0] = 2;
		m->box[0] = 8;              /* 4 pixels */
		m->box[1] = m->step[1] = 2; /* 1 row */
		m->box[3] = m->step[2] = 4; /* 4 images; a copy has 1 slice, whatever the step */
		rig_expect_ok(r, "k", 1, 16 * words, out, (uintptr_t)m);
		assert_int_equal(out[0], tensor[(2 * 4 + 1) * 5 * words + 3 * words]);
		assert_int_equal(out[words], 0);
		rig_close(r);
	}
}

/* Return the index in the tensor (2 images, 2 slices, 6 pixels) of the first word of pixel n of a copy; -1: outside of the tensor.  The
 * copy takes slice 1 of pixels `first` to `last` of each image, from pixel `from` of image 0 on; `offset` is added to each coordinate. */
static int place_of_slice(int n, int from, int first, int last, int offset)
{
	const int q = n + from - first, count = last - first + 1, w = q % count + first + offset, image = q / count;

	return w < 0 || w > 5 || image > 1 ? -1 : ((image * 2 + 1) * 6 + w) * 4;
}

static void pixels_of_a_slice_are_loaded(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") ".shared .align 1024 .b8 s[512]; .shared .align 8 .b64 m;\n"
		     "setp.eq.u32 %p1, %t, 0; mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, 1; mov.u32 %r6, 0; mov.u16 %h1, 1;\n"
		     "@%p1 mbarrier.init.shared.b64 [m], 1; bar.sync 0; @!%p1 bra WAIT; mbarrier.arrive.expect_tx.shared.b64 _, [m], 192;\n"
		     "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%x, {%r3, %r3, %r6}], [%r2], {%h1};\n"
		     "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra WAIT;\n"
		     "shl.b32 %r7, %t, 2; add.u32 %r7, %r1, %r7; ld.shared.u32 %r8, [%r7]; st.global.u32 [%mine], %r8; ret; }");
	uint32_t *tensor = rig_memory(r, 6 * 2 * 2 * 16), *out = rig_memory(r, 12 * 16);
	gpul_tensor_map *m = make_slice_map(r, tensor, 1, 3, (uint32_t[]){ 6, 2, 2 }, (uint16_t[]){ 4, 1, 1 });

	(void)state;
	m->im2col = true;
	m->pixels = 12;
	m->lower[0] = m->upper[0] = -1;
	rig_expect_ok(r, "k", 1, 48, out, (uintptr_t)m);
	for (int n = 0; n < 48; n++) {
		const int place = place_of_slice(n / 4, 1, -1, 4, 1);

		assert_int_equal(out[n], place < 0 ? 0 : tensor[place + n % 4]);
	}
	for (unsigned n = 0; n < 2; n++) { /* an H200 refuses these maps, too */
		m->lower[0] = n == 0 ? 2 : 0;
		m->upper[0] = n == 0 ? 0 : -5;
		assert_int_equal(rig_run(r, "k", 1, 48, out, (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
		assert_non_null(
			strstr(r->fault.text, "begins at coordinate 1 of dimension 0; there the hardware needs the coordinate of a pixel"));
	}
	rig_close(r);
}

static void pixels_of_a_slice_are_stored_and_added(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") ".shared .align 128 .b8 s[256]; setp.eq.u32 %p1, %t, 0;\n"
		     "mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r2, %r1, %r2; add.u32 %r3, %t, 1; st.shared.u32 [%r2], %r3;\n"
		     "mov.u32 %r3, 1; mov.u32 %r6, 0; fence.proxy.async; bar.sync 0; @!%p1 exit;\n"
		     "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%x, {%r3, %r3, %r6}], [%r1];\n"
		     "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.im2col_no_offs.bulk_group [%x, {%r3, %r3, %r6}], [%r1];\n"
		     "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret; }");
	uint32_t *tensor = rig_memory(r, 6 * 2 * 2 * 16), want[6 * 2 * 2 * 4];
	gpul_tensor_map *m = make_slice_map(r, tensor, 1, 3, (uint32_t[]){ 6, 2, 2 }, (uint16_t[]){ 4, 1, 1 });

	(void)state;
	m->im2col = true;
	m->pixels = 9;
	memcpy(want, tensor, sizeof want);
	for (int n = 0; n < 36; n++)
		want[place_of_slice(n / 4, 1, 0, 5, 0) + n % 4] = 2 * ((uint32_t)n + 1);
	rig_expect_ok(r, "k", 1, 36, rig_memory(r, 36 * 4), (uintptr_t)m);
	assert_memory_equal(tensor, want, sizeof want);
	m->lower[0] = 2; /* an H200 refuses this map, too */
	assert_int_equal(rig_run(r, "k", 1, 36, rig_memory(r, 36 * 4), (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "begins at coordinate 1 of dimension 0; there the hardware needs the coordinate of a pixel"));
	rig_close(r);
}

static void a_kernel_changes_the_layout_of_a_map(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT("k") "setp.eq.u32 %p1, %t, 0; @!%p1 exit;\n"
							    "tensormap.replace.tile.interleave_layout.global.b1024.b32 [%x], 2; ret; }");
	gpul_tensor_map *m = make_slice_map(r, rig_memory(r, 64), 1, 3, (uint32_t[]){ 1, 1, 1 }, (uint16_t[]){ 4, 1, 1 });

	(void)state;
	rig_expect_ok(r, "k", 1, 32, rig_memory(r, 128), (uintptr_t)m);
	assert_int_equal(m->interleave, 2);
	rig_close(r);
}

/* ---- stores and reductions -------------------------------------------------------------------------------------------------- */

/* Store a box of 8 x 2 words 1, 2 ... at column 8, row 1, then add the same box. */
static struct rig *open_store_and_add(void)
{
	return rig_open(PTX_HEADER KERNEL_OUT(
		"k") ".shared .align 128 .b8 s[512]; setp.eq.u32 %p1, %t, 0;\n"
		     "mov.u32 %r1, s; shl.b32 %r2, %t, 2; add.u32 %r2, %r1, %r2; add.u32 %r3, %t, 1; st.shared.u32 [%r2], %r3; mov.u32 %r4, 8;\n"
		     "mov.u32 %r5, 1; fence.proxy.async; bar.sync 0; @!%p1 exit;\n"
		     "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%x, {%r4, %r5}]; prefetch.tensormap [%x];\n"
		     "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%x, {%r4, %r5}], [%r1];\n"
		     "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%x, {%r4, %r5}], [%r1];\n"
		     "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret; }");
}

static void boxes_are_stored_and_added(void **state)
{
	struct rig *r = open_store_and_add();
	uint32_t *tensor = rig_memory(r, 12 * 4 * 4);
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 2, (uint32_t[]){ 12, 4 }, (uint16_t[]){ 8, 2 });

	(void)state;
	for (unsigned n = 0; n < 48; n++)
		tensor[n] = 1000;
	rig_expect_ok(r, "k", 1, 32, rig_memory(r, 128), (uintptr_t)m);
	for (unsigned n = 0; n < 48; n++) {
		const unsigned x = n % 12, y = n / 12;

		assert_int_equal(tensor[n], x >= 8 && (y == 1 || y == 2) ? 2 * ((y - 1) * 8 + x - 8 + 1) : 1000);
	}
	rig_close(r);
}

/* As on an H200, a store to a row of 9 words writes whole 16-byte units, here words 8 to 11, except outside of all allocations. */
static void whole_16_bytes_are_written_at_the_end_of_a_row(void **state)
{
	struct rig *r = open_store_and_add();
	uint32_t *tensor = rig_memory(r, 12 * 4 * 4), *small = rig_memory(r, (12 * 2 + 9) * 4);
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 2, (uint32_t[]){ 9, 4 }, (uint16_t[]){ 8, 2 });

	(void)state;
	m->stride[0] = 48;
	for (unsigned n = 0; n < 48; n++)
		tensor[n] = 1000;
	rig_expect_ok(r, "k", 1, 32, rig_memory(r, 128), (uintptr_t)m);
	for (unsigned n = 0; n < 48; n++) {
		const unsigned x = n % 12, y = n / 12;

		assert_int_equal(tensor[n], x >= 8 && (y == 1 || y == 2) ? 2 * ((y - 1) * 8 + x - 8 + 1) : 1000);
	}
	m->address = (uintptr_t)small;
	rig_expect_ok(r, "k", 1, 32, rig_memory(r, 128), (uintptr_t)m);
	assert_int_equal(small[12 + 11], 2 * 4);
	assert_int_equal(small[12 * 2 + 8], 2 * 9);
	assert_int_equal(small[12 * 2 + 9], 0); /* this word is outside of all allocations */
	rig_close(r);
}

static void a_block_sends_its_box_to_the_whole_cluster(void **state)
{
	struct rig *r = rig_open(
		PTX_HEADER
		".visible .entry k(.param .u64 out, .param .u64 x) .reqnctapercluster 2 {\n"
		".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b16 %h; .reg .b64 %o, %x, %d; .shared .align 128 .b8 s[128]; .shared .align 8 .b64 m;\n"
		"ld.param.u64 %o, [out]; ld.param.u64 %x, [x]; mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, %tid.x; mov.u32 %r4, %cluster_ctarank;\n"
		"setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared.b64 [m], 1; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; setp.eq.and.u32 %p2, %r4, 1, %p1; mov.u16 %h, 3; mov.u32 %r5, 0; @!%p2 bra WAIT;\n"
		"cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%x, {%r5}], [%r2], %h;\n"
		"WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [m], 0; @!%p3 bra WAIT; shl.b32 %r6, %r3, 2; add.u32 %r6, %r1, %r6;\n"
		"ld.shared.u32 %r7, [%r6]; mad.lo.u32 %r8, %r4, 32, %r3; mad.wide.u32 %d, %r8, 4, %o; st.global.u32 [%d], %r7;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; ret; }");
	uint32_t *tensor = rig_memory(r, 128), *out = rig_memory(r, 256);
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 1, (uint32_t[]){ 32 }, (uint16_t[]){ 32 });

	(void)state;
	for (unsigned n = 0; n < 32; n++)
		tensor[n] = 3 * n;
	rig_expect_ok(r, "k", 2, 32, out, (uintptr_t)m);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 3 * (n % 32));
	rig_close(r);
}

/* A reduction of a box with rows of 4 elements, from the given row on. */
#define REDUCTION(operation, row) \
	PTX_HEADER KERNEL_OUT( \
		"k") ".shared .align 128 .b8 s[64]; setp.eq.u32 %p1, %t, 0; mov.u32 %r1, s; mov.u32 %r4, 0; mov.u32 %r5, " row ";\n" \
		     "@!%p1 exit; cp.reduce.async.bulk.tensor.2d.global.shared::cta." operation \
		     ".tile.bulk_group [%x, {%r4, %r5}], [%r1];\n" \
		     "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; ret; }"

/* An H200 gives the same faults. */
static void a_write_before_the_tensor_or_without_an_operation_is_a_fault(void **state)
{
	/* clang-format off */
	static const struct { const char *ptx; gpul_tensor_type type; const char *text; } cases[] = {
		{ REDUCTION("add", "0"), GPUL_TENSOR_U32, NULL },
		{ REDUCTION("add", "0"), GPUL_TENSOR_TF32, NULL },
		{ REDUCTION("min", "0"), GPUL_TENSOR_S64, NULL },
		{ REDUCTION("add", "9"), GPUL_TENSOR_U32, NULL },
		{ REDUCTION("add", "-1"), GPUL_TENSOR_U32, "coordinate -1 of dimension 1; there the hardware needs a coordinate of at least 0" },
		{ REDUCTION("add", "0"), GPUL_TENSOR_S64, "is not defined" },
		{ REDUCTION("xor", "0"), GPUL_TENSOR_S64, "is not defined" },
		{ REDUCTION("min", "0"), GPUL_TENSOR_F32, "is not defined" },
		{ REDUCTION("inc", "0"), GPUL_TENSOR_S32, "is not defined" },
	};
	/* clang-format on */

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		struct rig *r = rig_open(cases[k].ptx);
		gpul_tensor_map *m = make_map(r, rig_memory(r, 256), cases[k].type, 2, (uint32_t[]){ 4, 4 }, (uint16_t[]){ 4, 2 });
		const int want = cases[k].text ? GPUL_EXEC_ILLEGAL_INSTRUCTION : GPUL_EXEC_OK;

		assert_int_equal(rig_run(r, "k", 1, 32, rig_memory(r, 128), (uintptr_t)m), want);
		if (cases[k].text)
			assert_non_null(strstr(r->fault.text, cases[k].text));
		rig_close(r);
	}
}

static void a_block_sends_bytes_to_the_whole_cluster(void **state)
{
	struct rig *r = rig_open(
		PTX_HEADER
		".visible .entry k(.param .u64 out, .param .u64 x) .reqnctapercluster 2 {\n"
		".reg .pred %p<4>; .reg .b32 %r<16>; .reg .b16 %h; .reg .b64 %o, %x, %d; .shared .align 128 .b8 s[128]; .shared .align 8 .b64 m;\n"
		"ld.param.u64 %o, [out]; ld.param.u64 %x, [x]; mov.u32 %r1, s; mov.u32 %r2, m; mov.u32 %r3, %tid.x; mov.u32 %r4, %cluster_ctarank;\n"
		"setp.eq.u32 %p1, %r3, 0; @%p1 mbarrier.init.shared.b64 [m], 1; @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [m], 128;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; setp.eq.and.u32 %p2, %r4, 1, %p1; mov.u16 %h, 3; @!%p2 bra WAIT;\n"
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%x], 128, [%r2], %h;\n"
		"WAIT: mbarrier.try_wait.parity.shared.b64 %p3, [m], 0; @!%p3 bra WAIT; shl.b32 %r6, %r3, 2; add.u32 %r6, %r1, %r6;\n"
		"ld.shared.u32 %r7, [%r6]; mad.lo.u32 %r8, %r4, 32, %r3; mad.wide.u32 %d, %r8, 4, %o; st.global.u32 [%d], %r7;\n"
		"barrier.cluster.arrive; barrier.cluster.wait; ret; }");
	uint32_t *from = rig_memory(r, 128), *out = rig_memory(r, 256);

	(void)state;
	for (unsigned n = 0; n < 32; n++)
		from[n] = 3 * n;
	rig_expect_ok(r, "k", 2, 32, out, (uintptr_t)from);
	for (unsigned n = 0; n < 64; n++)
		assert_int_equal(out[n], 3 * (n % 32));
	rig_close(r);
}

/* An H200 gives this fault, too. */
static void a_box_that_does_not_start_at_16_bytes_of_a_row_is_a_fault(void **state)
{
	struct rig *r = rig_open(LOAD("1d", "%r4", "128"));
	uint32_t *tensor = rig_memory(r, 128), *out = rig_memory(r, 128);
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 1, (uint32_t[]){ 32 }, (uint16_t[]){ 32 });

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 32, out, (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "coordinate 2 of dimension 0, which is 8 bytes from"));
	rig_close(r);
}

/* The box has 2^36 bytes, a size that does not fit in 32 bits. */
static void a_box_larger_than_shared_memory_is_a_fault(void **state)
{
	struct rig *r = rig_open(LOAD("5d", "%r6, %r6, %r6, %r6, %r6", "128"));
	gpul_tensor_map *m = make_map(r, rig_memory(r, 16), GPUL_TENSOR_U8, 5, (uint32_t[]){ 16, 1, 1, 1, 1 },
				      (uint16_t[]){ 16, 256, 256, 256, 256 });

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 32, rig_memory(r, 128), (uintptr_t)m), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "a tensor copy needs 68719476736 bytes"));
	rig_close(r);
}

static void a_wrong_map_or_tensor_is_a_fault(void **state)
{
	struct rig *r = rig_open(LOAD("1d", "%r6", "128"));
	uint32_t *tensor = rig_memory(r, 128), *out = rig_memory(r, 128);
	gpul_tensor_map *m = make_map(r, tensor, GPUL_TENSOR_U32, 1, (uint32_t[]){ 32 }, (uint16_t[]){ 32 });

	(void)state;
	m->last[0] = UINT32_MAX;
	m->address += 64;
	assert_int_equal(rig_run(r, "k", 1, 32, out, (uintptr_t)m), GPUL_EXEC_ILLEGAL_ADDRESS);
	m->mark = 0;
	assert_int_equal(rig_run(r, "k", 1, 32, out, (uintptr_t)m), GPUL_EXEC_ILLEGAL_INSTRUCTION);
	assert_non_null(strstr(r->fault.text, "there is no tensor map of 1 dimensions"));
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_box_is_copied_and_filled_with_zeros_outside_of_the_tensor),
		cmocka_unit_test(a_kernel_makes_a_map_and_loads_a_box_by_it),
		cmocka_unit_test(a_map_with_impossible_fields_is_a_fault),
		cmocka_unit_test(rows_are_swizzled),
		cmocka_unit_test(a_tensor_of_five_dimensions_is_copied_with_steps),
		cmocka_unit_test(pixels_are_loaded_as_for_a_convolution),
		cmocka_unit_test(pixels_are_stored_and_added),
		cmocka_unit_test(a_box_of_one_slice_is_copied),
		cmocka_unit_test(pixels_of_a_slice_are_loaded),
		cmocka_unit_test(pixels_of_a_slice_are_stored_and_added),
		cmocka_unit_test(a_kernel_changes_the_layout_of_a_map),
		cmocka_unit_test(boxes_are_stored_and_added),
		cmocka_unit_test(whole_16_bytes_are_written_at_the_end_of_a_row),
		cmocka_unit_test(a_block_sends_its_box_to_the_whole_cluster),
		cmocka_unit_test(a_block_sends_bytes_to_the_whole_cluster),
		cmocka_unit_test(a_box_that_does_not_start_at_16_bytes_of_a_row_is_a_fault),
		cmocka_unit_test(a_write_before_the_tensor_or_without_an_operation_is_a_fault),
		cmocka_unit_test(a_box_larger_than_shared_memory_is_a_fault),
		cmocka_unit_test(a_wrong_map_or_tensor_is_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
