/* image.c — keeps the contents of global memory before the launch and after the first schedule. Only chunks that a schedule writes to
 * are saved, so that large unused buffers cost no memory. */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdlib.h>

static uint64_t chunk_of(uint64_t at)
{
	return at / CHUNK_BYTES * CHUNK_BYTES;
}

static struct chunk *find_chunk(const struct image *m, uint64_t at)
{
	uint64_t k = at / CHUNK_BYTES * 0x9e3779b97f4a7c15u >> 32;

	while (m->chunk[k & (m->capacity - 1)].at && m->chunk[k & (m->capacity - 1)].at != at)
		k++;
	return &m->chunk[k & (m->capacity - 1)];
}

static bool grow(struct image *m)
{
	struct image larger = { .n = m->n, .capacity = m->capacity ? 2 * m->capacity : 64, .has_first = m->has_first };

	larger.chunk = calloc(larger.capacity, sizeof *larger.chunk);
	if (!larger.chunk)
		return false;
	for (unsigned k = 0; k < m->capacity; k++)
		if (m->chunk[k].at)
			*find_chunk(&larger, m->chunk[k].at) = m->chunk[k];
	free(m->chunk);
	*m = larger;
	return true;
}

static bool is_touched(const struct chunk *c, unsigned byte)
{
	return c->touched[byte / 64] >> byte % 64 & 1;
}

/* Save the bytes [at, at + bytes), which must be in one chunk. */
static bool keep_bytes(struct image *m, uint64_t at, uint64_t bytes)
{
	struct chunk *c;

	if (2 * (m->n + 1) > m->capacity && !grow(m))
		return false;
	c = find_chunk(m, chunk_of(at));
	m->n += !c->at;
	c->at = chunk_of(at);
	for (unsigned k = at % CHUNK_BYTES; bytes--; k++) {
		if (is_touched(c, k))
			continue;
		c->touched[k / 64] |= UINT64_C(1) << k % 64;
		c->original[k] = c->first[k] = *(const uint8_t *)(uintptr_t)(c->at + k);
	}
	return true;
}

bool gpul_image_keep(struct image *m, const struct footprint *f)
{
	for (unsigned k = 0; k < f->n; k++) {
		const struct span *s = &f->span[k];

		if (!s->writes || !gpul_span_global(s))
			continue;
		for (uint64_t at = s->at, next; at < s->at + s->bytes; at = next) {
			next = chunk_of(at) + CHUNK_BYTES;
			next = next < s->at + s->bytes ? next : s->at + s->bytes;
			if (!keep_bytes(m, at, next - at))
				return false;
		}
	}
	return true;
}

void gpul_image_end_first(struct image *m)
{
	for (unsigned c = 0; c < m->capacity; c++)
		for (unsigned k = 0; k < CHUNK_BYTES; k++)
			if (is_touched(&m->chunk[c], k))
				m->chunk[c].first[k] = *(const uint8_t *)(uintptr_t)(m->chunk[c].at + k);
	m->has_first = true;
}

static bool byte_differs(const struct chunk *c, unsigned k)
{
	return k < CHUNK_BYTES && is_touched(c, k) && c->first[k] != *(const uint8_t *)(uintptr_t)(c->at + k);
}

bool gpul_image_differs(const struct image *m, uint64_t from, uint64_t *at, uint32_t *bytes)
{
	*at = UINT64_MAX;
	for (unsigned n = 0; n < m->capacity; n++) {
		const struct chunk *c = &m->chunk[n];
		unsigned k = 0;

		if (!c->at || c->at + CHUNK_BYTES <= from || c->at >= *at)
			continue;
		while (k < CHUNK_BYTES && (c->at + k < from || !byte_differs(c, k)))
			k++;
		if (k == CHUNK_BYTES)
			continue;
		*at = c->at + k;
		for (*bytes = 1; byte_differs(c, k + *bytes); (*bytes)++)
			;
	}
	return *at != UINT64_MAX;
}

const uint8_t *gpul_image_first(const struct image *m, uint64_t at)
{
	return &find_chunk(m, chunk_of(at))->first[at % CHUNK_BYTES];
}

void gpul_image_restore(const struct image *m)
{
	for (unsigned c = 0; c < m->capacity; c++)
		for (unsigned k = 0; k < CHUNK_BYTES; k++)
			if (is_touched(&m->chunk[c], k))
				*(uint8_t *)(uintptr_t)(m->chunk[c].at + k) = m->chunk[c].original[k];
}

void gpul_image_clear(struct image *m)
{
	free(m->chunk);
	*m = (struct image){ 0 };
}
