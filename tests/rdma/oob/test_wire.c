/* test_wire.c — valid frames are decoded unchanged, in pieces of any size; invalid frames are refused with a reason. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/rdma/oob/support.h"

static gpul_error err;

/* Decode a copy of exactly n_bytes, so that the sanitizer detects reads past its end. */
static gpul_status decode(const void *bytes, size_t n_bytes, gpul_rdma_frame *out, size_t *used)
{
	void *copy = malloc(n_bytes ? n_bytes : 1);
	gpul_status st;

	assert_non_null(copy);
	memcpy(copy, bytes, n_bytes);
	memset(out, 0x55, sizeof *out);
	err = (gpul_error){ 0 };
	st = gpul_rdma_frame_decode(copy, n_bytes, out, used, &err);
	free(copy);
	assert_int_equal(st, err.status);
	assert_true(st == GPUL_OK || (st == GPUL_EFORMAT && err.text[0] && *used == 0));
	return st;
}

static void decodes_what_was_encoded_wherever_it_is_cut(void **state)
{
	(void)state;
	for (unsigned type = GPUL_RDMA_HELLO; type <= GPUL_RDMA_BYE; type++) {
		unsigned char bytes[GPUL_RDMA_FRAME_BYTES + 1];
		size_t n = frame_bytes(type, bytes), used;
		gpul_rdma_frame f;

		bytes[n] = 'x';
		for (size_t cut = 0; cut <= n + 1; cut++) {
			assert_int_equal(decode(bytes, cut, &f, &used), GPUL_OK);
			assert_int_equal(used, cut < n ? 0 : n);
		}
		assert_int_equal(f.type, type);
		if (type == GPUL_RDMA_HELLO || type == GPUL_RDMA_WELCOME) {
			gpul_rdma_hello h = good_hello();

			assert_memory_equal(&f.hello, &h, sizeof h);
		} else if (type == GPUL_RDMA_REFUSED || type == GPUL_RDMA_FAILED) {
			gpul_rdma_failure want = good_failure();

			want.by_peer = 1;
			memset(want.peer, 0, sizeof want.peer);
			assert_memory_equal(&f.failure, &want, sizeof want);
		} else if (type == GPUL_RDMA_BYE) {
			assert_int_equal(n, GPUL_RDMA_FRAME_HEAD_BYTES + 8);
			assert_int_equal(f.totals.received, 0x01020304);
			assert_int_equal(f.totals.sent, UINT32_MAX);
		}
	}
}

static void carries_the_longest_description(void **state)
{
	gpul_rdma_frame f = { .type = GPUL_RDMA_WELCOME, .hello = good_hello() }, back;
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	size_t n, used;

	(void)state;
	f.hello.description_bytes = sizeof f.hello.description;
	memset(f.hello.description, 0xab, sizeof f.hello.description);
	n = gpul_rdma_frame_encode(&f, bytes);
	assert_int_equal(n, GPUL_RDMA_FRAME_HEAD_BYTES + sizeof f.hello);
	assert_int_equal(decode(bytes, n, &back, &used), GPUL_OK);
	assert_memory_equal(&back.hello, &f.hello, sizeof f.hello);
}

/* Encode a hello with one changed field; returns the reason why it is refused. */
static const char *reason_for(size_t offset, size_t field_bytes, uint64_t value)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	size_t n = frame_bytes(GPUL_RDMA_HELLO, bytes), used;
	gpul_rdma_frame f;

	memcpy(bytes + GPUL_RDMA_FRAME_HEAD_BYTES + offset, &value, field_bytes);
	return decode(bytes, n, &f, &used) ? err.text : "accepted";
}

#define REASON(field, value) reason_for(offsetof(gpul_rdma_hello, field), sizeof((gpul_rdma_hello *)0)->field, value)

static void refuses_each_wrong_field_of_a_hello(void **state)
{
	(void)state;
	assert_string_equal(REASON(version, 9), "the peer uses protocol version 9, this process version 3: use the same gpuload for both");
	assert_string_equal(REASON(n_qps, 0), "HELLO message: the number of queue pairs is invalid: 0 (0x0)");
	assert_non_null(strstr(REASON(n_qps, 17), "the number of queue pairs is invalid: 17"));
	assert_non_null(strstr(REASON(depth, 32), "the number of operations in flight"));
	assert_non_null(strstr(REASON(depth, 96), "the number of operations in flight"));
	assert_non_null(strstr(REASON(depth, 8192), "the number of operations in flight"));
	assert_non_null(strstr(REASON(segment_bytes, 2048), "the segment size"));
	assert_non_null(strstr(REASON(segment_bytes, 4100), "the segment size"));
	assert_non_null(strstr(REASON(segment_bytes, (4 << 20) + 128), "the segment size"));
	assert_non_null(strstr(REASON(stripe_bytes, 0), "the stripe size"));
	assert_non_null(strstr(REASON(stripe_bytes, 200), "the stripe size"));
	assert_non_null(strstr(REASON(stripe_bytes, 1u << 31), "the stripe size"));
	assert_non_null(strstr(REASON(striping, 2), "the striping mode"));
	assert_non_null(strstr(REASON(qp_type, 3), "the type of queue pairs"));
	assert_non_null(strstr(REASON(flags, 4), "a flag"));
	assert_non_null(strstr(REASON(lease_ms, 9), "the time-out of a silent peer"));
	assert_non_null(strstr(REASON(lease_ms, UINT32_MAX), "the time-out of a silent peer"));
	assert_non_null(strstr(REASON(notice_ms, UINT32_MAX), "the time to notice a dead peer"));
	assert_non_null(strstr(REASON(pid, UINT32_MAX), "the process id"));
	assert_non_null(strstr(REASON(slots.bytes, 8191), "the size of the slots"));
	assert_non_null(strstr(REASON(slots.address, UINT64_MAX - 8191), "the address of the slots"));
	assert_non_null(strstr(REASON(backend[0], 0), "the name of the backend is empty"));
	assert_non_null(strstr(REASON(description_bytes, 4), "these sizes contradict each other"));
	assert_non_null(strstr(REASON(description_bytes, 6), "these sizes contradict each other"));
	assert_non_null(strstr(REASON(description_bytes, UINT32_MAX), "these sizes contradict each other"));
	assert_string_equal(REASON(notice_ms, 0), "accepted");
	assert_string_equal(REASON(slots.address, UINT64_MAX - 16384), "accepted");
}

static void ends_and_cleans_received_texts(void **state)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	size_t n = frame_bytes(GPUL_RDMA_FAILED, bytes), used;
	gpul_rdma_frame f;

	(void)state;
	memset(bytes + GPUL_RDMA_FRAME_HEAD_BYTES + offsetof(gpul_rdma_failure, call), 0x1b, n - GPUL_RDMA_FRAME_HEAD_BYTES - 24);
	assert_int_equal(decode(bytes, n, &f, &used), GPUL_OK);
	assert_int_equal(strlen(f.failure.call), sizeof f.failure.call - 1);
	assert_int_equal(strspn(f.failure.what, "?"), sizeof f.failure.what - 1);
	assert_int_equal(strspn(f.failure.advice, "?"), sizeof f.failure.advice - 1);
	assert_string_equal(f.failure.peer, "");
	n = frame_bytes(GPUL_RDMA_HELLO, bytes);
	memset(bytes + GPUL_RDMA_FRAME_HEAD_BYTES + offsetof(gpul_rdma_hello, backend), 0xff, 80);
	assert_int_equal(decode(bytes, n, &f, &used), GPUL_OK);
	assert_string_equal(f.hello.backend, "???????????????");
	assert_int_equal(strspn(f.hello.host, "?"), sizeof f.hello.host - 1);
}

static void refuses_an_impossible_status(void **state)
{
	static const uint32_t statuses[] = { GPUL_OK, GPUL_EVERBS + 1, UINT32_MAX };
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	size_t n = frame_bytes(GPUL_RDMA_REFUSED, bytes), used;
	gpul_rdma_frame f;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		memcpy(bytes + GPUL_RDMA_FRAME_HEAD_BYTES, &statuses[i], 4);
		assert_int_equal(decode(bytes, n, &f, &used), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, "REFUSED message: the status is invalid"));
	}
}

/* A wrong header is refused as soon as its invalid bytes have arrived. */
static void refuses_a_wrong_head_early(void **state)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	gpul_rdma_frame f;
	size_t used;

	(void)state;
	assert_int_equal(decode("GET / HTTP/1.1", 1, &f, &used), GPUL_OK);
	assert_int_equal(decode("GET / HTTP/1.1", 2, &f, &used), GPUL_EFORMAT);
	assert_string_equal(err.text, "the peer is not gpuload: byte 1 of its message is 0x45 instead of 0x50");
	(void)frame_bytes(GPUL_RDMA_BEAT, bytes);
	bytes[6] = 1;
	assert_int_equal(decode(bytes, 8, &f, &used), GPUL_OK);
	assert_int_equal(decode(bytes, 9, &f, &used), GPUL_EFORMAT);
	assert_string_equal(err.text, "BEAT message has 1 bytes instead of 0");
	(void)frame_bytes(GPUL_RDMA_BYE, bytes);
	bytes[6] = 7;
	assert_int_equal(decode(bytes, 15, &f, &used), GPUL_EFORMAT);
	assert_string_equal(err.text, "BYE message has 7 bytes instead of 8");
	(void)frame_bytes(GPUL_RDMA_BEAT, bytes);
	bytes[6] = 1;
	bytes[7] = 0x10; /* the size is now 4097 */
	assert_int_equal(decode(bytes, 7, &f, &used), GPUL_OK);
	assert_int_equal(decode(bytes, 8, &f, &used), GPUL_EFORMAT);
	assert_string_equal(err.text, "BEAT message has 4097 bytes, but the limit is 4096");
	bytes[4] = 8;
	assert_int_equal(decode(bytes, 8, &f, &used), GPUL_EFORMAT);
	assert_string_equal(err.text, "unknown message type 8");
	bytes[4] = 0;
	assert_int_equal(decode(bytes, 8, &f, &used), GPUL_EFORMAT);
	(void)frame_bytes(GPUL_RDMA_HELLO, bytes);
	bytes[7] = 0x0f; /* a wrong size and, in the next byte, a wrong version */
	bytes[8] = GPUL_RDMA_WIRE_VERSION - 1;
	assert_int_equal(decode(bytes, 11, &f, &used), GPUL_OK);
	assert_int_equal(decode(bytes, 12, &f, &used), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "protocol version 2, this process version 3"));
}

static void is_safe_for_every_value_of_every_byte(void **state)
{
	(void)state;
	for (unsigned type = GPUL_RDMA_HELLO; type <= GPUL_RDMA_BYE; type++) {
		unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
		size_t n = frame_bytes(type, bytes), used;

		for (size_t at = 0; at < n; at++) {
			unsigned char before = bytes[at];

			for (unsigned value = 0; value < 256; value++) {
				gpul_rdma_frame f;

				bytes[at] = (unsigned char)value;
				(void)decode(bytes, n, &f, &used);
			}
			bytes[at] = before;
		}
	}
}

static void names_frame_types(void **state)
{
	(void)state;
	assert_string_equal(gpul_rdma_frame_name(GPUL_RDMA_HELLO), "HELLO");
	assert_string_equal(gpul_rdma_frame_name(GPUL_RDMA_BYE), "BYE");
	assert_string_equal(gpul_rdma_frame_name(GPUL_RDMA_PROOF), "PROOF");
	assert_string_equal(gpul_rdma_frame_name(GPUL_RDMA_PROOF + 1), "?");
	assert_string_equal(gpul_rdma_frame_name(0), "?");
	assert_string_equal(gpul_rdma_frame_name(8), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_what_was_encoded_wherever_it_is_cut),
		cmocka_unit_test(carries_the_longest_description),
		cmocka_unit_test(refuses_each_wrong_field_of_a_hello),
		cmocka_unit_test(ends_and_cleans_received_texts),
		cmocka_unit_test(refuses_an_impossible_status),
		cmocka_unit_test(refuses_a_wrong_head_early),
		cmocka_unit_test(is_safe_for_every_value_of_every_byte),
		cmocka_unit_test(names_frame_types),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
