/* forms_convert.c — lists the forms of moves and conversions: PTX ISA 9.0, 9.7.9. */
#include "ptx/strict/strict_internal.h"

#define ALL_INTS  "u8|s8|u16|s16|u32|s32|u64|s64"
#define WIDE_INTS "u16|s16|u32|s32|u64|s64"
#define ROUND     "rn|rz|rm|rp"
#define ROUND_INT "rni|rzi|rmi|rpi"

/* clang-format off */
const struct strict_form strict_convert[] = {
	/* the columns are the members of struct strict_form: ops, mods, args, ptx, sm, arch, until */
	{ "mov", "b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64|b128", "00", 0, 0, 0, 0, 0 },
	{ "mov", "pred", "pq", 0, 0, 0, 0, 0 },
	{ "mov", "v2|v4 b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64", NULL, 0, 0, 0, 0, 0 },
	{ "cvta", "^?to global|shared|local|shared::cta|const|param|param::entry|shared::cluster u32|u64", "00", 20, 20, 0, 0, 0 },
	{ "isspacep", "global|shared|local|shared::cta|const|param|param::entry|shared::cluster", "pi", 20, 20, 0, 0, 0 },
	{ "istypep", "texref|samplerref|surfref", "p.", 40, 30, 0, 0, 0 },

	{ "cvt", ALL_INTS " " ALL_INTS, "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat u8 s8|u16|s16|u32|s32|u64|s64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat s8 u8|u16|s16|u32|s32|u64|s64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat u16 s8|s16|u32|s32|u64|s64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat s16 u16|u32|s32|u64|s64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat u32 s8|s16|s32|u64|s64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat s32 u32|u64|s64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat u64 s8|s16|s32|s64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "sat s64 u64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND_INT " ?ftz ?sat " ALL_INTS " f32", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND_INT " ?sat " ALL_INTS " f16|f64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND_INT " " WIDE_INTS " bf16", "01", 78, 90, 0, 0, 0 },
	{ "cvt", ROUND " ?ftz ?sat f32 " ALL_INTS, "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND " ?sat f16|f64 " ALL_INTS, "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND " bf16 " WIDE_INTS, "01", 78, 90, 0, 0, 0 },
	{ "cvt", "?" ROUND_INT " ?ftz ?sat f32 f32", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "?" ROUND_INT " ?sat f64 f64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "?" ROUND_INT " ?sat f16 f16", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "?" ROUND_INT " bf16 bf16", "AB", 78, 90, 0, 0, 0 },
	{ "cvt", "?ftz ?sat f64 f32", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND " ?ftz ?sat f32 f64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "?ftz ?sat f32 f16", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "?sat f64 f16", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND " ?ftz ?sat f16 f32", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", ROUND " ?sat f16 f64", "AB", 0, 0, 0, 0, 0 },
	{ "cvt", "rn|rz relu f16|f16x2|bf16|bf16x2 f32", NULL, 70, 80, 0, 0, 0 },
	{ "cvt", "rn|rz satfinite f16 f32", "AB", 81, 70, 0, 0, 0 },
	{ "cvt", "rn|rz ?relu satfinite f16|bf16 f32", "AB", 81, 80, 0, 0, 0 },
	{ "cvt", ROUND " ?ftz bf16 f32", "AB", 70, 80, 0, 0, 0 },
	{ "cvt", ROUND " bf16 f64", "AB", 78, 90, 0, 0, 0 },
	{ "cvt", "?" ROUND " bf16 f16", "AB", 78, 90, 0, 0, 0 },
	{ "cvt", "?" ROUND " f32 bf16", "AB", 71, 80, 0, 0, 0 },
	{ "cvt", "?" ROUND " ftz f32 bf16", "AB", 78, 90, 0, 0, 0 },
	{ "cvt", "?" ROUND " f64|f16 bf16", "AB", 78, 90, 0, 0, 0 },
	{ "cvt", "rn|rz f16x2|bf16x2 f32", "w11", 70, 80, 0, 0, 0 },
	{ "cvt", "rn|rz ?relu satfinite f16x2|bf16x2 f32", "w11", 81, 80, 0, 0, 0 },
	{ "cvt", "rs ?relu ?satfinite f16x2|bf16x2 f32", "w11.", 87, 100, 'a', 0, 0 },
	{ "cvt", "rna tf32 f32", "u1", 70, 80, 0, 0, 0 },
	{ "cvt", "rna satfinite tf32 f32", "u1", 81, 80, 0, 0, 0 },
	{ "cvt", "rn|rz ?relu tf32 f32", "u1", 78, 90, 0, 0, 0 },
	{ "cvt", "rn|rz ?relu satfinite tf32 f32", "u1", 86, 100, 0, 0, 0 },
	{ "cvt", "rn satfinite ?relu e4m3x2|e5m2x2 f32", "h11", 78, 89, 0, 0, 0 },
	{ "cvt", "rn satfinite ?relu e4m3x2|e5m2x2 f16x2", "hw", 78, 89, 0, 0, 0 },
	{ "cvt", "rn ?relu f16x2 e4m3x2|e5m2x2", "wh", 78, 89, 0, 0, 0 },
	{ "cvt", "^pack sat u16|s16|u8|s8 s32 ?b32", NULL, 65, 72, 0, 0, 0 },
	{ "cvt", "^pack sat u4|s4|u2|s2 s32 b32", NULL, 65, 75, 0, 0, 0 },
	{ "cvt", "e2m1x2|e2m3x2|e3m2x2|ue8m0x2|e4m3x4|e5m2x4|e2m1x4|e2m3x4|e3m2x4 ...", NULL, 86, 100, 'a', 0, 0 },
	{ "cvt", "f16x2|bf16x2 e2m1x2|e2m3x2|e3m2x2|ue8m0x2 ...", NULL, 86, 100, 'a', 0, 0 },
	{ NULL, NULL, NULL, 0, 0, 0, 0, 0 },
};
