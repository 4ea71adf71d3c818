/* numa.c — move_pages(2) without a destination moves nothing: it says on which node each page
 * is. */
#include "memalloc/numa.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if GPUL_HAVE_NUMA
#include <numaif.h>
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ                                                                     \
	22 /* Linux 5.14; an older one refuses it, and the page counts as not there */
#endif

enum { BATCH = 1024 }; /* pages a call: 12 KiB of stack */

struct batch {
	void *at[BATCH];
	int status[BATCH];
	size_t n;
};

#if GPUL_HAVE_NUMA
static int where_are(struct batch *b)
{
	return move_pages(0, b->n, b->at, NULL, b->status, 0) < 0 ? errno : 0;
}
#else
static int where_are(struct batch *b)
{
	(void)b;
	return ENOSYS;
}
#endif

/* A status is a node, or a negated errno: ENOENT no page there yet, EFAULT not one that the
 * kernel tells of. */
static void count(const struct batch *b, gpul_mem_numa *out)
{
	for (size_t i = 0; i < b->n; i++) {
		int node = b->status[i];

		if (node < 0)
			out->not_there++;
		else if (node < GPUL_NUMA_MAX_NODES)
			out->on_node[node]++;
		if (node >= 0 && out->expected >= 0 && node != out->expected)
			out->as_expected = false;
	}
	out->n_sampled += b->n;
}

/* A page that another process made, and this one has not met yet, is not in its tables: have
 * the system look it up.  By a call, because a page that is not there any more would be SIGBUS
 * to a touch. */
static bool meet_missing(const struct batch *b, size_t page_bytes)
{
	bool met = false;

	for (size_t i = 0; i < b->n; i++)
		met |= b->status[i] == -ENOENT &&
		       madvise(b->at[i], page_bytes, MADV_POPULATE_READ) == 0;
	return met;
}

static gpul_status refuse(int failed, gpul_error *err)
{
	if (!GPUL_HAVE_NUMA)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "built without libnuma: nobody to ask on which node pages "
				 "are; install libnuma-dev");
	return gpul_fail(err, GPUL_ESYS, failed,
			 "move_pages: %s: cannot ask on which node pages are%s",
			 strerror(failed),
			 failed == EPERM ? "; in a container, --cap-add SYS_NICE" : "");
}

/* Ask about what is in the batch, and empty it. */
static gpul_status flush(struct batch *b, size_t page_bytes, gpul_mem_numa *out,
			 gpul_error *err)
{
	int failed = b->n ? where_are(b) : 0;

	if (!failed && meet_missing(b, page_bytes))
		failed = where_are(b);
	if (failed)
		return refuse(failed, err);
	count(b, out);
	b->n = 0;
	return GPUL_OK;
}

/* The page to ask about after page i: so many on, but not past the last one; n_pages after
 * that. */
static size_t next_page(size_t i, size_t n_pages, size_t every)
{
	const size_t last = n_pages - 1;

	if (i == last)
		return n_pages;
	return last - i < every ? last : i + every;
}

static gpul_status ask(char *base, size_t n_pages, size_t every, size_t page_bytes,
		       gpul_mem_numa *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	struct batch b;

	b.n = 0;
	for (size_t i = 0; !st && i < n_pages; i = next_page(i, n_pages, every)) {
		b.at[b.n++] = base + i * page_bytes;
		if (b.n == BATCH)
			st = flush(&b, page_bytes, out, err);
	}
	return st ? st : flush(&b, page_bytes, out, err);
}

gpul_status gpul_mem_verify_numa(const gpul_mem *m, size_t every_pages, gpul_mem_numa *out,
				 gpul_error *err)
{
	const gpul_mem_info *is = gpul_mem_about(m);
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	gpul_mem_numa numa = { .expected = is->node, .as_expected = true };
	gpul_status st;

	if (!gpul_mem_cpu(m))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%s memory lies on a GPU, on no NUMA node",
				 gpul_mem_kind_name(is->kind));
	if (every_pages == 0)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "one page in 0 cannot be asked about: expected 1 or more");
	st = ask(gpul_mem_cpu(m), is->mapped_bytes / page_bytes, every_pages, page_bytes, &numa,
		 err);
	if (st)
		return st;
	numa.as_expected = numa.as_expected && numa.not_there < numa.n_sampled;
	*out = numa;
	return GPUL_OK;
}
