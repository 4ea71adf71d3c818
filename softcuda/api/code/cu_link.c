/* cu_link.c — cuLink*: link the PTX of all inputs into one PTX text, which can be loaded.
 *
 *     PTX                         ┐
 *     fatbin, object, library ── its PTX, by loader/image ┴── ptx/link/ptx_link.h ──> PTX
 *
 * All members of a library are linked, although NVIDIA's linker links only the members to which other inputs refer.  If members
 * call functions that are missing, as those of libcudadevrt do, only the code that kernels reach is linked.  Machine code without
 * PTX and LTO code are refused, because only PTX can be interpreted. */
#include "softcuda/api/code/cu_code_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/file/file.h"
#include "ptx/link/ptx_link.h"
#include "ptx/link/prune.h"

struct input {
	char *name, *text; /* owned */
	size_t text_bytes;
	gpul_ptx_module *module;
	bool is_library;
};

struct linker {
	void *handle;
	struct jit_log log;
	GPUL_ARRAY(struct input) inputs;
	bool adding_library; /* the input that is being added is a library */
	char *text;          /* the result, NUL-terminated; NULL: not linked yet */
	size_t text_bytes;
};

static CUresult find_linker(CUlinkState handle, struct linker **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_LINKER, handle);
	if (!*out)
		r = soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_LINKER, handle);
	soft_unlock();
	return r;
}

EXPORT CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values, CUlinkState *out)
{
	struct context *ctx;
	struct linker *l;
	CUresult r = out ? soft_enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	l = calloc(1, sizeof *l);
	r = l ? soft_jit_options(n, options, values, &l->log) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r && !(l->handle = soft_handle_new(HANDLE_LINKER, l)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	soft_unlock();
	if (r)
		free(l);
	else
		*out = l->handle;
	return r;
}

/* ---- inputs ------------------------------------------------------------------------------- */

/* Convert a gpul_error to a CUresult, and write its text to the caller's error buffer. */
static CUresult refuse_input(const struct linker *l, const gpul_error *err, CUresult otherwise)
{
	return soft_jit_error(&l->log, err->status == GPUL_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : otherwise, err->text);
}

static void free_input(struct input *in)
{
	gpul_ptx_module_destroy(in->module);
	free(in->name);
	free(in->text);
}

static CUresult add_text(struct linker *l, const char *text, size_t text_bytes, const char *name)
{
	struct input in = { .name = strdup(name),
			    .text = strndup(text, text_bytes),
			    .text_bytes = strnlen(text, text_bytes),
			    .is_library = l->adding_library };
	gpul_error err = { 0 };
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct input *row;

	if (!in.name || !in.text)
		goto free_in;
	r = soft_parse_ptx(in.text, in.text_bytes, name, &in.module, &err);
	if (r) {
		r = refuse_input(l, &err, r);
		goto free_in;
	}
	r = CUDA_ERROR_OUT_OF_MEMORY;
	row = gpul_array_push(&l->inputs);
	if (!row)
		goto free_in;
	*row = in;
	return CUDA_SUCCESS;
free_in:
	free_input(&in);
	return r;
}

static CUresult refuse_machine_code(struct linker *l)
{
	return soft_jit_error(&l->log, CUDA_ERROR_NO_BINARY_FOR_GPU,
			      "the input has no PTX: the software driver cannot link machine code. Compile "
			      "with nvcc -dc -gencode arch=compute_75,code=compute_75, or with -lineinfo");
}

/* Add the PTX that ptxas stored in a cubin; a damaged cubin is treated as a cubin without PTX. */
static CUresult add_cubin(struct linker *l, const void *cubin, size_t n_bytes, const char *name)
{
	for (size_t i = 0;; i++) {
		size_t text_bytes;
		char *text;
		CUresult r;
		gpul_status st = gpul_cubin_ptx(cubin, n_bytes, i, &text, &text_bytes, NULL);

		if (st == GPUL_ENOMEM)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (st || !text)
			return i ? CUDA_SUCCESS : refuse_machine_code(l);
		r = add_text(l, text, text_bytes, name);
		free(text);
		if (r)
			return r;
	}
}

/* Add the image of a compilation unit that is best for the interpreter. */
static CUresult add_unit(struct linker *l, const gpul_image *all, size_t n, const char *name)
{
	const gpul_image *ptx = soft_best_image(GPUL_IMAGE_PTX, all, n), *cubin = soft_best_image(GPUL_IMAGE_CUBIN, all, n);
	gpul_unpacked u = { 0 };
	gpul_error err = { 0 };
	CUresult r;

	if (!ptx && !cubin)
		return refuse_machine_code(l);
	if (gpul_image_unpack(ptx ? ptx : cubin, &u, &err))
		r = refuse_input(l, &err, CUDA_ERROR_INVALID_IMAGE);
	else
		r = ptx ? add_text(l, u.bytes, u.n_bytes, name) : add_cubin(l, u.bytes, u.n_bytes, name);
	gpul_unpacked_free(&u);
	return r;
}

/* Add the PTX of each compilation unit of a file; the images of one unit are adjacent in the list. */
static CUresult add_units(struct linker *l, const gpul_images *list, const char *name)
{
	size_t n, end;
	const gpul_image *all = gpul_images_all(list, &n);
	CUresult r = CUDA_SUCCESS;

	if (n == 0)
		return soft_jit_error(&l->log, CUDA_ERROR_INVALID_IMAGE, "an input has no device code");
	for (size_t i = 0; i < n && !r; i = end) {
		const gpul_place *place = gpul_images_place(list, &all[i]);

		for (end = i; end < n && all[end].unit == all[i].unit;)
			end++;
		r = add_unit(l, &all[i], end - i, place->member ? place->member : name);
	}
	return r;
}

static CUresult add_container(struct linker *l, const void *data, size_t bytes, const char *name)
{
	gpul_source *source = NULL;
	const gpul_images *list;
	gpul_error err = { 0 };
	gpul_status st = gpul_source_of(data, bytes, name, &source, &err);
	CUresult r;

	if (!st)
		st = gpul_source_images(source, NULL, &list, &err);
	r = st ? refuse_input(l, &err, CUDA_ERROR_INVALID_IMAGE) : add_units(l, list, name);
	gpul_source_close(source);
	return r;
}

static CUresult add_input(struct linker *l, CUjitInputType type, const void *data, size_t bytes, const char *name)
{
	l->adding_library = type == CU_JIT_INPUT_LIBRARY;
	switch (type) {
	case CU_JIT_INPUT_PTX:
		return add_text(l, data, bytes, name);
	case CU_JIT_INPUT_CUBIN:
		return add_cubin(l, data, bytes, name);
	case CU_JIT_INPUT_FATBINARY:
	case CU_JIT_INPUT_OBJECT:
	case CU_JIT_INPUT_LIBRARY:
		return add_container(l, data, bytes, name);
	default:
		return soft_jit_error(&l->log, CUDA_ERROR_NOT_SUPPORTED, "LTO code cannot be linked here: use nvJitLink to link it to PTX");
	}
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *data, size_t bytes, const char *name, unsigned int n,
				 CUjit_option *options, void **values)
{
	struct linker *l;
	CUresult r = find_linker(handle, &l);

	(void)n;
	(void)options;
	(void)values;
	if (r)
		return r;
	if (!data || !bytes || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES || l->text)
		return CUDA_ERROR_INVALID_VALUE;
	if (!soft_is_readable(data, bytes))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuLinkAddData: not all of the %zu bytes at %p are readable", bytes, data);
	return add_input(l, type, data, bytes, name ? name : "<input>");
}

EXPORT CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char *path, unsigned int n, CUjit_option *options,
				 void **values)
{
	struct linker *l;
	gpul_file file;
	CUresult r = find_linker(handle, &l);

	(void)n;
	(void)options;
	(void)values;
	if (r)
		return r;
	if (!path || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES || l->text)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_open_file(path, &file);
	if (r)
		return r;
	r = add_input(l, type, file.bytes, file.n_bytes, path);
	gpul_file_close(&file);
	return r;
}

/* ---- linking the inputs ------------------------------------------------------------------- */

static gpul_status link_modules(const struct linker *l, char **text, size_t *text_bytes, gpul_error *err)
{
	gpul_ptx_link_input *list = calloc(l->inputs.n, sizeof *list);
	gpul_status st;

	if (!list)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu inputs", l->inputs.n);
	for (size_t i = 0; i < l->inputs.n; i++) {
		gpul_ptx_limit_registers(l->inputs.at[i].module, l->log.max_registers);
		list[i] = (gpul_ptx_link_input){ l->inputs.at[i].module, l->inputs.at[i].name };
	}
	st = gpul_ptx_link(list, l->inputs.n, text, text_bytes, err);
	free(list);
	return st;
}

static bool any_kernel(void *context, const char *kernel)
{
	(void)context;
	(void)kernel;
	return true;
}

/* Replace a member of a library with the part of it that kernels reach. */
static gpul_status replace_input(struct input *in, gpul_ptx_text *part, gpul_error *err)
{
	gpul_ptx_module *module;
	gpul_status st = gpul_ptx_parse(part->pruned, part->pruned_bytes, in->name, &module, err);

	if (st)
		return st;
	gpul_ptx_module_destroy(in->module);
	free(in->text);
	in->module = module;
	in->text = part->pruned;
	in->text_bytes = part->pruned_bytes;
	part->pruned = NULL;
	return GPUL_OK;
}

static gpul_status prune_libraries(struct linker *l, gpul_error *err)
{
	const gpul_ptx_prune_options options = { .is_root = any_kernel, .table_bytes = SIZE_MAX };
	gpul_ptx_text *texts = calloc(l->inputs.n, sizeof *texts);
	gpul_ptx_prune_result result;
	gpul_status st;

	if (!texts)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu inputs", l->inputs.n);
	for (size_t i = 0; i < l->inputs.n; i++)
		texts[i] = (gpul_ptx_text){ .text = l->inputs.at[i].text, .n_bytes = l->inputs.at[i].text_bytes };
	st = gpul_ptx_prune(texts, l->inputs.n, &options, &result, err);
	for (size_t i = 0; i < l->inputs.n; i++) {
		if (!st && l->inputs.at[i].is_library && texts[i].pruned)
			st = replace_input(&l->inputs.at[i], &texts[i], err);
		free(texts[i].pruned);
	}
	free(texts);
	return st;
}

static CUresult link_inputs(struct linker *l, char **text, size_t *text_bytes)
{
	gpul_error err = { 0 };
	bool has_library = false;
	gpul_status st;

	for (size_t i = 0; i < l->inputs.n; i++)
		has_library |= l->inputs.at[i].is_library;
	st = link_modules(l, text, text_bytes, &err);
	if (st && has_library && !prune_libraries(l, NULL)) {
		err = (gpul_error){ 0 };
		st = link_modules(l, text, text_bytes, &err);
	}
	return st ? refuse_input(l, &err, CUDA_ERROR_INVALID_PTX) : CUDA_SUCCESS;
}

/* If there is only one PTX text, use it unchanged instead of the linked text, so that messages contain its own line numbers. */
static void keep_only_text(struct linker *l, char **text, size_t *text_bytes)
{
	struct input *only = &l->inputs.at[0];

	if (l->inputs.n != 1 || !only->text || l->log.max_registers)
		return;
	free(*text);
	*text = only->text;
	*text_bytes = only->text_bytes;
	only->text = NULL;
}

static CUresult complete_link(struct linker *l)
{
	const char *name = l->inputs.n == 1 ? l->inputs.at[0].name : "<linked>";
	struct soft_image image;
	struct code *code;
	char *text = NULL;
	size_t text_bytes;
	CUresult r = link_inputs(l, &text, &text_bytes);

	if (r)
		return r;
	keep_only_text(l, &text, &text_bytes);
	image = (struct soft_image){ .text = text, .text_bytes = text_bytes };
	r = soft_code_create(&image, name, &l->log, &code);
	soft_image_close(&image);
	if (r) {
		free(text);
		return r;
	}
	soft_lock();
	soft_code_unref(code); /* the program was decoded only to check the linked text */
	soft_unlock();
	l->text = text;
	l->text_bytes = text_bytes;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkComplete(CUlinkState handle, void **image, size_t *image_bytes)
{
	struct linker *l;
	CUresult r = find_linker(handle, &l);

	if (r)
		return r;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l->inputs.n)
		return soft_jit_error(&l->log, CUDA_ERROR_INVALID_IMAGE, "cuLinkComplete: no input was added");
	r = l->text ? CUDA_SUCCESS : complete_link(l);
	if (r)
		return r;
	*image = l->text;
	if (image_bytes)
		*image_bytes = l->text_bytes + 1;
	soft_jit_done(&l->log, "");
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkDestroy(CUlinkState handle)
{
	struct linker *l;
	CUresult r = find_linker(handle, &l);

	if (r)
		return r;
	soft_lock();
	soft_handle_free(l->handle);
	soft_unlock();
	for (size_t i = 0; i < l->inputs.n; i++)
		free_input(&l->inputs.at[i]);
	gpul_array_free(&l->inputs);
	free(l->text);
	free(l);
	return CUDA_SUCCESS;
}
