/* test_feeder.c — complete streams, from memory and from a socket, pass through the feeder and the kernel; and streams that break off. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lab/netqueue/rig.h"
#include "tests/lab/netqueue/stream.h"

enum { BYTES = 300000, BUFFERED = 16384 }; /* BUFFERED: bytes that a socket accepts and stores */

/* The ring is small, so that one stream goes around it many times (laps). */
static const gpul_netqueue_desc small = { .shape = { .n_slots = 4, .slot_bytes = 4096, .n_entries = 16, .chunk_entries = 2, .n_blocks = 3 },
					  .n_threads = 96 };

static void check_stream(struct rig *r, const struct stream *s, const gpul_netqueue_received_stream *got)
{
	rig_read(r);
	assert_memory_equal(r->was + GUARD_BYTES, s->right, s->destination_bytes);
	for (unsigned i = 0; i < GUARD_BYTES; i++)
		assert_true(r->was[i] == GUARD && r->was[GUARD_BYTES + r->destination_bytes + i] == GUARD);
	assert_int_equal(got->n_records, s->n_records);
	assert_int_equal(got->stream_bytes, s->n_bytes);
	assert_int_equal(got->result.counts.n_bytes, s->destination_bytes);
	assert_int_equal(got->result.counts.n_pieces, got->n_entries);
	assert_true(got->first_ns <= got->end_ns);
}

static void receives_streams_from_memory(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, &small, BYTES, 7);
	for (unsigned i = 0; i < 6; i++) {
		struct stream s;
		gpul_netqueue_received_stream got;
		gpul_error err = { 0 };

		stream_make(&s, i, BYTES, i % 2 ? 60000 : 2000, i < 3);
		gpul_netqueue_memory memory = { .bytes = s.bytes, .n_bytes = s.n_bytes, .packet_bytes = i % 3 ? 3000 : 0, .seed = i };

		rig_fill_destination(&r);
		rig_must(gpul_netqueue_receive(r.queue, r.destination, BYTES,
					       &(gpul_netqueue_receiver){ .source = gpul_netqueue_from_memory(&memory) }, &got, &err),
			 &err, "receive");
		check_stream(&r, &s, &got);
		stream_free(&s);
	}
	rig_close(&r);
}

struct sender {
	const struct stream *s;
	int fd;
	uint64_t most_bytes; /* number of bytes to send before the connection is closed or stays idle */
	bool stays_open;
};

static void *send_stream(void *argument)
{
	const struct sender *t = argument;
	uint64_t seed = 5;

	for (uint64_t at = 0; at < t->most_bytes;) {
		uint64_t n = (seed = seed * 6364136223846793005ull + 1442695040888963407ull) >> 33;

		n = n % 5000 + 1;
		n = n < t->most_bytes - at ? n : t->most_bytes - at;
		if (send(t->fd, t->s->bytes + at, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
		at += n;
	}
	if (!t->stays_open)
		(void)shutdown(t->fd, SHUT_WR);
	return NULL;
}

/* Receive from a socket the first n bytes of a stream. */
static gpul_status receive_from_socket(struct rig *r, const struct stream *s, uint64_t n, bool stays_open,
				       gpul_netqueue_received_stream *got, gpul_error *err)
{
	int fds[2];
	struct sender t = { .s = s, .most_bytes = n, .stays_open = stays_open };
	pthread_t thread;
	gpul_status st;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	t.fd = fds[1];
	if (n <= BUFFERED) /* the socket buffers all n bytes, so they are sent before the time-out begins */
		(void)send_stream(&t);
	else
		assert_int_equal(pthread_create(&thread, NULL, send_stream, &t), 0);
	st = gpul_netqueue_receive(r->queue, r->destination, r->destination_bytes,
				   &(gpul_netqueue_receiver){ .source = gpul_netqueue_from_socket(&fds[0]) }, got, err);
	(void)close(fds[0]);
	if (n > BUFFERED)
		(void)pthread_join(thread, NULL);
	(void)close(fds[1]);
	return st;
}

static void receives_a_stream_from_a_socket(void **state)
{
	gpul_netqueue_received_stream got;
	gpul_error err = { 0 };
	struct stream s;
	struct rig r;

	(void)state;
	rig_open(&r, &small, BYTES, 0);
	stream_make(&s, 9, BYTES, 10000, true);
	rig_must(receive_from_socket(&r, &s, s.n_bytes, true, &got, &err), &err, "receive");
	check_stream(&r, &s, &got);
	stream_free(&s);
	rig_close(&r);
}

static void reports_a_sender_that_stops(void **state)
{
	/* The kernel has to finish some entries within this time, also on a busy machine. */
	const gpul_netqueue_desc desc = { .shape = { .n_blocks = 1 }, .timeout_ms = 1500 };
	gpul_netqueue_received_stream got;
	struct stream s;
	struct rig r;

	(void)state;
	rig_open(&r, &desc, BYTES, 0);
	stream_make(&s, 10, BYTES, 1000, true);
	for (int stays_open = 0; stays_open < 2; stays_open++) {
		gpul_error err = { 0 };

		assert_int_equal(receive_from_socket(&r, &s, 10000, stays_open, &got, &err), GPUL_ESYS);
		assert_int_equal(err.native, stays_open ? ETIMEDOUT : EPIPE);
		if (!strstr(err.text, stays_open ? "the sender has sent nothing for 1.5 s, after 10000 bytes of its stream"
						 : "the sender has closed the connection after 10000 bytes, before the end"))
			fail_msg("%s", err.text);
	}
	stream_free(&s);
	rig_close(&r);
}

static void reports_a_malformed_stream(void **state)
{
	gpul_netqueue_received_stream got;
	gpul_error err = { 0 };
	struct stream s;
	struct rig r;

	(void)state;
	rig_open(&r, &small, BYTES, 0);
	stream_make(&s, 11, BYTES, 1000, false);
	memset(s.bytes, 0xff, 16);
	assert_int_equal(receive_from_socket(&r, &s, s.n_bytes, false, &got, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "byte 0 of the stream: expected the header of record 0"));
	stream_free(&s);
	rig_close(&r);
}

/* The header of one record has a wrong destination: the kernel refuses that record's pieces, and copies all others. */
static void refuses_the_record_of_a_lying_sender(void **state)
{
	gpul_netqueue_received_stream got;
	gpul_error err = { 0 };
	uint64_t length = 0;
	struct stream s;
	struct rig r;

	(void)state;
	rig_open(&r, &small, BYTES, 0);
	stream_make(&s, 12, BYTES, 1000, false);
	memcpy(&length, s.bytes, 4);
	gpul_netqueue_write_header(s.bytes, (uint32_t)length, 0, BYTES + 5);
	assert_int_equal(receive_from_socket(&r, &s, s.n_bytes, false, &got, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "entry 0: the data would go to byte 300005 of the destination, which has 300000 bytes"));
	assert_int_equal(got.result.counts.n_bytes, BYTES - length);
	rig_read(&r);
	for (uint64_t i = 0; i < length; i++)
		assert_int_equal(r.was[GUARD_BYTES + i], GUARD);
	assert_memory_equal(r.was + GUARD_BYTES + length, s.right + length, BYTES - length);
	stream_free(&s);
	rig_close(&r);
}

static void change_lap(void *context, uint64_t n, gpul_netqueue_entry *e)
{
	uint64_t *n_changed = context;

	if (n % 5 == 0) { /* a wrong lap number, for example that of the previous or the next use of this slot */
		e->word[n % 2] += (1 + n / 5 % 255) << GPUL_NETQUEUE_LAP_SHIFT;
		++*n_changed;
	}
}

/* An entry with a wrong lap number does not affect the entries that later use its slot of the ring. */
static void refuses_wrong_laps_in_every_lap(void **state)
{
	uint64_t n_changed = 0, n_untouched = 0;
	gpul_netqueue_received_stream got;
	gpul_error err = { 0 };
	struct stream s;
	struct rig r;

	(void)state;
	rig_open(&r, &small, BYTES, 0);
	stream_make(&s, 14, BYTES, 300, true);
	gpul_netqueue_memory memory = { .bytes = s.bytes, .n_bytes = s.n_bytes, .packet_bytes = 5000 };
	const gpul_netqueue_receiver receiver = { gpul_netqueue_from_memory(&memory), change_lap, &n_changed };

	assert_int_equal(gpul_netqueue_receive(r.queue, r.destination, BYTES, &receiver, &got, &err), GPUL_EFORMAT);
	assert_int_equal(got.n_records, s.n_records);
	assert_int_equal(got.result.counts.refused[GPUL_NETQUEUE_LAP], n_changed);
	assert_int_equal(got.result.counts.n_refused, n_changed);
	assert_int_equal(got.result.counts.n_pieces, got.n_entries - n_changed);
	rig_read(&r);
	for (uint64_t i = 0; i < BYTES; i++)
		if (r.was[GUARD_BYTES + i] != s.right[i]) {
			assert_int_equal(r.was[GUARD_BYTES + i], GUARD);
			n_untouched++;
		}
	assert_true(n_untouched <= BYTES - got.result.counts.n_bytes); /* <=, because some bytes of the stream are equal to GUARD */
	stream_free(&s);
	rig_close(&r);
}

static void cannot_receive_into_device_memory(void **state)
{
	const gpul_netqueue_desc desc = { .kind = GPUL_MEM_DEVICE };
	gpul_netqueue_received_stream got;
	gpul_error err = { 0 };
	struct stream s;
	struct rig r;

	(void)state;
	rig_open(&r, &desc, BYTES, 0);
	stream_make(&s, 13, BYTES, 1000, false);
	assert_int_equal(receive_from_socket(&r, &s, 0, false, &got, &err), GPUL_EUNSUPPORTED);
	stream_free(&s);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receives_streams_from_memory),         cmocka_unit_test(receives_a_stream_from_a_socket),
		cmocka_unit_test(reports_a_sender_that_stops),          cmocka_unit_test(reports_a_malformed_stream),
		cmocka_unit_test(refuses_the_record_of_a_lying_sender), cmocka_unit_test(refuses_wrong_laps_in_every_lap),
		cmocka_unit_test(cannot_receive_into_device_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
