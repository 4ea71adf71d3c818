/* support.c — helpers for the tests of memalloc, and the peer process that imports memory. */
#include "tests/memalloc/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

const gpul_driver *open_driver(gpul_context *c)
{
	const gpul_driver *drv = NULL;
	gpul_error err = { 0 };

	if (gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err) || gpul_context_open(drv, 0, c, &err))
		fail_msg("%s", err.text);
	return drv;
}

gpul_mem_desc wanted(gpul_mem_kind kind, size_t bytes)
{
	static const int device = 0;

	return (gpul_mem_desc){ .kind = kind,
				.bytes = bytes,
				.node = GPUL_MEM_NODE_OF_GPU,
				.devices = &device,
				.n_devices = 1,
				.exportable = kind != GPUL_MEM_PINNED };
}

unsigned char pattern(unsigned seed, size_t i)
{
	return (unsigned char)(seed * 31 + i * 7 + (i >> 12));
}

void cpu_fill(void *at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)at)[i] = pattern(seed, i);
}

bool cpu_sees(const void *at, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (((const unsigned char *)at)[i] != pattern(seed, i))
			return false;
	return true;
}

void gpu_fill(const gpul_driver *drv, CUdeviceptr at, size_t bytes, unsigned seed)
{
	unsigned char *copy = malloc(bytes);

	assert_non_null(copy);
	cpu_fill(copy, bytes, seed);
	assert_int_equal(drv->cuMemcpyHtoD(at, copy, bytes), CUDA_SUCCESS);
	assert_int_equal(drv->cuCtxSynchronize(), CUDA_SUCCESS);
	free(copy);
}

bool gpu_sees(const gpul_driver *drv, CUdeviceptr at, size_t bytes, unsigned seed)
{
	unsigned char *copy = calloc(1, bytes);
	bool there;

	assert_non_null(copy);
	assert_int_equal(drv->cuMemcpyDtoH(copy, at, bytes), CUDA_SUCCESS);
	there = cpu_sees(copy, bytes, seed);
	free(copy);
	return there;
}

/* ---- the peer process ------------------------------------------------------------ */

struct peer {
	pid_t pid;
	int to;
};

struct question {
	gpul_mem_offer offer;
	gpul_mem_handle handle;
	bool has_handle, read_only;
	unsigned seed;
};

/* Receive a question and its descriptor (-1: none); false: the other end is closed. */
static bool receive_question(int from, struct question *q, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { q, sizeof *q };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	struct cmsghdr *c;

	*fd = -1;
	if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != sizeof *q)
		return false;
	c = CMSG_FIRSTHDR(&message);
	if (c)
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return true;
}

/* True when a store is refused.  A system call stores the byte, and fails with EFAULT instead of raising a signal. */
static bool store_is_refused(void *at)
{
	bool refused;
	int ends[2];

	if (pipe(ends) || write(ends[1], "x", 1) != 1)
		_exit(1);
	refused = read(ends[0], at, 1) < 0 && errno == EFAULT;
	close(ends[0]);
	close(ends[1]);
	return refused;
}

static void try_to_store(const gpul_driver *drv, gpul_mem *m, peer_answer *a)
{
	const int word = 0;
	const gpul_mem_kind kind = gpul_mem_about(m)->kind;

	a->store_refused = gpul_mem_cpu(m) && store_is_refused(gpul_mem_cpu(m));
	/* NVIDIA's driver can copy into registered memory with the CPU, which would raise SIGSEGV. */
	a->copy_tried = drv->interprets || kind == GPUL_MEM_HOST_NUMA || kind == GPUL_MEM_DEVICE;
	a->copy_refused = a->copy_tried && drv->cuMemcpyHtoD(gpul_mem_gpu(m), &word, sizeof word) != CUDA_SUCCESS;
}

static void check_memory(const gpul_driver *drv, gpul_mem *m, const struct question *q, peer_answer *a)
{
	const size_t bytes = q->offer.bytes;

	a->gpu_saw = gpu_sees(drv, gpul_mem_gpu(m), bytes, q->seed);
	a->cpu_saw = !gpul_mem_cpu(m) || cpu_sees(gpul_mem_cpu(m), bytes, q->seed);
	if (q->read_only)
		try_to_store(drv, m, a);
	else
		gpu_fill(drv, gpul_mem_gpu(m), bytes, q->seed + 1);
}

static void answer_question(const gpul_driver *drv, const struct question *q, int fd, peer_answer *a)
{
	gpul_mem_desc desc = wanted(q->offer.kind, q->offer.bytes);
	gpul_mem *m = NULL;
	size_t before = count_fds();

	desc.read_only = q->read_only;
	if (gpul_mem_import(drv, &q->offer, fd, q->has_handle ? &q->handle : NULL, &desc, &m, &a->err) == GPUL_OK)
		check_memory(drv, m, q, a);
	gpul_mem_destroy(m);
	a->leaked_fds = count_fds() - before;
}

static void run_peer(int from)
{
	const gpul_driver *drv = NULL;
	gpul_context c;
	struct question q;
	int fd;

	if (gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL) || gpul_context_open(drv, 0, &c, NULL))
		_exit(1); /* not an assertion, because cmocka runs in the parent */

	while (receive_question(from, &q, &fd)) {
		peer_answer a = { 0 };

		answer_question(drv, &q, fd, &a);
		if (fd >= 0)
			close(fd);
		if (send(from, &a, sizeof a, MSG_NOSIGNAL) != sizeof a)
			break;
	}
	gpul_context_close(&c);
}

struct peer *peer_start(void)
{
	struct peer *p = calloc(1, sizeof *p);
	int ends[2];

	assert_non_null(p);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (p->pid == 0) {
		close(ends[0]);
		free(p);
		run_peer(ends[1]);
		close(ends[1]);
		exit(0);
	}
	close(ends[1]);
	p->to = ends[0];
	return p;
}

void peer_stop(struct peer *p)
{
	int status = 0;

	close(p->to);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	free(p);
}

peer_answer peer_import(struct peer *p, const gpul_mem_offer *offer, int fd, const gpul_mem_handle *handle, bool read_only, unsigned seed)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct question q = { .offer = *offer, .has_handle = handle, .read_only = read_only, .seed = seed };
	struct iovec part = { &q, sizeof q };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	peer_answer a = { 0 };

	if (handle)
		q.handle = *handle;
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		control.head.cmsg_len = CMSG_LEN(sizeof fd);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	assert_int_equal(sendmsg(p->to, &message, MSG_NOSIGNAL), sizeof q);
	assert_int_equal(recv(p->to, &a, sizeof a, 0), sizeof a);
	return a;
}
