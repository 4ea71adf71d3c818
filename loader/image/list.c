/* list.c — the list of images: appends images and names, reports errors, frees the list. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loader/image/images_internal.h"

/* Return a copy of the text, which is freed together with the list. */
static const char *keep_string(gpul_images *list, const char *text)
{
	char **place = text ? gpul_array_push(&list->strings) : NULL;

	if (place)
		*place = strdup(text);
	return place ? *place : NULL;
}

/* Replace control characters, because names from files must not move a terminal's cursor or break a line. */
static void replace_control_characters(char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

/* Return a copy of the text without control characters, for printing; freed with the list. */
static const char *keep_printable(gpul_images *list, const char *text)
{
	const char *kept = keep_string(list, text);

	replace_control_characters((char *)(uintptr_t)kept);
	return kept;
}

static bool same_string(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Find the element of list->places that equals w->here (usually the last element), or append it. */
static bool find_place(const gpul_walk *w, uint32_t *row)
{
	gpul_images *list = w->list;
	const gpul_place *last = list->places.n ? &list->places.at[list->places.n - 1] : NULL;
	gpul_place *p;

	if (last && same_string(last->member, w->here.member) && same_string(last->section, w->here.section)) {
		*row = (uint32_t)(list->places.n - 1);
		return true;
	}
	p = gpul_array_push(&list->places);
	if (!p)
		return false;
	p->file = w->here.file;
	p->member = keep_printable(list, w->here.member);
	p->section = keep_printable(list, w->here.section);
	*row = (uint32_t)(list->places.n - 1);
	return p->section && (p->member || !w->here.member);
}

gpul_image *gpul_walk_add(const gpul_walk *w, uint32_t unit)
{
	uint32_t row;
	gpul_image *image = find_place(w, &row) ? gpul_array_push(&w->list->images) : NULL;

	if (!image) {
		gpul_walk_no_memory(w);
		return NULL;
	}
	image->place = row;
	image->unit = unit == GPUL_NEW_UNIT ? w->list->n_units++ : unit;
	image->origin = w->origin;
	image->relocatable = w->relocatable;
	return image;
}

gpul_status gpul_walk_no_memory(const gpul_walk *w)
{
	return gpul_fail(w->err, GPUL_ENOMEM, ENOMEM, "%s: no memory for the list of its images", w->here.file);
}

gpul_status gpul_walk_add_damage(const gpul_walk *w, const gpul_error *why)
{
	gpul_images *list = w->list;
	gpul_error *kept = list->damaged.n < GPUL_DAMAGED_MAX ? gpul_array_push(&list->damaged) : NULL;

	if (!kept && list->damaged.n < GPUL_DAMAGED_MAX)
		return gpul_walk_no_memory(w);
	if (kept)
		*kept = *why;
	list->n_damaged++;
	return GPUL_OK;
}

gpul_status gpul_walk_skip_damage(const gpul_walk *w, gpul_status st)
{
	gpul_error why;

	if ((st != GPUL_EFORMAT && st != GPUL_ESYS) || !w->err)
		return st;
	why = *w->err;
	*w->err = (gpul_error){ 0 };
	return gpul_walk_add_damage(w, &why);
}

const gpul_error *gpul_images_damaged(const gpul_images *images, size_t *n)
{
	*n = images->n_damaged;
	return images->damaged.at;
}

gpul_status gpul_walk_fail(const gpul_walk *w, const void *at, const char *fmt, ...)
{
	const unsigned char *byte = at;
	size_t offset = byte ? (size_t)(byte - w->file.at) : 0;
	char what[200];
	gpul_error why = { 0 };
	va_list ap;

	if (!w->err) /* err is NULL during a search, because most candidates fail, and their errors are not reported */
		return GPUL_EFORMAT;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	(void)gpul_fail(&why, GPUL_EFORMAT, 0, "%s%s%s%s%s%s: %s", w->here.file, w->here.member ? "(" : "",
			w->here.member ? w->here.member : "", w->here.member ? ")" : "", *w->here.section ? ", " : "", w->here.section,
			what);
	replace_control_characters(why.text);
	return gpul_fail(w->err, GPUL_EFORMAT, offset > INT_MAX ? INT_MAX : (int)offset, "%s", why.text);
}

const unsigned char *gpul_walk_see(const gpul_walk *w, const unsigned char *at, size_t n)
{
	gpul_window *v = w->window;
	size_t left = w->file.n - (size_t)(at - w->file.at);

	if (!v || n > sizeof v->bytes)
		return at;
	if (!v->at || at < v->at || n > v->n || (size_t)(at - v->at) > v->n - n) {
		v->n = left < sizeof v->bytes ? left : sizeof v->bytes;
		v->at = gpul_file_read(&w->source, at, v->n, v->bytes) ? at : NULL;
	}
	return v->at ? v->bytes + (at - v->at) : at;
}

void gpul_images_close(gpul_images *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->strings.n; i++)
		free(images->strings.at[i]);
	for (size_t i = 0; i < images->more.n; i++)
		gpul_file_close(&images->more.at[i]);
	gpul_array_free(&images->strings);
	gpul_array_free(&images->damaged);
	gpul_array_free(&images->more);
	gpul_array_free(&images->places);
	gpul_array_free(&images->images);
	free(images->name);
	free(images);
}

static void release_pages_of_file(const gpul_file *f, uintptr_t from, uintptr_t end)
{
	uintptr_t start = (uintptr_t)f->bytes, page = (uintptr_t)sysconf(_SC_PAGESIZE);

	if (!f->mapped || end <= start || from >= start + f->n_bytes)
		return;
	from = from < start ? start : (from + page - 1) / page * page;
	end = end > start + f->n_bytes ? start + f->n_bytes : end;
	end = end / page * page;
	if (from < end) /* no data is lost, because the mapping is read-only */
		madvise((void *)from, end - from, MADV_DONTNEED);
}

void gpul_images_release_pages(const gpul_images *list, const void *from, const void *end)
{
	release_pages_of_file(&list->source, (uintptr_t)from, (uintptr_t)end);
	for (size_t i = 0; i < list->more.n; i++)
		release_pages_of_file(&list->more.at[i], (uintptr_t)from, (uintptr_t)end);
}

gpul_status gpul_images_check(const gpul_images *images, gpul_error *err)
{
	gpul_status st = gpul_file_check(&images->source, images->name, err);

	for (size_t i = 0; i < images->more.n && !st; i++)
		st = gpul_file_check(&images->more.at[i], images->name, err);
	return st;
}

const gpul_image *gpul_images_all(const gpul_images *images, size_t *n)
{
	*n = images->images.n;
	return images->images.at;
}

const gpul_place *gpul_images_place(const gpul_images *images, const gpul_image *image)
{
	return &images->places.at[image->place];
}
