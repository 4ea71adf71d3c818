/* failure.c — handles the first failure of a communicator: reported by a kernel, detected in another rank's process,
 * or requested by gpul_comm_abort().
 *
 *     kernel: report in host memory ──> report.c ───────┐
 *     another rank dies or fails: watch thread (boot) ──┼──> failure, abort word ──> kernels leave, calls fail
 *     gpul_comm_abort() ────────────────────────────────┘            └──> gpul_boot_fail() publishes it to the other ranks */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/bootstrap/roster.h"
#include "comm/comm_internal.h"

enum { PERIOD_NS = 2 * 1000 * 1000, FIRST_NAP_NS = 20 * 1000, SPINS = 1000 };

static void record(gpul_comm *c, const gpul_comm_failure *f)
{
	(void)pthread_mutex_lock(&c->lock);
	if (!atomic_load(&c->failed)) {
		c->failure = *f;
		atomic_store(&c->failed, true);
	}
	(void)pthread_mutex_unlock(&c->lock);
	if (c->control)
		__atomic_store_n(&c->control->abort, 1, __ATOMIC_RELEASE);
}

/* Called when the job has failed.  Every rank gets the same failure: the first one that any rank has published. */
static void on_event(void *arg, const gpul_roster_event *e)
{
	gpul_comm *c = arg;
	gpul_comm_failure f = { .rank = e->culprit >= 0 ? e->culprit : e->rank };

	if (e->kind == GPUL_RANK_DIED)
		f.cause = GPUL_COMM_RANK_DIED;
	else if (e->kind == GPUL_RANK_STALLED)
		f.cause = GPUL_COMM_RANK_STALLED;
	else if (e->status == GPUL_ESYS && e->native == ETIMEDOUT) /* a call of bootstrap/boot.h has timed out */
		f.cause = GPUL_COMM_TIMED_OUT;
	else
		f.cause = e->status == GPUL_ECOMM ? (enum gpul_comm_cause)e->native : GPUL_COMM_RANK_FAILED;
	if (f.cause == GPUL_COMM_RANK_FAILED && e->status != GPUL_ECOMM)
		(void)snprintf(f.text, sizeof f.text, "rank %d (pid %d): %.160s", e->rank, (int)e->pid, e->text);
	else
		(void)snprintf(f.text, sizeof f.text, "%s", e->text);
	record(c, &f);
}

void gpul_comm_fail(gpul_comm *c, enum gpul_comm_cause cause, int rank, const char *fmt, ...)
{
	gpul_error why = { .status = GPUL_ECOMM, .native = (int)cause };
	gpul_roster_event first;
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(why.text, sizeof why.text, fmt, args);
	va_end(args);
	gpul_boot_fail(c->boot, &why, rank);
	if (gpul_boot_failure(c->boot, &first))
		on_event(c, &first);
}

gpul_status gpul_comm_watch(gpul_comm *c, gpul_error *err)
{
	return gpul_boot_watch(c->boot, on_event, c, err);
}

bool gpul_comm_failed(const gpul_comm *c, gpul_comm_failure *out)
{
	gpul_comm *lockable = (gpul_comm *)(uintptr_t)c;

	if (!atomic_load(&c->failed))
		return false;
	if (out) {
		(void)pthread_mutex_lock(&lockable->lock);
		*out = c->failure;
		(void)pthread_mutex_unlock(&lockable->lock);
	}
	return true;
}

gpul_status gpul_comm_explain(gpul_comm *c, gpul_status st, const gpul_error *why, gpul_error *err)
{
	gpul_roster_event first;

	if (st && gpul_boot_failure(c->boot, &first)) {
		on_event(c, &first);
		return gpul_comm_usable(c, err);
	}
	return st ? gpul_fail(err, st, why->native, "%s", why->text) : GPUL_OK;
}

gpul_status gpul_comm_usable(const gpul_comm *c, gpul_error *err)
{
	gpul_comm_failure f;

	return gpul_comm_failed(c, &f) ? gpul_fail(err, GPUL_ECOMM, (int)f.cause, "%s", f.text) : GPUL_OK;
}

gpul_status gpul_comm_idle(const gpul_comm *c, gpul_error *err)
{
	gpul_status st = gpul_comm_usable(c, err);

	if (!st && c->persistent_runs)
		st = gpul_fail(err, GPUL_EINVAL, 0,
			       "a persistent kernel of this communicator is running: post the call to it, or stop it first");
	return st;
}

void gpul_comm_abort(gpul_comm *c)
{
	__atomic_store_n(&c->control->abort, 1, __ATOMIC_RELEASE);
	gpul_comm_fail(c, GPUL_COMM_ABORTED, c->rank, "rank %d called gpul_comm_abort()", c->rank);
}

/* Wait until the failure is recorded.  A kernel that reports a time-out sets the abort word before that, because finding the cause
 * takes time. */
static void await_explanation(const gpul_comm *c)
{
	const struct timespec nap = { .tv_nsec = PERIOD_NS };

	while (__atomic_load_n(&c->control->abort, __ATOMIC_ACQUIRE) && !atomic_load(&c->failed))
		(void)nanosleep(&nap, NULL);
}

/* True for errors that mean only that the caller has used a stream wrongly. */
static bool is_misuse(const gpul_error *why)
{
	const int r = why->native;

	return why->status == GPUL_ECUDA &&
	       (r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_INVALID_CONTEXT || r == CUDA_ERROR_INVALID_HANDLE ||
		(r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD));
}

gpul_status gpul_comm_rank_failed(gpul_comm *c, const gpul_error *why, gpul_error *err)
{
	const gpul_status st = gpul_comm_usable(c, err); /* if the communicator has failed before, that failure is the cause of this one */

	if (!is_misuse(why))
		gpul_comm_fail(c, GPUL_COMM_RANK_FAILED, c->rank, "rank %d (pid %d): %.150s", c->rank, (int)c->paths[c->rank].pid,
			       why->text);
	return st ? st : gpul_fail(err, why->status, why->native, "%s", why->text);
}

gpul_status gpul_comm_awaited(gpul_comm *c, CUresult r, const char *call, gpul_error *err)
{
	gpul_error why = { 0 };

	if (gpul_cu_status(c->drv, &why, r, call))
		return gpul_comm_rank_failed(c, &why, err);
	await_explanation(c);
	return gpul_comm_usable(c, err);
}

/* Wait for the work of a stream.  The wait always ends, because kernels end after a failure.  With an interpreting driver, do not
 * poll: polling would take CPU time from the kernels. */
static CUresult await_stream(const gpul_comm *c, CUstream stream)
{
	struct timespec nap = { .tv_nsec = FIRST_NAP_NS };
	CUresult r;

	if (c->interprets)
		return c->drv->cuStreamSynchronize(stream);
	for (unsigned polls = 0; (r = c->drv->cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY; polls++)
		if (polls >= SPINS)
			(void)nanosleep(&nap, NULL);
	return r;
}

gpul_status gpul_comm_wait(gpul_comm *c, CUstream stream, gpul_error *err)
{
	CUstreamCaptureMode mode;
	CUresult r;

	/* wake the watch thread, because the program may have launched a kernel in a CUDA graph, without a call of the library */
	gpul_bell_ring(gpul_boot_bell(c->boot));
	mode = gpul_comm_relax(c);
	r = await_stream(c, stream);
	gpul_comm_unrelax(c, mode);
	return gpul_comm_awaited(c, r, "waiting for the stream", err);
}
