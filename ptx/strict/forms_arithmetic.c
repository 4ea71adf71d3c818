/* forms_arithmetic.c — integers, comparison, selection, bits: PTX ISA 9.0, 9.7.1, 9.7.2, 9.7.6 to 9.7.8, 9.7.19. */
#include "ptx/strict/strict_internal.h"

#define INTS "u16|s16|u32|s32|u64|s64"
#define SIGNED_COMPARE "eq|ne|lt|le|gt|ge"
#define UNSIGNED_COMPARE "eq|ne|lt|le|gt|ge|lo|ls|hi|hs"
#define FLOAT_COMPARE "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan"
#define BOOL "?and|or|xor"

/* clang-format off */
const struct strict_form strict_arithmetic[] = {
	/* ops, mods, args, ptx, sm, arch, until */
	{ "add sub", INTS, "000", 0, 0, 0, 0, 0 },
	{ "add sub", "sat s32", "000", 0, 0, 0, 0, 0 },
	{ "add sub", "cc u32|s32", "000", 0, 0, 0, 0, 0 },
	{ "add sub", "cc u64|s64", "000", 43, 0, 0, 0, 0 },
	{ "add", "u16x2|s16x2", "000", 80, 90, 0, 0, 0 },
	{ "addc subc", "?cc " INTS, "000", 0, 0, 0, 0, 0 },
	{ "mul", "^lo|hi " INTS, "000", 0, 0, 0, 0, 0 },
	{ "mul", "^wide u16|s16|u32|s32", "D00", 0, 0, 0, 0, 0 },
	{ "mad", "^lo|hi " INTS, "0000", 0, 0, 0, 0, 0 },
	{ "mad", "^hi sat s32", "0000", 0, 0, 0, 0, 0 },
	{ "mad", "^wide u16|s16|u32|s32", "D00D", 0, 0, 0, 0, 0 },
	{ "mad", "^lo|hi cc u32|s32", "0000", 30, 0, 0, 0, 0 },
	{ "mad", "^lo|hi cc u64|s64", "0000", 43, 0, 0, 0, 0 },
	{ "madc", "^lo|hi ?cc u32|s32", "0000", 30, 0, 0, 0, 0 },
	{ "madc", "^lo|hi u64|s64", "0000", 30, 0, 0, 0, 0 },
	{ "madc", "^lo|hi cc u64|s64", "0000", 43, 0, 0, 0, 0 },
	{ "mul24", "^lo|hi u32|s32", "000", 0, 0, 0, 0, 0 },
	{ "mad24", "^lo|hi u32|s32", "0000", 0, 0, 0, 0, 0 },
	{ "mad24", "^hi sat s32", "0000", 0, 0, 0, 0, 0 },
	{ "sad", INTS, "0000", 0, 0, 0, 0, 0 },
	{ "div rem", INTS, "000", 0, 0, 0, 0, 0 },
	{ "min max", INTS, "000", 0, 0, 0, 0, 0 },
	{ "min max", "u16x2|s16x2", "000", 80, 90, 0, 0, 0 },
	{ "min max", "relu s16x2|s32", "000", 80, 90, 0, 0, 0 },
	{ "abs neg", "s16|s32|s64", "00", 0, 0, 0, 0, 0 },
	{ "popc clz", "b32|b64", "u0", 20, 20, 0, 0, 0 },
	{ "bfind", "?shiftamt u32|s32|u64|s64", "u0", 20, 20, 0, 0, 0 },
	{ "fns", "b32", "w0uu", 60, 30, 0, 0, 0 },
	{ "brev", "b32|b64", "00", 20, 20, 0, 0, 0 },
	{ "bfe", "u32|s32|u64|s64", "00uu", 20, 20, 0, 0, 0 },
	{ "bfi", "b32|b64", "000uu", 20, 20, 0, 0, 0 },
	{ "szext", "clamp|wrap u32|s32", "00u", 76, 70, 0, 0, 0 },
	{ "bmsk", "clamp|wrap b32", "0uu", 76, 70, 0, 0, 0 },
	{ "dp4a", "u32|s32 u32|s32", "wwww", 50, 61, 0, 0, 0 },
	{ "dp2a", "lo|hi u32|s32 u32|s32", "wwww", 50, 61, 0, 0, 0 },

	/* comparison and selection */
	{ "set", SIGNED_COMPARE " " BOOL " u32|s32|f32 s16|s32|s64", "011/q", 0, 0, 0, 0, 0 },
	{ "set", UNSIGNED_COMPARE " " BOOL " u32|s32|f32 u16|u32|u64", "011/q", 0, 0, 0, 0, 0 },
	{ "set", "eq|ne " BOOL " u32|s32|f32 b16|b32|b64", "011/q", 0, 0, 0, 0, 0 },
	{ "set", FLOAT_COMPARE " " BOOL " ?ftz u32|s32|f32 f32", "011/q", 0, 0, 0, 0, 0 },
	{ "set", FLOAT_COMPARE " " BOOL " u32|s32|f32 f64", "011/q", 0, 0, 0, 0, 0 },
	{ "set", FLOAT_COMPARE " " BOOL " ?ftz f16|f16x2 f16|f16x2", "011/q", 42, 53, 0, 0, 0 },
	{ "set", FLOAT_COMPARE " " BOOL " ?ftz u16|s16|u32|s32 f16", "011/q", 65, 53, 0, 0, 0 },
	{ "set", FLOAT_COMPARE " " BOOL " bf16|bf16x2|u16|s16|u32|s32 bf16|bf16x2", "011/q", 78, 90, 0, 0, 0 },
	{ "setp", SIGNED_COMPARE " " BOOL " s16|s32|s64", "P00/q", 0, 0, 0, 0, 0 },
	{ "setp", UNSIGNED_COMPARE " " BOOL " u16|u32|u64", "P00/q", 0, 0, 0, 0, 0 },
	{ "setp", "eq|ne " BOOL " b16|b32|b64", "P00/q", 0, 0, 0, 0, 0 },
	{ "setp", FLOAT_COMPARE " " BOOL " ?ftz f32", "P00/q", 0, 0, 0, 0, 0 },
	{ "setp", FLOAT_COMPARE " " BOOL " f64", "P00/q", 0, 0, 0, 0, 0 },
	{ "setp", FLOAT_COMPARE " " BOOL " ?ftz f16|f16x2", "P00/q", 42, 53, 0, 0, 0 },
	{ "setp", FLOAT_COMPARE " " BOOL " bf16|bf16x2", "P00/q", 78, 90, 0, 0, 0 },
	{ "selp", "b16|b32|b64|" INTS "|f32|f64", "000q", 0, 0, 0, 0, 0 },
	{ "slct", "b16|b32|b64|" INTS "|f32|f64 s32", "0001", 0, 0, 0, 0, 0 },
	{ "slct", "?ftz b16|b32|b64|" INTS "|f32|f64 f32", "0001", 0, 0, 0, 0, 0 },

	/* bits */
	{ "and or xor", "b16|b32|b64", "000", 0, 0, 0, 0, 0 },
	{ "and or xor", "pred", "pqq", 0, 0, 0, 0, 0 },
	{ "not", "b16|b32|b64", "00", 0, 0, 0, 0, 0 },
	{ "not", "pred", "pq", 0, 0, 0, 0, 0 },
	{ "cnot", "b16|b32|b64", "00", 0, 0, 0, 0, 0 },
	{ "lop3", "b32", "0000c", 43, 50, 0, 0, 0 },
	{ "lop3", "or|and b32", "T000cq", 82, 70, 0, 0, 0 },
	{ "shf", "^l|r clamp|wrap b32", "000u", 31, 32, 0, 0, 0 },
	{ "shl", "b16|b32|b64", "00u", 0, 0, 0, 0, 0 },
	{ "shr", "b16|b32|b64|" INTS, "00u", 0, 0, 0, 0, 0 },
	{ "prmt", "b32 ?f4e|b4e|rc8|ecl|ecr|rc16", "000u", 20, 20, 0, 0, 0 },
	{ NULL, NULL, NULL, 0, 0, 0, 0, 0 },
};
