/* beside.c — infers the signature of machine code from PTX in the same fatbin, compiled from the same source for other devices.
 *
 * The PTX is not run, and its code may differ (#if __CUDA_ARCH__), but its kernels have the same declarations, so their parameter
 * sizes must match.  The PTX is parsed when it is first needed. */
#include <stdlib.h>
#include <string.h>

#include "loader/loader_internal.h"

/* Parsing a larger text would take longer than most kernels run. */
#define MAX_BYTES (2u << 20)

/* Find the last PTX in the fatbin (unit) of the image: nvcc writes it for the newest architecture.  NULL: none. */
static const gpul_image *find_ptx(const gpul_images *images, const gpul_image *image)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n), *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (all[i].unit == image->unit && all[i].kind == GPUL_IMAGE_PTX && all[i].bytes <= MAX_BYTES)
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

static bool same_layout(const gpul_signature *a, const gpul_signature *b)
{
	if (a->n_params != b->n_params)
		return false;
	for (size_t i = 0; i < a->n_params; i++)
		if (a->params[i].offset != b->params[i].offset || a->params[i].bytes != b->params[i].bytes)
			return false;
	return true;
}

gpul_signature *gpul_beside_signature(const gpul_kernel *k)
{
	gpul_module *m = k->m;
	const gpul_ptx_func *f;
	gpul_signature *s = NULL;

	if (m->beside_text && !m->beside) {
		(void)gpul_ptx_parse(m->beside_text, strlen(m->beside_text), "PTX", &m->beside, NULL);
		free(m->beside_text); /* this clears the text, so that it is parsed only once, even if parsing fails */
		m->beside_text = NULL;
	}
	f = m->beside ? gpul_ptx_find_func(m->beside, k->name) : NULL;
	if (!f || gpul_signature_infer(m->beside, f, &s, NULL))
		return NULL;
	if (!same_layout(s, &k->declared->s)) {
		gpul_signature_destroy(s);
		return NULL;
	}
	/* Use the launch bounds of the machine code, because the machine code is what runs. */
	memcpy(s->reqntid, k->declared->s.reqntid, sizeof s->reqntid);
	memcpy(s->maxntid, k->declared->s.maxntid, sizeof s->maxntid);
	return s;
}
