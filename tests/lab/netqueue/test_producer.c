/* test_producer.c — the state machine that turns a stream's bytes into entries, with a simulated kernel: each of its blocks finishes its
 * own entries in order, at random times. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "lab/netqueue/producer.h"
#include "tests/lab/netqueue/stream.h"

enum { MOST_ENTRIES = 256, MOST_BLOCKS = 5 };

struct model {
	gpul_netqueue_shape shape;
	gpul_netqueue_producer p;
	uint64_t ends[MOST_ENTRIES], done[MOST_BLOCKS];
	unsigned char *bounce, *destination, *in_use; /* in_use: for each byte of bounce, 1 while an unfinished entry needs it */
	gpul_netqueue_piece pieces[MOST_ENTRIES];     /* entry n is at index n % n_entries */
	uint64_t n_pieces, at;                        /* at: number of bytes of the stream that were sent */
	uint64_t seed;
};

static uint64_t below(struct model *m, uint64_t n)
{
	m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (m->seed >> 24) % n;
}

static void open_model(struct model *m, const gpul_netqueue_shape *shape, uint64_t destination_bytes, uint64_t seed)
{
	gpul_error err = { 0 };
	const size_t bytes = (size_t)shape->n_slots * shape->slot_bytes;

	memset(m, 0, sizeof *m);
	assert_int_equal(gpul_netqueue_shape_check(shape, &err), GPUL_OK);
	m->shape = *shape;
	m->seed = seed;
	m->bounce = calloc(bytes, 1);
	m->in_use = calloc(bytes, 1);
	m->destination = calloc(destination_bytes, 1);
	assert_true(m->bounce && m->in_use && m->destination);
	gpul_netqueue_producer_begin(&m->p, shape, m->ends);
}

static void close_model(struct model *m)
{
	free(m->bounce);
	free(m->in_use);
	free(m->destination);
}

/* Receive a random number of the stream's bytes into the free spans of the bounce memory, none of whose bytes may be in use. */
static void receive(struct model *m, const struct stream *s)
{
	gpul_netqueue_span spans[2];
	const unsigned n = gpul_netqueue_room(&m->p, spans);
	uint64_t packet = below(m, 3000) + 1, got = 0;

	for (unsigned i = 0; i < n && packet; i++) {
		uint64_t bytes = spans[i].bytes < packet ? spans[i].bytes : packet;

		if (bytes > s->n_bytes - m->at)
			bytes = s->n_bytes - m->at;
		assert_true(spans[i].at + spans[i].bytes <= (uint64_t)m->shape.n_slots * m->shape.slot_bytes);
		for (uint64_t k = 0; k < spans[i].bytes; k++)
			assert_int_equal(m->in_use[spans[i].at + k], 0);
		memcpy(m->bounce + spans[i].at, s->bytes + m->at, bytes);
		m->at += bytes;
		got += bytes;
		packet -= bytes;
	}
	gpul_netqueue_received(&m->p, got);
}

/* Let the producer make up to `most` entries, check them, and mark their bytes as in use. */
static void produce(struct model *m, uint64_t most)
{
	gpul_netqueue_piece piece;
	gpul_error err = { 0 };
	bool got = true;

	while (most-- && got) {
		assert_int_equal(gpul_netqueue_produce(&m->p, m->bounce, &piece, &got, &err), GPUL_OK);
		if (!got)
			break;
		assert_int_equal(piece.n, m->n_pieces);
		assert_in_range(piece.length, 1, m->shape.slot_bytes);
		assert_int_equal(piece.source / m->shape.slot_bytes, (piece.source + piece.length - 1) / m->shape.slot_bytes);
		memset(m->in_use + piece.source, 1, piece.length);
		m->pieces[m->n_pieces++ % m->shape.n_entries] = piece;
	}
}

/* Make a block of the simulated kernel finish its next entry, if there is one: copy its bytes, and mark them as free. */
static void finish(struct model *m, uint32_t block)
{
	const uint64_t n = gpul_netqueue_entry_of(m->done[block], block, m->shape.n_blocks, m->shape.chunk_entries);
	const gpul_netqueue_piece *piece = &m->pieces[n % m->shape.n_entries];

	if (n >= m->n_pieces)
		return;
	assert_int_equal(piece->n, n);
	memcpy(m->destination + piece->destination, m->bounce + piece->source, piece->length);
	memset(m->in_use + piece->source, 0, piece->length);
	m->done[block]++;
}

static void makes_entries_of_a_stream(void **state)
{
	static const gpul_netqueue_shape shapes[] = {
		{ 2, 256, 16, 1, 1 }, { 4, 512, 32, 2, 8 }, { 8, 256, 256, 5, 4 }, { 2, 4096, 32, 3, 2 }, { 4, 256, 4, 4, 1 }
	};

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct model m;
		struct stream s;
		gpul_error err = { 0 };

		stream_make(&s, i, 20000, i % 3 ? 1000 : 20, i % 2);
		open_model(&m, &shapes[i % 5], s.destination_bytes, i);
		for (unsigned turns = 0; !gpul_netqueue_ended(&m.p) || m.p.n_done < m.n_pieces; turns++) {
			assert_true(turns < 1000000);
			switch (below(&m, 3)) {
			case 0:
				receive(&m, &s);
				break;
			case 1:
				produce(&m, below(&m, 20) + 1);
				break;
			default:
				for (uint64_t k = below(&m, 20); k; k--)
					finish(&m, (uint32_t)below(&m, m.shape.n_blocks));
				assert_int_equal(gpul_netqueue_credit(&m.p, m.done, &err), GPUL_OK);
			}
		}
		assert_memory_equal(m.destination, s.right, s.destination_bytes);
		assert_int_equal(m.p.n_records, s.n_records);
		assert_int_equal(m.p.n_produced, m.n_pieces);
		close_model(&m);
		stream_free(&s);
	}
}

static void is_limited_by_slots_and_by_entries(void **state)
{
	static const gpul_netqueue_shape shape = { 2, 256, 4, 1, 1 };
	unsigned char record[GPUL_NETQUEUE_HEADER_BYTES + 4] = { 0 };
	gpul_netqueue_span spans[2];
	gpul_netqueue_piece piece;
	gpul_error err = { 0 };
	struct model m;
	bool got;

	(void)state;
	open_model(&m, &shape, 64, 0);
	gpul_netqueue_write_header(record, 4, 0, 8);
	for (unsigned i = 0; i < 512 / sizeof record; i++)
		memcpy(m.bounce + i * sizeof record, record, sizeof record);
	assert_int_equal(gpul_netqueue_room(&m.p, spans), 1);
	assert_int_equal(spans[0].bytes, 512);
	gpul_netqueue_received(&m.p, 500);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(gpul_netqueue_produce(&m.p, m.bounce, &piece, &got, &err), GPUL_OK);
		assert_int_equal(got, i < 4); /* the ring has 4 entries */
	}
	assert_int_equal(gpul_netqueue_room(&m.p, spans), 1);
	assert_int_equal(spans[0].bytes, 12);
	m.done[0] = 4;
	assert_int_equal(gpul_netqueue_credit(&m.p, m.done, &err), GPUL_OK);
	assert_int_equal(gpul_netqueue_room(&m.p, spans), 1);
	assert_int_equal(spans[0].bytes, 12); /* 80 bytes of the first slot are done, which does not free it yet */
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(gpul_netqueue_produce(&m.p, m.bounce, &piece, &got, &err), GPUL_OK);
		m.done[0] = m.p.n_produced;
		assert_int_equal(gpul_netqueue_credit(&m.p, m.done, &err), GPUL_OK);
	}
	assert_int_equal(gpul_netqueue_room(&m.p, spans), 2);
	assert_int_equal(spans[0].bytes + spans[1].bytes, 12 + 256);
	close_model(&m);
}

static void refuses_a_malformed_stream(void **state)
{
	static const gpul_netqueue_shape shape = { 2, 256, 16, 1, 1 };
	gpul_netqueue_piece piece;
	gpul_error err = { 0 };
	struct model m;
	bool got;

	(void)state;
	open_model(&m, &shape, 64, 0);
	gpul_netqueue_write_header(m.bounce, 4, 0, 8);
	gpul_netqueue_received(&m.p, 16 + 4 + 16); /* zeros instead of the next header */
	assert_int_equal(gpul_netqueue_produce(&m.p, m.bounce, &piece, &got, &err), GPUL_OK);
	assert_int_equal(got, true);
	assert_int_equal(gpul_netqueue_produce(&m.p, m.bounce, &piece, &got, &err), GPUL_EFORMAT);
	assert_int_equal(err.native, 20);
	assert_non_null(strstr(err.text, "byte 20 of the stream: expected the header of record 1"));
	close_model(&m);

	open_model(&m, &shape, 64, 0);
	err = (gpul_error){ 0 };
	gpul_netqueue_write_header(m.bounce, 0, 0, 0);
	gpul_netqueue_received(&m.p, 17);
	assert_int_equal(gpul_netqueue_produce(&m.p, m.bounce, &piece, &got, &err), GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "byte 16 of the stream: the stream ends here, but the sender has sent 1 more bytes"));
	close_model(&m);
}

static void passes_any_destination_to_the_kernel(void **state)
{
	static const gpul_netqueue_shape shape = { 2, 256, 16, 1, 1 };
	gpul_netqueue_piece piece;
	gpul_error err = { 0 };
	struct model m;
	bool got;

	(void)state;
	open_model(&m, &shape, 64, 0);
	gpul_netqueue_write_header(m.bounce, 4, 0, UINT64_MAX - 1);
	gpul_netqueue_received(&m.p, 20);
	assert_int_equal(gpul_netqueue_produce(&m.p, m.bounce, &piece, &got, &err), GPUL_OK);
	assert_true(got && piece.destination == GPUL_NETQUEUE_DESTINATION_MASK);
	close_model(&m);
}

static void refuses_false_credits(void **state)
{
	static const gpul_netqueue_shape shape = { 2, 256, 16, 2, 4 };
	static const uint64_t bad[][2] = { { 2, 0 }, { 0, 1 }, { UINT64_MAX, 0 }, { 1, UINT64_MAX / 4 + 2 } };
	gpul_netqueue_piece piece;
	struct model m;
	bool got;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		gpul_error err = { 0 };

		open_model(&m, &shape, 64, 0);
		gpul_netqueue_write_header(m.bounce, 4, 0, 0);
		gpul_netqueue_received(&m.p, 20);
		assert_int_equal(gpul_netqueue_produce(&m.p, m.bounce, &piece, &got, &err), GPUL_OK);
		assert_int_equal(gpul_netqueue_credit(&m.p, bad[i], &err), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, "although only 1 entries were produced"));
		close_model(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_entries_of_a_stream),  cmocka_unit_test(is_limited_by_slots_and_by_entries),
		cmocka_unit_test(refuses_a_malformed_stream), cmocka_unit_test(passes_any_destination_to_the_kernel),
		cmocka_unit_test(refuses_false_credits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
