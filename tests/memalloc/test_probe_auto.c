/* test_probe_auto.c — AUTO skips kinds that an earlier probe found not to work. */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/support/cmocka.h"
#include "memalloc/probe.h"
#include "tests/memalloc/support.h"

static gpul_mem_kind create_and_destroy(const gpul_driver *drv, gpul_mem_kind kind, char why[248])
{
	gpul_mem_desc desc = wanted(kind, 1000);
	gpul_error err = { 0 };
	gpul_mem *m = NULL;
	gpul_mem_kind is;

	if (gpul_mem_create(drv, &desc, &m, &err))
		fail_msg("%s", err.text);
	is = gpul_mem_about(m)->kind;
	memcpy(why, gpul_mem_about(m)->why, 248);
	gpul_mem_destroy(m);
	return is;
}

static void auto_skips_kinds_that_failed_in_a_probe(void **state)
{
	const gpul_mem_probe_report *r = NULL;
	struct rlimit before, small;
	gpul_context context = { 0 };
	const gpul_driver *drv = open_driver(&context);
	char why[248];

	(void)state;
	/* Limit files to 1 MiB: the software driver's host-numa memory needs files of 2 MiB. */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 1 << 20;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(gpul_mem_probe(drv, 0, &r, NULL), GPUL_OK);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(r->kind[GPUL_MEM_MEMFD].shares);
	if (r->kind[GPUL_MEM_HOST_NUMA].works) {
		gpul_context_close(&context);
		skip(); /* NVIDIA's driver does not use files */
	}
	assert_int_equal(r->taken, GPUL_MEM_MEMFD);
	/* Without the limit host-numa works again: AUTO still skips it, but a request by name gets it. */
	assert_int_equal(create_and_destroy(drv, GPUL_MEM_AUTO, why), GPUL_MEM_MEMFD);
	assert_non_null(strstr(why, "host-numa"));
	assert_int_equal(create_and_destroy(drv, GPUL_MEM_HOST_NUMA, why), GPUL_MEM_HOST_NUMA);
	gpul_context_close(&context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auto_skips_kinds_that_failed_in_a_probe),
	};

	return cmocka_run_group_tests_name("probe_auto", tests, NULL, NULL);
}
