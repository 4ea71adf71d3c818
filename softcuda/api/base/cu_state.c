/* cu_state.c — the lock, the current context of each thread, and the checks at the beginning of a call. */
#include "softcuda/api/base/cu_state_internal.h"

#include <stdatomic.h>
#include <stdlib.h>

struct soft_state soft;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned n_waiters;

void soft_lock(void)
{
	pthread_mutex_lock(&lock);
}

void soft_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void soft_wait_on(pthread_cond_t *condition)
{
	pthread_cond_wait(condition, &lock);
}

void soft_wait_change(void)
{
	n_waiters++;
	pthread_cond_wait(&changed, &lock);
	n_waiters--;
}

void soft_changed(void)
{
	if (n_waiters)
		pthread_cond_broadcast(&changed);
}

/* true while this thread executes a function of the application that the driver has called */
static _Thread_local bool is_in_callback;

void soft_in_callback(bool begins)
{
	is_in_callback = begins;
}

bool soft_is_in_callback(void)
{
	return is_in_callback;
}

static CUresult refuse_in_callback(void)
{
	return soft_refuse(CUDA_ERROR_NOT_PERMITTED,
			   "a host function that the driver calls (cuLaunchHostFunc, cuStreamAddCallback, a host node of a "
			   "graph) must not call this CUDA function, at least not for a default stream");
}

CUresult soft_lock_initialised(void)
{
	return is_in_callback ? refuse_in_callback() : soft_lock_also_in_callback();
}

CUresult soft_lock_also_in_callback(void)
{
	soft_lock();
	if (soft.initialised)
		return CUDA_SUCCESS;
	soft_unlock();
	return CUDA_ERROR_NOT_INITIALIZED;
}

CUresult soft_check_initialised(void)
{
	CUresult r = soft_lock_initialised();

	if (!r)
		soft_unlock();
	return r;
}

/* ---- current contexts ------------------------------------------------------------------- */

enum { FEW = 2, FIRST_ROOM = 16 };

static _Thread_local struct {
	void *few[FEW]; /* the oldest entries; only FEW, because little space is left for thread-local variables (cu_thread.c) */
	void **more;    /* the newer entries; freed at thread exit */
	int n, room;    /* room: capacity of `more` */
} current;

static pthread_key_t more_key;
static pthread_once_t more_once = PTHREAD_ONCE_INIT;
static bool has_more_key;

static void free_more(void *more)
{
	free(more);
	current.more = NULL;
	current.room = 0;
	current.n = current.n < FEW ? current.n : FEW;
}

static void create_more_key(void)
{
	has_more_key = pthread_key_create(&more_key, free_more) == 0;
}

static void **current_at(int n)
{
	return n < FEW ? &current.few[n] : &current.more[n - FEW];
}

/* Make room for another entry of the stack of current contexts; false: out of memory. */
static bool grow_current(void)
{
	const int room = current.room ? 2 * current.room : FIRST_ROOM;
	void **more;

	pthread_once(&more_once, create_more_key);
	more = has_more_key ? realloc(current.more, (size_t)room * sizeof *more) : NULL;
	if (!more)
		return false;
	current.more = more;
	current.room = room;
	pthread_setspecific(more_key, more);
	return true;
}

void *soft_current(void)
{
	return current.n ? *current_at(current.n - 1) : NULL;
}

void soft_set_current(void *handle)
{
	if (!current.n) {
		if (handle)
			current.few[current.n++] = handle;
	} else if (handle) {
		*current_at(current.n - 1) = handle;
	} else {
		current.n--; /* CUDA Driver API, cuCtxSetCurrent: NULL pops the top context */
	}
}

bool soft_push_current(void *handle)
{
	if (current.n >= FEW + current.room && !grow_current())
		return false;
	*current_at(current.n++) = handle;
	return true;
}

bool soft_pop_current(void **handle)
{
	if (!current.n)
		return false;
	*handle = *current_at(--current.n);
	return true;
}

uint64_t soft_thread_id(void)
{
	static _Atomic uint64_t n_threads;
	static _Thread_local uint64_t id;

	if (!id)
		id = atomic_fetch_add(&n_threads, 1) + 1;
	return id;
}

/* ---- the start of a call ---------------------------------------------------------------------- */

CUresult soft_find_context(CUcontext handle, struct context **out)
{
	struct context *ctx = soft_handle_find(HANDLE_CONTEXT, handle);

	if (!handle)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx) {
		/* A handle of a destroyed context gives another error than a value that was never a context handle. */
		return ((uintptr_t)handle & 15) == HANDLE_CONTEXT ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
	}
	if (!ctx->active)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*out = ctx;
	return CUDA_SUCCESS;
}

CUresult soft_enter_after_fault(struct context **out)
{
	CUresult r = soft_lock_initialised();

	if (r)
		return r;
	r = soft_find_context(soft_current(), out);
	if (r)
		soft_unlock();
	return r;
}

CUresult soft_enter(struct context **out)
{
	CUresult r = soft_enter_after_fault(out);

	if (!r && (*out)->fault) {
		r = (*out)->fault;
		soft_unlock();
	}
	if (r == CUDA_ERROR_INVALID_CONTEXT)
		soft_refuse(
			r,
			"no context is current to the calling thread: call cuCtxCreate, or cuDevicePrimaryCtxRetain and cuCtxSetCurrent");
	else if (r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		soft_refuse(r, "the context that is current to the calling thread was destroyed");
	else if (r == CUDA_ERROR_NOT_INITIALIZED)
		soft_refuse(r, "call cuInit before other calls of the driver");
	return r;
}

CUresult soft_find_device(CUdevice dev, struct device **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (dev < 0 || dev >= soft.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	*out = &soft.device[dev];
	return CUDA_SUCCESS;
}
