/* stop.c — see stop.h. */
#include "cli/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int wake_fd = -1;
static volatile sig_atomic_t asked_by;

/* A handler and not signalfd: a driver's threads, which were there before, have these signals unblocked, and one of
 * them would take the signal and end the process. */
static void on_signal(int number)
{
	const uint64_t one = 1;
	int saved = errno;

	asked_by = number;
	if (write(wake_fd, &one, sizeof one) < 0) { /* it cannot: an eventfd takes 2^64 - 2 of them */
	}
	errno = saved;
}

gpul_status stop_begin(int *fd, gpul_error *err)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND }, before;

	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake_fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "no descriptor to hear of signals: %s",
				 strerror(errno));
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		if (sigaction(caught[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(caught[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	*fd = wake_fd;
	return GPUL_OK;
}

const char *stop_asked(void)
{
	switch (asked_by) {
	case 0:
		return NULL;
	case SIGINT:
		return "SIGINT";
	case SIGTERM:
		return "SIGTERM";
	default:
		return "SIGHUP";
	}
}
