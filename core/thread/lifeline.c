/* lifeline.c — holds a robust futex in a sleeping thread.
 *
 *     kernel's record of the thread ─> head ─> entry ─> head    in private memory of this process
 *                                               └ + futex_offset ─> word, in shared memory
 *
 * A robust pthread mutex has its list entry in shared memory. Here it is in private memory, so other processes cannot corrupt it. */
#include "core/thread/lifeline.h"

#include "core/thread/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct gpul_lifeline {
	uint32_t *word;
	pthread_t thread;
	sem_t held, end;
	int failed;                   /* errno if the thread has failed; 0: the thread holds the word */
	struct robust_list_head head; /* the list that the kernel walks when the thread ends */
	struct robust_list entry;
};

/* Register this thread's robust list.  It replaces libc's list for robust mutexes, which this thread does not use. */
static int register_list(gpul_lifeline *l)
{
	l->head.list.next = &l->entry;
	l->head.futex_offset = (long)((uintptr_t)l->word - (uintptr_t)&l->entry);
	l->head.list_op_pending = NULL;
	l->entry.next = &l->head.list;
	return syscall(SYS_set_robust_list, &l->head, sizeof(l->head)) ? errno : 0;
}

static void *hold_word(void *arg)
{
	gpul_lifeline *l = arg;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	l->failed = register_list(l);
	if (!l->failed) /* from now on, the kernel marks each word of the list that contains the thread's id when the thread ends */
		__atomic_store_n(l->word, tid, __ATOMIC_RELEASE);
	sem_post(&l->held);
	while (!l->failed && sem_wait(&l->end) && errno == EINTR)
		;
	if (!l->failed)
		__atomic_compare_exchange_n(l->word, &tid, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	l->head.list.next = &l->head.list;
	return NULL;
}

gpul_status gpul_lifeline_hold(uint32_t *word, gpul_lifeline **out, gpul_error *err)
{
	gpul_lifeline *l = calloc(1, sizeof(*l));
	int e;

	if (!l)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the lock that shows other processes when this process ends");
	l->word = word;
	sem_init(&l->held, 0, 0);
	sem_init(&l->end, 0, 0);
	e = gpul_thread_start(&l->thread, NULL, "gpul-lifeline", hold_word, l);
	if (e) {
		free(l);
		return gpul_fail(err, GPUL_ESYS, e,
				 "cannot create the thread that holds the lock that shows other processes when this process ends: %s",
				 strerror(e));
	}
	while (sem_wait(&l->held) && errno == EINTR)
		;
	e = l->failed;
	if (e) {
		gpul_lifeline_let_go(l);
		return gpul_fail(err, GPUL_ESYS, e,
				 "set_robust_list() failed, so other processes would not notice when this process ends: %s", strerror(e));
	}
	*out = l;
	return GPUL_OK;
}

void gpul_lifeline_let_go(gpul_lifeline *l)
{
	if (!l)
		return;
	sem_post(&l->end);
	pthread_join(l->thread, NULL);
	sem_destroy(&l->held);
	sem_destroy(&l->end);
	free(l);
}

gpul_life gpul_lifeline_read(const uint32_t *word)
{
	const uint32_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	return value & FUTEX_OWNER_DIED ? GPUL_LIFE_LOST : value & FUTEX_TID_MASK ? GPUL_LIFE_HELD : GPUL_LIFE_NONE;
}

void gpul_lifeline_forget(uint32_t *word)
{
	uint32_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	if (value & FUTEX_OWNER_DIED)
		__atomic_compare_exchange_n(word, &value, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
