/* test_failing_driver.c — memory is offered, attached and detached while each driver call fails in turn, with each error: nothing leaks. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/fake/fake_memory.h"
#include "tests/ipc/support.h"

static const CUresult errors[] = {
	CUDA_ERROR_INVALID_VALUE,
	CUDA_ERROR_OUT_OF_MEMORY,
	CUDA_ERROR_NOT_INITIALIZED,
	CUDA_ERROR_DEINITIALIZED,
	CUDA_ERROR_NO_DEVICE,
	CUDA_ERROR_INVALID_DEVICE,
	CUDA_ERROR_INVALID_CONTEXT,
	CUDA_ERROR_MAP_FAILED,
	CUDA_ERROR_ALREADY_MAPPED,
	CUDA_ERROR_OPERATING_SYSTEM,
	CUDA_ERROR_INVALID_HANDLE,
	CUDA_ERROR_NOT_READY,
	CUDA_ERROR_ILLEGAL_ADDRESS,
	CUDA_ERROR_CONTEXT_IS_DESTROYED,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
	CUDA_ERROR_NOT_PERMITTED,
	CUDA_ERROR_NOT_SUPPORTED,
	CUDA_ERROR_UNKNOWN,
};
enum { N_ERRORS = sizeof errors / sizeof errors[0] };

static const struct way {
	gpul_mem_kind kind;
	bool fabric;
} ways[] = {
	{ GPUL_MEM_HOST_NUMA, false }, { GPUL_MEM_DEVICE, false }, { GPUL_MEM_DEVICE, true },
	{ GPUL_MEM_MEMFD, false },     { GPUL_MEM_SHM, false },    { GPUL_MEM_DEVICE_IPC, false },
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

static CUresult get_uuid(CUuuid *out, CUdevice device)
{
	CUresult r = fake_step();

	memset(out, 1 + device, sizeof *out);
	return r;
}

static CUresult get_event_handle(CUipcEventHandle *out, CUevent event)
{
	(void)event;
	memset(out, 7, sizeof *out);
	return fake_step();
}

static CUresult open_event_handle(CUevent *out, CUipcEventHandle handle)
{
	CUresult r = fake_step();

	(void)handle;
	if (r)
		return r;
	fake_count(FAKE_EVENT, 1);
	*out = (CUevent)(uintptr_t)64;
	return CUDA_SUCCESS;
}

static CUresult record(CUcontext context, CUevent event)
{
	(void)context;
	(void)event;
	return fake_step();
}

static const gpul_driver *complete_driver(gpul_context *c)
{
	static gpul_driver table;

	table = *fake_memory_driver(0, CUDA_SUCCESS);
	table.cuDeviceGetUuid = get_uuid;
	table.cuIpcGetEventHandle = get_event_handle;
	table.cuIpcOpenEventHandle = open_event_handle;
	table.cuCtxRecordEvent = record;
	assert_int_equal(gpul_context_open(&table, 0, c, NULL), GPUL_OK);
	return &table;
}

/* Attach to a name and detach again; returns the first error. */
static gpul_status attach_and_detach(const gpul_driver *drv, gpul_ipc_server *s, gpul_error *err)
{
	gpul_ipc_client_options options = { .name = "failing", .devices = (int[]){ 0 }, .n_devices = 1 };
	gpul_ipc_event event;
	gpul_ipc_client *c = NULL;
	gpul_status st = gpul_ipc_client_open(drv, &options, &c, err);

	if (st)
		return st;
	assert_int_equal(gpul_ipc_server_next(s, 0, &event, NULL), GPUL_OK);
	st = gpul_ipc_client_next(c, PATIENCE_MS, &event, err);
	assert_int_equal(gpul_ipc_client_mem(c) != NULL, !st && event.kind == GPUL_IPC_ATTACHED);
	assert_int_equal(gpul_ipc_server_next(s, PATIENCE_MS, &event, NULL), GPUL_OK);
	assert_int_equal(event.kind, st ? GPUL_IPC_REFUSED : GPUL_IPC_ATTACHED);
	if (st)
		assert_non_null(strstr(event.why.text, "could not map the memory"));
	/* Even if a call fails here, closing succeeds, because the GPU is not busy. */
	assert_int_equal(gpul_ipc_client_close(c, 0, NULL), GPUL_OK);
	if (st)
		return st;
	assert_int_equal(gpul_ipc_server_next(s, PATIENCE_MS, &event, NULL), GPUL_OK);
	assert_int_equal(event.kind, GPUL_IPC_DETACHED);
	return GPUL_OK;
}

static gpul_status offer_and_lease(const gpul_driver *drv, gpul_mem *mem, bool fabric, gpul_error *err)
{
	gpul_ipc_server_options options = { .name = "failing", .fabric = fabric, .control = true, .gpu_event = true };
	gpul_ipc_server *s = NULL;
	gpul_status st = gpul_ipc_server_create(drv, mem, &options, &s, err);

	assert_int_equal(s == NULL, st != GPUL_OK);
	if (!st)
		st = attach_and_detach(drv, s, err);
	gpul_ipc_server_destroy(s);
	return st;
}

/* Run with a driver whose n-th call fails.  Returns false if there are fewer calls. */
static bool fail_nth(struct way way, int n, CUresult error)
{
	gpul_context context = { 0 };
	const gpul_driver *drv = complete_driver(&context);
	gpul_mem_desc desc = {
		.kind = way.kind, .bytes = 1 << 16, .devices = (int[]){ 0 }, .n_devices = 1, .fabric = way.fabric, .exportable = true
	};
	unsigned fds = count_fds(), maps = count_mappings();
	gpul_error err = { 0 };
	gpul_mem *mem;
	int calls;
	gpul_status st;

	assert_int_equal(gpul_mem_create(drv, &desc, &mem, NULL), GPUL_OK);
	calls = fake_calls();
	fake_fail_next(n, error);
	st = offer_and_lease(drv, mem, way.fabric, &err);
	assert_int_equal(st, err.status);
	if (n == 0 && st)
		fail_msg("%s%s: %s", gpul_mem_kind_name(way.kind), way.fabric ? " by fabric" : "", err.text);
	calls = fake_calls() - calls;
	gpul_mem_destroy(mem);
	if (count_fds() != fds || count_mappings() > maps || fake_alive() != 1)
		fail_msg("%s, call %d, error %d: %u fds became %u, %u mappings became %u, %d objects leaked (%s)",
			 gpul_mem_kind_name(way.kind), n, (int)error, fds, count_fds(), maps, count_mappings(), fake_alive() - 1, err.text);
	gpul_context_close(&context);
	return n <= calls;
}

static void nothing_leaks_whichever_call_fails(void **state)
{
	(void)state;
	for (unsigned k = 0; k < N_WAYS; k++) {
		int n_calls = 0;

		(void)fail_nth(ways[k], 0, CUDA_SUCCESS);
		for (unsigned e = 0; e < N_ERRORS; e++)
			for (int n = 1; fail_nth(ways[k], n, errors[e]); n++)
				n_calls = n > n_calls ? n : n_calls;
		assert_true(n_calls > 10);
	}
}

static int set_up(void **state)
{
	(void)state;
	make_runtime_folder();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	remove_runtime_folder();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_leaks_whichever_call_fails),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
