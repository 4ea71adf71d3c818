/* test_alu_video.c — video instructions; results were computed by hand from the ISA's pseudocode,
 * or observed on sm_90 where a comment says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/softcuda/exec/alu/alu_rig.h"

static uint32_t run_video(const struct rig_build *b, const struct video *v, uint32_t x, uint32_t y, uint32_t z)
{
	int64_t imm;
	memcpy(&imm, v, sizeof(imm));
	struct rig *r = rig_reset(0x100);
	rig_set(r, SLOT_A, 8, 32, x);
	rig_set(r, SLOT_B, 8, 32, y);
	rig_set(r, SLOT_C, 8, 32, z);
	rig_run(r, b, OP_VIDEO, 0, 0, imm);
	assert_int_equal(rig_get(r, SLOT_D, 9, 32), 0x5a5a5a5a);
	return (uint32_t)rig_get(r, SLOT_D, 8, 32);
}

static void scalar_forms_select_saturate_and_combine(void **state)
{
	(void)state;
	enum { D = VIDEO_D_SIGNED, A = VIDEO_A_SIGNED, B = VIDEO_B_SIGNED, SAT = VIDEO_SAT };
	/* clang-format off */
	static const struct { struct video v; uint32_t a, b, c, d; } rows[] = {
		/* byte 0xff of a is -1 if it is signed (the sum is 254), and 255 if it is unsigned (the sum is 510) */
		{ { .op = VIDEO_ADD, .flags = D | A, .a_selector = GPUL_PTX_SEL_B3, .b_selector = GPUL_PTX_SEL_B0 }, 0xff000000, 0xff, 0, 254 },
		{ { .op = VIDEO_ADD, .a_selector = GPUL_PTX_SEL_B3, .b_selector = GPUL_PTX_SEL_B0 }, 0xff000000, 0xff, 0, 510 },
		/* 2^31 - 1 + 1 saturates as s32, and wraps without .sat */
		{ { .op = VIDEO_ADD, .flags = D | A | B | SAT }, 0x7fffffff, 1, 0, 0x7fffffff },
		{ { .op = VIDEO_ADD, .flags = D | A | B }, 0x7fffffff, 1, 0, 0x80000000 },
		{ { .op = VIDEO_SUB, .flags = SAT }, 3, 5, 0, 0 },
		{ { .op = VIDEO_ABSDIFF, .flags = A | B }, 0x80000000, 0x7fffffff, 0, 0xffffffff },
		{ { .op = VIDEO_MIN, .flags = D | A }, 0xffffffff, 7, 0, 0xffffffff },
		{ { .op = VIDEO_MAX, .flags = A }, 0xffffffff, 7, 0, 7 },
		/* the sum is clamped to an unsigned byte, which is merged into byte 2 of c */
		{ { .op = VIDEO_ADD, .flags = SAT, .second = VIDEO_MERGE, .d_selector = GPUL_PTX_SEL_B2 }, 200, 100, 0x11223344, 0x11ff3344 },
		{ { .op = VIDEO_SUB, .flags = D | A | B | SAT, .second = VIDEO_MERGE, .d_selector = GPUL_PTX_SEL_H1 },
		  0, 40000, 0x11223344, 0x00003344 },  /* observed on sm_90: .h1 saturates to 0 */
		{ { .op = VIDEO_SUB, .flags = D | A | B | SAT, .second = VIDEO_MERGE, .d_selector = GPUL_PTX_SEL_B2 },
		  0, 40000, 0x11223344, 0x117f3344 },  /* observed on sm_90: only the upper limit applies, as if unsigned */
		/* observed on sm_90: the result of a shift is clamped to 32 bits, then truncated to the selected half word */
		{ { .op = VIDEO_SHR, .flags = SAT, .second = VIDEO_MERGE, .d_selector = GPUL_PTX_SEL_H0 }, 0xdeadbeef, 0, 0x11223344, 0x1122beef },
		{ { .op = VIDEO_SHR, .flags = D | SAT, .second = VIDEO_MERGE, .d_selector = GPUL_PTX_SEL_H0 }, 0x80000000, 0, 1, 0xffff },
		/* observed on sm_90: before a second operation, .sat applies only the lower limit to an unsigned first result */
		{ { .op = VIDEO_ADD, .flags = SAT, .second = VIDEO_2ND_ADD }, 0xffffffff, 1, 5, 5 },
		{ { .op = VIDEO_SUB, .flags = SAT, .second = VIDEO_2ND_ADD }, 3, 5, 7, 7 },
		{ { .op = VIDEO_ABSDIFF, .flags = A | SAT, .second = VIDEO_2ND_MAX }, 0xffffffff, 0xffffffff, 1, 0 },
		{ { .op = VIDEO_SUB, .flags = SAT, .second = VIDEO_2ND_MIN }, 0x80000000, 0, 0xffffffff, 0xffffffff },
		{ { .op = VIDEO_SHR, .flags = SAT, .second = VIDEO_2ND_MAX }, 0x80ff7f01, 0, 0xdeadbeef, 0x80ff7f01 },
		/* observed on sm_90: without .sat, all 64 bits of a shift's result are compared */
		{ { .op = VIDEO_SHL, .flags = D, .second = VIDEO_2ND_MAX }, 0xffff, 64, 0xdeadbeef, 0 },
		{ { .op = VIDEO_SHL, .second = VIDEO_2ND_MAX }, 0x12345678, 32, 0xdeadbeef, 0 },
		{ { .op = VIDEO_SET, .compare = CMP_LT, .flags = A | D, .second = VIDEO_2ND_MAX }, 0, 0, 0x80000000, 0 },
		{ { .op = VIDEO_ADD, .second = VIDEO_2ND_ADD }, 1, 2, 100, 103 },
		{ { .op = VIDEO_SUB, .flags = D, .second = VIDEO_2ND_MIN }, 1, 2, 100, 0xffffffff },
		{ { .op = VIDEO_SUB, .second = VIDEO_2ND_MIN }, 1, 2, 100, 100 },
		/* observed on sm_90: the low 32 bits of a sum, sign-extended, are compared with c as unsigned
		 * 64-bit numbers; results of other operations are compared in full */
		{ { .op = VIDEO_ADD, .second = VIDEO_2ND_MAX }, 0, 0x80000000, 0xffffffff, 0x80000000 },
		{ { .op = VIDEO_ADD, .second = VIDEO_2ND_MIN }, 0, 0x80000000, 0xffffffff, 0xffffffff },
		{ { .op = VIDEO_MIN, .flags = A | B, .second = VIDEO_2ND_MAX }, 0xffffffef, 5, 0xffffffff, 0xffffffef },
		{ { .op = VIDEO_ABSDIFF, .flags = A, .second = VIDEO_2ND_MAX }, 0xffffffff, 0xffffffff, 1, 0 },
		{ { .op = VIDEO_ABSDIFF, .flags = D | A | B, .second = VIDEO_2ND_MIN }, 0, 0x80000000, 0, 0 },
		{ { .op = VIDEO_SHL }, 1, 40, 0, 0 }, { { .op = VIDEO_SHL, .flags = VIDEO_WRAP }, 1, 40, 0, 256 },
		/* observed on sm_90: with .sat, the intermediate result has 34 bits, and bits shifted beyond them are lost */
		{ { .op = VIDEO_SHL, .flags = SAT }, 0x80000000, 7, 0, 0 }, { { .op = VIDEO_SHL, .flags = SAT }, 3, 31, 0, 0xffffffff },
		{ { .op = VIDEO_SHL, .flags = D | A | SAT }, 0x12345678, 8, 0, 0x80000000 },
		{ { .op = VIDEO_SHR, .flags = A | D }, 0x80000000, 40, 0, 0xffffffff }, { { .op = VIDEO_SHR }, 0x80000000, 31, 0, 1 },
		{ { .op = VIDEO_SET, .compare = CMP_LT, .flags = A }, 0xffffffff, 0, 0, 1 },
		{ { .op = VIDEO_SET, .compare = CMP_LT }, 0xffffffff, 0, 0, 0 },
		{ { .op = VIDEO_MAD, .flags = A | B }, 0xfffffffe, 3, 10, 4 }, { { .op = VIDEO_MAD, .shift = 7 }, 1000, 1000, 24, 7812 },
		{ { .op = VIDEO_MAD, .flags = VIDEO_NEG_PRODUCT }, 6, 7, 50, 8 }, { { .op = VIDEO_MAD, .flags = VIDEO_PLUS_ONE }, 6, 7, 0, 43 },
		/* observed on sm_90: 32-bit operands are signed whatever their types; with unsigned types, the result is shifted
		 * logically, and clamped to u32 */
		{ { .op = VIDEO_MAD, .flags = SAT }, 0xffffffff, 0xffffffff, 5, 6 },
		{ { .op = VIDEO_MAD, .flags = SAT }, 0, 0, 0x80000000, 0 },
		{ { .op = VIDEO_MAD, .flags = SAT, .shift = 15 }, 0, 0, 0x80000000, 0xffffffff },
		{ { .op = VIDEO_MAD, .shift = 7 }, 0, 0, 0x80000000, 0xff000000 },
		{ { .op = VIDEO_MAD, .flags = D | A | SAT, .shift = 15 }, 1, 0x80000000, 0, 0xffff0000 },
		{ { .op = VIDEO_MAD, .flags = SAT | A | VIDEO_NEG_C }, 0x80000000, 2, 1, 0x80000000 },
	};
	/* clang-format on */
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			const uint32_t d = run_video(b, &rows[k].v, rows[k].a, rows[k].b, rows[k].c);
			if (d != rows[k].d)
				fail_msg("row %u: %#x, not %#x", k, d, rows[k].d);
		}
}

static uint32_t run_simd(const struct rig_build *b, const struct video_simd *v, unsigned parts, uint32_t x, uint32_t y, uint32_t z)
{
	int64_t imm;
	memcpy(&imm, v, sizeof(imm));
	struct rig *r = rig_reset(0x80000000);
	rig_set(r, SLOT_A, 31, 32, x);
	rig_set(r, SLOT_B, 31, 32, y);
	rig_set(r, SLOT_C, 31, 32, z);
	rig_run(r, b, OP_VIDEO_SIMD, 0, parts, imm);
	return (uint32_t)rig_get(r, SLOT_D, 31, 32);
}

/* The value of `picks` without selectors, 3 bits for each part (byte or half): the parts of a in order, then those of b. */
#define OWN_BYTES  { (uint8_t)(0 | 1 << 3 | 2 << 6), (uint8_t)(2 >> 2 | 3 << 1 | 4 << 4 | 5 << 7), (uint8_t)(5 >> 1 | 6 << 2 | 7 << 5) }
#define OWN_HALVES { 0 | 1 << 3, (uint8_t)(2 << 4 | 3 << 7), 3 >> 1 }

static void simd_forms_compute_each_half_or_byte(void **state)
{
	(void)state;
	enum { D = VIDEO_D_SIGNED, A = VIDEO_A_SIGNED, B = VIDEO_B_SIGNED, SAT = VIDEO_SAT };
	/* clang-format off */
	static const struct { struct video_simd v; unsigned parts; uint32_t a, b, c, d; } rows[] = {
		{ { .op = VIDEO_ADD, .second = VIDEO_MERGE, .parts = 15, .picks = OWN_BYTES }, 4, 0x01ff7f80, 0x01020304, 0, 0x02018284 },
		{ { .op = VIDEO_ADD, .second = VIDEO_MERGE, .parts = 15, .flags = SAT, .picks = OWN_BYTES }, 4, 0x01ff7f80, 0x01020304, 0, 0x02ff8284 },
		{ { .op = VIDEO_ADD, .second = VIDEO_MERGE, .parts = 5, .picks = OWN_BYTES }, 4, 0x01ff7f80, 0x01020304, 0xaabbccdd, 0xaa01cc84 },
		{ { .op = VIDEO_ABSDIFF, .second = VIDEO_2ND_ADD, .parts = 15, .picks = OWN_BYTES }, 4, 0x10203040, 0x40302010, 1000, 1128 },
		{ { .op = VIDEO_SUB, .second = VIDEO_MERGE, .parts = 3, .flags = D | A | B | SAT, .picks = OWN_HALVES }, 2, 0x80000005, 0x00010007, 0, 0x8000fffe },
		{ { .op = VIDEO_AVRG, .second = VIDEO_MERGE, .parts = 3, .flags = D | A | B, .picks = OWN_HALVES }, 2, 0x0003fffd, 0x00040000, 0, 0x0004fffe },
		{ { .op = VIDEO_SET, .second = VIDEO_MERGE, .compare = CMP_GT, .parts = 3, .picks = OWN_HALVES }, 2, 0x00050001, 0x00040001, 0, 0x00010000 },
	};
	/* clang-format on */
	for (const struct rig_build *b = rig_builds(); b->name; b++)
		for (unsigned k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
			const uint32_t d = run_simd(b, &rows[k].v, rows[k].parts, rows[k].a, rows[k].b, rows[k].c);
			if (d != rows[k].d)
				fail_msg("row %u: %#x, not %#x", k, d, rows[k].d);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalar_forms_select_saturate_and_combine),
		cmocka_unit_test(simd_forms_compute_each_half_or_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
