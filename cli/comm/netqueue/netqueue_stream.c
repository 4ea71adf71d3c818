/* netqueue_stream.c — generates the stream: records that cover the destination, in random order. */
#include <stdlib.h>

#include "cli/comm/netqueue/cli_netqueue.h"

enum { MOST_PAD = 15 };

const char *const netqueue_align_names[NETQUEUE_N_ALIGNS] = { "random", "16", "1" };

/* Return the next random number of the generator splitmix64 of Steele, Lea and Flood. */
static uint64_t next_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t record_bytes(const struct netqueue_request *q, uint64_t *seed)
{
	const uint64_t n = q->least_piece + next_random(seed) % (q->most_piece - q->least_piece + 1);

	return q->align == NETQUEUE_ALIGN_16 ? (n + 15) / 16 * 16 : n;
}

/* Return the offsets at which the records start, and after them the end of the last record; set *n to the number of records. */
static uint64_t *divide(const struct netqueue_request *q, uint64_t *n)
{
	const uint64_t least = q->align == NETQUEUE_ALIGN_16 ? (q->least_piece + 15) / 16 * 16 : q->least_piece;
	uint64_t *begins = malloc((q->bytes / least + 2) * sizeof *begins), seed = 1;

	*n = 0;
	for (uint64_t at = 0; begins && at < q->bytes; at += record_bytes(q, &seed))
		begins[(*n)++] = at;
	if (begins)
		begins[*n] = q->bytes;
	return begins;
}

/* Choose the offset of a piece in the stream minus its offset in the destination, modulo 16. */
static uint64_t wanted_shift(const struct netqueue_request *q, uint64_t *seed)
{
	return q->align == NETQUEUE_ALIGN_16 ? 0 : next_random(seed) % 16 | (q->align == NETQUEUE_ALIGN_1);
}

/* Find a stride without a common divisor with n, so that steps of this size visit all records. */
static uint64_t find_step(uint64_t n)
{
	for (uint64_t step = n / 2 + n / 7 + 1;; step++) {
		uint64_t a = n, b = step;

		while (b) {
			const uint64_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a == 1)
			return step;
	}
}

gpul_status netqueue_stream_make(const struct netqueue_request *q, struct netqueue_stream *out, gpul_error *err)
{
	uint64_t n, seed = 2, *begins = divide(q, &n), at = 0;
	const uint64_t step = begins ? find_step(n) : 1, room = q->bytes + (n + 1) * (GPUL_NETQUEUE_HEADER_BYTES + MOST_PAD);
	unsigned char *bytes = begins ? malloc(room) : NULL;

	*out = (struct netqueue_stream){ .n_bytes = 0 };
	if (!bytes) {
		free(begins);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a stream of %llu bytes", (unsigned long long)q->bytes);
	}
	for (uint64_t i = 0, k = 0; i < n; i++, k = (k + step) % n) {
		const uint64_t begin = begins[k], length = begins[k + 1] - begin;
		const uint32_t pad = (uint32_t)(begin + wanted_shift(q, &seed) - at - GPUL_NETQUEUE_HEADER_BYTES) % 16;

		gpul_netqueue_write_header(bytes + at, (uint32_t)length, pad, begin);
		at += GPUL_NETQUEUE_HEADER_BYTES;
		for (uint32_t p = 0; p < pad; p++)
			bytes[at++] = 0;
		for (uint64_t b = 0; b < length; b++)
			bytes[at++] = netqueue_byte(begin + b);
	}
	gpul_netqueue_write_header(bytes + at, 0, 0, 0);
	*out = (struct netqueue_stream){ .bytes = bytes, .n_bytes = at + GPUL_NETQUEUE_HEADER_BYTES, .n_records = n };
	free(begins);
	return GPUL_OK;
}

void netqueue_stream_free(struct netqueue_stream *s)
{
	free(s->bytes);
	*s = (struct netqueue_stream){ .n_bytes = 0 };
}
