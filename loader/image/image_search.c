/* image_search.c — searches the regions of a file for images in parallel: regions are divided into blocks, and each
 * thread takes the next block.
 *
 *     region   ├────────── .rodata ──────────┤├─ .nv_fatbin ─┤
 *     blocks   │ 0     │ 1     │ 2     │ 3   ││ 4            │   each block has a private list
 *     merge      0, 1, 2 ...: the same result as one thread from start to end
 *
 * A block of plain data may begin in the middle of a fatbin, whose content may look like another image.  Merging
 * therefore drops every image that starts before the end of the last accepted one. */
#include "core/clock.h"
#include "core/thread/parallel.h"
#include "loader/image/images_internal.h"

#define BLOCK_BYTES   ((size_t)8 << 20)
#define THREAD_BYTES  ((size_t)16 << 20) /* one thread for this many bytes: a search of fewer takes less time than starting a thread */
#define SPARSE_BYTES  ((size_t)1 << 20)  /* in larger regions, headers are copied to a gpul_window, so that no pages are mapped */
#define RELEASE_BYTES ((size_t)1 << 20)
#define MAX_THREADS   16
#define MAX_REJECTS   2000000 /* limit of the steps (of some ns each) that are spent on data that only looks like an image */
#define REPORT_NS     50000000u

typedef struct block {
	const gpul_region *region;
	size_t from, to; /* range of bytes in the region */
	_Atomic size_t *covered;
	gpul_images found; /* private to the block, merged later */
	gpul_status st;
	gpul_error err;
} block;

typedef struct search {
	const gpul_walk *w;
	GPUL_ARRAY(block) blocks;
	_Atomic size_t next, n_bytes_done;
	size_t n_bytes;
	uint64_t reported_ns;
} search;

static gpul_walk walk_of_region(const gpul_walk *w, const gpul_region *r)
{
	gpul_walk inner = *w;

	inner.here.section = r->section;
	inner.origin = r->origin;
	inner.relocatable = r->relocatable;
	inner.section_known = r->fatbins;
	return inner;
}

static void search_block(const search *s, block *b)
{
	gpul_walk w = walk_of_region(s->w, b->region);
	gpul_span all = b->region->bytes;
	gpul_window window = { 0 };
	size_t n_searched = 0;

	w.list = &b->found;
	w.err = &b->err;
	w.n_searched = &n_searched;
	w.window = all.n >= SPARSE_BYTES ? &window : NULL;
	b->st = b->region->offload   ? gpul_walk_offload(&w, all)
		: b->region->fatbins ? gpul_walk_fatbins(&w, all)
				     : gpul_walk_data(&w, all, b->from, b->to, b->covered);
	/* Release the pages of a searched block, because they are not needed soon.  Keep those of a small block, because
	 * releasing pages interrupts the other threads. */
	if (s->n_bytes > THREAD_BYTES && n_searched > RELEASE_BYTES)
		gpul_file_release(&w.source, all.at + b->from, b->to - b->from);
}

static void report_progress(search *s)
{
	const gpul_progress *p = s->w->progress;
	uint64_t now;

	if (!p || !p->tell || (now = gpul_clock_ns()) - s->reported_ns < REPORT_NS)
		return;
	s->reported_ns = now;
	p->tell(p->context, atomic_load(&s->n_bytes_done), s->n_bytes);
}

static void search_blocks(search *s, bool reporting)
{
	size_t i;

	while ((i = atomic_fetch_add(&s->next, 1)) < s->blocks.n) {
		block *b = &s->blocks.at[i];

		search_block(s, b);
		atomic_fetch_add(&s->n_bytes_done, b->to - b->from);
		if (reporting)
			report_progress(s);
	}
}

static void search_on_thread(void *context)
{
	search_blocks(context, false);
}

/* Search on several threads, one of which is the calling thread. If the system refuses more, the calling thread does all work. */
static void search_in_parallel(search *s)
{
	size_t useful = s->n_bytes / THREAD_BYTES, cpus = gpul_cpus();
	size_t n = useful < cpus ? useful : cpus;
	gpul_team team;

	n = n < MAX_THREADS ? n : MAX_THREADS;
	gpul_team_start(&team, n > 1 ? (unsigned)n - 1 : 0, search_on_thread, s);
	search_blocks(s, true);
	gpul_team_join(&team);
}

static bool cut_into_blocks(search *s, const gpul_region *r)
{
	size_t step = r->fatbins || r->offload ? r->bytes.n : BLOCK_BYTES;

	for (size_t from = 0; from < r->bytes.n; from += step) {
		block *b = gpul_array_push(&s->blocks);

		if (!b)
			return false;
		b->region = r;
		b->from = from;
		b->to = r->bytes.n - from < step ? r->bytes.n : from + step;
	}
	s->n_bytes += r->bytes.n;
	return true;
}

/* Return the bytes of the unit that an image belongs to: its whole fatbin, or the image itself. */
static gpul_span unit_extent(const gpul_image *image)
{
	if (image->fatbin)
		return (gpul_span){ image->fatbin, (size_t)image->fatbin_bytes };
	return (gpul_span){ image->stored, (size_t)image->stored_bytes };
}

/* Append images [i, end) of a block's list, which are the images of one unit (fatbin), to the result. */
static gpul_status append_unit(const gpul_walk *w, const gpul_images *from, size_t i, size_t end)
{
	uint32_t unit = w->list->n_units;

	for (; i < end; i++) {
		gpul_image *to = gpul_walk_add(w, unit);
		uint32_t place;

		if (!to)
			return GPUL_ENOMEM;
		place = to->place;
		*to = from->images.at[i];
		to->place = place;
		to->unit = unit;
	}
	w->list->n_units = unit + 1;
	return GPUL_OK;
}

static size_t unit_end(const gpul_images *list, size_t i)
{
	size_t end = i + 1;

	while (end < list->images.n && list->images.at[end].unit == list->images.at[i].unit)
		end++;
	return end;
}

/* Search the rest of a region again with one thread.  This is needed if a block's search accepted data as an image that starts
 * inside a fatbin and ends after this fatbin, because the later results of the block are then wrong. */
static gpul_status search_rest(const gpul_walk *w, const gpul_region *r, size_t from)
{
	_Atomic size_t covered = from;
	size_t n_searched = 0;
	gpul_walk alone = *w;

	alone.n_searched = &n_searched;
	return gpul_walk_data(&alone, r->bytes, from, r->bytes.n, &covered);
}

/* Merge the images of blocks [first, end), which are the blocks of one region. */
static gpul_status merge_region(search *s, size_t first, size_t end)
{
	const gpul_region *r = s->blocks.at[first].region;
	gpul_walk w = walk_of_region(s->w, r);
	const unsigned char *taken = r->bytes.at; /* end of the last image that was accepted */

	for (; first < end; first++) {
		const block *b = &s->blocks.at[first];

		for (size_t i = 0; i < b->found.n_damaged; i++) {
			gpul_status st = gpul_walk_add_damage(&w, &b->found.damaged.at[i < b->found.damaged.n ? i : 0]);

			if (st)
				return st;
		}
		for (size_t i = 0, next; i < b->found.images.n; i = next) {
			gpul_span e = unit_extent(&b->found.images.at[i]);
			gpul_status st;

			next = unit_end(&b->found, i);
			if (e.at < taken && e.at + e.n > taken)
				return search_rest(&w, r, (size_t)(taken - r->bytes.at));
			if (e.at < taken)
				continue;
			st = append_unit(&w, &b->found, i, next);
			if (st)
				return st;
			taken = e.at + e.n;
		}
		if (b->st) {
			if (w.err && !w.err->status)
				*w.err = b->err;
			return b->st;
		}
	}
	return GPUL_OK;
}

static gpul_status merge_regions(search *s)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0, end; i < s->blocks.n && !st; i = end) {
		for (end = i; end < s->blocks.n && s->blocks.at[end].region == s->blocks.at[i].region; end++)
			;
		st = merge_region(s, i, end);
	}
	return st;
}

static void free_blocks(search *s)
{
	for (size_t i = 0; i < s->blocks.n; i++) {
		gpul_images *found = &s->blocks.at[i].found;

		for (size_t k = 0; k < found->strings.n; k++)
			free(found->strings.at[k]);
		gpul_array_free(&found->strings);
		gpul_array_free(&found->damaged);
		gpul_array_free(&found->places);
		gpul_array_free(&found->images);
	}
	gpul_array_free(&s->blocks);
}

gpul_status gpul_walk_regions(const gpul_walk *w, const gpul_region *regions, size_t n)
{
	_Atomic int64_t rejects_left = MAX_REJECTS;
	_Atomic size_t *covered = NULL; /* one element for each block; the blocks of a region are consecutive */
	gpul_walk limited = *w;
	search s = { .w = &limited };
	gpul_status st = GPUL_OK;

	limited.rejects_left = &rejects_left;
	for (size_t i = 0; i < n && !st; i++)
		if (!cut_into_blocks(&s, &regions[i]))
			st = gpul_walk_no_memory(w);
	if (!st && !(covered = calloc(s.blocks.n + 1, sizeof *covered)))
		st = gpul_walk_no_memory(w);
	for (size_t i = 0; i < s.blocks.n && covered; i++)
		s.blocks.at[i].covered = &covered[i];
	if (!st) {
		search_in_parallel(&s);
		st = merge_regions(&s);
	}
	free_blocks(&s);
	free(covered);
	return st;
}
