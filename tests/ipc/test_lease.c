/* test_lease.c — an owner and its peers in one process: what each sees of the other. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/control.h"
#include "tests/ipc/support.h"

static bool is_readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 1;
}

static void a_peer_sees_what_the_owner_writes_and_the_other_way_round(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 1 << 20);
	gpul_ipc_server *s = offer(mem, "lease");
	gpul_ipc_client *c = attach_here(s, "lease");
	const gpul_ipc_view *ours = gpul_ipc_server_view(s), *theirs = gpul_ipc_client_view(c);
	uint32_t code = 0;

	(void)state;
	assert_int_equal(theirs->bytes, (1 << 20) - GPUL_IPC_CONTROL_BYTES);
	assert_ptr_not_equal(ours->cpu, theirs->cpu);
	strcpy(ours->cpu, "from the owner");
	assert_string_equal(theirs->cpu, "from the owner");
	strcpy((char *)theirs->cpu + 100, "from the peer");
	assert_string_equal((char *)ours->cpu + 100, "from the peer");
	assert_int_equal(gpul_ipc_abort(theirs, 7, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_aborted(ours, &code, NULL), GPUL_OK);
	assert_int_equal(code, 7);
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	assert_int_equal(expect_event(s, GPUL_IPC_DETACHED).peer, 0);
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
}

static void the_owner_may_end_the_lease_and_the_memory_stays(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 1 << 16);
	gpul_ipc_server *s = offer(mem, "lease");
	gpul_ipc_client *c = attach_here(s, "lease");

	(void)state;
	strcpy(gpul_ipc_server_view(s)->cpu, "stays");
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
	expect_client_event(c, GPUL_IPC_DETACHED);
	assert_string_equal(gpul_ipc_client_view(c)->cpu, "stays");
	assert_false(is_readable(gpul_ipc_client_fd(c)));  /* there is nothing more to hear */
	expect_client_event(c, GPUL_IPC_NONE);
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
}

static void an_inherited_socket_does_without_a_name(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 1 << 16);
	gpul_ipc_server *s = offer(mem, NULL);
	int device = 0, pair[2];
	gpul_ipc_client_options options = { .devices = &device, .n_devices = 1 };
	gpul_ipc_event event;
	gpul_ipc_client *c;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	options.fd = pair[1];
	assert_int_equal(gpul_ipc_client_open(the_driver(), &options, &c, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_server_add(s, pair[0], NULL), GPUL_OK);
	expect_event(s, GPUL_IPC_NONE);
	assert_int_equal(expect_client_event(c, GPUL_IPC_ATTACHED).pid, getpid());
	event = expect_event(s, GPUL_IPC_ATTACHED);
	assert_int_equal(event.pid, getpid());
	assert_int_equal(event.uid, geteuid());
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	expect_event(s, GPUL_IPC_DETACHED);
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
}

static int set_up(void **state)
{
	(void)state;
	make_runtime_folder();
	(void)the_driver();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_the_driver();
	remove_runtime_folder();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_sees_what_the_owner_writes_and_the_other_way_round),
		cmocka_unit_test(the_owner_may_end_the_lease_and_the_memory_stays),
		cmocka_unit_test(an_inherited_socket_does_without_a_name),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
