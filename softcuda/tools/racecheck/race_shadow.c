/* race_shadow.c — shadow memory with the last accesses to each cell: 64 KiB pages of global memory, and each block's shared memory.
 *
 * A page starts with cells of four bytes. After a smaller access the whole page gets smaller cells, so that threads that write
 * neighbouring bytes do not seem to race. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { ADDRESS_BITS = 48, LOW_BITS = 16, HIGH_BITS = ADDRESS_BITS - PAGE_SHIFT - LOW_BITS, CELL_SHIFT = 2 };

struct page_table {
	_Atomic(struct shadow *) page[1 << LOW_BITS];
};

static _Atomic(struct page_table *) tables[1 << HIGH_BITS];

/* ---- cells ------------------------------------------------------------------------------------------------------- */

static size_t bytes_of(size_t n_cells)
{
	return 3 * n_cells * sizeof(access_id);
}

static void *map_zeros(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void set_arrays(struct shadow *s, access_id *at)
{
	s->write = at;
	s->read[0] = at + s->n_cells;
	s->read[1] = at + 2 * s->n_cells;
}

bool race_shadow_create(struct shadow *s, uint64_t bytes)
{
	const size_t n = (bytes + (1 << CELL_SHIFT) - 1) >> CELL_SHIFT;
	access_id *at = s->write;

	if (n > s->room) {
		at = map_zeros(bytes_of(n));
		if (!at)
			return false;
		if (s->write)
			munmap(s->write, bytes_of(s->room));
		s->room = n;
	}
	s->shift = CELL_SHIFT;
	s->n_cells = n;
	s->first = n;
	s->end = 0;
	set_arrays(s, at);
	return true;
}

bool race_shadow_split(struct shadow *s, unsigned shift)
{
	const unsigned more = s->shift - shift;
	const struct shadow old = *s;
	access_id *at = map_zeros(bytes_of(s->n_cells << more));

	if (!at)
		return false;
	s->n_cells <<= more;
	s->first <<= more;
	s->end <<= more;
	s->room = s->n_cells;
	s->shift = shift;
	set_arrays(s, at);
	for (size_t k = 0; k < s->n_cells; k++) {
		if (old.write[k >> more] | old.read[0][k >> more] | old.read[1][k >> more]) {
			s->write[k] = old.write[k >> more];
			s->read[0][k] = old.read[0][k >> more];
			s->read[1][k] = old.read[1][k >> more];
		}
	}
	munmap(old.write, bytes_of(old.room));
	return true;
}

static void clear_cells(struct shadow *s, size_t first, size_t end)
{
	if (first >= end)
		return;
	memset(s->write + first, 0, (end - first) * sizeof(access_id));
	memset(s->read[0] + first, 0, (end - first) * sizeof(access_id));
	memset(s->read[1] + first, 0, (end - first) * sizeof(access_id));
}

void race_shadow_clear(struct shadow *s)
{
	clear_cells(s, s->first, s->end);
	s->first = s->n_cells;
	s->end = 0;
}

void race_shadow_each_of(const struct shadow *s, void (*f)(access_id id))
{
	for (size_t k = 0; k < 3 * s->n_cells; k++)
		if (s->write[k])
			f(s->write[k]);
	for (unsigned k = 0; k < 3; k++)
		if (s->all[k])
			f(s->all[k]);
}

/* ---- pages ---------------------------------------------------------------------------------------------------------- */

static struct page_table *table_of(uint64_t address, bool make)
{
	_Atomic(struct page_table *) *slot = &tables[address >> (PAGE_SHIFT + LOW_BITS) & ((1 << HIGH_BITS) - 1)];
	struct page_table *t = atomic_load_explicit(slot, memory_order_acquire), *other = NULL;

	if (t || !make)
		return t;
	t = calloc(1, sizeof *t); /* calloc() instead of mmap(), so that leak checkers scan this table and find the pages */
	if (t && !atomic_compare_exchange_strong(slot, &other, t)) {
		free(t);
		t = other;
	}
	return t;
}

/* Allocate the cells of a page; false: out of memory.  The caller has locked the page. */
static bool make_cells(struct shadow *page)
{
	if (!race_shadow_create(page, PAGE_BYTES))
		return false;
	for (unsigned k = 0; k < 3; k++) {
		for (size_t c = 0; page->all[k] && c < page->n_cells; c++)
			page->write[k * page->n_cells + c] = page->all[k];
		page->all[k] = 0;
	}
	return true;
}

static struct shadow *find_page(uint64_t address, bool make)
{
	struct page_table *t = table_of(address, make);
	_Atomic(struct shadow *) *slot = t ? &t->page[address >> PAGE_SHIFT & ((1 << LOW_BITS) - 1)] : NULL;
	struct shadow *page = t ? atomic_load_explicit(slot, memory_order_acquire) : NULL, *other = NULL;

	if (page || !t || !make)
		return page;
	page = calloc(1, sizeof *page);
	if (page && !atomic_compare_exchange_strong(slot, &other, page)) {
		free(page);
		page = other;
	}
	return page;
}

static void lock_page(struct shadow *page)
{
	for (unsigned k = 0; atomic_exchange_explicit(&page->locked, true, memory_order_acquire); k++)
		if (k % 64 == 63)
			sched_yield();
}

struct shadow *race_page_lock(uint64_t address, bool whole)
{
	struct shadow *page = find_page(race_home(address, NULL), true);

	if (!page)
		return NULL;
	lock_page(page);
	if (whole || page->write || make_cells(page))
		return page;
	race_page_unlock(page);
	return NULL;
}

void race_page_unlock(struct shadow *page)
{
	atomic_store_explicit(&page->locked, false, memory_order_release);
}

/* Call f for each page that overlaps [address, address + bytes).  f gets the locked page, and the part of the range in this page. */
static void each_page(uint64_t address, uint64_t bytes, void (*f)(struct shadow *page, uint64_t from, uint64_t to))
{
	const uint64_t end = address + bytes;

	while (address < end) {
		const uint64_t next = (address | (PAGE_BYTES - 1)) + 1, stop = next < end ? next : end;
		struct shadow *page;

		if (!table_of(address, false)) {
			address = ((address >> (PAGE_SHIFT + LOW_BITS)) + 1) << (PAGE_SHIFT + LOW_BITS);
			continue;
		}
		page = find_page(address, false);
		if (page) {
			lock_page(page);
			f(page, address & (PAGE_BYTES - 1), ((stop - 1) & (PAGE_BYTES - 1)) + 1);
			race_page_unlock(page);
		}
		address = stop;
	}
}

static void forget_bytes(struct shadow *page, uint64_t from, uint64_t to)
{
	const bool any = page->all[0] | page->all[1] | page->all[2];

	if (!page->write && (!any || (!from && to == PAGE_BYTES) || !make_cells(page))) {
		memset(page->all, 0, sizeof page->all);
		return;
	}
	clear_cells(page, from >> page->shift, (to + (1u << page->shift) - 1) >> page->shift);
}

void race_shadow_forget(uint64_t address, uint64_t bytes)
{
	while (bytes) {
		uint64_t part = bytes;
		const uint64_t home = race_home(address, &part);

		each_page(home, part, forget_bytes);
		address += part;
		bytes -= part;
	}
}

void race_shadow_forget_all(void)
{
	each_page(0, UINT64_C(1) << ADDRESS_BITS, forget_bytes);
}

void race_shadow_each(void (*f)(access_id id))
{
	for (size_t h = 0; h < sizeof tables / sizeof tables[0]; h++) {
		struct page_table *t = atomic_load(&tables[h]);

		for (size_t k = 0; t && k < sizeof t->page / sizeof t->page[0]; k++) {
			struct shadow *page = atomic_load(&t->page[k]);

			if (!page)
				continue;
			lock_page(page);
			race_shadow_each_of(page, f);
			race_page_unlock(page);
		}
	}
}
