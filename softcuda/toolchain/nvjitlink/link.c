/* link.c — links the PTX of all inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/link/link.h"
#include "softcuda/toolchain/nvjitlink/nvjitlink_internal.h"

/* Make PTX of the LTO code, as one more input. */
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

/* A link without inputs succeeds: a module without kernels. */
static int link_nothing(struct jl_link *l)
{
	char *text = NULL;

	if (asprintf(&text, ".version 7.0\n.target %s\n.address_size 64\n", *l->arch ? l->arch : "sm_75") < 0)
		text = NULL;
	return keep_result(l, text);
}

static int link_texts(struct jl_link *l)
{
	size_t n = l->inputs.n;
	gpul_ptx_link_input *inputs = calloc(n, sizeof *inputs);
	gpul_ptx_module **modules = calloc(n, sizeof *modules);
	gpul_error err = { 0 };
	gpul_status st = inputs && modules ? GPUL_OK : GPUL_ENOMEM;
	char *text = NULL;

	for (size_t i = 0; i < n && !st; i++) {
		const struct jl_input *in = &l->inputs.at[i];

		st = gpul_ptx_parse(in->text, in->text_bytes, in->name, &modules[i], &err);
		inputs[i] = (gpul_ptx_link_input){ .module = modules[i], .name = in->name };
	}
	if (!st)
		st = gpul_ptx_link(inputs, n, &text, NULL, &err);
	for (size_t i = 0; modules && i < n; i++)
		gpul_ptx_module_destroy(modules[i]);
	free(modules);
	free(inputs);
	return st ? jl_complain(l, JL_FINALIZE, err.text) : keep_result(l, text);
}

int jl_link_ptx(struct jl_link *l)
{
	int r = l->lto ? finish_lto(l) : JL_SUCCESS;

	if (r)
		return r;
	if (l->inputs.n == 0)
		return link_nothing(l);
	if (l->inputs.n == 1 && l->checked)  /* NVIDIA's linker has found no undefined symbol */
		return keep_result(l, strdup(l->inputs.at[0].text));
	return link_texts(l);
}
