/* shadow.c — implements shadow memory: one bit for each byte, set when the byte is written. */
#include <stdlib.h>
#include <string.h>

#include "softcuda/tools/memcheck/parts_internal.h"

static uint64_t words_of(uint64_t bytes)
{
	return (bytes + 63) / 64;
}

bool gpul_shadow_create(struct shadow *h, uint64_t bytes)
{
	*h = (struct shadow){ .bytes = bytes };
	h->bits = calloc(words_of(bytes) + 1, sizeof *h->bits);
	if (!h->bits)
		return false;
	if (bytes % 64) /* bits past the end count as written, so that the last word can become all ones */
		h->bits[bytes / 64] = UINT64_MAX << (bytes % 64);
	return true;
}

void gpul_shadow_free(struct shadow *h)
{
	free(h->bits);
	h->bits = NULL;
}

/* Return the bits of word `w` that are in [at, end). */
static uint64_t bits_in_word(uint64_t w, uint64_t at, uint64_t end)
{
	uint64_t bits = UINT64_MAX;

	if (w == at / 64)
		bits &= UINT64_MAX << (at % 64);
	if (w == end / 64)
		bits &= (UINT64_C(1) << (end % 64)) - 1;
	return bits;
}

bool gpul_shadow_has(const struct shadow *h, uint64_t at, uint64_t bytes)
{
	const uint64_t end = at + bytes;

	for (uint64_t w = at / 64; w < words_of(end); w++)
		if (bits_in_word(w, at, end) & ~__atomic_load_n(&h->bits[w], __ATOMIC_RELAXED))
			return false;
	return true;
}

void gpul_shadow_set(struct shadow *h, uint64_t at, uint64_t bytes, bool plain)
{
	const uint64_t end = at + bytes;

	for (uint64_t w = at / 64; w < words_of(end); w++) {
		const uint64_t bits = bits_in_word(w, at, end), old = __atomic_load_n(&h->bits[w], __ATOMIC_RELAXED);

		if (!(bits & ~old))
			continue;
		if (plain || !~bits)
			__atomic_store_n(&h->bits[w], old | bits, __ATOMIC_RELAXED);
		else
			__atomic_fetch_or(&h->bits[w], bits, __ATOMIC_RELAXED);
	}
}

void gpul_shadow_clear(struct shadow *h, uint64_t at, uint64_t bytes)
{
	const uint64_t end = at + bytes;

	for (uint64_t w = at / 64; w < words_of(end); w++)
		__atomic_fetch_and(&h->bits[w], ~bits_in_word(w, at, end), __ATOMIC_RELAXED);
}

void gpul_shadow_copy(struct shadow *to, uint64_t to_at, const struct shadow *from, uint64_t from_at, uint64_t bytes, bool plain)
{
	if (!from->bits || gpul_shadow_has(from, from_at, bytes)) {
		gpul_shadow_set(to, to_at, bytes, plain);
		return;
	}
	for (uint64_t k = 0; k < bytes; k++)
		if (shadow_has_byte(from, from_at + k))
			gpul_shadow_set(to, to_at + k, 1, plain);
}

/* Once set, `complete` stays set: no bits are cleared while a kernel runs, except in the heap's shadow, which is never complete. */
void gpul_shadow_advance(struct shadow *h)
{
	const uint64_t n = words_of(h->bytes);
	uint64_t k = atomic_load_explicit(&h->hole, memory_order_relaxed);

	if (++h->n_checks % 32 || !h->bits)
		return;
	while (k < n && !~__atomic_load_n(&h->bits[k], __ATOMIC_RELAXED))
		k++;
	atomic_store_explicit(&h->hole, k, memory_order_relaxed);
	if (k == n)
		atomic_store_explicit(&h->complete, true, memory_order_relaxed);
}
