/* type.c — names and sizes of the element types. */
#include <string.h>

#include "loader/signature/signature.h"

static const struct {
	const char *name;
	size_t bytes;
} types[GPUL_N_TYPES] = {
	[GPUL_TYPE_NONE] = { "?", 0 }, [GPUL_I8] = { "i8", 1 },     [GPUL_U8] = { "u8", 1 },
	[GPUL_I16] = { "i16", 2 },     [GPUL_U16] = { "u16", 2 },   [GPUL_I32] = { "i32", 4 },
	[GPUL_U32] = { "u32", 4 },     [GPUL_I64] = { "i64", 8 },   [GPUL_U64] = { "u64", 8 },
	[GPUL_F16] = { "f16", 2 },     [GPUL_BF16] = { "bf16", 2 }, [GPUL_F32] = { "f32", 4 },
	[GPUL_F64] = { "f64", 8 },
};

const char *gpul_type_name(gpul_type t)
{
	return types[(unsigned)t < GPUL_N_TYPES ? t : GPUL_TYPE_NONE].name;
}

size_t gpul_type_bytes(gpul_type t)
{
	return types[(unsigned)t < GPUL_N_TYPES ? t : GPUL_TYPE_NONE].bytes;
}

gpul_type gpul_type_find(const char *name)
{
	for (unsigned t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++)
		if (strcmp(types[t].name, name) == 0)
			return (gpul_type)t;
	return GPUL_TYPE_NONE;
}
