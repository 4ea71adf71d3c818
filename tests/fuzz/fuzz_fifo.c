/* fuzz_fifo.c — libFuzzer target: the CPU side of a proxy FIFO, in shared memory that a peer can overwrite.
 *
 * The first bytes of the input select the shape and change some bytes of the header, which the library may then refuse.  The others are
 * operations with operands: writes of the peer anywhere in the memory, and calls.  Whatever the peer writes, each item must belong to
 * this FIFO, a lane must not have more unreleased items than slots, and each tail must match the releases. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proxy/fifo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MOST_LOG_LANES = 8, MOST_LOG_SLOTS = 4, MOST_LANES = 1 << MOST_LOG_LANES, MOST_ITEMS = 64 };

struct bytes {
	const uint8_t *at, *end;
};

struct fifo {
	gpul_fifo *f;
	uint8_t *area;
	size_t area_bytes;
	gpul_fifo_shape shape;
	unsigned per_lane;
	uint64_t taken[MOST_LANES], released[MOST_LANES];
};

static void require(int truth)
{
	if (!truth)
		abort();
}

static unsigned next_byte(struct bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

static struct gpul_fifo_line *lines(const struct fifo *f)
{
	return (void *)(f->area + sizeof(struct gpul_fifo_header));
}

/* Open the FIFO; the library may refuse its header.  The memory has exactly the needed size, so that a sanitizer detects overruns. */
static void open_fifo(struct fifo *f)
{
	gpul_error err = { 0 };

	gpul_fifo_close(f->f);
	f->f = NULL;
	if (gpul_fifo_open(f->area, f->area_bytes, &f->f, &err)) {
		require(f->f == NULL && err.status == GPUL_EFORMAT && err.text[0]);
		return;
	}
	f->shape = gpul_fifo_shape_of(f->f);
	require(gpul_fifo_area_bytes(&f->shape) <= f->area_bytes && f->shape.lanes <= MOST_LANES);
	f->per_lane = f->shape.slots / f->shape.lanes;
	for (unsigned lane = 0; lane < f->shape.lanes; lane++)
		f->taken[lane] = f->released[lane] = lines(f)[lane].tail;
}

static void make_area(struct fifo *f, struct bytes *b)
{
	const unsigned lanes = 1u << next_byte(b) % (MOST_LOG_LANES + 1);
	const gpul_fifo_shape shape = { .slots = lanes << next_byte(b) % (MOST_LOG_SLOTS + 1), .lanes = lanes };

	f->area_bytes = gpul_fifo_area_bytes(&shape);
	f->area = aligned_alloc(512, (f->area_bytes + 511) / 512 * 512);
	require(f->area != NULL);
	require(gpul_fifo_area_format(f->area, f->area_bytes, &shape, NULL) == GPUL_OK);
	for (unsigned n = next_byte(b) % 8; n > 0; n--) {
		const unsigned at = next_byte(b) % sizeof(struct gpul_fifo_header);

		f->area[at] = (uint8_t)next_byte(b);
	}
}

static void write_as_peer(struct fifo *f, struct bytes *b)
{
	static const uint64_t values[] = { 0, 1ull << 63, UINT64_MAX, 1, 1ull << 32, ~(1ull << 63) };
	const unsigned low = next_byte(b), high = next_byte(b), at = low | (high & 0x3f) << 8;
	const size_t n_words = f->area_bytes / 8, n_slot_words = f->shape.slots * 2;
	/* three quarters of the writes go to the slots, which are at the end of the memory */
	const size_t where = high < 0xc0 ? n_words - n_slot_words + at % n_slot_words : at % n_words;

	((uint64_t *)(void *)f->area)[where] = values[next_byte(b) % 6];
}

static void poll_items(struct fifo *f, unsigned max)
{
	gpul_fifo_item *items = malloc(max ? max * sizeof(*items) : 1); /* the exact size, so that a sanitizer detects an overrun */
	unsigned n;

	require(items != NULL);
	n = gpul_fifo_poll(f->f, items, max);
	require(n <= max);
	for (unsigned i = 0; i < n; i++) {
		require(items[i].lane < f->shape.lanes && items[i].zero == 0);
		require(items[i].position == f->taken[items[i].lane]++);
		require(items[i].position - f->released[items[i].lane] < f->per_lane);
		require((items[i].word[0] | items[i].word[1]) >> 63 == 0);
	}
	free(items);
}

/* Poll a run of slots without copying them.  Their values are not checked, because the peer may change them after the poll; but each
 * word is read, so that a sanitizer checks its address. */
static void poll_run(struct fifo *f, unsigned max)
{
	gpul_fifo_run run = { 0 };
	const unsigned n = gpul_fifo_poll_run(f->f, &run, max);
	static volatile uint64_t words;

	require(n <= max && n == run.n);
	if (n == 0)
		return;
	require(run.lane < f->shape.lanes && (run.lap == 0 || run.lap == 1ull << 63));
	require(run.position == f->taken[run.lane] && run.position % f->per_lane + n <= f->per_lane);
	for (unsigned i = 0; i < n; i++)
		words = run.triggers[i].word[0] ^ run.triggers[i].word[1];
	f->taken[run.lane] += n;
	require(f->taken[run.lane] - f->released[run.lane] <= f->per_lane);
}

static void release_all(struct fifo *f)
{
	gpul_fifo_release(f->f);
	for (unsigned lane = 0; lane < f->shape.lanes; lane++) {
		if (f->released[lane] != f->taken[lane])
			require(lines(f)[lane].tail == f->taken[lane]);
		f->released[lane] = f->taken[lane];
	}
}

static void release_some(struct fifo *f, unsigned lane, unsigned n)
{
	const uint64_t out = f->taken[lane] - f->released[lane];

	f->released[lane] += n % (out + 1);
	gpul_fifo_release_lane(f->f, lane, f->released[lane]);
	require(lines(f)[lane].tail == f->released[lane]);
}

static void reset(struct fifo *f)
{
	require(gpul_fifo_reset(f->f, NULL) == GPUL_OK);
	memset(f->taken, 0, sizeof(f->taken));
	memset(f->released, 0, sizeof(f->released));
	require(gpul_fifo_aborted(f->f) == 0);
}

static void run_operation(struct fifo *f, struct bytes *b)
{
	char text[64];

	switch (next_byte(b) % 9) {
	case 0:
		write_as_peer(f, b);
		break;
	case 1:
		poll_items(f, next_byte(b) % (MOST_ITEMS + 1));
		break;
	case 2:
		release_all(f);
		break;
	case 3:
		release_some(f, next_byte(b) % f->shape.lanes, next_byte(b));
		break;
	case 4:
		gpul_fifo_abort(f->f, next_byte(b) + 1);
		break;
	case 5:
		require(gpul_fifo_code_text(gpul_fifo_aborted(f->f), text)[0] != '\0');
		break;
	case 6:
		reset(f);
		break;
	case 7:
		open_fifo(f);
		break;
	case 8:
		poll_run(f, next_byte(b) % (MOST_ITEMS + 1));
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct fifo f;
	struct bytes b = { data, data + n_bytes };

	f = (struct fifo){ 0 };
	make_area(&f, &b);
	open_fifo(&f);
	while (b.at < b.end && f.f)
		run_operation(&f, &b);
	gpul_fifo_close(f.f);
	free(f.area);
	return 0;
}
