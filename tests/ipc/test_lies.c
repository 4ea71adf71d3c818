/* test_lies.c — a client whose server breaks the protocol: the client maps nothing, leaks nothing, and reports the reason. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "ipc/here_internal.h"
#include "ipc/place.h"
#include "ipc/socket_internal.h"
#include "tests/ipc/support.h"

enum { MEMORY_BYTES = 1 << 16 };

static int listener;
static unsigned fds_before, maps_before;

/* Listen on path as an owner that does not use the library. */
static int listen_at(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static int begin(void **state)
{
	char path[GPUL_IPC_PATH_BYTES];

	(void)state;
	fds_before = count_fds();
	maps_before = count_mappings();
	assert_int_equal(gpul_ipc_place("liar", true, path, NULL), GPUL_OK);
	listener = listen_at(path);
	return 0;
}

static int finish(void **state)
{
	char path[GPUL_IPC_PATH_BYTES];

	(void)state;
	close(listener);
	assert_int_equal(gpul_ipc_place("liar", true, path, NULL), GPUL_OK);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(count_fds(), fds_before);
	assert_true(count_mappings() <= maps_before);
	return 0;
}

/* Return a valid OFFER message for a sealed memfd of MEMORY_BYTES. */
static struct wire_offer good_offer(void)
{
	struct wire_offer m = { .head = gpul_ipc_wire_head(WIRE_OFFER) };
	struct gpul_ipc_here here;

	assert_int_equal(gpul_ipc_here_get(the_driver(), &here, NULL), GPUL_OK);
	m.share = (struct wire_share){
		.mapped_bytes = MEMORY_BYTES, .bytes = MEMORY_BYTES, .granularity_bytes = 4096, .kind = GPUL_MEM_MEMFD, .via = WIRE_VIA_FD
	};
	memcpy(m.share.boot_id, here.boot_id, sizeof m.share.boot_id);
	memcpy(m.share.driver, here.driver, sizeof m.share.driver);
	memcpy(m.share.gpu, here.gpu[0], sizeof m.share.gpu);
	return m;
}

static int sealed_memfd(off_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

enum { GOOD_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static void send_fds(int socket, const void *bytes, size_t n_bytes, const int *fds, unsigned n_fds)
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
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof *fds);
	}
	assert_int_equal(sendmsg(socket, &m, MSG_NOSIGNAL), n_bytes);
}

/* Send a reply to the client.  The client must fail and return the reason; if owner_is_told, it must also send the reason to the owner. */
static void expect_error(const void *bytes, size_t n_bytes, const int *fds, unsigned n_fds, gpul_status status, const char *reason,
			 bool owner_is_told)
{
	gpul_ipc_client *c = begin_attach("liar");
	int socket = accept(listener, NULL, NULL), with;
	gpul_ipc_event event;
	gpul_ipc_message m;
	gpul_error err = { 0 };

	send_fds(socket, bytes, n_bytes, fds, n_fds);
	assert_int_equal(gpul_ipc_client_next(c, PATIENCE_MS, &event, &err), status);
	if (!strstr(err.text, reason))
		fail_msg("'%s' does not contain '%s'", err.text, reason);
	assert_null(gpul_ipc_client_mem(c));
	assert_null(gpul_ipc_client_view(c));
	assert_int_equal(gpul_ipc_receive(socket, &m, &with, NULL, NULL), GOT_MESSAGE);
	assert_int_equal(m.head.type, WIRE_HELLO);
	if (owner_is_told) {
		assert_int_equal(gpul_ipc_receive(socket, &m, &with, NULL, NULL), GOT_MESSAGE);
		assert_int_equal(m.head.type, WIRE_REFUSED);
		assert_non_null(strstr(m.refused.text, reason));
	}
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	close(socket);
}

/* Send the offer with one descriptor; closes fd. */
static void expect_offer_refused(const struct wire_offer *m, int fd, gpul_status status, const char *reason)
{
	expect_error(m, sizeof *m, &fd, 1, status, reason, true);
	close(fd);
}

static void accepts_a_valid_offer(void **state)
{
	struct wire_offer m = good_offer();
	int fd = sealed_memfd(MEMORY_BYTES, GOOD_SEALS);
	gpul_ipc_client *c = begin_attach("liar");
	int socket = accept(listener, NULL, NULL);

	(void)state;
	send_fds(socket, &m, sizeof m, &fd, 1);
	expect_client_event(c, GPUL_IPC_ATTACHED);
	assert_int_equal(gpul_ipc_client_view(c)->bytes, MEMORY_BYTES);
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	close(socket);
	close(fd);
}

static void refuses_sizes_that_differ_from_the_file(void **state)
{
	static const uint64_t mapped[] = { MEMORY_BYTES - 4096, MEMORY_BYTES + 4096, (uint64_t)1 << 40 };
	static const uint64_t impossible[] = { 0, (uint64_t)-1, (uint64_t)1 << 63, MEMORY_BYTES - 1, MEMORY_BYTES + 1 };
	int fd = sealed_memfd(MEMORY_BYTES, GOOD_SEALS);

	(void)state;
	for (unsigned i = 0; i < sizeof mapped / sizeof mapped[0]; i++) {
		struct wire_offer m = good_offer();

		m.share.mapped_bytes = mapped[i];
		m.share.bytes = 4096;
		expect_error(&m, sizeof m, &fd, 1, GPUL_EFORMAT, "", true);
	}
	for (unsigned i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
		struct wire_offer m = good_offer();

		m.share.mapped_bytes = impossible[i];
		m.share.bytes = 1;
		expect_error(&m, sizeof m, &fd, 1, GPUL_EFORMAT, "is invalid", false);
	}
	close(fd);
}

static void refuses_descriptors_of_other_types(void **state)
{
	struct wire_offer m = good_offer();
	int pair[2];

	(void)state;
	expect_offer_refused(&m, sealed_memfd(MEMORY_BYTES, F_SEAL_GROW), GPUL_EFORMAT, "");
	expect_offer_refused(&m, sealed_memfd(MEMORY_BYTES, 0), GPUL_EFORMAT, "");
	expect_offer_refused(&m, open("/dev/null", O_RDWR | O_CLOEXEC), GPUL_EFORMAT, "");
	expect_offer_refused(&m, open("/tmp", O_RDONLY | O_CLOEXEC), GPUL_EFORMAT, "");
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	expect_offer_refused(&m, pair[0], GPUL_EFORMAT, "");
	close(pair[1]);
	m.share.kind = GPUL_MEM_HOST_NUMA;
	m.share.mapped_bytes = 2 << 20;
	m.share.granularity_bytes = 2 << 20;
	expect_offer_refused(&m, sealed_memfd(2 << 20, GOOD_SEALS), GPUL_EFORMAT, "");
}

static void refuses_too_few_and_too_many_descriptors(void **state)
{
	struct wire_offer m = good_offer();
	int fd[253];

	(void)state;
	fd[0] = sealed_memfd(MEMORY_BYTES, GOOD_SEALS);
	for (unsigned i = 1; i < 253; i++)
		fd[i] = fd[0];
	expect_error(&m, sizeof m, fd, 0, GPUL_EFORMAT, "OFFER message has 0 file descriptors instead of 1", false);
	expect_error(&m, sizeof m, fd, 2, GPUL_EFORMAT, "OFFER message has 2 file descriptors", false);
	expect_error(&m, sizeof m, fd, 253, GPUL_EFORMAT, "OFFER message has 253 file descriptors", false);
	m.share.kind = GPUL_MEM_DEVICE_IPC;
	m.share.via = WIRE_VIA_CUDA_IPC;
	expect_error(&m, sizeof m, fd, 1, GPUL_EFORMAT, "OFFER message has 1 file descriptors instead of 0", false);
	close(fd[0]);
}

static void reports_a_descriptor_dropped_at_the_limit(void **state)
{
	struct wire_offer m = good_offer();
	int fd = sealed_memfd(MEMORY_BYTES, GOOD_SEALS), socket, none;
	gpul_ipc_client *c = begin_attach("liar");
	struct rlimit before, now;
	gpul_ipc_event event;
	gpul_error err = { 0 };
	gpul_status st;

	(void)state;
	socket = accept(listener, NULL, NULL);
	send_fds(socket, &m, sizeof m, &fd, 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = dup(fd);
	close(none);
	now = (struct rlimit){ .rlim_cur = (rlim_t)none, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	st = gpul_ipc_client_next(c, PATIENCE_MS, &event, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(st, GPUL_EFORMAT);
	assert_non_null(strstr(err.text, "ulimit -n"));
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	close(socket);
	close(fd);
}

static void refuses_an_owner_with_another_machine_driver_or_gpu(void **state)
{
	struct wire_offer m = good_offer();

	(void)state;
	m.share.boot_id[0] ^= 1;
	expect_offer_refused(&m, sealed_memfd(MEMORY_BYTES, GOOD_SEALS), GPUL_EUNSUPPORTED, "boot ids differ");
	m = good_offer();
	m.share.kind = GPUL_MEM_DEVICE;
	m.share.gpu[0] ^= 0xff;
	m.share.gpu[15] = 0x5a;
	expect_offer_refused(&m, sealed_memfd(MEMORY_BYTES, GOOD_SEALS), GPUL_EUNSUPPORTED, "CUDA_VISIBLE_DEVICES");
	m = good_offer();
	m.share.kind = GPUL_MEM_DEVICE;
	strcpy(m.share.driver, "other");
	expect_offer_refused(&m, sealed_memfd(MEMORY_BYTES, GOOD_SEALS), GPUL_EUNSUPPORTED,
			     "the owner of the memory uses the other driver, but the attaching process uses the soft driver");
}

static void refuses_invalid_answers(void **state)
{
	struct wire_ready ready = { .head = gpul_ipc_wire_head(WIRE_READY) };

	(void)state;
	expect_error(&ready, sizeof ready, NULL, 0, GPUL_EFORMAT, "unexpected READY", false);
	expect_error("?", 1, NULL, 0, GPUL_EFORMAT, "1 bytes", false);
}

static void reports_an_owner_that_refuses_closes_or_is_silent(void **state)
{
	struct wire_refused refused = { .head = gpul_ipc_wire_head(WIRE_REFUSED), .status = GPUL_EINVAL, .text = "\x1b[2Jno" };
	struct wire_head bye = gpul_ipc_wire_head(WIRE_BYE);
	gpul_ipc_client_options options = { .name = "liar", .devices = (int[]){ 0 }, .n_devices = 1 };
	gpul_ipc_share share;
	gpul_error err = { 0 };
	gpul_ipc_client *c;
	int socket;

	(void)state;
	c = begin_attach("liar");
	socket = accept(listener, NULL, NULL);
	send_fds(socket, &refused, sizeof refused, NULL, 0);
	assert_string_equal(expect_client_event(c, GPUL_IPC_REFUSED).why.text, "?[2Jno");
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	close(socket);

	c = begin_attach("liar");
	socket = accept(listener, NULL, NULL);
	send_fds(socket, &bye, sizeof bye, NULL, 0);
	expect_client_event(c, GPUL_IPC_DETACHED);
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	close(socket);

	c = begin_attach("liar");
	close(accept(listener, NULL, NULL)); /* the owner closed the connection without reading HELLO: ECONNRESET */
	expect_client_event(c, GPUL_IPC_OWNER_DIED);
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);

	c = NULL;
	assert_int_equal(gpul_ipc_attach(the_driver(), &options, 30, &c, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_null(c);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ipc_request("liar", 30, &share, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	close(accept(listener, NULL, NULL));
	close(accept(listener, NULL, NULL));
}

static void waits_while_the_owners_backlog_is_full(void **state)
{
	gpul_ipc_client_options options = { .name = "liar", .devices = (int[]){ 0 }, .n_devices = 1 };
	gpul_ipc_client *waiting[9], *c = NULL;
	gpul_error err = { 0 };

	(void)state;
	for (int i = 0; i < 9; i++)
		waiting[i] = begin_attach("liar");
	assert_int_equal(gpul_ipc_client_open(the_driver(), &options, &c, &err), GPUL_ESYS);
	assert_int_equal(err.native, EAGAIN);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ipc_attach(the_driver(), &options, 30, &c, &err), GPUL_ESYS);
	assert_int_equal(err.native, EAGAIN);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(gpul_ipc_client_close(waiting[i], -1, NULL), GPUL_OK);
		close(accept(listener, NULL, NULL));
	}
}

static void reports_names_that_are_not_offered(void **state)
{
	gpul_ipc_client_options options = { .name = "nobody", .devices = (int[]){ 0 }, .n_devices = 1 };
	gpul_ipc_client *c = NULL;
	gpul_ipc_share share;
	gpul_error err = { 0 };
	int pair[2];

	(void)state;
	assert_int_equal(gpul_ipc_attach(the_driver(), &options, 30, &c, &err), GPUL_ESYS);
	assert_int_equal(err.native, ENOENT);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ipc_request("nobody", 30, &share, &err), GPUL_ESYS);
	assert_int_equal(err.native, ENOENT);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ipc_request("no body", 30, &share, &err), GPUL_EINVAL);
	options.n_devices = 0;
	assert_int_equal(gpul_ipc_client_open(the_driver(), &options, &c, NULL), GPUL_EINVAL);
	options = (gpul_ipc_client_options){ .devices = (int[]){ 0 }, .n_devices = 1 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	options.fd = pair[0]; /* the client has closed the descriptor */
	assert_int_equal(gpul_ipc_client_open(the_driver(), &options, &c, NULL), GPUL_EINVAL);
	close(pair[1]);
}

enum { OTHER_UID = 12345 };

static void refuses_an_owner_of_another_user(void **state)
{
	char folder[] = "/tmp/gpuload-test-XXXXXX", path[64];
	gpul_ipc_client_options options = { .name = path, .devices = (int[]){ 0 }, .n_devices = 1 };
	gpul_ipc_client *c = NULL;
	gpul_error err = { 0 };
	int ready[2], status;
	pid_t pid;
	char byte;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chown(folder, OTHER_UID, (gid_t)-1), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	snprintf(path, sizeof path, "%s/theirs.sock", folder);
	pid = fork();
	if (pid == 0) {
		if (setuid(OTHER_UID))
			_exit(1);
		(void)listen_at(path);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(gpul_ipc_client_open(the_driver(), &options, &c, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "belongs to user 12345"));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static int set_up(void **state)
{
	(void)state;
	make_runtime_folder();
	gpul_mem_destroy(make_memory(GPUL_MEM_MEMFD, MEMORY_BYTES)); /* the driver opens its files now, not during a test */
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(accepts_a_valid_offer),
		TEST(refuses_sizes_that_differ_from_the_file),
		TEST(refuses_descriptors_of_other_types),
		TEST(refuses_too_few_and_too_many_descriptors),
		TEST(reports_a_descriptor_dropped_at_the_limit),
		TEST(refuses_an_owner_with_another_machine_driver_or_gpu),
		TEST(refuses_invalid_answers),
		TEST(reports_an_owner_that_refuses_closes_or_is_silent),
		TEST(waits_while_the_owners_backlog_is_full),
		TEST(reports_names_that_are_not_offered),
		TEST(refuses_an_owner_of_another_user),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down_folder_and_driver);
}
