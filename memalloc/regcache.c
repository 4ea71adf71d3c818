/* regcache.c — the registration cache: a sorted array of regions, a queue of unused regions, and a queue of running work.
 *
 *     regions   │ a ────────── │      │ c ─── │       sorted by start.  No region is inside
 *                        │ b ──────────── │          another, so the ends are sorted, too
 *     idle      a, c                                 unused regions, least recently used first
 *     doomed    d                                    invalidated, but still in use
 *     work      [x, y)                               pages being registered or deregistered
 *
 * The lock is never held while a callback (reg, dereg) runs, so that a hit does not wait for another thread's registration.  The
 * queue of work ensures that two callbacks never work on the same pages: a thread adds its span of pages under the lock, and begins
 * when no earlier span overlaps it.  A thread with a miss waits until overlapping spans have ended, and then searches again. */
#include "memalloc/regcache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

struct span {
	uintptr_t start, end;
};

struct region {
	gpul_region public; /* must be the first member: callers have a pointer to it */
	struct span span;
	size_t refs;
	bool doomed;
	TAILQ_ENTRY(region) link; /* link of the list that contains the region: idle, doomed, or regions to deregister */
};
TAILQ_HEAD(region_list, region);

struct work {
	struct span span;
	TAILQ_ENTRY(work) link;
};

struct gpul_regcache {
	gpul_reg_ops ops;
	size_t idle_limit_bytes;
	uintptr_t page_mask;    /* mask for the offset of an address in its page */
	pthread_mutex_t lock;   /* protects all members below */
	pthread_cond_t changed; /* signalled when an entry of `work` has ended */
	uintptr_t *starts;      /* starts[i] is the start of regions[i]: a compact copy, for the search */
	struct region **regions;
	/* n: number of regions; room: capacity of the arrays, which includes the n_coming registrations in progress */
	size_t n, room, n_coming;
	size_t idle_bytes;
	struct region_list idle, doomed;
	TAILQ_HEAD(, work) work;
	gpul_regcache_stats stats;
};

static bool spans_overlap(const struct span *a, const struct span *b)
{
	return a->start < b->end && b->start < a->end;
}

/* ---- the sorted array of regions ---------------------------------------------------------- */

/* Count the regions that start at or before an address.  No branch depends on the comparisons, because
 * with random addresses half of the branches would be mispredicted. */
static size_t n_starting_by(const gpul_regcache *c, uintptr_t address)
{
	const uintptr_t *base = c->starts;

	if (c->n == 0)
		return 0;
	for (size_t n = c->n; n > 1; n -= n / 2)
		base += base[n / 2] <= address ? n / 2 : 0;
	return (size_t)(base - c->starts) + (*base <= address);
}

/* Find the region that covers a span; NULL: none.  Of the regions that start before the span, only the last one can cover it,
 * because the ends are sorted, too. */
static struct region *find_covering(const gpul_regcache *c, const struct span *s)
{
	size_t n = n_starting_by(c, s->start);

	return n && c->regions[n - 1]->span.end >= s->end ? c->regions[n - 1] : NULL;
}

/* Return the index of the first region that ends after an address.  For the start of a span, the regions that overlap the span are
 * those from this index on that start before the span's end. */
static size_t first_ending_after(const gpul_regcache *c, uintptr_t address)
{
	size_t i = n_starting_by(c, address);

	while (i > 0 && c->regions[i - 1]->span.end > address)
		i--;
	return i;
}

static bool reserve_regions(gpul_regcache *c, size_t n)
{
	size_t room = c->room ? c->room : 16;
	void *p;

	while (room < n)
		room *= 2;
	if (room == c->room)
		return true;
	p = realloc(c->starts, room * sizeof *c->starts);
	if (!p)
		return false;
	c->starts = p;
	p = realloc(c->regions, room * sizeof *c->regions);
	if (!p)
		return false;
	c->regions = p;
	c->room = room;
	return true;
}

static void insert_region(gpul_regcache *c, struct region *r)
{
	size_t i = n_starting_by(c, r->span.start);

	memmove(&c->starts[i + 1], &c->starts[i], (c->n - i) * sizeof *c->starts);
	memmove(&c->regions[i + 1], &c->regions[i], (c->n - i) * sizeof *c->regions);
	c->starts[i] = r->span.start;
	c->regions[i] = r;
	c->n++;
	c->stats.n_regions++;
	c->stats.registered_bytes += r->public.bytes;
}

static void remove_at(gpul_regcache *c, size_t i)
{
	c->n--;
	memmove(&c->starts[i], &c->starts[i + 1], (c->n - i) * sizeof *c->starts);
	memmove(&c->regions[i], &c->regions[i + 1], (c->n - i) * sizeof *c->regions);
}

/* ---- releasing and removing regions ------------------------------------------------------ */

static void leave_idle(gpul_regcache *c, struct region *r)
{
	TAILQ_REMOVE(&c->idle, r, link);
	c->idle_bytes -= r->public.bytes;
}

/* Remove region i from the array.  An unused region is moved to the list `unused`; a region in use stays registered until its last
 * user releases it. */
static void forget_region(gpul_regcache *c, size_t i, struct region_list *unused)
{
	struct region *r = c->regions[i];

	remove_at(c, i);
	if (r->refs) {
		r->doomed = true;
		TAILQ_INSERT_TAIL(&c->doomed, r, link);
	} else {
		leave_idle(c, r);
		TAILQ_INSERT_TAIL(unused, r, link);
	}
}

/* ---- work: calls of reg() and dereg(), which run without the lock ------------------------- */

static bool is_free(const gpul_regcache *c, const struct span *s)
{
	const struct work *w;

	TAILQ_FOREACH(w, &c->work, link)
	if (spans_overlap(&w->span, s))
		return false;
	return true;
}

/* Add a span to the queue of work, wait until no earlier span overlaps it, then release the lock.  A thread adds only one span at
 * a time, so there is no deadlock. */
static void begin_work(gpul_regcache *c, struct work *mine)
{
	const struct work *w;

	TAILQ_INSERT_TAIL(&c->work, mine, link);
	do {
		for (w = TAILQ_FIRST(&c->work); w != mine; w = TAILQ_NEXT(w, link))
			if (spans_overlap(&w->span, &mine->span))
				break;
		if (w != mine)
			pthread_cond_wait(&c->changed, &c->lock);
	} while (w != mine);
	pthread_mutex_unlock(&c->lock);
}

static void end_work(gpul_regcache *c, struct work *mine)
{
	pthread_mutex_lock(&c->lock);
	TAILQ_REMOVE(&c->work, mine, link);
	pthread_cond_broadcast(&c->changed);
}

/* Deregister a list of regions, without the lock; returns their size and adds their number to *n. */
static size_t deregister_list(gpul_regcache *c, struct region_list *list, size_t *n)
{
	struct region *r;
	size_t bytes = 0;

	while ((r = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, r, link);
		c->ops.dereg(c->ops.user, r->public.at, r->public.bytes, r->public.token);
		bytes += r->public.bytes;
		++*n;
		free(r);
	}
	return bytes;
}

/* Deregister a region that is no longer in the array.  Releases the lock while doing so. */
static void deregister_region(gpul_regcache *c, struct region *r)
{
	struct region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct work work = { .span = r->span };
	size_t n = 0, bytes;

	TAILQ_INSERT_TAIL(&list, r, link);
	begin_work(c, &work);
	bytes = deregister_list(c, &list, &n);
	end_work(c, &work);
	c->stats.n_regions -= n;
	c->stats.registered_bytes -= bytes;
}

/* Deregister unused regions, least recently used first, until at most limit_bytes are left. */
static void trim_idle(gpul_regcache *c, size_t limit_bytes)
{
	while (c->idle_bytes > limit_bytes) {
		struct region *r = TAILQ_FIRST(&c->idle);

		leave_idle(c, r);
		remove_at(c, n_starting_by(c, r->span.start) - 1); /* the index of r */
		c->stats.evictions++;
		deregister_region(c, r);
	}
}

/* ---- a miss: no region covers the bytes --------------------------------------------------- */

static gpul_status refuse_overlap(const struct span *want, const struct region *r, gpul_error *err)
{
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "pages %#lx-%#lx overlap the registered region %#lx-%#lx, which is in use: release that region "
			 "first, or get one region for both buffers",
			 (unsigned long)want->start, (unsigned long)want->end, (unsigned long)r->span.start, (unsigned long)r->span.end);
}

/* Extend `hull`, the span to register, until it covers every unused region that it overlaps. */
static gpul_status widen_hull(const gpul_regcache *c, const struct span *want, struct span *hull, gpul_error *err)
{
	const struct region *r;
	bool grown = true;

	while (grown) {
		grown = false;
		for (size_t i = first_ending_after(c, hull->start); i < c->n && c->starts[i] < hull->end; i++) {
			r = c->regions[i];
			if (r->refs && !c->ops.may_overlap)
				return refuse_overlap(want, r, err);
			if (r->refs || (r->span.start >= hull->start && r->span.end <= hull->end))
				continue;
			hull->start = r->span.start < hull->start ? r->span.start : hull->start;
			hull->end = r->span.end > hull->end ? r->span.end : hull->end;
			grown = true;
			break;
		}
	}
	if (!c->ops.may_overlap)
		TAILQ_FOREACH(r, &c->doomed, link)
	if (spans_overlap(&r->span, hull))
		return refuse_overlap(want, r, err);
	return GPUL_OK;
}

/* Remove the regions inside `hull` from the array, because the new region replaces them. */
static void remove_covered(gpul_regcache *c, const struct span *hull, struct region_list *unused)
{
	size_t i = first_ending_after(c, hull->start);

	while (i < c->n && c->starts[i] < hull->end) {
		const struct region *r = c->regions[i];

		if (r->span.start >= hull->start && r->span.end <= hull->end)
			forget_region(c, i, unused);
		else
			i++;
	}
}

static gpul_status register_span(const gpul_regcache *c, const struct span *s, struct region *r, gpul_error *err)
{
	r->span = *s;
	r->public = (gpul_region){ .at = (void *)s->start, .bytes = s->end - s->start };
	return c->ops.reg(c->ops.user, r->public.at, r->public.bytes, &r->public.token, err);
}

/* Register a region over `hull`.  If that fails, register only `want`, because a part of the hull may no longer be mapped. */
static gpul_status register_region(gpul_regcache *c, const struct span *want, const struct span *hull, struct region **out, gpul_error *err)
{
	struct region_list unused = TAILQ_HEAD_INITIALIZER(unused);
	struct region *r = calloc(1, sizeof *r);
	struct work work = { .span = *hull };
	size_t n = 0, bytes;
	gpul_status st;

	if (!r || !reserve_regions(c, c->n + c->n_coming + 1)) {
		free(r);
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: cannot record registered region %zu", c->n + 1);
	}
	c->n_coming++;
	remove_covered(c, hull, &unused);
	begin_work(c, &work);
	bytes = deregister_list(c, &unused, &n);
	st = register_span(c, hull, r, err);
	if (st && memcmp(hull, want, sizeof *hull) != 0) {
		*err = (gpul_error){ 0 };
		st = register_span(c, want, r, err);
	}
	end_work(c, &work);
	c->n_coming--;
	c->stats.n_regions -= n;
	c->stats.registered_bytes -= bytes;
	if (st) {
		free(r);
		return st;
	}
	r->refs = 1;
	c->stats.n_in_use++;
	c->stats.misses++;
	insert_region(c, r);
	*out = r;
	return GPUL_OK;
}

/* True for errors that mean that too much memory is pinned; deregistering unused regions can then help. */
static bool is_out_of_memory(gpul_status st, const gpul_error *err)
{
	return st == GPUL_ENOMEM || (st == GPUL_ESYS && err->native == ENOMEM) || (st == GPUL_EVERBS && err->native == ENOMEM) ||
	       (st == GPUL_ECUDA && err->native == CUDA_ERROR_OUT_OF_MEMORY);
}

/* Find a region that covers the bytes and take a reference to it; NULL: miss. */
static struct region *find_and_use(gpul_regcache *c, const struct span *bytes)
{
	struct region *r = find_covering(c, bytes);

	if (r) {
		if (r->refs++ == 0) {
			leave_idle(c, r);
			c->stats.n_in_use++;
		}
		c->stats.hits++;
	}
	return r;
}

/* Register a region, or find a region that another thread has registered meanwhile.  The caller holds the lock. */
static gpul_status handle_miss(gpul_regcache *c, const struct span *bytes, const struct span *pages, struct region **out, gpul_error *err)
{
	while (!(*out = find_and_use(c, bytes))) {
		struct span hull = *pages;
		gpul_error why = { 0 };
		gpul_status st = widen_hull(c, pages, &hull, &why);

		if (!st && !is_free(c, &hull)) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		if (!st)
			st = register_region(c, pages, &hull, out, &why);
		if (!st)
			return GPUL_OK;
		if (!is_out_of_memory(st, &why) || TAILQ_EMPTY(&c->idle))
			return gpul_fail(err, st, why.native, "%s", why.text);
		trim_idle(c, 0);
	}
	return GPUL_OK;
}

/* ---- public functions -------------------------------------------------------------------- */

gpul_status gpul_regcache_create(const gpul_reg_ops *ops, size_t idle_bytes, gpul_regcache **out, gpul_error *err)
{
	gpul_regcache *c;

	if (!ops || !ops->reg || !ops->dereg)
		return gpul_fail(err, GPUL_EINVAL, 0, "a registration cache needs both functions, reg and dereg, but one of them is NULL");
	c = calloc(1, sizeof *c);
	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: cannot create a registration cache");
	c->ops = *ops;
	c->idle_limit_bytes = idle_bytes;
	c->page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	TAILQ_INIT(&c->idle);
	TAILQ_INIT(&c->doomed);
	TAILQ_INIT(&c->work);
	*out = c;
	return GPUL_OK;
}

void gpul_regcache_destroy(gpul_regcache *c)
{
	struct region_list all = TAILQ_HEAD_INITIALIZER(all);
	size_t n = 0;

	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		TAILQ_INSERT_TAIL(&all, c->regions[i], link);
	TAILQ_CONCAT(&all, &c->doomed, link);
	deregister_list(c, &all, &n);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c->starts);
	free(c->regions);
	free(c);
}

gpul_status gpul_regcache_get(gpul_regcache *c, void *at, size_t bytes, const gpul_region **out, gpul_error *err)
{
	struct span exact = { (uintptr_t)at, (uintptr_t)at + bytes };
	struct span pages = { exact.start & ~c->page_mask, (exact.end + c->page_mask) & ~c->page_mask };
	struct region *r;
	gpul_status st = GPUL_OK;

	if (bytes == 0 || exact.end < exact.start || pages.end < exact.end)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%zu bytes at %p are not a valid range: expected at least 1 byte that ends below the end of the "
				 "address space",
				 bytes, at);
	pthread_mutex_lock(&c->lock);
	r = find_and_use(c, &exact);
	if (!r)
		st = handle_miss(c, &exact, &pages, &r, err);
	pthread_mutex_unlock(&c->lock);
	if (!st)
		*out = &r->public;
	return st;
}

void gpul_regcache_put(gpul_regcache *c, const gpul_region *region)
{
	struct region *r = (struct region *)(uintptr_t)region; /* valid, because `public` is the first member */

	pthread_mutex_lock(&c->lock);
	if (--r->refs == 0) {
		c->stats.n_in_use--;
		if (r->doomed) {
			TAILQ_REMOVE(&c->doomed, r, link);
			deregister_region(c, r);
		} else {
			TAILQ_INSERT_TAIL(&c->idle, r, link);
			c->idle_bytes += r->public.bytes;
			if (c->idle_bytes > c->idle_limit_bytes)
				trim_idle(c, c->idle_limit_bytes);
		}
	}
	pthread_mutex_unlock(&c->lock);
}

bool gpul_regcache_find(gpul_regcache *c, const void *at, gpul_region *out)
{
	struct span byte = { (uintptr_t)at, (uintptr_t)at + 1 };
	const struct region *r;

	if (byte.end == 0)
		return false; /* `at` is the last byte of the address space, which is never registered */
	pthread_mutex_lock(&c->lock);
	r = find_covering(c, &byte);
	if (r)
		*out = r->public;
	pthread_mutex_unlock(&c->lock);
	return r != NULL;
}

/* Remove one region that overlaps s from the cache; false: no such region. */
static bool forget_overlapping(gpul_regcache *c, const struct span *s)
{
	struct region_list unused = TAILQ_HEAD_INITIALIZER(unused);
	size_t i = first_ending_after(c, s->start);
	struct region *idle;

	if (i == c->n || c->starts[i] >= s->end)
		return false;
	forget_region(c, i, &unused);
	idle = TAILQ_FIRST(&unused);
	if (idle) {
		TAILQ_REMOVE(&unused, idle, link);
		deregister_region(c, idle);
	}
	return true;
}

size_t gpul_regcache_invalidate(gpul_regcache *c, void *at, size_t bytes)
{
	struct span span = { (uintptr_t)at, (uintptr_t)at + bytes };
	const struct region *r;
	size_t n_in_use = 0;

	if (bytes == 0)
		return 0;
	if (span.end < span.start)
		span.end = UINTPTR_MAX;
	pthread_mutex_lock(&c->lock);
	do {
		while (!is_free(c, &span)) /* a running registration may still add a region to the span, so wait for it */
			pthread_cond_wait(&c->changed, &c->lock);
	} while (forget_overlapping(c, &span));
	TAILQ_FOREACH(r, &c->doomed, link)
	n_in_use += spans_overlap(&r->span, &span);
	pthread_mutex_unlock(&c->lock);
	return n_in_use;
}

void gpul_regcache_stats_get(gpul_regcache *c, gpul_regcache_stats *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->stats;
	pthread_mutex_unlock(&c->lock);
}
