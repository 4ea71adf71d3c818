/* test_failing_system.c — every system call fails in turn: the result is an error with a reason, or another call is used instead;
 * nothing leaks, and a listener continues.
 *
 * This program defines socket(), bind() and so on, which replace those of the C library. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "rdma/oob/port.h"
#include "rdma/oob/oob_watch.h"
#include "tests/rdma/oob/support.h"

static int calls, fail_at, fail_with;
static const char *failed;      /* name of the call that failed */
static __thread bool is_tested; /* true: system calls of this thread are counted */

/* Count a call; true if it is the call that must fail. */
static bool must_fail(const char *name)
{
	if (!is_tested || !fail_at || ++calls != fail_at)
		return false;
	failed = name;
	errno = fail_with;
	return true;
}

#define REPLACE(name, parameters, ...) \
	int name parameters \
	{ \
		return must_fail(#name) ? -1 : (int)syscall(SYS_##name, __VA_ARGS__); \
	}

REPLACE(socket, (int domain, int type, int protocol), domain, type, protocol)
REPLACE(bind, (int fd, __CONST_SOCKADDR_ARG at, socklen_t n), fd, at.__sockaddr__, n)
REPLACE(listen, (int fd, int n), fd, n)
REPLACE(connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t n), fd, to.__sockaddr__, n)
REPLACE(accept4, (int fd, __SOCKADDR_ARG from, socklen_t *n, int flags), fd, from.__sockaddr__, n, flags)
REPLACE(setsockopt, (int fd, int level, int name, const void *value, socklen_t n), fd, level, name, value, n)
REPLACE(getsockopt, (int fd, int level, int name, void *value, socklen_t *n), fd, level, name, value, n)
REPLACE(getsockname, (int fd, __SOCKADDR_ARG at, socklen_t *n), fd, at.__sockaddr__, n)
REPLACE(getpeername, (int fd, __SOCKADDR_ARG at, socklen_t *n), fd, at.__sockaddr__, n)
REPLACE(flock, (int fd, int what), fd, what)
REPLACE(epoll_create1, (int flags), flags)
REPLACE(epoll_ctl, (int epoll, int what, int fd, struct epoll_event *e), epoll, what, fd, e)
REPLACE(unlink, (const char *path), path)

int eventfd(unsigned n, int flags)
{
	return must_fail("eventfd") ? -1 : (int)syscall(SYS_eventfd2, n, flags);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	return must_fail("send") ? -1 : syscall(SYS_sendto, fd, bytes, n, flags, NULL, 0);
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
	return must_fail("recv") ? -1 : syscall(SYS_recvfrom, fd, bytes, n, flags, NULL, NULL);
}

/* Call act() repeatedly: its 1st system call fails, then its 2nd, and so on until act() makes no further call.  `ways` lists the system
 * calls after whose failure act() may still succeed. */
static void fail_each(gpul_status (*act)(gpul_error *err), int with, const char *ways)
{
	is_tested = true;
	for (fail_at = 1;; fail_at++) {
		gpul_error err = { 0 };
		unsigned before = count_fds();
		gpul_status st;
		int n_calls;

		calls = 0;
		failed = NULL;
		fail_with = with;
		st = act(&err);
		n_calls = calls;
		if (st && !err.text[0])
			fail_msg("%s failed: no reason is given", failed);
		if (!st && failed && !strstr(ways, failed))
			fail_msg("%s failed, and nothing was reported", failed);
		if (count_fds() != before)
			fail_msg("%s failed: a descriptor leaked", failed ? failed : "nothing");
		if (n_calls < fail_at) {
			assert_int_equal(st, GPUL_OK);
			break;
		}
	}
	fail_at = 0;
	is_tested = false;
}

static gpul_rdma_address where;

static gpul_status open_and_close(gpul_error *err)
{
	gpul_rdma_port p;
	gpul_status st = gpul_rdma_port_open(&where, &p, err);

	if (!st)
		gpul_rdma_port_close(&p);
	return st;
}

static void opens_a_port_or_says_why(void **state)
{
	char path[64];

	(void)state;
	where = loopback();
	fail_each(open_and_close, EACCES, "");
	where = (gpul_rdma_address){ .port = 0 };
	fail_each(open_and_close, EAFNOSUPPORT, "socket setsockopt bind listen getsockname"); /* falls back to IPv4 if IPv6 fails */
	where = unix_path(path);
	fail_each(open_and_close, EACCES, "unlink");
	(void)unlink(path);
	strcat(path, ".lock");
	(void)unlink(path);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
}

static gpul_status listen_and_stop(gpul_error *err)
{
	gpul_rdma_strangers_desc desc = { .address = loopback() };
	gpul_rdma_strangers *s;
	gpul_status st = gpul_rdma_strangers_create(&desc, &s, err);

	if (!st)
		gpul_rdma_strangers_destroy(s);
	return st;
}

static void creates_a_listener_or_says_why(void **state)
{
	(void)state;
	fail_each(listen_and_stop, ENOMEM, "");
}

static gpul_status start_and_stop(gpul_error *err)
{
	gpul_rdma_watch *w;
	gpul_rdma_watched *e;
	gpul_rdma_channel *c;
	int raw;
	gpul_status st = gpul_rdma_watch_create(&w, err);

	if (st)
		return st;
	c = make_half(&raw);
	st = gpul_rdma_watch_add(w, c, 1000000000, 1000000000, NULL, NULL, &e, err);
	if (!st)
		gpul_rdma_watch_remove(e);
	gpul_rdma_watch_destroy(w);
	gpul_rdma_channel_close(c);
	close(raw);
	return st;
}

static void watches_or_says_why(void **state)
{
	(void)state;
	fail_each(start_and_stop, ENOSPC, "setsockopt getpeername getsockname recv epoll_ctl");
}

/* ---- connect, while a thread serves ------------------------------------------------------------------------------------ */

static gpul_rdma_strangers *server;
static bool stopping;

static void *serve(void *argument)
{
	gpul_rdma_stranger_event e;
	gpul_rdma_hello h = good_hello();
	gpul_rdma_failure why = { 0 };

	(void)argument;
	while (gpul_rdma_strangers_next(server, UINT64_MAX, &e, NULL) == GPUL_OK && !__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
		if (e.kind == GPUL_RDMA_STRANGER_HELLO)
			(void)gpul_rdma_stranger_welcome(server, e.who, &h, &why);
		else if (e.kind == GPUL_RDMA_STRANGER_READY)
			gpul_rdma_channel_close(gpul_rdma_stranger_take(server, e.who));
	}
	return NULL;
}

static gpul_status connect_and_greet(gpul_error *err)
{
	gpul_rdma_address to = loopback();
	gpul_rdma_channel *c;
	gpul_rdma_frame hello = { .type = GPUL_RDMA_HELLO, .hello = good_hello() }, ready = { .type = GPUL_RDMA_READY }, f;
	gpul_rdma_failure why = { 0 };
	gpul_status st;

	to.port = gpul_rdma_strangers_port(server);
	st = gpul_rdma_channel_connect(&to, gpul_clock_ns() + 30000000000, &c, err);
	if (st)
		return st;
	if (gpul_rdma_channel_send(c, &hello, &why) == GPUL_OK &&
	    gpul_rdma_channel_await(c, GPUL_RDMA_WELCOME, in_a_minute(), &f, &why) == GPUL_OK)
		(void)gpul_rdma_channel_send(c, &ready, &why);
	gpul_rdma_channel_close(c);
	return gpul_rdma_failure_error(&why, err);
}

/* Call fail_each() while a server runs; leaks are checked after the server has stopped, because it also opens descriptors. */
static void fail_each_while_serving(int with)
{
	gpul_rdma_strangers_desc desc = { .address = loopback() };
	unsigned before = count_fds(), n_failed = 0;
	pthread_t thread;

	stopping = false;
	assert_int_equal(gpul_rdma_strangers_create(&desc, &server, NULL), GPUL_OK);
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	is_tested = true;
	for (fail_at = 1;; fail_at++) {
		gpul_error err = { 0 };
		gpul_status st;

		calls = 0;
		failed = NULL;
		fail_with = with;
		st = connect_and_greet(&err);
		n_failed += st != GPUL_OK;
		assert_true(!st || err.text[0]);
		if (calls < fail_at) {
			assert_int_equal(st, GPUL_OK);
			break;
		}
	}
	is_tested = false;
	fail_at = 0;
	assert_true(n_failed > 0);
	__atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
	gpul_rdma_strangers_wake(server);
	pthread_join(thread, NULL);
	gpul_rdma_strangers_destroy(server);
	assert_int_equal(count_fds(), before);
}

static void connects_or_says_why(void **state)
{
	(void)state;
	fail_each_while_serving(EACCES);
	fail_each_while_serving(ECONNRESET);
}

/* Serve one client with at most n_calls calls of the listener.  Returns true if the client was served. */
static bool serve_one(unsigned n_calls, bool failing)
{
	gpul_rdma_hello h = good_hello();
	gpul_rdma_stranger_event e;
	gpul_rdma_failure why = { 0 };
	int fd = connect_raw(gpul_rdma_strangers_port(server));
	bool served = false;

	send_frame(fd, GPUL_RDMA_HELLO);
	for (unsigned i = 0; i < n_calls && !served; i++) {
		gpul_error err = { 0 };
		bool welcomed;

		is_tested = failing;
		if (gpul_rdma_strangers_next(server, gpul_clock_ns() + 5000000, &e, &err))
			fail_msg("%s", err.text);
		welcomed = e.kind == GPUL_RDMA_STRANGER_HELLO && gpul_rdma_stranger_welcome(server, e.who, &h, &why) == GPUL_OK;
		is_tested = false;
		if (welcomed)
			send_frame(fd, GPUL_RDMA_READY);
		served = e.kind == GPUL_RDMA_STRANGER_READY;
		if (served)
			gpul_rdma_channel_close(gpul_rdma_stranger_take(server, e.who));
	}
	close(fd);
	return served;
}

/* The server's side: after each system call of the listener has failed once, the next client must be served. */
static void goes_on_serving(void **state)
{
	static const int errors[] = { EMFILE, ECONNABORTED, EINTR };
	gpul_rdma_strangers_desc desc = { .address = loopback() };
	unsigned before = count_fds();

	(void)state;
	assert_int_equal(gpul_rdma_strangers_create(&desc, &server, NULL), GPUL_OK);
	for (unsigned i = 0; i < 3; i++) {
		fail_with = errors[i];
		for (fail_at = 1, calls = 1; calls >= fail_at; fail_at++) {
			calls = 0;
			(void)serve_one(10, true);
			if (!serve_one(1000, false))
				fail_msg("%s failed, and the next client was not served", failed);
		}
	}
	fail_at = 0;
	gpul_rdma_strangers_destroy(server);
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_a_port_or_says_why), cmocka_unit_test(creates_a_listener_or_says_why),
		cmocka_unit_test(watches_or_says_why),      cmocka_unit_test(connects_or_says_why),
		cmocka_unit_test(goes_on_serving),
	};

	return cmocka_run_group_tests_name("failing_system", tests, NULL, NULL);
}
