/* test_messages.c — messages between hosts: proofs, packets that are split anywhere, malformed payloads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/hosts/hosts_internal.h"

static struct boot_visit visit_of_rank(int rank)
{
	struct boot_visit v = { .rank = rank, .size = 4, .pid = 4711, .purpose = BOOT_LINK };

	strcpy(v.job, "comm-1");
	strcpy(v.machine.name, "node7");
	strcpy(v.machine.id, "id");
	memset(v.nonce, 0x11, sizeof v.nonce);
	return v;
}

/* The expected values are from Python: hmac.new(b"0123456789abcdef", side + b"\x22" * 32 + hello, "sha256"), hello =
 * struct.pack("<iiiI64s64s40s32s", 1, 4, 4711, 1, b"comm-1", b"node7", b"id", b"\x11" * 32), also with a key of 100 'k'. */
static void a_proof_is_hmac_sha256(void **state)
{
	static const struct {
		const char *secret;
		enum boot_side side;
		const char *hex;
	} cases[] = {
		{ "0123456789abcdef", BOOT_VISITOR, "b295da8232da27d1332491f104d78ba32e64e9845f0eeaf8055baa215bdd8545" },
		{ "0123456789abcdef", BOOT_RANK_0, "cdeeb20ae5af8753b9082238d2e8a24186681add38578b2e2e30e0b45efa2fbc" },
		{ "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk", BOOT_VISITOR,
		  "30409bf1d023ef9d7749f60f9475c9fbd54b68cb1c72aa3e7b5d89cd4c67324d" },
	};
	const struct boot_visit v = visit_of_rank(1);
	unsigned char challenge[BOOT_NONCE_BYTES], proof[GPUL_SHA256_BYTES];
	char hex[2 * GPUL_SHA256_BYTES + 1];

	(void)state;
	memset(challenge, 0x22, sizeof challenge);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_boot_proof(cases[i].secret, cases[i].side, &v, challenge, proof);
		for (int b = 0; b < GPUL_SHA256_BYTES; b++)
			snprintf(hex + 2 * b, 3, "%02x", proof[b]);
		assert_string_equal(hex, cases[i].hex);
	}
}

static void proofs_differ_in_any_bit(void **state)
{
	unsigned char a[GPUL_SHA256_BYTES] = { 1, 2, 3 }, b[GPUL_SHA256_BYTES];

	(void)state;
	memcpy(b, a, sizeof b);
	assert_true(gpul_sha256_same(a, b));
	for (int bit = 0; bit < 8 * GPUL_SHA256_BYTES; bit++) {
		b[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_false(gpul_sha256_same(a, b));
		b[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
}

/* Packets that arrive byte by byte are assembled correctly. */
static void packets_may_be_cut_anywhere(void **state)
{
	struct boot_stream *from = NULL, *to = NULL;
	struct boot_packet *p = malloc(sizeof *p);
	unsigned char payload[300], bytes[4096];
	size_t n_bytes = 0, n_packets = 0;
	int sent[2], cut[2];

	(void)state;
	for (size_t i = 0; i < sizeof payload; i++)
		payload[i] = (unsigned char)(i * 7);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sent), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, cut), 0);
	assert_int_equal(gpul_boot_stream_create(sent[0], 1000, &from, NULL), GPUL_OK);
	assert_int_equal(gpul_boot_stream_create(cut[1], 1000, &to, NULL), GPUL_OK);
	for (size_t i = 0; i < 4; i++) {
		struct boot_head head = { .type = BOOT_DATA, .call = (uint32_t)i };

		assert_int_equal(gpul_boot_stream_send(from, &head, payload, i * 100, NULL), BOOT_GOT_PACKET);
	}
	n_bytes = (size_t)read(sent[1], bytes, sizeof bytes);
	assert_int_equal(n_bytes, 4 * sizeof(struct boot_head) + 600);
	for (size_t i = 0; i < n_bytes; i++) {
		assert_int_equal(write(cut[0], bytes + i, 1), 1);
		if (gpul_boot_stream_receive(to, p, NULL) != BOOT_GOT_PACKET)
			continue;
		assert_int_equal(p->head.call, n_packets);
		assert_int_equal(p->head.bytes, n_packets * 100);
		assert_memory_equal(p->payload, payload, n_packets * 100);
		n_packets++;
	}
	assert_int_equal(n_packets, 4);
	close(cut[0]);
	assert_int_equal(gpul_boot_stream_receive(to, p, NULL), BOOT_GOT_END);
	gpul_boot_stream_destroy(from);
	gpul_boot_stream_destroy(to);
	close(cut[1]);
	close(sent[0]);
	close(sent[1]);
	free(p);
}

/* If the socket is full, a packet is accepted only once, and its remainder is sent when the socket has room again. */
static void a_slow_reader_gets_each_packet_once(void **state)
{
	struct boot_stream *from = NULL, *to = NULL;
	struct boot_packet *p = malloc(sizeof *p);
	unsigned char *payload = calloc(1, BOOT_PAYLOAD_BYTES);
	uint32_t n_sent = 0, n_received = 0;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(gpul_boot_stream_create(pair[0], BOOT_PAYLOAD_BYTES, &from, NULL), GPUL_OK);
	assert_int_equal(gpul_boot_stream_create(pair[1], BOOT_PAYLOAD_BYTES, &to, NULL), GPUL_OK);
	while (n_received < 50) {
		struct boot_head head = { .type = BOOT_DATA, .call = n_sent };
		boot_got got = gpul_boot_stream_send(from, &head, payload, BOOT_PAYLOAD_BYTES, NULL);

		n_sent += got == BOOT_GOT_PACKET;
		if (got == BOOT_GOT_PACKET)
			continue; /* send until the socket is full */
		assert_int_equal(got, BOOT_GOT_NOTHING);
		while (gpul_boot_stream_receive(to, p, NULL) == BOOT_GOT_PACKET)
			assert_int_equal(p->head.call, n_received++);
	}
	gpul_boot_stream_destroy(from);
	gpul_boot_stream_destroy(to);
	close(pair[0]);
	close(pair[1]);
	free(payload);
	free(p);
}

static struct boot_packet *packet_with(enum boot_type type, const void *payload, size_t n_bytes)
{
	struct boot_packet *p = calloc(1, sizeof *p);

	p->head.type = type;
	p->head.bytes = (uint32_t)n_bytes;
	memcpy(p->payload, payload, n_bytes);
	return p;
}

/* On most machines, GPULOAD_COMM_HOST is not set; the host's name and the kernel's boot_id identify the machine. */
static void a_machine_without_a_given_name_can_introduce_itself(void **state)
{
	const gpul_comm_job job = { .size = 2 };
	struct boot_packet *p = calloc(1, sizeof *p);
	struct boot_visit sent = visit_of_rank(1), got;
	gpul_error err = { 0 };

	(void)state;
	assert_non_null(p);
	gpul_boot_machine(&job, &sent.machine);
	p->head = (struct boot_head){ .type = BOOT_HELLO, .bytes = sizeof sent };
	memcpy(p->payload, &sent, sizeof sent);
	assert_int_equal(gpul_boot_parse_visit(p, &got, &err), GPUL_OK);
	assert_true(got.machine.name[0] && got.machine.id[0]);
	assert_memory_equal(&got, &sent, sizeof got);
	free(p);
}

static void a_dead_network_is_told_from_a_malformed_packet(void **state)
{
	const gpul_comm_job job = { .address = "node1:29500" };
	const gpul_error dead = { .status = GPUL_ESYS, .native = ETIMEDOUT, .text = "recv: Connection timed out" };
	const gpul_error malformed = { .status = GPUL_EFORMAT, .text = "a malformed message" };
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_boot_explain_stream(&job, &dead, &err), GPUL_ESYS);
	assert_string_equal(err.text, "rank 0 at node1:29500 no longer answers (Connection timed out): its host or the network is down");
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_boot_explain_stream(&job, &malformed, &err), GPUL_EFORMAT);
	assert_string_equal(err.text, "rank 0 at node1:29500 sent a malformed message");
}

static void payloads_with_impossible_numbers_are_refused(void **state)
{
	struct boot_visit v = visit_of_rank(1), v_out;
	struct boot_hosts h = { .host = { 0, 1, 3 } }, h_out;
	struct boot_beat beat = { .rank = 4, .state = RANK_JOINED }, beats[GPUL_COMM_MAX_RANKS];
	struct roster_record record = { .kind = GPUL_RANK_DIED, .rank = 1, .culprit = 9, .status = GPUL_EUNSUPPORTED }, r_out;
	struct boot_packet *packets[] = { packet_with(BOOT_HELLO, &v, sizeof v - 1), packet_with(BOOT_HOSTS, &h, sizeof h),
					  packet_with(BOOT_BEAT, &beat, sizeof beat), packet_with(BOOT_FAILED, &record, sizeof record) };
	int n;

	(void)state;
	assert_int_equal(gpul_boot_parse_visit(packets[0], &v_out, NULL), GPUL_EFORMAT);
	assert_int_equal(gpul_boot_parse_hosts(packets[1], 3, &h_out, NULL), GPUL_EFORMAT);
	assert_int_equal(gpul_boot_parse_hosts(packets[1], 2, &h_out, NULL), GPUL_OK);
	assert_int_equal(gpul_boot_parse_beats(packets[2], 4, beats, &n, NULL), GPUL_EFORMAT);
	assert_int_equal(gpul_boot_parse_beats(packets[2], 5, beats, &n, NULL), GPUL_OK);
	assert_int_equal(gpul_boot_parse_record(packets[3], 4, &r_out, NULL), GPUL_EFORMAT);
	for (int kind = GPUL_RANK_DIED - 1; kind <= GPUL_RANK_STALLED + 1; kind++) {
		const bool known = kind >= GPUL_RANK_DIED && kind <= GPUL_RANK_STALLED;

		memcpy(packets[3]->payload, &kind, sizeof kind);
		assert_int_equal(gpul_boot_parse_record(packets[3], 10, &r_out, NULL), known ? GPUL_OK : GPUL_EFORMAT);
	}
	for (size_t i = 0; i < sizeof packets / sizeof *packets; i++)
		free(packets[i]);
}

/* Control characters are replaced, because a text from another machine may be printed on a terminal. */
static void texts_become_printable(void **state)
{
	char out[12];

	(void)state;
	memset(out, 'x', sizeof out);
	gpul_boot_copy_text(out, sizeof out, "a\033[31m\nred text", 15);
	assert_string_equal(out, "a?[31m?red ");
	gpul_boot_copy_text(out, sizeof out, "no end", 2);
	assert_string_equal(out, "no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proof_is_hmac_sha256),
		cmocka_unit_test(proofs_differ_in_any_bit),
		cmocka_unit_test(packets_may_be_cut_anywhere),
		cmocka_unit_test(a_slow_reader_gets_each_packet_once),
		cmocka_unit_test(a_machine_without_a_given_name_can_introduce_itself),
		cmocka_unit_test(a_dead_network_is_told_from_a_malformed_packet),
		cmocka_unit_test(payloads_with_impossible_numbers_are_refused),
		cmocka_unit_test(texts_become_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
