/* test_refusals.c — an owner refuses each connection that breaks the protocol, with a reason; other peers are not affected. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "core/log.h"
#include "ipc/here_internal.h"
#include "ipc/place.h"
#include "ipc/socket_internal.h"
#include "tests/ipc/support.h"

enum { MEMORY_BYTES = 1 << 16, STEP_MS = 400 };

static gpul_mem *mem;
static gpul_ipc_server *server;
static gpul_ipc_client *bystander;

/* ---- hand-made connections --------------------------------------------------------------------------- */

static int connect_to(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
	return fd;
}

static int connect_raw(void)
{
	char path[GPUL_IPC_PATH_BYTES];

	assert_int_equal(gpul_ipc_place("rules", false, path, NULL), GPUL_OK);
	return connect_to(path);
}

static struct wire_hello good_hello(void)
{
	struct wire_hello m = { .head = gpul_ipc_wire_head(WIRE_HELLO), .intent = WIRE_ATTACH };
	struct gpul_ipc_here here;

	assert_int_equal(gpul_ipc_here_get(the_driver(), &here, NULL), GPUL_OK);
	memcpy(m.boot_id, here.boot_id, sizeof m.boot_id);
	memcpy(m.driver, here.driver, sizeof m.driver);
	memcpy(m.gpu, here.gpu, sizeof m.gpu);
	m.n_gpus = here.n_gpus;
	m.can = here.can;
	return m;
}

/* Send the bytes with n_fds copies of one descriptor. */
static void send_raw(int fd, const void *bytes, size_t n_bytes, unsigned n_fds)
{
	union {
		struct cmsghdr align;
		unsigned char room[CMSG_SPACE(253 * sizeof(int))];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n_fds) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n_fds * sizeof(int)) };
		for (unsigned i = 0; i < n_fds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
	}
	assert_int_equal(sendmsg(fd, &m, MSG_NOSIGNAL), n_bytes);
}

/* Receive the owner's message; returns its type and, for REFUSED, the text. */
static unsigned receive_raw(int fd, char text[200])
{
	gpul_ipc_message m;
	gpul_error err = { 0 };
	int with;

	assert_int_equal(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, PATIENCE_MS), 1);
	if (gpul_ipc_receive(fd, &m, &with, NULL, &err) != GOT_MESSAGE)
		return 0;
	if (with >= 0)
		close(with);
	if (m.head.type == WIRE_REFUSED && text)
		strcpy(text, m.refused.text);
	return m.head.type;
}

/* The last log line of the server. */
static char logged[512];

static void keep_line(void *user, gpul_log_level level, const char *module, const char *line)
{
	(void)user;
	(void)level;
	assert_string_equal(module, "ipc");
	snprintf(logged, sizeof logged, "%s", line);
}

static void expect_refused(int fd, const char *reason)
{
	gpul_ipc_event event = expect_event(server, GPUL_IPC_REFUSED);
	char text[200] = "";

	assert_int_equal(event.pid, getpid());
	if (!strstr(event.why.text, reason))
		fail_msg("'%s' does not contain '%s'", event.why.text, reason);
	assert_int_equal(receive_raw(fd, text), WIRE_REFUSED);
	assert_non_null(strstr(text, reason));
	assert_non_null(strstr(logged, reason));
	snprintf(text, sizeof text, "refused pid %d of user %u", (int)getpid(), (unsigned)geteuid());
	assert_non_null(strstr(logged, text));
	close(fd);
}

/* ---- before and after each test: a peer that follows the protocol ------------------------------------ */

static unsigned fds_before;

static int begin_test(void **state)
{
	gpul_ipc_server_options options = { .name = "rules", .step_timeout_ms = STEP_MS };

	(void)state;
	fds_before = count_fds();
	mem = make_memory(GPUL_MEM_MEMFD, MEMORY_BYTES);
	assert_int_equal(gpul_ipc_server_create(the_driver(), mem, &options, &server, NULL), GPUL_OK);
	bystander = attach_here(server, "rules");
	strcpy(gpul_ipc_server_view(server)->cpu, "unharmed");
	return 0;
}

static int finish_test(void **state)
{
	(void)state;
	assert_string_equal(gpul_ipc_client_view(bystander)->cpu, "unharmed");
	expect_client_event(bystander, GPUL_IPC_NONE);
	expect_event(server, GPUL_IPC_NONE);
	assert_int_equal(gpul_ipc_client_close(bystander, -1, NULL), GPUL_OK);
	expect_event(server, GPUL_IPC_DETACHED);
	gpul_ipc_server_destroy(server);
	gpul_mem_destroy(mem);
	assert_int_equal(count_fds(), fds_before);
	return 0;
}

/* ---- tests ------------------------------------------------------------------------------------------- */

static void refuses_invalid_messages(void **state)
{
	static const unsigned char junk[sizeof(gpul_ipc_message) + 100];
	struct wire_hello hello = good_hello();
	int fd;

	(void)state;
	send_raw(fd = connect_raw(), junk, 1, 0);
	expect_refused(fd, "1 bytes");
	send_raw(fd = connect_raw(), junk, sizeof hello, 0);
	expect_refused(fd, "a message that is not from gpuload");
	send_raw(fd = connect_raw(), &hello, sizeof hello - 1, 0);
	expect_refused(fd, "HELLO message with 311 bytes");
	send_raw(fd = connect_raw(), junk, sizeof junk, 0);
	expect_refused(fd, "longer than every known message");
	hello.head.version = 2;
	send_raw(fd = connect_raw(), &hello, sizeof hello, 0);
	expect_refused(fd, "uses protocol version 2");
}

static void refuses_unexpected_messages(void **state)
{
	struct wire_ready ready = { .head = gpul_ipc_wire_head(WIRE_READY) };
	struct wire_hello hello = good_hello();
	int fd = connect_raw();

	(void)state;
	send_raw(fd, &ready, sizeof ready, 0);
	expect_refused(fd, "unexpected message");
	fd = connect_raw();
	send_raw(fd, &hello, sizeof hello, 0);
	send_raw(fd, &hello, sizeof hello, 0);
	assert_int_equal(expect_event(server, GPUL_IPC_REFUSED).peer, 1);
	assert_int_equal(receive_raw(fd, NULL), WIRE_OFFER);
	assert_int_equal(receive_raw(fd, NULL), WIRE_REFUSED);
	close(fd);
}

static void drops_a_peer_that_sends_after_attaching(void **state)
{
	struct wire_ready ready = { .head = gpul_ipc_wire_head(WIRE_READY) };
	struct wire_hello hello = good_hello();
	int fd = connect_raw();

	(void)state;
	send_raw(fd, &hello, sizeof hello, 0);
	for (int i = 0; i < 100; i++)
		send_raw(fd, &ready, sizeof ready, 0);
	expect_event(server, GPUL_IPC_ATTACHED);
	assert_non_null(strstr(expect_event(server, GPUL_IPC_PEER_DIED).why.text, "unexpected message"));
	assert_int_equal(receive_raw(fd, NULL), WIRE_OFFER); /* REFUSED arrives although the owner closed with 98 messages unread */
	assert_int_equal(receive_raw(fd, NULL), WIRE_REFUSED);
	close(fd);
}

static void refuses_unexpected_descriptors(void **state)
{
	static const unsigned numbers[] = { 1, 2, 3, 100, 253 };
	struct wire_hello hello = good_hello();

	(void)state;
	for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		unsigned before = count_fds();
		int fd = connect_raw();

		send_raw(fd, &hello, sizeof hello, numbers[i]);
		expect_refused(fd, "descriptors instead of 0");
		assert_int_equal(count_fds(), before);
	}
}

static void closes_the_descriptors_of_an_empty_packet(void **state)
{
	unsigned before = count_fds();
	int fd = connect_raw();

	(void)state;
	send_raw(fd, "", 0, 253);
	expect_event(server, GPUL_IPC_NONE); /* treated like a closed connection, because HELLO was never sent */
	close(fd);
	assert_int_equal(count_fds(), before);
}

static void drops_a_connection_without_hello_after_the_time_out(void **state)
{
	uint64_t begun_ns = gpul_clock_ns();
	int fd = connect_raw();
	gpul_ipc_client *other;

	(void)state;
	expect_event(server, GPUL_IPC_NONE);
	other = attach_here(server, "rules"); /* the silent connection does not delay other peers */
	assert_int_equal(gpul_ipc_client_close(other, -1, NULL), GPUL_OK);
	expect_event(server, GPUL_IPC_DETACHED);
	expect_refused(fd, "did not send a HELLO message within");
	assert_true(gpul_clock_ns() - begun_ns >= (uint64_t)STEP_MS * 1000000);
}

static void drops_a_peer_without_ready_after_the_time_out(void **state)
{
	struct wire_hello hello = good_hello();
	int fd = connect_raw();

	(void)state;
	send_raw(fd, &hello, sizeof hello, 0);
	expect_event(server, GPUL_IPC_NONE);
	assert_int_equal(receive_raw(fd, NULL), WIRE_OFFER);
	expect_refused(fd, "did not send a READY message within");
}

static void accepts_an_answer_that_arrived_while_the_owner_was_suspended(void **state)
{
	struct wire_ready ready = { .head = gpul_ipc_wire_head(WIRE_READY) };
	struct wire_head bye = gpul_ipc_wire_head(WIRE_BYE);
	struct wire_hello hello = good_hello();
	int fd = connect_raw();

	(void)state;
	send_raw(fd, &hello, sizeof hello, 0);
	expect_event(server, GPUL_IPC_NONE);
	send_raw(fd, &ready, sizeof ready, 0);
	usleep(2 * STEP_MS * 1000);
	expect_event(server, GPUL_IPC_ATTACHED);
	send_raw(fd, &bye, sizeof bye, 0);
	expect_event(server, GPUL_IPC_DETACHED);
	close(fd);
}

static void a_flood_of_silent_connections_does_not_block_peers(void **state)
{
	int fd[300];
	unsigned n_refused = 0;
	gpul_ipc_client *other;
	gpul_ipc_event event;

	(void)state;
	for (unsigned i = 0; i < 300; i++)
		fd[i] = connect_raw();
	other = begin_attach("rules");
	for (unsigned i = 0; i < 4000; i++) {
		assert_int_equal(gpul_ipc_client_next(other, 0, &event, NULL), GPUL_OK);
		if (event.kind == GPUL_IPC_ATTACHED)
			break;
		assert_int_equal(gpul_ipc_server_next(server, 1, &event, NULL), GPUL_OK);
		assert_true(event.kind == GPUL_IPC_NONE || event.kind == GPUL_IPC_REFUSED);
	}
	assert_non_null(gpul_ipc_client_mem(other));
	assert_int_equal(gpul_ipc_client_close(other, -1, NULL), GPUL_OK);
	for (unsigned n_detached = 0; n_detached < 1 || n_refused < 1;) {
		assert_int_equal(gpul_ipc_server_next(server, PATIENCE_MS, &event, NULL), GPUL_OK);
		n_detached += event.kind == GPUL_IPC_DETACHED;
		n_refused += event.kind == GPUL_IPC_REFUSED;
	}
	for (unsigned i = 0; i < 300; i++)
		close(fd[i]);
	do
		assert_int_equal(gpul_ipc_server_next(server, 10, &event, NULL), GPUL_OK);
	while (event.kind != GPUL_IPC_NONE);
}

static void refuses_processes_that_cannot_map_the_memory(void **state)
{
	struct wire_hello hello = good_hello();
	int fd;

	(void)state;
	hello.boot_id[3] ^= 1;
	send_raw(fd = connect_raw(), &hello, sizeof hello, 0);
	expect_refused(fd, "boot ids differ");
	hello = good_hello();
	hello.can = 0;
	send_raw(fd = connect_raw(), &hello, sizeof hello, 0);
	expect_refused(fd, "cannot map memfd memory");
}

static void refuses_more_than_max_peers(void **state)
{
	gpul_ipc_client *c[GPUL_IPC_MAX_PEERS], *late;
	gpul_ipc_peer peers[GPUL_IPC_MAX_PEERS];
	gpul_ipc_event event;

	(void)state;
	for (int i = 1; i < GPUL_IPC_MAX_PEERS; i++)
		c[i] = attach_here(server, "rules");
	assert_int_equal(gpul_ipc_server_peers(server, peers, 3), GPUL_IPC_MAX_PEERS);
	assert_int_equal(gpul_ipc_server_peers(server, peers, GPUL_IPC_MAX_PEERS), GPUL_IPC_MAX_PEERS);
	for (int i = 0; i < GPUL_IPC_MAX_PEERS; i++)
		assert_int_equal(peers[i].slot, i);
	late = begin_attach("rules");
	assert_non_null(strstr(expect_event(server, GPUL_IPC_REFUSED).why.text, "the limit of 64 attached peers is reached"));
	event = expect_client_event(late, GPUL_IPC_REFUSED);
	assert_non_null(strstr(event.why.text, "the limit of 64 attached peers is reached"));
	assert_null(gpul_ipc_client_view(late));
	assert_int_equal(gpul_ipc_client_close(late, -1, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_client_close(c[17], -1, NULL), GPUL_OK);
	assert_int_equal(expect_event(server, GPUL_IPC_DETACHED).peer, 17);
	c[17] = begin_attach("rules");
	expect_event(server, GPUL_IPC_NONE);
	expect_client_event(c[17], GPUL_IPC_ATTACHED);
	assert_int_equal(expect_event(server, GPUL_IPC_ATTACHED).peer, 17);
	late = begin_attach("rules"); /* its HELLO is sent before the BYE of client 18, which frees the slot */
	assert_int_equal(gpul_ipc_client_close(c[18], -1, NULL), GPUL_OK);
	assert_int_equal(expect_event(server, GPUL_IPC_DETACHED).peer, 18);
	c[18] = late;
	expect_event(server, GPUL_IPC_NONE);
	expect_client_event(c[18], GPUL_IPC_ATTACHED);
	assert_int_equal(expect_event(server, GPUL_IPC_ATTACHED).peer, 18);
	for (int i = 1; i < GPUL_IPC_MAX_PEERS; i++) {
		assert_int_equal(gpul_ipc_client_close(c[i], -1, NULL), GPUL_OK);
		assert_int_equal(expect_event(server, GPUL_IPC_DETACHED).peer, i);
	}
}

static void sockets_passed_to_the_server_count_as_peers(void **state)
{
	int pair[2 * GPUL_IPC_MAX_PEERS], file = open("/dev/null", O_RDWR | O_CLOEXEC), streams[2];
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_ipc_server_add(server, file, NULL), GPUL_EINVAL);
	assert_int_equal(fcntl(file, F_GETFD), -1); /* the server, which owned the descriptor, has closed it */
	assert_int_equal(gpul_ipc_server_add(server, -1, NULL), GPUL_EINVAL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, streams), 0);
	assert_int_equal(gpul_ipc_server_add(server, streams[0], NULL), GPUL_EINVAL);
	close(streams[1]);
	for (unsigned i = 0; i < GPUL_IPC_MAX_PEERS; i++) { /* the last connection exceeds the limit */
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair + 2 * i), 0);
		assert_int_equal(gpul_ipc_server_add(server, pair[2 * i], &err), i < GPUL_IPC_MAX_PEERS - 1 ? GPUL_OK : GPUL_EUNSUPPORTED);
	}
	assert_non_null(strstr(err.text, "64 processes are already connected"));
	for (unsigned i = 0; i < GPUL_IPC_MAX_PEERS; i++)
		close(pair[2 * i + 1]);
	for (unsigned i = 0; i < GPUL_IPC_MAX_PEERS; i++)
		expect_event(server, GPUL_IPC_NONE);
}

static void an_owner_without_descriptors_pauses_and_continues(void **state)
{
	struct rlimit before, now;
	int fd = connect_raw(), none;
	struct wire_hello hello = good_hello();

	(void)state;
	send_raw(fd, &hello, sizeof hello, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = dup(fd);
	close(none); /* `none` is now the lowest free number: with this limit, no descriptor can be opened */
	now = (struct rlimit){ .rlim_cur = (rlim_t)none, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	expect_event(server, GPUL_IPC_NONE);
	assert_int_equal(poll(&(struct pollfd){ .fd = gpul_ipc_server_fd(server), .events = POLLIN }, 1, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(poll(&(struct pollfd){ .fd = gpul_ipc_server_fd(server), .events = POLLIN }, 1, PATIENCE_MS), 1);
	while (poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 0)
		expect_event(server, GPUL_IPC_NONE);
	assert_int_equal(receive_raw(fd, NULL), WIRE_OFFER);
	close(fd);
	assert_non_null(strstr(expect_event(server, GPUL_IPC_REFUSED).why.text, "before it had mapped"));
}

/* ---- another user ------------------------------------------------------------------------------------ */

enum { OTHER_UID = 12345 };

static void refuses_another_user(void **state)
{
	char folder[] = "/tmp/gpuload-test-XXXXXX", path[64];
	gpul_ipc_server_options options = { .name = path };
	gpul_ipc_server *open_to_all;
	struct stat s;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/open.sock", folder);
	assert_int_equal(gpul_ipc_server_create(the_driver(), mem, &options, &open_to_all, NULL), GPUL_OK);
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0600);
	assert_int_equal(chmod(folder, 0755), 0); /* other users may now open the socket, but the server still refuses them */
	assert_int_equal(chmod(path, 0666), 0);
	pid = fork();
	if (pid == 0) {
		char text[200] = "";
		struct wire_hello hello = good_hello();
		int fd;

		if (setuid(OTHER_UID))
			_exit(2);
		fd = connect_to(path);
		(void)send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
		_exit(receive_raw(fd, text) == WIRE_REFUSED && strstr(text, "the attaching process runs as user 12345") ? 0 : 1);
	}
	assert_int_equal(expect_event(open_to_all, GPUL_IPC_REFUSED).uid, OTHER_UID);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	gpul_ipc_server_destroy(open_to_all);
	assert_int_equal(rmdir(folder), 0);
}

static int set_up(void **state)
{
	(void)set_up_folder_and_driver(state);
	gpul_log_set_level(GPUL_LOG_INFO);
	gpul_log_to(keep_line, NULL);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_test, finish_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refuses_invalid_messages),
		TEST(refuses_unexpected_messages),
		TEST(drops_a_peer_that_sends_after_attaching),
		TEST(refuses_unexpected_descriptors),
		TEST(closes_the_descriptors_of_an_empty_packet),
		TEST(drops_a_connection_without_hello_after_the_time_out),
		TEST(drops_a_peer_without_ready_after_the_time_out),
		TEST(accepts_an_answer_that_arrived_while_the_owner_was_suspended),
		TEST(a_flood_of_silent_connections_does_not_block_peers),
		TEST(refuses_processes_that_cannot_map_the_memory),
		TEST(refuses_more_than_max_peers),
		TEST(sockets_passed_to_the_server_count_as_peers),
		TEST(an_owner_without_descriptors_pauses_and_continues),
		TEST(refuses_another_user),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down_folder_and_driver);
}
