/* test_verbs_nearest.c — the verbs backend opens the NIC that is nearest to the GPU, or another one if that cannot be used. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "rdma/backend/backend.h"
#include "rdma/verbs/verbs_lib.h"
#include "tests/rdma/nic/tree.h"

#if GPUL_HAVE_LIBIBVERBS

#include "tests/fake/fake_driver.h"
#include "tests/fake/fake_verbs.h"

static const struct gpul_verbs *fake;
static struct gpul_verbs table; /* a copy of libibverbs' functions, some of which a test replaces */

/* Install a fake libibverbs with n devices, and create the sysfs tree of a machine that contains them. */
static struct tree start(int n, const char *machine)
{
	struct tree t = tree_create(machine);

	setenv("GPULOAD_SYSFS", t.root, 1);
	fake = fake_verbs(0);
	table = *fake;
	gpul_verbs_use(&table);
	fake_verbs_behave()->n_devices = n;
	return t;
}

static void end(struct tree *t)
{
	unsetenv("GPULOAD_SYSFS");
	gpul_verbs_use(NULL);
	assert_int_equal(fake_verbs_alive(), 0);
	tree_remove(t);
}

/* Open a device for a GPU; returns the name of the chosen device and the reason. */
static gpul_rdma_device_info open_for(int gpu, const gpul_driver *drv, const char *device)
{
	const gpul_rdma_device_desc desc = { .drv = drv, .gpu = gpu, .gid_index = -1, .device = device };
	gpul_rdma_device_info info = { .name = "" };
	gpul_error err = { 0 };
	void *opened;

	if (gpul_rdma_verbs.open(&desc, &opened, &err))
		fail_msg("%s", err.text);
	gpul_rdma_verbs.about(opened, &info);
	gpul_rdma_verbs.close(opened);
	return info;
}

static const gpul_driver *two_gpus(void)
{
	const gpul_driver *drv = fake_driver(0);

	fake_behave()->n_devices = 2;
	return drv;
}

static void each_gpu_gets_the_nic_behind_its_switch(void **state)
{
	struct tree t = start(3, "fake-nics");
	gpul_rdma_device_info info;

	(void)state;
	info = open_for(0, two_gpus(), NULL);
	assert_string_equal(info.name, "fake2 port 1");
	assert_non_null(strstr(info.why, "fake2 is below the same PCIe switch as GPU 0000:00:00.0 (PIX), first active port; GID 1"));
	info = open_for(1, two_gpus(), NULL);
	assert_string_equal(info.name, "fake1 port 1");
	end(&t);
}

static void without_a_gpu_the_fastest_nic_is_opened(void **state)
{
	struct tree t = start(3, "fake-nics");

	(void)state;
	assert_string_equal(open_for(-1, two_gpus(), NULL).name, "fake0 port 1");
	assert_string_equal(open_for(0, NULL, NULL).name, "fake0 port 1");
	end(&t);
}

static void the_users_choice_comes_first(void **state)
{
	struct tree t = start(3, "fake-nics");
	gpul_rdma_device_info info;

	(void)state;
	info = open_for(0, two_gpus(), "fake1");
	assert_string_equal(info.name, "fake1 port 1");
	assert_non_null(strstr(info.why, "chosen by the user"));
	end(&t);
}

static void nics_that_libibverbs_does_not_list_are_passed_over(void **state)
{
	struct tree t = start(2, "fake-nics");

	(void)state;
	assert_string_equal(open_for(0, two_gpus(), NULL).name, "fake1 port 1"); /* fake2 does not exist */
	end(&t);
}

static void without_sysfs_the_first_device_is_opened(void **state)
{
	struct tree t = start(2, "nothing");
	gpul_rdma_device_info info;

	(void)state;
	info = open_for(0, two_gpus(), NULL);
	assert_string_equal(info.name, "fake0 port 1");
	assert_non_null(strstr(info.why, "first usable device"));
	setenv("GPULOAD_SYSFS", "/nonexistent", 1);
	assert_string_equal(open_for(0, two_gpus(), NULL).name, "fake0 port 1");
	end(&t);
}

static struct ibv_context *open_not_fake2(struct ibv_device *device)
{
	if (strcmp(device->name, "fake2") != 0)
		return fake->open_device(device);
	errno = EACCES;
	return NULL;
}

static void another_nic_is_opened_if_the_nearest_cannot_be_used(void **state)
{
	struct tree t = start(3, "fake-nics");
	gpul_rdma_device_info info;

	(void)state;
	table.open_device = open_not_fake2;
	info = open_for(0, two_gpus(), NULL);
	assert_string_equal(info.name, "fake0 port 1");
	assert_non_null(strstr(info.why, "the nearest NIC cannot be used"));
	end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gpu_gets_the_nic_behind_its_switch),
		cmocka_unit_test(without_a_gpu_the_fastest_nic_is_opened),
		cmocka_unit_test(the_users_choice_comes_first),
		cmocka_unit_test(nics_that_libibverbs_does_not_list_are_passed_over),
		cmocka_unit_test(without_sysfs_the_first_device_is_opened),
		cmocka_unit_test(another_nic_is_opened_if_the_nearest_cannot_be_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	printf("skipped: built without libibverbs\n");
	return 77;
}

#endif
