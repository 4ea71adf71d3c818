/* test_comm_incast.c — the content of the messages of gpuload comm incast, and its picture. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/comm/incast/incast_rank.h"

static void each_wrong_byte_is_counted(void **state)
{
	unsigned char at[1003], other[1003];

	(void)state;
	for (size_t n = 1; n <= sizeof at; n += 167) {
		incast_fill(at, n, 3, 17);
		assert_int_equal(incast_count_wrong(at, n, 3, 17), 0);
		for (size_t i = 0; i < n; i += 41) {
			at[i] ^= 0x10;
			assert_int_equal(incast_count_wrong(at, n, 3, 17), 1);
			at[i] ^= 0x10;
		}
	}
	/* The data of another message or sender differs in each 8-byte word, although single bytes of the word may be equal. */
	incast_fill(at, sizeof at, 3, 17);
	assert_true(incast_count_wrong(at, sizeof at, 3, 18) > 800);
	assert_true(incast_count_wrong(at, sizeof at, 2, 17) > 800);
	incast_fill(other, sizeof other, 3, 17);
	assert_memory_equal(at, other, sizeof at);
}

static void the_picture_shows_the_deepest_sample_of_each_column(void **state)
{
	struct incast_sample samples[4000];
	struct incast_result r = { .q = { .modes = { true, true }, .rate_bits = 1000000000, .queue_bytes = 100 << 10 },
				   .n_ranks = 5,
				   .private_network = true,
				   .window_bytes = 50 << 10 };
	struct out o = { 0 };
	char *text;

	(void)state;
	for (unsigned i = 0; i < 4000; i++)
		samples[i] = (struct incast_sample){ i * 1000000ull, i == 2001 ? 100 << 10 : 0 };
	r.figures[INCAST_RECEIVER] = (struct incast_figures){
		.measured = true, .ns = 4000000000, .bytes = 1, .queue_most = 100 << 10, .samples = samples, .n_samples = 4000
	};
	incast_svg(&r, &o);
	out_bytes(&o, "", 1);
	assert_false(o.failed);
	text = o.at;
	assert_non_null(strstr(text, "4 senders, one receiver, 1 Gbit/s"));
	assert_non_null(strstr(text, "window of the receiver"));
	assert_non_null(strstr(text, "receiver-driven: mean 0.0 KiB, at most 100.0 KiB"));
	assert_null(strstr(text, "sender-driven"));
	/* The picture shows 4 s in 760 columns: sample 2001 is in column 380, at the height of 100 of 105 KiB. */
	assert_non_null(strstr(text, " 453 412.0 454 126.3 455 412.0 "));
	out_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_wrong_byte_is_counted),
		cmocka_unit_test(the_picture_shows_the_deepest_sample_of_each_column),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
