/* test_probe_auto.c — AUTO takes the word of a probe: what was found not to work is not tried
 * again. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "memalloc/probe.h"
#include "tests/memalloc/support.h"

static gpul_mem_kind taken(const gpul_driver *drv, gpul_mem_kind kind, char why[248])
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

static void auto_skips_what_a_probe_found_not_to_work(void **state)
{
	const gpul_mem_probe_report *r = NULL;
	struct rlimit before, small;
	gpul_context context = { 0 };
	const gpul_driver *drv = open_driver(&context);
	char why[248];

	(void)state;
	/* Files of a megabyte and no more: those of the software driver's host-numa memory have
	 * two. */
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
		skip(); /* NVIDIA's needs no file */
	}
	assert_int_equal(r->taken, GPUL_MEM_MEMFD);
	/* It would work again; who asks for it by name gets it. */
	assert_int_equal(taken(drv, GPUL_MEM_AUTO, why), GPUL_MEM_MEMFD);
	assert_non_null(strstr(why, "host-numa"));
	assert_int_equal(taken(drv, GPUL_MEM_HOST_NUMA, why), GPUL_MEM_HOST_NUMA);
	gpul_context_close(&context);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auto_skips_what_a_probe_found_not_to_work),
	};

	return cmocka_run_group_tests_name("probe_auto", tests, NULL, NULL);
}
