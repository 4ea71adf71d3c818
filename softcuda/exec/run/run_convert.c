/* run_convert.c — handlers of cvt and cvt.pack: PTX ISA 9.7.9.21, 9.7.9.22.
 *
 * Frequent pairs of types have a handler of their own, a vectorised loop.  CVT_ANY handles all other conversions, with every
 * rounding, .sat, .ftz and .relu: it converts the source to an intermediate value that represents it exactly (a 64-bit integer with a
 * flag for its sign, or a double), and that value to the destination.
 *
 * Operands have the width of their type (8-bit types: 16 bits), because decoding inserts truncations and extensions. */
#include "softcuda/exec/run/half_internal.h"
#include "softcuda/exec/run/lanes_internal.h"

/* ---- integer to integer ----------------------------------------------------------------------------- */

UNARY(CVT_S64_S32, int64_t, int32_t, a[l])
UNARY(CVT_U64_U32, uint64_t, uint32_t, a[l])
UNARY(CVT_32_64, uint32_t, uint64_t, a[l])
UNARY(CVT_U32_U16, uint32_t, uint16_t, a[l])
UNARY(CVT_S32_S16, int32_t, int16_t, a[l])
UNARY(CVT_16_32, uint16_t, uint32_t, a[l])
UNARY(CVT_S64_S16, int64_t, int16_t, a[l])
UNARY(CVT_U64_U16, uint64_t, uint16_t, a[l])
UNARY(CVT_16_64, uint16_t, uint64_t, a[l])
UNARY(CVT_S32_S8, int32_t, uint16_t, (int8_t)a[l])
UNARY(CVT_U32_U8, uint32_t, uint16_t, (uint8_t)a[l])
UNARY(CVT_S64_S8, int64_t, uint16_t, (int8_t)a[l])
UNARY(CVT_U64_U8, uint64_t, uint16_t, (uint8_t)a[l])
UNARY(CVT_S16_S8, int16_t, uint16_t, (int8_t)a[l])
UNARY(CVT_U16_U8, uint16_t, uint16_t, (uint8_t)a[l])

/* ---- integer and float, to nearest ---------------------------------------------------------------------- */

UNARY(CVT_F32_S32, float, int32_t, a[l])
UNARY(CVT_F32_U32, float, uint32_t, a[l])
UNARY(CVT_F32_U16, float, uint16_t, a[l])
UNARY(CVT_F32_S16, float, int16_t, a[l])
UNARY(CVT_F64_S32, double, int32_t, a[l])
UNARY(CVT_F64_U32, double, uint32_t, a[l])
UNARY(CVT_F32_S64, float, int64_t, a[l])
UNARY(CVT_F64_S64, double, int64_t, a[l])
UNARY(CVT_F64_U64, double, uint64_t, a[l])
UNARY(CVT_F64_S16, double, int16_t, a[l])
UNARY(CVT_F64_U16, double, uint16_t, a[l])
UNARY(CVT_F64_F32, double, float, (double)a[l])
/* A NaN keeps its sign and the upper bits of its fraction, on CPUs and (observed) on sm_90. */
UNARY(CVT_F32_F64, float, double, (float)a[l])

/* ---- float to integer ------------------------------------------------------------------------------------- */

/* Values out of range give the greatest or least integer, NaN gives 0.  2^31 is the first float that is out of range. */
static inline int32_t truncate_s32(float x)
{
	const float low = x > -0x1p31f ? x : -0x1p31f;
	const int32_t r = (int32_t)(low < 0x1p31f ? low : 0.0f);
	return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : r;
}

static inline uint32_t truncate_u32(float x)
{
	const float low = x > 0.0f ? x : 0.0f;
	const uint32_t r = (uint32_t)(int64_t)(low < 0x1p32f ? low : 0.0f);
	return x >= 0x1p32f ? UINT32_MAX : r;
}

UNARY(CVT_RZI_S32_F32, int32_t, float, truncate_s32(a[l]))
UNARY(CVT_RZI_U32_F32, uint32_t, float, truncate_u32(a[l]))
/* rintf() rounds to nearest, as .rni requires, because handlers that change the rounding mode of the CPU restore it. */
UNARY(CVT_RNI_S32_F32, int32_t, float, truncate_s32(rintf(a[l])))
UNARY(CVT_RMI_S32_F32, int32_t, float, truncate_s32(floorf(a[l])))
UNARY(CVT_RPI_S32_F32, int32_t, float, truncate_s32(ceilf(a[l])))
UNARY(CVT_RNI_U32_F32, uint32_t, float, truncate_u32(rintf(a[l])))
UNARY(CVT_RMI_U32_F32, uint32_t, float, truncate_u32(floorf(a[l])))
UNARY(CVT_RPI_U32_F32, uint32_t, float, truncate_u32(ceilf(a[l])))

/* Convert f64 to s32, truncated: a NaN becomes 0x80000000, whereas a NaN of f32 becomes 0. */
static inline int32_t truncate_s32_f64(double x)
{
	const double low = x > -0x1p31 ? x : -0x1p31;
	return x >= 0x1p31 ? INT32_MAX : (int32_t)(low < 0x1p31 ? low : 0.0);
}

static inline uint32_t truncate_u32_f64(double x)
{
	const double low = x > 0.0 ? x : 0.0;
	const uint32_t r = (uint32_t)(int64_t)(low < 0x1p32 ? low : 0.0);
	return x != x ? (uint32_t)INT32_MIN : x >= 0x1p32 ? UINT32_MAX : r;
}

static inline int64_t truncate_s64_f64(double x)
{
	const double low = x > -0x1p63 ? x : -0x1p63;
	return x >= 0x1p63 ? INT64_MAX : (int64_t)(low < 0x1p63 ? low : 0.0);
}

UNARY(CVT_RZI_S32_F64, int32_t, double, truncate_s32_f64(a[l]))
UNARY(CVT_RNI_S32_F64, int32_t, double, truncate_s32_f64(rint(a[l])))
UNARY(CVT_RZI_U32_F64, uint32_t, double, truncate_u32_f64(a[l]))
UNARY(CVT_RZI_S64_F64, int64_t, double, truncate_s64_f64(a[l]))
UNARY(CVT_RZI_S64_F32, int64_t, float, truncate_s64_f64(a[l]))

/* ---- float to an integral value of the same type, and .sat -------------------------------------------------- */

/* Return the rounded value with the sign of the source, so that -0.3 becomes -0. */
static inline float integral_f32(float source, float rounded)
{
	return canonical(float_of((bits_of(rounded) & 0x7fffffff) | (bits_of(source) & 0x80000000)));
}

static inline double integral_f64(double source, double rounded)
{
	return quiet(double_of((bits_of64(rounded) & INT64_MAX) | (bits_of64(source) & ~(uint64_t)INT64_MAX)));
}

UNARY(CVT_RNI_F32_F32, float, float, integral_f32(a[l], rintf(a[l])))
UNARY(CVT_RZI_F32_F32, float, float, integral_f32(a[l], truncf(a[l])))
UNARY(CVT_RMI_F32_F32, float, float, integral_f32(a[l], floorf(a[l])))
UNARY(CVT_RPI_F32_F32, float, float, integral_f32(a[l], ceilf(a[l])))
UNARY(CVT_RNI_F64_F64, double, double, integral_f64(a[l], rint(a[l])))
UNARY(CVT_RZI_F64_F64, double, double, integral_f64(a[l], trunc(a[l])))
UNARY(CVT_RMI_F64_F64, double, double, integral_f64(a[l], floor(a[l])))
UNARY(CVT_RPI_F64_F64, double, double, integral_f64(a[l], ceil(a[l])))
/* Handlers of conversions whose result depends on .ftz, and of conversions with .sat. */
UNARY(CVT_RMI_FTZ_F32_F32, float, float, integral_f32(a[l], floorf(flush(a[l]))))
UNARY(CVT_RPI_FTZ_F32_F32, float, float, integral_f32(a[l], ceilf(flush(a[l]))))
UNARY(CVT_SAT_F32_F32, float, float, saturate(a[l]))
UNARY(CVT_SAT_FTZ_F32_F32, float, float, saturate(flush(a[l])))
UNARY(CVT_FTZ_F64_F32, double, float, (double)flush(a[l]))

/* ---- half precision, to nearest ---------------------------------------------------------------------------- */

OP(CVT_F32_F16)
{
	OPERAND(uint16_t, a);
	_Alignas(64) float t[LANES];
	widen_f16(t, a, LANES);
	for (unsigned l = 0; l < LANES; l++)
		t[l] = canonical(t[l]);
	merge32(w->mask, opptr(w, i->d), (const uint32_t *)(const void *)t);
	return i + 1;
}

OP(CVT_F16_F32)
{
	OPERAND(float, a);
	_Alignas(64) uint16_t t[LANES];
	narrow_f16(t, a, LANES);
	merge16(w->mask, opptr(w, i->d), t);
	return i + 1;
}

UNARY(CVT_BF16_F32, uint16_t, float, bf16_from_float(a[l]))
/* Observed on sm_90: cvt.f32.bf16 only shifts the bits, even those of a NaN. */
UNARY(CVT_F32_BF16, uint32_t, uint16_t, (uint32_t)a[l] << 16)

/* ---- pairs, to nearest ----------------------------------------------------------------------------------- */

/* Store pairs in register d: the upper halves are `high`, from source a, and the lower halves `low`, from source b. */
static inline void store_pairs(struct warp *w, opref d, const uint16_t *high, const uint16_t *low)
{
	MERGE_LANES(uint32_t, opptr(w, d), (uint32_t)high[l] << 16 | low[l]);
}

OP(CVT_F16X2_F32)
{
	OPERAND(float, a);
	OPERAND(float, b);
	_Alignas(64) uint16_t high[LANES], low[LANES];
	narrow_f16(high, a, LANES);
	narrow_f16(low, b, LANES);
	store_pairs(w, i->d, high, low);
	return i + 1;
}

OP(CVT_BF16X2_F32)
{
	OPERAND(float, a);
	OPERAND(float, b);
	_Alignas(64) uint16_t high[LANES], low[LANES];
	narrow_bf16(high, a, LANES);
	narrow_bf16(low, b, LANES);
	store_pairs(w, i->d, high, low);
	return i + 1;
}

/* Convert to e4m3 or e5m2 with .satfinite: a value that is too large becomes the greatest one, NaN becomes 0x7f.  A subnormal result
 * is rounded by adding a power of two, chosen so that the last bit of the sum is the last bit of the result. */
static inline uint16_t f8_from_float(float x, bool e5m2)
{
	const unsigned drop = e5m2 ? 21 : 20; /* how many of the 23 fraction bits of a float are dropped */
	const float move = e5m2 ? 0x1p7f : 0x1p14f, least_normal = e5m2 ? 0x1p-14f : 0x1p-6f;
	const uint32_t top = e5m2 ? 0x7b : 0x7e, u = bits_of(x), magnitude = u & 0x7fffffff;
	const uint32_t rounded = (magnitude + (1u << (drop - 1)) - 1 + (magnitude >> drop & 1)) >> drop;
	const uint32_t normal = rounded - ((e5m2 ? 112u : 120u) << (23 - drop));
	const uint32_t tiny = bits_of(float_of(magnitude) + move) - bits_of(move);
	uint32_t f = magnitude < bits_of(least_normal) ? tiny : normal;
	f = f > top ? top : f;
	return (uint16_t)(magnitude > 0x7f800000 ? 0x7f : f | (u >> 24 & 0x80));
}

/* Convert the sources of a pair to floats: they are two registers, or the two halves of one register. */
static inline void pair_as_floats(const struct warp *w, const struct insn *i, const struct conversion *cv, float high[LANES],
				  float low[LANES])
{
	_Alignas(64) uint16_t h[2][LANES];
	OPERAND(uint32_t, a);

	if (cv->from == KIND_F32) {
		memcpy(high, opptr(w, i->a), LANES * sizeof(*high));
		memcpy(low, opptr(w, i->b), LANES * sizeof(*low));
		return;
	}
	for (unsigned l = 0; l < LANES; l++) {
		h[0][l] = (uint16_t)a[l];
		h[1][l] = (uint16_t)(a[l] >> 16);
	}
	widen_half(low, h[0], LANES, cv->from == KIND_BF16);
	widen_half(high, h[1], LANES, cv->from == KIND_BF16);
}

OP(CVT_F8X2)
{
	struct conversion cv;
	_Alignas(64) float high[LANES], low[LANES];
	memcpy(&cv, &i->imm, sizeof(cv));
	pair_as_floats(w, i, &cv, high, low);
	if (cv.relu)
		for (unsigned l = 0; l < LANES; l++) {
			high[l] = high[l] <= 0 ? 0.0f : high[l];
			low[l] = low[l] <= 0 ? 0.0f : low[l];
		}
	if (cv.to == KIND_E5M2)
		MERGE_LANES(uint16_t, opptr(w, i->d), f8_from_float(high[l], true) << 8 | f8_from_float(low[l], true));
	else
		MERGE_LANES(uint16_t, opptr(w, i->d), f8_from_float(high[l], false) << 8 | f8_from_float(low[l], false));
	return i + 1;
}

/* Convert e4m3 to f16: 8 is added to the exponent; the seven subnormal numbers become normal. */
static inline uint16_t e4m3_to_f16(unsigned e)
{
	const unsigned magnitude = e & 0x7f;
	const unsigned three = 0x2000 + (magnitude - 4) * 0x100, two = 0x1c00 + (magnitude - 2) * 0x200, one = magnitude ? 0x1800 : 0;
	const unsigned tiny = magnitude >= 4 ? three : magnitude >= 2 ? two : one;
	const unsigned h = magnitude >= 8 ? (magnitude << 7) + 0x2000 : tiny;

	return (uint16_t)(magnitude == 0x7f ? 0x7fff : h | (e & 0x80) << 8);
}

OP(CVT_F16X2_E4M3X2)
{
	OPERAND(uint16_t, a);
	MERGE_LANES(uint32_t, opptr(w, i->d), (uint32_t)e4m3_to_f16(a[l] >> 8) << 16 | e4m3_to_f16(a[l] & 0xff));
	return i + 1;
}

/* Convert e5m2 to f16: e5m2 is the upper byte of f16, but all NaNs become 0x7fff. */
static inline uint16_t e5m2_to_f16(unsigned e)
{
	return (uint16_t)((e & 0x7f) > 0x7c ? 0x7fff : e << 8);
}

OP(CVT_F16X2_E5M2X2)
{
	OPERAND(uint16_t, a);
	MERGE_LANES(uint32_t, opptr(w, i->d), (uint32_t)e5m2_to_f16(a[l] >> 8) << 16 | e5m2_to_f16(a[l] & 0xff));
	return i + 1;
}

/* ---- any pair of types ------------------------------------------------------------------------------------ */

/* A source value: x if is_float is set, else `integer`.  If the source is f32, f16 or bf16, `integer` also holds its bits. */
struct value {
	bool is_float, is_signed;
	uint64_t integer;
	double x;
};

static const struct small_format *format_of(unsigned kind)
{
	switch (kind) {
	case KIND_F16:
		return &format_f16;
	case KIND_BF16:
		return &format_bf16;
	case KIND_TF32:
		return &format_tf32;
	case KIND_E4M3:
		return &format_e4m3;
	case KIND_E5M2:
		return &format_e5m2;
	default:
		return &format_f32;
	}
}

static struct value load_value(const struct conversion *cv, const void *slot, unsigned l)
{
	struct value v = { .is_signed = true };
	switch (cv->from) {
	case KIND_U8:
		v.integer = (uint8_t)((const uint16_t *)slot)[l];
		break;
	case KIND_S8:
		v.integer = (uint64_t)(int8_t)((const uint16_t *)slot)[l];
		break;
	case KIND_U16:
		v.integer = ((const uint16_t *)slot)[l];
		break;
	case KIND_S16:
		v.integer = (uint64_t)((const int16_t *)slot)[l];
		break;
	case KIND_U32:
		v.integer = ((const uint32_t *)slot)[l];
		break;
	case KIND_S32:
		v.integer = (uint64_t)((const int32_t *)slot)[l];
		break;
	case KIND_U64:
		v.integer = ((const uint64_t *)slot)[l];
		v.is_signed = false;
		break;
	case KIND_S64:
		v.integer = ((const uint64_t *)slot)[l];
		break;
	default:
		v.is_float = true;
		if (cv->from == KIND_F64)
			v.x = ((const double *)slot)[l];
		else if (cv->from == KIND_F32) {
			v.integer = ((const uint32_t *)slot)[l];
			v.x = (double)(cv->ftz ? flush(((const float *)slot)[l]) : ((const float *)slot)[l]);
		} else if (cv->from == KIND_TF32)
			v.x = double_from_small(((const uint32_t *)slot)[l], &format_tf32);
		else {
			v.integer = ((const uint16_t *)slot)[l];
			v.x = double_from_small((uint32_t)v.integer, format_of(cv->from));
		}
	}
	return v;
}

static unsigned int_bits(unsigned kind)
{
	return 8u << (kind - KIND_U8) / 2;
}

static bool int_signed(unsigned kind)
{
	return (kind - KIND_U8) & 1;
}

static double round_to_integer(double x, unsigned round)
{
	switch (round) {
	case CONVERT_RNI:
		return nearbyint(x);
	case CONVERT_RMI:
		return floor(x);
	case CONVERT_RPI:
		return ceil(x);
	default:
		return trunc(x);
	}
}

/* PTX ISA, cvt: values out of range become the greatest or least integer; NaN becomes 0, or, if the source is f64 or the result has
 * 64 bits, 1 << (bits - 1). */
static uint64_t integer_from_float(const struct conversion *cv, double x)
{
	const unsigned bits = int_bits(cv->to);
	const bool is_signed = int_signed(cv->to);
	if (x != x)
		return cv->from == KIND_F64 || bits == 64 ? (uint64_t)1 << (bits - 1) : 0;
	const double r = round_to_integer(x, cv->round);
	const double limit = is_signed ? double_of((uint64_t)(1023 + bits - 1) << 52) : double_of((uint64_t)(1023 + bits) << 52);
	const uint64_t most = UINT64_MAX >> (64 - bits + is_signed);
	if (r >= limit)
		return most;
	if (is_signed)
		return r < -limit ? ~most : (uint64_t)(int64_t)r;
	return r <= 0 ? 0 : (uint64_t)r;
}

static uint64_t integer_from_integer(const struct conversion *cv, struct value v)
{
	if (!cv->sat)
		return v.integer;
	const unsigned bits = int_bits(cv->to);
	const bool is_signed = int_signed(cv->to), negative = v.is_signed && (int64_t)v.integer < 0;
	const uint64_t most = UINT64_MAX >> (64 - bits + is_signed);
	if (!negative)
		return v.integer > most ? most : v.integer;
	if (!is_signed)
		return 0;
	return (int64_t)v.integer < (int64_t)~most ? ~most : v.integer;
}

/* Return a 64-bit integer as a double, rounded to odd, so that rounding the double gives the same result as rounding the integer. */
static double odd_double(struct value v)
{
	const bool negative = v.is_signed && (int64_t)v.integer < 0;
	uint64_t m = negative ? 0 - v.integer : v.integer;
	unsigned shift = 0;
	while (m >> 53) {
		m = m >> 1 | (m & 1);
		shift++;
	}
	const double x = (double)m * double_of((uint64_t)(1023 + shift) << 52);
	return negative ? -x : x;
}

/* Convert an integer to double.  Compilers convert unsigned integers by sums, which can give -0 when rounding down, so the conversion of
 * signed integers is used.  u64 values from 2^63 on are halved first, with their lowest bit as a sticky bit. */
static double double_from_integer(const struct conversion *cv, struct value v)
{
	const unsigned round = cv->round <= CONVERT_RP ? cv->round : ROUND_RN;
	const bool huge = !v.is_signed && v.integer >> 63;
	round_by(round);
	volatile int64_t u = (int64_t)(huge ? v.integer >> 1 | (v.integer & 1) : v.integer);
	volatile double r = (double)u;
	round_nearest_again(round);
	return huge ? 2 * r : r;
}

/* Apply .sat, .relu and rounding to an integral value (.rni ...); the caller rounds to the destination's format later. */
static double float_adjusted(const struct conversion *cv, double x)
{
	if (cv->round >= CONVERT_RNI)
		x = copysign(round_to_integer(x, cv->round), x);
	if (cv->relu && !(x != x))
		x = x > 0 ? x : 0;
	return cv->sat ? saturate64(x) : x;
}

/* Return the tf32 of a NaN, whose pattern PTX does not define.  Observed on sm_90: .rn and .rz give all ones; .rna truncates the bits,
 * which may give an infinity, and .rna.satfinite then subtracts one unit from an infinity or NaN. */
static uint32_t tf32_of_nan(const struct conversion *cv, uint32_t u)
{
	const uint32_t unit = (uint32_t)1 << format_tf32.pad_bits;
	if (cv->round != CONVERT_RNA)
		return format_tf32.nan;
	const uint32_t r = u & ~(unit - 1);
	return cv->satfinite && (r & 0x7f800000) == 0x7f800000 ? r - unit : r;
}

/* Convert a NaN from double to a narrower format.  Observed on sm_90: it keeps its sign and the upper bits of its fraction. */
static uint32_t narrow_nan(double x, const struct small_format *f)
{
	const uint64_t u = bits_of64(quiet(x));
	const uint32_t magnitude = (uint32_t)((u & INT64_MAX) >> (52 - f->fraction_bits));
	const uint32_t most = ((uint32_t)1 << (f->exponent_bits + f->fraction_bits)) - 1;
	return (uint32_t)(u >> 63) << (f->exponent_bits + f->fraction_bits) | (magnitude & most);
}

static uint32_t nan_bits(const struct conversion *cv, struct value v)
{
	if (cv->to == KIND_TF32)
		return tf32_of_nan(cv, (uint32_t)v.integer);
	if (cv->from == KIND_BF16 && cv->to == KIND_F32)
		return (uint32_t)v.integer << 16;
	return cv->from == KIND_F64 ? narrow_nan(v.x, format_of(cv->to)) : format_of(cv->to)->nan;
}

/* Return the result of cvt.ftz: results that flush_result() in float_internal.h would flush become zero. */
static uint32_t flushed_bits(uint32_t u, double x, unsigned round)
{
	const uint32_t scaled = small_from_double(x * (double)SCALE, &format_f32, round, false);
	return bits_of(flush_result(float_of(u), float_of(scaled)));
}

static uint64_t float_bits(const struct conversion *cv, struct value v)
{
	if (cv->to == KIND_F64)
		return bits_of64(v.is_float ? float_adjusted(cv, v.x)
				 : cv->sat  ? saturate64(double_from_integer(cv, v))
					    : double_from_integer(cv, v));
	const unsigned round = cv->round >= CONVERT_RNI ? CONVERT_RN : cv->round;
	const double x = float_adjusted(cv, v.is_float ? v.x : odd_double(v));
	if (x != x)
		return nan_bits(cv, v);
	const uint32_t u = small_from_double(x, format_of(cv->to), round, cv->satfinite);
	return cv->ftz && cv->to == KIND_F32 ? flushed_bits(u, x, round) : u;
}

static void store_value(const struct conversion *cv, void *slot, unsigned l, uint64_t u)
{
	switch (cv->to) {
	case KIND_U8:
		((uint16_t *)slot)[l] = (uint8_t)u;
		break;
	case KIND_S8:
		((int16_t *)slot)[l] = (int8_t)u;
		break;
	case KIND_U16:
	case KIND_S16:
	case KIND_F16:
	case KIND_BF16:
	case KIND_E4M3:
	case KIND_E5M2:
		((uint16_t *)slot)[l] = (uint16_t)u;
		break;
	case KIND_U64:
	case KIND_S64:
	case KIND_F64:
		((uint64_t *)slot)[l] = u;
		break;
	default:
		((uint32_t *)slot)[l] = (uint32_t)u;
		break;
	}
}

static uint64_t convert_value(const struct conversion *cv, struct value v)
{
	if (cv->to >= KIND_F16)
		return float_bits(cv, v);
	return v.is_float ? integer_from_float(cv, v.x) : integer_from_integer(cv, v);
}

OP(CVT_ANY)
{
	struct conversion cv;
	memcpy(&cv, &i->imm, sizeof(cv));
	const void *a = opptr(w, i->a);
	void *d = opptr(w, i->d);
	for (unsigned l = 0; l < LANES; l++)
		if (w->mask >> l & 1)
			store_value(&cv, d, l, convert_value(&cv, load_value(&cv, a, l)));
	return i + 1;
}

/* cvt.rn.f16x2.f32 d, a, b and similar: a becomes the upper half of d, b the lower half.  With one source (f16x2), its halves are
 * converted. */
OP(CVT_PAIR)
{
	struct conversion cv;
	memcpy(&cv, &i->imm, sizeof(cv));
	const bool packed = cv.from != KIND_F32;
	const unsigned part = cv.to == KIND_E4M3 || cv.to == KIND_E5M2 ? 8 : 16;
	for (unsigned l = 0; l < LANES; l++) {
		if (!(w->mask >> l & 1))
			continue;
		const uint32_t u = U32(w, i->a)[l];
		const uint16_t halves[8] = { (uint16_t)u, (uint16_t)(u >> 16) };
		struct value high = packed ? load_value(&cv, halves, 1) : load_value(&cv, opptr(w, i->a), l);
		struct value low = packed ? load_value(&cv, halves, 0) : load_value(&cv, opptr(w, i->b), l);
		const uint32_t both = (uint32_t)(convert_value(&cv, high) << part | convert_value(&cv, low));
		if (part == 8)
			U16(w, i->d)[l] = (uint16_t)both;
		else
			U32(w, i->d)[l] = both;
	}
	return i + 1;
}

/* cvt.rn.f16x2.e4m3x2 d, a: converts the two bytes of a 16-bit register. */
OP(CVT_UNPAIR)
{
	struct conversion cv;
	memcpy(&cv, &i->imm, sizeof(cv));
	for (unsigned l = 0; l < LANES; l++) {
		if (!(w->mask >> l & 1))
			continue;
		const uint16_t bytes[8] = { U16(w, i->a)[l] & 0xff, (uint16_t)(U16(w, i->a)[l] >> 8) };
		const uint64_t low = convert_value(&cv, load_value(&cv, bytes, 0));
		U32(w, i->d)[l] = (uint32_t)(convert_value(&cv, load_value(&cv, bytes, 1)) << 16 | low);
	}
	return i + 1;
}

/* cvt.pack.sat.T.s32 d, a, b{, c}: d has, from the top, the bits of c that fit, then a, then b, both saturated to type T.  insn->n:
 * number of bits of T (16: there is no c); insn->imm: 1 if T is signed. */
OP(CVT_PACK)
{
	const unsigned bits = i->n;
	const int32_t low = i->imm ? -(1 << (bits - 1)) : 0, high = (1 << (bits - (i->imm != 0))) - 1;
	const uint32_t mask = ((uint32_t)1 << bits) - 1;

	for (unsigned l = 0; l < LANES; l++) {
		if (!(w->mask >> l & 1))
			continue;
		const int32_t a = S32(w, i->a)[l], b = S32(w, i->b)[l];
		const uint32_t x = (uint32_t)(a < low    ? low
					      : a > high ? high
							 : a) &
				   mask,
			       y = (uint32_t)(b < low    ? low
					      : b > high ? high
							 : b) &
				   mask;

		U32(w, i->d)[l] = (bits == 16 ? 0 : U32(w, i->c)[l] << 2 * bits) | x << bits | y;
	}
	return i + 1;
}
