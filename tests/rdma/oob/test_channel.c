/* test_channel.c — channels over every kind of socket; how connections end, and peers that violate the protocol. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "rdma/oob/port.h"
#include "tests/rdma/oob/support.h"

static gpul_rdma_channel *ends[2];

static void send_type(gpul_rdma_channel *c, gpul_rdma_frame_type type)
{
	gpul_rdma_frame f = { .type = type };
	gpul_rdma_failure why = { 0 };

	if (type == GPUL_RDMA_HELLO || type == GPUL_RDMA_WELCOME)
		f.hello = good_hello();
	else
		f.failure = good_failure();
	if (gpul_rdma_channel_send(c, &f, &why))
		fail_msg("%s: %s", why.call, why.what);
}

/* Wait for the failure of a channel. */
static gpul_rdma_failure failure_of(gpul_rdma_channel *c)
{
	gpul_rdma_frame f;
	gpul_rdma_failure why = { 0 };

	assert_int_not_equal(gpul_rdma_channel_await(c, GPUL_RDMA_READY, in_a_minute(), &f, &why), GPUL_OK);
	return why;
}

static void close_both(void)
{
	gpul_rdma_channel_close(ends[0]);
	gpul_rdma_channel_close(ends[1]);
}

static void carries_frames_both_ways(void **state)
{
	gpul_rdma_frame f;
	gpul_rdma_failure why = { 0 };
	gpul_rdma_hello h = good_hello();
	bool got = true;

	(void)state;
	make_pair(ends);
	assert_int_equal(gpul_rdma_channel_receive(ends[0], &f, &got, &why), GPUL_OK);
	assert_false(got);
	for (int way = 0; way < 2; way++) {
		send_type(ends[way], GPUL_RDMA_BEAT);
		send_type(ends[way], GPUL_RDMA_BEAT);
		send_type(ends[way], GPUL_RDMA_HELLO);
		send_type(ends[way], GPUL_RDMA_READY);
		assert_int_equal(gpul_rdma_channel_await(ends[!way], GPUL_RDMA_HELLO, in_a_minute(), &f, &why), GPUL_OK);
		assert_memory_equal(&f.hello, &h, sizeof h);
		assert_int_equal(gpul_rdma_channel_receive(ends[!way], &f, &got, &why), GPUL_OK);
		assert_true(got && f.type == GPUL_RDMA_READY);
	}
	close_both();
}

static void receives_a_frame_byte_by_byte(void **state)
{
	unsigned char bytes[GPUL_RDMA_FRAME_BYTES];
	size_t n = frame_bytes(GPUL_RDMA_WELCOME, bytes);
	gpul_rdma_frame f;
	gpul_rdma_failure why = { 0 };
	bool got;
	int raw;

	(void)state;
	ends[0] = make_half(&raw);
	for (size_t i = 0; i < n; i++) {
		send_raw(raw, bytes + i, 1);
		assert_int_equal(gpul_rdma_channel_receive(ends[0], &f, &got, &why), GPUL_OK);
		assert_int_equal(got, i == n - 1);
	}
	close(raw);
	gpul_rdma_channel_close(ends[0]);
}

static void reports_how_the_peer_ended_the_connection(void **state)
{
	gpul_rdma_failure why, sent = good_failure();

	(void)state;
	for (int i = 0; i < 4; i++) {
		make_pair(ends);
		if (i < 3)
			send_type(ends[1], i == 0 ? GPUL_RDMA_BYE : i == 1 ? GPUL_RDMA_FAILED : GPUL_RDMA_REFUSED);
		gpul_rdma_channel_close(ends[1]);
		why = failure_of(ends[0]);
		assert_string_equal(why.peer, gpul_rdma_channel_peer(ends[0]));
		if (i == 0) {
			assert_int_equal(why.native, ESHUTDOWN);
			assert_string_equal(why.what, "the peer has closed the connection");
		} else if (i == 3) {
			assert_int_equal(why.native, EPIPE);
			assert_string_equal(why.what, "the peer's process has ended");
			assert_true(why.after_ns > 0);
		} else {
			assert_int_equal(why.by_peer, 1);
			assert_string_equal(why.what, sent.what);
			assert_int_equal(why.vendor, sent.vendor);
			assert_int_equal(why.after_ns, sent.after_ns);
		}
		gpul_rdma_channel_close(ends[0]);
	}
}

static void survives_sending_to_an_ended_peer(void **state)
{
	gpul_rdma_frame beat = { .type = GPUL_RDMA_BEAT };
	gpul_rdma_failure why = { 0 };

	(void)state;
	make_pair(ends);
	gpul_rdma_channel_close(ends[1]);
	assert_int_equal(gpul_rdma_channel_send(ends[0], &beat, &why), GPUL_ESYS); /* fails without a SIGPIPE */
	assert_int_equal(why.native, EPIPE);
	assert_string_equal(why.what, "the peer's process has ended");
	gpul_rdma_channel_close(ends[0]);
}

static void fails_when_the_peer_does_not_read(void **state)
{
	gpul_rdma_frame hello = { .type = GPUL_RDMA_HELLO, .hello = good_hello() };
	gpul_rdma_failure why = { 0 };
	unsigned n_sent = 0, n_got = 0;
	gpul_rdma_frame f;

	(void)state;
	make_pair(ends);
	while (gpul_rdma_channel_send(ends[0], &hello, &why) == GPUL_OK)
		n_sent++;
	assert_int_equal(why.native, EAGAIN);
	assert_string_equal(why.what, "the peer does not receive messages, so the socket's buffer is full");
	/* Bytes that did not fit into the socket are sent later, even while this end waits to receive. */
	why = (gpul_rdma_failure){ 0 };
	for (bool got = true; got; n_got += got)
		assert_int_equal(gpul_rdma_channel_receive(ends[1], &f, &got, &why), GPUL_OK);
	assert_true(n_got < n_sent);
	assert_int_equal(gpul_rdma_channel_await(ends[0], GPUL_RDMA_READY, 0, &f, &why), GPUL_ESYS);
	why = (gpul_rdma_failure){ 0 };
	assert_int_equal(gpul_rdma_channel_await(ends[0], GPUL_RDMA_READY, gpul_clock_ns() + 1000000, &f, &why), GPUL_ESYS);
	why = (gpul_rdma_failure){ 0 };
	for (; n_got < n_sent; n_got++)
		assert_int_equal(gpul_rdma_channel_await(ends[1], GPUL_RDMA_HELLO, in_a_minute(), &f, &why), GPUL_OK);
	close_both();
}

static void waits_until_the_deadline(void **state)
{
	gpul_rdma_frame f;
	gpul_rdma_failure why = { 0 };
	int raw;

	(void)state;
	ends[0] = make_half(&raw);
	send_raw(raw, "GP", 2);
	assert_int_equal(gpul_rdma_channel_await(ends[0], GPUL_RDMA_WELCOME, gpul_clock_ns() + 20000000, &f, &why), GPUL_ESYS);
	assert_int_equal(why.native, ETIMEDOUT);
	assert_string_equal(why.what, "the peer did not send WELCOME in time");
	close(raw);
	gpul_rdma_channel_close(ends[0]);
}

static void *flood(void *argument)
{
	unsigned char beat[GPUL_RDMA_FRAME_BYTES];
	size_t n = frame_bytes(GPUL_RDMA_BEAT, beat);

	while (send(*(int *)argument, beat, n, MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void waits_until_the_deadline_although_beats_go_on_arriving(void **state)
{
	gpul_rdma_frame f;
	gpul_rdma_failure why = { 0 };
	pthread_t thread;
	int raw;

	(void)state;
	ends[0] = make_half(&raw);
	assert_int_equal(pthread_create(&thread, NULL, flood, &raw), 0);
	assert_int_equal(gpul_rdma_channel_await(ends[0], GPUL_RDMA_WELCOME, gpul_clock_ns() + 20000000, &f, &why), GPUL_ESYS);
	assert_int_equal(why.native, ETIMEDOUT);
	gpul_rdma_channel_close(ends[0]);
	pthread_join(thread, NULL);
	close(raw);
}

static void refuses_unexpected_frames_and_rubbish(void **state)
{
	gpul_rdma_failure why;
	int raw;

	(void)state;
	ends[0] = make_half(&raw);
	send_frame(raw, GPUL_RDMA_HELLO);
	why = failure_of(ends[0]);
	assert_int_equal(why.status, GPUL_EFORMAT);
	assert_string_equal(why.what, "the peer sent HELLO instead of READY");
	send_raw(raw, "SSH-2.0", 7);
	for (int i = 0; i < 2; i++) { /* twice, because the stream stays invalid */
		why = failure_of(ends[0]);
		assert_int_equal(why.status, GPUL_EFORMAT);
		assert_string_equal(why.what, "the peer is not gpuload: byte 0 of its message is 0x53 instead of 0x47");
	}
	close(raw);
	gpul_rdma_channel_close(ends[0]);
}

/* ---- over real sockets --------------------------------------------------------------------------------------------- */

static gpul_rdma_port open_port(const gpul_rdma_address *a)
{
	gpul_rdma_port p;
	gpul_error err = { 0 };

	if (gpul_rdma_port_open(a, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

/* Connect to a port and accept; the server's end is ends[1]. */
static void connect_both(const gpul_rdma_port *p, gpul_rdma_address to)
{
	gpul_error err = { 0 };
	int fd;

	to.port = p->number;
	if (gpul_rdma_channel_connect(&to, in_a_minute(), &ends[0], &err))
		fail_msg("%s", err.text);
	while ((fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
		assert_int_equal(errno, EAGAIN);
	assert_int_equal(gpul_rdma_channel_create(fd, &ends[1], &err), GPUL_OK);
}

static void connects_over_each_family(void **state)
{
	char path[64];
	const struct {
		gpul_rdma_address listen, connect;
		const char *peer;
	} cases[] = {
		{ loopback(), loopback(), "127.0.0.1:" },
		{ { .host = "" }, loopback(), "127.0.0.1:" }, /* if the system has IPv6, an IPv6 socket that also accepts IPv4 */
		{ { .host = "" }, { .host = "" }, NULL },
		{ unix_path(path), { .path = "" }, path },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		gpul_rdma_port p = open_port(&cases[i].listen);
		gpul_rdma_failure why;
		int flag = 0;
		socklen_t n = sizeof flag;

		connect_both(&p, i == 3 ? cases[i].listen : cases[i].connect);
		assert_int_equal(fcntl(gpul_rdma_channel_fd(ends[0]), F_GETFD), FD_CLOEXEC);
		if (cases[i].peer)
			assert_non_null(strstr(gpul_rdma_channel_peer(ends[1]), cases[i].peer));
		if (i < 3) {
			assert_int_equal(getsockopt(gpul_rdma_channel_fd(ends[1]), IPPROTO_TCP, TCP_NODELAY, &flag, &n), 0);
			assert_true(flag);
		}
		send_type(ends[0], GPUL_RDMA_BYE);
		why = failure_of(ends[1]);
		assert_int_equal(why.native, ESHUTDOWN);
		close_both();
		gpul_rdma_port_close(&p);
	}
	assert_int_equal(access(path, F_OK), -1);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0); /* succeeds, because the lock file was removed, too */
}

static void reports_a_reset(void **state)
{
	gpul_rdma_address a = loopback();
	gpul_rdma_port p = open_port(&a);
	gpul_rdma_failure why;
	int fd, server;

	(void)state;
	fd = connect_raw(p.number);
	while ((server = accept4(p.fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
		assert_int_equal(errno, EAGAIN);
	assert_int_equal(gpul_rdma_channel_create(server, &ends[1], NULL), GPUL_OK);
	reset_socket(fd);
	why = failure_of(ends[1]);
	assert_int_equal(why.native, ECONNRESET);
	assert_string_equal(why.what, "the peer's process has ended");
	gpul_rdma_channel_close(ends[1]);
	gpul_rdma_port_close(&p);
}

static void *listen_later(void *argument)
{
	gpul_rdma_address *a = argument;
	gpul_rdma_port p;
	int fd;

	sleep_ms(100);
	p = open_port(a);
	while ((fd = accept4(p.fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
		sleep_ms(1);
	close(fd);
	gpul_rdma_port_close(&p);
	return NULL;
}

static void waits_for_a_server_that_starts_later(void **state)
{
	gpul_rdma_address a = loopback();
	gpul_rdma_port p = open_port(&a);
	gpul_error err = { 0 };
	pthread_t later;
	char path[64];

	(void)state;
	a.port = p.number;
	gpul_rdma_port_close(&p);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&later, NULL, listen_later, &a), 0);
		if (gpul_rdma_channel_connect(&a, in_a_minute(), &ends[0], &err))
			fail_msg("%s", err.text);
		gpul_rdma_channel_close(ends[0]);
		pthread_join(later, NULL);
		if (i == 0)
			a = unix_path(path);
	}
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
}

static void gives_up_connecting_at_the_deadline(void **state)
{
	gpul_rdma_address a = loopback();
	gpul_rdma_port p = open_port(&a);
	gpul_rdma_channel *c = NULL;
	gpul_error err = { 0 };

	(void)state;
	a.port = p.number;
	gpul_rdma_port_close(&p);
	assert_int_equal(gpul_rdma_channel_connect(&a, gpul_clock_ns() + 50000000, &c, &err), GPUL_ESYS);
	assert_int_equal(err.native, ECONNREFUSED);
	assert_non_null(strstr(err.text, "cannot connect to 127.0.0.1:"));
	assert_non_null(strstr(err.text, ": Connection refused (tried for "));
	assert_null(c);
}

static void refuses_a_port_that_is_in_use(void **state)
{
	gpul_rdma_address a = loopback(), u;
	gpul_rdma_port p = open_port(&a), q;
	gpul_error err = { 0 };
	char path[64];

	(void)state;
	a.port = p.number;
	assert_int_equal(gpul_rdma_port_open(&a, &q, &err), GPUL_ESYS);
	assert_int_equal(err.native, EADDRINUSE);
	assert_non_null(strstr(err.text, ": another process listens there"));
	gpul_rdma_port_close(&p);
	p = open_port(&a); /* the port can be opened again immediately, although old connections may linger */
	gpul_rdma_port_close(&p);

	u = unix_path(path);
	p = open_port(&u);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_rdma_port_open(&u, &q, &err), GPUL_ESYS);
	assert_int_equal(err.native, EADDRINUSE);
	gpul_rdma_port_close(&p);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
}

static void replaces_the_socket_of_a_killed_process_only(void **state)
{
	char path[64];
	gpul_rdma_address u = unix_path(path);
	gpul_rdma_port p;
	gpul_error err = { 0 };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	pid_t child = fork();
	int fd, status;

	(void)state;
	if (child == 0) {
		(void)gpul_rdma_port_open(&u, &p, NULL);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(access(path, F_OK), 0);
	p = open_port(&u);
	gpul_rdma_port_close(&p);

	snprintf(un.sun_path, sizeof un.sun_path, "%s", path); /* another program listens here without using the lock */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(gpul_rdma_port_open(&u, &p, &err), GPUL_ESYS);
	assert_int_equal(err.native, EADDRINUSE);
	close(fd);
	p = open_port(&u);
	gpul_rdma_port_close(&p);

	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_rdma_port_open(&u, &p, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "the file exists and is not a socket"));
	close(fd);
	assert_int_equal(unlink(path), 0);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
}

static void leaks_no_descriptor(void **state)
{
	assert_int_equal(count_fds(), *(unsigned *)*state);
}

int main(void)
{
	static unsigned n_fds;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_frames_both_ways),
		cmocka_unit_test(receives_a_frame_byte_by_byte),
		cmocka_unit_test(reports_how_the_peer_ended_the_connection),
		cmocka_unit_test(survives_sending_to_an_ended_peer),
		cmocka_unit_test(fails_when_the_peer_does_not_read),
		cmocka_unit_test(waits_until_the_deadline),
		cmocka_unit_test(waits_until_the_deadline_although_beats_go_on_arriving),
		cmocka_unit_test(refuses_unexpected_frames_and_rubbish),
		cmocka_unit_test(connects_over_each_family),
		cmocka_unit_test(reports_a_reset),
		cmocka_unit_test(waits_for_a_server_that_starts_later),
		cmocka_unit_test(gives_up_connecting_at_the_deadline),
		cmocka_unit_test(refuses_a_port_that_is_in_use),
		cmocka_unit_test(replaces_the_socket_of_a_killed_process_only),
		cmocka_unit_test_prestate(leaks_no_descriptor, &n_fds),
	};

	n_fds = count_fds();
	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
