/* value.c — parse, load, store and print numbers of every element type; choose the unit of a time or a rate. */
#include "cli/lib/value.h"

#include <ctype.h>
#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpul_type value_type(const char *name, size_t name_bytes)
{
	for (int t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++) {
		const char *n = gpul_type_name((gpul_type)t);

		if (strlen(n) == name_bytes && !memcmp(n, name, name_bytes))
			return (gpul_type)t;
	}
	return GPUL_TYPE_NONE;
}

bool value_type_is_float(gpul_type t)
{
	return t == GPUL_F16 || t == GPUL_BF16 || t == GPUL_F32 || t == GPUL_F64;
}

bool value_type_is_signed(gpul_type t)
{
	return t == GPUL_I8 || t == GPUL_I16 || t == GPUL_I32 || t == GPUL_I64;
}

/* ---- 16-bit floats ----------------------------------------------------------------- */

/* A 16-bit IEEE-like format: sign bit, exponent, fraction; normal numbers are 1.f x 2^e, e from min_exponent to max_exponent. */
struct narrow {
	int fraction_bits, min_exponent, max_exponent;
};
static const struct narrow f16 = { 10, -14, 15 }, bf16 = { 7, -126, 127 };

static double narrow_to_double(const struct narrow *n, uint16_t bits)
{
	int fraction = bits & ((1 << n->fraction_bits) - 1);
	int exponent = bits >> n->fraction_bits & (n->max_exponent * 2 + 1);
	double sign = bits >> 15 ? -1.0 : 1.0;

	if (exponent == n->max_exponent * 2 + 1)
		return fraction ? (double)NAN : sign * (double)INFINITY;
	if (exponent == 0)
		return sign * ldexp(fraction, n->min_exponent - n->fraction_bits);
	return sign * ldexp(fraction + (1 << n->fraction_bits), exponent - n->max_exponent - n->fraction_bits);
}

/* Convert a double to a 16-bit float directly, because a conversion through f32 would round twice. */
static uint16_t double_to_narrow(const struct narrow *n, double f)
{
	int sign = signbit(f) ? 1 << 15 : 0;
	int infinity = (n->max_exponent * 2 + 1) << n->fraction_bits;
	int exponent;
	double a = fabs(f), scaled;

	if (isnan(f))
		return (uint16_t)(sign | infinity | 1 << (n->fraction_bits - 1));
	if (isinf(f))
		return (uint16_t)(sign | infinity);
	frexp(a, &exponent); /* now a = m x 2^exponent, with m in [0.5, 1) */
	exponent = exponent - 1 < n->min_exponent || a == 0 ? n->min_exponent : exponent - 1;
	scaled = nearbyint(ldexp(a, n->fraction_bits - exponent));
	/* Add the exponent field instead of or-ing it, because rounding up may carry into it: from subnormal to normal, or from the
	 * largest number to infinity. */
	if (exponent > n->max_exponent)
		return (uint16_t)(sign | infinity);
	return (uint16_t)(sign | (((exponent - n->min_exponent) << n->fraction_bits) + (int)scaled));
}

/* ---- bytes and numbers ------------------------------------------------------------- */

void value_store_int(gpul_type t, uint64_t i, void *out)
{
	if (value_type_is_float(t)) {
		value_store_float(t, (double)(int64_t)i, out);
		return;
	}
	for (size_t b = 0; b < gpul_type_bytes(t); b++)
		((uint8_t *)out)[b] = (uint8_t)(i >> 8 * b);
}

void value_store_float(gpul_type t, double f, void *out)
{
	uint16_t h;
	float s = (float)f;

	switch (t) {
	case GPUL_F16:
	case GPUL_BF16:
		h = double_to_narrow(t == GPUL_F16 ? &f16 : &bf16, f);
		memcpy(out, &h, sizeof h);
		break;
	case GPUL_F32:
		memcpy(out, &s, sizeof s);
		break;
	case GPUL_F64:
		memcpy(out, &f, sizeof f);
		break;
	default:
		value_store_int(t, (uint64_t)(int64_t)f, out);
	}
}

static double load_float(gpul_type t, const void *bytes)
{
	uint16_t h;
	float s;
	double d;

	if (t == GPUL_F64) {
		memcpy(&d, bytes, sizeof d);
		return d;
	}
	if (t == GPUL_F32) {
		memcpy(&s, bytes, sizeof s);
		return s;
	}
	memcpy(&h, bytes, sizeof h);
	return narrow_to_double(t == GPUL_F16 ? &f16 : &bf16, h);
}

struct value value_load(gpul_type t, const void *bytes)
{
	struct value v = { .is_float = value_type_is_float(t) };
	size_t n = gpul_type_bytes(t);

	if (v.is_float) {
		v.f = load_float(t, bytes);
		return v;
	}
	for (size_t b = 0; b < n; b++)
		v.i |= (uint64_t)((const uint8_t *)bytes)[b] << 8 * b;
	v.is_unsigned = !value_type_is_signed(t);
	if (!v.is_unsigned && n < 8 && v.i >> (8 * n - 1))
		v.i |= UINT64_MAX << 8 * n;
	return v;
}

/* ---- text -------------------------------------------------------------------------- */

/* Like strtod(), but rounds to odd: a number between two doubles becomes the one whose last bit is 1.  This double lies on the same
 * side of every narrower number as the text, so that rounding it to a narrower type rounds only once. Source: Boldo and Melquiond,
 * Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd. */
static double parse_round_to_odd(const char *text, char **end)
{
	int mode = fegetround();
	double low, high;
	uint64_t bits;

	fesetround(FE_DOWNWARD);
	low = strtod(text, end);
	fesetround(FE_UPWARD);
	high = strtod(text, end);
	fesetround(mode);
	memcpy(&bits, &low, sizeof bits);
	return low < high && !(bits & 1) ? high : low;
}

static gpul_status parse_float(gpul_type t, const char *text, void *out, gpul_error *err)
{
	char *end;
	double f = t == GPUL_F64 ? strtod(text, &end) : parse_round_to_odd(text, &end);

	if (end == text || *end || isspace((unsigned char)*text))
		return gpul_fail(err, GPUL_EINVAL, 0, "'%s' is not a number (%s)", text, gpul_type_name(t));
	value_store_float(t, f, out);
	if (isinf(value_load(t, out).f) && (!isinf(f) || isdigit((unsigned char)text[strspn(text, "+-")])))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s is out of the range of %s", text, gpul_type_name(t));
	return GPUL_OK;
}

static gpul_status out_of_range(gpul_type t, const char *text, gpul_error *err)
{
	unsigned bits = (unsigned)gpul_type_bytes(t) * 8;

	if (value_type_is_signed(t))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s is out of the range of %s (%" PRId64 " to %" PRId64 ")", text, gpul_type_name(t),
				 INT64_MIN >> (64 - bits), INT64_MAX >> (64 - bits));
	return gpul_fail(err, GPUL_EINVAL, 0, "%s is out of the range of %s (0 to %" PRIu64 ")", text, gpul_type_name(t),
			 UINT64_MAX >> (64 - bits));
}

static gpul_status parse_int(gpul_type t, const char *text, void *out, gpul_error *err)
{
	bool minus = text[0] == '-';
	const char *digits = text + (minus || text[0] == '+');
	int base = digits[0] == '0' && (digits[1] | 32) == 'x' ? 16 : 10; /* not base 0, which reads 010 as octal */
	unsigned bits = (unsigned)gpul_type_bytes(t) * 8;
	uint64_t magnitude, limit;
	char *end;

	errno = 0;
	magnitude = strtoull(digits, &end, base);
	if (!isdigit((unsigned char)*digits) || *end || (base == 16 && !isxdigit((unsigned char)digits[2])))
		return gpul_fail(err, GPUL_EINVAL, 0, "'%s' is not a whole number (%s)", text, gpul_type_name(t));
	if (value_type_is_signed(t))
		limit = (UINT64_C(1) << (bits - 1)) - !minus;
	else
		limit = minus ? 0 : UINT64_MAX >> (64 - bits);
	if (errno == ERANGE || magnitude > limit)
		return out_of_range(t, text, err);
	value_store_int(t, minus ? 0 - magnitude : magnitude, out);
	return GPUL_OK;
}

gpul_status value_parse(gpul_type t, const char *text, void *out, gpul_error *err)
{
	return value_type_is_float(t) ? parse_float(t, text, out, err) : parse_int(t, text, out, err);
}

gpul_status value_parse_size(const char *text, size_t text_bytes, size_t *out, gpul_error *err)
{
	static const char suffixes[] = "KMG";
	char number[32] = "";
	const char *suffix = NULL;
	unsigned shift;
	uint64_t n;

	if (text_bytes > 0 && text_bytes < sizeof number) {
		memcpy(number, text, text_bytes);
		suffix = strchr(suffixes, number[text_bytes - 1]);
	}
	if (suffix)
		number[text_bytes - 1] = '\0';
	shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
	if (value_parse(GPUL_U64, number, &n, NULL) || n > SIZE_MAX >> shift)
		return gpul_fail(err, GPUL_EINVAL, 0, "'%.*s' is not a size: expected a whole number, optionally followed by K, M or G",
				 (int)text_bytes, text);
	*out = (size_t)n << shift;
	return GPUL_OK;
}

gpul_status value_parse_count(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out, gpul_error *err)
{
	char *end;
	unsigned long long n;

	if (!text)
		return GPUL_OK;
	n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : ULLONG_MAX;
	if (n < least || n > most || *end)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", option, least, most,
				 text);
	*out = n;
	return GPUL_OK;
}

gpul_status value_parse_sizes(const char *text, size_t text_bytes, size_t part[3], unsigned *n_parts, gpul_error *err)
{
	const char *const end = text + text_bytes;
	gpul_status st = GPUL_OK;

	for (*n_parts = 0; !st; text++) {
		const char *colon = memchr(text, ':', (size_t)(end - text)), *part_end = colon ? colon : end;

		if (++*n_parts > 3)
			return GPUL_OK;
		st = value_parse_size(text, (size_t)(part_end - text), &part[*n_parts - 1], err);
		text = part_end;
		if (text == end)
			break;
	}
	return st;
}

gpul_status value_parse_seconds(const char *option, const char *text, int *out_ms, gpul_error *err)
{
	double seconds = -1;

	if (value_parse(GPUL_F64, text, &seconds, NULL) || !(seconds >= 0))
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s must be a number of seconds, such as 5 or 0.2, not '%s'", option, text);
	*out_ms = seconds * 1000 >= INT_MAX ? INT_MAX : (int)ceil(seconds * 1000);
	return GPUL_OK;
}

gpul_status value_parse_time(const char *option, const char *text, int *out_ms, gpul_error *err)
{
	gpul_status st = text ? value_parse_seconds(option, text, out_ms, err) : GPUL_OK;

	if (!st && *out_ms == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s must be more than 0 seconds", option);
	return st;
}

/* Find the smallest number of digits that parse back to the same element, by trying: f16 prints "0.1", not 0.09997558593750. */
static int digits_needed(gpul_type t, const void *bytes, double f)
{
	unsigned char again[8];
	char text[VALUE_TEXT_BYTES];
	int digits = 0;

	do {
		snprintf(text, sizeof text, "%.*g", ++digits, f);
		value_store_float(t, t == GPUL_F64 ? strtod(text, NULL) : parse_round_to_odd(text, NULL), again);
	} while (digits < 17 && memcmp(again, bytes, gpul_type_bytes(t)));
	return digits;
}

const char *value_print(gpul_type t, const void *bytes, char buf[VALUE_TEXT_BYTES])
{
	struct value v = value_load(t, bytes);
	double power = 10;
	int digits;

	if (!v.is_float) {
		snprintf(buf, VALUE_TEXT_BYTES, v.is_unsigned ? "%" PRIu64 : "%" PRId64, v.i);
		return buf;
	}
	if (isnan(v.f))
		return strcpy(buf, "nan"); /* not "-nan", because the sign of a NaN has no meaning */
	digits = digits_needed(t, bytes, v.f);
	/* Whole numbers of up to 17 digits are written without an exponent: 65504, not 6.55e+04. */
	if (fabs(v.f) < 1e17)
		for (int n = 1; fabs(v.f) >= power; n++, power *= 10)
			digits = n >= digits ? n + 1 : digits;
	snprintf(buf, VALUE_TEXT_BYTES, "%.*g", digits, v.f);
	return buf;
}

struct unit {
	double factor;
	const char *name;
};

/* Return the largest unit in which the rounded number is at least 1, so that 0.99996 us is printed as 1 us, not as 1000 ns.
 * Smaller numbers use the last unit. */
static const struct unit *choose_unit(const struct unit *units, size_t n, double value, double round_up)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (value * round_up >= units[i].factor)
			return &units[i];
	return &units[n - 1];
}

const char *units_time(double seconds, char buf[UNITS_TEXT_BYTES])
{
	static const struct unit units[] = { { 1, "s" }, { 1e-3, "ms" }, { 1e-6, "us" }, { 1e-9, "ns" } };
	const struct unit *u = choose_unit(units, sizeof units / sizeof *units, seconds, 1.00005);

	snprintf(buf, UNITS_TEXT_BYTES, "%.4g %s", seconds / u->factor, u->name);
	return buf;
}

const char *units_rate(double bytes_per_s, char buf[UNITS_TEXT_BYTES])
{
	static const struct unit units[] = { { 1e12, "TB/s" }, { 1e9, "GB/s" }, { 1e6, "MB/s" }, { 1e3, "kB/s" }, { 1, "B/s" } };
	const struct unit *u = choose_unit(units, sizeof units / sizeof *units, bytes_per_s, 1.0005);

	snprintf(buf, UNITS_TEXT_BYTES, "%.3g %s", bytes_per_s / u->factor, u->name);
	return buf;
}
