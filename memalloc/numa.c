/* numa.c — finds the NUMA nodes of pages with move_pages(2), which only reports where pages are if no destination is given. */
#include "memalloc/numa.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; an older kernel refuses this advice, and the page counts in not_there */
#endif

/* pages per call of move_pages(); their arrays take 12 KiB of stack */
enum { BATCH = 1024 };

struct batch {
	void *at[BATCH];
	int status[BATCH];
	size_t n;
};

/* Make the system call directly: libnuma reads files in /proc and /sys when a program starts, which takes a third of the time of a
 * short command. */
static int query_nodes(struct batch *b)
{
	return syscall(SYS_move_pages, 0, b->n, b->at, NULL, b->status, 0) < 0 ? errno : 0;
}

/* The status of a page is its node, or a negative errno: -ENOENT if no page is allocated yet, -EFAULT if the
 * kernel does not report the page. */
static void count_nodes(const struct batch *b, gpul_mem_numa *out)
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

/* Map pages that another process has allocated and this process has not accessed yet.  madvise() is used because a read of a page
 * that has been removed would cause SIGBUS. */
static bool map_missing(const struct batch *b, size_t page_bytes)
{
	bool mapped = false;

	for (size_t i = 0; i < b->n; i++)
		mapped |= b->status[i] == -ENOENT && madvise(b->at[i], page_bytes, MADV_POPULATE_READ) == 0;
	return mapped;
}

static gpul_status refuse_query(int failed, gpul_error *err)
{
	return gpul_fail(err, GPUL_ESYS, failed, "cannot find the NUMA node of pages: move_pages: %s%s", strerror(failed),
			 failed == EPERM ? "; in a container, use docker run --cap-add SYS_NICE" : "");
}

/* Query the nodes of the pages in the batch, add them to out, and empty the batch. */
static gpul_status flush_batch(struct batch *b, size_t page_bytes, gpul_mem_numa *out, gpul_error *err)
{
	int failed = b->n ? query_nodes(b) : 0;

	/* Several attempts, because the kernel may move a page, which is then not mapped for a moment, between the two calls. */
	for (int i = 0; i < 4 && !failed && map_missing(b, page_bytes); i++)
		failed = query_nodes(b);
	if (failed)
		return refuse_query(failed, err);
	count_nodes(b, out);
	b->n = 0;
	return GPUL_OK;
}

/* Return the page to query after page i: page i + every, but at most the last page; after the last page, n_pages. */
static size_t next_page(size_t i, size_t n_pages, size_t every)
{
	const size_t last = n_pages - 1;

	if (i == last)
		return n_pages;
	return last - i < every ? last : i + every;
}

static gpul_status sample_pages(char *base, size_t n_pages, size_t every, size_t page_bytes, gpul_mem_numa *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	struct batch b;

	b.n = 0;
	for (size_t i = 0; !st && i < n_pages; i = next_page(i, n_pages, every)) {
		b.at[b.n++] = base + i * page_bytes;
		if (b.n == BATCH)
			st = flush_batch(&b, page_bytes, out, err);
	}
	return st ? st : flush_batch(&b, page_bytes, out, err);
}

gpul_status gpul_mem_verify_numa(const gpul_mem *m, size_t every_pages, gpul_mem_numa *out, gpul_error *err)
{
	const gpul_mem_info *is = gpul_mem_about(m);
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	gpul_mem_numa numa = { .expected = is->node, .as_expected = true };
	gpul_status st;

	if (!gpul_mem_cpu(m))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s memory is on a GPU, not on a NUMA node", gpul_mem_kind_name(is->kind));
	if (every_pages == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "every_pages is 0: expected at least 1");
	st = sample_pages(gpul_mem_cpu(m), is->mapped_bytes / page_bytes, every_pages, page_bytes, &numa, err);
	if (st)
		return st;
	numa.as_expected = numa.as_expected && numa.not_there < numa.n_sampled;
	*out = numa;
	return GPUL_OK;
}
