/* scan.c — finds fatbins and cubins in plain data, where libraries keep code that they load themselves.
 *
 * A candidate is accepted only if all of it is valid: the magic numbers also occur by chance, and as constants of
 * programs that handle fatbins. */
#include "loader/image/images_internal.h"

/* Sizes in bytes.  Fatbins often follow each other, so the first step of a search is short; the following steps grow. */
#define MAX_ALIGN  ((size_t)64)
#define FIRST_STEP ((size_t)256)
#define MAX_STEP   ((size_t)1 << 20)
#define FETCH_FROM ((size_t)256 << 10) /* in bytes; shorter steps are not prefetched, because page faults are as fast */

/* True if a magic number follows the last image, directly or after zeros for alignment: libraries store their
 * images in arrays.  *from is moved past the zeros. */
static bool magic_follows(const gpul_walk *w, gpul_span s, size_t *from, size_t to)
{
	size_t n = to - *from < MAX_ALIGN ? to - *from : MAX_ALIGN, zeros = 0;
	const unsigned char *p = gpul_walk_see(w, s.at + *from, n);

	while (zeros < n && p[zeros] == 0)
		zeros++;
	*from += zeros;
	return n - zeros >= 4 && gpul_magic_is(p, n, zeros);
}

static size_t find_magic(const gpul_walk *w, gpul_span s, size_t from, size_t to)
{
	size_t step = FIRST_STEP;

	while (from < to) {
		size_t end = to - from < step ? to : from + step, found;

		if (end - from >= FETCH_FROM)
			gpul_file_fetch(&w->source, s.at + from, end - from);
		*w->n_searched += end - from;
		found = gpul_magic_find(s.at, s.n, from, end);
		if (found < end)
			return found;
		from = end;
		step = step < MAX_STEP ? step * 4 : MAX_STEP;
	}
	return to;
}

/* Add the image that starts at s, if it is valid.  *taken is set to its length; 0: there is no image. */
static gpul_status try_image(const gpul_walk *w, gpul_span s, size_t *taken)
{
	size_t before = w->list->images.n;
	uint32_t unit = w->list->n_units;
	gpul_walk quiet = *w;
	gpul_status st;

	quiet.err = NULL;
	*taken = 0;
	if (*gpul_walk_see(w, s.at, 1) == 0x7f) {
		st = gpul_walk_cubin(&quiet, s);
		if (!st)
			*taken = (size_t)w->list->images.at[before].stored_bytes;
	} else {
		st = gpul_walk_fatbin(&quiet, s, taken);
	}
	if (st == GPUL_EFORMAT) { /* the data is no image: remove the entries that were added before the error */
		atomic_fetch_sub(w->rejects_left, 1);
		w->list->images.n = before;
		w->list->n_units = unit;
		*taken = 0;
		return GPUL_OK;
	}
	return st ? gpul_walk_no_memory(w) : GPUL_OK;
}

/* Tell the threads that search the following blocks, of `step` bytes each, to skip an image that extends to `end`. */
static void mark_covered(_Atomic size_t *covered, size_t to, size_t step, size_t end)
{
	for (; to < end; to += step)
		atomic_store_explicit(++covered, end, memory_order_relaxed);
}

gpul_status gpul_walk_data(const gpul_walk *w, gpul_span s, size_t from, size_t to, _Atomic size_t *covered)
{
	gpul_walk direct = *w; /* reads the mapping directly, without a window, because the search has just mapped these pages */
	size_t taken = 0, step = to - from;

	direct.window = NULL;
	for (;;) {
		size_t done = atomic_load_explicit(covered, memory_order_relaxed);
		const gpul_walk *by = w;
		gpul_status st;

		from = from > done ? from : done;
		if (from < to && !(taken && magic_follows(w, s, &from, to))) {
			from = find_magic(w, s, from, to);
			by = &direct;
		}
		if (from >= to)
			return GPUL_OK;
		st = try_image(by, (gpul_span){ s.at + from, s.n - from }, &taken);
		if (st)
			return st;
		if (atomic_load(w->rejects_left) < 0)
			return gpul_walk_fail(
				w, s.at + from,
				"too much data looks like fatbins or cubins but is invalid: the file is damaged, or was made to "
				"mislead readers" GPUL_AGAIN);
		from += taken ? taken : 1;
		if (taken)
			mark_covered(covered, to, step, from);
	}
}
