/* test_watch.c — the watch reports the end of each peer once, and nothing after remove. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "rdma/oob/oob_watch.h"
#include "tests/rdma/oob/support.h"

static const uint64_t LONG_NS = 60000000000, SHORT_NS = 80000000;

/* What the callback of a watched channel has reported. */
struct report {
	pthread_mutex_t lock;
	pthread_cond_t come;
	int n;
	gpul_rdma_failure why;
	bool closed;             /* the peer has closed the connection */
	gpul_rdma_totals totals; /* if closed: the totals that the peer sent */
	atomic_bool freed;       /* remove has returned: a callback would be a use after free */
	gpul_rdma_watched *entry;
};

static gpul_rdma_watch *w;
static unsigned n_fds;

static void on_failure(void *context, const gpul_rdma_failure *why, const gpul_rdma_totals *totals)
{
	struct report *r = context;

	if (r->freed)
		abort();
	pthread_mutex_lock(&r->lock);
	r->n++;
	r->why = *why;
	r->closed = totals != NULL;
	if (totals)
		r->totals = *totals;
	pthread_cond_broadcast(&r->come);
	pthread_mutex_unlock(&r->lock);
}

static void wait_for(struct report *r)
{
	pthread_mutex_lock(&r->lock);
	while (r->n == 0)
		pthread_cond_wait(&r->come, &r->lock);
	pthread_mutex_unlock(&r->lock);
}

#define NEW_REPORT { .lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER }

static void watch(gpul_rdma_channel *c, uint64_t limit_ns, uint64_t peer_limit_ns, struct report *r)
{
	gpul_error err = { 0 };

	if (gpul_rdma_watch_add(w, c, limit_ns, peer_limit_ns, on_failure, r, &r->entry, &err))
		fail_msg("%s", err.text);
}

static void unwatch(struct report *r)
{
	gpul_rdma_watch_remove(r->entry);
	r->freed = true;
}

static int start(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	n_fds = count_fds();
	if (gpul_rdma_watch_create(&w, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	gpul_rdma_watch_destroy(w);
	assert_int_equal(count_fds(), n_fds);
	return 0;
}

static void reports_the_end_of_a_process(void **state)
{
	gpul_rdma_channel *ends[2];
	struct report r = NEW_REPORT;
	pid_t child;
	int status, fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	child = fork();
	if (child == 0) {
		close(fds[0]);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(gpul_rdma_channel_create(fds[0], &ends[0], NULL), GPUL_OK);
	watch(ends[0], LONG_NS, LONG_NS, &r);
	kill(child, SIGKILL);
	wait_for(&r);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(r.why.status, GPUL_ESYS);
	assert_int_equal(r.why.native, EPIPE);
	assert_string_equal(r.why.what, "the peer's process has ended");
	assert_string_equal(r.why.peer, gpul_rdma_channel_peer(ends[0]));
	gpul_rdma_watch_end(r.entry, &r.why, (gpul_rdma_totals){ 0 }); /* too late for the peer, but harmless */
	unwatch(&r);
	assert_int_equal(r.n, 1);
	assert_false(r.closed);
	gpul_rdma_channel_close(ends[0]);
}

static void both_ends_live_as_long_as_both_send_beats(void **state)
{
	gpul_rdma_channel *ends[2];
	struct report r[2] = { NEW_REPORT, NEW_REPORT };

	(void)state;
	make_pair(ends);
	watch(ends[0], LONG_NS, SHORT_NS, &r[0]);
	watch(ends[1], SHORT_NS, LONG_NS, &r[1]);
	sleep_ms(300); /* longer than the lease, which would expire without heartbeats */
	gpul_rdma_watch_end(r[0].entry, NULL, (gpul_rdma_totals){ .received = 7, .sent = 3 });
	gpul_rdma_watch_end(r[0].entry, NULL, (gpul_rdma_totals){ .received = 8, .sent = 3 });
	wait_for(&r[1]);
	assert_true(r[1].closed);
	assert_int_equal(r[1].totals.received, 7);
	assert_int_equal(r[1].totals.sent, 3);
	assert_int_equal(r[1].why.native, ESHUTDOWN);
	assert_string_equal(r[1].why.what, "the peer has closed the connection");
	for (int i = 0; i < 2; i++) {
		unwatch(&r[i]);
		gpul_rdma_channel_close(ends[i]);
	}
	assert_int_equal(r[0].n, 0);
	assert_int_equal(r[1].n, 1);
}

static void reports_a_silent_peer(void **state)
{
	struct report r = NEW_REPORT;
	gpul_rdma_channel *c;
	unsigned char beat[8];
	int raw;

	(void)state;
	c = make_half(&raw);
	watch(c, SHORT_NS, SHORT_NS, &r);
	wait_for(&r);
	assert_int_equal(r.why.native, ETIMEDOUT);
	assert_string_equal(r.why.call, "lease");
	assert_string_equal(r.why.what, "nothing was received from the peer for 0.1 s (the limit is 0.1 s)");
	assert_string_equal(r.why.peer, gpul_rdma_channel_peer(c));
	assert_int_equal(recv(raw, beat, sizeof beat, 0), sizeof beat);
	assert_int_equal(beat[4], GPUL_RDMA_BEAT);
	unwatch(&r);
	gpul_rdma_channel_close(c);
	close(raw);
}

static void passes_the_reason_of_a_failure_to_the_peer(void **state)
{
	gpul_rdma_channel *ends[2];
	struct report r[2] = { NEW_REPORT, NEW_REPORT };
	gpul_rdma_failure why = good_failure();

	(void)state;
	make_pair(ends);
	for (int i = 0; i < 2; i++)
		watch(ends[i], LONG_NS, LONG_NS, &r[i]);
	gpul_rdma_watch_end(r[0].entry, &why, (gpul_rdma_totals){ 0 });
	wait_for(&r[1]);
	assert_int_equal(r[1].why.by_peer, 1);
	assert_int_equal(r[1].why.vendor, 0x81);
	assert_string_equal(r[1].why.what, why.what);
	assert_string_equal(r[1].why.peer, gpul_rdma_channel_peer(ends[1]));
	for (int i = 0; i < 2; i++) {
		unwatch(&r[i]);
		gpul_rdma_channel_close(ends[i]);
	}
	assert_int_equal(r[0].n, 0);
}

static void reports_frames_that_do_not_belong_here(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct report r = NEW_REPORT;
		gpul_rdma_channel *c;
		int raw;

		c = make_half(&raw);
		if (i == 0)
			send_frame(raw, GPUL_RDMA_BYE); /* arrives before the watch starts */
		watch(c, LONG_NS, LONG_NS, &r);
		if (i == 1)
			send_frame(raw, GPUL_RDMA_HELLO);
		if (i == 2)
			send_raw(raw, "GPUX", 4);
		wait_for(&r);
		assert_int_equal(r.why.status, i ? GPUL_EFORMAT : GPUL_ESYS);
		assert_string_equal(r.why.what, i == 0   ? "the peer has closed the connection"
						: i == 1 ? "the peer sent an unexpected HELLO message on an open connection"
							 : "the peer is not gpuload: byte 3 of its message is 0x58 instead of 0x52");
		unwatch(&r);
		gpul_rdma_channel_close(c);
		close(raw);
	}
}

/* One read can return READY and the first frames after it; epoll then reports no more data, although frames are waiting. */
static void reads_frames_that_arrived_with_ready(void **state)
{
	struct report r = NEW_REPORT;
	unsigned char bytes[3 * GPUL_RDMA_FRAME_BYTES];
	gpul_rdma_channel *c;
	gpul_rdma_failure why = { 0 };
	gpul_rdma_frame f;
	size_t n;
	int raw;

	(void)state;
	c = make_half(&raw);
	n = frame_bytes(GPUL_RDMA_READY, bytes);
	for (int i = 0; i < 200; i++)
		n += frame_bytes(GPUL_RDMA_BEAT, bytes + n);
	n += frame_bytes(GPUL_RDMA_FAILED, bytes + n);
	send_raw(raw, bytes, n);
	assert_int_equal(gpul_rdma_channel_await(c, GPUL_RDMA_READY, in_a_minute(), &f, &why), GPUL_OK);
	watch(c, LONG_NS, LONG_NS, &r);
	wait_for(&r);
	assert_int_equal(r.why.by_peer, 1);
	unwatch(&r);
	gpul_rdma_channel_close(c);
	close(raw);
}

static void *flood(void *argument)
{
	unsigned char beats[2 * GPUL_RDMA_FRAME_BYTES];
	size_t n = 0;

	while (n < GPUL_RDMA_FRAME_BYTES)
		n += frame_bytes(GPUL_RDMA_BEAT, beats + n);
	while (send(*(int *)argument, beats, n, MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void serves_others_while_one_peer_floods(void **state)
{
	gpul_rdma_channel *flooded, *other;
	struct report r[2] = { NEW_REPORT, NEW_REPORT };
	pthread_t thread;
	int raw[2];

	(void)state;
	flooded = make_half(&raw[0]);
	other = make_half(&raw[1]);
	watch(flooded, LONG_NS, LONG_NS, &r[0]);
	watch(other, LONG_NS, LONG_NS, &r[1]);
	assert_int_equal(pthread_create(&thread, NULL, flood, &raw[0]), 0);
	sleep_ms(20);
	close(raw[1]);
	wait_for(&r[1]);
	unwatch(&r[0]);
	assert_int_equal(r[0].n, 0);
	gpul_rdma_channel_close(flooded);
	pthread_join(thread, NULL);
	unwatch(&r[1]);
	gpul_rdma_channel_close(other);
	close(raw[0]);
}

/* ---- other descriptors ------------------------------------------------------------------------------------------------ */

static atomic_int n_events;

static void read_event(void *context)
{
	uint64_t n;

	if (read(*(int *)context, &n, sizeof n) == sizeof n)
		n_events += (int)n;
}

static void watches_other_descriptors(void **state)
{
	gpul_rdma_watched *entry;
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), pipe_fds[2];

	(void)state;
	assert_int_equal(gpul_rdma_watch_add_fd(w, fd, read_event, &fd, &entry, NULL), GPUL_OK);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(write(fd, &(uint64_t){ 1 }, 8), 8);
		while (n_events < i)
			sleep_ms(1);
	}
	gpul_rdma_watch_remove(entry);
	assert_int_equal(write(fd, &(uint64_t){ 1 }, 8), 8);
	sleep_ms(5);
	assert_int_equal(n_events, 3);
	close(fd);
	assert_int_equal(pipe(pipe_fds), 0); /* a pipe that is closed without data: no callback, and no endless polling */
	assert_int_equal(gpul_rdma_watch_add_fd(w, pipe_fds[0], read_event, &pipe_fds[0], &entry, NULL), GPUL_OK);
	close(pipe_fds[1]);
	sleep_ms(5);
	assert_int_equal(n_events, 3);
	gpul_rdma_watch_remove(entry);
	close(pipe_fds[0]);
}

/* ---- removal ------------------------------------------------------------------------------------------------------------- */

static void end_in_callback(void *context, const gpul_rdma_failure *why, const gpul_rdma_totals *totals)
{
	struct report *r = context;

	gpul_rdma_watch_end(r->entry, why, (gpul_rdma_totals){ 0 });
	on_failure(context, why, totals);
}

static void may_end_a_connection_in_its_callback(void **state)
{
	gpul_rdma_channel *ends[2];
	struct report r = NEW_REPORT;

	(void)state;
	make_pair(ends);
	assert_int_equal(gpul_rdma_watch_add(w, ends[0], SHORT_NS, SHORT_NS, end_in_callback, &r, &r.entry, NULL), GPUL_OK);
	wait_for(&r);
	unwatch(&r);
	/* The peer, which is still alive, receives the reason. */
	for (;;) {
		gpul_rdma_failure why = { 0 };
		gpul_rdma_frame f;
		bool got;

		if (gpul_rdma_channel_receive(ends[1], &f, &got, &why)) {
			assert_int_equal(why.by_peer, 1);
			assert_string_equal(why.call, "lease");
			break;
		}
	}
	gpul_rdma_channel_close(ends[0]);
	gpul_rdma_channel_close(ends[1]);
}

static void *close_raw(void *argument)
{
	close(*(int *)argument);
	return NULL;
}

/* Peers end while they are removed from the watch: a callback runs before remove returns, or never. */
static void never_calls_back_after_remove(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct report r[4] = { NEW_REPORT, NEW_REPORT, NEW_REPORT, NEW_REPORT };
		gpul_rdma_channel *c[4];
		pthread_t threads[4];
		int raw[4];

		for (int i = 0; i < 4; i++) {
			c[i] = make_half(&raw[i]);
			watch(c[i], LONG_NS, LONG_NS, &r[i]);
			assert_int_equal(pthread_create(&threads[i], NULL, close_raw, &raw[i]), 0);
		}
		for (int i = 0; i < 4; i++) {
			if (round % 2)
				gpul_rdma_watch_end(r[i].entry, NULL, (gpul_rdma_totals){ 0 });
			unwatch(&r[i]);
			gpul_rdma_channel_close(c[i]);
			assert_true(r[i].n <= 1);
		}
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
}

static void *send_and_end(void *argument)
{
	struct report *r = argument;

	gpul_rdma_watch_end(r->entry, NULL, (gpul_rdma_totals){ 0 });
	return NULL;
}

static void may_be_ended_by_several_threads_at_once(void **state)
{
	(void)state;
	for (int round = 0; round < 50; round++) {
		gpul_rdma_channel *ends[2];
		struct report r[2] = { NEW_REPORT, NEW_REPORT };
		pthread_t threads[4];

		make_pair(ends);
		for (int i = 0; i < 2; i++)
			watch(ends[i], LONG_NS, 8000000, &r[i]); /* a heartbeat each millisecond */
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, send_and_end, &r[i % 2]), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		for (int i = 0; i < 2; i++) {
			unwatch(&r[i]);
			assert_true(r[i].n <= 1);
			if (r[i].n)
				assert_int_equal(r[i].why.native, ESHUTDOWN);
			gpul_rdma_channel_close(ends[i]);
		}
	}
}

static void *raise_signal(void *argument)
{
	(void)argument;
	kill(getpid(), SIGUSR1);
	return NULL;
}

static pthread_t handled_by;
static atomic_int n_handled;

static void note_thread(int number)
{
	(void)number;
	handled_by = pthread_self();
	n_handled++;
}

/* A signal to the process interrupts the program's threads, never the watch's. */
static void takes_no_signals(void **state)
{
	struct sigaction act = { .sa_handler = note_thread }, before;
	pthread_t thread;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &act, &before), 0);
	assert_int_equal(pthread_create(&thread, NULL, raise_signal, NULL), 0);
	pthread_join(thread, NULL);
	while (!n_handled)
		sleep_ms(1);
	assert_true(pthread_equal(handled_by, pthread_self()) || pthread_equal(handled_by, thread));
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reports_the_end_of_a_process, start, stop),
		cmocka_unit_test_setup_teardown(both_ends_live_as_long_as_both_send_beats, start, stop),
		cmocka_unit_test_setup_teardown(reports_a_silent_peer, start, stop),
		cmocka_unit_test_setup_teardown(passes_the_reason_of_a_failure_to_the_peer, start, stop),
		cmocka_unit_test_setup_teardown(reports_frames_that_do_not_belong_here, start, stop),
		cmocka_unit_test_setup_teardown(reads_frames_that_arrived_with_ready, start, stop),
		cmocka_unit_test_setup_teardown(serves_others_while_one_peer_floods, start, stop),
		cmocka_unit_test_setup_teardown(watches_other_descriptors, start, stop),
		cmocka_unit_test_setup_teardown(may_end_a_connection_in_its_callback, start, stop),
		cmocka_unit_test_setup_teardown(never_calls_back_after_remove, start, stop),
		cmocka_unit_test_setup_teardown(may_be_ended_by_several_threads_at_once, start, stop),
		cmocka_unit_test_setup_teardown(takes_no_signals, start, stop),
	};

	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
