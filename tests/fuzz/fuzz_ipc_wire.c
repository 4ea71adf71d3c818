/* fuzz_ipc_wire.c — libFuzzer target: parses the messages between an owner of shared memory and a peer.
 *
 * The first byte selects the type of the message.  The target adds a valid head and the correct size, so that every
 * input tests the fields; with the high bit set, the input is the whole message, of any size.  An accepted message must
 * satisfy the contract of wire_internal.h, and must be accepted again unchanged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { ROOM = 8192, N_TYPES = WIRE_BYE };

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
}

static void check_share(const struct wire_share *s)
{
	uint64_t n_elements = 1;

	check_text(s->driver, sizeof s->driver);
	check_text(s->dtype, sizeof s->dtype);
	require(s->kind != GPUL_MEM_AUTO && s->kind != GPUL_MEM_PINNED && s->kind < GPUL_MEM_N_KINDS);
	require(s->bytes > 0 && s->bytes <= s->mapped_bytes);
	require(s->mapped_bytes - s->bytes >= gpul_ipc_wire_data_offset(s));
	require(s->granularity_bytes > 0 && s->mapped_bytes % s->granularity_bytes == 0);
	require(s->slot < GPUL_IPC_MAX_PEERS && s->n_dims <= GPUL_IPC_MAX_DIMS);
	require(s->via == WIRE_VIA_FD || s->via == WIRE_VIA_FABRIC || s->via == WIRE_VIA_CUDA_IPC);
	for (unsigned i = 0; i < s->n_dims; i++)
		require(!__builtin_mul_overflow(n_elements, s->dim[i], &n_elements));
	require(n_elements <= s->bytes || s->n_dims == 0);
}

static void check(const gpul_ipc_message *m)
{
	switch (m->head.type) {
	case WIRE_HELLO:
		check_text(m->hello.driver, sizeof m->hello.driver);
		require(m->hello.n_gpus <= WIRE_MAX_GPUS);
		break;
	case WIRE_OFFER:
		check_share(&m->offer.share);
		break;
	case WIRE_REFUSED:
		check_text(m->refused.text, sizeof m->refused.text);
		require(m->refused.status != GPUL_OK);
		break;
	case WIRE_INFO:
		check_share(&m->info.share);
		require(m->info.n_peers <= GPUL_IPC_MAX_PEERS);
		for (unsigned i = 0; i < m->info.n_peers; i++)
			require(m->info.peer[i].slot < GPUL_IPC_MAX_PEERS);
		break;
	default:
		require(m->head.type == WIRE_READY || m->head.type == WIRE_BYE);
	}
}

/* Write the message that an input describes to the end of room.  Returns the message's size. */
static size_t lay_out(const uint8_t *data, size_t n_bytes, uint8_t *room)
{
	unsigned type = data[0] % N_TYPES + 1;
	struct wire_head head = gpul_ipc_wire_head((enum wire_type)type);
	size_t n = gpul_ipc_wire_bytes(type), n_given = n_bytes - 1;

	if (data[0] & 0x80) {
		n = n_given < ROOM ? n_given : ROOM;
		memcpy(room + ROOM - n, data + 1, n);
		return n;
	}
	if (n_given > n - sizeof head)
		n_given = n - sizeof head;
	memcpy(room + ROOM - n, &head, sizeof head);
	memcpy(room + ROOM - n + sizeof head, data + 1, n_given);
	memset(room + ROOM - n + sizeof head + n_given, 0, n - sizeof head - n_given);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static uint8_t *room; /* on the heap, so that an access past its end is detected */
	static gpul_ipc_message m, again;
	gpul_error err = { 0 };
	size_t n;

	if (!room)
		room = malloc(ROOM);
	require(room != NULL);
	if (n_bytes == 0)
		return 0;
	n = lay_out(data, n_bytes, room);
	if (gpul_ipc_wire_parse(room + ROOM - n, n, &m, &err)) {
		require(err.status == GPUL_EFORMAT);
		check_text(err.text, sizeof err.text);
		require(err.text[0] != '\0');
		return 0;
	}
	check(&m);
	require(gpul_ipc_wire_parse(&m, n, &again, &err) == GPUL_OK && memcmp(&m, &again, n) == 0);
	return 0;
}
