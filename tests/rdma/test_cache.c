/* test_cache.c — without a cache, unregistering memory releases it; with a cache, its registration is reused until gpul_rdma_forget(). */
#include <stdlib.h>

#include "tests/support/cmocka.h"
#include "tests/fake/fake_ofi.h"
#include "tests/rdma/two_ends.h"

#if GPUL_HAVE_LIBFABRIC

enum { BYTES = 1 << 16 };

/* Return the number of fabric objects that remain after memory was registered and unregistered. */
static int left_behind(size_t cache_bytes, bool forget)
{
	void *memory = aligned_alloc(4096, BYTES);
	gpul_rdma_region *region = NULL;
	gpul_rdma *r = NULL;
	gpul_error err = { 0 };
	int before, after;

	assert_int_equal(gpul_rdma_open(&(gpul_rdma_desc){ .backend = "libfabric",
							   .cache_bytes = cache_bytes,
							   .device = { .gpu = -1, .gid_index = -1 } },
					&r, &err),
			 GPUL_OK);
	before = fake_ofi_alive();
	assert_int_equal(gpul_rdma_register(r, memory, BYTES, GPUL_RDMA_DATA, &region, &err), GPUL_OK);
	assert_true(fake_ofi_alive() > before);
	gpul_rdma_unregister(region);
	if (forget)
		gpul_rdma_forget(r, memory, BYTES);
	after = fake_ofi_alive();
	free(memory);
	gpul_rdma_close(r);
	assert_int_equal(fake_ofi_alive(), 0);
	return after - before;
}

static void memory_is_released_when_it_is_unregistered(void **state)
{
	(void)state;
	assert_int_equal(left_behind(0, false), 0);
	assert_true(left_behind(1 << 20, false) > 0);
	assert_int_equal(left_behind(1 << 20, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(memory_is_released_when_it_is_unregistered) };

	gpul_ofi_use(fake_ofi(0));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else
int main(void)
{
	return 77;
}
#endif
