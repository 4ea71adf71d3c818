/* fuzz_rdma_oob.c — libFuzzer target: decodes the frames of the out-of-band socket of an RDMA connection.
 *
 * The first byte selects the frame type: the target adds a valid head with the size of the rest, and for HELLO and WELCOME a
 * valid description size, so that every input tests the fields.  Type 0: the rest is the whole stream, including heads.  The second
 * byte selects where the stream is cut in two: the result must not depend on it.  An accepted frame must satisfy the contract of
 * wire.h, and must be unchanged after it is encoded and decoded again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/oob/oob_wire.h"
#include "rdma/protocol/protocol_link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { ROOM = 2 * GPUL_RDMA_FRAME_BYTES, HELLO_BYTES = offsetof(gpul_rdma_hello, description) };

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check_text(const char *text, size_t room)
{
	size_t n = strnlen(text, room);

	require(n < room);
	for (size_t i = 0; i < n; i++)
		require(text[i] >= ' ' && text[i] <= '~');
	for (size_t i = n; i < room; i++)
		require(text[i] == '\0');
}

static void check_hello(const gpul_rdma_hello *h)
{
	require(h->version == GPUL_RDMA_WIRE_VERSION);
	require(h->n_qps >= 1 && h->n_qps <= GPUL_RDMA_MAX_QPS);
	require(h->depth >= 64 && h->depth <= 4096 && (h->depth & (h->depth - 1)) == 0);
	require(h->segment_bytes >= 4096 && h->segment_bytes <= GPUL_RDMA_MAX_SEGMENT);
	require(h->stripe_bytes >= 128 && h->stripe_bytes % 128 == 0);
	require(h->striping <= GPUL_RDMA_ROUND_ROBIN && h->qp_type <= GPUL_RDMA_UC && h->flags <= 3);
	require(h->lease_ms >= 10 && h->lease_ms <= 3600000 && h->notice_ms <= 86400000 && h->pid <= INT32_MAX);
	require(h->description_bytes <= GPUL_RDMA_MAX_DESCRIPTION);
	require(h->slots.bytes == GPUL_RDMA_SLOTS * sizeof(gpul_rdma_slot) && h->slots.address + h->slots.bytes > h->slots.address);
	check_text(h->backend, sizeof h->backend);
	check_text(h->host, sizeof h->host);
	require(h->backend[0] != '\0');
}

static void check_frame(const gpul_rdma_frame *f)
{
	require(f->type >= GPUL_RDMA_HELLO && f->type <= GPUL_RDMA_BYE);
	if (f->type == GPUL_RDMA_HELLO || f->type == GPUL_RDMA_WELCOME)
		check_hello(&f->hello);
	if (f->type != GPUL_RDMA_FAILED && f->type != GPUL_RDMA_REFUSED)
		return;
	require(f->failure.status > GPUL_OK && f->failure.status <= GPUL_EVERBS && f->failure.by_peer == 1);
	check_text(f->failure.call, sizeof f->failure.call);
	check_text(f->failure.what, sizeof f->failure.what);
	check_text(f->failure.peer, sizeof f->failure.peer);
	check_text(f->failure.advice, sizeof f->failure.advice);
}

/* Write the stream that an input describes to room.  Returns the stream's size. */
static size_t lay_out(const uint8_t *data, size_t n_bytes, uint8_t *room)
{
	gpul_rdma_frame beat = { .type = GPUL_RDMA_BEAT };
	unsigned type = data[0] % (GPUL_RDMA_BYE + 1);
	size_t n = n_bytes - 2;
	uint16_t fields[2];

	if (!type) {
		n = n < ROOM ? n : ROOM;
		memcpy(room, data + 2, n);
		return n;
	}
	n = n < GPUL_RDMA_MAX_PAYLOAD ? n : GPUL_RDMA_MAX_PAYLOAD;
	(void)gpul_rdma_frame_encode(&beat, room);
	fields[0] = (uint16_t)type;
	fields[1] = (uint16_t)n;
	memcpy(room + 4, fields, sizeof fields);
	memcpy(room + GPUL_RDMA_FRAME_HEAD_BYTES, data + 2, n);
	if (type <= GPUL_RDMA_WELCOME && n >= HELLO_BYTES && !(data[0] & 0x80)) {
		uint32_t description = (uint32_t)n - HELLO_BYTES;

		memcpy(room + GPUL_RDMA_FRAME_HEAD_BYTES + offsetof(gpul_rdma_hello, description_bytes), &description, 4);
	}
	return GPUL_RDMA_FRAME_HEAD_BYTES + n;
}

/* Decode the stream from the end of an allocation, so that the sanitizer detects an access past the stream's end. */
static gpul_status decode(const uint8_t *room, size_t n, gpul_rdma_frame *out, size_t *used)
{
	static uint8_t *end;
	gpul_error err = { 0 };
	gpul_status st;

	if (!end)
		end = malloc(ROOM);
	require(end != NULL);
	memcpy(end + ROOM - n, room, n);
	memset(out, 0, sizeof *out);
	st = gpul_rdma_frame_decode(end + ROOM - n, n, out, used, &err);
	require(st == err.status && (st == GPUL_OK || (st == GPUL_EFORMAT && err.text[0] && *used == 0)));
	require(*used <= n);
	return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static uint8_t room[ROOM];
	static gpul_rdma_frame f, early, again;
	size_t n, cut, used, used_early;
	gpul_status st, st_early;

	if (n_bytes < 2)
		return 0;
	n = lay_out(data, n_bytes, room);
	cut = n * data[1] / 255;
	st = decode(room, n, &f, &used);
	st_early = decode(room, cut, &early, &used_early);
	require(st_early == GPUL_OK || st != GPUL_OK); /* a stream with an error stays wrong when more bytes arrive */
	if (used_early)
		require(used == used_early && memcmp(&f, &early, sizeof f) == 0);
	if (st || !used)
		return 0;
	require(cut < used || used_early == used);
	check_frame(&f);
	n = gpul_rdma_frame_encode(&f, room);
	require(n == used && decode(room, n, &again, &used) == GPUL_OK && used == n && memcmp(&f, &again, sizeof f) == 0);
	return 0;
}
