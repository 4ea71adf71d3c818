/* cu_tools.c — starts the tools (softcuda/tools) in cuInit and finishes them at process exit. */
#include "softcuda/api/base/cu_state_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "softcuda/tools/memcheck/memcheck_internal.h"
#include "softcuda/tools/start/start_internal.h"

EXPORT int gpuloadSoftFinishTools(int at_once);
EXPORT const char *gpuloadSoftCheckTools(const char *list);
EXPORT void gpuloadSoftForgetMemory(uint64_t address, size_t bytes);

enum { LAST_KERNELS_S = 10 };

static bool any_pending(void)
{
	bool any = false;

	soft_lock();
	for (struct link *l = soft.contexts.next; soft.initialised && l != &soft.contexts; l = l->next)
		any |= !list_empty(&CONTAINER(l, struct context, link)->pending);
	soft_unlock();
	return any;
}

/* Wait for kernels at process exit, because many programs end without waiting for them. */
static void wait_for_last_kernels(void)
{
	const uint64_t limit = gpul_clock_ns() + LAST_KERNELS_S * UINT64_C(1000000000);

	while (any_pending()) {
		if (gpul_clock_ns() > limit) {
			fprintf(stderr,
				"gpuload soft driver: kernels are still running %d s after the end of the program: the tools report what "
				"they have recorded so far\n",
				LAST_KERNELS_S);
			return;
		}
		usleep(1000);
	}
}

void soft_tools_await(struct context *ctx)
{
	const uint64_t limit = gpul_clock_ns() + LAST_KERNELS_S * UINT64_C(1000000000);

	while (gpul_tools_are_used() && !list_empty(&ctx->pending) && gpul_clock_ns() < limit) {
		soft_unlock();
		usleep(1000);
		soft_lock();
	}
}

/* Wait until the kernels have ended, unless at_once, and let the tools of GPULOAD_SOFT_TOOLS write their remaining output.  Returns
 * the number of errors that the tools have found.  Without this call, the same happens at process exit. */
int gpuloadSoftFinishTools(int at_once)
{
	static pthread_once_t waited = PTHREAD_ONCE_INIT;

	if (!gpul_tools_are_used())
		return 0;
	if (!at_once)
		pthread_once(&waited, wait_for_last_kernels);
	return gpul_tools_finish(at_once && any_pending());
}

/* Check the names of tools and options in a list, in the format of GPULOAD_SOFT_TOOLS, before a program starts another program with
 * this list.  Returns the error text, or "" if the list is valid.  The next call overwrites the text. */
const char *gpuloadSoftCheckTools(const char *list)
{
	struct thread_texts *t = soft_thread_texts(true);

	if (!t)
		return "no memory is left";
	t->tools = (gpul_error){ 0 };
	(void)gpul_tools_check(list ? list : "", &t->tools);
	return t->tools.text;
}

/* Let memcheck treat memory of cuMemAlloc as unwritten, although it was filled.  No kernel may be using the memory. */
void gpuloadSoftForgetMemory(uint64_t address, size_t bytes)
{
	gpul_memcheck_forget(address, bytes);
}

static void finish_tools(void)
{
	(void)gpuloadSoftFinishTools(0);
}

/* Called at process exit: if a tool has found an error, change exit status 0 to the N of GPULOAD_SOFT_TOOLS_EXIT=N. */
static void exit_with_errors(int status, void *number)
{
	if (status || !gpuloadSoftFinishTools(0))
		return;
	fflush(NULL);
	_exit((int)(intptr_t)number);
}

/* Called at process exit: make the process fail because the tools could not start, so that unchecked kernels do not count as correct. */
static void exit_unchecked(int status, void *unused)
{
	enum { USAGE = 2 };

	(void)status;
	(void)unused;
	fflush(NULL);
	_exit(USAGE);
}

CUresult soft_start_tools(void)
{
	const char *number = secure_getenv("GPULOAD_SOFT_TOOLS_EXIT");
	gpul_error err = { 0 };
	gpul_status st = gpul_tools_start(soft.memory, &err);

	if (!st && gpul_tools_are_used() &&
	    (atexit(finish_tools) || (number && on_exit(exit_with_errors, (void *)(intptr_t)(atoi(number) & 0xff)))))
		st = gpul_fail(&err, GPUL_ENOMEM, 0, "no memory for the tools");
	if (!st)
		return CUDA_SUCCESS;
	soft_report_fault(err.text);
	if (err.status == GPUL_EINVAL)
		(void)on_exit(exit_unchecked, NULL);
	gpul_exec_memory_destroy(soft.memory);
	soft.memory = NULL;
	return err.status == GPUL_EINVAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OPERATING_SYSTEM;
}
