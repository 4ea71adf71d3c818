/* test_rdma.c — connections over a real fabric, with both ends in one process: messages of every size class, multi-receive, puts, wrong
 * use.  $GPULOAD_TEST_BACKEND chooses the fabric. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "tests/rdma/two_ends.h"

enum { ROOM = 5 << 20, SEGMENT = 1 << 20 };

static unsigned char *buffers[2];

static void fill(unsigned char *at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (unsigned char)(i * 7 + i / 251 + seed);
}

static void check(const unsigned char *at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != (unsigned char)(i * 7 + i / 251 + seed))
			fail_msg("byte %zu of %zu is wrong", i, bytes);
}

static gpul_rdma_region *region_of(gpul_rdma *r, void *at, size_t bytes, gpul_rdma_use use)
{
	gpul_rdma_region *region = NULL;
	gpul_error err = { 0 };

	if (gpul_rdma_register(r, at, bytes, use, &region, &err))
		fail_msg("register: %s", err.text);
	return region;
}

static gpul_rdma_buffer buffer_of(const gpul_rdma_region *region, const void *at, size_t bytes, uint32_t tag)
{
	return (gpul_rdma_buffer){ .region = region, .at = (uint64_t)(uintptr_t)at, .bytes = bytes, .tag = tag };
}

static void send_one(struct two_ends *e, gpul_rdma_region *const regions[2], int from, size_t offset, size_t bytes, size_t room)
{
	const gpul_rdma_buffer source = buffer_of(regions[from], buffers[from] + offset, bytes, 3);
	const gpul_rdma_buffer target = buffer_of(regions[!from], buffers[!from] + 3, room, 3);
	gpul_rdma_request sent = 0, received = 0;
	uint64_t got = 0;
	gpul_error err = { 0 };

	fill(buffers[from] + offset, bytes, (unsigned)bytes);
	memset(buffers[!from], 0, room + 8);
	assert_int_equal(gpul_rdma_irecv(e->conn[!from], &target, 1, 20000, &received, &err), GPUL_OK);
	assert_int_equal(gpul_rdma_isend(e->conn[from], &source, 20000, &sent, &err), GPUL_OK);
	if (two_ends_wait(e->conn, !from, received, &got, &err) || two_ends_wait(e->conn, from, sent, NULL, &err))
		fail_msg("%zu bytes: %s", bytes, err.text);
	assert_int_equal(got, bytes);
	check(buffers[!from] + 3, bytes, (unsigned)bytes);
	assert_int_equal(buffers[!from][2], 0);
	assert_int_equal(buffers[!from][3 + bytes], 0);
}

static void carries_messages_of_every_size(const gpul_rdma_desc *desc)
{
	static const size_t sizes[] = { 0, 1, 8, 63, 4095, 4096, 4097, 65536, SEGMENT - 1, SEGMENT, SEGMENT + 1, 4 * SEGMENT + 77 };
	gpul_rdma_region *regions[2];
	struct two_ends e;

	two_ends_open(desc, &e);
	for (int i = 0; i < 2; i++)
		regions[i] = region_of(e.r[i], buffers[i], ROOM, GPUL_RDMA_DATA);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (int from = 0; from < 2; from++) {
			send_one(&e, regions, from, i, sizes[i], sizes[i]);
			send_one(&e, regions, from, 0, sizes[i], ROOM - 16); /* into a larger buffer */
		}
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
}

static void carries_messages_over_one_queue_pair(void **state)
{
	(void)state;
	carries_messages_of_every_size(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } });
}

static void carries_messages_over_several_queue_pairs(void **state)
{
	(void)state;
	carries_messages_of_every_size(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 }, .n_qps = 4 });
	carries_messages_of_every_size(
		&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 }, .n_qps = 3, .striping = GPUL_RDMA_ROUND_ROBIN });
}

static void matches_a_multi_receive_by_tag(void **state)
{
	static const unsigned order[] = { 2, 0, 3, 1 };
	gpul_rdma_region *regions[2];
	gpul_rdma_buffer parts[4];
	gpul_rdma_request received, sent[4];
	uint64_t got[4];
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &e);
	for (int i = 0; i < 2; i++)
		regions[i] = region_of(e.r[i], buffers[i], ROOM, GPUL_RDMA_DATA);
	for (unsigned i = 0; i < 4; i++)
		parts[i] = buffer_of(regions[0], buffers[0] + 10000 * i, 10000, 100 + i);
	memset(buffers[0], 0, 40000);
	assert_int_equal(gpul_rdma_irecv(e.conn[0], parts, 4, 20000, &received, &err), GPUL_OK);
	for (unsigned i = 0; i < 4; i++) {
		const unsigned n = order[i];
		const gpul_rdma_buffer b = buffer_of(regions[1], buffers[1] + 10000 * n, 1000 + n, 100 + n);

		fill(buffers[1] + 10000 * n, 1000 + n, n);
		assert_int_equal(gpul_rdma_isend(e.conn[1], &b, 20000, &sent[i], &err), GPUL_OK);
	}
	assert_int_equal(two_ends_wait(e.conn, 0, received, got, &err), GPUL_OK);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(two_ends_wait(e.conn, 1, sent[i], NULL, &err), GPUL_OK);
		assert_int_equal(got[i], 1000 + i);
		check(buffers[0] + 10000 * i, 1000 + i, i);
	}
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
}

static void puts_raise_their_steps_in_order(void **state)
{
	static uint64_t steps[8];
	gpul_rdma_region *regions[2], *step_region;
	gpul_rdma_remote to, to_steps;
	gpul_rdma_request requests[64];
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 }, .n_qps = 2 }, &e);
	for (int i = 0; i < 2; i++)
		regions[i] = region_of(e.r[i], buffers[i], ROOM, GPUL_RDMA_DATA);
	step_region = region_of(e.r[0], steps, sizeof steps, GPUL_RDMA_STEPS);
	assert_int_equal(gpul_rdma_offer(regions[0], (uint64_t)(uintptr_t)buffers[0], ROOM, &to, &err), GPUL_OK);
	assert_int_equal(gpul_rdma_offer(step_region, (uint64_t)(uintptr_t)steps, sizeof steps, &to_steps, &err), GPUL_OK);
	fill(buffers[1], 64 * 4096, 5);
	for (unsigned i = 0; i < 64; i++) {
		gpul_rdma_put_desc put = {
			.from = { .at = (uint64_t)(uintptr_t)buffers[1] + i * 4096,
				  .bytes = 4096,
				  .area = gpul_rdma_region_area(regions[1]) },
			.to = { .address = to.address + i * 4096, .key = to.key, .bytes = 4096 },
			.signal = { .address = to_steps.address + (i % 8) * 8, .key = to_steps.key, .bytes = 8 },
			.signal_value = i / 8 + 1,
			.lane = i % 8,
		};

		assert_int_equal(gpul_rdma_put(e.conn[1], &put, 20000, &requests[i], &err), GPUL_OK);
		assert_int_not_equal(requests[i], 0);
	}
	for (unsigned i = 0; i < 64; i++)
		if (two_ends_wait(e.conn, 1, requests[i], NULL, &err))
			fail_msg("put %u: %s", i, err.text);
	for (unsigned i = 0; i < 8; i++)
		while (__atomic_load_n(&steps[i], __ATOMIC_ACQUIRE) != 8)
			assert_int_equal(gpul_rdma_progress(e.conn[0], NULL, &err), GPUL_OK);
	check(buffers[0], 64 * 4096, 5);
	gpul_rdma_unregister(step_region);
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
}

/* Free registered memory and map other memory at its address: the NIC must not write to the old pages. */
static void new_memory_at_an_old_address_is_registered_anew(size_t cache_bytes)
{
	enum { BYTES = 1 << 16 };
	unsigned char *old = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *own = buffers[0];
	gpul_rdma_region *regions[2];
	struct two_ends e;

	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 }, .cache_bytes = cache_bytes }, &e);
	regions[1] = region_of(e.r[1], buffers[1], ROOM, GPUL_RDMA_DATA);
	gpul_rdma_unregister(region_of(e.r[0], old, BYTES, GPUL_RDMA_DATA));
	if (cache_bytes)
		gpul_rdma_forget(e.r[0], old, BYTES);
	munmap(old, BYTES);
	buffers[0] = mmap(old, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(buffers[0], old);
	regions[0] = region_of(e.r[0], buffers[0], BYTES, GPUL_RDMA_DATA);
	send_one(&e, regions, 1, 0, 5000, 5000);
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
	munmap(old, BYTES);
	buffers[0] = own;
}

static void registers_new_memory_at_an_old_address(void **state)
{
	(void)state;
	new_memory_at_an_old_address_is_registered_anew(0);
	new_memory_at_an_old_address_is_registered_anew(1 << 20);
}

/* Check that no two of many keys are close to each other, so that one key does not help to guess another one. */
static void keys_of_libfabric_cannot_be_guessed(void **state)
{
	enum { MANY = 64, NEAR = 1 << 20 };
	gpul_rdma_region *regions[MANY];
	struct two_ends e;

	(void)state;
	if (strcmp(two_ends_backend(), "libfabric") != 0)
		skip(); /* a NIC chooses the keys itself */
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &e);
	for (unsigned i = 0; i < MANY; i++) {
		uint64_t key;

		regions[i] = region_of(e.r[i % 2], buffers[0] + 64 * i, 64, i % 3 ? GPUL_RDMA_DATA : GPUL_RDMA_STEPS);
		key = gpul_rdma_region_area(regions[i])->pieces[0].remote_key;
		for (unsigned j = 0; j < i; j++) {
			const uint64_t other = gpul_rdma_region_area(regions[j])->pieces[0].remote_key;

			assert_true(key - other > NEAR && other - key > NEAR);
		}
	}
	for (unsigned i = 0; i < MANY; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
}

/* Memory that is registered as a source can be sent, but the peer cannot write to it: not by a receive or an offer, nor with the key. */
static void a_source_can_be_sent_but_not_written(void **state)
{
	gpul_rdma_region *regions[2];
	gpul_rdma_request sent = 0, received = 0, put = 0;
	gpul_rdma_remote offer;
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &e);
	memset(buffers[0], 0, ROOM);
	memset(buffers[1], 7, ROOM);
	regions[0] = region_of(e.r[0], buffers[0], ROOM, GPUL_RDMA_DATA);
	regions[1] = region_of(e.r[1], buffers[1], ROOM, GPUL_RDMA_SOURCE);
	const gpul_rdma_buffer target = buffer_of(regions[0], buffers[0], 100, 1), source = buffer_of(regions[1], buffers[1], 100, 1);
	const gpul_rdma_piece *piece = &gpul_rdma_region_area(regions[1])->pieces[0];
	const gpul_rdma_put_desc hostile = {
		.from = { .at = (uintptr_t)buffers[0], .bytes = 64, .area = gpul_rdma_region_area(regions[0]) },
		.to = { .address = piece->remote, .key = piece->remote_key, .bytes = 64 }
	};

	assert_int_equal(gpul_rdma_irecv(e.conn[0], &target, 1, 0, &received, &err), GPUL_OK);
	assert_int_equal(gpul_rdma_isend(e.conn[1], &source, 0, &sent, &err), GPUL_OK);
	assert_int_equal(two_ends_wait(e.conn, 0, received, NULL, &err), GPUL_OK);
	assert_int_equal(two_ends_wait(e.conn, 1, sent, NULL, &err), GPUL_OK);
	assert_memory_equal(buffers[0], buffers[1], 100);
	assert_int_equal(gpul_rdma_irecv(e.conn[1], &source, 1, 0, &received, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "registered with GPUL_RDMA_SOURCE"));
	assert_int_equal(gpul_rdma_offer(regions[1], (uintptr_t)buffers[1], 64, &offer, NULL), GPUL_EINVAL);
	memset(buffers[0], 1, ROOM);
	assert_int_equal(gpul_rdma_put(e.conn[0], &hostile, 10000, &put, NULL), GPUL_OK);
	assert_int_not_equal(two_ends_wait(e.conn, 0, put, NULL, NULL), GPUL_OK);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(((unsigned char *)buffers[1])[i], 7);
	gpul_rdma_unregister(regions[0]);
	gpul_rdma_unregister(regions[1]);
	two_ends_close(&e);
}

/* A flush reads memory of this end, and must not change anything at the peer. */
static void a_flush_writes_nothing(void **state)
{
	gpul_rdma_region *regions[2];
	gpul_rdma_request r = 0;
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &e);
	for (int i = 0; i < 2; i++) {
		const gpul_rdma_memory memory = { .at = (uintptr_t)buffers[i], .bytes = ROOM, .dmabuf_fd = -1 };

		memset(buffers[i], i + 1, ROOM);
		assert_int_equal(gpul_rdma_register_pieces(e.r[i], &memory, 1, true, &regions[i], &err), GPUL_OK);
	}
	for (unsigned n = 0; n < 100; n++) {
		const gpul_rdma_buffer b = buffer_of(regions[n % 2], buffers[n % 2], 64, 0);

		assert_int_equal(gpul_rdma_iflush(e.conn[n % 2], &b, 10000, &r, &err), GPUL_OK);
		if (two_ends_wait(e.conn, (int)(n % 2), r, NULL, &err))
			fail_msg("%s", err.text);
	}
	for (unsigned i = 0; i < 64; i++)
		assert_true(((unsigned char *)buffers[0])[i] == 1 && ((unsigned char *)buffers[1])[i] == 2);
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
}

/* One end sends an invalid message; both ends must get a failure that contains the text. */
static void expect_failure(size_t bytes, size_t room, uint32_t send_tag, uint32_t recv_tag, int timeout_ms, const char *text)
{
	gpul_rdma_region *regions[2];
	gpul_rdma_request sent = 0, received = 0;
	gpul_rdma_failure why[2];
	gpul_error err[2] = { 0 };
	struct two_ends e;

	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &e);
	for (int i = 0; i < 2; i++)
		regions[i] = region_of(e.r[i], buffers[i], ROOM, GPUL_RDMA_DATA);
	const gpul_rdma_buffer source = buffer_of(regions[1], buffers[1], bytes, send_tag);
	const gpul_rdma_buffer target = buffer_of(regions[0], buffers[0], room, recv_tag);

	if (room)
		assert_int_equal(gpul_rdma_irecv(e.conn[0], &target, 1, 0, &received, &err[0]), GPUL_OK);
	assert_int_equal(gpul_rdma_isend(e.conn[1], &source, timeout_ms, &sent, &err[1]), GPUL_OK);
	for (const uint64_t end = gpul_clock_ns() + 20000000000u; gpul_clock_ns() < end;) {
		const gpul_status a = gpul_rdma_progress(e.conn[0], NULL, &err[0]), b = gpul_rdma_progress(e.conn[1], NULL, &err[1]);

		if (a && b)
			break;
	}
	for (int i = 0; i < 2; i++) {
		gpul_rdma_conn_failed(e.conn[i], &why[i]);
		assert_int_not_equal(why[i].status, GPUL_OK);
		assert_non_null(strstr(err[i].text, text));
	}
	assert_int_equal(why[0].by_peer, 1);
	assert_int_equal(why[1].by_peer, 0);
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
}

static void both_ends_report_what_is_wrong(void **state)
{
	(void)state;
	expect_failure(100, 50, 7, 7, 0, "longer than the peer's receive buffer of 50 bytes");
	expect_failure(100, 100, 7, 8, 0, "has tag 7, but the peer's next receive has tag 8");
	expect_failure(100, 0, 7, 7, 200, "not posted a receive");
}

static void a_closed_peer_ends_requests(void **state)
{
	gpul_rdma_region *region;
	gpul_rdma_request received = 0;
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &e);
	region = region_of(e.r[0], buffers[0], ROOM, GPUL_RDMA_DATA);
	const gpul_rdma_buffer b = buffer_of(region, buffers[0], 100, 1);

	assert_int_equal(gpul_rdma_irecv(e.conn[0], &b, 1, 0, &received, &err), GPUL_OK);
	gpul_rdma_conn_close(e.conn[1]);
	e.conn[1] = NULL;
	assert_int_not_equal(gpul_rdma_wait(e.conn[0], received, NULL, &err), GPUL_OK);
	assert_non_null(strstr(err.text, "closed"));
	gpul_rdma_unregister(region);
	two_ends_close(&e);
}

static void send_and_wait(struct two_ends *e, const gpul_rdma_buffer *source, gpul_rdma_request received)
{
	gpul_rdma_request sent;
	gpul_error err = { 0 };

	assert_int_equal(gpul_rdma_isend(e->conn[1], source, 20000, &sent, &err), GPUL_OK);
	assert_int_equal(two_ends_wait(e->conn, 1, sent, NULL, &err), GPUL_OK);
	assert_int_equal(two_ends_wait(e->conn, 0, received, NULL, &err), GPUL_OK);
}

static void messages_of_a_peer_that_has_ended_are_received_first(void **state)
{
	gpul_rdma_region *regions[2];
	gpul_rdma_request first, received, sent;
	gpul_rdma_failure why = { 0 };
	gpul_error err = { 0 };
	struct two_ends e;

	(void)state;
	if (!strcmp(two_ends_backend(), "reliable-udp"))
		skip(); /* there a send ends only when the peer makes progress */
	two_ends_open(&(gpul_rdma_desc){ .device = { .gpu = -1, .gid_index = -1 } }, &e);
	for (int i = 0; i < 2; i++)
		regions[i] = region_of(e.r[i], buffers[i], ROOM, GPUL_RDMA_DATA);
	const gpul_rdma_buffer target = buffer_of(regions[0], buffers[0], SEGMENT, 1), source = buffer_of(regions[1], buffers[1], 30000, 1);

	for (int i = 0; i < 2; i++)
		assert_int_equal(gpul_rdma_irecv(e.conn[0], &target, 1, 0, i ? &received : &first, &err), GPUL_OK);
	send_and_wait(&e, &source, first); /* by now, the slot of the second message has been written, too */
	memset(buffers[0], 0, 30000);
	fill(buffers[1], 30000, 3);
	assert_int_equal(gpul_rdma_isend(e.conn[1], &source, 20000, &sent, &err), GPUL_OK);
	if (gpul_rdma_wait(e.conn[1], sent, NULL, &err))
		fail_msg("send: %s", err.text);
	gpul_rdma_conn_close(e.conn[1]);
	e.conn[1] = NULL;
	while (!why.status) /* only the watching thread reads, because this end makes no progress */
		gpul_rdma_conn_failed(e.conn[0], &why);
	if (gpul_rdma_wait(e.conn[0], received, NULL, &err))
		fail_msg("receive: %s", err.text);
	check(buffers[0], 30000, 3);
	assert_int_not_equal(gpul_rdma_progress(e.conn[0], NULL, &err), GPUL_OK);
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(regions[i]);
	two_ends_close(&e);
}

static int allocate(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		buffers[i] = malloc(ROOM);
	return 0;
}

static int release(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		free(buffers[i]);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_messages_over_one_queue_pair),
		cmocka_unit_test(carries_messages_over_several_queue_pairs),
		cmocka_unit_test(matches_a_multi_receive_by_tag),
		cmocka_unit_test(puts_raise_their_steps_in_order),
		cmocka_unit_test(registers_new_memory_at_an_old_address),
		cmocka_unit_test(keys_of_libfabric_cannot_be_guessed),
		cmocka_unit_test(a_source_can_be_sent_but_not_written),
		cmocka_unit_test(a_flush_writes_nothing),
		cmocka_unit_test(both_ends_report_what_is_wrong),
		cmocka_unit_test(a_closed_peer_ends_requests),
		cmocka_unit_test(messages_of_a_peer_that_has_ended_are_received_first),
	};

	return cmocka_run_group_tests(tests, allocate, release);
}
