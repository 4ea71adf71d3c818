/* search.c — the regions of a file, cut into blocks that threads take in turn.
 *
 *     region   ├────────── .rodata ──────────┤├─ .nv_fatbin ─┤
 *     blocks   │ 0     │ 1     │ 2     │ 3   ││ 4            │   each with a list of its own
 *     merge      0, 1, 2 ...: as if one thread had gone through from the start
 *
 * A block of plain data may begin in the middle of a fatbin, and what looks like an image in there is
 * none of the file's: merging drops what starts before the end of the last image taken. */
#include <pthread.h>
#include <sched.h>

#include "core/clock.h"
#include "loader/image/images_internal.h"

#define BLOCK_BYTES  ((size_t)8 << 20)
#define THREAD_BYTES ((size_t)16 << 20) /* as much work makes a thread worth starting */
#define SPARSE_BYTES ((size_t)1 << 20) /* from here on, headers are looked at through a window */
#define RELEASE_BYTES ((size_t)1 << 20)
#define MOST_THREADS 16
#define PATIENCE     2000000 /* steps of some nanoseconds */
#define TELL_NS      50000000u

typedef struct block {
	const gpul_region *region;
	size_t from, to; /* of the region's bytes */
	_Atomic size_t *covered;
	gpul_images found; /* without strings and places */
	gpul_status st;
	gpul_error err;
} block;

typedef struct search {
	const gpul_walk *w;
	GPUL_ARRAY(block) blocks;
	_Atomic size_t next, n_bytes_done;
	size_t n_bytes;
	uint64_t told_ns;
} search;

static gpul_walk inside(const gpul_walk *w, const gpul_region *r)
{
	gpul_walk inner = *w;

	inner.here.section = r->section;
	inner.origin = r->origin;
	inner.relocatable = r->relocatable;
	inner.section_tells = r->fatbins;
	return inner;
}

static void work_on(const search *s, block *b)
{
	gpul_walk w = inside(s->w, b->region);
	gpul_span all = b->region->bytes;
	gpul_window window = { 0 };
	size_t n_searched = 0;

	w.list = &b->found;
	w.err = &b->err;
	w.n_searched = &n_searched;
	w.window = all.n >= SPARSE_BYTES ? &window : NULL;
	b->st = b->region->fatbins ? gpul_walk_fatbins(&w, all)
				   : gpul_walk_data(&w, all, b->from, b->to, b->covered);
	/* What is listed is read again later, or never; a release interrupts the other threads. */
	if (s->n_bytes > THREAD_BYTES && n_searched > RELEASE_BYTES)
		gpul_file_release(&w.source, all.at + b->from, b->to - b->from);
}

static void tell(search *s)
{
	const gpul_progress *p = s->w->progress;
	uint64_t now;

	if (!p || !p->tell || (now = gpul_clock_ns()) - s->told_ns < TELL_NS)
		return;
	s->told_ns = now;
	p->tell(p->context, atomic_load(&s->n_bytes_done), s->n_bytes);
}

static void work(search *s, bool telling)
{
	size_t i;

	while ((i = atomic_fetch_add(&s->next, 1)) < s->blocks.n) {
		block *b = &s->blocks.at[i];

		work_on(s, b);
		atomic_fetch_add(&s->n_bytes_done, b->to - b->from);
		if (telling)
			tell(s);
	}
}

static void *thread(void *s)
{
	work(s, false);
	return NULL;
}

static size_t threads_for(size_t n_bytes)
{
	size_t n = n_bytes / THREAD_BYTES;
	cpu_set_t cpus;
	size_t n_cpus = 1;

	if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
		n_cpus = (size_t)CPU_COUNT(&cpus);
	n = n < n_cpus ? n : n_cpus;
	return n < 1 ? 1 : n < MOST_THREADS ? n : MOST_THREADS;
}

/* This thread works too; when others cannot be started it works alone. */
static void run(search *s)
{
	size_t n = threads_for(s->n_bytes), started = 0;
	pthread_t threads[MOST_THREADS];

	while (started + 1 < n && pthread_create(&threads[started], NULL, thread, s) == 0)
		started++;
	work(s, true);
	while (started)
		pthread_join(threads[--started], NULL);
}

static bool cut(search *s, const gpul_region *r)
{
	size_t step = r->fatbins ? r->bytes.n : BLOCK_BYTES;

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

/* Where an image's unit lies: its whole fatbin, or itself. */
static gpul_span extent(const gpul_image *image)
{
	if (image->fatbin)
		return (gpul_span){ image->fatbin, (size_t)image->fatbin_bytes };
	return (gpul_span){ image->stored, (size_t)image->stored_bytes };
}

/* One unit of a block's list, images [i, end), to the list. */
static gpul_status append(const gpul_walk *w, const gpul_images *from, size_t i, size_t end)
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

/* The rest of a region, when a block was led astray by what begins inside a fatbin and ends behind
 * it: by one thread, straight into the list. */
static gpul_status walk_rest(const gpul_walk *w, const gpul_region *r, size_t from)
{
	_Atomic size_t covered = from;
	size_t n_searched = 0;
	gpul_walk alone = *w;

	alone.n_searched = &n_searched;
	return gpul_walk_data(&alone, r->bytes, from, r->bytes.n, &covered);
}

/* Blocks [first, end) are those of one region. */
static gpul_status merge_region(search *s, size_t first, size_t end)
{
	const gpul_region *r = s->blocks.at[first].region;
	gpul_walk w = inside(s->w, r);
	const unsigned char *taken = r->bytes.at; /* up to here */

	for (; first < end; first++) {
		const block *b = &s->blocks.at[first];

		for (size_t i = 0, next; i < b->found.images.n; i = next) {
			gpul_span e = extent(&b->found.images.at[i]);
			gpul_status st;

			next = unit_end(&b->found, i);
			if (e.at < taken && e.at + e.n > taken)
				return walk_rest(&w, r, (size_t)(taken - r->bytes.at));
			if (e.at < taken)
				continue;
			st = append(&w, &b->found, i, next);
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

static gpul_status merge(search *s)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0, end; i < s->blocks.n && !st; i = end) {
		for (end = i; end < s->blocks.n &&
			      s->blocks.at[end].region == s->blocks.at[i].region; end++)
			;
		st = merge_region(s, i, end);
	}
	return st;
}

static void end_search(search *s)
{
	for (size_t i = 0; i < s->blocks.n; i++) {
		gpul_images *found = &s->blocks.at[i].found;

		for (size_t k = 0; k < found->strings.n; k++)
			free(found->strings.at[k]);
		gpul_array_free(&found->strings);
		gpul_array_free(&found->places);
		gpul_array_free(&found->images);
	}
	gpul_array_free(&s->blocks);
}

gpul_status gpul_walk_regions(const gpul_walk *w, const gpul_region *regions, size_t n)
{
	_Atomic int64_t patience = PATIENCE;
	_Atomic size_t *covered = NULL; /* of each block: those of a region lie in a row */
	gpul_walk patient = *w;
	search s = { .w = &patient };
	gpul_status st = GPUL_OK;

	patient.patience = &patience;
	for (size_t i = 0; i < n && !st; i++)
		if (!cut(&s, &regions[i]))
			st = gpul_walk_no_memory(w);
	if (!st && !(covered = calloc(s.blocks.n + 1, sizeof *covered)))
		st = gpul_walk_no_memory(w);
	for (size_t i = 0; i < s.blocks.n && covered; i++)
		s.blocks.at[i].covered = &covered[i];
	if (!st) {
		run(&s);
		st = merge(&s);
	}
	end_search(&s);
	free(covered);
	return st;
}
