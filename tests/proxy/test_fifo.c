/* test_fifo.c — the CPU's end of a FIFO; this program writes the slots as a kernel would. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "proxy/fifo.h"

static _Alignas(512) unsigned char area[8192];

static void push(const gpul_fifo_shape *shape, unsigned lane, uint64_t at, uint64_t a, uint64_t b)
{
	const unsigned per = shape->slots / shape->lanes;
	struct gpul_trigger *slots = (void *)(area + gpul_fifo_area_bytes(shape) - shape->slots * sizeof(*slots));
	const uint64_t lap = (~(at / per) & 1) << 63;

	slots[lane * per + at % per] = (struct gpul_trigger){ { a | lap, b | lap } };
}

static void what_is_pushed_is_taken_once_in_order(void **state)
{
	(void)state;
	const gpul_fifo_shape shape = { .slots = 8, .lanes = 2 };
	gpul_error err = { 0 };
	gpul_fifo *f = NULL;

	assert_int_equal(gpul_fifo_area_format(area, sizeof(area), &shape, &err), GPUL_OK);
	assert_int_equal(gpul_fifo_open(area, sizeof(area), &f, &err), GPUL_OK);
	for (uint64_t at = 0; at < 100; at++) {
		gpul_fifo_item items[4];

		assert_int_equal(gpul_fifo_poll(f, items, 4), 0);
		push(&shape, at & 1, at / 2, at + 1, ~at >> 1);
		assert_int_equal(gpul_fifo_poll(f, items, 4), 1);
		assert_int_equal(items[0].word[0], at + 1);
		assert_int_equal(items[0].word[1], ~at >> 1);
		assert_int_equal(items[0].lane, at & 1);
		assert_int_equal(items[0].position, at / 2);
		gpul_fifo_release(f);
	}
	gpul_fifo_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_pushed_is_taken_once_in_order) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
