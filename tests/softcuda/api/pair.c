/* pair.c — start the two processes of a test, and pass messages between them. */
#include "tests/softcuda/api/pair.h"

#include "tests/softcuda/api/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void must_hold(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: in process %d: %s is false\n", file, line, getpid(), what);
	_exit(1);
}

void must_return(CUresult got, CUresult want, const char *call, const char *file, int line)
{
	const char *name = "?", *wanted = "?";

	if (got == want)
		return;
	cuGetErrorName(got, &name);
	cuGetErrorName(want, &wanted);
	fprintf(stderr, "%s:%d: in process %d: %s is %s, not %s\n", file, line, getpid(), call, name, wanted);
	_exit(1);
}

void make_sockets(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}

pid_t start_side(pair_side *side, int peer, int close_this)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid)
		return pid;
	alarm(60); /* fail the test if the process hangs */
	close(close_this);
	side(peer);
	exit(0); /* exit(), not _exit(), so that a leak sanitizer checks the process */
}

void end_side(pid_t side)
{
	int status = -1;

	assert_int_equal(waitpid(side, &status, 0), side);
	assert_int_equal(status, 0);
}

void run_pair(pair_side *owner, pair_side *other)
{
	pid_t sides[2];
	int fd[2];

	make_sockets(fd);
	sides[0] = start_side(owner, fd[0], fd[1]);
	sides[1] = start_side(other, fd[1], fd[0]);
	close(fd[0]);
	close(fd[1]);
	end_side(sides[0]);
	end_side(sides[1]);
}

CUcontext init_process(int device)
{
	CUcontext ctx;
	CUdevice dev;

	must_ok(cuInit(0));
	must_ok(cuDeviceGet(&dev, device));
	must_ok(cuCtxCreate(&ctx, NULL, 0, dev));
	return ctx;
}

void send_bytes(int peer, const void *bytes, size_t n_bytes)
{
	must(send(peer, bytes, n_bytes, MSG_NOSIGNAL) == (ssize_t)n_bytes);
}

void receive_bytes(int peer, void *bytes, size_t n_bytes)
{
	must(recv(peer, bytes, n_bytes, MSG_WAITALL) == (ssize_t)n_bytes);
}

void pass_turn(int peer)
{
	send_bytes(peer, "t", 1);
}

void await_turn(int peer)
{
	char turn = 0;

	receive_bytes(peer, &turn, 1);
	must(turn == 't');
}

int open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	must(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

bool has_line(const char *path, const char *part)
{
	FILE *f = fopen(path, "re");
	char line[512];
	bool found = false;

	must(f != NULL);
	while (!found && fgets(line, sizeof line, f))
		found = strstr(line, part) != NULL;
	fclose(f);
	return found;
}
