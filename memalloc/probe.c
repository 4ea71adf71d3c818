/* probe.c — see probe.h: every kind in turn, and what was found is kept. */
#include "memalloc/probe_internal.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/log.h"

struct kept {
	const gpul_driver *drv;
	int device;
	gpul_mem_probe_report report;
	struct kept *next;
};

static pthread_mutex_t probing =
	PTHREAD_MUTEX_INITIALIZER; /* one thread at a time; taken before lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all_kept */
static struct kept *all_kept; /* grows only: reports live until the end */

const gpul_mem_probe_report *gpul_mem_probed(const gpul_driver *drv, int device)
{
	struct kept *k;

	pthread_mutex_lock(&lock);
	for (k = all_kept; k && (k->drv != drv || k->device != device); k = k->next)
		;
	pthread_mutex_unlock(&lock);
	return k ? &k->report : NULL;
}

static void publish(struct kept *k)
{
	pthread_mutex_lock(&lock);
	k->next = all_kept;
	all_kept = k;
	pthread_mutex_unlock(&lock);
}

/* AUTO takes memory that can be shared, if any can. */
static void find_auto(gpul_mem_probe_report *r)
{
	static const gpul_mem_kind order[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_MEMFD,
					       GPUL_MEM_SHM };

	for (int wants_shares = 1; wants_shares >= 0; wants_shares--)
		for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
			const gpul_mem_verdict *v = &r->kind[order[i]];

			if (!v->works || v->shares < wants_shares)
				continue;
			r->taken = order[i];
			r->kind[GPUL_MEM_AUTO] = *v;
			return;
		}
	r->taken = GPUL_MEM_AUTO;
	r->kind[GPUL_MEM_AUTO] = r->kind[order[0]];
}

static void log_verdict(const char *name, const gpul_mem_verdict *v)
{
	gpul_log(GPUL_LOG_INFO, "memalloc", "probe: %s memory %s, %s%s%s", name,
		 v->works ? "works" : "does not work",
		 v->shares ? "other processes map it" : "other processes cannot map it",
		 v->why[0] ? ": " : "", v->why);
}

static void try_all(const gpul_driver *drv, int device, gpul_mem_probe_report *r)
{
	struct probe_child child = { .drv = drv, .socket = -1 };

	for (int kind = GPUL_MEM_AUTO + 1; kind < GPUL_MEM_N_KINDS; kind++) {
		gpul_probe_try(&child, device, (gpul_mem_kind)kind, false, &r->kind[kind]);
		log_verdict(gpul_mem_kind_name((gpul_mem_kind)kind), &r->kind[kind]);
	}
	gpul_probe_try(&child, device, GPUL_MEM_DEVICE, true, &r->fabric);
	log_verdict("fabric", &r->fabric);
	gpul_probe_child_stop(&child);
	find_auto(r);
}

static gpul_status check_device(const gpul_driver *drv, int device, gpul_error *err)
{
	CUcontext current = NULL;
	int n = 0;
	gpul_status st = gpul_cu(drv, err, cuDeviceGetCount(&n));

	if (!st && (device < 0 || device >= n))
		return gpul_fail(err, GPUL_EINVAL, device,
				 "no device %d: the %s driver has %d, counted from 0", device,
				 drv->name, n);
	if (!st)
		st = gpul_cu(drv, err, cuCtxGetCurrent(&current));
	if (!st && !current)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "no context is current on this thread: gpul_context_open()");
	return st;
}

gpul_status gpul_mem_probe(const gpul_driver *drv, int device,
			   const gpul_mem_probe_report **out, gpul_error *err)
{
	gpul_status st = check_device(drv, device, err);
	struct kept *k = NULL;

	if (st)
		return st;
	pthread_mutex_lock(&probing);
	*out = gpul_mem_probed(drv, device);
	if (!*out)
		k = calloc(1, sizeof *k);
	if (k) {
		k->drv = drv;
		k->device = device;
		try_all(drv, device, &k->report);
		publish(k);
		*out = &k->report;
	}
	pthread_mutex_unlock(&probing);
	return *out ? GPUL_OK
		    : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a probe's report");
}
