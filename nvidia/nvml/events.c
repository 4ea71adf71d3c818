/* events.c — libnvidia-ml.so.1: event sets, and waiting for events.
 *
 * The only device event is a fault of a kernel or copy of this process: an Xid error, which NVIDIA's driver reports for all
 * processes. System events report that a device is bound to a driver or unbound, which does not happen here. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvidia/nvml/nvml_internal.h"

enum {
	XID_EVENT = 8, /* nvmlEventTypeXidCriticalError */
	XID_ENGINE_EXCEPTION = 13,
	XID_PAGE_FAULT = 31,
	CUDA_ILLEGAL_ADDRESS = 700, /* CUDA_ERROR_ILLEGAL_ADDRESS */
	POLL_NS = 2000000,
	MAX_DEVICES = 16,
};

struct event_set {
	struct event_set *next;
	bool is_of_system;
	bool registered[MAX_DEVICES];
	unsigned n_seen[MAX_DEVICES]; /* number of faults that the set has reported, or that happened before the registration */
};

static struct {
	pthread_mutex_t lock;
	struct event_set *sets; /* list of sets; a handle is the address of a set */
} events = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- event sets ------------------------------------------------------------------------------ */

static int create_set(bool is_of_system, void **out)
{
	struct event_set *set;
	int r = gpul_ml_check_started();

	if (r || !out)
		return r ? r : INVALID_ARGUMENT;
	set = calloc(1, sizeof *set);
	if (!set)
		return INSUFFICIENT_MEMORY;
	set->is_of_system = is_of_system;
	pthread_mutex_lock(&events.lock);
	set->next = events.sets;
	events.sets = set;
	pthread_mutex_unlock(&events.lock);
	*out = set;
	return SUCCESS;
}

/* Find the pointer in the list that points to the set.  On success, the lock is held. */
static int enter_set(void *handle, bool is_of_system, struct event_set ***place)
{
	int r = gpul_ml_check_started();

	if (r)
		return r;
	pthread_mutex_lock(&events.lock);
	for (*place = &events.sets; **place; *place = &(**place)->next)
		if (**place == handle && (**place)->is_of_system == is_of_system)
			return SUCCESS;
	pthread_mutex_unlock(&events.lock);
	return INVALID_ARGUMENT;
}

static int free_set(void *handle, bool is_of_system)
{
	struct event_set **place, *set;
	int r = enter_set(handle, is_of_system, &place);

	if (r)
		return r;
	set = *place;
	*place = set->next;
	pthread_mutex_unlock(&events.lock);
	free(set);
	return SUCCESS;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- events of devices ------------------------------------------------------------------------- */

NUMBER(nvmlDeviceGetSupportedEventTypes, unsigned long long, d->index >= 0 ? XID_EVENT : 0)

CALL(nvmlEventSetCreate, void **out)
{
	return create_set(false, out);
}

CALL(nvmlEventSetFree, void *set)
{
	return free_set(set, false);
}

CALL(nvmlDeviceRegisterEvents, void *handle, unsigned long long types, void *set)
{
	struct event_set **place;
	struct ml_device *d;
	gpuload_soft_device is;
	int r = gpul_ml_find_device(handle, set, &d);

	if (r)
		return r;
	if (types & ~(unsigned long long)XID_EVENT)
		return NOT_SUPPORTED;
	gpul_ml_describe(d, &is);
	r = enter_set(set, false, &place);
	if (r)
		return r;
	if (types && !(*place)->registered[d->index]) {
		(*place)->registered[d->index] = true;
		(*place)->n_seen[d->index] = is.n_faults;
	}
	pthread_mutex_unlock(&events.lock);
	return SUCCESS;
}

struct event { /* nvmlEventData_t; the first version of the structure ends before gpu_instance */
	void *device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};

/* Report a fault that the set has not reported yet.  Returns false if there is none. */
static bool find_event(struct event_set *set, struct event *out)
{
	for (unsigned k = 0; k < MAX_DEVICES; k++) {
		gpuload_soft_device is;
		struct ml_device *d;

		if (!set->registered[k] || !(d = gpul_ml_device(k)))
			continue;
		gpul_ml_describe(d, &is);
		if (is.n_faults == set->n_seen[k])
			continue;
		set->n_seen[k]++;
		*out = (struct event){ d, XID_EVENT, is.last_fault == CUDA_ILLEGAL_ADDRESS ? XID_PAGE_FAULT : XID_ENGINE_EXCEPTION, ~0u,
				       ~0u };
		return true;
	}
	return false;
}

/* Wait for an event; a set of system events never receives one. */
static int wait_for_event(void *handle, bool is_of_system, struct event *out, unsigned timeout_ms)
{
	const struct timespec nap = { .tv_nsec = POLL_NS };
	const uint64_t end_ns = now_ns() + (uint64_t)timeout_ms * 1000000;
	struct event_set **place;

	for (;;) {
		bool found;
		int r = enter_set(handle, is_of_system, &place);

		if (r)
			return r;
		found = find_event(*place, out);
		pthread_mutex_unlock(&events.lock);
		if (found)
			return SUCCESS;
		if (now_ns() >= end_ns)
			return TIMEOUT;
		nanosleep(&nap, NULL);
	}
}

CALL(nvmlEventSetWait_v2, void *set, struct event *out, unsigned timeout_ms)
{
	return out ? wait_for_event(set, false, out, timeout_ms) : INVALID_ARGUMENT;
}

CALL(nvmlEventSetWait, void *set, void *out, unsigned timeout_ms)
{
	struct event e;
	int r = out ? wait_for_event(set, false, &e, timeout_ms) : INVALID_ARGUMENT;

	if (!r)
		memcpy(out, &e, offsetof(struct event, gpu_instance));
	return r;
}

/* ---- events of the system ---------------------------------------------------------------------- */

/* nvmlSystemEventSetCreateRequest_v1_t, and nvmlSystemEventSetFreeRequest_v1_t */
struct set_request {
	unsigned version;
	void *set;
};
struct register_request {
	unsigned version;
	unsigned long long types;
	void *set;
};
struct wait_request {
	unsigned version, timeout_ms;
	void *set, *data;
	unsigned n_data, n_events;
};

CALL(nvmlSystemEventSetCreate, struct set_request *request)
{
	if (!request)
		return INVALID_ARGUMENT;
	return request->version == ML_VERSION(*request, 1) ? create_set(true, &request->set) : VERSION_MISMATCH;
}

CALL(nvmlSystemEventSetFree, struct set_request *request)
{
	if (!request)
		return INVALID_ARGUMENT;
	return request->version == ML_VERSION(*request, 1) ? free_set(request->set, true) : VERSION_MISMATCH;
}

CALL(nvmlSystemRegisterEvents, struct register_request *request)
{
	enum { UNBIND = 1, BIND = 2 };
	struct event_set **place;
	int r;

	if (!request)
		return INVALID_ARGUMENT;
	if (request->version != ML_VERSION(*request, 1))
		return VERSION_MISMATCH;
	r = enter_set(request->set, true, &place);
	if (r)
		return r;
	pthread_mutex_unlock(&events.lock);
	return request->types & ~(unsigned long long)(UNBIND | BIND) ? INVALID_ARGUMENT : SUCCESS;
}

CALL(nvmlSystemEventSetWait, struct wait_request *request)
{
	struct event none;
	int r;

	if (!request || !request->data || !request->n_data)
		return INVALID_ARGUMENT;
	if (request->version != ML_VERSION(*request, 1))
		return VERSION_MISMATCH;
	r = wait_for_event(request->set, true, &none, request->timeout_ms);
	if (r == TIMEOUT)
		request->n_events = 0;
	return r;
}
