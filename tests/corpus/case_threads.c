/* case_threads.c — synchronisation of threads: atomics, locks, cooperative groups, asynchronous copies. */
#include <math.h>
#include <string.h>

#include "tests/corpus/corpus.h"

/* ---- atomics --------------------------------------------------------------------------------------- */

struct cells { /* the same struct as in atomics.cu */
	int32_t sum, low, high, bits, toggled;
	uint32_t up, down, top;
	uint64_t wide_sum, wide_low, wide_high, wide_bits;
	int64_t low64, high64;
	float f;
	int32_t padding;
	double d;
	float greatest;
	uint16_t small, unused;
};

static const struct cells before = { .wide_low = UINT64_MAX, .wide_bits = UINT64_MAX };

static void cells_reference(struct cells *c, int n)
{
	*c = before;
	for (int i = 0; i < n; i++) {
		uint64_t u = (uint64_t)i;

		c->sum += i;
		c->low = -i < c->low ? -i : c->low;
		c->high = i > c->high ? i : c->high;
		c->bits |= 1 << i % 31;
		c->toggled ^= i * 7;
		c->up = c->up >= 1000 ? 0 : c->up + 1;
		c->down = c->down == 0 || c->down > 77 ? 77 : c->down - 1;
		c->top = 0x80000000u + (uint32_t)i;
		c->wide_sum += u << 33;
		c->wide_low = (u + 1) << 40 < c->wide_low ? (u + 1) << 40 : c->wide_low;
		c->wide_high = u << 40;
		c->wide_bits &= ~(1ull << i % 61);
		c->low64 = -(int64_t)(u << 35);
		c->high64 = (int64_t)(u << 35);
		c->f += 1;
		c->d += 0.5;
		c->greatest = fmaxf(c->greatest, (float)(i % 97));
		c->small++;
	}
}

static void run_atomics(struct corpus *c)
{
	struct cells got, want;
	int n = 3000;

	cells_reference(&want, n);
	CUdeviceptr at = corpus_in(c, &before, sizeof before);
	corpus_launch(c, "atomics", (struct corpus_shape){ .grid_x = 24, .block_x = 128 }, (void *[]){ &at, &n });
	corpus_get(c, &got, at, sizeof got);
	corpus_same_u8(c, "the cells' bytes", (const uint8_t *)&got, (const uint8_t *)&want, sizeof got);
}

static void run_ticket(struct corpus *c)
{
	int32_t zero = 0, count = -1, want = 2 * 4 * 40;
	CUdeviceptr next = corpus_in(c, &zero, 4), serving = corpus_in(c, &zero, 4), sum = corpus_in(c, &zero, 4);

	corpus_launch(c, "ticket", (struct corpus_shape){ .grid_x = 4, .block_x = 40 }, (void *[]){ &next, &serving, &sum });
	corpus_get(c, &count, sum, 4);
	corpus_same_i32(c, "count", &count, &want, 1);
}

static void run_spinlock(struct corpus *c)
{
	int32_t zero = 0, count = -1, want = 3 * 65;
	CUdeviceptr lock = corpus_in(c, &zero, 4), sum = corpus_in(c, &zero, 4);

	corpus_launch(c, "spinlock", (struct corpus_shape){ .grid_x = 3, .block_x = 65 }, (void *[]){ &lock, &sum });
	corpus_get(c, &count, sum, 4);
	corpus_same_i32(c, "count", &count, &want, 1);
}

static void run_warplock(struct corpus *c)
{
	int32_t zeros[32] = { 0 }, count[32] = { 0 }, want[32];
	CUdeviceptr lock = corpus_in(c, zeros, 4), sum = corpus_in(c, zeros, sizeof zeros);

	for (int l = 0; l < 32; l++)
		want[l] = 5 * 3;
	corpus_launch(c, "warplock", (struct corpus_shape){ .grid_x = 5, .block_x = 96 }, (void *[]){ &lock, &sum });
	corpus_get(c, count, sum, sizeof count);
	corpus_same_i32(c, "count", count, want, 32);
}

/* ---- cooperative groups ---------------------------------------------------------------------------- */

enum { TILED = 96, ROWS = 6, POISON = (int32_t)0xcdcdcdcd };

static int32_t sum_of(int first, int n)
{
	return n * first + n * (n - 1) / 2;
}

static void tiles_reference(int32_t *want)
{
	for (int i = 0; i < TILED; i++) {
		int warp = i / 32 * 32, eight = i / 8 * 8, most = 0, mask = 0, few = 0, rank = 0;

		for (int k = 0; k < 8; k++) {
			most = (eight + k) * 3 % 17 > most ? (eight + k) * 3 % 17 : most;
			mask |= ((eight + k) % 3 == i % 3) << k;
		}
		for (int k = warp; k < warp + 32; k++) {
			few += k % 3 == 1;
			rank += k % 3 == 1 && k < i;
		}
		want[i] = sum_of(warp, 32);
		want[TILED + i] = most;
		want[2 * TILED + i] = sum_of(warp, i - warp + 1);
		want[3 * TILED + i] = i % 8 < 5 ? i + 3 : i;
		want[4 * TILED + i] = mask;
		want[5 * TILED + i] = i % 3 == 1 ? rank + 100 * few + 10000 * few : POISON;
	}
}

static void run_tiles(struct corpus *c)
{
	static int32_t got[ROWS * TILED], want[ROWS * TILED];
	int n = TILED;
	CUdeviceptr out = corpus_out(c, sizeof got);

	tiles_reference(want);
	corpus_launch(c, "tiles", (struct corpus_shape){ .grid_x = 1, .block_x = TILED }, (void *[]){ &out, &n });
	corpus_get(c, got, out, sizeof got);
	corpus_same_i32(c, "out", got, want, ROWS * TILED);
}

static void run_gridsync(struct corpus *c)
{
	enum { N = 1000, ROUNDS = 9 };
	static int32_t x[N], y[N], got[N];
	int n = N, rounds = ROUNDS;

	for (int i = 0; i < N; i++)
		x[i] = i % 7;
	CUdeviceptr a = corpus_in(c, x, sizeof x), b = corpus_out(c, sizeof y);
	corpus_launch(c, "gridsync", (struct corpus_shape){ .grid_x = 8, .block_x = 125, .cooperative = true },
		      (void *[]){ &a, &b, &n, &rounds });
	corpus_get(c, got, b, sizeof got);
	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < N; i++)
			y[i] = x[(i + 1) % N] + x[(i + N - 1) % N];
		memcpy(x, y, sizeof x);
	}
	corpus_same_i32(c, "b", got, x, N);
}

static void run_shapes(struct corpus *c)
{
	enum { THREADS = 7 * 5 * 3, BLOCKS = 3 * 2 * 2 };
	static int32_t got[BLOCKS * THREADS], want[BLOCKS * THREADS], lanes[BLOCKS * THREADS], want_lanes[BLOCKS * THREADS];
	CUdeviceptr out = corpus_out(c, sizeof got), active = corpus_out(c, sizeof lanes);

	for (int i = 0; i < BLOCKS * THREADS; i++) {
		want[i] = (THREADS - 1 - i % THREADS) * (i / THREADS) + 1000000 * (THREADS / 3);
		want_lanes[i] = i % THREADS < 96 ? 32 : 9;
	}
	corpus_launch(c, "shapes", (struct corpus_shape){ .grid_x = 3, .grid_y = 2, .grid_z = 2, .block_x = 7, .block_y = 5, .block_z = 3 },
		      (void *[]){ &out, &active });
	corpus_get(c, got, out, sizeof got);
	corpus_get(c, lanes, active, sizeof lanes);
	corpus_same_i32(c, "out", got, want, BLOCKS * THREADS);
	corpus_same_i32(c, "lanes", lanes, want_lanes, BLOCKS * THREADS);
}

/* ---- asynchronous copies --------------------------------------------------------------------------- */

static void run_pipeline(struct corpus *c)
{
	enum { TILES = 7, N = TILES * 256 };
	static float in[N], got[N], want[N];
	int tiles = TILES;

	corpus_fill_unit(c, in, N);
	for (int i = 0; i < N; i++)
		want[i] = in[i / 256 * 256 + (63 - i % 256 / 4) * 4 + i % 4];
	CUdeviceptr from = corpus_in(c, in, sizeof in), to = corpus_out(c, sizeof got);
	corpus_launch(c, "pipeline", (struct corpus_shape){ .grid_x = 1, .block_x = 64 }, (void *[]){ &from, &to, &tiles });
	corpus_get(c, got, to, sizeof got);
	corpus_same_f32(c, "out", got, want, N);
}

static void run_hand(struct corpus *c)
{
	enum { ROUNDS = 9 };
	int32_t in[32 * ROUNDS], got[32], want[32] = { 0 };
	int rounds = ROUNDS;

	for (int i = 0; i < 32 * ROUNDS; i++)
		in[i] = i * 37 % 101;
	for (int i = 0; i < 32 * ROUNDS; i++)
		want[31 - i % 32] += 3 * (i / 32 + 1) * in[i];
	CUdeviceptr from = corpus_in(c, in, sizeof in), to = corpus_out(c, sizeof got);
	corpus_launch(c, "hand", (struct corpus_shape){ .grid_x = 1, .block_x = 64 }, (void *[]){ &from, &to, &rounds });
	corpus_get(c, got, to, sizeof got);
	corpus_same_i32(c, "out", got, want, 32);
}

const struct corpus_case corpus_threads_cases[] = {
	{ "atomics", "atomics", run_atomics },   { "atomics", "ticket", run_ticket },
	{ "atomics", "spinlock", run_spinlock }, { "atomics", "warplock", run_warplock },
	{ "groups", "tiles", run_tiles },        { "groups", "gridsync", run_gridsync },
	{ "groups", "shapes", run_shapes },      { "async", "pipeline", run_pipeline },
	{ "async", "hand", run_hand },           { 0 },
};
