/* regcache_model.h — a register cache as simple as can be, and ops that count.
 *
 * Addresses are pages of a range that is never touched. */
#ifndef GPULOAD_TESTS_MEMALLOC_REGCACHE_MODEL_H
#define GPULOAD_TESTS_MEMALLOC_REGCACHE_MODEL_H

#include "memalloc/regcache.h"

enum { MODEL_PAGES = 64, MODEL_ROOM = 4 * MODEL_PAGES };

struct model_region {
	unsigned first, end;  /* pages */
	unsigned long id;     /* from 1; a doomed one and its successor may have one span */
	unsigned refs;
	unsigned long put_at; /* when the last user gave it back */
	bool doomed;
};

struct model {
	bool may_overlap;
	unsigned bad_page;    /* registering it fails; MODEL_PAGES: none is bad */
	unsigned idle_pages;  /* limit */
	struct model_region at[MODEL_ROOM];
	unsigned n;
	unsigned long clock;
};

/* What get() does: false, it fails.  A region's index changes with the next call. */
bool model_get(struct model *m, unsigned first, unsigned end, struct model_region *out);
void model_put(struct model *m, unsigned long id);
size_t model_invalidate(struct model *m, unsigned first, unsigned end);
/* The region that find() answers with; NULL: none. */
const struct model_region *model_find(const struct model *m, unsigned page);

/* The ops' side: what is registered now. */
struct counted {
	struct {
		unsigned first, end;
	} at[MODEL_ROOM];
	unsigned n;
	bool may_overlap;
	unsigned bad_page;
	unsigned n_regs, n_deregs;
	gpul_status fail_with;  /* every registration fails so, while more than fail_above are there */
	int fail_native;
	unsigned fail_above;
};

enum { COUNTED_BASE_PAGE = 1 << 20 };
void *counted_address(unsigned page);
unsigned counted_page(const void *at);
gpul_reg_ops counted_ops(struct counted *c);

#endif
