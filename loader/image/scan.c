/* scan.c — fatbins and cubins in plain data, where libraries keep code that they load themselves.
 *
 * What looks like one is only taken when all of it is sound: numbers in data must not become
 * images, and programs that handle fatbins have the magic numbers as data of their own. */
#include "loader/image/images_internal.h"
#include "loader/image/magic_internal.h"

/* How far to look in one go: fatbins often follow each other, then a short look is enough; after that
 * in ever larger steps. */
#define MOST_ALIGN ((size_t)64)
#define SHORT_LOOK ((size_t)256)
#define LONG_LOOK  ((size_t)1 << 20)
#define FETCH_FROM ((size_t)256 << 10) /* bytes: below, page faults do as well */

/* Does a magic stand where the last image ended, behind zeros that align the next?  Arrays of code lie
 * next to each other; *from is moved over the zeros. */
static bool follows(const gpul_walk *w, gpul_span s, size_t *from, size_t to)
{
	size_t n = to - *from < MOST_ALIGN ? to - *from : MOST_ALIGN, zeros = 0;
	const unsigned char *p = gpul_walk_see(w, s.at + *from, n);

	while (zeros < n && p[zeros] == 0)
		zeros++;
	*from += zeros;
	return n - zeros >= 4 && gpul_magic_is(p, n, zeros);
}

static size_t look(const gpul_walk *w, gpul_span s, size_t from, size_t to)
{
	size_t step = SHORT_LOOK;

	while (from < to) {
		size_t end = to - from < step ? to : from + step, found;

		if (end - from >= FETCH_FROM)
			gpul_file_fetch(&w->source, s.at + from, end - from);
		*w->n_searched += end - from;
		found = gpul_magic_find(s.at, s.n, from, end);
		if (found < end)
			return found;
		from = end;
		step = step < LONG_LOOK ? step * 4 : LONG_LOOK;
	}
	return to;
}

/* Take the image that starts s, if there is one: its length, or 0. */
static gpul_status try(const gpul_walk *w, gpul_span s, size_t *taken)
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
	if (st == GPUL_EFORMAT) { /* not one: forget what was added on the way */
		atomic_fetch_sub(w->patience, 1);
		w->list->images.n = before;
		w->list->n_units = unit;
		*taken = 0;
		return GPUL_OK;
	}
	return st ? gpul_walk_no_memory(w) : GPUL_OK;
}

/* Tell those who are at work behind `to`, on step bytes each, how far an image reaches. */
static void cover(_Atomic size_t *covered, size_t to, size_t step, size_t end)
{
	for (; to < end; to += step)
		atomic_store_explicit(++covered, end, memory_order_relaxed);
}

gpul_status gpul_walk_data(const gpul_walk *w, gpul_span s, size_t from, size_t to,
			   _Atomic size_t *covered)
{
	gpul_walk direct = *w; /* where it was searched, the pages are mapped */
	size_t taken = 0, step = to - from;

	direct.window = NULL;
	for (;;) {
		size_t done = atomic_load_explicit(covered, memory_order_relaxed);
		const gpul_walk *by = w;
		gpul_status st;

		from = from > done ? from : done;
		if (from < to && !(taken && follows(w, s, &from, to))) {
			from = look(w, s, from, to);
			by = &direct;
		}
		if (from >= to)
			return GPUL_OK;
		st = try(by, (gpul_span){ s.at + from, s.n - from }, &taken);
		if (st)
			return st;
		if (atomic_load(w->patience) < 0)
			return gpul_walk_fail(w, s.at + from, "too much in it looks like fatbins and cubins "
					      "and is none: damaged, or made to mislead" GPUL_AGAIN);
		from += taken ? taken : 1;
		if (taken)
			cover(covered, to, step, from);
	}
}
