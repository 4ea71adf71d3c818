/* images.c — creates the list of the images of a source, and chooses the reader for each kind of content. */
#include "loader/image/images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/images_internal.h"

/* Read content of a recognised kind: the whole file, or a member of an archive. */
static gpul_status read_content(const gpul_walk *w, gpul_span s, gpul_content content)
{
	gpul_walk few_images = *w;

	few_images.read_zstd = true;
	switch (content) {
	case GPUL_CONTENT_PTX:
		return gpul_walk_ptx(w, s);
	case GPUL_CONTENT_CUBIN:
		return gpul_walk_cubin(w, s);
	case GPUL_CONTENT_FATBIN:
		return gpul_walk_fatbins(&few_images, s);
	case GPUL_CONTENT_OFFLOAD:
		return gpul_walk_offload(&few_images, s);
	case GPUL_CONTENT_HOST_ELF:
		return gpul_walk_elf(w, s);
	case GPUL_CONTENT_ARCHIVE:
		if (w->depth >= GPUL_MAX_CONTAINERS)
			return gpul_walk_fail(
				w, s.at,
				"archives are nested more than %d levels deep: extract the inner archive (ar x) and give it as "
				"a file",
				GPUL_MAX_CONTAINERS);
		return gpul_walk_archive(w, s);
	default:
		if (w->depth) /* ignore members without device code, such as a linker script, an index or bitcode */
			return GPUL_OK;
		return gpul_walk_fail(w, s.at,
				      "%s: expected PTX, a cubin, a fatbin, or an "
				      "object, archive, library or program with device code",
				      gpul_content_text(content));
	}
}

static gpul_status read_member(const gpul_walk *w, gpul_span member)
{
	return read_content(w, member, gpul_recognise(member.at, member.n, w->here.file).kind);
}

gpul_status gpul_images_list(const gpul_source *source, const gpul_progress *progress, gpul_images **out, gpul_error *err)
{
	gpul_images *list = calloc(1, sizeof *list);
	gpul_span content = { source->file.bytes, source->file.n_bytes };
	gpul_error why = { 0 };
	gpul_status st;

	if (list)
		list->name = strdup(source->name);
	if (!list || !list->name) {
		free(list);
		return gpul_fail(err, GPUL_ENOMEM, ENOMEM, "%s: no memory", source->name);
	}
	if (!source->borrowed)
		list->source = source->file;
	st = read_content(&(gpul_walk){ .list = list,
					.read_member = read_member,
					.progress = progress,
					.file = content,
					.source = list->source,
					.here = { .file = list->name, .section = "" },
					.err = &why },
			  content, source->content);
	if (!st && list->images.n == 0 && list->damaged.n) { /* all device code is damaged */
		why = list->damaged.at[0];
		st = why.status;
	}
	if (gpul_images_check(list, err)) /* if the file was truncated, this is the cause of any other error */
		st = GPUL_ESYS;
	else if (st)
		gpul_fail(err, st, why.native, "%s", why.text);
	if (st) {
		gpul_images_close(list);
		return st;
	}
	*out = list;
	return GPUL_OK;
}
