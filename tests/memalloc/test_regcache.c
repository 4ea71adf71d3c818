/* test_regcache.c — the registration cache: each statement of its contract, and a comparison with a simple model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/memalloc/regcache_model.h"

static gpul_regcache *create_cache(struct counted *c, size_t idle_bytes)
{
	gpul_reg_ops ops = counted_ops(c);
	gpul_regcache *cache = NULL;

	assert_int_equal(gpul_regcache_create(&ops, idle_bytes, &cache, NULL), GPUL_OK);
	return cache;
}

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static const gpul_region *get_pages(gpul_regcache *c, unsigned page, unsigned n_pages)
{
	const gpul_region *r = NULL;
	gpul_error err = { 0 };

	if (gpul_regcache_get(c, counted_address(page), n_pages * page_bytes(), &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void registers_once_and_counts_users(void **state)
{
	struct counted ops = { .bad_page = MODEL_PAGES };
	gpul_regcache *c = create_cache(&ops, 64 * page_bytes());
	const gpul_region *a = get_pages(c, 4, 4), *b = get_pages(c, 5, 1);
	gpul_regcache_stats stats;

	(void)state;
	assert_ptr_equal(a, b);
	assert_ptr_equal(a->at, counted_address(4));
	assert_int_equal(a->bytes, 4 * page_bytes());
	gpul_regcache_put(c, a);
	gpul_regcache_put(c, b);
	assert_ptr_equal(get_pages(c, 7, 1), a); /* the region is unused, but still registered */
	gpul_regcache_stats_get(c, &stats);
	assert_int_equal(stats.hits, 2);
	assert_int_equal(stats.misses, 1);
	assert_int_equal(stats.n_in_use, 1);
	assert_int_equal(stats.n_regions, 1);
	assert_int_equal(stats.registered_bytes, 4 * page_bytes());
	assert_int_equal(ops.n_regs, 1);
	gpul_regcache_destroy(c);
	assert_int_equal(ops.n_deregs, 1);
}

static void registers_whole_pages(void **state)
{
	struct counted ops = { .bad_page = MODEL_PAGES };
	gpul_regcache *c = create_cache(&ops, 0);
	const gpul_region *r = NULL;
	char *at = (char *)counted_address(3) - 1;

	(void)state;
	assert_int_equal(gpul_regcache_get(c, at, 2, &r, NULL), GPUL_OK);
	assert_ptr_equal(r->at, counted_address(2));
	assert_int_equal(r->bytes, 2 * page_bytes());
	gpul_regcache_put(c, r);
	assert_int_equal(ops.n, 0); /* deregistered immediately, because idle_bytes is 0 */
	gpul_regcache_destroy(c);
}

static void evicts_the_least_recently_used_region_first(void **state)
{
	struct counted ops = { .bad_page = MODEL_PAGES };
	gpul_regcache *c = create_cache(&ops, 2 * page_bytes());
	gpul_regcache_stats stats;
	gpul_region r;

	(void)state;
	for (unsigned page = 0; page < 6; page += 2)
		gpul_regcache_put(c, get_pages(c, page, 1));
	assert_false(gpul_regcache_find(c, counted_address(0), &r));
	gpul_regcache_put(c, get_pages(c, 2, 1)); /* page 2 is used again, so page 4 is now the least recently used */
	gpul_regcache_put(c, get_pages(c, 8, 1));
	assert_true(gpul_regcache_find(c, counted_address(2), &r));
	assert_false(gpul_regcache_find(c, counted_address(4), &r));
	gpul_regcache_stats_get(c, &stats);
	assert_int_equal(stats.evictions, 2);
	gpul_regcache_destroy(c);
}

static void merges_unused_neighbours_into_one_region(void **state)
{
	struct counted ops = { .bad_page = MODEL_PAGES };
	gpul_regcache *c = create_cache(&ops, 64 * page_bytes());
	const gpul_region *r;

	(void)state;
	gpul_regcache_put(c, get_pages(c, 0, 3));
	gpul_regcache_put(c, get_pages(c, 5, 3));
	r = get_pages(c, 2, 4);
	assert_ptr_equal(r->at, counted_address(0));
	assert_int_equal(r->bytes, 8 * page_bytes());
	assert_int_equal(ops.n, 1);
	gpul_regcache_put(c, r);
	gpul_regcache_destroy(c);
}

static void refuses_to_overlap_a_region_in_use_unless_allowed(void **state)
{
	(void)state;
	for (int may = 0; may <= 1; may++) {
		struct counted ops = { .may_overlap = may, .bad_page = MODEL_PAGES };
		gpul_regcache *c = create_cache(&ops, 64 * page_bytes());
		const gpul_region *a = get_pages(c, 0, 4), *b = NULL;
		gpul_error err = { 0 };
		gpul_status st = gpul_regcache_get(c, counted_address(2), 4 * page_bytes(), &b, &err);

		if (may) {
			assert_int_equal(st, GPUL_OK);
			assert_ptr_equal(b->at, counted_address(2));
			gpul_regcache_put(c, b);
		} else {
			assert_int_equal(st, GPUL_EUNSUPPORTED);
			assert_non_null(strstr(err.text, "in use"));
			assert_null(b);
		}
		gpul_regcache_put(c, a);
		gpul_regcache_destroy(c);
		assert_int_equal(ops.n, 0);
	}
}

static void invalidate_removes_unused_regions_and_counts_those_in_use(void **state)
{
	struct counted ops = { .bad_page = MODEL_PAGES };
	gpul_regcache *c = create_cache(&ops, 64 * page_bytes());
	const gpul_region *used = get_pages(c, 0, 2);
	gpul_region r;

	(void)state;
	gpul_regcache_put(c, get_pages(c, 4, 2));
	assert_int_equal(gpul_regcache_invalidate(c, counted_address(1), 4 * page_bytes()), 1);
	assert_int_equal(ops.n, 1);
	assert_false(gpul_regcache_find(c, counted_address(0), &r));
	assert_int_equal(gpul_regcache_invalidate(c, counted_address(1), 1), 1);
	gpul_regcache_put(c, used);
	assert_int_equal(ops.n, 0);
	assert_int_equal(gpul_regcache_invalidate(c, counted_address(0), 0), 0);
	assert_int_equal(gpul_regcache_invalidate(c, counted_address(0), SIZE_MAX), 0);
	gpul_regcache_destroy(c);
}

static void refuses_empty_and_overflowing_ranges(void **state)
{
	struct counted ops = { .bad_page = MODEL_PAGES };
	gpul_regcache *c = create_cache(&ops, 0), *none = NULL;
	const gpul_region *r = NULL;
	gpul_region copy;

	(void)state;
	assert_int_equal(gpul_regcache_get(c, counted_address(0), 0, &r, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_regcache_get(c, counted_address(0), SIZE_MAX, &r, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_regcache_get(c, (void *)(UINTPTR_MAX - 1), 1, &r, NULL), GPUL_EINVAL);
	assert_false(gpul_regcache_find(c, (void *)UINTPTR_MAX, &copy));
	assert_null(r);
	assert_int_equal(ops.n_regs, 0);
	gpul_regcache_destroy(c);
	gpul_regcache_destroy(NULL);
	assert_int_equal(gpul_regcache_create(&(gpul_reg_ops){ 0 }, 0, &none, NULL), GPUL_EINVAL);
	assert_null(none);
}

static void deregisters_unused_regions_when_pinning_fails(void **state)
{
	static const struct {
		gpul_status with;
		int native;
		bool helps;
	} rows[] = {
		{ GPUL_ENOMEM, 0, true },      { GPUL_ESYS, ENOMEM, true },
		{ GPUL_EVERBS, ENOMEM, true }, { GPUL_ECUDA, CUDA_ERROR_OUT_OF_MEMORY, true },
		{ GPUL_ESYS, EPERM, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct counted ops = { .bad_page = MODEL_PAGES, .fail_with = rows[i].with, .fail_native = rows[i].native, .fail_above = 2 };
		gpul_regcache *c = create_cache(&ops, 64 * page_bytes());
		const gpul_region *r = NULL;
		gpul_error err = { 0 };
		gpul_status st;

		for (unsigned page = 0; page < 6; page += 2)
			gpul_regcache_put(c, get_pages(c, page, 1));
		st = gpul_regcache_get(c, counted_address(8), 1, &r, &err);
		assert_int_equal(st, rows[i].helps ? GPUL_OK : rows[i].with);
		assert_int_equal(err.native, rows[i].helps ? 0 : rows[i].native);
		assert_int_equal(ops.n, rows[i].helps ? 1 : 3);
		gpul_regcache_destroy(c);
	}
}

static void a_failed_get_changes_nothing(void **state)
{
	struct counted ops = { .bad_page = 5 };
	gpul_regcache *c = create_cache(&ops, 64 * page_bytes());
	const gpul_region *r = NULL;
	gpul_regcache_stats stats;
	gpul_error err = { 0 };

	(void)state;
	gpul_regcache_put(c, get_pages(c, 0, 2));
	assert_int_equal(gpul_regcache_get(c, counted_address(4), 2 * page_bytes(), &r, &err), GPUL_ESYS);
	assert_string_equal(err.text, "page 5 is bad");
	assert_null(r);
	gpul_regcache_stats_get(c, &stats);
	assert_int_equal(stats.n_regions, 1);
	assert_int_equal(stats.misses, 1);
	assert_int_equal(stats.registered_bytes, 2 * page_bytes());
	gpul_regcache_destroy(c);
}

static void registers_the_range_alone_when_a_neighbour_is_unmapped(void **state)
{
	struct counted ops = { .bad_page = MODEL_PAGES };
	gpul_regcache *c = create_cache(&ops, 64 * page_bytes());
	const gpul_region *r;

	(void)state;
	gpul_regcache_put(c, get_pages(c, 0, 4));
	ops.bad_page = 1; /* unmapped without gpul_regcache_invalidate() */
	r = get_pages(c, 2, 4);
	assert_ptr_equal(r->at, counted_address(2));
	assert_int_equal(r->bytes, 4 * page_bytes());
	gpul_regcache_destroy(c);
}

/* ---- comparison with the model ----------------------------------------------------------- */

static uint64_t splitmix(uint64_t *s)
{
	uint64_t z = *s += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

struct trial {
	struct model model;
	struct counted ops;
	gpul_regcache *cache;
	struct {
		const gpul_region *r;
		unsigned long id;
	} held[24];
	unsigned n_held;
	uint64_t seed;
};

static unsigned pick(struct trial *t, unsigned n)
{
	return (unsigned)(splitmix(&t->seed) % n);
}

static void step_get(struct trial *t)
{
	unsigned first = pick(t, MODEL_PAGES - 8), end = first + 1 + pick(t, 8);
	size_t inset = pick(t, 64), bytes = (end - first) * page_bytes() - 2 * inset;
	struct model_region want;
	const gpul_region *r = NULL;
	bool expected = model_get(&t->model, first, end, &want);
	gpul_status st = gpul_regcache_get(t->cache, (char *)counted_address(first) + inset, bytes, &r, NULL);

	assert_int_equal(st == GPUL_OK, expected);
	if (!expected)
		return;
	assert_int_equal(counted_page(r->at), want.first);
	assert_int_equal(r->bytes, (want.end - want.first) * page_bytes());
	t->held[t->n_held].r = r;
	t->held[t->n_held++].id = want.id;
}

static void step_put(struct trial *t)
{
	unsigned i = pick(t, t->n_held);

	model_put(&t->model, t->held[i].id);
	gpul_regcache_put(t->cache, t->held[i].r);
	t->held[i] = t->held[--t->n_held];
}

static void step_invalidate(struct trial *t)
{
	unsigned first = pick(t, MODEL_PAGES - 4), end = first + 1 + pick(t, 4);

	assert_int_equal(gpul_regcache_invalidate(t->cache, counted_address(first), (end - first) * page_bytes()),
			 model_invalidate(&t->model, first, end));
}

static void step_find(struct trial *t)
{
	unsigned page = pick(t, MODEL_PAGES);
	const struct model_region *want = model_find(&t->model, page);
	gpul_region r;

	assert_int_equal(gpul_regcache_find(t->cache, counted_address(page), &r), want != NULL);
	if (want)
		assert_int_equal(counted_page(r.at), want->first);
}

/* Check that the cache and the model have registered the same spans. */
static void compare_with_model(const struct trial *t)
{
	uint64_t real = 0, model = 0, pages = 0;
	gpul_regcache_stats stats;
	unsigned in_use = 0;

	assert_int_equal(t->ops.n, t->model.n);
	for (unsigned i = 0; i < t->ops.n; i++) {
		real += (uint64_t)(t->ops.at[i].first * 1009 + 1) * (t->ops.at[i].end + 7919);
		model += (uint64_t)(t->model.at[i].first * 1009 + 1) * (t->model.at[i].end + 7919);
		pages += t->ops.at[i].end - t->ops.at[i].first;
		in_use += t->model.at[i].refs > 0;
	}
	assert_int_equal(real, model);
	gpul_regcache_stats_get(t->cache, &stats);
	assert_int_equal(stats.n_regions, t->model.n);
	assert_int_equal(stats.n_in_use, in_use);
	assert_int_equal(stats.registered_bytes, pages * page_bytes());
}

static void agrees_with_the_model(bool may_overlap)
{
	struct trial *t = calloc(1, sizeof *t);

	assert_non_null(t);
	t->model.may_overlap = t->ops.may_overlap = may_overlap;
	t->model.idle_pages = 24;
	t->seed = may_overlap;
	t->cache = create_cache(&t->ops, 24 * page_bytes());
	for (int i = 0; i < 100000; i++) {
		unsigned what = pick(t, 100);

		if (i % 64 == 0) /* each page in turn is bad; for a while no page is bad */
			t->model.bad_page = t->ops.bad_page = pick(t, 2) ? pick(t, MODEL_PAGES) : MODEL_PAGES;
		if (what < 45 && t->n_held < 24)
			step_get(t);
		else if (what < 90 && t->n_held > 0)
			step_put(t);
		else if (what < 95)
			step_invalidate(t);
		else
			step_find(t);
		compare_with_model(t);
	}
	assert_true(t->ops.n_regs > 1000);
	gpul_regcache_destroy(t->cache);
	assert_int_equal(t->ops.n, 0);
	free(t);
}

static void agrees_with_the_model_over_100000_steps(void **state)
{
	(void)state;
	agrees_with_the_model(false);
}

static void agrees_with_the_model_where_regions_may_overlap(void **state)
{
	(void)state;
	agrees_with_the_model(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_once_and_counts_users),
		cmocka_unit_test(registers_whole_pages),
		cmocka_unit_test(evicts_the_least_recently_used_region_first),
		cmocka_unit_test(merges_unused_neighbours_into_one_region),
		cmocka_unit_test(refuses_to_overlap_a_region_in_use_unless_allowed),
		cmocka_unit_test(invalidate_removes_unused_regions_and_counts_those_in_use),
		cmocka_unit_test(refuses_empty_and_overflowing_ranges),
		cmocka_unit_test(deregisters_unused_regions_when_pinning_fails),
		cmocka_unit_test(a_failed_get_changes_nothing),
		cmocka_unit_test(registers_the_range_alone_when_a_neighbour_is_unmapped),
		cmocka_unit_test(agrees_with_the_model_over_100000_steps),
		cmocka_unit_test(agrees_with_the_model_where_regions_may_overlap),
	};

	return cmocka_run_group_tests_name("regcache", tests, NULL, NULL);
}
