/* probe.c — gpul_mem_probe(): tries every kind once for each device, and keeps the report. */
#include "memalloc/probe/probe_internal.h"
#include "memalloc/mem_internal.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/log.h"

static pthread_mutex_t probing = PTHREAD_MUTEX_INITIALIZER; /* held while probing, so that only one thread probes at a time */

/* Find the kind that AUTO uses: the first one that can be shared, else the first one that works. */
static void find_auto(gpul_mem_probe_report *r)
{
	for (int wants_shares = 1; wants_shares >= 0; wants_shares--)
		for (size_t i = 0; i < GPUL_MEM_N_AUTO; i++) {
			const gpul_mem_verdict *v = &r->kind[gpul_mem_auto_order[i]];

			if (!v->works || v->shares < wants_shares)
				continue;
			r->taken = gpul_mem_auto_order[i];
			r->kind[GPUL_MEM_AUTO] = *v;
			return;
		}
	r->taken = GPUL_MEM_AUTO;
	r->kind[GPUL_MEM_AUTO] = r->kind[gpul_mem_auto_order[0]];
}

static void log_verdict(const char *name, const gpul_mem_verdict *v)
{
	gpul_log(GPUL_LOG_INFO, "memalloc", "probe: %s memory %s, %s%s%s", name, v->works ? "works" : "does not work",
		 v->shares ? "other processes map it" : "other processes cannot map it", v->why[0] ? ": " : "", v->why);
}

static void probe_all(const gpul_driver *drv, int device, gpul_mem_probe_report *r)
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
		return gpul_fail(err, GPUL_EINVAL, device, "device %d does not exist: the %s driver has %d, numbered from 0", device,
				 drv->name, n);
	if (!st)
		st = gpul_cu(drv, err, cuCtxGetCurrent(&current));
	if (!st && !current)
		return gpul_fail(err, GPUL_EINVAL, 0, "no context is current on this thread: call gpul_context_open()");
	return st;
}

gpul_status gpul_mem_probe(const gpul_driver *drv, int device, const gpul_mem_probe_report **out, gpul_error *err)
{
	gpul_status st = check_device(drv, device, err);
	struct probe_entry *e = NULL;

	if (st)
		return st;
	pthread_mutex_lock(&probing);
	*out = gpul_mem_probed(drv, device);
	if (!*out)
		e = calloc(1, sizeof *e);
	if (e) {
		e->drv = drv;
		e->device = device;
		probe_all(drv, device, &e->report);
		gpul_mem_add_report(e);
		*out = &e->report;
	}
	pthread_mutex_unlock(&probing);
	return *out ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: cannot create the report about kinds of memory");
}
