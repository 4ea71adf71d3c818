/* failure.c — the first failure of a communicator: found by a kernel, by the other ranks' processes, or asked for.
 *
 *     kernel: report in host memory ──> service thread ─┐
 *     another rank dies or fails: watch of the boot ────┼──> failure, abort word ──> kernels leave, calls fail
 *     gpul_comm_abort() ────────────────────────────────┘            └──> the boot publishes it to the other ranks */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/bootstrap/roster.h"
#include "comm/comm_internal.h"
#include "core/thread.h"

enum { PERIOD_NS = 1000 * 1000, STALLED_MS = 500 };

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

/* The failure of the job is the same on all ranks: the first that any rank has published. */
static void on_event(void *arg, const gpul_roster_event *e)
{
	gpul_comm *c = arg;
	gpul_comm_failure f = { .rank = e->culprit >= 0 ? e->culprit : e->rank };

	if (e->kind == GPUL_RANK_DIED)
		f.cause = GPUL_COMM_RANK_DIED;
	else
		f.cause = e->status == GPUL_ECOMM ? (enum gpul_comm_cause)e->native : GPUL_COMM_RANK_FAILED;
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

/* A wait of this rank's kernel for a rank timed out.  If a process is stopped, that is the cause, else the rank is late. */
static void timed_out(gpul_comm *c, const gpul_comm_report *r)
{
	static const char *const things[] = {
		[GPUL_COMM_WAITED_FOR_DATA] = "data", [GPUL_COMM_WAITED_FOR_CREDIT] = "a credit",
		[GPUL_COMM_WAITED_FOR_OFFER] = "an offer", [GPUL_COMM_WAITED_FOR_GREETING] = "a greeting",
		[GPUL_COMM_WAITED_FOR_GOODBYE] = "the end of a call",
	};
	const char *thing = r->what < sizeof things / sizeof *things && things[r->what] ? things[r->what] : "data";
	const int stalled = gpul_boot_stalled(c->boot, STALLED_MS);

	if (stalled >= 0 && stalled != c->rank)
		gpul_comm_fail(c, GPUL_COMM_RANK_STALLED, stalled, "rank %d (pid %d) is stopped or makes no progress: rank %d waited "
			       "%d ms for %s of rank %d", stalled, (int)c->paths[stalled].pid, c->rank, c->options.timeout_ms, thing,
			       (int)r->peer);
	else
		gpul_comm_fail(c, GPUL_COMM_TIMED_OUT, r->peer, "rank %d waited %d ms for %s of rank %d (pid %d), which runs but has "
			       "not made the same call", c->rank, c->options.timeout_ms, thing, (int)r->peer,
			       (int)c->paths[r->peer].pid);
}

/* Name the call of a greeting's signature (layout.h). */
static void name_call(uint64_t signature, char *out, size_t out_bytes)
{
	const gpul_comm_call call = signature & 0xf;
	const gpul_comm_op op = signature >> GPUL_COMM_SIGNATURE_OP & 0xff;
	const unsigned root = signature >> GPUL_COMM_SIGNATURE_ROOT & 0xff;
	char detail[24] = "";

	if (call == GPUL_COMM_ALLREDUCE || call == GPUL_COMM_REDUCESCATTER)
		(void)snprintf(detail, sizeof detail, ", %s", gpul_comm_op_name(op));
	else if (call == GPUL_COMM_BROADCAST)
		(void)snprintf(detail, sizeof detail, ", root %u", root);
	(void)snprintf(out, out_bytes, "%s(%llu %s%s)", gpul_comm_call_name(call),
		       (unsigned long long)(signature >> GPUL_COMM_SIGNATURE_COUNT),
		       gpul_comm_dtype_name(signature >> GPUL_COMM_SIGNATURE_DTYPE & 0xf), detail);
}

static void other_call(gpul_comm *c, const gpul_comm_report *r)
{
	char expected[72], found[72];

	name_call(r->expected, expected, sizeof expected);
	name_call(r->found, found, sizeof found);
	gpul_comm_fail(c, GPUL_COMM_MISMATCH, r->peer, "rank %d called %s where rank %d called %s: all ranks must make the same calls",
		       (int)r->peer, found, c->rank, expected);
}

void gpul_comm_read_report(gpul_comm *c)
{
	const gpul_comm_report *r = &c->control->report;

	if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != GPUL_COMM_REPORT_READY || atomic_load(&c->failed))
		return;
	if (r->what == GPUL_COMM_OTHER_SIZE)
		gpul_comm_fail(c, GPUL_COMM_MISMATCH, r->peer, "a message between ranks %d and %d has %llu bytes for the one, %llu for "
			       "the other: send and recv must have the same size", (int)r->peer, c->rank, (unsigned long long)r->found,
			       (unsigned long long)r->expected);
	else if (r->what == GPUL_COMM_OTHER_CALL)
		other_call(c, r);
	else
		timed_out(c, r);
}

static void *service(void *arg)
{
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	gpul_comm *c = arg;

	while (!atomic_load(&c->stop)) {
		gpul_comm_read_report(c);
		(void)nanosleep(&period, NULL);
	}
	return NULL;
}

gpul_status gpul_comm_service_start(gpul_comm *c, gpul_error *err)
{
	const int failed = gpul_thread_start(&c->service, NULL, "comm", service, c);

	if (failed)
		return gpul_fail(err, GPUL_ESYS, failed, "cannot start a thread: %s", strerror(failed));
	c->has_service = true;
	return gpul_boot_watch(c->boot, on_event, c, err);
}

void gpul_comm_service_stop(gpul_comm *c)
{
	if (!c->has_service)
		return;
	atomic_store(&c->stop, true);
	(void)pthread_join(c->service, NULL);
	c->has_service = false;
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

gpul_status gpul_comm_usable(const gpul_comm *c, gpul_error *err)
{
	gpul_comm_failure f;

	return gpul_comm_failed(c, &f) ? gpul_fail(err, GPUL_ECOMM, (int)f.cause, "%s", f.text) : GPUL_OK;
}

void gpul_comm_abort(gpul_comm *c)
{
	__atomic_store_n(&c->control->abort, 1, __ATOMIC_RELEASE);
	gpul_comm_fail(c, GPUL_COMM_ABORTED, c->rank, "rank %d called gpul_comm_abort()", c->rank);
}

gpul_status gpul_comm_wait(gpul_comm *c, CUstream stream, gpul_error *err)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 };
	gpul_status st;
	CUresult r;

	/* After a failure the kernels leave, so the stream's work ends in any case. */
	for (unsigned polls = 0; (r = c->drv->cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY; polls++)
		if (polls >= 1000)
			(void)nanosleep(&nap, NULL);
	gpul_comm_read_report(c);
	st = gpul_comm_usable(c, err);
	if (!st && r)
		st = gpul_cu_status(c->drv, err, r, "cuStreamQuery(stream)");
	if (r && !gpul_comm_failed(c, NULL))
		gpul_comm_fail(c, GPUL_COMM_RANK_FAILED, c->rank, "rank %d: a driver call failed: CUresult %d", c->rank, (int)r);
	return st;
}
