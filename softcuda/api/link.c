/* link.c — cuLink*: as much of a linker as PTX alone needs.
 *
 * Programs link one PTX text to hand options to the JIT and load the result.  Here the result
 * is that text, checked.  Joining several inputs, and machine code, need a real linker, and are
 * refused. */
#include "softcuda/api/api_internal.h"

#include <stdlib.h>
#include <string.h>

struct linker {
	void *handle;
	struct jit_log log;
	char *text;  /* the one input, NUL-terminated */
	size_t text_bytes;
	bool complete;
};

static CUresult find(CUlinkState handle, struct linker **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_LINKER, handle);
	soft_unlock();
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuLinkCreate_v2(unsigned int n, CUjit_option *options, void **values,
				CUlinkState *out)
{
	struct context *ctx;
	struct linker *l;
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter(&ctx);
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

EXPORT CUresult cuLinkAddData_v2(CUlinkState handle, CUjitInputType type, void *data,
				 size_t bytes, const char *name, unsigned int n,
				 CUjit_option *options, void **values)
{
	struct linker *l;
	struct code *code;
	CUresult r = find(handle, &l);

	(void)n;
	(void)options;
	(void)values;
	if (r)
		return r;
	if (!data || !bytes || (unsigned)type >= CU_JIT_NUM_INPUT_TYPES || l->complete)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_JIT_INPUT_PTX)
		return soft_jit_error(
			&l->log, CUDA_ERROR_NO_BINARY_FOR_GPU,
			"only PTX can be linked: the software driver runs no machine code");
	if (l->text)
		return soft_jit_error(&l->log, CUDA_ERROR_NOT_SUPPORTED,
				      "one PTX input is linked, not several: join them by nvcc "
				      "-rdc or nvJitLink");
	r = soft_code_create(data, strnlen(data, bytes), name ? name : "<ptx>", &l->log, &code);
	if (r)
		return r;
	soft_lock();
	soft_code_unref(code);  /* it was only to be checked */
	soft_unlock();
	l->text_bytes = strnlen(data, bytes);
	l->text = malloc(l->text_bytes + 1);
	if (!l->text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(l->text, data, l->text_bytes);
	l->text[l->text_bytes] = 0;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkAddFile_v2(CUlinkState handle, CUjitInputType type, const char *path,
				 unsigned int n, CUjit_option *options, void **values)
{
	struct linker *l;
	gpul_file file;
	CUresult r = find(handle, &l);

	if (r)
		return r;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_open_file(path, &file);
	if (r)
		return r;
	r = cuLinkAddData_v2(handle, type, (void *)(uintptr_t)file.bytes, file.n_bytes, path, n,
			     options, values);
	gpul_file_close(&file);
	return r;
}

EXPORT CUresult cuLinkComplete(CUlinkState handle, void **image, size_t *image_bytes)
{
	struct linker *l;
	CUresult r = find(handle, &l);

	if (r)
		return r;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l->text)
		return soft_jit_error(&l->log, CUDA_ERROR_INVALID_IMAGE,
				      "nothing was added to link");
	l->complete = true;
	*image = l->text;
	if (image_bytes)
		*image_bytes = l->text_bytes + 1;
	soft_jit_done(&l->log, "");
	return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkDestroy(CUlinkState handle)
{
	struct linker *l;
	CUresult r = find(handle, &l);

	if (r)
		return r;
	soft_lock();
	soft_handle_free(l->handle);
	soft_unlock();
	free(l->text);
	free(l);
	return CUDA_SUCCESS;
}
