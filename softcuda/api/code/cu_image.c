/* cu_image.c — find the PTX in an image: PTX text, or a fatbin or cubin, which loader/image reads.
 *
 * Machine code is refused, because only PTX can be interpreted. But a cubin that was compiled with line information also contains
 * its PTX. Load calls have no size parameter, so the size of an image in memory is read from the image's headers.
 *
 * A wrapper of version 2, which nvcc -dlink generates, points to linked machine code and to the fatbins that were linked. This file
 * links the PTX of these fatbins. */
#include "softcuda/api/code/cu_code_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/cache/cache.h"
#include "core/file/file.h"
#include "core/log.h"
#include "core/thread/parallel.h"
#include "ptx/link/ptx_link.h"
#include "softcuda/exec/guard_internal.h"

#define EM_CUDA       190
#define WRAPPER_MAGIC 0x466243B1u

static CUresult refuse_image(const gpul_error *err, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "%s", err->text);
	return err->status == GPUL_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
}

/* ---- programs of several parts ------------------------------------------------------------ */

struct part { /* the PTX of one compilation unit of a program */
	struct soft_image image;
	gpul_ptx_module *module;
	const void *fatbin; /* the fatbin that contains this part; only for a wrapper of version 2 (nvcc -dlink) */
	CUresult result;
	char why[256];
};

typedef GPUL_ARRAY(struct part) parts;

static CUresult parse_part(struct part *p, const char *name, char *why, size_t why_bytes)
{
	gpul_error err = { 0 };

	return gpul_ptx_parse(p->image.text, p->image.text_bytes, name, &p->module, &err) ? refuse_image(&err, why, why_bytes)
											  : CUDA_SUCCESS;
}

static CUresult link_parts(const parts *all, const char *name, struct soft_image *out, char *why, size_t why_bytes)
{
	gpul_ptx_link_input *list = calloc(all->n, sizeof *list);
	gpul_error err = { 0 };
	CUresult r = CUDA_SUCCESS;

	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < all->n; i++)
		list[i] = (gpul_ptx_link_input){ all->at[i].module, name };
	if (gpul_ptx_link(list, all->n, &out->own, &out->text_bytes, &err))
		r = refuse_image(&err, why, why_bytes);
	out->text = out->own;
	out->is_valid = !r;
	free(list);
	return r;
}

static void free_parts(parts *all)
{
	for (size_t i = 0; i < all->n; i++) {
		gpul_ptx_module_destroy(all->at[i].module);
		soft_image_close(&all->at[i].image);
	}
	gpul_array_free(all);
}

/* ---- cubins ------------------------------------------------------------------------------- */

/* Collect the PTX texts in a cubin; a damaged cubin is treated as a cubin without PTX. */
static CUresult read_texts(const void *cubin, size_t n_bytes, parts *all)
{
	for (;;) {
		struct part *p = gpul_array_push(all);

		if (!p || gpul_cubin_ptx(cubin, n_bytes, all->n - 1, &p->image.own, &p->image.text_bytes, NULL) == GPUL_ENOMEM)
			return CUDA_ERROR_OUT_OF_MEMORY;
		p->image.text = p->image.own;
		if (!p->image.own) {
			all->n--;
			return CUDA_SUCCESS;
		}
	}
}

/* Find the PTX of a cubin; several texts are linked into one.  CUDA_ERROR_NO_BINARY_FOR_GPU: the cubin has no PTX. */
static CUresult from_cubin(const void *cubin, size_t n_bytes, struct soft_image *out, char *why, size_t why_bytes)
{
	static const char name[] = "the PTX of a cubin";
	parts all = { 0 };
	CUresult r = read_texts(cubin, n_bytes, &all);

	if (!r && all.n == 0) {
		snprintf(why, why_bytes,
			 "the image is a cubin, machine code for a GPU: the software driver runs PTX only. Compile to PTX "
			 "(nvcc -ptx), to a fat binary with PTX, or with -lineinfo, which keeps the PTX in the cubin");
		r = CUDA_ERROR_NO_BINARY_FOR_GPU;
	} else if (!r && all.n == 1) {
		out->own = all.at[0].image.own;
		out->text = out->own;
		out->text_bytes = all.at[0].image.text_bytes;
		all.at[0].image = (struct soft_image){ 0 };
	} else {
		for (size_t i = 0; i < all.n && !r; i++)
			r = parse_part(&all.at[i], name, why, why_bytes);
		if (!r)
			r = link_parts(&all, name, out, why, why_bytes);
	}
	free_parts(&all);
	return r;
}

static CUresult from_elf(const unsigned char *p, size_t n_bytes, struct soft_image *out, char *why, size_t why_bytes)
{
	const void *cubin = p;

	if (n_bytes == 0 && gpul_image_extent(p, &cubin, &n_bytes, NULL))
		n_bytes = 0;
	return from_cubin(cubin, n_bytes, out, why, why_bytes);
}

/* ---- fatbins ------------------------------------------------------------------------------ */

/* Returns true if image a is better than the best so far.  The driver of a GPU chooses the highest target that is not above the
 * device, and the last of equal targets.  The interpreter runs any target, so if all targets are above the device, choose the
 * lowest, which is the least likely to use new instructions, and prefer code whose target has no suffix "a". */
static bool is_better(const gpul_image *a, const gpul_image *best)
{
	const unsigned device = soft.cc;
	bool fits = a->sm <= device;

	if (!best || fits != (best->sm <= device))
		return !best || fits;
	if (a->sm != best->sm)
		return (a->sm > best->sm) == fits;
	return !a->suffix || best->suffix;
}

const gpul_image *soft_best_image(gpul_image_kind kind, const gpul_image *all, size_t n)
{
	const gpul_image *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (all[i].kind == kind && is_better(&all[i], best))
			best = &all[i];
	return best;
}

static CUresult from_machine_code(const gpul_image *best, struct soft_image *out, char *why, size_t why_bytes)
{
	CUresult r = CUDA_ERROR_NO_BINARY_FOR_GPU;
	gpul_error err = { 0 };

	if (best && gpul_image_unpack(best, &out->unpacked, &err))
		return refuse_image(&err, why, why_bytes);
	if (best)
		r = from_cubin(out->unpacked.bytes, out->unpacked.n_bytes, out, why, why_bytes);
	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU)
		snprintf(why, why_bytes,
			 "the fat binary has no PTX, only machine code: the software driver runs "
			 "PTX only. Compile with nvcc -gencode arch=compute_75,code=compute_75, or with -lineinfo");
	return r;
}

/* List the images of a fatbin; *source owns the list. */
static gpul_status list_images(const void *fatbin, size_t n_bytes, gpul_source **source, const gpul_image **all, size_t *n, gpul_error *err)
{
	gpul_status st = gpul_source_of(fatbin, n_bytes, "fatbin", source, err);
	const gpul_error *damaged;
	const gpul_images *list;

	if (!st)
		st = gpul_source_images(*source, NULL, &list, err);
	if (st)
		return st;
	damaged = gpul_images_damaged(list, n);
	if (*n) /* at least one image is damaged: NVIDIA's driver then refuses the whole fatbin */
		return gpul_fail(err, damaged->status, damaged->native, "%s", damaged->text);
	*all = gpul_images_all(list, n);
	return GPUL_OK;
}

static CUresult from_fatbin(const void *fatbin, size_t n_bytes, struct soft_image *out, char *why, size_t why_bytes)
{
	const gpul_image *best = NULL, *all = NULL;
	gpul_error err = { 0 };
	size_t n = 0;
	gpul_status st = list_images(fatbin, n_bytes, &out->source, &all, &n, &err);

	if (!st)
		best = soft_best_image(GPUL_IMAGE_PTX, all, n);
	if (!st && !best)
		return from_machine_code(soft_best_image(GPUL_IMAGE_CUBIN, all, n), out, why, why_bytes);
	if (!st)
		st = gpul_image_unpack(best, &out->unpacked, &err);
	if (st)
		return refuse_image(&err, why, why_bytes);
	out->text = out->unpacked.bytes;
	out->text_bytes = strnlen(out->text, out->unpacked.n_bytes);
	out->key = soft_known_key(best->stored, (size_t)best->stored_bytes, out->text_bytes);
	return CUDA_SUCCESS;
}

/* ---- recognising the format of an image --------------------------------------------------- */

enum format { FORMAT_PTX, FORMAT_CUBIN, FORMAT_WRAPPER, FORMAT_FATBIN, FORMAT_EMPTY, FORMAT_OTHER_ELF, FORMAT_OTHER };

static enum format find_format(const void *data, size_t n_bytes)
{
	const char *text = data; /* read by strncmp() only, because a text may be shorter than 4 bytes */
	const unsigned char *p = data;

	if (strncmp(text, "\177ELF", 4) == 0 && (n_bytes == 0 || n_bytes >= 20))
		return (p[18] | p[19] << 8) == EM_CUDA ? FORMAT_CUBIN : FORMAT_OTHER_ELF;
	if (strncmp(text, "\xb1\x43\x62\x46", 4) == 0 && n_bytes == 0)
		return FORMAT_WRAPPER;
	if (strncmp(text, "\x50\xed\x55\xba", 4) == 0)
		return FORMAT_FATBIN;
	if (!*text)
		return FORMAT_EMPTY;
	return strchr("\t\n\f\r ./#", *text) ? FORMAT_PTX : FORMAT_OTHER;
}

struct image_at {
	const void *data;
	size_t n_bytes;
};

/* Find the size of an image in memory from its headers; 0: the image has no header. */
static void measure_image(void *image_at)
{
	struct image_at *i = image_at;
	const enum format f = find_format(i->data, 0);

	if (f == FORMAT_PTX)
		i->n_bytes = strlen(i->data) + 1;
	else if (f != FORMAT_CUBIN && f != FORMAT_WRAPPER && f != FORMAT_FATBIN)
		return;
	else if (gpul_image_extent(i->data, &i->data, &i->n_bytes, NULL))
		i->n_bytes = 0;
}

/* Check that the whole image is readable before it is parsed: a fault in a parser could be caught, but memory of the parser would leak. */
static bool is_readable_image(const void *data, size_t n_bytes)
{
	struct image_at image = { data, n_bytes };
	uint64_t address;

	if (n_bytes)
		return true; /* only images in files have a known size, and they are readable */
	gpul_guard_refresh();
	return gpul_guarded(NULL, measure_image, &image, &address) && soft_is_readable(image.data, image.n_bytes);
}

/* ---- wrappers ----------------------------------------------------------------------------- */

struct wrapper {
	uint32_t magic, version;
	const void *fatbin;
	const void *const *linked_from; /* version 2 only: list of the fatbins that were linked; ends with NULL */
};

static const char linked_fatbin[] = "a linked fatbin";

struct reading {
	parts all;
	_Atomic size_t next; /* index of the next part to read; each thread takes one part at a time */
};

/* Unpack and parse parts until all are read.  Several threads execute this function. */
static void read_parts(void *reading)
{
	struct reading *r = reading;

	for (size_t i; (i = atomic_fetch_add(&r->next, 1)) < r->all.n;) {
		struct part *p = &r->all.at[i];

		p->result = soft_image_open(p->fatbin, 0, &p->image, p->why, sizeof p->why);
		if (!p->result)
			p->result = parse_part(p, linked_fatbin, p->why, sizeof p->why);
	}
}

/* Return element i of the list of fatbins that nvcc linked; NULL: the end of the list. */
static const void *next_fatbin(const struct wrapper *w, size_t i)
{
	return soft_is_readable(&w->linked_from[i], sizeof w->linked_from[i]) ? w->linked_from[i] : NULL;
}

/* Add to the cache key the compressed PTX of the fatbin that a driver would choose; false: the fatbin contains no PTX. */
static bool add_to_key(gpul_cache_key *key, const void *fatbin)
{
	const gpul_image *best = NULL, *all = NULL;
	gpul_source *source = NULL;
	size_t n_bytes = 0, n = 0;

	if (is_readable_image(fatbin, 0) && find_format(fatbin, 0) == FORMAT_FATBIN &&
	    !gpul_image_extent(fatbin, &fatbin, &n_bytes, NULL) && !list_images(fatbin, n_bytes, &source, &all, &n, NULL))
		best = soft_best_image(GPUL_IMAGE_PTX, all, n);
	if (best)
		gpul_cache_key_add(key, best->stored, (size_t)best->stored_bytes);
	gpul_source_close(source);
	return best;
}

/* Return the key under which the linked PTX is cached; NULL: do not cache it. */
static gpul_cache_key *key_of_link(const struct wrapper *w)
{
	gpul_cache_key *key = gpul_cache_key_create("PTX linked by the software driver, 2"); /* increment the 2 if ptx/link changes */
	const void *fatbin;

	for (size_t i = 0; key && (fatbin = next_fatbin(w, i)); i++)
		if (!add_to_key(key, fatbin)) {
			gpul_cache_key_destroy(key);
			key = NULL;
		}
	return key;
}

static CUresult list_parts(const struct wrapper *w, parts *all)
{
	const void *fatbin;

	for (size_t i = 0; (fatbin = next_fatbin(w, i)); i++) {
		struct part *p = gpul_array_push(all);

		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		p->fatbin = fatbin;
	}
	return CUDA_SUCCESS;
}

/* Read all parts in parallel; on failure return the error of the first part that could not be read. */
static CUresult read_all(struct reading *r, char *why, size_t why_bytes)
{
	const unsigned n_cpus = gpul_cpus();

	gpul_parallel(r->all.n < n_cpus ? (unsigned)r->all.n : n_cpus, read_parts, r);
	for (size_t i = 0; i < r->all.n; i++) {
		const struct part *p = &r->all.at[i];

		if (!p->result)
			continue;
		snprintf(why, why_bytes, "%s", p->why);
		return p->result;
	}
	return CUDA_SUCCESS;
}

static CUresult from_linked(const struct wrapper *w, struct soft_image *out, char *why, size_t why_bytes)
{
	gpul_cache_key *key = key_of_link(w);
	struct reading reading = { 0 };
	CUresult r;

	if (gpul_cache_find_text(key, &out->own, &out->text_bytes)) {
		out->text = out->own;
		out->is_valid = true;
		gpul_cache_key_destroy(key);
		return CUDA_SUCCESS;
	}
	r = list_parts(w, &reading.all);
	if (!r)
		r = read_all(&reading, why, why_bytes);
	if (!r)
		r = link_parts(&reading.all, linked_fatbin, out, why, why_bytes);
	if (!r)
		gpul_cache_store_text(key, out->text, out->text_bytes);
	gpul_cache_key_destroy(key);
	free_parts(&reading.all);
	return r;
}

static CUresult from_wrapper(const void *data, struct soft_image *out, char *why, size_t why_bytes)
{
	gpul_error err = { 0 };
	struct wrapper w;
	const void *fatbin;
	size_t n_bytes;
	CUresult r;

	memcpy(&w, data, sizeof w);
	if (gpul_image_extent(data, &fatbin, &n_bytes, &err))
		return refuse_image(&err, why, why_bytes);
	r = from_fatbin(fatbin, n_bytes, out, why, why_bytes);
	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU && w.version == 2 && w.linked_from &&
	    soft_is_readable(w.linked_from, sizeof *w.linked_from) && w.linked_from[0]) {
		soft_image_close(out);
		r = from_linked(&w, out, why, why_bytes);
	}
	return r;
}

/* ---- images of any format ------------------------------------------------------------------ */

bool soft_image_is_other(const void *data, size_t n_bytes)
{
	return find_format(data, n_bytes) >= FORMAT_EMPTY;
}

static CUresult refuse_format(enum format f, const unsigned char *data, char *why, size_t why_bytes)
{
	if (f == FORMAT_EMPTY)
		snprintf(why, why_bytes, "the image is empty");
	else if (f == FORMAT_OTHER_ELF)
		snprintf(why, why_bytes, "the image is an ELF file, but not device code");
	else
		snprintf(why, why_bytes, "the image is neither PTX nor device code: its first byte is 0x%02x", *data);
	return CUDA_ERROR_INVALID_IMAGE;
}

/* Print why images with only machine code cannot be loaded: one line for each shared library, and one line for all other images.
 * Libraries often return only an error of their own, which does not give this reason. */
static void report_machine_code(const void *image)
{
	enum { MAX_LIBRARIES = 16 };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const void *reported[MAX_LIBRARIES];
	static size_t n_reported;
	Dl_info found;
	const void *library = dladdr(image, &found) ? found.dli_fbase : NULL;
	bool is_new = true;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < n_reported; i++)
		is_new = is_new && reported[i] != library;
	is_new = is_new && n_reported < MAX_LIBRARIES;
	if (is_new)
		reported[n_reported++] = library;
	pthread_mutex_unlock(&lock);
	if (is_new)
		gpul_log(GPUL_LOG_NOTICE, "softcuda",
			 "%s contains a kernel as machine code without PTX, which cannot run here: its calls fail with "
			 "CUDA_ERROR_NO_BINARY_FOR_GPU (docs/clients.md)",
			 library ? found.dli_fname : "an image in memory");
}

CUresult soft_image_open(const void *data, size_t n_bytes, struct soft_image *out, char *why, size_t why_bytes)
{
	gpul_error err = { 0 };
	const void *given = data;
	CUresult r = CUDA_SUCCESS;
	enum format f;

	*out = (struct soft_image){ 0 };
	if (!is_readable_image(data, n_bytes)) {
		snprintf(why, why_bytes, "the image at %p is not in readable memory, or only a part of it is", data);
		return CUDA_ERROR_INVALID_VALUE;
	}
	f = find_format(data, n_bytes);
	if (f == FORMAT_CUBIN) {
		r = from_elf(data, n_bytes, out, why, why_bytes);
	} else if (f == FORMAT_WRAPPER) {
		r = from_wrapper(data, out, why, why_bytes);
	} else if (f == FORMAT_PTX) {
		out->text = data;
		out->text_bytes = strlen(data);
	} else if (f != FORMAT_FATBIN) {
		r = refuse_format(f, data, why, why_bytes);
	} else if (n_bytes == 0 && gpul_image_extent(data, &data, &n_bytes, &err)) {
		r = refuse_image(&err, why, why_bytes);
	} else {
		r = from_fatbin(data, n_bytes, out, why, why_bytes);
	}
	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU)
		report_machine_code(given);
	if (r)
		soft_image_close(out);
	return r;
}

void soft_image_close(struct soft_image *image)
{
	free(image->own);
	gpul_unpacked_free(&image->unpacked);
	gpul_source_close(image->source);
	gpul_cache_key_destroy(image->key);
	*image = (struct soft_image){ 0 };
}

CUresult soft_open_file(const char *path, gpul_file *out)
{
	gpul_error err = { 0 };
	gpul_status st = gpul_file_open(path, out, &err);

	if (st == GPUL_OK)
		return CUDA_SUCCESS;
	return soft_refuse(st == GPUL_ESYS     ? CUDA_ERROR_FILE_NOT_FOUND
			   : st == GPUL_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
					       : CUDA_ERROR_INVALID_IMAGE,
			   "%s", err.text);
}
