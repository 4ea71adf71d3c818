/* test_frames.c — frames that arrive in pieces, garbage, and texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/agents/frames_internal.h"

static struct frame_reader reader;
static unsigned char payload[FRAME_BYTES];

static void takes_frames_however_they_are_cut(void **state)
{
	int fds[2], n_got = 0;
	struct frame_head head;
	unsigned char bytes[4096];
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_true(gpul_frame_write(fds[1], FRAME_OUT, 3, "hello", 5, true));
	assert_true(gpul_frame_write(fds[1], FRAME_BEAT, 0, NULL, 0, true));
	n = read(fds[0], bytes, sizeof bytes);
	assert_int_equal(n, 2 * sizeof head + 5);
	reader = (struct frame_reader){ .fd = fds[0] };
	for (ssize_t i = 0; i < n; i++) {
		assert_int_equal(write(fds[1], bytes + i, 1), 1);
		assert_true(gpul_frame_fill(&reader));
		if (gpul_frame_take(&reader, &head, payload) != FRAME_GOT_ONE)
			continue;
		if (n_got++ == 0) {
			assert_int_equal(i, sizeof head + 4);
			assert_int_equal(head.type, FRAME_OUT);
			assert_int_equal(head.number, 3);
			assert_memory_equal(payload, "hello", 5);
		}
	}
	assert_int_equal(n_got, 2);
	assert_int_equal(head.type, FRAME_BEAT);
	close(fds[1]);
	assert_false(gpul_frame_fill(&reader));
	close(fds[0]);
}

static void refuses_garbage(void **state)
{
	static const struct frame_head bad[] = { { 0, 0, 0 }, { FRAME_LAST + 1, 0, 0 }, { FRAME_OUT, 0, FRAME_BYTES + 1 } };
	struct frame_head head;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		reader = (struct frame_reader){ .n = sizeof head };
		memcpy(reader.at, &bad[i], sizeof head);
		assert_int_equal(gpul_frame_take(&reader, &head, payload), FRAME_GOT_BAD);
	}
}

static void does_not_wait_for_a_reader_that_hangs(void **state)
{
	int fds[2];
	bool sent = true;

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	for (int i = 0; sent && i < 1000; i++)
		sent = gpul_frame_write(fds[1], FRAME_OUT, 0, payload, FRAME_BYTES, false);
	assert_false(sent);
	close(fds[0]);
	close(fds[1]);
}

static void texts_come_back_in_order(void **state)
{
	struct frame_texts t = { .at = NULL };
	char *large = malloc(FRAME_BYTES);

	(void)state;
	assert_non_null(large);
	gpul_frame_add_text(&t, "");
	gpul_frame_add_number(&t, 42);
	gpul_frame_add_text(&t, "a b");
	assert_string_equal(gpul_frame_next_text(&t), "");
	assert_int_equal(gpul_frame_next_number(&t), 42);
	assert_string_equal(gpul_frame_next_text(&t), "a b");
	assert_false(t.failed);
	assert_string_equal(gpul_frame_next_text(&t), "");
	assert_true(t.failed);
	t.failed = false;
	t.taken = 0;
	assert_int_equal(gpul_frame_next_number(&t), 0); /* an empty text is not a number */
	assert_true(t.failed);
	t.failed = false;
	memset(large, 'x', FRAME_BYTES - 1);
	large[FRAME_BYTES - 1] = '\0';
	gpul_frame_add_text(&t, large);
	assert_true(t.failed); /* the number is too long */
	free(large);
	free(t.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_frames_however_they_are_cut),
		cmocka_unit_test(refuses_garbage),
		cmocka_unit_test(does_not_wait_for_a_reader_that_hangs),
		cmocka_unit_test(texts_come_back_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
