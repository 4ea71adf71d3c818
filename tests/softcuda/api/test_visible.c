/* test_visible.c — which devices a process sees: GPULOAD_SOFT_DEVICES and CUDA_VISIBLE_DEVICES.
 *
 * Each query runs in a new process, because cuInit reads the environment once. */
#include "tests/softcuda/api/pair.h"
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ANSWER = 4 };

struct answer {
	CUresult init;
	int n;
	int physical[MAX_ANSWER]; /* number of the physical device, from its bus id */
	char uuid[MAX_ANSWER][16];
};

static void describe_devices(struct answer *a)
{
	must_ok(cuDeviceGetCount(&a->n));
	for (int i = 0; i < a->n; i++) {
		CUdevice back = -1;
		CUuuid uuid;
		char id[16];

		must_ok(cuDeviceGetAttribute(&a->physical[i], CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
		must_ok(cuDeviceGetUuid(&uuid, i));
		memcpy(a->uuid[i], uuid.bytes, 16);
		must_ok(cuDeviceGetPCIBusId(id, sizeof id, i));
		must_ok(cuDeviceGetByPCIBusId(&back, id));
		must(back == i);
	}
}

static void report_devices(int peer)
{
	struct answer a = { .init = cuInit(0) };

	if (!a.init)
		describe_devices(&a);
	send_bytes(peer, &a, sizeof a);
}

static struct answer query_devices(const char *visible)
{
	struct answer a;
	pid_t side;
	int fd[2];

	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	make_sockets(fd);
	side = start_side(report_devices, fd[0], fd[1]);
	receive_bytes(fd[1], &a, sizeof a);
	end_side(side);
	close(fd[0]);
	close(fd[1]);
	return a;
}

/* The expected physical numbers of the visible devices, one digit each: "20" means device 2, then device 0. */
static void expect_visible(const char *visible, const char *physical)
{
	struct answer a = query_devices(visible);

	assert_int_equal(a.init, *physical ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
	assert_int_equal(a.init ? 0 : a.n, strlen(physical));
	for (int i = 0; physical[i]; i++)
		assert_int_equal(a.physical[i], physical[i] - '0');
}

static void shows_all_devices_in_order_by_default(void **state)
{
	(void)state;
	expect_visible(NULL, "0123");
}

static void shows_the_listed_devices_in_the_listed_order(void **state)
{
	(void)state;
	expect_visible("1,0", "10");
	expect_visible("3", "3");
	expect_visible("2,0,3,1", "2031");
}

static void stops_at_the_first_invalid_device(void **state)
{
	(void)state;
	expect_visible("0,5", "0");
	expect_visible("0,2,-1,1", "02");
	expect_visible("1,x", "1");
	expect_visible("1,2x,3", "1");
	expect_visible("5,0", "");
	expect_visible("-1", "");
	expect_visible("", "");
	expect_visible("GPU-", "");
	expect_visible("MIG-01677075", "");
}

static void refuses_a_device_that_is_listed_twice(void **state)
{
	(void)state;
	assert_int_equal(query_devices("0,0").init, CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(query_devices("1,GPU-02").init,
			 CUDA_SUCCESS); /* numbers and UUIDs cannot be mixed, so the list ends at the UUID */
	assert_int_equal(query_devices("GPU-02,GPU-026770").init, CUDA_ERROR_INVALID_DEVICE);
}

static void accepts_the_beginning_of_a_uuid(void **state)
{
	(void)state;
	expect_visible("GPU-02677075", "1");
	expect_visible("GPU-03,GPU-01", "20");
	expect_visible("gpu-03", "2");
	expect_visible("GPU-03,0", "2");
	expect_visible("GPU-0", ""); /* the UUIDs of several devices begin with this text */
	expect_visible("GPU-02677075-6c6f-6164-2d73-6f6674677075", "1");
	expect_visible("GPU-02677075-6c6f-6164-2d73-6f66746770750", "");
}

static void a_uuid_is_the_same_device_in_every_process(void **state)
{
	struct answer all = query_devices(NULL), some = query_devices("2,1");

	(void)state;
	assert_memory_equal(some.uuid[0], all.uuid[2], 16);
	assert_memory_equal(some.uuid[1], all.uuid[1], 16);
	assert_memory_not_equal(all.uuid[0], all.uuid[1], 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_all_devices_in_order_by_default), cmocka_unit_test(shows_the_listed_devices_in_the_listed_order),
		cmocka_unit_test(stops_at_the_first_invalid_device),     cmocka_unit_test(refuses_a_device_that_is_listed_twice),
		cmocka_unit_test(accepts_the_beginning_of_a_uuid),       cmocka_unit_test(a_uuid_is_the_same_device_in_every_process),
	};

	if (!on_software_driver())
		return 77; /* the expected numbers are those of four software devices */
	setenv("GPULOAD_SOFT_DEVICES", "4", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
