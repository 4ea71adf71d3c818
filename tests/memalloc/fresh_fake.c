/* fresh_fake.c — a reset fake driver with two devices. */
#include "tests/memalloc/fresh_fake.h"
#include "tests/support/cmocka.h"
#include "tests/fake/fake_driver.h"
#include "tests/fake/fake_memory.h"
#include "tests/memalloc/support.h"

const gpul_mem_kind all_kinds[N_ALL_KINDS] = {
	GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_PINNED, GPUL_MEM_DEVICE_IPC,
};

const gpul_driver *fresh_fake(gpul_context *c)
{
	const gpul_driver *drv = fake_memory_driver(0, CUDA_SUCCESS);

	fake_behave()->n_devices = 2;
	assert_int_equal(gpul_context_open(drv, 0, c, NULL), GPUL_OK);
	assert_int_equal(fake_alive(), 1);
	return drv;
}

gpul_mem_desc for_two(gpul_mem_kind kind)
{
	static const int devices[] = { 0, 1 };
	gpul_mem_desc desc = wanted(kind, BYTES);

	desc.devices = devices;
	desc.n_devices = 2;
	desc.fabric = kind == GPUL_MEM_DEVICE;
	return desc;
}
