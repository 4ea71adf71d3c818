/* link_ptx.c — links the PTX of all inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/link/ptx_link.h"
#include "ptx/link/prune.h"
#include "nvidia/nvjitlink/nvidia_nvjitlink_internal.h"

/* Link the LTO code to PTX and add that as one more input. */
static int finish_lto(struct jl_link *l)
{
	struct jl_input *in;
	size_t bytes = 0;
	int r = l->real->Complete(l->lto);

	if (!r)
		r = l->real->GetLinkedPtxSize ? l->real->GetLinkedPtxSize(l->lto, &bytes) : JL_INTERNAL;
	if (r)
		return r;
	in = gpul_array_push(&l->inputs);
	if (!in)
		return JL_INTERNAL;
	in->name = strdup("LTO code");
	in->text = calloc(1, bytes + 1);
	if (!in->name || !in->text)
		return JL_INTERNAL;
	r = l->real->GetLinkedPtx(l->lto, in->text);
	in->text_bytes = strlen(in->text);
	return r;
}

static int keep_result(struct jl_link *l, char *text)
{
	if (!text)
		return JL_INTERNAL;
	l->ptx = text;
	l->ptx_bytes = strlen(text) + 1;
	return JL_SUCCESS;
}

/* Make a module without kernels, because a link without inputs succeeds. */
static int link_nothing(struct jl_link *l)
{
	char *text = NULL;

	if (asprintf(&text, ".version 7.0\n.target %s\n.address_size 64\n", *l->arch ? l->arch : "sm_75") < 0)
		text = NULL;
	return keep_result(l, text);
}

/* Link the first n inputs, and one more text unless it is NULL. */
static gpul_status link_texts(const struct jl_link *l, size_t n, const char *more, char **text, gpul_error *err)
{
	gpul_ptx_link_input *inputs = calloc(n + 1, sizeof *inputs);
	gpul_ptx_module **modules = calloc(n + 1, sizeof *modules);
	const struct jl_input last = { .name = (char[]){ "cooperative groups" },
				       .text = (char *)(uintptr_t)more,
				       .text_bytes = more ? strlen(more) : 0 };
	size_t n_all = n + (more != NULL);
	gpul_status st = GPUL_OK;

	if (!inputs || !modules)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu inputs", n);
	for (size_t i = 0; i < n_all && !st; i++) {
		const struct jl_input *in = i < n ? &l->inputs.at[i] : &last;

		st = gpul_ptx_parse(in->text, in->text_bytes, in->name, &modules[i], err);
		if (!st)
			gpul_ptx_limit_registers(modules[i], l->max_registers);
		inputs[i] = (gpul_ptx_link_input){ .module = modules[i], .name = in->name };
	}
	if (!st)
		st = gpul_ptx_link(inputs, n_all, text, NULL, err);
	for (size_t i = 0; modules && i < n_all; i++)
		gpul_ptx_module_destroy(modules[i]);
	free(modules);
	free(inputs);
	return st;
}

static bool any_kernel(void *context, const char *kernel)
{
	(void)context;
	(void)kernel;
	return true;
}

/* Remove code of libraries that no kernel reaches, because libcudadevrt refers to functions that exist only in a driver. */
static void prune_libraries(struct jl_link *l, size_t n_others)
{
	const gpul_ptx_prune_options options = { .is_root = any_kernel, .table_bytes = SIZE_MAX };
	gpul_ptx_prune_result result;
	gpul_ptx_text *texts = calloc(l->inputs.n, sizeof *texts);

	for (size_t i = 0; texts && i < l->inputs.n; i++)
		texts[i] = (gpul_ptx_text){ .text = l->inputs.at[i].text, .n_bytes = l->inputs.at[i].text_bytes };
	if (!texts || gpul_ptx_prune(texts, l->inputs.n, &options, &result, NULL)) {
		free(texts);
		return; /* without a kernel, link the libraries unpruned */
	}
	for (size_t i = 0; i < l->inputs.n; i++) {
		if (i < n_others || !texts[i].pruned) {
			free(texts[i].pruned);
			continue;
		}
		free(l->inputs.at[i].text);
		l->inputs.at[i].text = texts[i].pruned;
		l->inputs.at[i].text_bytes = texts[i].pruned_bytes;
	}
	free(texts);
}

/* Move libraries after the other inputs; returns the number of other inputs. */
static size_t put_libraries_last(struct jl_link *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->inputs.n; i++) {
		struct jl_input in = l->inputs.at[i];

		if (in.is_library)
			continue;
		memmove(&l->inputs.at[n + 1], &l->inputs.at[n], (i - n) * sizeof in);
		l->inputs.at[n++] = in;
	}
	return n;
}

/* Link the inputs alone; if that fails, with gpuload's functions for cooperative groups; if that fails, with the libraries, too. */
static int link_with_libraries(struct jl_link *l)
{
	size_t n = put_libraries_last(l);
	gpul_error err = { 0 }, first = { 0 };
	char *text = NULL;
	gpul_status st = GPUL_EFORMAT;

	if (n)
		st = link_texts(l, n, NULL, &text, &first);
	if (st && n)
		st = link_texts(l, n, jl_cooperative_groups, &text, &err);
	if (st && n < l->inputs.n) {
		err = first = (gpul_error){ 0 };
		prune_libraries(l, n);
		st = link_texts(l, l->inputs.n, NULL, &text, &first);
	}
	return st ? jl_complain(l, JL_FINALIZE, first.text) : keep_result(l, text);
}

int jl_link_ptx(struct jl_link *l)
{
	int r = l->lto ? finish_lto(l) : JL_SUCCESS;

	if (r)
		return r;
	if (l->inputs.n == 0)
		return link_nothing(l);
	if (l->inputs.n == 1 && l->checked && !l->max_registers) /* NVIDIA's linker found no undefined symbol: keep the only input */
		return keep_result(l, strdup(l->inputs.at[0].text));
	return link_with_libraries(l);
}
