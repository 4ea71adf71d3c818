/* thread.c — starts threads with their own signal mask, floating-point environment and name. */
#include "core/thread/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct start {
	void *(*run)(void *argument);
	void *argument;
	char name[16]; /* Linux limits a name to 15 characters and a NUL */
};

static void *thread_main(void *argument)
{
	struct start *from = argument, s = *from;

	free(from);
	pthread_setname_np(pthread_self(), s.name);
	fesetenv(FE_DFL_ENV);
	return s.run(s.argument);
}

/* The signals are blocked before the thread is created, so that it never runs with the caller's mask. */
int gpul_thread_start(pthread_t *out, const pthread_attr_t *attr, const char *name, void *(*run)(void *argument), void *argument)
{
	struct start *s = malloc(sizeof *s);
	sigset_t all, before;
	int error;

	if (!s)
		return ENOMEM;
	*s = (struct start){ .run = run, .argument = argument };
	snprintf(s->name, sizeof s->name, "%s", name);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(out, attr, thread_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		free(s);
	return error;
}

void gpul_float_default(fenv_t *saved)
{
	fegetenv(saved);
	fesetenv(FE_DFL_ENV);
}

void gpul_float_restore(const fenv_t *saved)
{
	fesetenv(saved);
}
