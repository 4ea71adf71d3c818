/* transactions.c — counts sectors, lines and bank conflicts (transactions_internal.h). */
#include "softcuda/tools/profile/transactions_internal.h"

#include <string.h>

/* ---- global and local memory ------------------------------------------------------------------------------------- */

/* Count the distinct values of at[k] >> shift with a hash table of 64 slots. */
static unsigned count_different(const uint64_t *at, unsigned n, unsigned shift)
{
	uint64_t slot[64];
	uint64_t used = 0;
	unsigned count = 0;

	for (unsigned k = 0; k < n; k++) {
		const uint64_t value = at[k] >> shift;
		unsigned s = (unsigned)((value * 0x9e3779b97f4a7c15u) >> 58);

		while (used >> s & 1 && slot[s] != value)
			s = (s + 1) % 64;
		count += !(used >> s & 1);
		slot[s] = value;
		used |= 1ull << s;
	}
	return count;
}

static unsigned sectors_of_bytes(unsigned n, uint32_t bytes)
{
	return (n * bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

struct cost gpul_sectors(const uint64_t *at, unsigned n, uint32_t bytes)
{
	unsigned different = 1, sectors = 1, lines = 1, descends = 0;

	for (unsigned k = 1; k < n; k++) {
		const uint64_t a = at[k - 1], b = at[k];

		different += a != b;
		sectors += a >> 5 != b >> 5;
		lines += a >> 7 != b >> 7;
		descends |= b < a;
	}
	if (descends) {
		different = count_different(at, n, 0);
		sectors = count_different(at, n, 5);
		lines = count_different(at, n, 7);
	}
	return (struct cost){ .actual = sectors, .ideal = sectors_of_bytes(different, bytes), .lines = lines };
}

struct cost gpul_sectors_of_span(uint64_t at, uint64_t bytes)
{
	const uint64_t last = at + bytes - 1;

	if (!bytes)
		return (struct cost){ 0 };
	return (struct cost){ .actual = (uint32_t)(last / SECTOR_BYTES - at / SECTOR_BYTES + 1),
			      .ideal = (uint32_t)((bytes + SECTOR_BYTES - 1) / SECTOR_BYTES),
			      .lines = (uint32_t)(last / LINE_BYTES - at / LINE_BYTES + 1) };
}

struct cost gpul_sectors_local(const uint64_t at[WARP_LANES], uint32_t lanes, uint32_t bytes)
{
	const unsigned words = bytes <= 4 ? 1 : bytes / 4;
	const unsigned all = (unsigned)__builtin_popcount(lanes) * bytes;
	uint64_t place[WARP_LANES];
	struct cost sum = { .ideal = (all + SECTOR_BYTES - 1) / SECTOR_BYTES };

	for (unsigned w = 0; w < words; w++) {
		unsigned n = 0;
		struct cost c;

		for (unsigned l = 0; l < WARP_LANES; l++)
			if (lanes >> l & 1)
				place[n++] = ((at[l] / 4 + w) * WARP_LANES + l) * 4;
		c = gpul_sectors(place, n, 4);
		sum.actual += c.actual;
		sum.lines += c.lines;
	}
	return sum;
}

/* ---- shared memory ------------------------------------------------------------------------------------------------- */

/* Return the largest number of accesses to one bank. */
static unsigned most_accesses(const uint32_t *word, unsigned n)
{
	uint8_t count[N_BANKS_SHARED];
	unsigned most = 0;

	memset(count, 0, sizeof count);
	for (unsigned k = 0; k < n; k++) {
		const unsigned now = ++count[word[k] % N_BANKS_SHARED];

		most = now > most ? now : most;
	}
	return most;
}

/* Return the largest number of different words in one bank. */
static unsigned most_words(const uint32_t *word, unsigned n)
{
	uint32_t first[N_BANKS_SHARED], next[WARP_LANES]; /* a list of words per bank; elements are index + 1, 0 ends a list */
	uint8_t count[N_BANKS_SHARED];
	unsigned most = 1;

	memset(first, 0, sizeof first);
	memset(count, 0, sizeof count);
	for (unsigned k = 0; k < n; k++) {
		const unsigned bank = word[k] % N_BANKS_SHARED;
		uint32_t j = first[bank];

		while (j && word[j - 1] != word[k])
			j = next[j - 1];
		if (j)
			continue;
		next[k] = first[bank];
		first[bank] = k + 1;
		if (++count[bank] > most)
			most = count[bank];
	}
	return most;
}

/* Returns true if no bank contains two different words. */
static bool one_word_for_each_bank(const uint32_t *word, unsigned n)
{
	uint32_t last[N_BANKS_SHARED], differ = 0;

	for (unsigned k = 0; k < n; k++)
		last[word[k] % N_BANKS_SHARED] = word[k];
	for (unsigned k = 0; k < n; k++)
		differ |= last[word[k] % N_BANKS_SHARED] ^ word[k];
	return !differ;
}

struct cost gpul_wavefronts(const uint32_t at[WARP_LANES], uint32_t lanes, uint32_t bytes, bool atomic)
{
	const unsigned words = bytes <= 4 ? 1 : bytes / 4, part = WARP_LANES / words;
	struct cost sum = { 0 };

	for (unsigned from = 0; from < WARP_LANES; from += part) {
		uint32_t word[WARP_LANES];
		unsigned n = 0;

		for (unsigned l = from; l < from + part; l++)
			for (unsigned w = 0; lanes >> l & 1 && w < words; w++)
				word[n++] = at[l] / 4 + w;
		if (!n)
			continue;
		if (atomic)
			sum.actual += most_accesses(word, n);
		else
			sum.actual += one_word_for_each_bank(word, n) ? 1 : most_words(word, n);
		sum.ideal++;
	}
	return sum;
}
