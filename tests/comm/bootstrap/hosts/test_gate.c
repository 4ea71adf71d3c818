/* test_gate.c — strangers (clients that are not ranks of the job) and ranks with a wrong secret or version connect to rank 0 over TCP, or
 * pretend to be rank 0. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/hosts/messages_internal.h"
#include "comm/bootstrap/hosts/stream_internal.h"
#include "tests/comm/bootstrap/hosts/several.h"

static void meet_and_close(struct ranks_opener *zero, struct ranks_opener *one)
{
	ranks_expect_meeting(zero);
	ranks_expect_meeting(one);
	gpul_boot_close(one->boot);
	gpul_boot_close(zero->boot);
}

/* ---- the stranger ----------------------------------------------------------------------------------------------- */

static struct boot_visit good_visit(const gpul_comm_job *job, int rank)
{
	struct boot_visit v = { .rank = rank, .size = job->size, .pid = 4711, .purpose = BOOT_LINK };

	memcpy(v.job, job->name, sizeof v.job);
	strcpy(v.machine.name, "elsewhere");
	return v;
}

static void send_packet(int fd, enum boot_type type, uint32_t version, const void *payload, size_t n_bytes)
{
	struct boot_head head = { .type = type };

	gpul_boot_head_fill(&head, n_bytes);
	head.version = version;
	assert_int_equal(send(fd, &head, sizeof head, MSG_NOSIGNAL), sizeof head);
	if (n_bytes)
		assert_int_equal(send(fd, payload, n_bytes, MSG_NOSIGNAL), n_bytes);
}

/* Receive the next packet of a blocking socket. */
static boot_got receive_packet(int fd, struct boot_packet *p)
{
	struct boot_stream *s = NULL;
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	gpul_error err = { 0 };
	boot_got got;

	assert_int_equal(gpul_boot_stream_create(fd, BOOT_SMALL_BYTES, &s, NULL), GPUL_OK);
	while ((got = gpul_boot_stream_receive(s, p, &err)) == BOOT_GOT_NOTHING)
		poll(&ready, 1, -1);
	gpul_boot_stream_destroy(s);
	return got;
}

static void expect_refusal(int fd, const char *text)
{
	struct boot_packet *p = malloc(sizeof *p);

	assert_int_equal(receive_packet(fd, p), BOOT_GOT_PACKET);
	assert_int_equal(p->head.type, BOOT_REFUSED);
	p->payload[p->head.bytes] = '\0';
	if (!strstr((char *)p->payload, text))
		fail_msg("expected '%s': %s", text, (char *)p->payload);
	close(fd);
	free(p);
}

/* Send HELLO and the PROOF of a secret to rank 0, and receive its reply to the PROOF in p. */
static int visit(const gpul_comm_job *job, const struct boot_visit *v, const char *secret, struct boot_packet *p)
{
	int fd = several_connect(job);
	unsigned char proof[GPUL_SHA256_BYTES];

	send_packet(fd, BOOT_HELLO, BOOT_VERSION, v, sizeof *v);
	assert_int_equal(receive_packet(fd, p), BOOT_GOT_PACKET);
	if (p->head.type != BOOT_CHALLENGE)
		return fd;
	gpul_boot_proof(secret, BOOT_VISITOR, v, p->payload, proof);
	send_packet(fd, BOOT_PROOF, BOOT_VERSION, proof, sizeof proof);
	return fd;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void strangers_do_not_disturb_the_meeting(void **state)
{
	enum { N_SILENT = 150 };
	gpul_comm_job job = several_job(0, 2), other = several_of(&job, 1, "ab");
	struct ranks_opener zero, one;
	struct boot_head head = { .type = BOOT_HELLO };
	int silent[N_SILENT], fd;
	char rubbish[5000];

	(void)state;
	for (size_t i = 0; i < sizeof rubbish; i++)
		rubbish[i] = (char)(i * 2654435761u >> 13);
	ranks_start(&zero, &job, RANKS_LONG_MS);
	for (int i = 0; i < N_SILENT; i++)
		silent[i] = several_connect(&job);
	close(several_connect(&job)); /* connects and disconnects, like a port scanner */
	fd = several_connect(&job);
	(void)send(fd, rubbish, sizeof rubbish, MSG_NOSIGNAL);
	expect_refusal(fd, "that is not from gpuload");
	fd = several_connect(&job);
	(void)send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
	expect_refusal(fd, "that is not from gpuload");
	fd = several_connect(&job); /* will send a HELLO whose header announces too many bytes */
	gpul_boot_head_fill(&head, 1u << 30);
	(void)send(fd, &head, sizeof head, MSG_NOSIGNAL);
	expect_refusal(fd, "a malformed message of type 1 with 1073741824 bytes");
	fd = several_connect(&job); /* will send half a header, and then nothing */
	gpul_boot_head_fill(&head, sizeof(struct boot_visit));
	(void)send(fd, &head, 20, MSG_NOSIGNAL);
	ranks_start(&one, &other, RANKS_LONG_MS);
	meet_and_close(&zero, &one);
	close(fd);
	for (int i = 0; i < N_SILENT; i++)
		close(silent[i]);
}

static void a_wrong_secret_is_refused_on_both_sides(void **state)
{
	gpul_comm_job job = several_job(0, 2), other = several_of(&job, 1, "ab");
	struct ranks_opener zero, one;

	(void)state;
	strcpy(other.secret, "another secret of the tests");
	ranks_start(&zero, &job, 3000);
	ranks_start(&one, &other, RANKS_LONG_MS);
	ranks_expect_failure(&one, "refused rank 1: rank 1 of host b has a different secret (GPULOAD_COMM_SECRET) from rank 0");
	ranks_expect_failure(&zero, "rank 1 of 2 ranks did not answer within 3000 ms; refused 127.0.0.1:");
	assert_non_null(strstr(zero.err.text, "rank 1 of host b has a different secret"));
}

static void the_right_rank_still_comes_after_a_wrong_secret(void **state)
{
	gpul_comm_job job = several_job(0, 2), wrong = several_of(&job, 1, "ab"), right = wrong;
	struct ranks_opener zero, one;

	(void)state;
	strcpy(wrong.secret, "another secret of the tests");
	ranks_start(&zero, &job, RANKS_LONG_MS);
	ranks_start(&one, &wrong, RANKS_LONG_MS);
	ranks_expect_failure(&one, "has a different secret");
	ranks_start(&one, &right, RANKS_LONG_MS);
	meet_and_close(&zero, &one);
}

static void another_version_is_refused_on_both_sides(void **state)
{
	gpul_comm_job job = several_job(0, 2);
	struct boot_visit v = good_visit(&job, 1);
	struct ranks_opener zero;
	int fd;

	(void)state;
	ranks_start(&zero, &job, 2000);
	fd = several_connect(&job);
	send_packet(fd, BOOT_HELLO, BOOT_VERSION + 1, &v, sizeof v);
	expect_refusal(fd, "a message of start-up protocol version");
	ranks_expect_failure(&zero, "of start-up protocol version");
}

static void another_job_at_the_address_is_refused(void **state)
{
	gpul_comm_job job = several_job(0, 2), other = several_of(&job, 1, "ab"), stray = other;
	struct ranks_opener zero, one, lost;

	(void)state;
	strcpy(stray.name, "stray");
	ranks_start(&zero, &job, RANKS_LONG_MS);
	ranks_start(&lost, &stray, RANKS_LONG_MS);
	ranks_expect_failure(&lost, "a different job listens at this address");
	ranks_start(&one, &other, RANKS_LONG_MS);
	meet_and_close(&zero, &one);
}

static void a_rank_that_contradicts_the_job_fails_it(void **state)
{
	static const struct {
		int rank, size;
		const char *text;
	} cases[] = {
		{ 1, 4, "process 4711 of host elsewhere (rank 1) expects 4 ranks, but rank 0 expects 3" },
		{ 0, 3, "process 4711 of host elsewhere says that it is rank 0, expected rank 1 to 2" },
		{ 3, 3, "process 4711 of host elsewhere says that it is rank 3, expected rank 1 to 2" },
		{ -1, 3, "process 4711 of host elsewhere says that it is rank -1, expected rank 1 to 2" },
	};
	struct boot_packet *p = malloc(sizeof *p);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_job job = several_job(0, 3);
		struct boot_visit v = good_visit(&job, cases[i].rank);
		struct ranks_opener zero;

		v.size = cases[i].size;
		ranks_start(&zero, &job, RANKS_LONG_MS);
		expect_refusal(visit(&job, &v, SEVERAL_SECRET, p), cases[i].text);
		ranks_expect_failure(&zero, cases[i].text);
	}
	free(p);
}

static void two_processes_with_one_rank_are_named(void **state)
{
	gpul_comm_job job = several_job(0, 3);
	struct boot_visit v = good_visit(&job, 1);
	struct boot_packet *p = malloc(sizeof *p);
	struct ranks_opener zero;
	int first;

	(void)state;
	ranks_start(&zero, &job, RANKS_LONG_MS);
	first = visit(&job, &v, SEVERAL_SECRET, p);
	assert_int_equal(receive_packet(first, p), BOOT_GOT_PACKET);
	assert_int_equal(p->head.type, BOOT_WELCOME);
	v.pid = 4712;
	expect_refusal(visit(&job, &v, SEVERAL_SECRET, p), "process 4711 of host elsewhere and process 4712 of host elsewhere both");
	ranks_expect_failure(&zero, "both say that they are rank 1");
	close(first);
	free(p);
}

/* Replaying a recorded proof fails, because each connection has another challenge. */
static void a_repeated_proof_is_refused(void **state)
{
	gpul_comm_job job = several_job(0, 3);
	struct boot_visit v = good_visit(&job, 1);
	struct boot_packet *p = malloc(sizeof *p);
	unsigned char proof[GPUL_SHA256_BYTES];
	struct ranks_opener zero;
	int first, second;

	(void)state;
	ranks_start(&zero, &job, 3000);
	first = several_connect(&job);
	send_packet(first, BOOT_HELLO, BOOT_VERSION, &v, sizeof v);
	assert_int_equal(receive_packet(first, p), BOOT_GOT_PACKET);
	gpul_boot_proof(SEVERAL_SECRET, BOOT_VISITOR, &v, p->payload, proof);
	close(first); /* the attacker has recorded the proof, and sends it on another connection */
	second = several_connect(&job);
	send_packet(second, BOOT_HELLO, BOOT_VERSION, &v, sizeof v);
	assert_int_equal(receive_packet(second, p), BOOT_GOT_PACKET);
	send_packet(second, BOOT_PROOF, BOOT_VERSION, proof, sizeof proof);
	expect_refusal(second, "has a different secret");
	ranks_expect_failure(&zero, "ranks did not answer within 3000 ms");
	free(p);
}

/* ---- a wrong rank 0 --------------------------------------------------------------------------------------------- */

static int listen_as_rank_0(const gpul_comm_job *job)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(strrchr(job->address, ':') + 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void answers_of_a_wrong_rank_0_are_refused(void **state)
{
	static const unsigned char zeros[GPUL_SHA256_BYTES];
	static const struct {
		int type; /* type of the reply to the HELLO; 0: invalid bytes */
		int version;
		const char *text;
	} cases[] = {
		{ 0, 0, "that is not from gpuload" },
		{ BOOT_CHALLENGE, BOOT_VERSION + 1, "of start-up protocol version" },
		{ BOOT_WELCOME, BOOT_VERSION, "answered with message type 2, expected CHALLENGE" },
		{ BOOT_CHALLENGE, BOOT_VERSION, "refused to connect to rank 0 at 127.0.0.1:" },
	};
	struct boot_packet *p = malloc(sizeof *p);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_job job = several_job(1, 2);
		int listener = listen_as_rank_0(&job), guest;
		struct ranks_opener one;

		ranks_start(&one, &job, RANKS_LONG_MS);
		guest = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		assert_int_equal(receive_packet(guest, p), BOOT_GOT_PACKET);
		assert_int_equal(p->head.type, BOOT_HELLO);
		if (!cases[i].type)
			assert_int_equal(send(guest, "SSH-2.0-OpenSSH_9.2\r\n", 21, MSG_NOSIGNAL), 21);
		else
			send_packet(guest, (enum boot_type)cases[i].type, (uint32_t)cases[i].version, zeros, sizeof zeros);
		if (cases[i].type == BOOT_CHALLENGE && cases[i].version == BOOT_VERSION) {
			assert_int_equal(receive_packet(guest, p), BOOT_GOT_PACKET);
			/* Reply with the rank's own proof. */
			send_packet(guest, BOOT_WELCOME, BOOT_VERSION, p->payload, GPUL_SHA256_BYTES);
		}
		ranks_expect_failure(&one, cases[i].text);
		close(guest);
		close(listener);
	}
	free(p);
}

static void a_rank_0_that_hangs_up_is_tried_again(void **state)
{
	gpul_comm_job job = several_job(0, 2), other = several_of(&job, 1, "ab");
	int listener = listen_as_rank_0(&job);
	struct ranks_opener zero, one;

	(void)state;
	ranks_start(&one, &other, RANKS_LONG_MS);
	for (int i = 0; i < 3; i++)
		close(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	close(listener);
	ranks_start(&zero, &job, RANKS_LONG_MS);
	meet_and_close(&zero, &one);
}

static void the_address_must_be_free(void **state)
{
	gpul_comm_job job = several_job(0, 2);
	int listener = listen_as_rank_0(&job);
	struct ranks_opener zero;

	(void)state;
	ranks_start(&zero, &job, RANKS_LONG_MS);
	ranks_expect_failure(&zero, "another process listens there");
	close(listener);
	strcpy(job.interface, "no-such-if");
	ranks_start(&zero, &job, RANKS_LONG_MS);
	ranks_expect_failure(&zero, "GPULOAD_COMM_INTERFACE=no-such-if: there is no such interface, or it is down or has no address");
}

static void rank_0_listens_on_the_interface_that_is_given(void **state)
{
	static const char *const interfaces[] = { "lo", "127.0.0.1" };

	(void)state;
	for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces; i++) {
		gpul_comm_job job = several_job(0, 2), other = several_of(&job, 1, "ab");
		struct ranks_opener zero, one;

		strcpy(job.interface, interfaces[i]);
		ranks_start(&zero, &job, RANKS_LONG_MS);
		ranks_start(&one, &other, RANKS_LONG_MS);
		meet_and_close(&zero, &one);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_do_not_disturb_the_meeting),
		cmocka_unit_test(a_wrong_secret_is_refused_on_both_sides),
		cmocka_unit_test(the_right_rank_still_comes_after_a_wrong_secret),
		cmocka_unit_test(another_version_is_refused_on_both_sides),
		cmocka_unit_test(another_job_at_the_address_is_refused),
		cmocka_unit_test(a_rank_that_contradicts_the_job_fails_it),
		cmocka_unit_test(two_processes_with_one_rank_are_named),
		cmocka_unit_test(a_repeated_proof_is_refused),
		cmocka_unit_test(answers_of_a_wrong_rank_0_are_refused),
		cmocka_unit_test(a_rank_0_that_hangs_up_is_tried_again),
		cmocka_unit_test(the_address_must_be_free),
		cmocka_unit_test(rank_0_listens_on_the_interface_that_is_given),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
