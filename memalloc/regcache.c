/* regcache.c — regions by address: a sorted array, a queue of idle ones, a queue of work.
 *
 *     regions   │ a ────────── │      │ c ─── │       sorted by start.  No region lies inside
 *                        │ b ──────────── │          another, so the ends are sorted, too
 *     idle      a, c                                 of these, unused: the longest unused first
 *     doomed    d                                    in use, but not to be found any more
 *     work      [x, y)                               pages that an op is about now
 *
 * The lock is never held while an op runs, so that a hit does not wait for somebody's
 * registration.  What keeps two ops from the same pages is the queue of work: a thread enters
 * its span under the lock and starts when no earlier span overlaps it.  Whoever misses waits
 * for such a span to end, and looks again. */
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
	gpul_region public; /* first: what callers hold */
	struct span span;
	size_t refs;
	bool doomed;
	TAILQ_ENTRY(region)
	link; /* in idle, in doomed, or in a list of what is to be given back */
};
TAILQ_HEAD(region_list, region);

struct work {
	struct span span;
	TAILQ_ENTRY(work) link;
};

struct gpul_regcache {
	gpul_reg_ops ops;
	size_t idle_limit_bytes;
	uintptr_t page_mask;    /* the bits of an address that say where in its page it is */
	pthread_mutex_t lock;   /* guards all below */
	pthread_cond_t changed; /* a piece of work has ended */
	uintptr_t *starts;      /* starts[i] is regions[i]'s, side by side for the search */
	struct region **regions;
	size_t n, room, n_coming; /* coming: will be inserted, and have their room already */
	size_t idle_bytes;
	struct region_list idle, doomed;
	TAILQ_HEAD(, work) work;
	gpul_regcache_stats stats;
};

static bool overlap(const struct span *a, const struct span *b)
{
	return a->start < b->end && b->start < a->end;
}

/* ---- the array --------------------------------------------------------------------------- */

/* How many regions start at or before an address.  No branch depends on what is compared: with
 * random addresses each would be guessed wrong half the time. */
static size_t n_starting_by(const gpul_regcache *c, uintptr_t address)
{
	const uintptr_t *base = c->starts;

	if (c->n == 0)
		return 0;
	for (size_t n = c->n; n > 1; n -= n / 2)
		base += base[n / 2] <= address ? n / 2 : 0;
	return (size_t)(base - c->starts) + (*base <= address);
}

/* Of all regions that start by then the last one reaches farthest: only it can cover a span. */
static struct region *covering(const gpul_regcache *c, const struct span *s)
{
	size_t n = n_starting_by(c, s->start);

	return n && c->regions[n - 1]->span.end >= s->end ? c->regions[n - 1] : NULL;
}

/* Index of the first region that ends behind an address: from there on, and as long as they
 * start before its end, regions touch a span that starts there. */
static size_t first_behind(const gpul_regcache *c, uintptr_t address)
{
	size_t i = n_starting_by(c, address);

	while (i > 0 && c->regions[i - 1]->span.end > address)
		i--;
	return i;
}

static bool reserve(gpul_regcache *c, size_t n)
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

static void insert(gpul_regcache *c, struct region *r)
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

static void remove_region(gpul_regcache *c, const struct region *r)
{
	remove_at(c,
		  n_starting_by(c, r->span.start) - 1); /* no two start at the same address */
}

/* ---- who uses a region ------------------------------------------------------------------- */

static void use(gpul_regcache *c, struct region *r)
{
	if (r->refs++ > 0)
		return;
	TAILQ_REMOVE(&c->idle, r, link);
	c->idle_bytes -= r->public.bytes;
	c->stats.n_in_use++;
}

static void leave_idle(gpul_regcache *c, struct region *r)
{
	TAILQ_REMOVE(&c->idle, r, link);
	c->idle_bytes -= r->public.bytes;
}

/* Take region i out of the array: an idle one goes to given_back, one in use waits for its last
 * user. */
static void forget(gpul_regcache *c, size_t i, struct region_list *given_back)
{
	struct region *r = c->regions[i];

	remove_at(c, i);
	if (r->refs) {
		r->doomed = true;
		TAILQ_INSERT_TAIL(&c->doomed, r, link);
	} else {
		leave_idle(c, r);
		TAILQ_INSERT_TAIL(given_back, r, link);
	}
}

/* ---- work: what runs without the lock ---------------------------------------------------- */

static bool is_free(const gpul_regcache *c, const struct span *s)
{
	const struct work *w;

	TAILQ_FOREACH(w, &c->work, link)
	if (overlap(&w->span, s))
		return false;
	return true;
}

/* Enter a span, and wait until no earlier one overlaps it.  A thread has one at a time, so all
 * get their turn. */
static void begin(gpul_regcache *c, struct work *mine)
{
	const struct work *w;

	TAILQ_INSERT_TAIL(&c->work, mine, link);
	do {
		for (w = TAILQ_FIRST(&c->work); w != mine; w = TAILQ_NEXT(w, link))
			if (overlap(&w->span, &mine->span))
				break;
		if (w != mine)
			pthread_cond_wait(&c->changed, &c->lock);
	} while (w != mine);
	pthread_mutex_unlock(&c->lock);
}

static void end(gpul_regcache *c, struct work *mine)
{
	pthread_mutex_lock(&c->lock);
	TAILQ_REMOVE(&c->work, mine, link);
	pthread_cond_broadcast(&c->changed);
}

/* Deregister, without the lock; returns how many bytes. */
static size_t give_back(gpul_regcache *c, struct region_list *list, size_t *n)
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

/* Deregister one region that nobody can find any more.  The lock is let go meanwhile. */
static void dispose(gpul_regcache *c, struct region *r)
{
	struct region_list list = TAILQ_HEAD_INITIALIZER(list);
	struct work work = { .span = r->span };
	size_t n = 0, bytes;

	TAILQ_INSERT_TAIL(&list, r, link);
	begin(c, &work);
	bytes = give_back(c, &list, &n);
	end(c, &work);
	c->stats.n_regions -= n;
	c->stats.registered_bytes -= bytes;
}

/* Give idle regions back, the longest unused first, until no more than limit_bytes are left. */
static void trim(gpul_regcache *c, size_t limit_bytes)
{
	while (c->idle_bytes > limit_bytes) {
		struct region *r = TAILQ_FIRST(&c->idle);

		leave_idle(c, r);
		remove_region(c, r);
		c->stats.evictions++;
		dispose(c, r);
	}
}

/* ---- a miss ------------------------------------------------------------------------------ */

static gpul_status refuse_overlap(const struct span *want, const struct region *r,
				  gpul_error *err)
{
	return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
			 "pages %#lx-%#lx overlap the region %#lx-%#lx, which is in use and "
			 "cannot be registered "
			 "twice: give it back first, or get one region for both buffers",
			 (unsigned long)want->start, (unsigned long)want->end,
			 (unsigned long)r->span.start, (unsigned long)r->span.end);
}

/* Widen hull over the idle regions that it touches; a step may bring it to touch further ones.
 */
static gpul_status widen(const gpul_regcache *c, const struct span *want, struct span *hull,
			 gpul_error *err)
{
	const struct region *r;
	bool grown = true;

	while (grown) {
		grown = false;
		for (size_t i = first_behind(c, hull->start);
		     i < c->n && c->starts[i] < hull->end; i++) {
			r = c->regions[i];
			if (r->refs && !c->ops.may_overlap)
				return refuse_overlap(want, r, err);
			if (r->refs ||
			    (r->span.start >= hull->start && r->span.end <= hull->end))
				continue;
			hull->start = r->span.start < hull->start ? r->span.start : hull->start;
			hull->end = r->span.end > hull->end ? r->span.end : hull->end;
			grown = true;
			break;
		}
	}
	if (!c->ops.may_overlap)
		TAILQ_FOREACH(r, &c->doomed, link)
	if (overlap(&r->span, hull))
		return refuse_overlap(want, r, err);
	return GPUL_OK;
}

/* Idle regions within the hull are to be given back; of those in use, the hull covers the bytes
 * as well. */
static void clear_hull(gpul_regcache *c, const struct span *hull,
		       struct region_list *given_back)
{
	size_t i = first_behind(c, hull->start);

	while (i < c->n && c->starts[i] < hull->end) {
		const struct region *r = c->regions[i];

		if (r->span.start >= hull->start && r->span.end <= hull->end)
			forget(c, i, given_back);
		else
			i++;
	}
}

static gpul_status register_span(const gpul_regcache *c, const struct span *s, struct region *r,
				 gpul_error *err)
{
	r->span = *s;
	r->public = (gpul_region){ .at = (void *)s->start, .bytes = s->end - s->start };
	return c->ops.reg(c->ops.user, r->public.at, r->public.bytes, &r->public.token, err);
}

/* Make a region over hull; where that cannot be (a part of it may have been unmapped
 * meanwhile), over want. */
static gpul_status make_region(gpul_regcache *c, const struct span *want,
			       const struct span *hull, struct region **out, gpul_error *err)
{
	struct region_list given_back = TAILQ_HEAD_INITIALIZER(given_back);
	struct region *r = calloc(1, sizeof *r);
	struct work work = { .span = *hull };
	size_t n = 0, bytes;
	gpul_status st;

	if (!r || !reserve(c, c->n + c->n_coming + 1)) {
		free(r);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for region %zu", c->n + 1);
	}
	c->n_coming++;
	clear_hull(c, hull, &given_back);
	begin(c, &work);
	bytes = give_back(c, &given_back, &n);
	st = register_span(c, hull, r, err);
	if (st && memcmp(hull, want, sizeof *hull) != 0) {
		*err = (gpul_error){ 0 };
		st = register_span(c, want, r, err);
	}
	end(c, &work);
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
	insert(c, r);
	*out = r;
	return GPUL_OK;
}

/* Too much is pinned already: other regions may be in the way. */
static bool is_out_of_memory(gpul_status st, const gpul_error *err)
{
	return st == GPUL_ENOMEM || (st == GPUL_ESYS && err->native == ENOMEM) ||
	       (st == GPUL_EVERBS && err->native == ENOMEM) ||
	       (st == GPUL_ECUDA && err->native == CUDA_ERROR_OUT_OF_MEMORY);
}

/* The region if there is one, counted. */
static struct region *hit(gpul_regcache *c, const struct span *bytes)
{
	struct region *r = covering(c, bytes);

	if (r) {
		use(c, r);
		c->stats.hits++;
	}
	return r;
}

/* Make the region, or find it after all: somebody else may make it meanwhile.  With the lock
 * held. */
static gpul_status miss(gpul_regcache *c, const struct span *bytes, const struct span *pages,
			struct region **out, gpul_error *err)
{
	while (!(*out = hit(c, bytes))) {
		struct span hull = *pages;
		gpul_error why = { 0 };
		gpul_status st = widen(c, pages, &hull, &why);

		if (!st && !is_free(c, &hull)) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		if (!st)
			st = make_region(c, pages, &hull, out, &why);
		if (!st)
			return GPUL_OK;
		if (!is_out_of_memory(st, &why) || TAILQ_EMPTY(&c->idle))
			return gpul_fail(err, st, why.native, "%s", why.text);
		trim(c, 0);
	}
	return GPUL_OK;
}

/* ---- the contract ------------------------------------------------------------------------ */

gpul_status gpul_regcache_create(const gpul_reg_ops *ops, size_t idle_bytes,
				 gpul_regcache **out, gpul_error *err)
{
	gpul_regcache *c;

	if (!ops || !ops->reg || !ops->dereg)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a register cache needs both ops: reg and dereg");
	c = calloc(1, sizeof *c);
	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a register cache");
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
	give_back(c, &all, &n);
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	free(c->starts);
	free(c->regions);
	free(c);
}

gpul_status gpul_regcache_get(gpul_regcache *c, void *at, size_t bytes, const gpul_region **out,
			      gpul_error *err)
{
	struct span exact = { (uintptr_t)at, (uintptr_t)at + bytes };
	struct span pages = { exact.start & ~c->page_mask,
			      (exact.end + c->page_mask) & ~c->page_mask };
	struct region *r;
	gpul_status st = GPUL_OK;

	if (bytes == 0 || exact.end < exact.start || pages.end < exact.end)
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu bytes at %p are no memory", bytes,
				 at);
	pthread_mutex_lock(&c->lock);
	r = hit(c, &exact);
	if (!r)
		st = miss(c, &exact, &pages, &r, err);
	pthread_mutex_unlock(&c->lock);
	if (!st)
		*out = &r->public;
	return st;
}

void gpul_regcache_put(gpul_regcache *c, const gpul_region *region)
{
	struct region *r =
		(struct region *)(uintptr_t)region; /* its first member; ours to change */

	pthread_mutex_lock(&c->lock);
	if (--r->refs == 0) {
		c->stats.n_in_use--;
		if (r->doomed) {
			TAILQ_REMOVE(&c->doomed, r, link);
			dispose(c, r);
		} else {
			TAILQ_INSERT_TAIL(&c->idle, r, link);
			c->idle_bytes += r->public.bytes;
			if (c->idle_bytes > c->idle_limit_bytes)
				trim(c, c->idle_limit_bytes);
		}
	}
	pthread_mutex_unlock(&c->lock);
}

bool gpul_regcache_find(gpul_regcache *c, const void *at, gpul_region *out)
{
	struct span byte = { (uintptr_t)at, (uintptr_t)at + 1 };
	const struct region *r;

	if (byte.end == 0)
		return false; /* the last byte of all: no page ends behind it */
	pthread_mutex_lock(&c->lock);
	r = covering(c, &byte);
	if (r)
		*out = r->public;
	pthread_mutex_unlock(&c->lock);
	return r != NULL;
}

/* Forget one region that touches s; false: there is none. */
static bool forget_one(gpul_regcache *c, const struct span *s)
{
	struct region_list given_back = TAILQ_HEAD_INITIALIZER(given_back);
	size_t i = first_behind(c, s->start);
	struct region *idle;

	if (i == c->n || c->starts[i] >= s->end)
		return false;
	forget(c, i, &given_back);
	idle = TAILQ_FIRST(&given_back);
	if (idle) {
		TAILQ_REMOVE(&given_back, idle, link);
		dispose(c, idle);
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
		while (!is_free(c,
				&span)) /* what is under way there may still become a region */
			pthread_cond_wait(&c->changed, &c->lock);
	} while (forget_one(c, &span));
	TAILQ_FOREACH(r, &c->doomed, link)
	n_in_use += overlap(&r->span, &span);
	pthread_mutex_unlock(&c->lock);
	return n_in_use;
}

void gpul_regcache_stats_get(gpul_regcache *c, gpul_regcache_stats *out)
{
	pthread_mutex_lock(&c->lock);
	*out = c->stats;
	pthread_mutex_unlock(&c->lock);
}
