/* thread.h — starts the library's threads in the program's process.
 *
 * A new thread inherits the signal mask and floating-point environment of its creator. The library's threads must not depend on them. */
#ifndef GPULOAD_CORE_THREAD_THREAD_H
#define GPULOAD_CORE_THREAD_THREAD_H

#include <fenv.h>
#include <pthread.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Start a thread with
 *    - all signals blocked, so that the program's signal handlers run on the program's own threads; but not SIGSEGV and SIGBUS,
 *      because Linux ends the process when a thread that blocks them makes an invalid access, even if a handler is installed;
 *    - the default floating-point environment: round to nearest, subnormal numbers, no traps.  The program may have
 *      called fesetround(), and a program linked with -ffast-math treats subnormal numbers as 0;
 *    - a name, for debuggers, ps and top: "gpul-" and the thread's task, at most 15 characters.
 *
 * @attr  NULL: default attributes
 * Returns 0, or the error number of pthread_create().  Any thread may call. */
int gpul_thread_start(pthread_t *out, const pthread_attr_t *attr, const char *name, void *(*run)(void *argument), void *argument);

/** Save the calling thread's floating-point environment and select the default one, for floating-point results that must
 * not depend on the caller.  End with gpul_float_restore(). */
void gpul_float_default(fenv_t *saved);
void gpul_float_restore(const fenv_t *saved);

#ifdef __cplusplus
}
#endif

#endif
