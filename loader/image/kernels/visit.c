/* visit.c — gpul_kernels_visit(): reads the kernels of many images in parallel, and delivers them in order.
 *
 *     image        0   1   2   3   4   5   6   7   8   9
 *                      │       │               │
 *                delivered     │             taken       a thread takes the next image, decompresses it,
 *                         being read                     reads its kernels and stores the table in
 *                                                        the image's slot
 *
 * There is one thread per CPU.  The calling thread delivers finished tables in the order of the list; while the next one is not
 * finished, it reads images itself, so no thread sleeps while there is work.  Very large images are taken first, because with
 * one of them at the end, a single thread would work while the others are idle (excerpt_internal.h); their tables wait in
 * separate slots.
 *
 * Memory is limited for a list of any size: images are taken at most WINDOW ahead of delivery; decompressed images have at most
 * BUDGET bytes in total, unless a single one is larger; and pages of the file are released after they are read. */
#include <pthread.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/thread/parallel.h"
#include "loader/image/kernels/excerpt_internal.h"
#include "loader/image/images_internal.h"
#include "loader/image/kernels/kernel_rows_internal.h"
#include "loader/image/kernels/kernels.h"

enum {
	MAX_THREADS = 16,
	WINDOW = 4 * MAX_THREADS,
	RELEASE_BYTES = 8 << 20, /* number of bytes whose pages are released by one system call */
};

#define BUDGET    (UINT64_C(96) << 20)
#define REPORT_NS 50000000 /* progress is reported at most 20 times a second */

typedef struct slot {
	gpul_kernel_table table;
	gpul_error failed;
	bool done;
} slot;

typedef struct large { /* a large image, which is read before earlier images */
	size_t index;
	slot slot;
} large;

typedef struct walk {
	const gpul_images *list;
	const gpul_image **images; /* the images that pass the caller's filter */
	size_t n;
	GPUL_ARRAY(large) large; /* ascending by index */

	pthread_mutex_t lock;    /* protects all members below */
	pthread_cond_t changed;  /* a slot was filled or emptied, or budget became free */
	unsigned n_waiting;      /* threads that wait for `changed` */
	size_t taken, delivered; /* number of images that threads have taken, and of images that were delivered */
	size_t large_taken;      /* number of large images taken */
	uint64_t unpacked;       /* bytes of decompressed images, of all threads together */
	bool stop;
	slot slots[WINDOW];
	unsigned n_threads; /* set before the threads start */
} walk;

/* Read the kernels of a large image from only its first and last part; false: the whole image is needed. */
static bool read_ends(const gpul_images *list, const gpul_image *image, gpul_kernel_table *out)
{
	gpul_excerpt e = { 0 };
	bool ok = gpul_excerpt_open(list, image, &e) && !gpul_kernels_of_cubin(e.at, e.n_bytes, e.gap, out, NULL);

	gpul_excerpt_close(&e);
	return ok;
}

/* Decompress an image and read its kernels; the result contains the table or the error. */
static slot read_image(const gpul_images *list, const gpul_image *image, gpul_unpacked *u)
{
	slot s = { .done = true };

	if (image->kind == GPUL_IMAGE_LTO) /* the kernels of LTO code cannot be listed, so the image is not decompressed */
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

/* Return the slot for the table of image i. */
static slot *slot_of(walk *w, size_t i)
{
	large *l = gpul_excerpt_pays(w->images[i]) ? bsearch(&i, w->large.at, w->large.n, sizeof *l, by_index) : NULL;

	return l ? &l->slot : &w->slots[i % WINDOW];
}

static void wait_for_change(walk *w)
{
	w->n_waiting++;
	pthread_cond_wait(&w->changed, &w->lock);
	w->n_waiting--;
}

static void signal_change(walk *w)
{
	if (w->n_waiting)
		pthread_cond_broadcast(&w->changed);
}

/* Return how many bytes of memory reading an image needs. */
static uint64_t memory_needed(const gpul_image *image)
{
	if (gpul_excerpt_pays(image))
		return gpul_excerpt_bytes(image);
	return image->compression == GPUL_COMPRESSION_NONE ? 0 : image->bytes;
}

static bool all_taken(walk *w)
{
	while (w->taken < w->n && gpul_excerpt_pays(w->images[w->taken]))
		w->taken++; /* large images are counted in large_taken */
	return w->taken == w->n && w->large_taken == w->large.n;
}

/* Choose the image that this thread reads next; false: none is left, or a limit is reached. */
static bool choose_next(walk *w, size_t *index)
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
	bytes = memory_needed(w->images[*index]);
	return w->unpacked == 0 || (bytes <= BUDGET && w->unpacked <= BUDGET - bytes);
}

/* Read the image that was chosen; the lock is held before and after. */
static void read_chosen(walk *w, size_t index, gpul_unpacked *u)
{
	uint64_t bytes = memory_needed(w->images[index]);
	slot s;

	if (w->large_taken < w->large.n)
		w->large_taken++;
	else
		w->taken++;
	w->unpacked += bytes;
	pthread_mutex_unlock(&w->lock);
	s = read_image(w->list, w->images[index], u);
	if (bytes > BUDGET / w->n_threads)
		gpul_unpacked_free(u); /* freed now, because a buffer that is kept for the next image would not count in the budget */
	pthread_mutex_lock(&w->lock);
	w->unpacked -= bytes;
	*slot_of(w, index) = s;
	signal_change(w);
}

static void read_on_thread(void *context)
{
	walk *w = context;
	gpul_unpacked u = { 0 };
	size_t i;

	pthread_mutex_lock(&w->lock);
	while (!w->stop && !all_taken(w)) {
		if (choose_next(w, &i))
			read_chosen(w, i, &u);
		else
			wait_for_change(w);
	}
	pthread_mutex_unlock(&w->lock);
	gpul_unpacked_free(&u);
}

static void end_threads(walk *w, gpul_team *team)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	signal_change(w);
	pthread_mutex_unlock(&w->lock);
	gpul_team_join(team);
	for (unsigned i = 0; i < WINDOW; i++) /* free the tables that were not delivered */
		gpul_kernel_table_free(&w->slots[i].table);
	for (size_t i = 0; i < w->large.n; i++)
		gpul_kernel_table_free(&w->large.at[i].slot.table);
}

/* ---- delivery -------------------------------------------------------------------------------- */

typedef struct visitor {
	const gpul_images *list;
	const char *kept; /* the pages before this address were released */
	gpul_kernel_visitor *visit;
	void *context;
	const gpul_progress *progress;
	uint64_t done, total; /* for progress reports, in bytes */
	uint64_t reported_ns;
} visitor;

static void report_progress(visitor *v, const gpul_image *image)
{
	uint64_t now;

	v->done += image->bytes;
	if (!v->progress || !v->progress->tell)
		return;
	now = gpul_clock_ns();
	if (now - v->reported_ns < REPORT_NS && v->done < v->total)
		return;
	v->reported_ns = now;
	v->progress->tell(v->progress->context, v->done, v->total);
}

/* Release the pages of all bytes before the end of this image: they are no longer needed, because images are visited in the order
 * of the file.  A member of a thin archive is another file, mapped at any address, so v->kept may have to go back. */
static void release_pages(visitor *v, const gpul_image *image)
{
	const char *start = image->stored, *end = start + image->stored_bytes;

	if (!v->kept || (uintptr_t)start < (uintptr_t)v->kept)
		v->kept = start;
	if ((uintptr_t)end - (uintptr_t)v->kept < RELEASE_BYTES)
		return;
	gpul_images_release_pages(v->list, v->kept, end);
	v->kept = end;
}

static gpul_status deliver(visitor *v, const gpul_image *image, slot *s, gpul_error *err)
{
	const gpul_error *failed = s->failed.status ? &s->failed : NULL;
	gpul_status st;

	if (failed && gpul_images_check(v->list, err)) /* the image is not damaged, but the file was truncated */
		st = GPUL_ESYS;
	else if (s->failed.status == GPUL_ENOMEM) /* the image is not damaged, but memory ran out */
		st = gpul_fail(err, GPUL_ENOMEM, 0, "%s", s->failed.text);
	else
		st = v->visit(image, &s->table, failed, v->context, err);
	gpul_kernel_table_free(&s->table);
	release_pages(v, image);
	report_progress(v, image);
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
			signal_change(w);
			pthread_mutex_unlock(&w->lock);
			st = deliver(v, image, &s, err);
			pthread_mutex_lock(&w->lock);
		} else if (choose_next(w, &i)) {
			read_chosen(w, i, &u);
		} else {
			wait_for_change(w);
		}
	}
	pthread_mutex_unlock(&w->lock);
	gpul_unpacked_free(&u);
	return st ? st : gpul_images_check(v->list, err);
}

/* ---- all images ------------------------------------------------------------------------------ */

static gpul_status choose_images(const gpul_images *images, gpul_image_filter *wanted, visitor *v, walk *w, gpul_error *err)
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

gpul_status gpul_kernels_visit(const gpul_images *images, gpul_image_filter *wanted, gpul_kernel_visitor *visit, void *context,
			       const gpul_progress *progress, gpul_error *err)
{
	visitor v = { .list = images, .visit = visit, .context = context, .progress = progress };
	walk *w = calloc(1, sizeof *w); /* too large for the stack */
	unsigned cpus = gpul_cpus();
	gpul_team team;
	gpul_status st;

	if (!w)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to visit images");
	w->list = images;
	st = choose_images(images, wanted, &v, w, err);
	if (st)
		goto free_walk;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	w->n_threads = cpus < MAX_THREADS ? cpus : MAX_THREADS;
	gpul_team_start(&team, w->n_threads <= w->n ? w->n_threads - 1 : w->n ? (unsigned)w->n - 1 : 0, read_on_thread, w);
	st = deliver_all(w, &v, err);
	end_threads(w, &team);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
free_walk:
	gpul_array_free(&w->large);
	free(w->images);
	free(w);
	return st;
}
