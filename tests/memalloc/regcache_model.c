/* regcache_model.c — the model of the registration cache: an unsorted list, searched from end to end. */
#include "tests/memalloc/regcache_model.h"

#include <errno.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

static bool overlaps(const struct model_region *r, unsigned first, unsigned end)
{
	return r->first < end && first < r->end;
}

static void remove_region(struct model *m, unsigned i)
{
	m->at[i] = m->at[--m->n];
}

static unsigned idle_pages(const struct model *m)
{
	unsigned pages = 0;

	for (unsigned i = 0; i < m->n; i++)
		pages += m->at[i].refs ? 0 : m->at[i].end - m->at[i].first;
	return pages;
}

static void trim_idle(struct model *m)
{
	while (idle_pages(m) > m->idle_pages) {
		unsigned oldest = MODEL_ROOM;

		for (unsigned i = 0; i < m->n; i++)
			if (!m->at[i].refs && (oldest == MODEL_ROOM || m->at[i].put_at < m->at[oldest].put_at))
				oldest = i;
		remove_region(m, oldest);
	}
}

/* Find a region that covers the span; if there are several, the region with the highest start. */
static struct model_region *covering(struct model *m, unsigned first, unsigned end)
{
	struct model_region *best = NULL;

	for (unsigned i = 0; i < m->n; i++) {
		struct model_region *r = &m->at[i];

		if (!r->doomed && r->first <= first && r->end >= end && (!best || r->first > best->first))
			best = r;
	}
	return best;
}

static bool can_register(const struct model *m, unsigned first, unsigned end)
{
	return m->bad_page < first || m->bad_page >= end;
}

static bool widen_span(const struct model *m, unsigned *first, unsigned *end)
{
	for (unsigned i = 0; i < m->n; i++) {
		const struct model_region *r = &m->at[i];

		if (!overlaps(r, *first, *end))
			continue;
		if (r->refs && !m->may_overlap)
			return false;
		if (!r->refs && (r->first < *first || r->end > *end)) {
			*first = r->first < *first ? r->first : *first;
			*end = r->end > *end ? r->end : *end;
			i = (unsigned)-1; /* start over */
		}
	}
	return true;
}

bool model_get(struct model *m, unsigned first, unsigned end, struct model_region *out)
{
	struct model_region *r = covering(m, first, end), created = { first, end, ++m->clock, 1, 0, false };

	if (r) {
		r->refs++;
		*out = *r;
		return true;
	}
	if (!widen_span(m, &created.first, &created.end))
		return false;
	for (unsigned i = m->n; i-- > 0;)
		if (!m->at[i].doomed && m->at[i].first >= created.first && m->at[i].end <= created.end) {
			if (m->at[i].refs)
				m->at[i].doomed = true;
			else
				remove_region(m, i);
		}
	if (!can_register(m, created.first, created.end)) {
		created.first = first;
		created.end = end;
	}
	if (!can_register(m, first, end))
		return false;
	m->at[m->n++] = created;
	*out = created;
	return true;
}

void model_put(struct model *m, unsigned long id)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct model_region *r = &m->at[i];

		if (r->id != id)
			continue;
		if (--r->refs == 0) {
			r->put_at = ++m->clock;
			if (r->doomed)
				remove_region(m, i);
			else
				trim_idle(m);
		}
		return;
	}
	fail_msg("the model has no region %lu in use", id);
}

size_t model_invalidate(struct model *m, unsigned first, unsigned end)
{
	size_t n_in_use = 0;

	for (unsigned i = m->n; i-- > 0;) {
		struct model_region *r = &m->at[i];

		if (!overlaps(r, first, end))
			continue;
		if (r->refs) {
			r->doomed = true;
			n_in_use++;
		} else {
			remove_region(m, i);
		}
	}
	return n_in_use;
}

const struct model_region *model_find(const struct model *m, unsigned page)
{
	return covering((struct model *)(uintptr_t)m, page, page + 1);
}

/* ---- registration functions that count ---------------------------------------------------- */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void *counted_address(unsigned page)
{
	return (void *)((uintptr_t)(COUNTED_BASE_PAGE + page) * page_bytes());
}

unsigned counted_page(const void *at)
{
	return (unsigned)((uintptr_t)at / page_bytes()) - COUNTED_BASE_PAGE;
}

static gpul_status count_reg(void *user, void *at, size_t bytes, void **token, gpul_error *err)
{
	struct counted *c = user;
	unsigned first = counted_page(at), end = first + (unsigned)(bytes / page_bytes());

	assert_int_equal((uintptr_t)at % page_bytes(), 0);
	assert_int_equal(bytes % page_bytes(), 0);
	c->n_regs++;
	if (c->bad_page >= first && c->bad_page < end)
		return gpul_fail(err, GPUL_ESYS, EFAULT, "page %u is bad", c->bad_page);
	if (c->fail_with && c->n > c->fail_above)
		return gpul_fail(err, c->fail_with, c->fail_native, "no more memory can be pinned");
	for (unsigned i = 0; i < c->n && !c->may_overlap; i++)
		assert_true(c->at[i].end <= first || c->at[i].first >= end);
	c->at[c->n].first = first;
	c->at[c->n++].end = end;
	*token = at;
	return GPUL_OK;
}

static void count_dereg(void *user, void *at, size_t bytes, void *token)
{
	struct counted *c = user;
	unsigned first = counted_page(at), end = first + (unsigned)(bytes / page_bytes());

	assert_ptr_equal(token, at);
	c->n_deregs++;
	for (unsigned i = 0; i < c->n; i++)
		if (c->at[i].first == first && c->at[i].end == end) {
			c->at[i] = c->at[--c->n];
			return;
		}
	fail_msg("pages %u-%u are deregistered but were not registered", first, end);
}

gpul_reg_ops counted_ops(struct counted *c)
{
	return (gpul_reg_ops){ count_reg, count_dereg, c->may_overlap, c };
}
