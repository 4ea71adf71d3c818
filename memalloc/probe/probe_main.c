/* probe_main.c — the program gpuload-probe: the child process of gpul_mem_probe().
 *
 * Opens the driver that $GPULOAD_DRIVER names, then answers questions on descriptor 3 until it is closed.
 * A driver call that crashes ends only this process, while its parent continues. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "driver/context.h"
#include "memalloc/probe/probe_internal.h"

/* Receive a question and its descriptor (-1: none); false: there are no more questions. */
static bool receive_question(struct probe_question *q, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { q, sizeof *q };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(PROBE_FD, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return n == sizeof *q;
}

static bool send_answer(const gpul_error *err)
{
	struct probe_answer a;

	memset(&a, 0, sizeof a);
	a.protocol = PROBE_PROTOCOL;
	a.err = *err;
	return send(PROBE_FD, &a, sizeof a, MSG_NOSIGNAL) == sizeof a;
}

/* Open a context on the device of a question.  A context on the same device stays open for the next question, because opening is slow. */
static gpul_status open_context(const gpul_driver *drv, int device, gpul_context *c, gpul_error *err)
{
	CUdevice wanted;
	gpul_status st = gpul_cu(drv, err, cuDeviceGet(&wanted, device));

	if (st || (c->handle && c->device == wanted))
		return st;
	gpul_context_close(c);
	return gpul_context_open(drv, device, c, err);
}

int main(void)
{
	const gpul_driver *drv = NULL;
	gpul_context context = { 0 };
	struct probe_question q;
	gpul_error err = { 0 };
	int type = 0, fd;
	socklen_t type_bytes = sizeof type;

	if (getsockopt(PROBE_FD, SOL_SOCKET, SO_TYPE, &type, &type_bytes) || type != SOCK_SEQPACKET) {
		fprintf(stderr, "gpuload-probe: only gpuload can start this program: run gpuload devices --memory\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* when the parent ends, the kernel kills this process, even if it hangs in a driver */
	gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err);
	if (!send_answer(&err) || err.status)
		return 1;
	while (receive_question(&q, &fd)) {
		err = (gpul_error){ 0 };
		if (open_context(drv, q.device, &context, &err) == GPUL_OK)
			gpul_probe_answer(drv, &q, fd, &err);
		if (fd >= 0)
			close(fd);
		if (!send_answer(&err))
			return 1;
	}
	gpul_context_close(&context);
	return 0;
}
