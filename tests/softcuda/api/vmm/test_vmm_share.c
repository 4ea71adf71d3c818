/* test_vmm_share.c — memory that two processes map: export, import, and what is refused.
 *
 * The other process is forked before cuInit, because no CUDA driver can be used after a fork.  It serves requests
 * over a socket, one at a time. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { M2 = 2 << 20 };
#define FD        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define RO        CU_MEM_ACCESS_FLAGS_PROT_READ
#define RW        CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define DEVICE    CU_MEM_LOCATION_TYPE_DEVICE
#define HOST_NUMA CU_MEM_LOCATION_TYPE_HOST_NUMA

/* ---- used by both processes ------------------------------------------------------------- */

struct piece {
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t bytes;
};

static CUresult map_piece(struct piece *p, bool for_cpu, CUmemAccess_flags flags)
{
	CUmemAccessDesc to[2] = {
		{ .location = { .type = DEVICE }, .flags = flags },
		{ .location = { .type = HOST_NUMA }, .flags = flags },
	};
	CUresult r = cuMemAddressReserve(&p->at, p->bytes, 0, 0, 0);

	if (!r)
		r = cuMemMap(p->at, p->bytes, 0, p->handle, 0);
	if (!r)
		r = cuMemSetAccess(p->at, p->bytes, to, for_cpu ? 2 : 1);
	return r;
}

static CUresult drop_piece(const struct piece *p)
{
	CUresult r = cuMemUnmap(p->at, p->bytes);

	if (!r)
		r = cuMemAddressFree(p->at, p->bytes);
	return r ? r : cuMemRelease(p->handle);
}

static CUresult make_piece(struct piece *p, CUmemLocationType type, size_t bytes, int *fd)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = type }, .requestedHandleTypes = FD };
	CUresult r = cuMemCreate(&p->handle, bytes, &prop, 0);

	p->bytes = bytes;
	if (!r)
		r = cuMemExportToShareableHandle(fd, p->handle, FD, 0);
	return r ? r : map_piece(p, type == HOST_NUMA, RW);
}

static CUresult import(CUmemGenericAllocationHandle *out, int fd)
{
	return cuMemImportFromShareableHandle(out, (void *)(intptr_t)fd, FD);
}

/* ---- the other process ------------------------------------------------------------------ */

enum what { ATTACH, READ_WORD, WRITE_WORD, KERNEL_STORES, DETACH, OFFER, PROPERTIES };
struct request {
	enum what what;
	size_t bytes;
	uint32_t value;
	CUmemAccess_flags flags;
};
struct answer {
	CUresult result;
	uint32_t value;
	CUmemAllocationProp prop;
};

static bool send_with_fd(int s, const void *data, size_t bytes, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)data, bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof control.room;
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	return sendmsg(s, &m, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static bool receive_with_fd(int s, void *data, size_t bytes, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { data, bytes };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room };

	*fd = -1;
	if (recvmsg(s, &m, MSG_CMSG_CLOEXEC) != (ssize_t)bytes)
		return false;
	if (m.msg_controllen >= CMSG_LEN(sizeof *fd))
		memcpy(fd, CMSG_DATA(&control.head), sizeof *fd);
	return true;
}

static struct piece held; /* memory that the other process holds */

static CUresult attach(int fd, const struct request *q)
{
	CUresult r = import(&held.handle, fd);

	held.bytes = q->bytes;
	return r ? r : map_piece(&held, q->value != 0, q->flags);
}

static CUresult store_by_kernel(uint32_t value)
{
	void *params[] = { &held.at, &value };

	launch(get_kernel("put"), 1, 1, NULL, params);
	return cuCtxSynchronize();
}

static struct answer obey(const struct request *q, int fd, int *fd_back)
{
	struct answer a = { 0 };

	switch (q->what) {
	case ATTACH:
		a.result = attach(fd, q);
		break;
	case READ_WORD:
		a.result = cuMemcpyDtoH(&a.value, held.at, 4);
		break;
	case WRITE_WORD:
		a.result = cuMemcpyHtoD(held.at, &q->value, 4);
		break;
	case KERNEL_STORES:
		a.result = store_by_kernel(q->value);
		break;
	case DETACH:
		a.result = drop_piece(&held);
		break;
	case OFFER:
		a.result = make_piece(&held, HOST_NUMA, q->bytes, fd_back);
		if (!a.result)
			*(uint32_t *)(uintptr_t)held.at = q->value;
		break;
	case PROPERTIES:
		a.result = cuMemGetAllocationPropertiesFromHandle(&a.prop, held.handle);
		if (!a.result && cuMemExportToShareableHandle(fd_back, held.handle, FD, 0) != CUDA_ERROR_INVALID_VALUE)
			a.result = CUDA_ERROR_ASSERT;
		break;
	}
	return a;
}

static void serve(int s)
{
	struct request q;
	CUcontext ctx;
	int fd, fd_back;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx))
		_exit(1);
	while (receive_with_fd(s, &q, sizeof q, &fd)) {
		struct answer a;

		fd_back = -1;
		a = obey(&q, fd, &fd_back);
		send_with_fd(s, &a, sizeof a, fd_back);
		if (fd >= 0)
			close(fd);
		if (fd_back >= 0)
			close(fd_back);
	}
	_exit(0);
}

static struct other {
	pid_t pid;
	int socket;
} others[2];

static void start_other(struct other *o)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		abort();
	o->pid = fork();
	if (o->pid == 0) {
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	o->socket = pair[0];
}

static struct answer ask(struct other *o, struct request q, int fd)
{
	struct answer a;
	int fd_back;

	assert_true(send_with_fd(o->socket, &q, sizeof q, fd));
	assert_true(receive_with_fd(o->socket, &a, sizeof a, &fd_back));
	return a;
}

/* ---- tests ------------------------------------------------------------------------------ */

static void shares_both_ways(CUmemLocationType type)
{
	struct piece p;
	struct answer a;
	uint32_t word = 41;
	int fd;

	ok(make_piece(&p, type, 2 * M2, &fd));
	ok(cuMemcpyHtoD(p.at, &word, 4));
	ok(ask(&others[0], (struct request){ ATTACH, 2 * M2, type == HOST_NUMA, RW }, fd).result);
	a = ask(&others[0], (struct request){ READ_WORD, 0, 0, RW }, -1);
	ok(a.result);
	assert_int_equal(a.value, 41);
	ok(ask(&others[0], (struct request){ KERNEL_STORES, 0, 42, RW }, -1).result);
	ok(cuMemcpyDtoH(&word, p.at, 4));
	assert_int_equal(word, 42);
	close(fd);
	ok(drop_piece(&p));
	a = ask(&others[0], (struct request){ READ_WORD, 0, 0, RW }, -1);
	assert_true(!a.result && a.value == 42); /* the memory remains as long as any process maps it */
	ok(ask(&others[0], (struct request){ DETACH, 0, 0, RW }, -1).result);
}

static void device_memory_is_shared_by_two_processes(void **state)
{
	(void)state;
	shares_both_ways(DEVICE);
}

static void host_memory_is_shared_by_two_processes(void **state)
{
	(void)state;
	shares_both_ways(HOST_NUMA);
}

static void an_imported_handle_cannot_be_exported(void **state)
{
	struct piece p;
	struct answer a;
	int fd;

	(void)state;
	ok(make_piece(&p, DEVICE, M2, &fd));
	ok(ask(&others[0], (struct request){ ATTACH, M2, 0, RW }, fd).result);
	a = ask(&others[0], (struct request){ PROPERTIES, 0, 0, RW }, -1);
	ok(a.result);
	assert_true(a.prop.location.type == DEVICE && a.prop.location.id == 0);
	assert_int_equal(a.prop.requestedHandleTypes, 0);
	ok(ask(&others[0], (struct request){ DETACH, 0, 0, RW }, -1).result);
	close(fd);
	ok(drop_piece(&p));
}

static void every_export_is_a_new_descriptor_that_the_caller_owns(void **state)
{
	CUmemGenericAllocationHandle h;
	struct piece p;
	int first, second;

	(void)state;
	ok(make_piece(&p, DEVICE, M2, &first));
	ok(cuMemExportToShareableHandle(&second, p.handle, FD, 0));
	assert_int_not_equal(first, second);
	assert_true(fcntl(second, F_GETFD) & FD_CLOEXEC);
	ok(import(&h, second));
	assert_true(h != p.handle);
	assert_int_equal(close(second), 0);
	ok(cuMemRelease(h));
	assert_int_equal(close(first), 0);
	fails(cuMemExportToShareableHandle(&first, p.handle, FD, 1), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemExportToShareableHandle(&first, p.handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_INVALID_VALUE);
	fails(cuMemExportToShareableHandle(&first, p.handle, 0, 0), CUDA_ERROR_INVALID_VALUE);
	ok(drop_piece(&p));
	if (on_software_driver()) /* NVIDIA's driver dereferences the stale handle, and may crash */
		fails(cuMemExportToShareableHandle(&first, p.handle, FD, 0), CUDA_ERROR_INVALID_VALUE);
}

static void refuses_to_export_memory_created_without_a_handle_type(void **state)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = DEVICE } };
	CUmemGenericAllocationHandle h;
	int fd;

	(void)state;
	ok(cuMemCreate(&h, M2, &prop, 0));
	fails(cuMemExportToShareableHandle(&fd, h, FD, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuMemRelease(h));
}

static int make_memfd(const char *name, off_t bytes, int seals)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void refuses_and_closes(int fd)
{
	CUmemGenericAllocationHandle h;

	assert_true(fd >= 0);
	fails(import(&h, fd), CUDA_ERROR_UNKNOWN);
	close(fd);
}

static void refuses_descriptors_that_are_not_memory(void **state)
{
	CUmemGenericAllocationHandle h;
	int pipe_fds[2], was_open = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	close(was_open);
	fails(import(&h, -1), CUDA_ERROR_UNKNOWN);
	fails(import(&h, was_open), CUDA_ERROR_UNKNOWN);
	fails(cuMemImportFromShareableHandle(&h, (void *)0, 0), CUDA_ERROR_INVALID_VALUE);
	refuses_and_closes(open("/dev/null", O_RDWR | O_CLOEXEC));
	refuses_and_closes(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	refuses_and_closes(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	assert_int_equal(pipe(pipe_fds), 0);
	refuses_and_closes(pipe_fds[0]);
	refuses_and_closes(pipe_fds[1]);
	refuses_and_closes(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	refuses_and_closes(make_memfd("x", M2, F_SEAL_SHRINK | F_SEAL_GROW));
}

/* Memfds that the driver must not import: with a wrong size, without seals, or with a wrong name. */
static void refuses_forged_memory(void **state)
{
	enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };
	static const struct {
		const char *name;
		off_t bytes;
		int seals;
	} forged[] = {
		{ "gpuload-vmm:1:n:0:400000:00112233445566778899aabbccddeeff", M2, SEALS },
		{ "gpuload-vmm:1:n:0:200000:00112233445566778899aabbccddeeff", M2, F_SEAL_GROW },
		{ "gpuload-vmm:1:n:0:200000:00112233445566778899aabbccddeeff", M2, F_SEAL_SHRINK },
		{ "gpuload-vmm:1:n:0:200001:00112233445566778899aabbccddeeff", M2 + 1, SEALS },
		{ "gpuload-vmm:1:n:0:0:00112233445566778899aabbccddeeff", 0, SEALS },
		{ "gpuload-vmm:1:n:0:-200000:00112233445566778899aabbccddeeff", M2, SEALS },
		{ "gpuload-vmm:1:n:0:ffffffffffe00000:00112233445566778899aabbccddeeff", M2, SEALS },
		{ "gpuload-vmm:1:n:0:200000", M2, SEALS },
		{ "gpuload-vmm:1:h:0:200000:00112233445566778899aabbccddeeff", M2, SEALS },
		{ "gpuload-vmm:1:n:fffff:200000:00112233445566778899aabbccddeeff", M2, SEALS },
		{ "gpuload-vmm:2:n:0:200000:00112233445566778899aabbccddeeff", M2, SEALS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof forged / sizeof *forged; i++)
		refuses_and_closes(make_memfd(forged[i].name, forged[i].bytes, forged[i].seals));
}

static void refuses_memory_of_a_device_that_is_not_visible(void **state)
{
	CUmemGenericAllocationHandle h;
	int fd;

	(void)state;
	if (!on_software_driver())
		skip();
	fd = make_memfd("gpuload-vmm:1:d:00112233445566778899aabbccddeeff:200000:00", M2, F_SEAL_SHRINK | F_SEAL_GROW);
	fails(import(&h, fd), CUDA_ERROR_INVALID_DEVICE);
	close(fd);
}

static void imported_memory_remains_valid_after_its_owner_has_ended(void **state)
{
	struct request q = { OFFER, M2, 1234, RW };
	struct piece p = { .bytes = M2 };
	struct answer a;
	int fd;

	(void)state;
	assert_true(send_with_fd(others[1].socket, &q, sizeof q, -1));
	assert_true(receive_with_fd(others[1].socket, &a, sizeof a, &fd));
	ok(a.result);
	ok(import(&p.handle, fd));
	close(fd);
	kill(others[1].pid, SIGKILL);
	waitpid(others[1].pid, NULL, 0);
	ok(map_piece(&p, true, RW));
	assert_int_equal(*(uint32_t *)(uintptr_t)p.at, 1234);
	*(uint32_t *)(uintptr_t)p.at = 5;
	ok(drop_piece(&p));
}

static unsigned count_fds(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned count_mappings(void)
{
	unsigned n = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	assert_non_null(f);
	for (int c; (c = getc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

/* Every call that needs a descriptor fails, and existing memory remains usable. */
static void reports_out_of_memory_when_no_descriptor_is_left(void **state)
{
	struct rlimit old, none;
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { .type = DEVICE } };
	struct piece p;
	unsigned before;
	int fd, more;

	(void)state;
	if (!on_software_driver())
		skip();
	ok(make_piece(&p, DEVICE, M2, &fd));
	before = count_fds();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	fails(cuMemCreate(&h, M2, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	fails(cuMemExportToShareableHandle(&more, p.handle, FD, 0), CUDA_ERROR_OUT_OF_MEMORY);
	fails(import(&h, fd), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(count_fds(), before);
	ok(import(&h, fd));
	ok(cuMemRelease(h));
	close(fd);
	ok(drop_piece(&p));
}

static void cycle(CUmemLocationType type)
{
	struct piece mine, again = { .bytes = M2 };
	int fd;

	ok(make_piece(&mine, type, M2, &fd));
	ok(import(&again.handle, fd));
	ok(map_piece(&again, type == HOST_NUMA, RW));
	close(fd);
	ok(drop_piece(&mine));
	ok(drop_piece(&again));
}

static void ten_thousand_cycles_leak_nothing(void **state)
{
	unsigned fds, mappings;
	int n = on_software_driver() ? 10000 : 100;

	(void)state;
	cycle(DEVICE);
	cycle(HOST_NUMA);
	fds = count_fds();
	mappings = count_mappings();
	for (int i = 0; i < n; i++)
		cycle(i % 16 ? DEVICE : HOST_NUMA);
	assert_int_equal(count_fds(), fds);
	if (on_software_driver()) /* NVIDIA's driver keeps some descriptors */
		assert_int_equal(count_mappings(), mappings);
}

/* Run last: after the fault the other process' context is unusable. */
static void an_importer_with_read_access_cannot_write(void **state)
{
	struct piece p;
	uint32_t word = 6;
	int fd;

	(void)state;
	ok(make_piece(&p, DEVICE, M2, &fd));
	ok(cuMemcpyHtoD(p.at, &word, 4));
	ok(ask(&others[0], (struct request){ ATTACH, M2, 0, RO }, fd).result);
	fails(ask(&others[0], (struct request){ WRITE_WORD, 0, 7, RW }, -1).result, CUDA_ERROR_INVALID_VALUE);
	fails(ask(&others[0], (struct request){ KERNEL_STORES, 0, 7, RW }, -1).result, CUDA_ERROR_ILLEGAL_ADDRESS);
	ok(cuMemcpyDtoH(&word, p.at, 4));
	assert_int_equal(word, 6);
	close(fd);
	ok(drop_piece(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_memory_is_shared_by_two_processes),
		cmocka_unit_test(host_memory_is_shared_by_two_processes),
		cmocka_unit_test(an_imported_handle_cannot_be_exported),
		cmocka_unit_test(every_export_is_a_new_descriptor_that_the_caller_owns),
		cmocka_unit_test(refuses_to_export_memory_created_without_a_handle_type),
		cmocka_unit_test(refuses_descriptors_that_are_not_memory),
		cmocka_unit_test(refuses_forged_memory),
		cmocka_unit_test(refuses_memory_of_a_device_that_is_not_visible),
		cmocka_unit_test(imported_memory_remains_valid_after_its_owner_has_ended),
		cmocka_unit_test(reports_out_of_memory_when_no_descriptor_is_left),
		cmocka_unit_test(ten_thousand_cycles_leak_nothing),
		cmocka_unit_test(an_importer_with_read_access_cannot_write),
	};
	int failed;

	start_other(&others[0]);
	start_other(&others[1]);
	failed = cmocka_run_group_tests(tests, make_context, destroy_context);
	close(others[0].socket);
	waitpid(others[0].pid, NULL, 0);
	return failed;
}
