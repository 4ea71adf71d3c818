/* beside.c — a kernel's PTX that stands beside its machine code, of the same source for other
 * devices: what the kernel takes can be told from it.
 *
 * It is not what runs, and __CUDA_ARCH__ may have made another text of it; the parameters are those
 * of one declaration all the same, so their sizes must agree.  Kept as text until somebody asks. */
#include <stdlib.h>
#include <string.h>

#include "loader/loader_internal.h"

/* A text of more is of many kernels, and would take longer to read than most of them to run. */
#define MOST_BYTES (2u << 20)

/* The PTX of image's unit; the last, which is the newest as nvcc writes them; NULL: none. */
static const gpul_image *find_ptx(const gpul_images *images, const gpul_image *image)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n), *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (all[i].unit == image->unit && all[i].kind == GPUL_IMAGE_PTX &&
		    all[i].bytes <= MOST_BYTES)
			found = &all[i];
	return found;
}

void gpul_beside_keep(gpul_module *m, const gpul_images *images, const gpul_image *image)
{
	const gpul_image *ptx = image->kind == GPUL_IMAGE_CUBIN ? find_ptx(images, image) : NULL;
	gpul_unpacked unpacked = { 0 };

	if (ptx && gpul_image_unpack(ptx, &unpacked, NULL) == GPUL_OK)
		m->beside_text = strndup(unpacked.bytes, unpacked.n_bytes);
	gpul_unpacked_free(&unpacked);
}

/* The same parameters, by their sizes? */
static bool agree(const gpul_signature *a, const gpul_signature *b)
{
	if (a->n_params != b->n_params)
		return false;
	for (size_t i = 0; i < a->n_params; i++)
		if (a->params[i].offset != b->params[i].offset ||
		    a->params[i].bytes != b->params[i].bytes)
			return false;
	return true;
}

gpul_signature *gpul_beside_signature(const gpul_kernel *k)
{
	gpul_module *m = k->m;
	const gpul_ptx_func *f;
	gpul_signature *s = NULL;

	if (m->beside_text && !m->beside) {
		(void)gpul_ptx_parse(m->beside_text, strlen(m->beside_text), "PTX", &m->beside,
				     NULL);
		free(m->beside_text); /* once, whatever came of it */
		m->beside_text = NULL;
	}
	f = m->beside ? gpul_ptx_find_func(m->beside, k->name) : NULL;
	if (!f || gpul_signature_infer(m->beside, f, &s, NULL))
		return NULL;
	if (!agree(s, &k->declared->s)) {
		gpul_signature_destroy(s);
		return NULL;
	}
	/* Of what runs: */
	memcpy(s->reqntid, k->declared->s.reqntid, sizeof s->reqntid);
	memcpy(s->maxntid, k->declared->s.maxntid, sizeof s->maxntid);
	return s;
}
