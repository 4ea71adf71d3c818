/* epoll.c — manages the server's epoll descriptor: the sockets and processes that it watches, and its timer. */
#include "ipc/server_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

gpul_status gpul_ipc_sys_failed(const char *what, gpul_error *err)
{
	return gpul_fail(err, GPUL_ESYS, errno, "%s: %s", what, strerror(errno));
}

bool gpul_ipc_epoll_add(gpul_ipc_server *s, int fd, enum source source, size_t index)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | index };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

void gpul_ipc_epoll_set_timer(gpul_ipc_server *s, uint64_t at_ns)
{
	struct itimerspec t = { .it_value = { .tv_sec = (time_t)(at_ns / 1000000000), .tv_nsec = (long)(at_ns % 1000000000) } };

	/* Do not postpone the timer: if it expires too early, the deadlines are checked once more, but setting it for each
	 * connection would cost a system call each. */
	if (s->timer_ns && s->timer_ns <= at_ns)
		return;
	s->timer_ns = at_ns;
	(void)timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &t, NULL); /* cannot fail, because the arguments are valid */
}

gpul_status gpul_ipc_epoll_open(gpul_ipc_server *s, gpul_error *err)
{
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return gpul_ipc_sys_failed("epoll_create1", err);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (s->timer < 0 || !gpul_ipc_epoll_add(s, s->timer, SOURCE_TIMER, 0))
		return gpul_ipc_sys_failed("timerfd", err);
	return GPUL_OK;
}

void gpul_ipc_epoll_listen(gpul_ipc_server *s, bool on)
{
	struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.u64 = (uint64_t)SOURCE_LISTENER << 32 };

	(void)epoll_ctl(s->epoll, EPOLL_CTL_MOD, s->listener, &e);
}

void gpul_ipc_epoll_remove(gpul_ipc_server *s, int fd)
{
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
}
