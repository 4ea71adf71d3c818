/* protocol_failure.c — records the first failure, and formats it as one line. */
#include "rdma/protocol/protocol_failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

gpul_status gpul_rdma_fail(gpul_rdma_failure *f, gpul_status status, int native, const char *call, const char *advice, const char *fmt, ...)
{
	int saved = errno;

	if (f->status == GPUL_OK) {
		va_list ap;

		f->status = status;
		f->native = native;
		snprintf(f->call, sizeof f->call, "%s", call);
		snprintf(f->advice, sizeof f->advice, "%s", advice ? advice : "");
		va_start(ap, fmt);
		vsnprintf(f->what, sizeof f->what, fmt, ap);
		va_end(ap);
	}
	errno = saved;
	return f->status;
}

/* Write " after 7.52 s"; for 0 write "". */
static void print_time(uint64_t ns, char *out, size_t out_bytes)
{
	if (ns >= 1000000000)
		snprintf(out, out_bytes, " after %.2f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		snprintf(out, out_bytes, " after %" PRIu64 " ms", ns / 1000000);
	else if (ns)
		snprintf(out, out_bytes, " after %" PRIu64 " us", ns / 1000);
	else
		out[0] = '\0';
}

gpul_status gpul_rdma_failure_error(const gpul_rdma_failure *f, gpul_error *err)
{
	char numbers[48] = "", after[40];

	if (f->status == GPUL_OK)
		return GPUL_OK;
	if (f->vendor)
		snprintf(numbers, sizeof numbers, " (%d, vendor 0x%" PRIx32 ")", f->native, f->vendor);
	else if (f->native && f->status != GPUL_ESYS) /* if native is an errno, .what already contains its text */
		snprintf(numbers, sizeof numbers, " (%d)", f->native);
	print_time(f->after_ns, after, sizeof after);
	return gpul_fail(err, f->status, f->native, "%s%s%s%s: %s%s%s%s%s", f->peer,
			 f->by_peer ? (f->peer[0] ? " reports: " : "the peer reports: ") : (f->peer[0] ? ": " : ""), f->call,
			 f->call[0] ? "" : "failure", f->what, numbers, after, f->advice[0] ? ": " : "", f->advice);
}
