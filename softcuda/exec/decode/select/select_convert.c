/* select_convert.c — selects the operations of cvt and cvt.pack. */
#include "softcuda/exec/decode/form_internal.h"

static const struct {
	uint16_t type;
	uint8_t kind;
} kinds[] = {
	{ GPUL_PTX_MOD_U8, KIND_U8 },   { GPUL_PTX_MOD_S8, KIND_S8 },     { GPUL_PTX_MOD_U16, KIND_U16 },   { GPUL_PTX_MOD_S16, KIND_S16 },
	{ GPUL_PTX_MOD_U32, KIND_U32 }, { GPUL_PTX_MOD_S32, KIND_S32 },   { GPUL_PTX_MOD_U64, KIND_U64 },   { GPUL_PTX_MOD_S64, KIND_S64 },
	{ GPUL_PTX_MOD_F16, KIND_F16 }, { GPUL_PTX_MOD_BF16, KIND_BF16 }, { GPUL_PTX_MOD_TF32, KIND_TF32 }, { GPUL_PTX_MOD_F32, KIND_F32 },
	{ GPUL_PTX_MOD_F64, KIND_F64 },
};

/* Packed types: a register holds two values of the type. */
static const struct {
	uint16_t type;
	uint8_t kind;
} pairs[] = {
	{ GPUL_PTX_MOD_F16X2, KIND_F16 },
	{ GPUL_PTX_MOD_BF16X2, KIND_BF16 },
	{ GPUL_PTX_MOD_E4M3X2, KIND_E4M3 },
	{ GPUL_PTX_MOD_E5M2X2, KIND_E5M2 },
};

static int kind_of(unsigned type)
{
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		if (kinds[k].type == type)
			return kinds[k].kind;
	return -1;
}

static int pair_kind_of(unsigned type)
{
	for (unsigned k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
		if (pairs[k].type == type)
			return pairs[k].kind;
	return -1;
}

static uint8_t rounding_mode(uint64_t set)
{
	static const struct {
		uint64_t bit;
		uint8_t round;
	} rounds[] = {
		{ HAS(RZ), CONVERT_RZ },   { HAS(RM), CONVERT_RM },   { HAS(RP), CONVERT_RP },   { HAS(RNA), CONVERT_RNA },
		{ HAS(RNI), CONVERT_RNI }, { HAS(RZI), CONVERT_RZI }, { HAS(RMI), CONVERT_RMI }, { HAS(RPI), CONVERT_RPI },
	};
	for (unsigned k = 0; k < sizeof(rounds) / sizeof(rounds[0]); k++)
		if (set & rounds[k].bit)
			return rounds[k].round;
	return CONVERT_RN;
}

/* Conversions without modifiers that have vectorised handlers.  The conversion of an integer to a type of the same or a smaller width
 * truncates, whether it is signed or not; conversion to a wider type sign- or zero-extends according to the source's type. */
static const struct {
	uint8_t to, from, round;
	uint16_t op;
} fast_conversions[] = {
	{ KIND_S64, KIND_S32, CONVERT_RN, OP_CVT_S64_S32 },      { KIND_U64, KIND_S32, CONVERT_RN, OP_CVT_S64_S32 },
	{ KIND_S64, KIND_U32, CONVERT_RN, OP_CVT_U64_U32 },      { KIND_U64, KIND_U32, CONVERT_RN, OP_CVT_U64_U32 },
	{ KIND_S32, KIND_S64, CONVERT_RN, OP_CVT_32_64 },        { KIND_U32, KIND_S64, CONVERT_RN, OP_CVT_32_64 },
	{ KIND_S32, KIND_U64, CONVERT_RN, OP_CVT_32_64 },        { KIND_U32, KIND_U64, CONVERT_RN, OP_CVT_32_64 },
	{ KIND_S32, KIND_U16, CONVERT_RN, OP_CVT_U32_U16 },      { KIND_U32, KIND_U16, CONVERT_RN, OP_CVT_U32_U16 },
	{ KIND_S32, KIND_S16, CONVERT_RN, OP_CVT_S32_S16 },      { KIND_U32, KIND_S16, CONVERT_RN, OP_CVT_S32_S16 },
	{ KIND_S16, KIND_S32, CONVERT_RN, OP_CVT_16_32 },        { KIND_U16, KIND_S32, CONVERT_RN, OP_CVT_16_32 },
	{ KIND_S16, KIND_U32, CONVERT_RN, OP_CVT_16_32 },        { KIND_U16, KIND_U32, CONVERT_RN, OP_CVT_16_32 },
	{ KIND_S64, KIND_S16, CONVERT_RN, OP_CVT_S64_S16 },      { KIND_U64, KIND_S16, CONVERT_RN, OP_CVT_S64_S16 },
	{ KIND_S64, KIND_U16, CONVERT_RN, OP_CVT_U64_U16 },      { KIND_U64, KIND_U16, CONVERT_RN, OP_CVT_U64_U16 },
	{ KIND_S16, KIND_S64, CONVERT_RN, OP_CVT_16_64 },        { KIND_U16, KIND_S64, CONVERT_RN, OP_CVT_16_64 },
	{ KIND_S16, KIND_U64, CONVERT_RN, OP_CVT_16_64 },        { KIND_U16, KIND_U64, CONVERT_RN, OP_CVT_16_64 },
	{ KIND_S32, KIND_S8, CONVERT_RN, OP_CVT_S32_S8 },        { KIND_U32, KIND_S8, CONVERT_RN, OP_CVT_S32_S8 },
	{ KIND_S32, KIND_U8, CONVERT_RN, OP_CVT_U32_U8 },        { KIND_U32, KIND_U8, CONVERT_RN, OP_CVT_U32_U8 },
	{ KIND_S64, KIND_S8, CONVERT_RN, OP_CVT_S64_S8 },        { KIND_U64, KIND_S8, CONVERT_RN, OP_CVT_S64_S8 },
	{ KIND_S64, KIND_U8, CONVERT_RN, OP_CVT_U64_U8 },        { KIND_U64, KIND_U8, CONVERT_RN, OP_CVT_U64_U8 },
	{ KIND_S16, KIND_S8, CONVERT_RN, OP_CVT_S16_S8 },        { KIND_U16, KIND_S8, CONVERT_RN, OP_CVT_S16_S8 },
	{ KIND_S16, KIND_U8, CONVERT_RN, OP_CVT_U16_U8 },        { KIND_U16, KIND_U8, CONVERT_RN, OP_CVT_U16_U8 },
	{ KIND_S32, KIND_U32, CONVERT_RN, OP_MOV_32 },           { KIND_U32, KIND_S32, CONVERT_RN, OP_MOV_32 },
	{ KIND_S32, KIND_S32, CONVERT_RN, OP_MOV_32 },           { KIND_U32, KIND_U32, CONVERT_RN, OP_MOV_32 },
	{ KIND_S64, KIND_U64, CONVERT_RN, OP_MOV_64 },           { KIND_U64, KIND_S64, CONVERT_RN, OP_MOV_64 },
	{ KIND_S64, KIND_S64, CONVERT_RN, OP_MOV_64 },           { KIND_U64, KIND_U64, CONVERT_RN, OP_MOV_64 },
	{ KIND_F32, KIND_S32, CONVERT_RN, OP_CVT_F32_S32 },      { KIND_F32, KIND_U32, CONVERT_RN, OP_CVT_F32_U32 },
	{ KIND_F32, KIND_U16, CONVERT_RN, OP_CVT_F32_U16 },      { KIND_F32, KIND_S16, CONVERT_RN, OP_CVT_F32_S16 },
	{ KIND_F64, KIND_S32, CONVERT_RN, OP_CVT_F64_S32 },      { KIND_F64, KIND_U32, CONVERT_RN, OP_CVT_F64_U32 },
	{ KIND_F32, KIND_S64, CONVERT_RN, OP_CVT_F32_S64 },      { KIND_F64, KIND_S64, CONVERT_RN, OP_CVT_F64_S64 },
	{ KIND_F64, KIND_U64, CONVERT_RN, OP_CVT_F64_U64 },      { KIND_F64, KIND_S16, CONVERT_RN, OP_CVT_F64_S16 },
	{ KIND_F64, KIND_U16, CONVERT_RN, OP_CVT_F64_U16 },      { KIND_F64, KIND_F32, CONVERT_RN, OP_CVT_F64_F32 },
	{ KIND_F32, KIND_F64, CONVERT_RN, OP_CVT_F32_F64 },      { KIND_S32, KIND_F32, CONVERT_RZI, OP_CVT_RZI_S32_F32 },
	{ KIND_U32, KIND_F32, CONVERT_RZI, OP_CVT_RZI_U32_F32 }, { KIND_S32, KIND_F32, CONVERT_RNI, OP_CVT_RNI_S32_F32 },
	{ KIND_S32, KIND_F32, CONVERT_RMI, OP_CVT_RMI_S32_F32 }, { KIND_S32, KIND_F32, CONVERT_RPI, OP_CVT_RPI_S32_F32 },
	{ KIND_U32, KIND_F32, CONVERT_RNI, OP_CVT_RNI_U32_F32 }, { KIND_U32, KIND_F32, CONVERT_RMI, OP_CVT_RMI_U32_F32 },
	{ KIND_U32, KIND_F32, CONVERT_RPI, OP_CVT_RPI_U32_F32 }, { KIND_S32, KIND_F64, CONVERT_RZI, OP_CVT_RZI_S32_F64 },
	{ KIND_S32, KIND_F64, CONVERT_RNI, OP_CVT_RNI_S32_F64 }, { KIND_U32, KIND_F64, CONVERT_RZI, OP_CVT_RZI_U32_F64 },
	{ KIND_S64, KIND_F64, CONVERT_RZI, OP_CVT_RZI_S64_F64 }, { KIND_S64, KIND_F32, CONVERT_RZI, OP_CVT_RZI_S64_F32 },
	{ KIND_F32, KIND_F32, CONVERT_RNI, OP_CVT_RNI_F32_F32 }, { KIND_F32, KIND_F32, CONVERT_RZI, OP_CVT_RZI_F32_F32 },
	{ KIND_F32, KIND_F32, CONVERT_RMI, OP_CVT_RMI_F32_F32 }, { KIND_F32, KIND_F32, CONVERT_RPI, OP_CVT_RPI_F32_F32 },
	{ KIND_F64, KIND_F64, CONVERT_RNI, OP_CVT_RNI_F64_F64 }, { KIND_F64, KIND_F64, CONVERT_RZI, OP_CVT_RZI_F64_F64 },
	{ KIND_F64, KIND_F64, CONVERT_RMI, OP_CVT_RMI_F64_F64 }, { KIND_F64, KIND_F64, CONVERT_RPI, OP_CVT_RPI_F64_F64 },
	{ KIND_F32, KIND_F16, CONVERT_RN, OP_CVT_F32_F16 },      { KIND_F16, KIND_F32, CONVERT_RN, OP_CVT_F16_F32 },
	{ KIND_F32, KIND_BF16, CONVERT_RN, OP_CVT_F32_BF16 },    { KIND_BF16, KIND_F32, CONVERT_RN, OP_CVT_BF16_F32 },
};

/* Conversions with .ftz, .sat or both that have vectorised handlers. */
static const struct {
	struct conversion cv;
	uint16_t op;
} fast_modified[] = {
	{ { .to = KIND_F32, .from = KIND_F32, .sat = true }, OP_CVT_SAT_F32_F32 },
	{ { .to = KIND_F32, .from = KIND_F32, .sat = true, .ftz = true }, OP_CVT_SAT_FTZ_F32_F32 },
	{ { .to = KIND_F64, .from = KIND_F32, .ftz = true }, OP_CVT_FTZ_F64_F32 },
	{ { .to = KIND_F32, .from = KIND_F32, .round = CONVERT_RMI, .ftz = true }, OP_CVT_RMI_FTZ_F32_F32 },
	{ { .to = KIND_F32, .from = KIND_F32, .round = CONVERT_RPI, .ftz = true }, OP_CVT_RPI_FTZ_F32_F32 },
};

/* Return true if .ftz does not change the result: a subnormal f32 becomes zero anyway when it is rounded to nearest or truncated to an
 * integer, or rounded to f16; and no f16 value is a subnormal f32. */
static bool ftz_changes_nothing(const struct conversion *cv)
{
	const bool to_word = cv->to == KIND_S32 || cv->to == KIND_U32 || cv->to == KIND_F32;

	return (cv->from == KIND_F32 && to_word && (cv->round == CONVERT_RNI || cv->round == CONVERT_RZI)) ||
	       (cv->round == CONVERT_RN && ((cv->from == KIND_F32 && cv->to == KIND_F16) || (cv->from == KIND_F16 && cv->to == KIND_F32)));
}

static uint16_t fast_operation(const struct conversion *cv)
{
	for (unsigned k = 0; k < sizeof(fast_modified) / sizeof(fast_modified[0]); k++)
		if (!memcmp(&fast_modified[k].cv, cv, sizeof(*cv)))
			return fast_modified[k].op;
	if (cv->sat || cv->relu || cv->satfinite || (cv->ftz && !ftz_changes_nothing(cv)))
		return OP_CVT_ANY;
	for (unsigned k = 0; k < sizeof(fast_conversions) / sizeof(fast_conversions[0]); k++)
		if (fast_conversions[k].to == cv->to && fast_conversions[k].from == cv->from && fast_conversions[k].round == cv->round)
			return fast_conversions[k].op;
	return OP_CVT_ANY;
}

/* Check that the rounding fits the types.  This accepts all combinations that ptxas accepts, and some that ptxas rejects. */
static bool check_rounding(const struct form *form, const struct conversion *cv)
{
	const bool to_int = cv->to < KIND_F16, from_int = cv->from < KIND_F16;
	const bool integer_round = cv->round >= CONVERT_RNI;
	if (to_int && from_int && (form->set & ~(HAS(SAT))))
		return gpul_form_refuse(form, "a conversion between integers has no modifier except .sat");
	if (to_int && !from_int && !integer_round)
		return gpul_form_refuse(form, "float to integer needs .rni, .rzi, .rmi or .rpi");
	if (cv->to == KIND_TF32 && cv->from != KIND_F32)
		return gpul_form_refuse(form, "only .f32 can be converted to .tf32");
	if (!to_int && integer_round && cv->to != cv->from)
		return gpul_form_refuse(form, ".rni, .rzi, .rmi and .rpi need an integer destination, or two equal types");
	return true;
}

/* Return the operation of a conversion to or from a packed type (two values in a register). */
static uint16_t pair_operation(const struct conversion *cv, bool narrow)
{
	const bool nearest = cv->round == CONVERT_RN && !cv->sat && !cv->ftz;

	if (narrow)
		return nearest && cv->satfinite ? OP_CVT_F8X2 : OP_CVT_PAIR;
	if (cv->from == KIND_F32 && nearest && !cv->relu && !cv->satfinite)
		return cv->to == KIND_F16 ? OP_CVT_F16X2_F32 : OP_CVT_BF16X2_F32;
	return OP_CVT_PAIR;
}

static bool select_pair(const struct form *form, struct conversion *cv, struct selection *out)
{
	const int to = pair_kind_of(form->type[0]), from = pair_kind_of(form->type[1]);
	cv->to = (uint8_t)to;
	cv->from = (uint8_t)(from >= 0 ? from : KIND_F32);
	memcpy(&out->imm, cv, sizeof(*cv));
	const bool narrow = to == KIND_E4M3 || to == KIND_E5M2;
	if (from < 0 && form->type[1] == GPUL_PTX_MOD_F32) {
		out->op = pair_operation(cv, narrow);
		return gpul_form_operands(form, narrow ? "h=ff" : "w=ff", out);
	}
	if (narrow && (from == KIND_F16 || from == KIND_BF16)) {
		out->op = pair_operation(cv, narrow);
		return gpul_form_operands(form, "h=w", out);
	}
	if (!narrow && (from == KIND_E4M3 || from == KIND_E5M2)) {
		out->op = from == KIND_E4M3 ? OP_CVT_F16X2_E4M3X2 : OP_CVT_F16X2_E5M2X2;
		if (cv->relu || to != KIND_F16)
			out->op = OP_CVT_UNPAIR;
		return gpul_form_operands(form, "w=h", out);
	}
	return gpul_form_refuse(form, "cvt does not support this pair of types");
}

/* Select the operation of cvt.pack d, a, b{, c}.  c exists if a and b become 8 bits or fewer; the last modifier is then its type, .b32. */
static bool select_pack(const struct form *form, struct selection *out)
{
	const int to = kind_of(form->type[0]);

	out->op = OP_CVT_PACK;
	if (form->part_bits && form->type[0] == GPUL_PTX_MOD_S32 && form->n_types == 2) {
		out->n = form->part_bits;
		out->imm = form->part_signed;
		return gpul_form_operands(form, "w=www", out);
	}
	if (to < 0 || to > KIND_S16 || form->type[1] != GPUL_PTX_MOD_S32)
		return gpul_form_refuse(form, "cvt.pack converts s32 to integers of 2, 4, 8 or 16 bits");
	out->imm = to == KIND_S8 || to == KIND_S16;
	out->n = to <= KIND_S8 ? 8 : 16;
	return gpul_form_operands(form, out->n == 8 && form->n_types == 3 ? "w=www" : "w=ww", out);
}

bool gpul_select_cvt(const struct form *form, struct selection *out)
{
	if (form->set & HAS(PACK))
		return select_pack(form, out);
	if (form->n_types != 2)
		return gpul_form_refuse(form, "cvt needs two types");
	struct conversion cv = {
		.round = rounding_mode(form->set),
		.sat = form->set & HAS(SAT),
		.ftz = form->set & HAS(FTZ),
		.relu = form->set & HAS(RELU),
		.satfinite = form->set & HAS(SATFINITE),
	};
	if (pair_kind_of(form->type[0]) >= 0)
		return select_pair(form, &cv, out);
	const int to = kind_of(form->type[0]), from = kind_of(form->type[1]);
	if (to < 0 || from < 0)
		return gpul_form_refuse(form, "cvt between these types is not supported by the software driver");
	cv.to = (uint8_t)to;
	cv.from = (uint8_t)from;
	if (!check_rounding(form, &cv))
		return false;
	out->op = fast_operation(&cv);
	memcpy(&out->imm, &cv, sizeof(cv));
	out->d_type = form->type[0];
	out->source_type[0] = form->type[1];
	out->n_sources = 1;
	out->narrow_ok = true;
	return form->inst->n_operands == 2 || gpul_form_refuse(form, "cvt needs two operands");
}
