/* file_guard.c — handles SIGBUS: maps zeros where a mapped file was truncated.
 *
 *     file when it was mapped   ├───────────────────────────┤
 *     another process cuts it   ├──────────┤
 *     a read past its end                       × SIGBUS
 *     the handler maps zeros    ├──────────┼────┼───────────┤   and the read is repeated
 *
 * Without this handler, the kernel ends the process.  A longjmp() out of the handler would leave the locks of the interrupted code
 * held and its memory allocated.  Zeros are safe, because every reader checks its data anyway.  The guard records the event, so
 * that gpul_file_check() reports the truncation.
 *
 * A process has only one handler of SIGBUS, which the program may need itself. So this handler is installed only while a file is
 * mapped, and passes every other SIGBUS on to the previous handler. If the program installs a handler later, this handler is never
 * removed, because the later one may call it.
 *
 * Source: POSIX sigaction(), mmap(); mmap() is a plain system call on Linux, so a handler may use it. */
#include "core/file/file_guard_internal.h"
#include "core/thread/signal_chain.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct gpul_file_guard {
	_Atomic uintptr_t start; /* address of the mapping; 0: this guard is not in use */
	size_t n_bytes;
	atomic_bool tripped;
	struct gpul_file_guard *next;
};

/* Guards are reused, but never freed, because a handler on another thread may be reading one. */
static _Atomic(struct gpul_file_guard *) guards;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects everything below; the signal handler does not lock it */
static size_t n_used;
static struct sigaction previous;
static bool covered; /* another handler was installed later, and may call this one */
static size_t page_bytes;

/* Map zeros from the page of this address to the end of the mapped file that contains it.  Returns false if no mapped file does. */
static bool replace_pages(uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(page_bytes - 1);

	for (struct gpul_file_guard *g = atomic_load(&guards); g; g = g->next) {
		uintptr_t start = atomic_load(&g->start);

		if (start == 0 || address < start || address - start >= g->n_bytes)
			continue;
		atomic_store(&g->tripped, true);
		return mmap((void *)page, start + g->n_bytes - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			    0) != MAP_FAILED;
	}
	return false;
}

static void handle_bus_error(int signal, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code <= 0 || !replace_pages((uintptr_t)info->si_addr))
		gpul_signal_pass_on(&previous, signal, info, context);
	errno = saved;
}

static bool is_own(const struct sigaction *a)
{
	return a->sa_flags & SA_SIGINFO && a->sa_sigaction == handle_bus_error;
}

static void install_handler(void)
{
	struct sigaction now, own = { .sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	if (sigaction(SIGBUS, NULL, &now) || is_own(&now))
		return;
	if (covered && (now.sa_flags & SA_SIGINFO || now.sa_handler != SIG_DFL))
		return;
	covered = false;
	previous = now;
	sigemptyset(&own.sa_mask);
	sigaction(SIGBUS, &own, NULL);
}

static void remove_handler(void)
{
	struct sigaction now;

	if (sigaction(SIGBUS, NULL, &now) == 0 && is_own(&now))
		sigaction(SIGBUS, &previous, NULL);
	else
		covered = true;
}

static struct gpul_file_guard *find_unused(void)
{
	struct gpul_file_guard *g = atomic_load(&guards);

	while (g && atomic_load(&g->start))
		g = g->next;
	if (g)
		return g;
	g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	g->next = atomic_load(&guards);
	atomic_store(&guards, g);
	return g;
}

struct gpul_file_guard *gpul_file_guard_add(const void *pages, size_t n_bytes)
{
	struct gpul_file_guard *g;

	pthread_mutex_lock(&lock);
	g = find_unused();
	if (g) {
		g->n_bytes = n_bytes;
		atomic_store(&g->tripped, false);
		atomic_store(&g->start, (uintptr_t)pages);
		if (n_used++ == 0)
			install_handler();
	}
	pthread_mutex_unlock(&lock);
	return g;
}

void gpul_file_guard_remove(struct gpul_file_guard *g)
{
	pthread_mutex_lock(&lock);
	atomic_store(&g->start, 0);
	if (--n_used == 0)
		remove_handler();
	pthread_mutex_unlock(&lock);
}

bool gpul_file_guard_tripped(const struct gpul_file_guard *g)
{
	return atomic_load(&g->tripped);
}
