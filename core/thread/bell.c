/* bell.c — implements the bell: a counter on which threads sleep (a futex). */
#include "core/thread/bell.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

/* Ordering: a thread that is about to sleep increments the count of sleepers, then the kernel compares `rung`; a thread
 * that rings increments `rung`, then reads the count.  Because these accesses are sequentially consistent, at least one of the
 * two threads sees the other's write. */
void gpul_bell_ring(gpul_bell *b)
{
	(void)__atomic_add_fetch(&b->rung, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&b->sleepers, __ATOMIC_SEQ_CST))
		(void)syscall(SYS_futex, &b->rung, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

bool gpul_bell_is_quiet(const gpul_bell *b, gpul_bell_ear *ear)
{
	const uint32_t rung = __atomic_load_n(&b->rung, __ATOMIC_SEQ_CST);
	const uint64_t now = gpul_clock_ns();

	if (rung != ear->heard || !ear->since_ns) {
		ear->heard = rung;
		ear->since_ns = now;
	}
	return now - ear->since_ns >= (uint64_t)GPUL_BELL_QUIET_MS * 1000 * 1000;
}

void gpul_bell_sleep(gpul_bell *b, const gpul_bell_ear *ear, unsigned most_ms)
{
	const struct timespec most = { .tv_sec = most_ms / 1000, .tv_nsec = (long)(most_ms % 1000) * 1000 * 1000 };

	(void)__atomic_add_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, &b->rung, FUTEX_WAIT_PRIVATE, ear->heard, &most, NULL, 0);
	(void)__atomic_sub_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
}
