/* cli_stop.c — catch signals and pass them to poll() through an eventfd. */
#include "cli/lib/cli_stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int wake_fd = -1;
static volatile sig_atomic_t caught_signal; /* the signal that requested the stop; 0: none yet */
static bool reader_gone;                    /* stdout is a pipe whose reader has closed it */

/* A handler is used instead of a signalfd, because the driver's threads, which exist already, do not block these signals: one of
 * them would receive the signal, and the process would end. */
static void on_signal(int number)
{
	const uint64_t one = 1;
	int saved = errno;

	caught_signal = number;
	if (write(wake_fd, &one, sizeof one) < 0) {
		/* not possible: the counter of an eventfd overflows only at 2^64 - 1 */
	}
	errno = saved;
}

static gpul_status begin(gpul_error *err)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND }, before;

	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create a descriptor for signals: %s", strerror(errno));
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		if (sigaction(caught[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(caught[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	return GPUL_OK;
}

gpul_status stop_begin(gpul_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	gpul_status st;

	(void)pthread_mutex_lock(&lock);
	st = wake_fd < 0 ? begin(err) : GPUL_OK;
	(void)pthread_mutex_unlock(&lock);
	return st;
}

gpul_status stop_wait(int fd, int timeout_ms, gpul_error *err)
{
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = wake_fd, .events = POLLIN },
		{ .fd = STDOUT_FILENO, .events = 0 }, /* no events requested, because poll() always reports POLLERR */
	};

	if (poll(fds, 3, timeout_ms) < 0 && errno != EINTR)
		return gpul_fail(err, GPUL_ESYS, errno, "poll: %s", strerror(errno));
	if (fds[2].revents & POLLERR)
		reader_gone = true;
	return GPUL_OK;
}

int stop_signal(void)
{
	return caught_signal;
}

const char *stop_requested(void)
{
	switch (caught_signal) {
	case 0:
		return reader_gone ? "the reader of its output closed the pipe" : NULL;
	case SIGINT:
		return "SIGINT";
	case SIGTERM:
		return "SIGTERM";
	default:
		return "SIGHUP";
	}
}
