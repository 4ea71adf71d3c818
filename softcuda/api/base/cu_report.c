/* cu_report.c — prints or logs what a CUresult cannot express: why a call was refused, and the faults of kernels. */
#include "softcuda/api/base/cu_state_internal.h"

#include "core/log.h"
#include "core/text.h"

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

static atomic_bool faults_are_printed = true;

static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_fault[sizeof(((struct thread_texts *)NULL)->fault)], last_line[SOURCE_LINE_BYTES];

static _Atomic int64_t load_time; /* when the first image was loaded, in seconds since 1970 */

/* Returns true if messages go only to the log. */
static bool is_quiet(void)
{
	const char *quiet = secure_getenv("GPULOAD_SOFT_QUIET");

	return !atomic_load(&faults_are_printed) || (quiet && !strcmp(quiet, "1"));
}

/* Returns true for results that programs also cause on purpose, to find out what the device can do or whether memory is left. */
static bool is_answer(CUresult r)
{
	switch ((int)r) {
	case CUDA_SUCCESS:
	case CUDA_ERROR_OUT_OF_MEMORY:
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_NO_BINARY_FOR_GPU:
	case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
	case CUDA_ERROR_UNSUPPORTED_LIMIT:
	case CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY:
	case CUDA_ERROR_LOSSY_QUERY:
	case CUDA_ERROR_NOT_FOUND:
	case CUDA_ERROR_NOT_READY:
	case CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
	case CUDA_ERROR_PEER_ACCESS_NOT_ENABLED:
	case CUDA_ERROR_TOO_MANY_PEERS:
	case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
	case CUDA_ERROR_NOT_SUPPORTED:
	case CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE:
		return true;
	default:
		return false;
	}
}

static void log_refusal(CUresult r, bool is_mistake, const char *fmt, va_list ap)
{
	char text[512];
	const char *name = "?";

	vsnprintf(text, sizeof text, fmt, ap);
	cuGetErrorName(r, &name);
	if (is_mistake)
		gpul_log_mistake("softcuda", "%s: %s", name, text);
	else
		gpul_log(GPUL_LOG_INFO, "softcuda", "%s: %s", name, text);
}

CUresult soft_refuse(CUresult r, const char *fmt, ...)
{
	const bool is_mistake = gpul_log_shows_mistakes() && !is_answer(r) && !is_quiet();
	va_list ap;

	if (!is_mistake && !gpul_log_shows(GPUL_LOG_INFO))
		return r;
	va_start(ap, fmt);
	log_refusal(r, is_mistake, fmt, ap);
	va_end(ap);
	return r;
}

CUresult soft_answer(CUresult r, const char *fmt, ...)
{
	va_list ap;

	if (!gpul_log_shows(GPUL_LOG_INFO))
		return r;
	va_start(ap, fmt);
	log_refusal(r, false, fmt, ap);
	va_end(ap);
	return r;
}

CUresult soft_refuse_handle(CUresult r, enum handle_kind kind, const void *handle)
{
	static const struct {
		const char *what, *maker;
	} kinds[] = {
		[HANDLE_MODULE] = { "module", "cuModuleLoad" },          [HANDLE_FUNCTION] = { "kernel", "cuModuleGetFunction" },
		[HANDLE_LIBRARY] = { "library", "cuLibraryLoad" },       [HANDLE_KERNEL] = { "kernel", "cuLibraryGetKernel" },
		[HANDLE_STREAM] = { "stream", "cuStreamCreate" },        [HANDLE_EVENT] = { "event", "cuEventCreate" },
		[HANDLE_LINKER] = { "linker", "cuLinkCreate" },          [HANDLE_GRAPH] = { "graph", "cuGraphCreate" },
		[HANDLE_NODE] = { "node of a graph", "cuGraphAddNode" }, [HANDLE_GRAPH_EXEC] = { "executable graph", "cuGraphInstantiate" },
		[HANDLE_ARRAY] = { "array", "cuArrayCreate" },           [HANDLE_MIPMAP] = { "mipmapped array", "cuMipmappedArrayCreate" },
	};
	const bool was_made = soft_handle_was(kind, handle) || (kind == HANDLE_FUNCTION && soft_handle_was(HANDLE_KERNEL, handle));

	if (!handle)
		return soft_refuse(r, "the handle of the %s is NULL", kinds[kind].what);
	if (was_made)
		return soft_refuse(r, "the %s with the handle %p was destroyed before", kinds[kind].what, handle);
	return soft_refuse(r, "%p is not the handle of a%s %s; %s returns such handles", handle,
			   strchr("aeio", *kinds[kind].what) ? "n" : "", kinds[kind].what, kinds[kind].maker);
}

static void keep_and_print_fault(const char *text, const char *line)
{
	pthread_mutex_lock(&fault_lock);
	snprintf(last_fault, sizeof last_fault, "%s", text);
	snprintf(last_line, sizeof last_line, "%s", line);
	pthread_mutex_unlock(&fault_lock);
	if (!is_quiet())
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

/* Return the text of this process's newest kernel fault, or of the newest refusal to run a kernel; "" if there was
 * none.  Each thread has its own buffer, which its next call overwrites. */
const char *gpuloadSoftLastFault(void)
{
	struct thread_texts *t = soft_thread_texts(true);

	if (!t)
		return "";
	pthread_mutex_lock(&fault_lock);
	memcpy(t->fault, last_fault, sizeof t->fault);
	pthread_mutex_unlock(&fault_lock);
	return t->fault;
}

/* Return the line of CUDA C++ that caused the newest kernel fault, without its newline; "" if the file or the line is unknown,
 * cannot be read, or has changed.  Each thread has its own buffer, which its next call overwrites. */
const char *gpuloadSoftLastFaultLine(void)
{
	struct thread_texts *t = soft_thread_texts(true);

	if (!t)
		return "";
	pthread_mutex_lock(&fault_lock);
	memcpy(t->line, last_line, sizeof t->line);
	pthread_mutex_unlock(&fault_lock);
	return t->line;
}

/* Choose whether faults are printed when they happen (print is not 0, the default), or not (0), because the caller reports them itself. */
void gpuloadSoftPrintFaults(int print)
{
	atomic_store(&faults_are_printed, print != 0);
}

/* Set the name that messages use for the images that this thread loads from memory from now on.  The name is copied; NULL: "<ptx>",
 * the default.  No call of the driver API has a parameter for such a name. */
void gpuloadSoftNameImages(const char *name)
{
	struct thread_texts *t = soft_thread_texts(true);
	char *whole = strdup(name ? name : "");

	if (whole && t)
		gpul_text_fit(whole, sizeof t->image_name);
	if (t)
		snprintf(t->image_name, sizeof t->image_name, "%s", whole ? whole : "");
	free(whole);
}

const char *soft_image_name(void)
{
	const struct thread_texts *t = soft_thread_texts(false);
	int64_t never = 0;

	atomic_compare_exchange_strong(&load_time, &never, (int64_t)time(NULL));
	return t && *t->image_name ? t->image_name : "<ptx>";
}
