/* shm_steps.c — the classic way to memory that two processes and a GPU share, step by step; and
 * what a killed process leaves behind.
 *
 *     ./shm_steps                    all steps, a second process reads what the GPU wrote
 *     ./shm_steps --kill 3           a process is killed after step 3: what is left?
 *     ./shm_steps --memfd [--kill 3] the same without a name
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
	char name[64]; /* for shm_open; the file is /dev/shm/NAME */
	int fd, to_reader;
	unsigned char *cpu;
	CUdeviceptr gpu;
	const gpul_driver *drv;
	gpul_context context;
};

static const char *name_to_drop; /* NULL: none is there */

/* At exit().  Whoever is killed does not come here: that is what the lesson is about. */
static void drop_at_exit(void)
{
	if (name_to_drop)
		shm_unlink(name_to_drop);
}

static void give_up(const char *what)
{
	fprintf(stderr, "shm_steps: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void need(gpul_status st, const gpul_error *err)
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
		give_up("shm_open");
	name_to_drop = l->name;
	atexit(drop_at_exit);
	printf("/dev/shm%s is there, for everybody to see\n", l->name);
}

static void open_nameless(struct lesson *l)
{
	l->fd = memfd_create("lesson", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (l->fd < 0)
		give_up("memfd_create");
	printf("a file of RAM without a name: it lives as long as somebody holds it\n");
}

static void give_size(struct lesson *l)
{
	/* ftruncate() promises nothing: in a /dev/shm that is full, the first touch is SIGBUS.
	 * This fails here and now. */
	errno = posix_fallocate(l->fd, 0, BYTES);
	if (errno)
		give_up("posix_fallocate");
	printf("%d bytes, and pages for them\n", BYTES);
}

static void map(struct lesson *l)
{
	l->cpu = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (l->cpu == MAP_FAILED)
		give_up("mmap");
	printf("the CPU sees them at %p\n", (void *)l->cpu);
}

static void tell_driver(struct lesson *l)
{
	gpul_error err = { 0 };

	need(gpul_driver_open(GPUL_DRIVER_AUTO, &l->drv, &err), &err);
	need(gpul_context_open(l->drv, 0, &l->context, &err), &err);
	need(gpul_cu(l->drv, &err,
		     cuMemHostRegister(l->cpu, BYTES,
				       CU_MEMHOSTREGISTER_PORTABLE |
					       CU_MEMHOSTREGISTER_DEVICEMAP)),
	     &err);
	printf("the pages stay where they are, the GPU may reach them\n");
}

static void ask_address(struct lesson *l)
{
	gpul_error err = { 0 };

	need(gpul_cu(l->drv, &err, cuMemHostGetDevicePointer(&l->gpu, l->cpu, 0)), &err);
	need(gpul_cu(l->drv, &err, cuMemsetD8Async(l->gpu, VALUE, BYTES, NULL)), &err);
	need(gpul_cu(l->drv, &err, cuCtxSynchronize()), &err);
	printf("the GPU sees them at %#llx, and has written %d to each\n",
	       (unsigned long long)l->gpu, VALUE);
}

/* ---- the other process ------------------------------------------------------------------- */

/* A byte; with it goes the descriptor of what has no name. */
static void send_byte(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof fd),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	struct iovec part = { "!", 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
	}
	if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1)
		give_up("sendmsg");
}

static bool receive_byte(int socket, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *head;

	*fd = -1;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
		return false;
	head = CMSG_FIRSTHDR(&message);
	if (head)
		memcpy(fd, CMSG_DATA(head), sizeof *fd);
	return true;
}

/* Opens the name, or takes the descriptor, and adds up what is there. */
static void read_it(const char *name, int socket)
{
	unsigned long sum = 0;
	const unsigned char *p;
	int fd;

	if (!receive_byte(socket, &fd))
		return; /* the first process has ended before */
	if (fd < 0)
		fd = shm_open(name, O_RDONLY, 0);
	p = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		give_up("the other process");
	for (int i = 0; i < BYTES; i++)
		sum += p[i];
	if (write(socket, &sum, sizeof sum) != sizeof sum)
		give_up("write");
}

/* Forked before a driver is opened: NVIDIA's does not survive a fork. */
static int start_reader(const struct lesson *l)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		give_up("socketpair");
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (pid == 0) {
		close(ends[0]);
		read_it(l->name, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	return ends[0];
}

static void have_it_read(struct lesson *l)
{
	unsigned long sum = 0;

	send_byte(l->to_reader, l->memfd ? l->fd : -1);
	if (read(l->to_reader, &sum, sizeof sum) != sizeof sum ||
	    sum != (unsigned long)VALUE * BYTES) {
		fprintf(stderr, "shm_steps: the other process adds up %lu, not %lu\n", sum,
			(unsigned long)VALUE * BYTES);
		exit(1);
	}
	printf("it adds up %lu = %d x %d, as the GPU wrote\n", sum, VALUE, BYTES);
}

static void drop_name(struct lesson *l)
{
	if (l->memfd) {
		printf("there is none: nothing to do, nothing to forget\n");
		return;
	}
	if (shm_unlink(l->name))
		give_up("shm_unlink");
	name_to_drop = NULL;
	printf("the name is gone; the memory goes with its last user: byte 0 is still %d\n",
	       l->cpu[0]);
}

/* ---- all of them, or some ---------------------------------------------------------------- */

static const struct step {
	const char *shm, *memfd;
	void (*with_name)(struct lesson *), (*without)(struct lesson *);
} steps[] = {
	{ "shm_open", "memfd_create", open_name, open_nameless },
	{ "posix_fallocate", "posix_fallocate", give_size, give_size },
	{ "mmap", "mmap", map, map },
	{ "cuMemHostRegister", "cuMemHostRegister", tell_driver, tell_driver },
	{ "cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer", ask_address, ask_address },
	{ "another process opens it", "another process gets it", have_it_read, have_it_read },
	{ "shm_unlink", "the name", drop_name, drop_name },
};
enum { N_STEPS = sizeof steps / sizeof steps[0] };

static const char *step_name(const struct lesson *l, int step)
{
	return l->memfd ? steps[step - 1].memfd : steps[step - 1].shm;
}

static void run(struct lesson *l, int n_steps)
{
	l->to_reader = start_reader(l);
	for (int i = 1; i <= n_steps; i++) {
		printf("%d  %-26s", i, step_name(l, i));
		(l->memfd ? steps[i - 1].without : steps[i - 1].with_name)(l);
		fflush(stdout);
	}
}

static void undo(struct lesson *l)
{
	l->drv->cuMemHostUnregister(l->cpu);
	gpul_context_close(&l->context);
	munmap(l->cpu, BYTES);
	close(l->fd);
	close(l->to_reader);
}

/* A process of its own goes so far and is killed; then look.  Returns whether something is
 * left. */
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
		run(l, step);
		raise(SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid)
		give_up("waitpid");
	if (!WIFSIGNALED(status))
		exit(WEXITSTATUS(status)); /* it has said why */
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
		else if (!strcmp(argv[i], "--kill") && i + 1 < argc &&
			 !strcmp(argv[i + 1], "all"))
			kill_all = argv[++i] != NULL;
		else if (!strcmp(argv[i], "--kill") && i + 1 < argc)
			good &= (kill_step = atoi(argv[++i])) >= 1 && kill_step <= N_STEPS;
		else
			good = false;
	}
	if (!good) {
		fprintf(stderr, "usage: shm_steps [--memfd] [--kill 1...%d | --kill all]\n",
			N_STEPS);
		return 2;
	}
	snprintf(l.name, sizeof l.name, "/gpuload-lesson-%d", (int)getpid());
	for (int i = 1; kill_all && i <= N_STEPS; i++)
		kill_after(&l, i);
	if (kill_step)
		kill_after(&l, kill_step);
	if (kill_all || kill_step)
		return 0;
	run(&l, N_STEPS);
	undo(&l);
	return 0;
}
