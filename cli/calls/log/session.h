/* session.h — runs a program with a log of its CUDA calls. */
#ifndef GPULOAD_CLI_CALLS_LOG_SESSION_H
#define GPULOAD_CLI_CALLS_LOG_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct calls_options {
	const char *filter, *format, *output; /* NULL: the default, which is all calls, format text, and stderr */
	bool summary;
	const char *command; /* name of the gpuload command, for messages */
};

/** Check the options without running anything.
 *
 * @options  as given
 * Errors  GPUL_EINVAL an unknown call, class or format */
gpul_status calls_check(const struct calls_options *options, gpul_error *err);

/** Run a program and write the log of its calls, and of the processes that it starts.
 *
 * Signals are passed on to the program. If a signal ends the program, the same signal ends this process.
 *
 * @options  as given
 * @words    the program and its arguments
 * @n_words  their number
 * @status   the exit status of the program
 * Errors  GPUL_EINVAL as calls_check(); GPUL_ESYS the program cannot be started, or the log cannot be written; GPUL_EUNSUPPORTED the
 *         libraries that record calls are missing
 * Threads the main thread: changes the environment and the handlers of signals */
gpul_status calls_run(const struct calls_options *options, const char *const *words, size_t n_words, int *status, gpul_error *err);

#endif
