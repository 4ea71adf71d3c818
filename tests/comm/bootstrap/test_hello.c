/* test_hello.c — strangers (clients that are not ranks of the job) and ranks with a wrong number or version connect to rank 0, or
 * pretend to be rank 0. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/roster_internal.h"
#include "comm/bootstrap/boot_wire_internal.h"
#include "ipc/place.h"
#include "tests/comm/bootstrap/ranks.h"

enum { LONG_MS = 20000 };

static void start_rank(struct ranks_opener *r, const gpul_comm_job *job, int rank)
{
	const gpul_comm_job mine = ranks_of(job, rank);

	ranks_start(r, &mine, LONG_MS);
}

/* ---- the stranger ----------------------------------------------------------------------------------------------- */

static struct sockaddr_un address_of(const gpul_comm_job *job)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_int_equal(gpul_ipc_place(job->name, true, address.sun_path, NULL), GPUL_OK);
	return address;
}

/* Connect to rank 0, which may not listen yet. */
static int connect_to(const gpul_comm_job *job)
{
	struct sockaddr_un address = address_of(job);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	while (connect(fd, (struct sockaddr *)&address, sizeof address))
		usleep(1000);
	return fd;
}

/* A HELLO as it is sent: head and content. */
struct hello {
	struct boot_head head;
	struct boot_hello hello;
};

enum { HELLO_BYTES = sizeof(struct boot_head) + sizeof(struct boot_hello) }; /* the size without the padding at the end of the struct */

static struct hello good_hello(const gpul_comm_job *job, int rank)
{
	struct hello h = { .head = { .version = BOOT_VERSION, .type = BOOT_HELLO, .bytes = sizeof h.hello },
			   .hello = { .rank = rank, .size = job->size, .pid = getpid() } };

	memcpy(h.head.magic, "gpulboot", 8);
	memcpy(h.hello.job, job->name, sizeof h.hello.job);
	return h;
}

/* Send bytes together with n_fds descriptors. */
static void send_raw(int fd, const void *bytes, size_t n_bytes, int n_fds)
{
	union {
		struct cmsghdr align;
		unsigned char room[CMSG_SPACE(100 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)bytes, n_bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (n_fds) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
		for (int i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + (size_t)i * sizeof(int), &(int){ STDERR_FILENO }, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &m, MSG_NOSIGNAL), n_bytes);
}

/* Receive one packet, waiting for it. */
static boot_got receive(int fd, struct boot_packet *p)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&ready, 1, LONG_MS), 1);
	return gpul_boot_receive(fd, p, NULL);
}

static void expect_refusal(int fd, const char *text)
{
	struct boot_packet *p = malloc(sizeof *p);

	assert_int_equal(receive(fd, p), BOOT_GOT_PACKET);
	assert_int_equal(p->head.type, BOOT_REFUSED);
	p->payload[p->head.bytes] = '\0';
	if (!strstr((char *)p->payload, text))
		fail_msg("expected '%s': %s", text, (char *)p->payload);
	assert_int_equal(receive(fd, p), BOOT_GOT_END);
	free(p);
	close(fd);
}

/* ---- strangers: rank 0 drops their connections, and the ranks connect nevertheless ---------------------------------- */

static void strangers_do_not_disturb_the_meeting(void **state)
{
	gpul_comm_job job = ranks_job(0, 2);
	int before = ranks_n_open(), silent[60];
	struct ranks_opener zero, one;
	unsigned char garbage[200] = { 1, 2, 3 }, *large = calloc(1, 100000);
	struct hello h = good_hello(&job, 1);
	int fd;

	(void)state;
	start_rank(&zero, &job, 0);
	for (size_t n = 1; n < sizeof garbage; n += 13) { /* garbage of several lengths */
		fd = connect_to(&job);
		send_raw(fd, garbage, n, 0);
		expect_refusal(fd, "is not from gpuload");
	}
	for (size_t n = sizeof h.head.magic; n < sizeof h.head; n += 4) { /* a truncated HELLO */
		fd = connect_to(&job);
		send_raw(fd, &h, n, 0);
		expect_refusal(fd, "is not from gpuload");
	}
	memcpy(large, &h, sizeof h); /* a HELLO that is longer than any packet */
	fd = connect_to(&job);
	send_raw(fd, large, 100000, 0);
	expect_refusal(fd, "a malformed message");
	for (int n = 1; n <= 100; n += 33) { /* a packet with descriptors, which rank 0 must close */
		fd = connect_to(&job);
		send_raw(fd, &h, HELLO_BYTES, n);
		expect_refusal(fd, "descriptors instead of 0");
	}
	close(connect_to(&job));                                    /* connects and disconnects */
	for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) /* more connections than rank 0 keeps */
		silent[i] = connect_to(&job);
	start_rank(&one, &job, 1);
	ranks_expect_meeting(&zero);
	ranks_expect_meeting(&one);
	gpul_boot_close(one.boot);
	gpul_boot_close(zero.boot);
	for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
		close(silent[i]);
	free(large);
	assert_int_equal(ranks_n_open(), before);
	assert_int_equal(ranks_n_files(), 0);
}

/* ---- ranks that contradict rank 0: both sides fail with the reason ---------------------------------------------- */

struct wrong {
	void (*spoil)(struct hello *h);
	const char *text;
};

static const char *other_version_text(void)
{
	static char text[160];

	(void)snprintf(
		text, sizeof text,
		"a message of start-up protocol version %d, but this process uses version %d: use one version of gpuload for all ranks",
		BOOT_VERSION + 1, BOOT_VERSION);
	return text;
}

static void other_version(struct hello *h)
{
	h->head.version = BOOT_VERSION + 1;
}

static void other_type(struct hello *h)
{
	h->head.type = BOOT_READY;
}

static void other_job(struct hello *h)
{
	h->hello.job[0] ^= 1;
}

static void other_size(struct hello *h)
{
	h->hello.size = 4;
	h->hello.pid = 4711;
}

static void rank_0(struct hello *h)
{
	h->hello.rank = 0;
	h->hello.pid = 4711;
}

static void negative_rank(struct hello *h)
{
	h->hello.rank = -1;
	h->hello.pid = 4711;
}

static void rank_too_high(struct hello *h)
{
	h->hello.rank = 3;
	h->hello.pid = 4711;
}

static void contradictions_fail_both_sides(void **state)
{
	const struct wrong cases[] = {
		{ other_version, other_version_text() },
		{ other_type, "expected a HELLO message of 180 bytes, but received message type 4 with 180 bytes" },
		{ other_job, "does not belong to job test-" },
		{ other_size, "process 4711 (rank 2) expects 4 ranks, but rank 0 (pid " },
		{ rank_0, "process 4711 says that it is rank 0, expected rank 1 to 2" },
		{ negative_rank, "process 4711 says that it is rank -1, expected rank 1 to 2" },
		{ rank_too_high, "process 4711 says that it is rank 3, expected rank 1 to 2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_job job = ranks_job(0, 3);
		struct hello h = good_hello(&job, 2);
		struct ranks_opener zero;
		int before = ranks_n_open(), fd;

		start_rank(&zero, &job, 0);
		fd = connect_to(&job);
		cases[i].spoil(&h);
		send_raw(fd, &h, HELLO_BYTES, 0);
		expect_refusal(fd, cases[i].text);
		ranks_expect_failure(&zero, cases[i].text);
		assert_int_equal(ranks_n_open(), before);
		assert_int_equal(ranks_n_files(), 0);
	}
}

static void two_processes_with_one_rank_are_named(void **state)
{
	gpul_comm_job job = ranks_job(0, 3);
	struct hello h = good_hello(&job, 1);
	struct boot_packet *p = malloc(sizeof *p);
	struct ranks_opener zero;
	char text[64];
	int first, second;

	(void)state;
	start_rank(&zero, &job, 0);
	first = connect_to(&job);
	h.hello.pid = 101;
	send_raw(first, &h, HELLO_BYTES, 0);
	assert_int_equal(receive(first, p), BOOT_GOT_PACKET);
	assert_int_equal(p->head.type, BOOT_WELCOME);
	gpul_boot_packet_drop(p);
	second = connect_to(&job);
	h.hello.pid = 102;
	send_raw(second, &h, HELLO_BYTES, 0);
	snprintf(text, sizeof text, "processes 101 and 102 both say that they are rank 1");
	expect_refusal(second, text);
	ranks_expect_failure(&zero, text);
	close(first);
	free(p);
}

static void a_second_rank_0_is_refused(void **state)
{
	gpul_comm_job job = ranks_job(0, 2);
	struct ranks_opener zero, again, one;
	char text[160];
	int guest;

	(void)state;
	start_rank(&zero, &job, 0);
	guest = connect_to(&job); /* when this connection exists, rank 0 is listening */
	start_rank(&again, &job, 0);
	snprintf(text, sizeof text, "rank 0 of job %s is already process %d: give each process its own rank", job.name, (int)getpid());
	ranks_expect_failure(&again, text);
	start_rank(&one, &job, 1); /* the second rank 0 has not disturbed the job */
	ranks_expect_meeting(&zero);
	ranks_expect_meeting(&one);
	gpul_boot_close(one.boot);
	gpul_boot_close(zero.boot);
	close(guest);
}

/* ---- a wrong rank 0 --------------------------------------------------------------------------------------------- */

/* The reply of a false rank 0 to the HELLO. */
struct false_host {
	uint32_t type;
	int kind_of_fd; /* 0: none, 1: an empty memfd, 2: a memfd of zeros, as large as a roster, but not sealed */
	const char *text;
};

static void answers_of_a_wrong_rank_0_are_refused(void **state)
{
	static const struct false_host cases[] = {
		{ BOOT_GO, 0, "rank 0 answered with message type 5, expected WELCOME" },
		{ BOOT_WELCOME, 0, "a message of type 2 with 0 file descriptors instead of 1" },
		{ BOOT_WELCOME, 1, "rank 0 sent an invalid file as the list of ranks: it has 0 bytes" },
		{ BOOT_WELCOME, 2, "rank 0 sent an invalid file as the list of ranks" },
		{ 99, 0, "a malformed message of type 99" },
		{ 0, 0, "ended before all ranks had joined the job" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		gpul_comm_job job = ranks_job(0, 2);
		struct sockaddr_un address = address_of(&job);
		int before = ranks_n_open(), listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), guest, file;
		struct boot_head head = { .type = cases[i].type };
		struct boot_packet *p = malloc(sizeof *p);
		struct ranks_opener one;

		assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
		assert_int_equal(listen(listener, 4), 0);
		start_rank(&one, &job, 1);
		guest = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		assert_int_equal(receive(guest, p), BOOT_GOT_PACKET);
		assert_int_equal(p->head.type, BOOT_HELLO);
		file = memfd_create("false", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (cases[i].kind_of_fd == 2)
			assert_int_equal(ftruncate(file, sizeof(struct roster)), 0);
		if (cases[i].type)
			assert_int_equal(gpul_boot_send(guest, &head, NULL, 0, &file, cases[i].kind_of_fd > 0, NULL), BOOT_GOT_PACKET);
		close(guest);
		ranks_expect_failure(&one, cases[i].text);
		close(file);
		close(listener);
		unlink(address.sun_path);
		free(p);
		assert_int_equal(ranks_n_open(), before);
	}
	assert_int_equal(ranks_n_files(), 0);
}

/* Rank 0 was killed: its socket file exists, and nothing listens on it. */
static void the_socket_of_a_killed_rank_0_is_replaced(void **state)
{
	gpul_comm_job job = ranks_job(0, 2);
	struct sockaddr_un address = address_of(&job);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct ranks_opener zero, one;

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	close(listener);
	start_rank(&one, &job, 1);
	usleep(20000);
	start_rank(&zero, &job, 0);
	ranks_expect_meeting(&zero);
	ranks_expect_meeting(&one);
	gpul_boot_close(zero.boot);
	gpul_boot_close(one.boot);
	assert_int_equal(ranks_n_files(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_do_not_disturb_the_meeting),  cmocka_unit_test(contradictions_fail_both_sides),
		cmocka_unit_test(two_processes_with_one_rank_are_named), cmocka_unit_test(a_second_rank_0_is_refused),
		cmocka_unit_test(answers_of_a_wrong_rank_0_are_refused), cmocka_unit_test(the_socket_of_a_killed_rank_0_is_replaced),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
