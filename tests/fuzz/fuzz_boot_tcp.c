/* fuzz_boot_tcp.c — libFuzzer target: decodes the TCP messages with which ranks on different hosts find each other.
 *
 * The first byte selects the type of the packet: the target adds a valid head with the size of the rest, so that every input
 * tests the payload.  Type 0: the rest is the whole stream, including heads.  The second byte selects where the stream is cut in two:
 * the result must not depend on it.  An accepted packet must satisfy the contract of messages_internal.h. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "comm/bootstrap/hosts/messages_internal.h"
#include "comm/bootstrap/hosts/stream_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { ROOM = sizeof(struct boot_head) + 2 * BOOT_SMALL_BYTES, SIZE = 5 };

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

static void check_packet(const struct boot_packet *p)
{
	struct boot_visit v;
	struct boot_hosts h;
	struct boot_beat beats[GPUL_COMM_MAX_RANKS];
	struct roster_record r;
	int n = -1;

	require(p->head.version == BOOT_VERSION && p->head.bytes <= BOOT_SMALL_BYTES && p->n_fds == 0);
	require(p->head.type >= BOOT_HELLO && p->head.type <= BOOT_BYE && p->head.type != BOOT_FDS);
	if (gpul_boot_parse_visit(p, &v, NULL) == GPUL_OK) {
		check_text(v.job, sizeof v.job);
		check_text(v.machine.name, sizeof v.machine.name);
		check_text(v.machine.id, sizeof v.machine.id);
		require(v.purpose == BOOT_LINK || v.purpose == BOOT_CALLS);
	}
	if (gpul_boot_parse_hosts(p, SIZE, &h, NULL) == GPUL_OK)
		for (int i = 0; i < SIZE; i++) {
			require(h.host[i] >= 0 && h.host[i] <= i);
			check_text(h.name[h.host[i]], sizeof *h.name);
		}
	if (gpul_boot_parse_beats(p, SIZE, beats, &n, NULL) == GPUL_OK)
		require(n >= 0 && n <= GPUL_COMM_MAX_RANKS);
	for (int i = 0; i < n; i++)
		require(beats[i].rank >= 0 && beats[i].rank < SIZE && beats[i].state <= RANK_ARRIVED);
	if (gpul_boot_parse_record(p, SIZE, &r, NULL) == GPUL_OK) {
		check_text(r.text, sizeof r.text);
		require(r.rank >= 0 && r.rank < SIZE && r.culprit >= -1 && r.culprit < SIZE);
	}
}

/* Write the stream that an input describes to room.  Returns the stream's size. */
static size_t lay_out(const uint8_t *data, size_t n_bytes, uint8_t *room)
{
	struct boot_head head = { .type = data[0] % (BOOT_BYE + 1) };
	size_t n = n_bytes - 2 < 2 * BOOT_SMALL_BYTES ? n_bytes - 2 : 2 * BOOT_SMALL_BYTES, at = 0;

	if (head.type) {
		gpul_boot_head_fill(&head, n);
		memcpy(room, &head, sizeof head);
		at = sizeof head;
	}
	memcpy(room + at, data + 2, n);
	return at + n;
}

/* Decode the stream from the end of an allocation, so that the sanitizer detects an access past the stream's end. */
static boot_got decode(const uint8_t *room, size_t n, struct boot_packet *out, size_t *used)
{
	static uint8_t *end;
	gpul_error err = { 0 };
	boot_got got;

	if (!end)
		end = malloc(ROOM);
	require(end != NULL);
	memcpy(end + ROOM - n, room, n);
	got = gpul_boot_stream_decode(end + ROOM - n, n, BOOT_SMALL_BYTES, out, used, &err);
	require(got == BOOT_GOT_PACKET || *used == 0);
	require(got == BOOT_GOT_BAD ? err.status == GPUL_EFORMAT || err.status == GPUL_EUNSUPPORTED : err.status == GPUL_OK);
	require(got != BOOT_GOT_END && *used <= n);
	return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static uint8_t room[ROOM];
	static struct boot_packet p, early;
	size_t n, cut, used, used_early;
	boot_got got, got_early;

	if (n_bytes < 2)
		return 0;
	n = lay_out(data, n_bytes, room);
	cut = n * data[1] / 255;
	got = decode(room, n, &p, &used);
	got_early = decode(room, cut, &early, &used_early);
	require(got_early != BOOT_GOT_BAD || got == BOOT_GOT_BAD); /* a stream with an error stays wrong when more bytes arrive */
	if (got_early == BOOT_GOT_PACKET)
		require(got == BOOT_GOT_PACKET && used == used_early && memcmp(&p.head, &early.head, sizeof p.head) == 0 &&
			memcmp(p.payload, early.payload, p.head.bytes) == 0);
	if (got == BOOT_GOT_PACKET)
		check_packet(&p);
	return 0;
}
