/* lanes.c — converts the values of 32 lanes to text. */
#include "softcuda/tools/trace/trace_internal.h"

#include <string.h>

#include "softcuda/exec/decode/decode_internal.h"

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
	if (l1 != l0 + 1 && v[l1] != v[l0]) /* if these lanes are not adjacent, the step might be a fraction of the difference */
		return false;
	*step = cut(v[l1] - v[l0], bytes);
	if (on == ALL_LANES) { /* without branches, so that the compiler can vectorise the loop */
		const uint64_t mask = cut(UINT64_MAX, bytes);
		uint64_t differ = 0;

		for (unsigned l = 0; l < LANES; l++)
			differ |= v[l] ^ ((*first + *step * l) & mask);
		return !differ;
	}
	EACH_LANE_OF(l, on)
	if (v[l] != cut(*first + *step * (l - l0), bytes))
		return false;
	return true;
}

/* The functions of decimals.c, in the version for this CPU.  They need no lock, because only one thread writes text at a time. */
static struct {
	trace_floats_fn *floats;
	trace_integers_fn *integers;
} writers;

static void find_writers(void)
{
	writers.floats = gpul_trace_floats_base;
	writers.integers = gpul_trace_integers_base;
#if defined(__x86_64__)
	if (!strcmp(gpul_build_name(), "v4")) {
		writers.floats = gpul_trace_floats_v4;
		writers.integers = gpul_trace_integers_v4;
	} else if (!strcmp(gpul_build_name(), "v3")) {
		writers.floats = gpul_trace_floats_v3;
		writers.integers = gpul_trace_integers_v3;
	}
#endif
}

static char *put_floats(char *to, const uint32_t bits[LANES], uint32_t on)
{
	const uint32_t first = bits[first_lane(on)];
	char *start = to, before = to[-1];
	uint32_t differ = 0;

	if (on == ALL_LANES)
		for (unsigned l = 0; l < LANES; l++)
			differ |= bits[l] ^ first;
	else
		EACH_LANE_OF(l, on)
	differ |= bits[l] ^ first;
	if (!differ)
		return gpul_trace_number(to, first, 4, 'f');
	to = writers.floats(to - 1, bits, on); /* floats() writes a blank to start[-1], which is restored below */
	start[-1] = before;
	return to;
}

/* True if all values are integers below 10^8; they are stored in out. */
static bool are_integers(const uint64_t v[LANES], unsigned bytes, char type, uint32_t on, uint64_t out[LANES])
{
	const uint64_t most = type == 'b' ? 0xffff : type == 's' && bytes == 2 ? 0x7fff : 99999999;
	uint64_t wrong = 0;

	for (unsigned l = 0; l < LANES; l++) {
		const uint64_t used = on >> l & 1 ? v[l] : 0;

		out[l] = used;
		if (type == 'f') {
			double d;

			memcpy(&d, &used, sizeof d);
			out[l] = d >= 0 && d < 1e8 ? (uint64_t)(int64_t)d : 0;
			d = (double)(int64_t)out[l];
			wrong |= memcmp(&d, &used, sizeof d) != 0;
		}
		wrong |= out[l] > most;
	}
	return !wrong;
}

/* Write the values one by one.  The longest text for a lane is "0xffffffffffffffff"; a lane that did not execute is "-". */
static char *put_list(char *to, const uint64_t v[LANES], unsigned bytes, char type, uint32_t on)
{
	char *start = to, before = to[-1];
	uint64_t integers[LANES];

	if (are_integers(v, bytes, type, on, integers)) {
		to = writers.integers(to - 1, integers, on);
		start[-1] = before;
		return to;
	}
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

/* Write two 64-bit words per lane; all low words come first. */
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

	if (!writers.floats)
		find_writers();
	if (!on) {
		*to++ = '-';
	} else if (!bytes) { /* a predicate: one bit per lane */
		*to++ = '{';
		to = gpul_trace_mask(to, *(const uint32_t *)values & on);
		*to++ = '}';
	} else if (bytes == 4 && type == 'f') {
		to = put_floats(to, values, on);
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
