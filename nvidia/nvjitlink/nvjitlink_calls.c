/* nvjitlink_calls.c — libnvJitLink.so.12 and .13: a linker that returns PTX where a program requests a cubin.
 *
 *                        ┌─> NVIDIA's linker: its errors, its log
 *     nvJitLinkAddData ──┤
 *                        └─> input.c: its PTX ── nvJitLinkComplete: link_ptx.c ──> nvJitLinkGetLinkedCubin
 *
 * NVIDIA's linker gets every input, so that a program gets the same errors as with a GPU. The result of NVIDIA's linker is used
 * only if it is PTX (-ptx) or LTO code.  Without NVIDIA's library PTX is still linked, and LTO code is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/file.h"
#include "nvidia/nvjitlink/nvidia_nvjitlink_internal.h"

#define EXPORT __attribute__((visibility("default")))

/* Define a call by its plain name, and by each name with a version that nvJitLink.h has used or may use: __nvJitLinkCreate_13_0.
 * The linker's version scripts export the names of one CUDA version. */
/* clang-format off */
#define ALIAS(name, parameters, version) \
	EXPORT int __nvJitLink##name##_##version parameters __attribute__((alias("nvJitLink" #name)));
/* clang-format on */
/* clang-format off */
#define MINORS(name, parameters, major)                                                              \
	ALIAS(name, parameters, major##_0) ALIAS(name, parameters, major##_1)                        \
	ALIAS(name, parameters, major##_2) ALIAS(name, parameters, major##_3)                        \
	ALIAS(name, parameters, major##_4) ALIAS(name, parameters, major##_5)                        \
	ALIAS(name, parameters, major##_6) ALIAS(name, parameters, major##_7)                        \
	ALIAS(name, parameters, major##_8) ALIAS(name, parameters, major##_9)
/* clang-format on */
#define X(name, parameters, arguments) \
	EXPORT int nvJitLink##name parameters; \
	MINORS(name, parameters, 12) MINORS(name, parameters, 13)
JL_CALLS(X)
#undef X
EXPORT int nvJitLinkVersion(unsigned *major, unsigned *minor);

/* ---- create and destroy ---------------------------------------------------------------------- */

static int copy_options(struct jl_link *l, uint32_t n, const char *const *options)
{
	l->options = calloc((size_t)n + 2, sizeof *l->options);
	if (!l->options)
		return JL_INTERNAL;
	for (; l->n_options < n; l->n_options++) {
		const char *o = options[l->n_options];

		if (!o)
			return JL_NULL_INPUT;
		if (!(l->options[l->n_options] = strdup(o)))
			return JL_INTERNAL;
		if (!strncmp(o, "-arch=", 6))
			snprintf(l->arch, sizeof l->arch, "%s", o + 6);
		if (!strncmp(o, "-maxrregcount=", 14))
			l->max_registers = (unsigned)strtoul(o + 14, NULL, 10);
		l->is_lto |= !strcmp(o, "-lto");
		l->wants_ptx |= !strcmp(o, "-ptx");
	}
	l->options[n] = strdup("-ptx");
	return l->options[n] ? JL_SUCCESS : JL_INTERNAL;
}

int nvJitLinkCreate(void **handle, uint32_t n_options, const char *const *options)
{
	struct jl_link *l;
	int r;

	if (!handle || (n_options && !options))
		return JL_NULL_INPUT;
	l = calloc(1, sizeof *l);
	if (!l)
		return JL_INTERNAL;
	l->real = jl_open();
	r = copy_options(l, n_options, options);
	if (!r && l->real)
		r = l->real->Create(&l->checked, n_options, options);
	else if (!r && !*l->arch)
		r = jl_complain(l, JL_MISSING_ARCH, "-arch=sm_NN is missing");
	*handle = l; /* set even after an error, because the program reads its log */
	return r;
}

int nvJitLinkDestroy(void **handle)
{
	struct jl_link *l;

	if (!handle || !*handle)
		return JL_NULL_INPUT;
	l = *handle;
	*handle = NULL;
	if (l->checked)
		l->real->Destroy(&l->checked);
	if (l->lto)
		l->real->Destroy(&l->lto);
	for (uint32_t i = 0; l->options && i <= l->n_options; i++)
		free(l->options[i]);
	free(l->options);
	for (size_t i = 0; i < l->inputs.n; i++) {
		free(l->inputs.at[i].name);
		free(l->inputs.at[i].text);
	}
	gpul_array_free(&l->inputs);
	gpul_array_free(&l->errors);
	free(l->ptx);
	free(l);
	return JL_SUCCESS;
}

/* ---- inputs and the link --------------------------------------------------------------------- */

int nvJitLinkAddData(void *handle, int type, const void *data, size_t bytes, const char *name)
{
	struct jl_link *l = handle;
	int r = JL_SUCCESS;

	if (!l || !data)
		return JL_NULL_INPUT;
	if (!bytes)
		return JL_INVALID_INPUT;
	if (l->checked)
		r = l->real->AddData(l->checked, jl_real_type(type, data, bytes), data, bytes, name);
	if (r || l->wants_ptx)
		return r;
	return jl_add(l, type, data, bytes, name ? name : "<input>");
}

int nvJitLinkAddFile(void *handle, int type, const char *path)
{
	gpul_file file = { 0 };
	gpul_error err = { 0 };
	int r;

	if (!handle || !path)
		return JL_NULL_INPUT;
	if (gpul_file_open(path, &file, &err))
		return jl_complain(handle, JL_INVALID_INPUT, err.text);
	r = nvJitLinkAddData(handle, type, file.bytes, file.n_bytes, path);
	gpul_file_close(&file);
	return r;
}

int nvJitLinkComplete(void *handle)
{
	struct jl_link *l = handle;
	int r = JL_SUCCESS;

	if (!l)
		return JL_NULL_INPUT;
	if (l->completed)
		return JL_INTERNAL;
	l->completed = true;
	if (l->checked)
		r = l->real->Complete(l->checked);
	return r || l->wants_ptx ? r : jl_link_ptx(l);
}

/* ---- results --------------------------------------------------------------------------------- */

int nvJitLinkGetLinkedCubinSize(void *handle, size_t *bytes)
{
	struct jl_link *l = handle;

	if (!l || !bytes)
		return JL_NULL_INPUT;
	if (!l->ptx)
		return JL_INTERNAL;
	*bytes = l->ptx_bytes;
	return JL_SUCCESS;
}

int nvJitLinkGetLinkedCubin(void *handle, void *cubin)
{
	struct jl_link *l = handle;

	if (!l || !cubin)
		return JL_NULL_INPUT;
	if (!l->ptx)
		return JL_INTERNAL;
	memcpy(cubin, l->ptx, l->ptx_bytes);
	return JL_SUCCESS;
}

/* Define a call whose result only NVIDIA's linker can provide. */
/* clang-format off */
#define FROM_REAL(name, parameters, arguments)                                                        \
	int nvJitLink##name parameters                                                                \
	{                                                                                             \
		struct jl_link *l = handle;                                                           \
                                                                                                      \
		if (!l)                                                                               \
			return JL_NULL_INPUT;                                                         \
		handle = l->checked;                                                                  \
		return handle && l->real->name ? l->real->name arguments : JL_INVALID_INPUT;          \
	}
/* clang-format on */
FROM_REAL(GetLinkedPtxSize, (void *handle, size_t *bytes), (handle, bytes))
FROM_REAL(GetLinkedPtx, (void *handle, char *ptx), (handle, ptx))
FROM_REAL(GetLinkedLTOIRSize, (void *handle, size_t *bytes), (handle, bytes))
FROM_REAL(GetLinkedLTOIR, (void *handle, void *ir), (handle, ir))

/* ---- logs ------------------------------------------------------------------------------------ */

/* Return the size of a log of NVIDIA's linker, with the NUL; 0 if the log is empty. */
static size_t real_log_bytes(const struct jl_link *l, int (*get_bytes)(void *, size_t *))
{
	size_t bytes = 0;

	if (!l->checked || !get_bytes || get_bytes(l->checked, &bytes))
		return 0;
	return bytes;
}

int nvJitLinkGetErrorLogSize(void *handle, size_t *bytes)
{
	struct jl_link *l = handle;
	size_t real_bytes;

	if (!l || !bytes)
		return JL_NULL_INPUT;
	real_bytes = real_log_bytes(l, l->real ? l->real->GetErrorLogSize : NULL);
	*bytes = real_bytes + l->errors.n + (!real_bytes && l->errors.n);
	return JL_SUCCESS;
}

int nvJitLinkGetErrorLog(void *handle, char *log)
{
	struct jl_link *l = handle;
	size_t n = 0;

	if (!l || !log)
		return JL_NULL_INPUT;
	if (real_log_bytes(l, l->real ? l->real->GetErrorLogSize : NULL)) {
		l->real->GetErrorLog(l->checked, log);
		n = strlen(log);
	}
	if (l->errors.n) {
		memcpy(log + n, l->errors.at, l->errors.n);
		log[n + l->errors.n] = '\0';
	}
	return JL_SUCCESS;
}

int nvJitLinkGetInfoLogSize(void *handle, size_t *bytes)
{
	struct jl_link *l = handle;

	if (!l || !bytes)
		return JL_NULL_INPUT;
	*bytes = real_log_bytes(l, l->real ? l->real->GetInfoLogSize : NULL);
	return JL_SUCCESS;
}

int nvJitLinkGetInfoLog(void *handle, char *log)
{
	struct jl_link *l = handle;

	if (!l || !log)
		return JL_NULL_INPUT;
	return real_log_bytes(l, l->real ? l->real->GetInfoLogSize : NULL) ? l->real->GetInfoLog(l->checked, log) : JL_SUCCESS;
}

int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
	const struct jl_real *real = jl_open();

	if (!major || !minor)
		return JL_NULL_INPUT;
	if (real && real->Version)
		return real->Version(major, minor);
	*major = 13;
	*minor = 0;
	return JL_SUCCESS;
}
