/* test_regcache_threads.c — the registration cache used by several threads, and the driver's registration functions. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "memalloc/regcache.h"

enum { THREADS = 8, STEPS = 2000, PAGES = 96 };

/* The state of each page, kept by the registration functions.  cmocka's assertions work only in the main
 * thread, so other threads count violations. */
struct watched {
	atomic_int busy[PAGES], registered[PAGES];
	atomic_int n_regs, n_wrong;
	bool may_overlap;
	unsigned op_us;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void *address(unsigned page)
{
	return (void *)((uintptr_t)(4096 + page) * page_bytes());
}

static unsigned page_of(const void *at)
{
	return (unsigned)((uintptr_t)at / page_bytes()) - 4096;
}

static void change_pages(struct watched *w, const void *at, size_t bytes, int by)
{
	unsigned first = page_of(at), end = first + (unsigned)(bytes / page_bytes());

	for (unsigned p = first; p < end; p++)
		w->n_wrong += atomic_fetch_add(&w->busy[p], 1) != 0;
	if (w->op_us)
		usleep(w->op_us);
	for (unsigned p = first; p < end; p++) {
		int n = atomic_fetch_add(&w->registered[p], by) + by;

		w->n_wrong += n < 0 || (n > 1 && !w->may_overlap);
		atomic_fetch_sub(&w->busy[p], 1);
	}
}

static gpul_status watch_reg(void *user, void *at, size_t bytes, void **token, gpul_error *err)
{
	struct watched *w = user;

	(void)err;
	w->n_regs++;
	change_pages(w, at, bytes, 1);
	*token = at;
	return GPUL_OK;
}

static void watch_dereg(void *user, void *at, size_t bytes, void *token)
{
	(void)token;
	change_pages(user, at, bytes, -1);
}

static gpul_regcache *create_cache(struct watched *w, size_t idle_bytes)
{
	gpul_reg_ops ops = { watch_reg, watch_dereg, w->may_overlap, w };
	gpul_regcache *c = NULL;

	assert_int_equal(gpul_regcache_create(&ops, idle_bytes, &c, NULL), GPUL_OK);
	return c;
}

struct task {
	gpul_regcache *cache;
	struct watched *w;
	unsigned seed;
	int n_wrong;
	const gpul_region *got;
};

static void run_threads(void *(*body)(void *), struct task *tasks, gpul_regcache *c, struct watched *w)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		tasks[i] = (struct task){ .cache = c, .w = w, .seed = i + 1 };
		assert_int_equal(pthread_create(&threads[i], NULL, body, &tasks[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void *get_page_0(void *arg)
{
	struct task *t = arg;

	t->n_wrong = gpul_regcache_get(t->cache, address(0), page_bytes(), &t->got, NULL) != GPUL_OK;
	return NULL;
}

static void concurrent_misses_register_once(void **state)
{
	struct watched w = { .op_us = 20000 };
	gpul_regcache *c = create_cache(&w, 0);
	gpul_regcache_stats stats;
	struct task tasks[THREADS];

	(void)state;
	run_threads(get_page_0, tasks, c, &w);
	gpul_regcache_stats_get(c, &stats);
	assert_int_equal(w.n_regs, 1);
	assert_int_equal(stats.misses, 1);
	assert_int_equal(stats.hits, THREADS - 1);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(tasks[i].n_wrong, 0);
		assert_ptr_equal(tasks[i].got, tasks[0].got);
		gpul_regcache_put(c, tasks[i].got);
	}
	assert_int_equal(w.registered[0], 0);
	gpul_regcache_destroy(c);
}

/* Check that all requested pages are registered while a thread uses the region. */
static bool is_covered(const struct watched *w, const gpul_region *r, unsigned first, unsigned n)
{
	unsigned at = page_of(r->at), end = at + (unsigned)(r->bytes / page_bytes());

	for (unsigned p = first; p < first + n; p++)
		if (w->registered[p] < 1 || p < at || p >= end)
			return false;
	return true;
}

static void *get_and_put_randomly(void *arg)
{
	struct task *t = arg;
	uint64_t s = t->seed * 0x9e3779b97f4a7c15u;

	for (int i = 0; i < STEPS; i++) {
		const gpul_region *r = NULL;
		unsigned first, n;
		gpul_region copy;
		gpul_status st;

		s = s * 6364136223846793005u + 1442695040888963407u;
		first = (unsigned)(s >> 33) % (PAGES - 8);
		n = 1 + (unsigned)(s >> 60) % 8;
		if (i % 16 == 0) {
			gpul_regcache_invalidate(t->cache, address(first), n * page_bytes());
			continue;
		}
		gpul_regcache_find(t->cache, address(first), &copy);
		st = gpul_regcache_get(t->cache, address(first), n * page_bytes(), &r, NULL);
		t->n_wrong += st && (st != GPUL_EUNSUPPORTED || t->w->may_overlap);
		if (st)
			continue;
		t->n_wrong += !is_covered(t->w, r, first, n);
		if (i % 4 == 0)
			usleep(1);
		t->n_wrong += !is_covered(t->w, r, first, n);
		gpul_regcache_put(t->cache, r);
	}
	return NULL;
}

static void check_no_concurrent_ops_on_a_page(bool may_overlap)
{
	struct watched w = { .may_overlap = may_overlap };
	gpul_regcache *c = create_cache(&w, 32 * page_bytes());
	struct task tasks[THREADS];
	gpul_regcache_stats stats;

	run_threads(get_and_put_randomly, tasks, c, &w);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(tasks[i].n_wrong, 0);
	assert_int_equal(w.n_wrong, 0);
	gpul_regcache_stats_get(c, &stats);
	assert_int_equal(stats.n_in_use, 0);
	assert_true(stats.registered_bytes <= 32 * page_bytes());
	gpul_regcache_destroy(c);
	for (unsigned p = 0; p < PAGES; p++)
		assert_int_equal(w.registered[p], 0);
}

static void concurrent_ops_never_overlap(void **state)
{
	(void)state;
	check_no_concurrent_ops_on_a_page(false);
}

static void ops_of_8_threads_never_share_a_page_with_overlap(void **state)
{
	(void)state;
	check_no_concurrent_ops_on_a_page(true);
}

/* ---- the driver's registration functions, on a driver of four calls ----------------------- */

static struct {
	CUdeviceptr known, known_bytes; /* memory that the driver allocated */
	void *registered;
	size_t bytes;
	unsigned flags;
	CUresult answer;
} fake;

static CUresult fake_attribute(void *data, CUpointer_attribute which, CUdeviceptr at)
{
	if (at < fake.known || at >= fake.known + fake.known_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
		memcpy(data, &fake.known, sizeof fake.known);
	else if (which == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
		memcpy(data, &fake.known_bytes, sizeof fake.known_bytes);
	return CUDA_SUCCESS;
}

static CUresult fake_register(void *at, size_t bytes, unsigned flags)
{
	fake.registered = at;
	fake.bytes = bytes;
	fake.flags = flags;
	return fake.answer;
}

static CUresult fake_unregister(void *at)
{
	assert_ptr_equal(at, fake.registered);
	fake.registered = NULL;
	return CUDA_SUCCESS;
}

static CUresult fake_name(CUresult r, const char **name)
{
	(void)r;
	*name = "CUDA_ERROR_FAKE";
	return CUDA_SUCCESS;
}

static const gpul_driver four_calls = {
	.name = "fake",
	.cuPointerGetAttribute = fake_attribute,
	.cuMemHostRegister = fake_register,
	.cuMemHostUnregister = fake_unregister,
	.cuGetErrorName = fake_name,
	.cuGetErrorString = fake_name,
};

static gpul_status get_two_pages(gpul_error *err)
{
	gpul_reg_ops ops = gpul_reg_ops_driver(&four_calls);
	const gpul_region *r = NULL;
	gpul_regcache *c = NULL;
	gpul_status st;

	assert_int_equal(gpul_regcache_create(&ops, 0, &c, NULL), GPUL_OK);
	st = gpul_regcache_get(c, address(1), 2 * page_bytes(), &r, err);
	if (!st)
		gpul_regcache_put(c, r);
	gpul_regcache_destroy(c);
	return st;
}

static void registers_memory_unknown_to_the_driver(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	memset(&fake, 0, sizeof fake);
	assert_int_equal(get_two_pages(&err), GPUL_OK);
	assert_null(fake.registered);
	assert_int_equal(fake.bytes, 2 * page_bytes());
	assert_int_equal(fake.flags, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	fake.answer = CUDA_ERROR_NOT_PERMITTED;
	assert_int_equal(get_two_pages(&err), GPUL_ECUDA);
	assert_int_equal(err.native, CUDA_ERROR_NOT_PERMITTED);
}

static void accepts_memory_of_the_driver_unchanged(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	memset(&fake, 0, sizeof fake);
	fake.known = (CUdeviceptr)(uintptr_t)address(0);
	fake.known_bytes = 3 * page_bytes();
	assert_int_equal(get_two_pages(&err), GPUL_OK);
	assert_int_equal(fake.bytes, 0);
	fake.known_bytes = 2 * page_bytes(); /* the driver's allocation ends before the second page */
	assert_int_equal(get_two_pages(&err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "separately"));
	assert_int_equal(fake.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(concurrent_misses_register_once),
		cmocka_unit_test(concurrent_ops_never_overlap),
		cmocka_unit_test(ops_of_8_threads_never_share_a_page_with_overlap),
		cmocka_unit_test(registers_memory_unknown_to_the_driver),
		cmocka_unit_test(accepts_memory_of_the_driver_unchanged),
	};

	return cmocka_run_group_tests_name("regcache_threads", tests, NULL, NULL);
}
