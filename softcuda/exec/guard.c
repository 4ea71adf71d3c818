/* guard.c — recovers from accesses to unmapped memory.
 *
 *     gpul_guarded(copy) ── sigsetjmp ── memmove ── × SIGSEGV
 *                               ^                      │ handler, on the same thread
 *                               └──── siglongjmp ──────┘
 *
 * Leaving a signal handler by a jump is safe because guarded code only moves bytes. The handlers stay installed, so that a guard
 * costs only two stores and a sigsetjmp() without the signal mask (about 10 ns); as the mask is not restored, the handlers do not
 * block their signals (SA_NODEFER). If the program has replaced the handlers by its own, the guard's handlers are installed again,
 * and call the program's handlers for other signals.
 *
 * Source: POSIX sigaction(), sigsetjmp(); siglongjmp() may leave a handler of a signal that the thread itself has caused. */
#include "softcuda/exec/guard_internal.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>

#include "core/thread/signal_chain.h"
#include "softcuda/exec/exec_memory_internal.h"

struct guard {
	sigjmp_buf back;
	struct guard *outer;
	const gpul_exec_memory *only_in;
	uint64_t address;
};

/* Static thread-local storage, because the first access to dynamic TLS allocates memory, which a signal handler must not do. */
#define IN_HANDLERS __attribute__((tls_model("initial-exec")))
static _Thread_local struct guard *volatile innermost IN_HANDLERS;
static _Thread_local volatile uintptr_t passing IN_HANDLERS; /* stack address of pass_on() while it calls a handler; 0: it does not run */

enum { N_SIGNALS = 2 };
static const int signals[N_SIGNALS] = { SIGSEGV, SIGBUS };
static struct sigaction first[N_SIGNALS];  /* the program's handlers when handle_bad_access() was first installed */
static struct sigaction latest[N_SIGNALS]; /* the program's handlers when handle_bad_access() was last installed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_installed;

static bool is_guarded(const struct guard *g, uint64_t address)
{
	gpul_exec_range r;

	return !g->only_in || (gpul_memory_nearest(g->only_in, address, &r) && address - r.base < r.bytes + r.padding);
}

/* Call the program's handler.  If that handler had replaced handle_bad_access() and calls it again, call the program's first handler
 * instead; otherwise the two would call each other forever. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	const unsigned k = signal == SIGBUS;
	const uintptr_t here = (uintptr_t)&k, before = passing;
	const bool is_back = before && here < before;

	passing = here;
	gpul_signal_pass_on(is_back ? &first[k] : &latest[k], signal, info, context);
	passing = before;
}

static void handle_bad_access(int signal, siginfo_t *info, void *context)
{
	struct guard *g = innermost;
	const int saved = errno;

	if (g && info->si_code > 0 && is_guarded(g, (uintptr_t)info->si_addr)) {
		g->address = (uintptr_t)info->si_addr;
		siglongjmp(g->back, 1);
	}
	pass_on(signal, info, context);
	errno = saved;
}

void gpul_guard_install(void)
{
	struct sigaction own = { .sa_sigaction = handle_bad_access, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER }, now;

	if (sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle_bad_access)
		return;
	sigemptyset(&own.sa_mask);
	pthread_mutex_lock(&lock);
	for (unsigned k = 0; k < N_SIGNALS; k++) {
		if (sigaction(signals[k], NULL, &now) || (now.sa_flags & SA_SIGINFO && now.sa_sigaction == handle_bad_access))
			continue;
		if (!is_installed)
			first[k] = now;
		latest[k] = now;
		sigaction(signals[k], &own, NULL);
	}
	is_installed = true;
	pthread_mutex_unlock(&lock);
}

void gpul_guard_refresh(void)
{
	static _Atomic int64_t checked;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	if (atomic_load_explicit(&checked, memory_order_relaxed) == t.tv_nsec)
		return;
	atomic_store_explicit(&checked, t.tv_nsec, memory_order_relaxed);
	gpul_guard_install();
}

bool gpul_guarded(const gpul_exec_memory *only_in, void (*work)(void *arg), void *arg, uint64_t *address)
{
	struct guard g = { .outer = innermost, .only_in = only_in };
	bool done = sigsetjmp(g.back, 0) == 0;

	if (done) {
		innermost = &g;
		work(arg);
	}
	innermost = g.outer;
	if (!done)
		*address = g.address;
	return done;
}
