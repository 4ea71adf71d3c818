/* support.c — helpers for the tests of rdma/gpu that accept every driver. */
#include "tests/rdma/gpu/support.h"

#include <stdio.h>

#include "tests/support/cmocka.h"

const gpul_driver *drv;
gpul_context context;

bool open_gpu(void)
{
	gpul_error err = { 0 };

	if (!gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err) && !gpul_context_open(drv, 0, &context, &err))
		return true;
	fprintf(stderr, "%s\n", err.text);
	return false;
}

void must(CUresult r, const char *what)
{
	if (r)
		fail_msg("%s: CUresult %d", what, (int)r);
}

gpul_mem *create_memory(gpul_mem_kind kind, size_t bytes)
{
	static const int device = 0;
	const gpul_mem_desc desc = { .kind = kind, .bytes = bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1 };
	gpul_mem *m = NULL;
	gpul_error err = { 0 };

	if (gpul_mem_create(drv, &desc, &m, &err))
		fail_msg("%s: %s", gpul_mem_kind_name(kind), err.text);
	return m;
}
