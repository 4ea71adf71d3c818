/* stream.c — makes random streams and the destination's expected content. */
#include "tests/lab/netqueue/stream.h"

#include <stdlib.h>
#include <string.h>

#include "lab/netqueue/producer.h"

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 24;
}

void stream_make(struct stream *s, uint64_t seed, uint64_t destination_bytes, uint32_t most_bytes, bool pads)
{
	uint64_t *begins = malloc((destination_bytes + 1) * sizeof *begins), n = 0;

	*s = (struct stream){ .right = malloc(destination_bytes), .destination_bytes = destination_bytes };
	if (!begins || !s->right)
		abort();
	for (uint64_t i = 0; i < destination_bytes; i++)
		s->right[i] = (unsigned char)next(&seed);
	for (uint64_t at = 0; at < destination_bytes; at += next(&seed) % most_bytes + 1)
		begins[n++] = at;
	begins[n] = destination_bytes;
	s->bytes = malloc(destination_bytes + (n + 1) * (GPUL_NETQUEUE_HEADER_BYTES + 15));
	if (!s->bytes)
		abort();
	for (uint64_t i = 0, k = 0; i < n; i++) { /* steps of 7919, a prime that does not divide n, reach each record once */
		const uint64_t begin = begins[k], length = begins[k + 1] - begin;
		const uint32_t pad = pads ? (uint32_t)(next(&seed) % 16) : 0;

		gpul_netqueue_write_header(s->bytes + s->n_bytes, (uint32_t)length, pad, begin);
		s->n_bytes += GPUL_NETQUEUE_HEADER_BYTES;
		memset(s->bytes + s->n_bytes, 0xee, pad);
		memcpy(s->bytes + s->n_bytes + pad, s->right + begin, length);
		s->n_bytes += pad + length;
		k = (k + (n % 7919 ? 7919 : 1)) % n;
	}
	gpul_netqueue_write_header(s->bytes + s->n_bytes, 0, 0, 0);
	s->n_bytes += GPUL_NETQUEUE_HEADER_BYTES;
	s->n_records = n;
	free(begins);
}

void stream_free(struct stream *s)
{
	free(s->bytes);
	free(s->right);
}
