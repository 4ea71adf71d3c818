/* test_fifo_hostile.c — a FIFO in which another process writes arbitrary values is refused, or handled without invalid accesses.
 *
 * The area is on the heap without spare bytes, so that AddressSanitizer detects an access beyond its end. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "proxy/fifo.h"
#include "tests/proxy/fifo/pusher.h"

static void *area;
static size_t area_bytes;

static gpul_fifo_shape make(unsigned slots, unsigned lanes)
{
	const gpul_fifo_shape shape = { .slots = slots, .lanes = lanes };
	gpul_error err = { 0 };

	area_bytes = gpul_fifo_area_bytes(&shape);
	area = aligned_alloc(512, (area_bytes + 511) / 512 * 512);
	assert_non_null(area);
	if (gpul_fifo_area_format(area, area_bytes, &shape, &err))
		fail_msg("%s", err.text);
	return shape;
}

static void expect_refused(const void *at, size_t bytes)
{
	gpul_fifo *f = NULL;
	gpul_fifo_gpu *g = NULL;
	gpul_error err = { 0 }, err2 = { 0 };

	assert_int_equal(gpul_fifo_open((void *)(uintptr_t)at, bytes, &f, &err), GPUL_EFORMAT);
	assert_null(f);
	assert_true(err.text[0] != '\0');
	/* gpul_fifo_gpu_create() refuses the area before its first driver call, since the driver is NULL */
	assert_int_equal(gpul_fifo_gpu_create(NULL, (void *)(uintptr_t)at, 0, bytes, &g, &err2), GPUL_EFORMAT);
	assert_null(g);
}

static void refuses_a_header_with_any_wrong_field(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t offset, bytes;
	} fields[] = {
#define FIELD(name) { #name, offsetof(struct gpul_fifo_header, name), sizeof(((struct gpul_fifo_header *)0)->name) }
		FIELD(magic), FIELD(version), FIELD(lanes), FIELD(lane_shift), FIELD(bytes),
#undef FIELD
	};
	static const uint64_t values[] = { 0,  1,    3,    5,        24,       25,         31,         32,         63,
					   64, 4096, 8192, 1u << 24, 1u << 31, UINT32_MAX, 1ull << 32, UINT64_MAX, 1ull << 63 };

	make(64, 8);
	for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		unsigned char *field = (unsigned char *)area + fields[i].offset, was[8];

		memcpy(was, field, fields[i].bytes);
		for (unsigned v = 0; v < sizeof(values) / sizeof(*values); v++) {
			memcpy(field, &values[v], fields[i].bytes);
			if (memcmp(field, was, fields[i].bytes) != 0)
				expect_refused(area, area_bytes);
		}
		for (unsigned bit = 0; bit < 8 * fields[i].bytes; bit++) {
			memcpy(field, was, fields[i].bytes);
			field[bit / 8] ^= (unsigned char)(1 << bit % 8);
			expect_refused(area, area_bytes);
		}
		memcpy(field, was, fields[i].bytes);
	}
	free(area);
}

/* Each header in which lanes, lane_shift and bytes contradict each other or exceed the memory is refused. */
static void refuses_a_shape_larger_than_the_memory(void **state)
{
	(void)state;
	struct gpul_fifo_header *h;

	make(64, 8);
	h = area;
	for (unsigned lanes = 1; lanes; lanes *= 2)
		for (unsigned shift = 0; shift < 40; shift++) {
			const gpul_fifo_shape says = { .slots = lanes << (shift & 31), .lanes = lanes };

			if (lanes == 8 && shift == 3)
				continue;
			h->lanes = lanes;
			h->lane_shift = shift;
			h->bytes = gpul_fifo_area_bytes(&says);
			if (h->bytes == 0 || shift > 31 || h->bytes > area_bytes || says.slots >> shift != lanes)
				expect_refused(area, area_bytes);
		}
	free(area);
}

static void refuses_short_or_misaligned_memory(void **state)
{
	(void)state;
	static const size_t lengths[] = { 0, 1, 63, 127, 128, 512 };

	make(64, 8);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		expect_refused(area, lengths[i]);
	expect_refused(area, area_bytes - 1);
	expect_refused((char *)area + 64, area_bytes - 64);
	expect_refused(NULL, area_bytes);
	free(area);
}

static void formatting_refuses_short_or_misaligned_memory(void **state)
{
	(void)state;
	const gpul_fifo_shape shape = make(64, 8);
	gpul_error err = { 0 };

	memset(area, 0x5a, area_bytes);
	assert_int_equal(gpul_fifo_area_format(area, area_bytes - 1, &shape, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "bytes"));
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_fifo_area_format((char *)area + 256, area_bytes, &shape, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "aligned"));
	assert_int_equal(gpul_fifo_area_format(NULL, area_bytes, &shape, NULL), GPUL_EINVAL);
	for (size_t i = 0; i < area_bytes; i++)
		assert_int_equal(((unsigned char *)area)[i], 0x5a);
	free(area);
}

/* gpul_fifo_open() reads the header only once. */
static void later_changes_of_the_header_have_no_effect(void **state)
{
	(void)state;
	const gpul_fifo_shape shape = make(64, 8);
	gpul_fifo_item items[64];
	gpul_fifo *f = NULL;

	assert_int_equal(gpul_fifo_open(area, area_bytes, &f, NULL), GPUL_OK);
	struct pusher p = pusher_of(area, 7);

	memset(area, 0xff, offsetof(struct gpul_fifo_header, raised));
	assert_int_equal(gpul_fifo_shape_of(f).slots, shape.slots);
	for (unsigned i = 0; i < 8; i++)
		assert_true(pusher_push(&p, i, i));
	assert_int_equal(gpul_fifo_poll(f, items, 64), 8);
	gpul_fifo_release(f);
	gpul_fifo_abort(f, 1);
	assert_int_equal(pusher_aborted(&p), 1);
	gpul_fifo_close(f);
	free(area);
}

/* A hostile writer sets the lap bits of a lane to the awaited value after each poll. */
static void lane_returns_at_most_its_slots_before_a_release(void **state)
{
	(void)state;
	enum { PER_LANE = 8 };
	make(2 * PER_LANE, 2);
	struct pusher p = pusher_of(area, 0);
	gpul_fifo_item items[64];
	gpul_fifo *f = NULL;

	assert_int_equal(gpul_fifo_open(area, area_bytes, &f, NULL), GPUL_OK);
	for (unsigned lap = 0; lap < 3; lap++)
		for (unsigned at = 0; at < PER_LANE; at++) { /* stores triggers even if the lane is full */
			pusher_store(&p, lap * PER_LANE + at, 0, 0);
			pusher_store(&p, lap * PER_LANE + at, 1, 0);
			assert_int_equal(gpul_fifo_poll(f, items, 64), lap == 0);
		}
	gpul_fifo_release(f);
	assert_int_equal(p.line->tail, PER_LANE);
	gpul_fifo_close(f);
	free(area);
}

/* ---- while it is used ---------------------------------------------------------------- */

struct scribbler {
	pthread_t thread;
	bool stop;
};

static uint32_t next_random(uint32_t *random)
{
	*random = *random * 1664525 + 1013904223;
	return *random >> 8;
}

/* Write random and special values into all words, including the header. */
static void *scribble(void *context)
{
	struct scribbler *s = context;
	uint64_t *words = area;
	uint32_t random = 1;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		const uint32_t what = next_random(&random);
		const uint64_t value = what % 4 == 0   ? (uint64_t)what << 40 ^ next_random(&random)
				       : what % 4 == 1 ? 1ull << 63
				       : what % 4 == 2 ? UINT64_MAX
						       : 0;

		__atomic_store_n(&words[next_random(&random) % (area_bytes / 8)], value, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void items_stay_valid_while_a_peer_writes_garbage(void **state)
{
	(void)state;
	static const gpul_fifo_shape shapes[] = { { 1, 1 }, { 64, 1 }, { 128, 128 }, { 256, 64 }, { 1024, 256 } };

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		const gpul_fifo_shape shape = make(shapes[i].slots, shapes[i].lanes);
		const unsigned per_lane = shape.slots / shape.lanes;
		uint64_t *released = calloc(shape.lanes, sizeof(*released)), *taken = calloc(shape.lanes, sizeof(*taken));
		struct scribbler s = { 0 };
		uint64_t n_taken = 0;
		gpul_fifo_item items[100];
		gpul_fifo *f = NULL;

		assert_non_null(released);
		assert_non_null(taken);
		assert_int_equal(gpul_fifo_open(area, area_bytes, &f, NULL), GPUL_OK);
		assert_int_equal(pthread_create(&s.thread, NULL, scribble, &s), 0);
		for (unsigned turn = 0; turn < 20000 || n_taken < 10; turn++) {
			const unsigned n = gpul_fifo_poll(f, items, 1 + turn % 100);

			assert_true(n <= 1 + turn % 100);
			n_taken += n;
			for (unsigned k = 0; k < n; k++) {
				assert_true(items[k].lane < shape.lanes);
				assert_int_equal(items[k].position, taken[items[k].lane]++);
				assert_true(items[k].position - released[items[k].lane] < per_lane);
				assert_true((items[k].word[0] | items[k].word[1]) >> 63 == 0);
			}
			if (turn % 3 == 0)
				for (unsigned lane = 0; lane < shape.lanes; lane++)
					gpul_fifo_release_lane(f, lane, released[lane] = taken[lane]);
			gpul_fifo_aborted(f);
		}
		__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
		assert_int_equal(pthread_join(s.thread, NULL), 0);
		gpul_fifo_release(f);
		gpul_fifo_close(f);
		free(released);
		free(taken);
		free(area);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_a_header_with_any_wrong_field),
		cmocka_unit_test(refuses_a_shape_larger_than_the_memory),
		cmocka_unit_test(refuses_short_or_misaligned_memory),
		cmocka_unit_test(formatting_refuses_short_or_misaligned_memory),
		cmocka_unit_test(later_changes_of_the_header_have_no_effect),
		cmocka_unit_test(lane_returns_at_most_its_slots_before_a_release),
		cmocka_unit_test(items_stay_valid_while_a_peer_writes_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
