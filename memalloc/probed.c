/* probed.c — the list of probe reports, which AUTO reads.  Reports are never removed, because callers keep pointers. */
#include "memalloc/mem_internal.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects entries */
static struct probe_entry *entries;

const gpul_mem_probe_report *gpul_mem_probed(const gpul_driver *drv, int device)
{
	struct probe_entry *e;

	pthread_mutex_lock(&lock);
	for (e = entries; e && (e->drv != drv || e->device != device); e = e->next)
		;
	pthread_mutex_unlock(&lock);
	return e ? &e->report : NULL;
}

void gpul_mem_add_report(struct probe_entry *e)
{
	pthread_mutex_lock(&lock);
	e->next = entries;
	entries = e;
	pthread_mutex_unlock(&lock);
}
