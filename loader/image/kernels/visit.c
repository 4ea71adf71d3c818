/* visit.c — see gpul_kernels_visit of kernels.h.
 *
 *     image        0   1   2   3   4   5   6   7   8   9
 *                      │       │               │
 *                delivered     │             taken       a thread takes the next image, unpacks it,
 *                         being read                     reads its kernels and leaves the table in
 *                                                        the image's slot
 *
 * One thread a core, the caller's among them: it delivers what is done, slot after slot, so that the
 * order is that of the list, and reads images where the next slot is not done.  So nobody sleeps while
 * there is work.  Images so large that the last thread would be left alone with one are taken first
 * (excerpt_internal.h); their tables wait in slots of their own.
 *
 * Three limits keep the memory small whatever the list holds: images are taken at most WINDOW ahead of
 * what is delivered; what is unpacked at one moment is at most BUDGET bytes, unless a single image is
 * larger; and pages of the file that are behind are let go of. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "loader/image/kernels/excerpt_internal.h"
#include "loader/image/images_internal.h"
#include "loader/image/kernels/kernel_rows_internal.h"
#include "loader/image/kernels/kernels.h"

enum {
	MAX_THREADS = 16,
	WINDOW = 4 * MAX_THREADS,
	LET_GO_BYTES = 8 << 20, /* a system call's worth of pages */
};

#define BUDGET   (UINT64_C(96) << 20)
#define TELL_NS  50000000 /* 20 times a second */

typedef struct slot {
	gpul_kernel_table table;
	gpul_error failed;
	bool done;
} slot;

typedef struct large { /* an image that is taken ahead of its turn */
	size_t index;
	slot slot;
} large;

typedef struct walk {
	const gpul_images *list;
	const gpul_image **images; /* those that are wanted */
	size_t n;
	GPUL_ARRAY(large) large; /* ascending by index */

	pthread_mutex_t lock;    /* of all below */
	pthread_cond_t changed;  /* a slot is done, or free, or there is room in the budget */
	unsigned n_waiting;      /* for it */
	size_t taken, delivered; /* how many */
	size_t large_taken;      /* how many of large */
	uint64_t unpacked;       /* bytes, by all threads */
	bool stop;
	slot slots[WINDOW];
	unsigned n_threads; /* set before the first starts */
} walk;

/* The kernels of a large image from its ends alone; false: it takes all of it. */
static bool read_ends(const gpul_images *list, const gpul_image *image, gpul_kernel_table *out)
{
	gpul_excerpt e = { 0 };
	bool ok = gpul_excerpt_open(list, image, &e) &&
		  !gpul_kernels_of_cubin(e.at, e.n_bytes, e.gap, out, NULL);

	gpul_excerpt_close(&e);
	return ok;
}

/* What stays of an image when it is unpacked and read: its table, or why there is none. */
static slot read_image(const gpul_images *list, const gpul_image *image, gpul_unpacked *u)
{
	slot s = { .done = true };

	if (image->kind == GPUL_IMAGE_LTO) /* nothing in it can be listed: as it is, it may stay packed */
		return s;
	if (gpul_excerpt_pays(image) && read_ends(list, image, &s.table))
		return s;
	if (!gpul_image_unpack(image, u, &s.failed))
		gpul_kernels_read(image, u->bytes, u->n_bytes, &s.table, &s.failed);
	return s;
}

/* ---- threads --------------------------------------------------------------------------------- */

static int by_index(const void *key, const void *element)
{
	const size_t i = *(const size_t *)key, j = ((const large *)element)->index;

	return i < j ? -1 : i > j;
}

/* The slot where the table of an image waits. */
static slot *slot_of(walk *w, size_t i)
{
	large *l = gpul_excerpt_pays(w->images[i]) ? bsearch(&i, w->large.at, w->large.n,
							      sizeof *l, by_index)
						    : NULL;

	return l ? &l->slot : &w->slots[i % WINDOW];
}

static void wait_for_change(walk *w)
{
	w->n_waiting++;
	pthread_cond_wait(&w->changed, &w->lock);
	w->n_waiting--;
}

static void tell_change(walk *w)
{
	if (w->n_waiting)
		pthread_cond_broadcast(&w->changed);
}

/* Bytes of an image beside the file. */
static uint64_t needs(const gpul_image *image)
{
	if (gpul_excerpt_pays(image))
		return gpul_excerpt_bytes(image);
	return image->compression == GPUL_COMPRESSION_NONE ? 0 : image->bytes;
}

static bool all_taken(walk *w)
{
	while (w->taken < w->n && gpul_excerpt_pays(w->images[w->taken]))
		w->taken++; /* or will be, ahead of its turn */
	return w->taken == w->n && w->large_taken == w->large.n;
}

/* Which image is to be taken next; false: none, or none now. */
static bool next_to_take(walk *w, size_t *index)
{
	uint64_t bytes;

	if (all_taken(w))
		return false;
	if (w->large_taken < w->large.n)
		*index = w->large.at[w->large_taken].index;
	else if (w->taken < w->delivered + WINDOW)
		*index = w->taken;
	else
		return false;
	bytes = needs(w->images[*index]);
	return w->unpacked == 0 || (bytes <= BUDGET && w->unpacked <= BUDGET - bytes);
}

/* Take and read the image that is next; the lock is held before and after. */
static void take(walk *w, size_t index, gpul_unpacked *u)
{
	uint64_t bytes = needs(w->images[index]);
	slot s;

	if (w->large_taken < w->large.n)
		w->large_taken++;
	else
		w->taken++;
	w->unpacked += bytes;
	pthread_mutex_unlock(&w->lock);
	s = read_image(w->list, w->images[index], u);
	if (bytes > BUDGET / w->n_threads)
		gpul_unpacked_free(u); /* the budget does not count what is kept */
	pthread_mutex_lock(&w->lock);
	w->unpacked -= bytes;
	*slot_of(w, index) = s;
	tell_change(w);
}

static void *run(void *arg)
{
	walk *w = arg;
	gpul_unpacked u = { 0 };
	size_t i;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && !all_taken(w)) {
		if (next_to_take(w, &i))
			take(w, i, &u);
		else
			wait_for_change(w);
	}
	pthread_mutex_unlock(&w->lock);
	gpul_unpacked_free(&u);
	return NULL;
}

/* Threads beside the caller's; where the system gives none, the caller does it all. */
static unsigned start_threads(walk *w, pthread_t threads[MAX_THREADS])
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = 0;

	w->n_threads = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (unsigned)cores;
	for (; n + 1 < w->n_threads && n + 1 < w->n; n++)
		if (pthread_create(&threads[n], NULL, run, w))
			break;
	return n;
}

static void end_threads(walk *w, const pthread_t threads[MAX_THREADS], unsigned n)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	tell_change(w);
	pthread_mutex_unlock(&w->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < WINDOW; i++) /* what nobody asked for any more */
		gpul_kernel_table_free(&w->slots[i].table);
	for (size_t i = 0; i < w->large.n; i++)
		gpul_kernel_table_free(&w->large.at[i].slot.table);
}

/* ---- delivery -------------------------------------------------------------------------------- */

typedef struct visitor {
	const gpul_images *list;
	const char *kept; /* bytes of the file before it were let go of */
	gpul_kernel_visitor *visit;
	void *context;
	const gpul_progress *progress;
	uint64_t done, total; /* bytes */
	uint64_t told_ns;
} visitor;

static void tell(visitor *v, const gpul_image *image)
{
	uint64_t now;

	v->done += image->bytes;
	if (!v->progress || !v->progress->tell)
		return;
	now = gpul_clock_ns();
	if (now - v->told_ns < TELL_NS && v->done < v->total)
		return;
	v->told_ns = now;
	v->progress->tell(v->progress->context, v->done, v->total);
}

/* Images come in the order of the file: all before the end of this one is behind, but where a member of
 * another file begins. */
static void let_go(visitor *v, const gpul_image *image)
{
	const char *start = image->stored, *end = start + image->stored_bytes;

	if (!v->kept || (uintptr_t)start < (uintptr_t)v->kept)
		v->kept = start;
	if ((uintptr_t)end - (uintptr_t)v->kept < LET_GO_BYTES)
		return;
	gpul_images_let_go(v->list, v->kept, end);
	v->kept = end;
}

static gpul_status deliver(visitor *v, const gpul_image *image, slot *s, gpul_error *err)
{
	const gpul_error *failed = s->failed.status ? &s->failed : NULL;
	gpul_status st;

	if (s->failed.status == GPUL_ENOMEM) /* says nothing about the image */
		st = gpul_fail(err, GPUL_ENOMEM, 0, "%s", s->failed.text);
	else
		st = v->visit(image, &s->table, failed, v->context, err);
	gpul_kernel_table_free(&s->table);
	let_go(v, image);
	tell(v, image);
	return st;
}

static gpul_status deliver_all(walk *w, visitor *v, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	gpul_unpacked u = { 0 };
	size_t i;

	pthread_mutex_lock(&w->lock);
	while (w->delivered < w->n && !st) {
		const gpul_image *image = w->images[w->delivered];
		slot *next = slot_of(w, w->delivered), s = *next;

		if (s.done) {
			*next = (slot){ 0 };
			w->delivered++;
			tell_change(w);
			pthread_mutex_unlock(&w->lock);
			st = deliver(v, image, &s, err);
			pthread_mutex_lock(&w->lock);
		} else if (next_to_take(w, &i)) {
			take(w, i, &u);
		} else {
			wait_for_change(w);
		}
	}
	pthread_mutex_unlock(&w->lock);
	gpul_unpacked_free(&u);
	return st;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static gpul_status choose(const gpul_images *images, gpul_image_filter *wanted, visitor *v, walk *w,
			  gpul_error *err)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);

	w->images = malloc((n + 1) * sizeof *w->images);
	if (!w->images)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a list of %zu images", n);
	for (size_t i = 0; i < n; i++) {
		if (wanted && !wanted(&all[i], v->context))
			continue;
		if (gpul_excerpt_pays(&all[i])) {
			large *l = gpul_array_push(&w->large);

			if (!l)
				return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a list of images");
			l->index = w->n;
		}
		w->images[w->n++] = &all[i];
		v->total += all[i].bytes;
	}
	return GPUL_OK;
}

gpul_status gpul_kernels_visit(const gpul_images *images, gpul_image_filter *wanted,
			       gpul_kernel_visitor *visit, void *context,
			       const gpul_progress *progress, gpul_error *err)
{
	visitor v = { .list = images, .visit = visit, .context = context, .progress = progress };
	walk *w = calloc(1, sizeof *w); /* its slots are large for a stack */
	pthread_t threads[MAX_THREADS];
	gpul_status st;
	unsigned n;

	if (!w)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to visit images");
	w->list = images;
	st = choose(images, wanted, &v, w, err);
	if (st)
		goto free_walk;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	n = start_threads(w, threads);
	st = deliver_all(w, &v, err);
	end_threads(w, threads, n);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
free_walk:
	gpul_array_free(&w->large);
	free(w->images);
	free(w);
	return st;
}
