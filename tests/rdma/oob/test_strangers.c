/* test_strangers.c — a listener whose clients are silent, slow or hostile: only they are dropped. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "core/log.h"
#include "tests/rdma/oob/support.h"

static gpul_rdma_strangers *s;
static unsigned n_fds, n_dropped;
static char last_line[400];

static void note_line(void *user, gpul_log_level level, const char *module, const char *line)
{
	(void)user, (void)level, (void)module;
	n_dropped += strstr(line, "dropped a client") != NULL;
	snprintf(last_line, sizeof last_line, "%s", line);
}

static void listen_with(unsigned hello_ms, unsigned ready_ms)
{
	gpul_rdma_strangers_desc desc = { .address = loopback(), .hello_ms = hello_ms, .ready_ms = ready_ms };
	gpul_error err = { 0 };

	n_fds = count_fds();
	n_dropped = 0;
	if (gpul_rdma_strangers_create(&desc, &s, &err))
		fail_msg("%s", err.text);
}

static void stop_listening(void)
{
	gpul_rdma_strangers_destroy(s);
	assert_int_equal(count_fds(), n_fds);
}

static gpul_rdma_stranger_event next_until(uint64_t deadline_ns)
{
	gpul_rdma_stranger_event e;
	gpul_error err = { 0 };

	if (gpul_rdma_strangers_next(s, deadline_ns, &e, &err))
		fail_msg("%s", err.text);
	return e;
}

static gpul_rdma_stranger *expect(gpul_rdma_stranger_event_kind kind)
{
	gpul_rdma_stranger_event e = next_until(in_a_minute());

	if (e.kind != kind)
		fail_msg("event %d instead of %d: %s; %s", e.kind, kind, e.why.what, last_line);
	return e.who;
}

static int client(void)
{
	return connect_raw(gpul_rdma_strangers_port(s));
}

static void welcome(gpul_rdma_stranger *who)
{
	gpul_rdma_hello h = good_hello();
	gpul_rdma_failure why = { 0 };

	if (gpul_rdma_stranger_welcome(s, who, &h, &why))
		fail_msg("%s", why.what);
}

/* Check that a correct client is served, whatever the other clients do. */
static void serves_a_good_client(void)
{
	int fd = client();
	gpul_rdma_stranger *who;
	gpul_rdma_channel *c;

	send_frame(fd, GPUL_RDMA_HELLO);
	who = expect(GPUL_RDMA_STRANGER_HELLO);
	assert_int_equal(who->hello.pid, 4711);
	who->user = &s;
	welcome(who);
	send_frame(fd, GPUL_RDMA_READY);
	who = expect(GPUL_RDMA_STRANGER_READY);
	assert_ptr_equal(who->user, &s);
	c = gpul_rdma_stranger_take(s, who);
	gpul_rdma_channel_close(c);
	close(fd);
}

/* Run the listener until n clients have been dropped. */
static void drop_until(unsigned n)
{
	while (n_dropped < n)
		assert_int_equal(next_until(gpul_clock_ns() + 1000000).kind, GPUL_RDMA_STRANGER_NONE);
}

static void serves_clients_one_after_the_other_and_interleaved(void **state)
{
	enum { N = 20 };
	gpul_rdma_stranger *who[N];
	int fds[N];

	(void)state;
	listen_with(60000, 60000);
	serves_a_good_client();
	for (int i = 0; i < N; i++) {
		fds[i] = client();
		send_frame(fds[i], GPUL_RDMA_HELLO);
		who[i] = expect(GPUL_RDMA_STRANGER_HELLO);
		who[i]->user = &fds[i];
	}
	for (int i = 0; i < N; i++)
		welcome(who[i]);
	for (int i = N - 1; i >= 0; i--) {
		send_frame(fds[i], GPUL_RDMA_READY);
		assert_ptr_equal(expect(GPUL_RDMA_STRANGER_READY), who[i]);
		assert_ptr_equal(who[i]->user, &fds[i]);
		gpul_rdma_channel_close(gpul_rdma_stranger_take(s, who[i]));
		close(fds[i]);
	}
	stop_listening();
}

/* A reply to a HELLO takes long, so if many new clients came first, a client that has its reply could time out. */
static void a_welcomed_client_comes_before_new_ones(void **state)
{
	int first, second;

	(void)state;
	listen_with(60000, 60000);
	first = client();
	send_frame(first, GPUL_RDMA_HELLO);
	welcome(expect(GPUL_RDMA_STRANGER_HELLO));
	second = client();
	assert_int_equal(next_until(gpul_clock_ns() + 50000000).kind, GPUL_RDMA_STRANGER_NONE); /* accepts the silent new client */
	send_frame(second, GPUL_RDMA_HELLO);
	send_frame(first, GPUL_RDMA_READY);
	gpul_rdma_channel_close(gpul_rdma_stranger_take(s, expect(GPUL_RDMA_STRANGER_READY)));
	(void)expect(GPUL_RDMA_STRANGER_HELLO);
	close(first);
	close(second);
	stop_listening();
}

static void returns_at_the_deadline_and_when_woken(void **state)
{
	(void)state;
	listen_with(0, 0);
	assert_int_equal(next_until(0).kind, GPUL_RDMA_STRANGER_NONE);
	assert_int_equal(next_until(gpul_clock_ns() + 5000000).kind, GPUL_RDMA_STRANGER_NONE);
	gpul_rdma_strangers_wake(s);
	gpul_rdma_strangers_wake(s);
	assert_int_equal(next_until(UINT64_MAX).kind, GPUL_RDMA_STRANGER_NONE);
	assert_non_null(strstr(gpul_rdma_strangers_name(s), "127.0.0.1:"));
	stop_listening();
}

static void refuses_with_a_reason_that_the_client_receives(void **state)
{
	gpul_rdma_failure why = good_failure();
	gpul_rdma_address to = loopback();
	gpul_rdma_channel *c;
	gpul_rdma_frame f = { .type = GPUL_RDMA_HELLO, .hello = good_hello() };

	(void)state;
	listen_with(0, 0);
	to.port = gpul_rdma_strangers_port(s);
	assert_int_equal(gpul_rdma_channel_connect(&to, in_a_minute(), &c, NULL), GPUL_OK);
	assert_int_equal(gpul_rdma_channel_send(c, &f, &(gpul_rdma_failure){ 0 }), GPUL_OK);
	gpul_rdma_stranger_refuse(s, expect(GPUL_RDMA_STRANGER_HELLO), &why);
	why = (gpul_rdma_failure){ 0 };
	assert_int_equal(gpul_rdma_channel_await(c, GPUL_RDMA_WELCOME, in_a_minute(), &f, &why), GPUL_EVERBS);
	assert_int_equal(why.by_peer, 1);
	assert_string_equal(why.what, good_failure().what);
	assert_string_equal(why.peer, gpul_rdma_channel_peer(c));
	gpul_rdma_channel_close(c);
	serves_a_good_client();
	stop_listening();
}

static void drops_silent_and_slow_clients_after_their_time(void **state)
{
	unsigned char hello[GPUL_RDMA_FRAME_BYTES];
	size_t n = frame_bytes(GPUL_RDMA_HELLO, hello);
	int silent, slow;

	(void)state;
	listen_with(150, 60000);
	silent = client();
	slow = client();
	for (size_t i = 0; i < n && n_dropped < 2; i++) { /* sends its HELLO too slowly, and is dropped */
		(void)!send(slow, hello + i, 1, MSG_NOSIGNAL);
		assert_int_equal(next_until(gpul_clock_ns() + 5000000).kind, GPUL_RDMA_STRANGER_NONE);
	}
	drop_until(2);
	assert_non_null(strstr(last_line, "the peer did not send HELLO within 0.1 s"));
	assert_int_equal(recv(silent, hello, 1, 0), 0);
	serves_a_good_client();
	close(silent);
	close(slow);
	stop_listening();
}

static void drops_every_kind_of_rubbish(void **state)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES], flood[65536];
	size_t n = frame_bytes(GPUL_RDMA_HELLO, bytes);
	unsigned want = 0;
	int fds[7];

	(void)state;
	memset(flood, 0xa5, sizeof flood);
	listen_with(60000, 60000);
	for (unsigned type = GPUL_RDMA_WELCOME; type <= GPUL_RDMA_BYE; type++, want++) /* frames that are not allowed before HELLO */
		send_frame(fds[type - 1] = client(), type);
	(void)!send(fds[0] = client(), flood, sizeof flood, MSG_NOSIGNAL);
	drop_until(++want);
	for (int i = 0; i < 7; i++)
		close(fds[i]);
	for (size_t cut = 0; cut < n; cut += cut < 170 ? 1 : 100) { /* the connection ends within a frame */
		fds[0] = client();
		if (cut)
			send_raw(fds[0], bytes, cut);
		if (cut % 2)
			reset_socket(fds[0]);
		else
			close(fds[0]);
		drop_until(++want);
	}
	serves_a_good_client();
	stop_listening();
}

/* When a welcomed client disconnects, the caller must be informed, because it has created queue pairs for the client. */
static void reports_welcomed_clients_that_go(void **state)
{
	gpul_rdma_stranger_event e;

	(void)state;
	listen_with(60000, 300);
	for (int how = 0; how < 5; how++) {
		int fd = client();
		gpul_rdma_stranger *who;

		send_frame(fd, GPUL_RDMA_HELLO);
		who = expect(GPUL_RDMA_STRANGER_HELLO);
		who->user = &fd;
		welcome(who);
		if (how == 0)
			close(fd);
		else if (how == 1)
			reset_socket(fd);
		else if (how < 4)
			send_frame(fd, how == 2 ? GPUL_RDMA_FAILED : GPUL_RDMA_HELLO);
		e = next_until(in_a_minute());
		assert_int_equal(e.kind, GPUL_RDMA_STRANGER_GONE);
		assert_ptr_equal(e.user, &fd);
		assert_null(e.who);
		assert_int_equal(e.why.by_peer, how == 2);
		assert_non_null(strstr(e.why.peer, "127.0.0.1:"));
		if (how == 4)
			assert_string_equal(e.why.what, "the peer did not send READY within 0.3 s");
		if (how >= 2)
			close(fd);
	}
	serves_a_good_client();
	stop_listening();
}

static void notices_a_client_that_goes_before_it_is_welcomed(void **state)
{
	gpul_rdma_hello h = good_hello();
	gpul_rdma_failure why = { 0 };
	gpul_rdma_stranger *who;
	int fd;

	(void)state;
	listen_with(0, 0);
	fd = client();
	send_frame(fd, GPUL_RDMA_HELLO);
	who = expect(GPUL_RDMA_STRANGER_HELLO);
	reset_socket(fd);
	assert_int_equal(next_until(0).kind, GPUL_RDMA_STRANGER_NONE);
	if (gpul_rdma_stranger_welcome(s, who, &h, &why) == GPUL_OK)
		expect(GPUL_RDMA_STRANGER_GONE);
	else
		assert_true(why.native == ECONNRESET || why.native == EPIPE);
	fd = client();
	send_frame(fd, GPUL_RDMA_HELLO);
	who = expect(GPUL_RDMA_STRANGER_HELLO);
	reset_socket(fd);
	gpul_rdma_stranger_refuse(s, who, &(gpul_rdma_failure){ .status = GPUL_EINVAL });
	serves_a_good_client();
	stop_listening();
}

static void goes_on_with_300_silent_connections(void **state)
{
	static int fds[300];

	(void)state;
	listen_with(60000, 60000);
	for (int i = 0; i < 300; i++)
		fds[i] = client();
	serves_a_good_client();
	assert_true(n_dropped >= 300 - GPUL_RDMA_MAX_STRANGERS);
	assert_non_null(strstr(last_line, "64 clients, the limit, are waiting"));
	for (int i = 0; i < 300; i++)
		close(fds[i]);
	stop_listening();
}

/* 300 clients send their HELLO at the same time, and none is dropped. */
static void keeps_every_client_that_sent_its_hello(void **state)
{
	static int fds[300];
	static gpul_rdma_stranger *who[GPUL_RDMA_MAX_STRANGERS];

	(void)state;
	listen_with(60000, 60000);
	for (int i = 0; i < 300; i++)
		send_frame(fds[i] = client(), GPUL_RDMA_HELLO);
	for (int i = 0; i < GPUL_RDMA_MAX_STRANGERS; i++)
		who[i] = expect(GPUL_RDMA_STRANGER_HELLO);
	assert_int_equal(next_until(gpul_clock_ns() + 1000000).kind,
			 GPUL_RDMA_STRANGER_NONE); /* none, because GPUL_RDMA_MAX_STRANGERS clients are being served */
	for (int i = 0; i < 300; i++) {
		gpul_rdma_stranger_refuse(s, who[i % GPUL_RDMA_MAX_STRANGERS], &(gpul_rdma_failure){ .status = GPUL_EINVAL });
		if (i + GPUL_RDMA_MAX_STRANGERS < 300)
			who[i % GPUL_RDMA_MAX_STRANGERS] = expect(GPUL_RDMA_STRANGER_HELLO);
	}
	assert_int_equal(n_dropped, 0);
	for (int i = 0; i < 300; i++)
		close(fds[i]);
	stop_listening();
}

static void goes_on_when_descriptors_run_out(void **state)
{
	struct rlimit before, now;
	int fd, extra;

	(void)state;
	listen_with(60000, 60000);
	fd = client();
	extra = dup(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = before;
	now.rlim_cur = (rlim_t)extra + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(next_until(gpul_clock_ns() + 1000000).kind, GPUL_RDMA_STRANGER_NONE);
	assert_non_null(strstr(last_line, "cannot accept a client now: Too many open files"));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	send_frame(fd, GPUL_RDMA_HELLO);
	gpul_rdma_stranger_refuse(s, expect(GPUL_RDMA_STRANGER_HELLO), &(gpul_rdma_failure){ .status = GPUL_EINVAL });
	close(fd);
	close(extra);
	stop_listening();
}

static void closes_pending_clients_when_it_ends(void **state)
{
	int fds[3];

	(void)state;
	listen_with(60000, 60000);
	for (int i = 0; i < 3; i++) {
		fds[i] = client();
		if (i)
			send_frame(fds[i], GPUL_RDMA_HELLO);
	}
	expect(GPUL_RDMA_STRANGER_HELLO);
	welcome(expect(GPUL_RDMA_STRANGER_HELLO));
	gpul_rdma_strangers_destroy(s);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	assert_int_equal(count_fds(), n_fds);
	gpul_rdma_strangers_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves_clients_one_after_the_other_and_interleaved),
		cmocka_unit_test(a_welcomed_client_comes_before_new_ones),
		cmocka_unit_test(returns_at_the_deadline_and_when_woken),
		cmocka_unit_test(refuses_with_a_reason_that_the_client_receives),
		cmocka_unit_test(drops_silent_and_slow_clients_after_their_time),
		cmocka_unit_test(drops_every_kind_of_rubbish),
		cmocka_unit_test(reports_welcomed_clients_that_go),
		cmocka_unit_test(notices_a_client_that_goes_before_it_is_welcomed),
		cmocka_unit_test(goes_on_with_300_silent_connections),
		cmocka_unit_test(keeps_every_client_that_sent_its_hello),
		cmocka_unit_test(goes_on_when_descriptors_run_out),
		cmocka_unit_test(closes_pending_clients_when_it_ends),
	};

	gpul_log_to(note_line, NULL);
	gpul_log_set_level(GPUL_LOG_INFO);
	return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
