/* shm_steps.c — memory that two processes and a GPU share through a name in /dev/shm, step by step;
 * and what a killed process leaves behind.
 *
 *     ./shm_steps                    runs all steps; a second process reads the bytes that the GPU wrote
 *     ./shm_steps --kill 3           kills a process after step 3, and checks whether the name remains
 *     ./shm_steps --memfd [--kill 3] uses a file without a name (memfd_create)
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/context.h"

enum { BYTES = 1 << 16, VALUE = 42 };

struct lesson {
	bool memfd;
	char name[64]; /* name for shm_open(); the file is /dev/shm/NAME */
	int fd, to_reader;
	unsigned char *cpu;
	CUdeviceptr gpu;
	const gpul_driver *drv;
	gpul_context context;
};

static const char *name_to_unlink; /* NULL: there is no name to remove */

/* Called by exit(), but not when the process is killed, which is the subject of this lesson. */
static void unlink_at_exit(void)
{
	if (name_to_unlink)
		shm_unlink(name_to_unlink);
}

static void exit_with_errno(const char *what)
{
	fprintf(stderr, "shm_steps: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void exit_on_failure(gpul_status st, const gpul_error *err)
{
	if (st == GPUL_OK)
		return;
	fprintf(stderr, "shm_steps: %s\n", err->text);
	exit(st == GPUL_EUNSUPPORTED ? 77 : 1);
}

/* ---- the steps --------------------------------------------------------------------------- */

static void open_name(struct lesson *l)
{
	l->fd = shm_open(l->name, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (l->fd < 0)
		exit_with_errno("shm_open");
	name_to_unlink = l->name;
	atexit(unlink_at_exit);
	printf("created /dev/shm%s, which any process can open\n", l->name);
}

static void open_memfd(struct lesson *l)
{
	l->fd = memfd_create("lesson", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->fd < 0)
		exit_with_errno("memfd_create");
	printf("created a file without a name, which exists until the last user closes it\n");
}

static void allocate_pages(struct lesson *l)
{
	/* ftruncate() allocates no pages: if /dev/shm is full, the first access is SIGBUS.
	 * posix_fallocate() fails here instead. */
	errno = posix_fallocate(l->fd, 0, BYTES);
	if (errno)
		exit_with_errno("posix_fallocate");
	printf("allocated pages for %d bytes\n", BYTES);
}

static void map_pages(struct lesson *l)
{
	l->cpu = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (l->cpu == MAP_FAILED)
		exit_with_errno("mmap");
	printf("mapped for the CPU at %p\n", (void *)l->cpu);
}

static void register_pages(struct lesson *l)
{
	gpul_error err = { 0 };

	exit_on_failure(gpul_driver_open(GPUL_DRIVER_AUTO, &l->drv, &err), &err);
	exit_on_failure(gpul_context_open(l->drv, 0, &l->context, &err), &err);
	exit_on_failure(gpul_cu(l->drv, &err, cuMemHostRegister(l->cpu, BYTES, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)),
			&err);
	printf("pinned the pages, and mapped them for the GPU\n");
}

static void write_on_gpu(struct lesson *l)
{
	gpul_error err = { 0 };

	exit_on_failure(gpul_cu(l->drv, &err, cuMemHostGetDevicePointer(&l->gpu, l->cpu, 0)), &err);
	exit_on_failure(gpul_cu(l->drv, &err, cuMemsetD8Async(l->gpu, VALUE, BYTES, NULL)), &err);
	exit_on_failure(gpul_cu(l->drv, &err, cuCtxSynchronize()), &err);
	printf("mapped for the GPU at %#llx; the GPU has written %d to each byte\n", (unsigned long long)l->gpu, VALUE);
}

/* ---- the other process ------------------------------------------------------------------- */

/* Send a byte and, unless fd is -1, the descriptor fd. */
static void send_byte(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { "!", 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
	}
	if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1)
		exit_with_errno("sendmsg");
}

static bool receive_byte(int socket, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	struct cmsghdr *head;

	*fd = -1;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return false;
	head = CMSG_FIRSTHDR(&message);
	if (head)
		memcpy(fd, CMSG_DATA(head), sizeof *fd);
	return true;
}

/* The second process: opens the name or receives the descriptor, sums the bytes, and sends the sum. */
static void sum_bytes(const char *name, int socket)
{
	unsigned long sum = 0;
	const unsigned char *p;
	int fd;

	if (!receive_byte(socket, &fd))
		return; /* the first process has ended */
	if (fd < 0)
		fd = shm_open(name, O_RDONLY, 0);
	p = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		exit_with_errno("the other process");
	for (int i = 0; i < BYTES; i++)
		sum += p[i];
	if (write(socket, &sum, sizeof sum) != sizeof sum)
		exit_with_errno("write");
}

/* Called before a driver is opened, because NVIDIA's driver cannot be used after a fork. */
static int start_reader(const struct lesson *l)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		exit_with_errno("socketpair");
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		exit_with_errno("fork");
	if (pid == 0) {
		close(ends[0]);
		sum_bytes(l->name, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	return ends[0];
}

static void request_sum(struct lesson *l)
{
	unsigned long sum = 0;

	send_byte(l->to_reader, l->memfd ? l->fd : -1);
	if (read(l->to_reader, &sum, sizeof sum) != sizeof sum || sum != (unsigned long)VALUE * BYTES) {
		fprintf(stderr, "shm_steps: the other process has the sum %lu, expected %lu\n", sum, (unsigned long)VALUE * BYTES);
		exit(1);
	}
	printf("its sum is %lu = %d x %d, as the GPU wrote\n", sum, VALUE, BYTES);
}

static void remove_name(struct lesson *l)
{
	if (l->memfd) {
		printf("there is no name to remove\n");
		return;
	}
	if (shm_unlink(l->name))
		exit_with_errno("shm_unlink");
	name_to_unlink = NULL;
	printf("removed the name; the memory exists until its last user ends: byte 0 is still %d\n", l->cpu[0]);
}

/* ---- all steps, or some of them ---------------------------------------------------------------- */

static const struct step {
	const char *shm, *memfd;
	void (*with_name)(struct lesson *), (*without)(struct lesson *);
} steps[] = {
	{ "shm_open", "memfd_create", open_name, open_memfd },
	{ "posix_fallocate", "posix_fallocate", allocate_pages, allocate_pages },
	{ "mmap", "mmap", map_pages, map_pages },
	{ "cuMemHostRegister", "cuMemHostRegister", register_pages, register_pages },
	{ "cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer", write_on_gpu, write_on_gpu },
	{ "another process opens it", "another process gets it", request_sum, request_sum },
	{ "shm_unlink", "the name", remove_name, remove_name },
};
enum { N_STEPS = sizeof steps / sizeof steps[0] };

static const char *step_name(const struct lesson *l, int step)
{
	return l->memfd ? steps[step - 1].memfd : steps[step - 1].shm;
}

static void run_steps(struct lesson *l, int n_steps)
{
	l->to_reader = start_reader(l);
	for (int i = 1; i <= n_steps; i++) {
		printf("%d  %-26s", i, step_name(l, i));
		(l->memfd ? steps[i - 1].without : steps[i - 1].with_name)(l);
		fflush(stdout);
	}
}

static void clean_up(struct lesson *l)
{
	l->drv->cuMemHostUnregister(l->cpu);
	gpul_context_close(&l->context);
	munmap(l->cpu, BYTES);
	close(l->fd);
	close(l->to_reader);
}

/* Run the steps up to `step` in a separate process that then kills itself.  Returns whether the name
 * remains. */
static bool kill_after(struct lesson *l, int step)
{
	char path[80];
	struct stat left;
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		run_steps(l, step);
		raise(SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid)
		exit_with_errno("waitpid");
	if (!WIFSIGNALED(status))
		exit(WEXITSTATUS(status)); /* the child has printed its error */
	snprintf(path, sizeof path, "/dev/shm%s", l->name);
	printf("killed after %d  %-26s", step, step_name(l, step));
	if (stat(path, &left)) {
		puts("nothing is left");
		return false;
	}
	printf("%s is left, %lld bytes\n", path, (long long)left.st_size);
	shm_unlink(l->name);
	return true;
}

int main(int argc, char **argv)
{
	struct lesson l = { .fd = -1 };
	int kill_step = 0;
	bool kill_all = false, good = true;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--memfd"))
			l.memfd = true;
		else if (!strcmp(argv[i], "--kill") && i + 1 < argc && !strcmp(argv[i + 1], "all"))
			kill_all = argv[++i] != NULL;
		else if (!strcmp(argv[i], "--kill") && i + 1 < argc)
			good &= (kill_step = atoi(argv[++i])) >= 1 && kill_step <= N_STEPS;
		else
			good = false;
	}
	if (!good) {
		fprintf(stderr, "usage: shm_steps [--memfd] [--kill 1...%d | --kill all]\n", N_STEPS);
		return 2;
	}
	snprintf(l.name, sizeof l.name, "/gpuload-lesson-%d", (int)getpid());
	for (int i = 1; kill_all && i <= N_STEPS; i++)
		kill_after(&l, i);
	if (kill_step)
		kill_after(&l, kill_step);
	if (kill_all || kill_step)
		return 0;
	run_steps(&l, N_STEPS);
	clean_up(&l);
	return 0;
}
