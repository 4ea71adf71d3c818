/* source_internal.h — what a source is made of, for the readers of its content. */
#ifndef GPULOAD_LOADER_IMAGE_SOURCE_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_SOURCE_INTERNAL_H

#include "core/file.h"
#include "loader/image/source.h"

struct gpul_source {
	char *name;
	gpul_file file;
	bool borrowed;        /* file is the caller's memory: bytes and n_bytes alone are set */
	gpul_content content;
	char *text;           /* a copy that ends in NUL; NULL: not needed */
	gpul_images *images;  /* NULL: not listed yet */
};

#endif
