/* sha256.c — computes SHA-256; numbers in comments are sections of FIPS 180-4. */
#include "core/sha256.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { BLOCK_BYTES = 64, MANY_BLOCKS = 64 /* for fewer blocks, querying the CPU's features takes too long */ };

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes */
static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

/* The functions of FIPS 180-4, 4.1.2. */
static uint32_t rotr(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}
static uint32_t ch(uint32_t x, uint32_t y, uint32_t z)
{
	return (x & y) ^ (~x & z);
}
static uint32_t maj(uint32_t x, uint32_t y, uint32_t z)
{
	return (x & y) ^ (x & z) ^ (y & z);
}
static uint32_t big_sigma0(uint32_t x)
{
	return rotr(x, 2) ^ rotr(x, 13) ^ rotr(x, 22);
}
static uint32_t big_sigma1(uint32_t x)
{
	return rotr(x, 6) ^ rotr(x, 11) ^ rotr(x, 25);
}
static uint32_t sigma0(uint32_t x)
{
	return rotr(x, 7) ^ rotr(x, 18) ^ x >> 3;
}
static uint32_t sigma1(uint32_t x)
{
	return rotr(x, 17) ^ rotr(x, 19) ^ x >> 10;
}

/* Do step i of FIPS 180-4, 6.2.2.  There, each step moves a to b, b to c and so on.  Here the values stay in place, and their
 * index changes: a has index -i mod 8, which is a constant after the loop is unrolled. */
static inline void do_round(uint32_t v[8], unsigned i, uint32_t kw)
{
	uint32_t *a = &v[-i & 7], *b = &v[(1 - i) & 7], *c = &v[(2 - i) & 7], *d = &v[(3 - i) & 7];
	uint32_t *e = &v[(4 - i) & 7], *f = &v[(5 - i) & 7], *g = &v[(6 - i) & 7];
	uint32_t *h = &v[(7 - i) & 7];
	uint32_t t1 = *h + big_sigma1(*e) + ch(*e, *f, *g) + kw;

	*d += t1;
	*h = t1 + big_sigma0(*a) + maj(*a, *b, *c);
}

/* FIPS 180-4, 6.2.2: add one block of 64 bytes, read as big-endian words */
static void compress(uint32_t state[8], const unsigned char *block)
{
	uint32_t w[64], v[8];

	for (int t = 0; t < 16; t++, block += 4)
		w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
	for (int t = 16; t < 64; t++)
		w[t] = sigma1(w[t - 2]) + w[t - 7] + sigma0(w[t - 15]) + w[t - 16];
	memcpy(v, state, sizeof v);
	for (unsigned t = 0; t < 64; t += 8)
#pragma GCC unroll 8
		for (unsigned i = 0; i < 8; i++)
			do_round(v, i, K[t + i] + w[t + i]);
	for (int i = 0; i < 8; i++)
		state[i] += v[i];
}

#if defined(__x86_64__)
/* Like compress(), with the SHA instructions of x86: one register contains A, B, E, F, another one C, D, G, H; sha256rnds2 does two
 * rounds. */
__attribute__((target("sha,sse4.1"))) static void compress_x86(uint32_t state[8], const unsigned char *block)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	const __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)state),
		      hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4)), cdab = _mm_shuffle_epi32(dcba, 0xb1),
		      efgh = _mm_shuffle_epi32(hgfe, 0x1b), abef_before = _mm_alignr_epi8(cdab, efgh, 8),
		      cdgh_before = _mm_blend_epi16(efgh, cdab, 0xf0);
	__m128i abef = abef_before, cdgh = cdgh_before, w[4];

#pragma GCC unroll 16
	for (int t = 0; t < 16; t++) { /* each iteration does four rounds */
		__m128i *now = &w[t & 3], kw;

		if (t < 4)
			*now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * t)), big_endian);
		else
			*now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(t + 1) & 3]),
								  _mm_alignr_epi8(w[(t + 3) & 3], w[(t + 2) & 3], 4)),
						    w[(t + 3) & 3]);
		kw = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * t)));
		cdgh = _mm_sha256rnds2_epu32(cdgh, abef, kw);
		abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(kw, 0x0e));
	}
	abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
	cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
	_mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(abef, cdgh, 0xf0));
	_mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(cdgh, abef, 8));
}

static bool has_sha_instructions(void)
{
	unsigned eax, ebx, ecx, edx;

	return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && ebx & bit_SHA && __builtin_cpu_supports("sse4.1");
}
#endif

/* Add whole blocks; for many blocks, use the SHA instructions if the CPU has them. */
static void compress_all(uint32_t state[8], const unsigned char *block, size_t n_blocks)
{
	void (*one)(uint32_t[8], const unsigned char *) = compress;

#if defined(__x86_64__)
	if (n_blocks >= MANY_BLOCKS && has_sha_instructions())
		one = compress_x86;
#endif
	for (; n_blocks; n_blocks--, block += BLOCK_BYTES)
		one(state, block);
}

void gpul_sha256_begin(gpul_sha256 *s)
{
	/* FIPS 180-4, 5.3.3: the first 32 bits of the fractional parts of the square roots of the first 8 primes */
	static const uint32_t start[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(s->state, start, sizeof start);
	s->n_bytes = 0;
}

void gpul_sha256_add(gpul_sha256 *s, const void *bytes, size_t n_bytes)
{
	const unsigned char *at = bytes;
	size_t used = s->n_bytes % sizeof s->block;

	s->n_bytes += n_bytes;
	if (used) {
		size_t room = sizeof s->block - used, n = n_bytes < room ? n_bytes : room;

		if (n)
			memcpy(s->block + used, at, n);
		if (used + n < sizeof s->block)
			return;
		compress(s->state, s->block);
		at += n;
		n_bytes -= n;
	}
	compress_all(s->state, at, n_bytes / BLOCK_BYTES);
	if (n_bytes % BLOCK_BYTES)
		memcpy(s->block, at + n_bytes / BLOCK_BYTES * BLOCK_BYTES, n_bytes % BLOCK_BYTES);
}

/* FIPS 180-4, 5.1.1: pad the last block with a single 1 bit, zeros, and the length in bits. */
void gpul_sha256_end(gpul_sha256 *s, unsigned char digest[GPUL_SHA256_BYTES])
{
	static const unsigned char padding[64] = { 0x80 };
	unsigned char length[8];
	size_t used = s->n_bytes % 64;

	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(s->n_bytes * 8 >> (56 - 8 * i));
	gpul_sha256_add(s, padding, used < 56 ? 56 - used : 120 - used);
	gpul_sha256_add(s, length, sizeof length);
	for (int i = 0; i < GPUL_SHA256_BYTES; i++)
		digest[i] = (unsigned char)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- HMAC: H(key ^ outer, H(key ^ inner, text)) ------------------------------------------------------------------- */

static void begin_padded(gpul_sha256 *s, const unsigned char key[64], unsigned char pad)
{
	unsigned char block[64];

	for (size_t i = 0; i < sizeof block; i++)
		block[i] = key[i] ^ pad;
	gpul_sha256_begin(s);
	gpul_sha256_add(s, block, sizeof block);
}

void gpul_hmac_begin(gpul_hmac *h, const void *key, size_t key_bytes)
{
	unsigned char block[64] = { 0 };

	if (key_bytes > sizeof block) { /* a key longer than a block is replaced by its digest */
		gpul_sha256_begin(&h->inner);
		gpul_sha256_add(&h->inner, key, key_bytes);
		gpul_sha256_end(&h->inner, block);
	} else if (key_bytes) {
		memcpy(block, key, key_bytes);
	}
	begin_padded(&h->inner, block, 0x36);
	begin_padded(&h->outer, block, 0x5c);
}

void gpul_hmac_add(gpul_hmac *h, const void *bytes, size_t n_bytes)
{
	gpul_sha256_add(&h->inner, bytes, n_bytes);
}

void gpul_hmac_end(gpul_hmac *h, unsigned char digest[GPUL_SHA256_BYTES])
{
	gpul_sha256_end(&h->inner, digest);
	gpul_sha256_add(&h->outer, digest, GPUL_SHA256_BYTES);
	gpul_sha256_end(&h->outer, digest);
}

bool gpul_sha256_same(const unsigned char a[GPUL_SHA256_BYTES], const unsigned char b[GPUL_SHA256_BYTES])
{
	volatile unsigned char different = 0;

	for (int i = 0; i < GPUL_SHA256_BYTES; i++)
		different = different | (unsigned char)(a[i] ^ b[i]);
	return different == 0;
}
