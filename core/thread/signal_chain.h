/* signal_chain.h — lets a library's signal handler pass the signals that it does not handle on to the previous handler. */
#ifndef GPULOAD_CORE_THREAD_SIGNAL_CHAIN_H
#define GPULOAD_CORE_THREAD_SIGNAL_CHAIN_H

struct sigaction;

#ifdef __cplusplus
extern "C" {
#endif

/** Do what the process would have done without the calling handler: call the handler that was replaced or, if there was none, let
 * the repeated access end the process.
 *
 * @previous  what sigaction() returned when the calling handler was installed; the other parameters are those of the calling
 *            handler, which must return after this call
 * Threads   for signal handlers: takes no lock
 * Source    POSIX sigaction() */
void gpul_signal_pass_on(const struct sigaction *previous, int signal, void *info, void *context);

#ifdef __cplusplus
}
#endif

#endif
