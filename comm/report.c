/* report.c — the service thread: reads the reports of this rank's kernels, and the ranks for which they wait. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/comm_internal.h"
#include "core/thread/thread.h"

enum { PERIOD_NS = 2 * 1000 * 1000, QUIET_PERIOD_MS = 500 };

/* Describe the call that a greeting's signature encodes (layout.h). */
static void name_call(uint64_t signature, char *out, size_t out_bytes)
{
	const gpul_comm_call call = signature & 0xf;
	const struct gpul_comm_call_info *info = gpul_comm_call_info(call);
	const gpul_comm_op op = signature >> GPUL_COMM_SIGNATURE_OP & 0xff;
	const unsigned root = signature >> GPUL_COMM_SIGNATURE_ROOT & 0xff;
	char detail[24] = "";

	if (info->reduces)
		(void)snprintf(detail, sizeof detail, ", %s", gpul_comm_op_name(op));
	else if (info->has_root)
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

static void read_report(gpul_comm *c)
{
	const gpul_comm_report *r = &c->control->report;

	if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != GPUL_COMM_REPORT_READY || atomic_load(&c->failed))
		return;
	if (r->what == GPUL_COMM_OTHER_SIZE)
		gpul_comm_fail(c, GPUL_COMM_MISMATCH, r->peer,
			       "rank %d and rank %d disagree on the size of a message: %llu bytes and %llu bytes; send and "
			       "recv must have the same size",
			       (int)r->peer, c->rank, (unsigned long long)r->found, (unsigned long long)r->expected);
	else if (r->what == GPUL_COMM_OTHER_CALL)
		other_call(c, r);
	else
		gpul_comm_timed_out(c);
}

static void *service(void *arg)
{
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	gpul_comm *c = arg;
	gpul_bell *bell = gpul_boot_bell(c->boot);
	gpul_bell_ear ear = { 0 };

	while (!atomic_load(&c->stop)) {
		gpul_comm_watch_waits(c);
		read_report(c);
		if (gpul_bell_is_quiet(bell, &ear))
			gpul_bell_sleep(bell, &ear, QUIET_PERIOD_MS);
		else
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
	return gpul_comm_watch(c, err);
}

void gpul_comm_service_stop(gpul_comm *c)
{
	if (!c->has_service)
		return;
	atomic_store(&c->stop, true);
	gpul_bell_ring(gpul_boot_bell(c->boot));
	(void)pthread_join(c->service, NULL);
	c->has_service = false;
}
