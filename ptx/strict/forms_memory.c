/* forms_memory.c — loads, stores, atomic operations, copies: PTX ISA 9.0, 9.7.9 and 9.7.13. */
#include "ptx/strict/strict_internal.h"

#define SCALARS "b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64"
#define SHARED "shared|shared::cta|shared::cluster"
#define L1 "?L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"
#define L2 "?L2::64B|L2::128B|L2::256B ?L2::cache_hint"
#define SCOPE "cta|cluster|gpu|sys"
#define VECTOR "?v2|v4|v8 " SCALARS "|b128"
#define LONG_VECTOR "v4|v8 b32|u32|s32|f32|b64|u64|s64|f64"

/* clang-format off */
const struct strict_form strict_memory[] = {
	/* ops, mods, args, ptx, sm, arch, until */
	{ "ld", "?weak ?global|local|const|param|param::entry|param::func|" SHARED " ?ca|cg|cs|lu|cv " VECTOR, "Vm", 0, 0, 0, 0, 0 },
	{ "ld", "?weak ?global ?ca|cg|cs|lu|cv " L2 " " VECTOR, "Vm/.", 0, 0, 0, 0, 0 },
	{ "ld", "?weak ?global " L1 " " L2 " " VECTOR, "Vm/.", 0, 0, 0, 0, 0 },
	{ "ld", "?weak ?global " L1 " " L2 " L2::evict_normal|L2::evict_first|L2::evict_last " LONG_VECTOR, "Vm/.", 88, 100, 0, 0, 0 },
	{ "ld", "volatile ?global ?L2::64B|L2::128B|L2::256B " VECTOR, "Vm", 0, 0, 0, 0, 0 },
	{ "ld", "volatile " SHARED " " VECTOR, "Vm", 0, 0, 0, 0, 0 },
	{ "ld", "relaxed|acquire " SCOPE " ?global " L1 " " L2 " " VECTOR, "Vm/.", 60, 70, 0, 0, 0 },
	{ "ld", "relaxed|acquire " SCOPE " ?global " L1 " " L2 " L2::evict_normal|L2::evict_first|L2::evict_last " LONG_VECTOR, "Vm/.", 88, 100, 0, 0, 0 },
	{ "ld", "relaxed|acquire " SCOPE " " SHARED " " VECTOR, "Vm", 60, 70, 0, 0, 0 },
	{ "ld", "mmio relaxed sys ?global " SCALARS, "Vm", 82, 70, 0, 0, 0 },
	{ "ld", "global nc ?ca|cg|cs " L2 " " VECTOR, "Vm/.", 31, 32, 0, 0, 0 },
	{ "ld", "global nc " L1 " " L2 " " VECTOR, "Vm/.", 31, 32, 0, 0, 0 },
	{ "ld", "global nc " L1 " " L2 " L2::evict_normal|L2::evict_first|L2::evict_last " LONG_VECTOR, "Vm/.", 88, 100, 0, 0, 0 },
	{ "ldu", "?global ?v2|v4 " SCALARS, "Vm", 20, 20, 0, 0, 0 },
	{ "ldu", "?global b128", "Vm", 83, 70, 0, 0, 0 },

	{ "st", "?weak ?global|local|param|param::func|" SHARED " ?wb|cg|cs|wt " VECTOR, "mV", 0, 0, 0, 0, 0 },
	{ "st", "?weak ?global ?wb|cg|cs|wt L2::cache_hint " VECTOR, "mV/.", 0, 0, 0, 0, 0 },
	{ "st", "?weak ?global " L1 " ?L2::cache_hint " VECTOR, "mV/.", 0, 0, 0, 0, 0 },
	{ "st", "?weak ?global " L1 " ?L2::cache_hint L2::evict_normal|L2::evict_first|L2::evict_last " LONG_VECTOR, "mV/.", 88, 100, 0, 0, 0 },
	{ "st", "volatile ?global|" SHARED " " VECTOR, "mV", 0, 0, 0, 0, 0 },
	{ "st", "relaxed|release " SCOPE " ?global " L1 " ?L2::cache_hint " VECTOR, "mV/.", 60, 70, 0, 0, 0 },
	{ "st", "relaxed|release " SCOPE " ?global " L1 " ?L2::cache_hint L2::evict_normal|L2::evict_first|L2::evict_last " LONG_VECTOR, "mV/.", 88, 100, 0, 0, 0 },
	{ "st", "relaxed|release " SCOPE " " SHARED " " VECTOR, "mV", 60, 70, 0, 0, 0 },
	{ "st", "mmio relaxed sys ?global " SCALARS, "mV", 82, 70, 0, 0, 0 },
	{ "st", "async ...", NULL, 81, 90, 0, 0, 0 },
	{ "st", "bulk ...", NULL, 86, 100, 0, 0, 0 },

	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " add u32|s32|u64|f32|f64", "0m0", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global L2::cache_hint add u32|s32|u64|f32|f64", "0m0l", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " add noftz f16|bf16|f16x2|bf16x2", "0m0", 62, 60, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global L2::cache_hint add noftz f16|bf16|f16x2|bf16x2", "0m0l", 62, 60, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " min|max u32|s32|u64|s64", "0m0", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global L2::cache_hint min|max u32|s32|u64|s64", "0m0l", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " and|or|xor|exch b32|b64", "0m0", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global L2::cache_hint and|or|xor|exch b32|b64", "0m0l", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " exch b128", "0m0", 83, 90, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global L2::cache_hint exch b128", "0m0l", 83, 90, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " inc|dec u32", "0m0", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global L2::cache_hint inc|dec u32", "0m0l", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " cas b32|b64", "0m00", 0, 0, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " cas b16", "0m00", 63, 70, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global|" SHARED " cas b128", "0m00", 83, 90, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global ?L2::cache_hint add v2|v4 f32", "VmV/.", 81, 90, 0, 0, 0 },
	{ "atom", "?relaxed|acquire|release|acq_rel ?" SCOPE " ?global ?L2::cache_hint add|min|max noftz v2|v4|v8 f16|bf16|f16x2|bf16x2", "VmV/.", 81, 90, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global|" SHARED " add u32|s32|u64|f32|f64", "m0", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global L2::cache_hint add u32|s32|u64|f32|f64", "m0l", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global|" SHARED " add noftz f16|bf16|f16x2|bf16x2", "m0", 62, 60, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global L2::cache_hint add noftz f16|bf16|f16x2|bf16x2", "m0l", 62, 60, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global|" SHARED " min|max u32|s32|u64|s64", "m0", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global L2::cache_hint min|max u32|s32|u64|s64", "m0l", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global|" SHARED " and|or|xor b32|b64", "m0", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global L2::cache_hint and|or|xor b32|b64", "m0l", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global|" SHARED " inc|dec u32", "m0", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global L2::cache_hint inc|dec u32", "m0l", 0, 0, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global ?L2::cache_hint add v2|v4 f32", "mV/.", 81, 90, 0, 0, 0 },
	{ "red", "?relaxed|release ?" SCOPE " ?global ?L2::cache_hint add|min|max noftz v2|v4|v8 f16|bf16|f16x2|bf16x2", "mV/.", 81, 90, 0, 0, 0 },
	{ "red", "async ...", NULL, 81, 90, 0, 0, 0 },

	{ "prefetch", "?global|local L1|L2", "m", 20, 20, 0, 0, 0 },
	{ "prefetch", "?global L2::evict_last|L2::evict_normal", "m", 74, 80, 0, 0, 0 },
	{ "prefetch", "?const|param tensormap", "m", 80, 90, 0, 0, 0 },
	{ "prefetchu", "L1", "m", 20, 20, 0, 0, 0 },
	{ "applypriority", "?global L2::evict_normal", "mc", 74, 80, 0, 0, 0 },
	{ "discard", "?global L2", "mc", 74, 80, 0, 0, 0 },
	{ "createpolicy", "...", NULL, 74, 80, 0, 0, 0 },
	{ "mapa", "?shared::cluster u32|u64", "0.u", 78, 90, 0, 0, 0 },
	{ "getctarank", "?shared::cluster u32|u64", "u.", 78, 90, 0, 0, 0 },
	{ "cp", "^async commit_group|wait_all", "", 70, 80, 0, 0, 0 },
	{ "cp", "^async wait_group", "c", 70, 80, 0, 0, 0 },
	{ "cp", "^async ca|cg shared|shared::cta global ?L2::64B|L2::128B|L2::256B ?L2::cache_hint", "mmc/.*", 70, 80, 0, 0, 0 },
	{ "cp", "^async mbarrier ...", NULL, 70, 80, 0, 0, 0 },
	{ "cp", "async mbarrier::complete_tx::bytes|bulk|tensor ...", NULL, 80, 90, 0, 0, 0 },
	{ "multimem", "...", NULL, 81, 90, 0, 0, 0 },
	{ "tensormap", "replace ...", NULL, 83, 90, 'a', 0, 0 },
	{ "tensormap", "cp_fenceproxy ...", NULL, 83, 90, 0, 0, 0 },
	{ NULL, NULL, NULL, 0, 0, 0, 0, 0 },
};
