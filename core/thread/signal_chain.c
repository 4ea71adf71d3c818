/* signal_chain.c — passes a signal on to the previous handler. */
#include "core/thread/signal_chain.h"

#include <signal.h>
#include <stddef.h>

void gpul_signal_pass_on(const struct sigaction *previous, int signal, void *info, void *context)
{
	if (previous->sa_flags & SA_SIGINFO) {
		previous->sa_sigaction(signal, info, context);
	} else if (previous->sa_handler != SIG_DFL && previous->sa_handler != SIG_IGN) {
		previous->sa_handler(signal);
	} else if (((const siginfo_t *)info)->si_code > 0) { /* the signal is a fault: after this handler returns, the access is
							      * repeated, and now ends the process */
		sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	} else if (previous->sa_handler == SIG_DFL) { /* another process has sent the signal: send it again, now with the default action */
		sigaction(signal, previous, NULL);
		raise(signal);
	}
}
