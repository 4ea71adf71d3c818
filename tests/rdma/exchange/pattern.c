/* pattern.c — bytes that depend on their position, so that a byte at a wrong position is detected. */
#include "tests/rdma/exchange/exchange.h"

#include <string.h>

uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t word_at(uint64_t seed, uint64_t index)
{
	return (seed + index) * UINT64_C(0x9e3779b97f4a7c15) ^ seed;
}

void pattern_fill(unsigned char *at, uint64_t bytes, uint64_t seed)
{
	uint64_t i = 0;

	for (; i + 8 <= bytes; i += 8) {
		const uint64_t w = word_at(seed, i / 8);

		memcpy(at + i, &w, 8);
	}
	if (i < bytes) {
		const uint64_t w = word_at(seed, i / 8);

		memcpy(at + i, &w, bytes - i);
	}
}

static uint64_t first_wrong(const unsigned char *at, uint64_t from, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = from; i < bytes; i++) {
		const uint64_t w = word_at(seed, i / 8);
		unsigned char right[8];

		memcpy(right, &w, 8);
		if (at[i] != right[i % 8])
			return i;
	}
	return bytes;
}

uint64_t pattern_check(const unsigned char *at, uint64_t bytes, uint64_t seed)
{
	uint64_t i = 0;

	for (; i + 8 <= bytes; i += 8) {
		uint64_t w;

		memcpy(&w, at + i, 8);
		if (w != word_at(seed, i / 8))
			break;
	}
	return first_wrong(at, i, bytes, seed);
}
