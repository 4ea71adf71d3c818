/* test_visible.c — which devices a process sees: GPULOAD_SOFT_DEVICES and CUDA_VISIBLE_DEVICES.
 *
 * Each question is asked in a process of its own, since cuInit reads the environment once. */
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
	int physical[MAX_ANSWER];     /* as the bus id says */
	char uuid[MAX_ANSWER][16];
};

static void describe(struct answer *a)
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

static void answer(int peer)
{
	struct answer a = { .init = cuInit(0) };

	if (!a.init)
		describe(&a);
	tell(peer, &a, sizeof a);
}

static struct answer ask(const char *visible)
{
	struct answer a;
	pid_t side;
	int fd[2];

	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	make_sockets(fd);
	side = start_side(answer, fd[0], fd[1]);
	hear(fd[1], &a, sizeof a);
	end_side(side);
	close(fd[0]);
	close(fd[1]);
	return a;
}

/* The devices seen, one digit each: "20" is 2, then 0. */
static void sees(const char *visible, const char *physical)
{
	struct answer a = ask(visible);

	assert_int_equal(a.init, *physical ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
	assert_int_equal(a.init ? 0 : a.n, strlen(physical));
	for (int i = 0; physical[i]; i++)
		assert_int_equal(a.physical[i], physical[i] - '0');
}

static void shows_all_in_order_unless_told(void **state)
{
	(void)state;
	sees(NULL, "0123");
}

static void shows_what_is_listed_as_it_is_listed(void **state)
{
	(void)state;
	sees("1,0", "10");
	sees("3", "3");
	sees("2,0,3,1", "2031");
}

static void stops_before_what_is_no_device(void **state)
{
	(void)state;
	sees("0,5", "0");
	sees("0,2,-1,1", "02");
	sees("1,x", "1");
	sees("1,2x,3", "1");
	sees("5,0", "");
	sees("-1", "");
	sees("", "");
	sees("GPU-", "");
	sees("MIG-01677075", "");
}

static void refuses_a_device_twice(void **state)
{
	(void)state;
	assert_int_equal(ask("0,0").init, CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(ask("1,GPU-02").init, CUDA_SUCCESS);  /* kinds do not mix: it stops there */
	assert_int_equal(ask("GPU-02,GPU-026770").init, CUDA_ERROR_INVALID_DEVICE);
}

static void takes_the_beginning_of_a_uuid(void **state)
{
	(void)state;
	sees("GPU-02677075", "1");
	sees("GPU-03,GPU-01", "20");
	sees("gpu-03", "2");
	sees("GPU-03,0", "2");
	sees("GPU-0", "");  /* which one? */
	sees("GPU-02677075-6c6f-6164-2d73-6f6674677075", "1");
	sees("GPU-02677075-6c6f-6164-2d73-6f66746770750", "");
}

static void a_uuid_is_one_device_in_every_process(void **state)
{
	struct answer all = ask(NULL), some = ask("2,1");

	(void)state;
	assert_memory_equal(some.uuid[0], all.uuid[2], 16);
	assert_memory_equal(some.uuid[1], all.uuid[1], 16);
	assert_memory_not_equal(all.uuid[0], all.uuid[1], 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_all_in_order_unless_told),
		cmocka_unit_test(shows_what_is_listed_as_it_is_listed),
		cmocka_unit_test(stops_before_what_is_no_device),
		cmocka_unit_test(refuses_a_device_twice),
		cmocka_unit_test(takes_the_beginning_of_a_uuid),
		cmocka_unit_test(a_uuid_is_one_device_in_every_process),
	};

	if (!on_software_driver())
		return 77;  /* the numbers are of its four devices */
	setenv("GPULOAD_SOFT_DEVICES", "4", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
