/* case_warp.c — votes, shuffles, matches and barriers, compared with loops over the 32 lanes. */
#include <string.h>

#include "tests/corpus/corpus.h"

enum { N = 470, THREADS = 128, BLOCKS = 4, ALL = THREADS * BLOCKS }; /* some threads of the last warps are out of range */

struct block_votes {
	uint32_t count, any5, all;
};

static struct block_votes vote_block(const int32_t *v)
{
	struct block_votes b = { 0, 0, 1 };

	for (int t = 0; t < THREADS; t++) {
		b.count += v[t] > 3;
		b.any5 |= v[t] == 5;
		b.all &= v[t] >= 0;
	}
	return b;
}

static uint32_t reverse32(uint32_t v)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (v >> i & 1) << (31 - i);
	return r;
}

static uint32_t lanes_equal(const int32_t *w, int32_t v)
{
	uint32_t mask = 0;

	for (int l = 0; l < 32; l++)
		mask |= (uint32_t)(w[l] == v) << l;
	return mask;
}

/* The result of one lane; w: the 32 values of its warp. */
static uint32_t warp_reference(const int32_t *w, unsigned lane, struct block_votes b)
{
	uint32_t ballot = 0, any = 0, all = 1;

	for (int l = 0; l < 32; l++) {
		ballot |= (uint32_t)(w[l] > 3) << l;
		any |= w[l] == 7;
		all &= w[l] >= 0;
	}
	uint32_t up = (uint32_t)w[lane ? lane - 1 : 0], from = (uint32_t)w[ballot & 31];
	uint32_t across = (uint32_t)w[lane ^ 4], same = lanes_equal(w, w[lane]);
	uint32_t all_same = same == UINT32_MAX, same_mask = all_same ? UINT32_MAX : 0;
	uint32_t below = (1u << lane) - 1;
	uint32_t bits = (uint32_t)__builtin_popcount(ballot & below);

	bits += (uint32_t)__builtin_ffs((int)ballot);
	bits += ballot ? (uint32_t)__builtin_clz(ballot) : 32;
	bits += reverse32(ballot) + ballot; /* byte_perm with 0x3210 returns the first word unchanged */
	return ballot + any + all + b.count + b.any5 + b.all + UINT32_MAX + up + from + across + same + same_mask + all_same + bits + lane;
}

static void warpops(struct corpus *c)
{
	static int32_t in[ALL], got[N], want[N];
	int n = N;

	memset(in, 0, sizeof in);
	corpus_fill_i32(c, in, 64);
	for (int i = 64; i < N; i++) /* few different values, so that lanes match */
		in[i] = (int32_t)(corpus_random(c) % 9) - (i < 128);
	for (int i = 256; i < 288; i++) /* a warp in which all values are equal */
		in[i] = 7;
	for (int i = 0; i < N; i++)
		want[i] = (int32_t)warp_reference(in + (i & ~31), (unsigned)i & 31, vote_block(in + i / THREADS * THREADS));
	CUdeviceptr di = corpus_in(c, in, sizeof got), out = corpus_out(c, sizeof got);
	corpus_launch(c, "warpops", (struct corpus_shape){ .grid_x = BLOCKS, .block_x = THREADS }, (void *[]){ &di, &out, &n });
	corpus_get(c, got, out, sizeof got);
	corpus_same_i32(c, "out", got, want, N);
}

static void namedbar(struct corpus *c)
{
	int32_t got[96], want[96];

	for (int i = 0; i < 96; i++)
		want[i] = (i & 63) + 48;
	CUdeviceptr out = corpus_out(c, sizeof got);
	corpus_launch(c, "namedbar", (struct corpus_shape){ .grid_x = 1, .block_x = 96 }, (void *[]){ &out });
	corpus_get(c, got, out, sizeof got);
	corpus_same_i32(c, "o", got, want, 96);
}

const struct corpus_case corpus_warp_cases[] = {
	{ "warp", "warpops", warpops },
	{ "warp", "namedbar", namedbar },
	{ NULL, NULL, NULL },
};
