/* report.c — messages to the user that a CUresult cannot carry: why a call was refused, and the faults of kernels. */
#include "softcuda/api/base/state_internal.h"

#include "core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

EXPORT const char *gpuloadSoftLastFault(void);
EXPORT const char *gpuloadSoftLastFaultLine(void);
EXPORT void gpuloadSoftPrintFaults(int print);
EXPORT void gpuloadSoftNameImages(const char *name);

enum { SOURCE_LINE_BYTES = 200 };

static atomic_bool faults_are_printed = true;
static _Thread_local char image_name[128];

static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_fault[sizeof(((gpul_exec_fault *)NULL)->text)], last_line[SOURCE_LINE_BYTES];

static _Atomic int64_t load_time; /* when the first image was loaded, in seconds since 1970 */

CUresult soft_refuse(CUresult r, const char *fmt, ...)
{
	char text[512];
	const char *name = "?";
	va_list ap;

	if (!gpul_log_shows(GPUL_LOG_INFO))
		return r;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	cuGetErrorName(r, &name);
	gpul_log(GPUL_LOG_INFO, "softcuda", "%s: %s", name, text);
	return r;
}

static void keep_and_print_fault(const char *text, const char *line)
{
	const char *quiet = secure_getenv("GPULOAD_SOFT_QUIET");

	pthread_mutex_lock(&fault_lock);
	snprintf(last_fault, sizeof last_fault, "%s", text);
	snprintf(last_line, sizeof last_line, "%s", line);
	pthread_mutex_unlock(&fault_lock);
	if (atomic_load(&faults_are_printed) && (!quiet || strcmp(quiet, "1") != 0))
		fprintf(stderr, "gpuload soft driver: %s\n%s%s", text, line, *line ? "\n" : "");
}

void soft_report_fault(const char *text)
{
	keep_and_print_fault(text, "");
}

void soft_report_kernel_fault(const gpul_exec_fault *fault)
{
	char line[SOURCE_LINE_BYTES];

	soft_source_line(fault, atomic_load(&load_time), line, sizeof line);
	keep_and_print_fault(fault->text, line);
}

/* Return the text of the newest fault of a kernel of this process, or of the newest refusal of a kernel; "" when there
 * was none.  Each thread has its
 * own buffer, which its next call overwrites. */
const char *gpuloadSoftLastFault(void)
{
	static _Thread_local char copy[sizeof last_fault];

	pthread_mutex_lock(&fault_lock);
	memcpy(copy, last_fault, sizeof copy);
	pthread_mutex_unlock(&fault_lock);
	return copy;
}

/* Return the line of CUDA C++ that caused the newest kernel fault, without its newline; "" when the file or the line is unknown,
 * cannot be read, or has changed.  Each thread has its own buffer, which its next call overwrites. */
const char *gpuloadSoftLastFaultLine(void)
{
	static _Thread_local char copy[sizeof last_line];

	pthread_mutex_lock(&fault_lock);
	memcpy(copy, last_line, sizeof copy);
	pthread_mutex_unlock(&fault_lock);
	return copy;
}

/* Print faults when they happen (the default), or not: 0, for a caller that reports them itself. */
void gpuloadSoftPrintFaults(int print)
{
	atomic_store(&faults_are_printed, print != 0);
}

/* Set the name that faults and logs use for the images that this thread loads from memory from now on; copied;
 * NULL: "<ptx>", the default.  No call of the driver API has a parameter for such a name. */
void gpuloadSoftNameImages(const char *name)
{
	snprintf(image_name, sizeof image_name, "%s", name ? name : "");
}

const char *soft_image_name(void)
{
	int64_t never = 0;

	atomic_compare_exchange_strong(&load_time, &never, (int64_t)time(NULL));
	return *image_name ? image_name : "<ptx>";
}
