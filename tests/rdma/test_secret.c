/* test_secret.c — connections with a secret: which clients are accepted and which are refused; refused clients do not affect others. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "rdma/oob/oob_wire.h"
#include "rdma/rdma.h"

enum { LONG_MS = 60000, N_SILENT = 150 };
static const char secret[] = "a secret of at least 16 characters";
static const gpul_rdma_identity mine = { .purpose = 1, .from = 3, .to = 0, .channel = 2 };

static gpul_rdma *open_with(const char *with)
{
	const gpul_rdma_desc desc = { .backend = "libfabric", .device = { .gpu = -1, .gid_index = -1 }, .secret = with };
	gpul_rdma *r = NULL;
	gpul_error err = { 0 };

	if (gpul_rdma_open(&desc, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

/* A thread that accepts one connection. */
struct server {
	gpul_rdma *r;
	gpul_rdma_listener *listener;
	const gpul_rdma_identity *expected;
	int timeout_ms;
	gpul_rdma_conn *conn;
	gpul_status st;
	gpul_error err;
	pthread_t thread;
};

static void *serve(void *arg)
{
	struct server *s = arg;

	s->st = gpul_rdma_accept_as(s->listener, s->expected, s->timeout_ms, &s->conn, &s->err);
	return NULL;
}

static void listen_with(struct server *s, const char *with)
{
	*s = (struct server){ .r = open_with(with), .timeout_ms = LONG_MS };
	if (gpul_rdma_listen(s->r, "127.0.0.1:0", &s->listener, &s->err))
		fail_msg("%s", s->err.text);
}

static void start_accept(struct server *s, const gpul_rdma_identity *expected, int timeout_ms)
{
	s->expected = expected;
	s->timeout_ms = timeout_ms;
	s->err = (gpul_error){ 0 };
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void end_accept(struct server *s)
{
	(void)pthread_join(s->thread, NULL);
}

static void close_server(struct server *s)
{
	gpul_rdma_listener_close(s->listener);
	gpul_rdma_close(s->r);
}

/* Connect with a secret and close the connection; returns the status of the connect. */
static gpul_status try_connect(struct server *s, const char *with, const gpul_rdma_identity *as, gpul_error *err)
{
	gpul_rdma *r = open_with(with);
	gpul_rdma_conn *conn = NULL;
	const gpul_status st = gpul_rdma_connect_as(r, gpul_rdma_listener_address(s->listener), as, LONG_MS, &conn, err);

	gpul_rdma_conn_close(conn);
	gpul_rdma_close(r);
	return st;
}

/* Check that a client with the right secret can connect, whatever other clients have done before. */
static void serves_the_right_client(struct server *s)
{
	gpul_rdma_conn_info info;
	gpul_error err = { 0 };

	start_accept(s, &mine, LONG_MS);
	if (try_connect(s, secret, &mine, &err))
		fail_msg("%s", err.text);
	end_accept(s);
	if (s->st)
		fail_msg("%s", s->err.text);
	gpul_rdma_conn_about(s->conn, &info);
	assert_memory_equal(&info.identity, &mine, sizeof mine);
	gpul_rdma_conn_close(s->conn);
	s->conn = NULL;
}

static void both_sides_need_the_same_secret(void **state)
{
	const struct {
		const char *server, *client, *text;
	} wrong[] = {
		{ secret, NULL, "the client has no secret, but the server has one" },
		{ secret, "", "the client has no secret, but the server has one" },
		{ secret, "another secret of many characters", "the server and this client have different secrets" },
		{ NULL, secret, "the client has a secret, but the server has none" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct server s;
		gpul_error err = { 0 };

		listen_with(&s, wrong[i].server);
		start_accept(&s, NULL, 2000);
		assert_int_equal(try_connect(&s, wrong[i].client, NULL, &err), GPUL_EUNSUPPORTED);
		if (!strstr(err.text, wrong[i].text))
			fail_msg("'%s', expected '%s'", err.text, wrong[i].text);
		end_accept(&s);
		assert_int_equal(s.st, GPUL_ESYS);
		assert_int_equal(s.err.native, ETIMEDOUT);
		if (strncmp(wrong[i].text, "the client", 10) == 0) { /* the server has refused the client */
			char uid[40];

			snprintf(uid, sizeof uid, "(uid %u): the client has", (unsigned)getuid());
			assert_non_null(strstr(s.err.text, "refused 127.0.0.1:"));
			assert_non_null(strstr(s.err.text, uid));
		} else { /* the client has detected the server's wrong proof and disconnected */
			assert_non_null(strstr(s.err.text, "refused 127.0.0.1:"));
			assert_non_null(strstr(s.err.text, ": the client did not prove that it knows the secret"));
		}
		if (wrong[i].server)
			serves_the_right_client(&s);
		close_server(&s);
	}
}

/* A listener that has its own secret does not accept the secret of the device. */
static void a_listener_may_have_its_own_secret(void **state)
{
	const char *const own = "known to this listener's peer only", *const tried[] = { secret, NULL, "", own };
	struct server s = { .r = open_with(secret) };
	gpul_rdma *r = open_with(secret);

	(void)state;
	if (gpul_rdma_listen_secret(s.r, "127.0.0.1:0", own, &s.listener, &s.err))
		fail_msg("%s", s.err.text);
	start_accept(&s, &mine, LONG_MS);
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		gpul_rdma_conn *conn = NULL;
		const gpul_status st = gpul_rdma_connect_secret(r, gpul_rdma_listener_address(s.listener), tried[i], &mine, LONG_MS, &conn,
								NULL);

		assert_int_equal(st, tried[i] == own ? GPUL_OK : GPUL_EUNSUPPORTED);
		if (!st)
			end_accept(&s);
		gpul_rdma_conn_close(conn);
	}
	assert_int_equal(s.st, GPUL_OK);
	gpul_rdma_conn_close(s.conn);
	gpul_rdma_close(r);
	close_server(&s);
}

static void another_identity_is_refused_by_name(void **state)
{
	const gpul_rdma_identity wrong[] = {
		{ .purpose = 2, .from = 3, .to = 0, .channel = 2 },
		{ .purpose = 1, .from = 2, .to = 0, .channel = 2 },
		{ .purpose = 1, .from = 3, .to = 1, .channel = 2 },
		{ .purpose = 1, .from = 3, .to = 0, .channel = 1 },
	};
	struct server s;

	(void)state;
	listen_with(&s, secret);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		gpul_error err = { 0 };
		char text[160];

		start_accept(&s, &mine, 1000);
		assert_int_equal(try_connect(&s, secret, &wrong[i], &err), GPUL_EUNSUPPORTED);
		snprintf(text, sizeof text, "connection %u of rank %u to %u, purpose %u; expected 2 of rank 3 to 0, purpose 1",
			 wrong[i].channel, wrong[i].from, wrong[i].to, wrong[i].purpose);
		if (!strstr(err.text, text))
			fail_msg("'%s', expected '%s'", err.text, text);
		end_accept(&s);
		assert_int_equal(s.st, GPUL_ESYS);
		serves_the_right_client(&s);
	}
	close_server(&s);
}

/* ---- clients that send frames by a plain socket ------------------------------------------------------------------- */

static int raw_client(const struct server *s)
{
	const char *port = strrchr(gpul_rdma_listener_address(s->listener), ':') + 1;
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons((uint16_t)atoi(port)),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval limit = { .tv_sec = LONG_MS / 1000 };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
	return fd;
}

static void send_frame(int fd, const gpul_rdma_frame *f)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	const size_t n = gpul_rdma_frame_encode(f, bytes);

	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

/* Receive one frame; returns its type, or 0 at the end of the connection. */
static unsigned receive_frame(int fd, gpul_rdma_frame *out)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	size_t n = 0, used = 0;

	while (recv(fd, bytes + n, 1, 0) == 1) {
		n++;
		if (gpul_rdma_frame_decode(bytes, n, out, &used, NULL))
			fail_msg("an invalid frame");
		if (used)
			return out->type;
	}
	return 0;
}

/* Identify as a rank, and reply to the challenge with a new *proof; replay: with the earlier *proof, which is for another nonce. */
static unsigned prove(int fd, const gpul_rdma_frame *identify, gpul_rdma_frame *proof, bool replay)
{
	unsigned char key[GPUL_SHA256_BYTES];
	gpul_rdma_frame answer;

	send_frame(fd, identify);
	assert_int_equal(receive_frame(fd, &answer), GPUL_RDMA_CHALLENGE);
	if (!replay) {
		*proof = (gpul_rdma_frame){ .type = GPUL_RDMA_PROOF, .credentials = identify->credentials };
		gpul_rdma_make_key(secret, key);
		gpul_rdma_make_proof(key, GPUL_RDMA_CLIENT, &mine, identify->credentials.nonce, answer.credentials.nonce,
				     proof->credentials.proof);
	}
	send_frame(fd, proof);
	shutdown(fd, SHUT_WR);
	return receive_frame(fd, &answer);
}

static void a_proof_is_good_for_one_connection(void **state)
{
	gpul_rdma_frame identify = { .type = GPUL_RDMA_IDENTIFY, .credentials.identity = mine }, proof;
	struct server s;
	int fd;

	(void)state;
	listen_with(&s, secret);
	assert_true(gpul_rdma_make_nonce(identify.credentials.nonce));
	start_accept(&s, &mine, 2000);
	fd = raw_client(&s);
	assert_int_equal(prove(fd, &identify, &proof, false), 0); /* the server closes after a valid proof without a HELLO */
	close(fd);
	fd = raw_client(&s);
	assert_int_equal(prove(fd, &identify, &proof, true), GPUL_RDMA_REFUSED);
	close(fd);
	end_accept(&s);
	assert_non_null(strstr(s.err.text, "the secret of the client differs from that of the server"));
	serves_the_right_client(&s);
	close_server(&s);
}

/* A client that replies with the server's own proof is refused. */
static void a_proof_cannot_be_reflected(void **state)
{
	gpul_rdma_frame identify = { .type = GPUL_RDMA_IDENTIFY, .credentials.identity = mine }, answer;
	struct server s;
	int fd;

	(void)state;
	listen_with(&s, secret);
	start_accept(&s, &mine, 2000);
	fd = raw_client(&s);
	send_frame(fd, &identify);
	assert_int_equal(receive_frame(fd, &answer), GPUL_RDMA_CHALLENGE);
	answer.type = GPUL_RDMA_PROOF;
	send_frame(fd, &answer);
	assert_int_equal(receive_frame(fd, &answer), GPUL_RDMA_REFUSED);
	close(fd);
	end_accept(&s);
	serves_the_right_client(&s);
	close_server(&s);
}

static void the_order_of_the_frames_is_checked(void **state)
{
	static const gpul_rdma_frame_type orders[][2] = {
		{ GPUL_RDMA_PROOF, 0 },
		{ GPUL_RDMA_CHALLENGE, 0 },
		{ GPUL_RDMA_READY, 0 },
		{ GPUL_RDMA_IDENTIFY, GPUL_RDMA_IDENTIFY },
		{ GPUL_RDMA_IDENTIFY, GPUL_RDMA_READY },
		{ GPUL_RDMA_IDENTIFY, GPUL_RDMA_CHALLENGE },
	};
	struct server s;

	(void)state;
	listen_with(&s, secret);
	start_accept(&s, &mine, 2000);
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
		const int fd = raw_client(&s);
		gpul_rdma_frame f;
		unsigned type;

		for (unsigned k = 0; k < 2 && orders[i][k]; k++)
			send_frame(fd, &(gpul_rdma_frame){ .type = orders[i][k] });
		while ((type = receive_frame(fd, &f)) == GPUL_RDMA_CHALLENGE)
			;
		assert_int_equal(type, 0); /* the server has closed the connection */
		close(fd);
	}
	end_accept(&s);
	serves_the_right_client(&s);
	close_server(&s);
}

/* Despite more silent clients than the listener has room for, half frames and invalid data, the right client is still served. */
static void strangers_do_not_keep_the_right_client_out(void **state)
{
	gpul_rdma_frame identify = { .type = GPUL_RDMA_IDENTIFY, .credentials.identity = mine };
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	const size_t n = gpul_rdma_frame_encode(&identify, bytes);
	int fds[N_SILENT];
	struct server s;

	(void)state;
	listen_with(&s, secret);
	for (int i = 0; i < N_SILENT; i++) {
		const char rubbish[] = "GET / HTTP/1.0\r\n\r\n";

		fds[i] = raw_client(&s);
		if (i % 4 == 1)
			assert_true(send(fds[i], bytes, (size_t)i % n, MSG_NOSIGNAL) >= 0); /* half an IDENTIFY */
		else if (i % 4 == 2)
			assert_true(send(fds[i], bytes, n, MSG_NOSIGNAL) >= 0); /* a whole IDENTIFY, but no PROOF follows */
		else if (i % 4 == 3)
			assert_true(send(fds[i], rubbish, sizeof rubbish - 1, MSG_NOSIGNAL) >= 0);
	}
	serves_the_right_client(&s);
	serves_the_right_client(&s);
	for (int i = 0; i < N_SILENT; i++)
		close(fds[i]);
	close_server(&s);
}

/* The error after a time-out names a client that sent nothing or invalid data. */
static void a_time_out_names_a_stranger(void **state)
{
	const struct {
		const char *sends, *text;
	} kinds[] = {
		{ "", "the client has not yet sent IDENTIFY; 1" },
		{ "GPU", "the client has not yet sent IDENTIFY; 1" },
		{ "GET / HTTP/1.0\r\n\r\n", "the client did not complete the handshake (the peer is not gpuload" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct server s;
		int fd;

		listen_with(&s, secret);
		fd = raw_client(&s);
		assert_true(send(fd, kinds[i].sends, strlen(kinds[i].sends), MSG_NOSIGNAL) >= 0);
		start_accept(&s, &mine, 1000);
		end_accept(&s);
		assert_int_equal(s.err.native, ETIMEDOUT);
		if (!strstr(s.err.text, kinds[i].text) || !strstr(s.err.text, "refused 127.0.0.1:"))
			fail_msg("'%s', expected '%s'", s.err.text, kinds[i].text);
		serves_the_right_client(&s);
		close(fd);
		close_server(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_need_the_same_secret),
		cmocka_unit_test(a_listener_may_have_its_own_secret),
		cmocka_unit_test(another_identity_is_refused_by_name),
		cmocka_unit_test(a_proof_is_good_for_one_connection),
		cmocka_unit_test(a_proof_cannot_be_reflected),
		cmocka_unit_test(the_order_of_the_frames_is_checked),
		cmocka_unit_test(strangers_do_not_keep_the_right_client_out),
		cmocka_unit_test(a_time_out_names_a_stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
