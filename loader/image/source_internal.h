/* source_internal.h — the members of a source, for the files that read its content. */
#ifndef GPULOAD_LOADER_IMAGE_SOURCE_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_SOURCE_INTERNAL_H

#include "core/file/file.h"
#include "loader/image/source.h"

struct gpul_source {
	char *name;
	gpul_file file;
	bool borrowed;        /* file describes the caller's memory: only bytes and n_bytes are set */
	gpul_content content;
	char *text;           /* a copy that ends in NUL; NULL: not needed */
	gpul_images *images;  /* NULL: not listed yet */
};

#endif
