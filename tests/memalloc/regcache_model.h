/* regcache_model.h — a model of the registration cache, as simple as possible, and registration functions that count calls.
 *
 * Addresses are page numbers of a range that is never accessed. */
#ifndef GPULOAD_TESTS_MEMALLOC_REGCACHE_MODEL_H
#define GPULOAD_TESTS_MEMALLOC_REGCACHE_MODEL_H

#include "memalloc/regcache.h"

enum { MODEL_PAGES = 64, MODEL_ROOM = 4 * MODEL_PAGES };

struct model_region {
	unsigned first, end; /* numbers of pages */
	unsigned long id;    /* from 1; distinguishes a new region from an invalidated one with the same span */
	unsigned refs;
	unsigned long put_at; /* time at which the last user released the region */
	bool doomed;
};

struct model {
	bool may_overlap;
	unsigned bad_page;   /* registering this page fails; MODEL_PAGES: no bad page */
	unsigned idle_pages; /* limit of pages in unused regions */
	struct model_region at[MODEL_ROOM];
	unsigned n;
	unsigned long clock;
};

/* Do what gpul_regcache_get() should do; false: that call should fail. */
bool model_get(struct model *m, unsigned first, unsigned end, struct model_region *out);
void model_put(struct model *m, unsigned long id);
size_t model_invalidate(struct model *m, unsigned first, unsigned end);
/* Return the region that gpul_regcache_find() should find; NULL: none. */
const struct model_region *model_find(const struct model *m, unsigned page);

/* The currently registered pages, as seen by the registration functions. */
struct counted {
	struct {
		unsigned first, end;
	} at[MODEL_ROOM];
	unsigned n;
	bool may_overlap;
	unsigned bad_page;
	unsigned n_regs, n_deregs;
	gpul_status fail_with; /* registrations fail with this status while more than fail_above regions exist */
	int fail_native;
	unsigned fail_above;
};

enum { COUNTED_BASE_PAGE = 1 << 20 };
void *counted_address(unsigned page);
unsigned counted_page(const void *at);
gpul_reg_ops counted_ops(struct counted *c);

#endif
