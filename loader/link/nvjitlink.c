/* nvjitlink.c — performs one link with nvJitLink in this process; nvjitlink_child.c runs it in a child process. */
#include "loader/link/nvjitlink_internal.h"

#include <stdlib.h>
#include <string.h>

typedef int log_size(void *handle, size_t *bytes);
typedef int log_text(void *handle, void *log);

/* Copy a log of the link; NULL: out of memory, or the log is empty. */
static char *fetch_log(void *handle, log_size *size_of, log_text *get)
{
	size_t bytes = 0;
	char *log;

	if (size_of(handle, &bytes) || bytes == 0)
		return NULL;
	log = calloc(1, bytes + 1);
	if (log && (get(handle, log) || !*log)) {
		free(log);
		return NULL;
	}
	return log;
}

/* Return the type of an input.  LTO code is either bare, or in a fatbin, which nvJitLink reads itself. */
static int input_type(const gpul_link_input *in)
{
	static const unsigned char fatbin[4] = { 0x50, 0xed, 0x55, 0xba };

	if (in->kind == GPUL_IMAGE_PTX)
		return NVJITLINK_INPUT_PTX;
	if (in->kind == GPUL_IMAGE_CUBIN)
		return NVJITLINK_INPUT_CUBIN;
	return in->n_bytes > 4 && memcmp(in->bytes, fatbin, 4) == 0 ? NVJITLINK_INPUT_FATBIN : NVJITLINK_INPUT_LTOIR;
}

static void copy_result(const struct nvjitlink_task *t, void *handle, struct nvjitlink_outcome *out)
{
	const struct nvjitlink *lib = t->lib;
	int (*size_of)(void *, size_t *) = t->ptx ? lib->nvJitLinkGetLinkedPtxSize : lib->nvJitLinkGetLinkedCubinSize;
	int (*get)(void *, void *) = t->ptx ? lib->nvJitLinkGetLinkedPtx : lib->nvJitLinkGetLinkedCubin;
	size_t n = 0;

	if (size_of(handle, &n))
		return;
	out->result = malloc(n + 1);
	if (!out->result || get(handle, out->result))
		return;
	((char *)out->result)[n] = '\0';
	out->result_bytes = t->ptx ? strlen(out->result) : n;
}

void nvjitlink_run(const struct nvjitlink_task *t, struct nvjitlink_outcome *out)
{
	const struct nvjitlink *lib = t->lib;
	const gpul_link_input *in = t->inputs;
	void *handle = NULL;

	out->created = lib->nvJitLinkCreate(&handle, t->n_options, t->options);
	if (!handle)
		return;
	if (!out->created) {                             /* after an unknown option the handle is invalid: using it crashes */
		for (size_t i = 0; i < t->n_inputs; i++) /* errors are ignored here, because the log names a refused input */
			lib->nvJitLinkAddData(handle, input_type(&in[i]), in[i].bytes, in[i].n_bytes + (in[i].kind == GPUL_IMAGE_PTX),
					      in[i].name);
		out->completed = lib->nvJitLinkComplete(handle);
	}
	out->errors = fetch_log(handle, lib->nvJitLinkGetErrorLogSize, lib->nvJitLinkGetErrorLog);
	out->info = fetch_log(handle, lib->nvJitLinkGetInfoLogSize, lib->nvJitLinkGetInfoLog);
	if (!out->created && !out->completed)
		copy_result(t, handle, out);
	lib->nvJitLinkDestroy(&handle);
}

void nvjitlink_outcome_free(struct nvjitlink_outcome *o)
{
	free(o->errors);
	free(o->info);
	free(o->result);
	*o = (struct nvjitlink_outcome){ 0 };
}
