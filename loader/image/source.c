/* source.c — opens and recognises a file with device code; no other code does this. */
#include "loader/image/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/images_internal.h"

static gpul_status create_source(const gpul_file *file, bool borrowed, const char *name, gpul_source **out, gpul_error *err)
{
	gpul_source *s = calloc(1, sizeof *s);

	if (s)
		s->name = strdup(name);
	if (!s || !s->name) {
		free(s);
		return gpul_fail(err, GPUL_ENOMEM, ENOMEM, "%s: no memory", name);
	}
	s->file = *file;
	s->borrowed = borrowed;
	s->content = gpul_recognise(file->bytes, file->n_bytes, name).kind;
	*out = s;
	return GPUL_OK;
}

gpul_status gpul_source_open(const char *path, gpul_source **out, gpul_error *err)
{
	gpul_file file = { 0 };
	gpul_status st = gpul_file_open(path, &file, err);

	if (st)
		return st;
	st = create_source(&file, false, strcmp(path, "-") == 0 ? "stdin" : path, out, err);
	if (st)
		gpul_file_close(&file);
	return st;
}

gpul_status gpul_source_of(const void *bytes, size_t n_bytes, const char *name, gpul_source **out, gpul_error *err)
{
	if (n_bytes == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s is empty", name);
	return create_source(&(gpul_file){ .bytes = bytes, .n_bytes = n_bytes }, true, name, out, err);
}

void gpul_source_close(gpul_source *s)
{
	if (!s)
		return;
	gpul_images_close(s->images);
	if (!s->borrowed)
		gpul_file_close(&s->file);
	free(s->text);
	free(s->name);
	free(s);
}

const char *gpul_source_name(const gpul_source *s)
{
	return s->name;
}

gpul_content gpul_source_content(const gpul_source *s)
{
	return s->content;
}

gpul_status gpul_source_check(const gpul_source *s, gpul_error *err)
{
	if (s->images)
		return gpul_images_check(s->images, err);
	return s->borrowed ? GPUL_OK : gpul_file_check(&s->file, s->name, err);
}

const void *gpul_source_bytes(const gpul_source *s, size_t *n_bytes)
{
	*n_bytes = s->file.n_bytes;
	return s->file.bytes;
}

gpul_status gpul_source_text(gpul_source *s, const char **text, gpul_error *err)
{
	const char *bytes = s->file.bytes;
	size_t n = s->file.n_bytes;

	if (!s->borrowed || (n && bytes[n - 1] == '\0')) { /* a NUL follows the bytes of a file (core/file/file.h) */
		*text = bytes;
		return GPUL_OK;
	}
	if (!s->text)
		s->text = strndup(bytes, n);
	if (!s->text)
		return gpul_fail(err, GPUL_ENOMEM, ENOMEM, "%s: no memory for %zu bytes of text", s->name, n);
	*text = s->text;
	return GPUL_OK;
}

gpul_status gpul_source_images(gpul_source *s, const gpul_progress *progress, const gpul_images **out, gpul_error *err)
{
	gpul_status st = s->images ? GPUL_OK : gpul_images_list(s, progress, &s->images, err);

	if (!st)
		*out = s->images;
	return st;
}
