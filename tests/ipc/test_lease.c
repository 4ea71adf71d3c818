/* test_lease.c — an owner and its peers in one process: the events and the data that each side gets. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "ipc/control.h"
#include "ipc/place.h"
#include "tests/ipc/support.h"

static bool is_readable(int fd)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) == 1;
}

/* Arguments and result of gpul_ipc_request() in another thread, because this thread must run the server that replies. */
struct asked {
	const char *name;
	gpul_ipc_share share;
	gpul_status status;
	_Atomic bool done;
};

static void *run_query(void *argument)
{
	struct asked *a = argument;

	a->status = gpul_ipc_request(a->name, PATIENCE_MS, &a->share, NULL);
	a->done = true;
	return NULL;
}

static struct asked query_while_serving(gpul_ipc_server *s, const char *name)
{
	struct asked a = { .name = name };
	gpul_ipc_event event;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_query, &a), 0);
	while (!a.done) {
		assert_int_equal(gpul_ipc_server_next(s, 1, &event, NULL), GPUL_OK);
		assert_int_equal(event.kind, GPUL_IPC_NONE); /* a query causes no event */
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	return a;
}

static void owner_and_peer_see_each_others_writes(void **state)
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

static void the_memory_stays_mapped_after_the_owner_ends_the_lease(void **state)
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
	assert_false(is_readable(gpul_ipc_client_fd(c))); /* no more messages */
	expect_client_event(c, GPUL_IPC_NONE);
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
}

static void attaches_through_an_inherited_socket_without_a_name(void **state)
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

/* cuIpc memory and events cannot be opened in the exporting process, so other tests cover them. */
static void leases_each_kind_of_memory_that_has_a_descriptor(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_MEMFD, GPUL_MEM_SHM };
	const gpul_driver *drv = the_driver();

	(void)state;
	for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		gpul_mem *mem = make_memory(kinds[i], 3 << 20);
		gpul_ipc_server *s = offer(mem, "lease");
		gpul_ipc_client *c = attach_here(s, "lease");
		const gpul_ipc_view *ours = gpul_ipc_server_view(s), *theirs = gpul_ipc_client_view(c);
		uint64_t value = 0, sent = 0x123456789abcdef;

		assert_int_equal(gpul_mem_about(gpul_ipc_client_mem(c))->kind, kinds[i]);
		assert_int_equal(ours->cpu == NULL, kinds[i] == GPUL_MEM_DEVICE);
		assert_int_equal(theirs->cpu == NULL, kinds[i] == GPUL_MEM_DEVICE);
		assert_int_equal(drv->cuMemcpyHtoD(ours->gpu + ours->bytes - 8, &sent, 8), CUDA_SUCCESS);
		assert_int_equal(drv->cuMemcpyDtoH(&value, theirs->gpu + theirs->bytes - 8, 8), CUDA_SUCCESS);
		assert_int_equal(value, sent);
		assert_int_equal(gpul_ipc_step_post(theirs, 5, 77, NULL), GPUL_OK);
		assert_int_equal(gpul_ipc_step_wait(ours, 5, 77, 1000, NULL), GPUL_OK);
		assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
		expect_event(s, GPUL_IPC_DETACHED);
		gpul_ipc_server_destroy(s);
		gpul_mem_destroy(mem);
	}
}

static void a_query_returns_the_share_and_its_peers(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 1 << 20);
	gpul_ipc_server_options options = {
		.name = "asked", .read_only = true, .bytes = 4000, .shape = { .dtype = "<f8", .n_dims = 2, .dim = { 50, 10 } }
	};
	const gpul_ipc_share *share;
	gpul_ipc_server *s;
	gpul_ipc_client *c;
	struct asked asked;

	(void)state;
	assert_int_equal(gpul_ipc_server_create(the_driver(), mem, &options, &s, NULL), GPUL_OK);
	c = attach_here(s, "asked");
	asked = query_while_serving(s, "asked");
	assert_int_equal(asked.status, GPUL_OK);
	share = &asked.share;
	assert_int_equal(share->pid, getpid());
	assert_int_equal(share->uid, geteuid());
	assert_int_equal(share->kind, GPUL_MEM_MEMFD);
	assert_int_equal(share->bytes, 4000);
	assert_int_equal(share->mapped_bytes, 1 << 20);
	assert_true(share->read_only);
	assert_string_equal(share->driver, "soft");
	assert_int_equal(share->cpu, (uintptr_t)gpul_mem_cpu(mem));
	assert_int_equal(share->gpu, gpul_mem_gpu(mem));
	assert_string_equal(share->shape.dtype, "<f8");
	assert_int_equal(share->shape.dim[0], 50);
	assert_int_equal(share->n_peers, 1);
	assert_int_equal(share->peers[0].pid, getpid());
	assert_int_equal(share->peers[0].cpu, (uintptr_t)gpul_mem_cpu(gpul_ipc_client_mem(c)));
	assert_memory_equal(share->peers[0].device_uuid, share->device_uuid, 16);
	assert_true(share->peers[0].read_only);
	assert_int_equal(gpul_ipc_client_close(c, -1, NULL), GPUL_OK);
	expect_event(s, GPUL_IPC_DETACHED);
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
}

static void refuses_options_that_cannot_be_offered(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 8192), *small = make_memory(GPUL_MEM_MEMFD, 4096), *pinned = NULL;
	int device = 0;
	gpul_mem_desc desc = { .kind = GPUL_MEM_PINNED, .bytes = 8192, .devices = &device, .n_devices = 1 };
	gpul_ipc_server *s = NULL;
	unsigned fds = count_fds();
	const struct {
		gpul_mem *mem;
		gpul_ipc_server_options options;
		const char *reason;
	} wrong[] = {
		{ mem, { .bytes = 8193 }, "too small to share 8193 bytes" },
		{ mem, { .bytes = 4097, .control = true }, "and a control page of 4096 bytes" },
		{ small, { .control = true }, "and a control page of 4096 bytes" },
		{ mem, { .max_peers = 65 }, "at most 64 are supported" },
		{ mem, { .shape = { .dtype = "<f4", .n_dims = 1, .dim = { 2049 } } }, "shape" },
		{ mem, { .shape = { .n_dims = 5 } }, "dimensions" },
		{ mem, { .name = "a b" }, "invalid name" },
		{ mem, { .fabric = true }, "" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		gpul_error err = { 0 };

		assert_int_equal(gpul_ipc_server_create(the_driver(), wrong[i].mem, &wrong[i].options, &s, &err), GPUL_EINVAL);
		if (!strstr(err.text, wrong[i].reason))
			fail_msg("'%s' does not contain '%s'", err.text, wrong[i].reason);
	}
	assert_int_equal(gpul_mem_create(the_driver(), &desc, &pinned, NULL), GPUL_OK);
	assert_int_equal(gpul_ipc_server_create(the_driver(), pinned, &(gpul_ipc_server_options){ 0 }, &s, NULL), GPUL_EINVAL);
	assert_null(s);
	assert_int_equal(count_fds(), fds + 0);
	gpul_mem_destroy(mem);
	gpul_mem_destroy(small);
	gpul_mem_destroy(pinned);
}

static void does_not_touch_files_and_sockets_of_other_programs(void **state)
{
	gpul_mem *mem = make_memory(GPUL_MEM_MEMFD, 8192);
	gpul_ipc_server_options options = { .name = "taken" };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	gpul_ipc_server *s = NULL;
	gpul_error err = { 0 };
	int other;

	(void)state;
	assert_int_equal(gpul_ipc_place("taken", true, a.sun_path, NULL), GPUL_OK);
	close(open(a.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(gpul_ipc_server_create(the_driver(), mem, &options, &s, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "not a socket"));
	assert_int_equal(unlink(a.sun_path), 0);
	other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(other, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(listen(other, 1), 0);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_ipc_server_create(the_driver(), mem, &options, &s, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "another program listens"));
	assert_int_equal(access(a.sun_path, F_OK), 0);
	close(other); /* now no process listens on the socket */
	assert_int_equal(gpul_ipc_server_create(the_driver(), mem, &options, &s, NULL), GPUL_OK);
	gpul_ipc_server_destroy(s);
	assert_int_equal(access(a.sun_path, F_OK), -1);
	gpul_mem_destroy(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner_and_peer_see_each_others_writes),
		cmocka_unit_test(the_memory_stays_mapped_after_the_owner_ends_the_lease),
		cmocka_unit_test(attaches_through_an_inherited_socket_without_a_name),
		cmocka_unit_test(leases_each_kind_of_memory_that_has_a_descriptor),
		cmocka_unit_test(a_query_returns_the_share_and_its_peers),
		cmocka_unit_test(refuses_options_that_cannot_be_offered),
		cmocka_unit_test(does_not_touch_files_and_sockets_of_other_programs),
	};

	return cmocka_run_group_tests(tests, set_up_folder_and_driver, tear_down_folder_and_driver);
}
