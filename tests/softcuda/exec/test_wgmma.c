/* test_wgmma.c — wgmma with matrices in shared memory in all layouts; the elements are small integers, so that sums are exact. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

enum { COLUMNS = 32, K = 16, A_BYTES = 16384, B_BYTES = 8192 };

static int a_at(unsigned row, unsigned k)
{
	return (int)((row * 7 + k * 3) % 5) - 2;
}
static int b_at(unsigned k, unsigned column)
{
	return (int)((column * 5 + k) % 7) - 3;
}

static uint16_t half_of(int x)
{
	static const uint16_t halves[] = { 0, 0x3c00, 0x4000, 0x4200 };

	return (uint16_t)(x < 0 ? 0x8000 | halves[-x] : halves[x]);
}

/* Return the byte offset of 16-bit element k of row r.  pieces: 1: not swizzled; 2, 4 or 8: swizzled in rows of pieces * 16 bytes. */
static unsigned by_row(unsigned pieces, unsigned r, unsigned k)
{
	const unsigned in_row = k / 8, eights = r / 8, row = r % 8;

	if (pieces == 1)
		return eights * 256 + in_row * 128 + row * 16 + k % 8 * 2;
	return eights * 128 * pieces + row * 16 * pieces + (in_row ^ (row / (8 / pieces))) * 16 + k % 8 * 2;
}

/* Like by_row(), but elements with consecutive r are contiguous.  Swizzled, the leading byte offset is 4096 (in r), the stride 2048 (in k);
 * not swizzled, they are 128 (in k) and 1024 (in r). */
static unsigned by_column(unsigned pieces, unsigned r, unsigned k)
{
	const unsigned piece = r / 8 % pieces, outer = r / 8 / pieces;

	if (pieces == 1)
		return outer * 1024 + k / 8 * 128 + k % 8 * 16 + r % 8 * 2;
	return outer * 4096 + k / 8 * 2048 + k % 8 * 16 * pieces + (piece ^ (k % 8 / (8 / pieces))) * 16 + r % 8 * 2;
}

static uint64_t descriptor(unsigned start, unsigned pieces, bool column)
{
	static const uint64_t swizzle[] = { 0, 0, 3, 0, 2, 0, 0, 0, 1 };
	const uint64_t leading = column ? (pieces == 1 ? 128 : 4096) : 128;
	const uint64_t stride = column ? (pieces == 1 ? 1024 : 2048) : pieces == 1 ? 256 : 128u * pieces;

	return start / 16 | leading / 16 << 16 | stride / 16 << 32 | swizzle[pieces] << 62;
}

static const char kernel[] =
	".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 da, .param .u64 db) {\n"
	".shared .align 1024 .b8 s[24576]; .reg .b64 %%o, %%i, %%a, %%b; .reg .b32 %%t, %%n, %%s; .reg .pred %%p; .reg .f32 d<16>; .reg .b32 x<4>;\n"
	"ld.param.u64 %%o, [out]; ld.param.u64 %%i, [in]; ld.param.u64 %%a, [da]; ld.param.u64 %%b, [db]; mov.u32 %%t, %%tid.x;\n"
	"shl.b32 %%n, %%t, 2; mov.u32 %%s, s; add.u32 %%s, %%s, %%n; mad.wide.u32 %%i, %%t, 4, %%i; mov.u32 %%n, 0;\n"
	"COPY: ld.global.b32 x0, [%%i]; st.shared.b32 [%%s], x0; add.u64 %%i, %%i, 512; add.u32 %%s, %%s, 512; add.u32 %%n, %%n, 1;\n"
	"setp.lt.u32 %%p, %%n, 48; @%%p bra COPY;\n"
	"fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned; setp.eq.u32 %%p, %%n, 0;\n"
	"wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {d0,d1,d2,d3,d4,d5,d6,d7,d8,d9,d10,d11,d12,d13,d14,d15}, %%a, %%b, %%p, 1, -1, %d, %d;\n"
	"setp.ne.u32 %%p, %%n, 0;\n"
	"wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {d0,d1,d2,d3,d4,d5,d6,d7,d8,d9,d10,d11,d12,d13,d14,d15}, %%a, %%b, %%p, 1, -1, %d, %d;\n"
	"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mad.wide.u32 %%o, %%t, 64, %%o;\n"
	"st.global.v4.f32 [%%o], {d0,d1,d2,d3}; st.global.v4.f32 [%%o+16], {d4,d5,d6,d7}; st.global.v4.f32 [%%o+32], {d8,d9,d10,d11};\n"
	"st.global.v4.f32 [%%o+48], {d12,d13,d14,d15}; ret; }\n";

struct rig4 {
	uint64_t out, in, a, b;
};

static gpul_exec_fault_kind run4(struct rig *r, const struct rig4 *params)
{
	const gpul_exec_launch_config config = {
		.kernel = gpul_exec_find_kernel(r->program, "k"), .grid = { 1, 1, 1 }, .block = { 128, 1, 1 }, .params = params
	};
	gpul_exec_launch *l;
	gpul_error err = { 0 };

	if (gpul_exec_launch_start(r->machine, &config, &l, &err))
		fail_msg("%s", err.text);
	gpul_exec_launch_wait(l, -1, &r->fault);
	gpul_exec_launch_release(l);
	return r->fault.kind;
}

/* Compute -A B twice: the first instruction sets D, the second adds to D. */
static void check_layout(unsigned pieces, bool a_column, bool b_column)
{
	char text[4096];
	struct rig *r;
	uint8_t *in;
	float *out;

	snprintf(text, sizeof text, kernel, a_column, b_column, a_column, b_column);
	r = rig_open(text);
	in = rig_memory(r, A_BYTES + B_BYTES);
	out = rig_memory(r, 128 * 64);
	for (unsigned k = 0; k < K; k++) {
		for (unsigned row = 0; row < 64; row++)
			*(uint16_t *)(void *)(in + (a_column ? by_column : by_row)(pieces, row, k)) = half_of(a_at(row, k));
		for (unsigned n = 0; n < COLUMNS; n++)
			*(uint16_t *)(void *)(in + A_BYTES + (b_column ? by_column : by_row)(pieces, n, k)) = half_of(b_at(k, n));
	}
	const struct rig4 params = { (uintptr_t)out, (uintptr_t)in, descriptor(0, pieces, a_column),
				     descriptor(A_BYTES, pieces, b_column) };
	assert_int_equal(run4(r, &params), GPUL_EXEC_OK);
	for (unsigned row = 0; row < 64; row++)
		for (unsigned n = 0; n < COLUMNS; n++) {
			const unsigned lane = row % 8 * 4 + n % 8 / 2 + row / 16 * 32, reg = n / 8 * 4 + row / 8 % 2 * 2 + n % 2;
			int want = 0;

			for (unsigned k = 0; k < K; k++)
				want -= 2 * a_at(row, k) * b_at(k, n);
			if (out[lane * 16 + reg] != (float)want)
				fail_msg("rows of %u pieces, %s, %s: row %u, column %u is %g, not %d", pieces,
					 a_column ? "A by column" : "A by row", b_column ? "B by row" : "B by column", row, n,
					 (double)out[lane * 16 + reg], want);
		}
	rig_close(r);
}

static void wgmma_reads_matrices_in_every_layout(void **state)
{
	(void)state;
	for (unsigned pieces = 1; pieces <= 8; pieces *= 2)
		for (unsigned order = 0; order < 4; order++)
			check_layout(pieces, order & 1, order & 2);
}

/* ---- sparse: A stores two of every four elements of a row, and their positions ------------------------------------------------ */

enum { SPARSE_K = 32 };

static const char sparse_kernel[] =
	".version 8.2\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in, .param .u64 da, .param .u64 db) {\n"
	".shared .align 1024 .b8 s[4096]; .reg .b64 %%o, %%i, %%a, %%b; .reg .b32 %%t, %%n, %%s, %%e; .reg .pred %%p; .reg .f32 d<16>; .reg .b32 x<4>;\n"
	"ld.param.u64 %%o, [out]; ld.param.u64 %%i, [in]; ld.param.u64 %%a, [da]; ld.param.u64 %%b, [db]; mov.u32 %%t, %%tid.x;\n"
	"shl.b32 %%n, %%t, 2; mov.u32 %%s, s; add.u32 %%s, %%s, %%n; mad.wide.u32 %%i, %%t, 4, %%i; mov.u32 %%n, 0;\n"
	"COPY: ld.global.b32 x0, [%%i]; st.shared.b32 [%%s], x0; add.u64 %%i, %%i, 512; add.u32 %%s, %%s, 512; add.u32 %%n, %%n, 1;\n"
	"setp.lt.u32 %%p, %%n, 8; @%%p bra COPY; ld.global.b32 %%e, [%%i];\n"
	"fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned; setp.eq.u32 %%p, %%n, 0;\n"
	"wgmma.mma_async.sp.sync.aligned.m64n32k32.f32.f16.f16 {d0,d1,d2,d3,d4,d5,d6,d7,d8,d9,d10,d11,d12,d13,d14,d15}, %%a, %%b, %%e, %u, %%p, 1, 1, 0, 0;\n"
	"wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mad.wide.u32 %%o, %%t, 64, %%o;\n"
	"st.global.v4.f32 [%%o], {d0,d1,d2,d3}; st.global.v4.f32 [%%o+16], {d4,d5,d6,d7}; st.global.v4.f32 [%%o+32], {d8,d9,d10,d11};\n"
	"st.global.v4.f32 [%%o+48], {d12,d13,d14,d15}; ret; }\n";

/* Set `at` to the positions of the two stored elements in group `four` of a row. */
static void positions(unsigned row, unsigned four, unsigned at[2])
{
	static const uint8_t pairs[6][2] = { { 0, 1 }, { 0, 2 }, { 0, 3 }, { 1, 2 }, { 1, 3 }, { 2, 3 } };

	at[0] = pairs[(row * 5 + four * 3 + row / 4) % 6][0];
	at[1] = pairs[(row * 5 + four * 3 + row / 4) % 6][1];
}

/* Fill A with 64 rows of 16 stored elements, and B with 32 columns of 32 elements.  Core matrices of the same rows are adjacent in both. */
static void fill_sparse(uint16_t *a, uint16_t *b, uint32_t *metadata, unsigned selector)
{
	for (unsigned row = 0; row < 64; row++)
		for (unsigned four = 0; four < 8; four++) {
			/* two of lanes 4 g to 4 g + 3 hold metadata of rows g (low half) and g + 8 (high half), each for 16 elements */
			const unsigned lane = row / 16 * 32 + row % 8 * 4 + 2 * selector + four / 4,
				       shift = row / 8 % 2 * 16 + four % 4 * 4;
			unsigned at[2];

			positions(row, four, at);
			metadata[lane] |= (at[0] | at[1] << 2) << shift;
			for (unsigned e = 0; e < 2; e++) {
				const unsigned c = 2 * four + e;

				a[row / 8 * 128 + c / 8 * 64 + row % 8 * 8 + c % 8] = half_of(a_at(row, 4 * four + at[e]));
			}
		}
	for (unsigned n = 0; n < COLUMNS; n++)
		for (unsigned k = 0; k < SPARSE_K; k++)
			b[n / 8 * 256 + k / 8 * 64 + n % 8 * 8 + k % 8] = half_of(b_at(k, n));
}

static void check_sparse(unsigned selector)
{
	char text[4096];
	struct rig *r;
	uint8_t *in;
	float *out;

	snprintf(text, sizeof text, sparse_kernel, selector);
	r = rig_open(text);
	in = rig_memory(r, 4096 + 512);
	out = rig_memory(r, 128 * 64);
	fill_sparse((uint16_t *)(void *)in, (uint16_t *)(void *)(in + 2048), (uint32_t *)(void *)(in + 4096), selector);
	/* core matrices that are adjacent in k are 128 bytes apart; groups of eight rows are 256 bytes apart in A, 512 in B */
	const struct rig4 params = { (uintptr_t)out, (uintptr_t)in, 8u << 16 | (uint64_t)16 << 32,
				     2048 / 16 | 8u << 16 | (uint64_t)32 << 32 };
	assert_int_equal(run4(r, &params), GPUL_EXEC_OK);
	for (unsigned row = 0; row < 64; row++)
		for (unsigned n = 0; n < COLUMNS; n++) {
			const unsigned lane = row % 8 * 4 + n % 8 / 2 + row / 16 * 32, reg = n / 8 * 4 + row / 8 % 2 * 2 + n % 2;
			int want = 0;

			for (unsigned four = 0; four < SPARSE_K / 4; four++) {
				unsigned at[2];

				positions(row, four, at);
				for (unsigned e = 0; e < 2; e++)
					want += a_at(row, 4 * four + at[e]) * b_at(4 * four + at[e], n);
			}
			if (out[lane * 16 + reg] != (float)want)
				fail_msg("selector %u: row %u, column %u is %g, not %d", selector, row, n, (double)out[lane * 16 + reg],
					 want);
		}
	rig_close(r);
}

static void sparse_wgmma_multiplies_the_stored_elements(void **state)
{
	(void)state;
	check_sparse(0);
	check_sparse(1);
}

static void a_matrix_outside_of_shared_memory_is_a_fault(void **state)
{
	char text[4096];
	struct rig *r;

	(void)state;
	snprintf(text, sizeof text, kernel, 0, 0, 0, 0);
	r = rig_open(text);
	const struct rig4 params = { (uintptr_t)rig_memory(r, 8192), (uintptr_t)rig_memory(r, A_BYTES + B_BYTES),
				     descriptor(24576 - 64, 1, false), descriptor(0, 1, false) };
	assert_int_equal(run4(r, &params), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "descriptor"));
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wgmma_reads_matrices_in_every_layout),
		cmocka_unit_test(sparse_wgmma_multiplies_the_stored_elements),
		cmocka_unit_test(a_matrix_outside_of_shared_memory_is_a_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
