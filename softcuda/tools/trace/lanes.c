/* lanes.c — the values of 32 lanes as text. */
#include "softcuda/tools/trace/trace_internal.h"

#include <math.h>
#include <string.h>

void gpul_trace_widen(const void *values, unsigned bytes, uint64_t out[LANES])
{
	if (bytes == 4)
		for (unsigned l = 0; l < LANES; l++)
			out[l] = ((const uint32_t *)values)[l];
	else if (bytes == 8)
		memcpy(out, values, LANES * sizeof *out);
	else
		for (unsigned l = 0; l < LANES; l++)
			out[l] = ((const uint16_t *)values)[l];
}

static uint64_t cut(uint64_t v, unsigned bytes)
{
	return bytes == 8 ? v : v & ((UINT64_C(1) << 8 * bytes) - 1);
}

bool gpul_trace_row(const uint64_t v[LANES], unsigned bytes, uint32_t on, uint64_t *first, uint64_t *step)
{
	const unsigned l0 = first_lane(on);
	const uint32_t rest = on & (on - 1);
	unsigned l1;

	*first = v[l0];
	*step = 0;
	if (!rest)
		return true;
	l1 = first_lane(rest);
	if (l1 != l0 + 1 && v[l1] != v[l0])  /* the step would be a fraction, or could be */
		return false;
	*step = cut(v[l1] - v[l0], bytes);
	EACH_LANE_OF(l, on)
		if (v[l] != cut(*first + *step * (l - l0), bytes))
			return false;
	return true;
}

static char *put_decimal(char *to, uint64_t v)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

static char *put_hex(char *to, uint64_t v)
{
	int shift = 60;

	*to++ = '0';
	*to++ = 'x';
	while (shift && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		*to++ = "0123456789abcdef"[v >> shift & 15];
	return to;
}

static char *put_signed(char *to, int64_t v)
{
	if (v < 0)
		*to++ = '-';
	return put_decimal(to, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* A float with 9 digits, which tell all floats apart.  printf would take most of the time of a trace. */
static char *put_float(char *to, float f)
{
	static const double powers[] = { 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9 };
	double v = fabs((double)f);
	int exponent = 0;
	uint64_t digits, whole, scale;
	char fraction[16];
	unsigned n;

	if (!(v >= 1e-4 && v < 1e9))
		return v == 0 || f != f ? to + sprintf(to, "%g", (double)f) : to + sprintf(to, "%.9g", (double)f);
	if (f < 0)
		*to++ = '-';
	while (powers[exponent + 9] * 10 <= v)
		exponent++;
	while (powers[exponent + 9] > v)
		exponent--;
	n = (unsigned)(8 - exponent);  /* digits behind the point */
	scale = (uint64_t)(powers[9 + 4] * powers[n + 5] + 0.5);
	digits = (uint64_t)(v * (double)scale + 0.5);
	whole = digits / scale;
	digits %= scale;
	to = put_decimal(to, whole);
	if (!digits)
		return to;
	for (unsigned k = n; k-- > 0; digits /= 10)
		fraction[k] = (char)('0' + digits % 10);
	while (fraction[n - 1] == '0')
		n--;
	*to++ = '.';
	memcpy(to, fraction, n);
	return to + n;
}

static char *put_double(char *to, double v)
{
	if (fabs(v) < 1e9 && v == (double)(int64_t)v && !(v == 0 && signbit(v)))
		return put_signed(to, (int64_t)v);
	return to + sprintf(to, "%.17g", v);
}

char *gpul_trace_number(char *to, uint64_t v, unsigned bytes, char type)
{
	const int64_t sign = bytes == 8 ? (int64_t)v : bytes == 4 ? (int32_t)v : (int16_t)v;
	const uint32_t low = (uint32_t)v;
	double d;
	float f;

	if (type == 'f' && bytes == 4) {
		memcpy(&f, &low, sizeof f);
		return put_float(to, f);
	}
	if (type == 'f' && bytes == 8) {
		memcpy(&d, &v, sizeof d);
		return put_double(to, d);
	}
	if (type == 's' && (bytes < 8 || (sign > -(INT64_C(1) << 40) && sign < INT64_C(1) << 40)))
		return put_signed(to, sign);
	if (type == 'u' && v <= UINT32_MAX)
		return put_decimal(to, v);
	return v < 0x10000 ? put_decimal(to, v) : put_hex(to, v);
}

/* "0xffffffff", or "-" for a lane that did not execute, are the longest. */
static char *put_list(char *to, const uint64_t v[LANES], unsigned bytes, char type, uint32_t on)
{
	for (unsigned l = 0; l < LANES; l++) {
		if (l)
			*to++ = ' ';
		if (on >> l & 1)
			to = gpul_trace_number(to, v[l], bytes, type);
		else
			*to++ = '-';
	}
	return to;
}

/* Two 64-bit words per lane: the low words are first. */
static char *put_wide(char *to, const uint64_t *words, uint32_t on)
{
	for (unsigned l = 0; l < LANES; l++) {
		if (l)
			*to++ = ' ';
		to += on >> l & 1 ? sprintf(to, "0x%llx%016llx", (unsigned long long)words[LANES + l], (unsigned long long)words[l])
				  : sprintf(to, "-");
	}
	return to;
}

char *gpul_trace_lanes(char *to, const void *values, unsigned bytes, char type, uint32_t on)
{
	uint64_t v[LANES], first, step;

	if (!on) {
		*to++ = '-';
	} else if (!bytes) {  /* a predicate: bits of lanes */
		to += sprintf(to, "{%08x}", *(const uint32_t *)values & on);
	} else if (bytes == 16) {
		to = put_wide(to, values, on);
	} else {
		gpul_trace_widen(values, bytes, v);
		if (!gpul_trace_row(v, bytes, on, &first, &step) || (step && (type == 'f' || count_lanes(on) < 4))) {
			to = put_list(to, v, bytes, type, on);
		} else {
			to = gpul_trace_number(to, first, bytes, type);
			if (step) {
				const uint64_t last = v[LANES - 1 - (unsigned)__builtin_clz(on)];

				*to++ = ',', *to++ = ' ';
				to = gpul_trace_number(to, cut(first + step, bytes), bytes, type);
				memcpy(to, " ... ", 5);
				to = gpul_trace_number(to + 5, last, bytes, type);
			}
		}
	}
	*to = '\0';
	return to;
}
