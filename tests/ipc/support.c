/* support.c — helpers for tests that share memory between processes; see support.h. */
#include "tests/ipc/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

static gpul_context context;
static char folder[64];

static void assert_ok(gpul_status st, const gpul_error *err)
{
	if (st)
		fail_msg("status %d, native %d: %s", st, err->native, err->text);
}

const gpul_driver *the_driver(void)
{
	const gpul_driver *drv;
	gpul_error err = { 0 };

	assert_ok(gpul_driver_open(GPUL_DRIVER_SOFT, &drv, &err), &err);
	if (!context.handle)
		assert_ok(gpul_context_open(drv, 0, &context, &err), &err);
	return drv;
}

void close_the_driver(void)
{
	gpul_context_close(&context);
}

void make_runtime_folder(void)
{
	snprintf(folder, sizeof folder, "/tmp/gpuload-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("GPULOAD_RUNTIME_DIR", folder, 1), 0);
}

void remove_runtime_folder(void)
{
	DIR *d = opendir(folder);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			(void)unlinkat(dirfd(d), e->d_name, 0);
	closedir(d);
	assert_int_equal(rmdir(folder), 0);
}

int set_up_folder_and_driver(void **state)
{
	(void)state;
	make_runtime_folder();
	(void)the_driver();
	return 0;
}

int tear_down_folder_and_driver(void **state)
{
	(void)state;
	close_the_driver();
	remove_runtime_folder();
	return 0;
}

gpul_mem *make_memory(gpul_mem_kind kind, size_t bytes)
{
	int device = 0;
	gpul_mem_desc desc = { .kind = kind, .bytes = bytes, .devices = &device, .n_devices = 1, .exportable = true };
	gpul_error err = { 0 };
	gpul_mem *mem = NULL;

	assert_ok(gpul_mem_create(the_driver(), &desc, &mem, &err), &err);
	return mem;
}

gpul_ipc_server *offer(gpul_mem *mem, const char *name)
{
	gpul_ipc_server_options options = { .name = name, .control = true };
	gpul_ipc_server *s = NULL;
	gpul_error err = { 0 };

	assert_ok(gpul_ipc_server_create(the_driver(), mem, &options, &s, &err), &err);
	return s;
}

gpul_ipc_client *begin_attach(const char *name)
{
	int device = 0;
	gpul_ipc_client_options options = { .name = name, .devices = &device, .n_devices = 1 };
	gpul_ipc_client *c = NULL;
	gpul_error err = { 0 };

	assert_ok(gpul_ipc_client_open(the_driver(), &options, &c, &err), &err);
	return c;
}

gpul_ipc_event expect_event(gpul_ipc_server *s, gpul_ipc_event_kind kind)
{
	gpul_ipc_event event;
	gpul_error err = { 0 };

	assert_ok(gpul_ipc_server_next(s, kind == GPUL_IPC_NONE ? 0 : PATIENCE_MS, &event, &err), &err);
	if (event.kind != kind)
		fail_msg("the server reports %s (%s) instead of %s", gpul_ipc_event_name(event.kind), event.why.text,
			 gpul_ipc_event_name(kind));
	return event;
}

gpul_ipc_event expect_client_event(gpul_ipc_client *c, gpul_ipc_event_kind kind)
{
	gpul_ipc_event event;
	gpul_error err = { 0 };

	assert_ok(gpul_ipc_client_next(c, kind == GPUL_IPC_NONE ? 0 : PATIENCE_MS, &event, &err), &err);
	if (event.kind != kind)
		fail_msg("the client reports %s (%s) instead of %s", gpul_ipc_event_name(event.kind), event.why.text,
			 gpul_ipc_event_name(kind));
	return event;
}

gpul_ipc_client *attach_here(gpul_ipc_server *s, const char *name)
{
	gpul_ipc_client *c = begin_attach(name);

	expect_event(s, GPUL_IPC_NONE);
	expect_client_event(c, GPUL_IPC_ATTACHED);
	expect_event(s, GPUL_IPC_ATTACHED);
	return c;
}
