/* loader_link.c — checks the inputs of a link, chooses the linker, and checks the result.
 *
 *     cubin, PTX, LTO ── nvJitLink ──────────────────────────> cubin
 *     LTO ── nvJitLink: PTX ──┐
 *     PTX ────────────────────┴── ptx/link/ptx_link.h: one text ──────> PTX, for a driver that runs only PTX */
#include "loader/link/link.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"
#include "loader/image/kernels/kernels.h"
#include "loader/link/nvjitlink_internal.h"
#include "loader/names/names.h"
#include "ptx/link/ptx_link.h"
#include "ptx/link/prune.h"

/* ---- inputs ------------------------------------------------------------------------- */

static gpul_status check_input(const gpul_link_input *in, bool to_ptx, gpul_error *err)
{
	bool relocatable = false;
	uint16_t sm;
	char suffix;
	gpul_status st;

	if (in->kind != GPUL_IMAGE_CUBIN)
		return GPUL_OK;
	if (to_ptx)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%.80s is machine code, which cannot be linked to PTX: compile it "
				 "with nvcc -dc -gencode arch=compute_75,code=compute_75",
				 in->name);
	st = gpul_cubin_target(in->bytes, in->n_bytes, &sm, &suffix, &relocatable, err);
	if (!st && !relocatable)
		st = gpul_fail(err, GPUL_EFORMAT, 0,
			       "%.80s is not relocatable device code, so it cannot be linked: "
			       "compile it with nvcc -dc",
			       in->name);
	return st;
}

/* ---- linking to PTX ---------------------------------------------------------------------------- */

struct ptx_input { /* a PTX module to be linked */
	gpul_ptx_module *module;
	gpul_linked made; /* PTX that was compiled from LTO code; else empty */
};

/* Report the same error, but demangle the name that it quotes: "'_Z5twicei' is not defined". */
static gpul_status fail_demangled(const gpul_error *why, gpul_error *err)
{
	const char *quote = strstr(why->text, "'_Z");
	size_t n = quote ? strcspn(quote + 1, "'") : 0;
	char name[256], *demangled = NULL;
	gpul_status st;

	if (quote && n < sizeof name) {
		snprintf(name, sizeof name, "%.*s", (int)n, quote + 1);
		demangled = gpul_demangle(name);
	}
	if (!demangled)
		return gpul_fail(err, why->status, why->native, "%s", why->text);
	st = gpul_fail(err, why->status, why->native, "%.*s%.100s%s", (int)(quote + 1 - why->text), why->text, demangled, quote + 1 + n);
	free(demangled);
	return st;
}

/* Compile all LTO inputs to one PTX module by one link, because nvJitLink must get all of them together. */
static gpul_status lto_to_ptx(const gpul_link_input *lto, size_t n, const gpul_link_options *options, struct ptx_input *to, char **log,
			      gpul_error *err)
{
	gpul_status st = nvjitlink_link(lto, n, options, &to->made, err);

	*log = to->made.log;
	to->made.log = NULL;
	return st ? st : gpul_ptx_parse(to->made.bytes, to->made.n_bytes, lto[0].name, &to->module, err);
}

static gpul_status link_modules(const gpul_ptx_link_input *list, size_t n, gpul_linked *out, gpul_error *err)
{
	gpul_error why = { 0 };
	char *text = NULL;
	gpul_status st = gpul_ptx_link(list, n, &text, &out->n_bytes, &why);

	if (st)
		return fail_demangled(&why, err);
	out->kind = GPUL_IMAGE_PTX;
	out->bytes = text;
	return GPUL_OK;
}

/* ---- leaving out code that no kernel reaches ---------------------------------------------------- */

/* value of gpul_ptx_prune_options.table_bytes; linking this many bytes takes about a second */
enum { TABLE_BYTES = 16 << 20 };

static bool is_wanted(void *context, const char *kernel)
{
	const gpul_link_options *o = context;
	char *demangled;
	bool wanted;

	if (!o->kernel || !strcmp(kernel, o->kernel))
		return true;
	demangled = gpul_demangle(kernel);
	wanted = demangled && gpul_name_matches(demangled, o->kernel);
	free(demangled);
	return wanted;
}

/* Prune the inputs.  *texts is owned by the caller: free_texts(); NULL: link the inputs as they are.  *failing is PTX that must be
 * linked as well, because pruned code calls a function in it; NULL: none (ptx/link/prune.h). */
static gpul_status prune_inputs(const gpul_link_input *inputs, size_t n, const gpul_link_options *options, gpul_ptx_text **texts,
				const char **failing, gpul_linked *out, gpul_error *err)
{
	const gpul_ptx_prune_options how = { is_wanted, (void *)(uintptr_t)options, options->link_all ? SIZE_MAX : TABLE_BYTES };
	gpul_ptx_prune_result result = { 0 };
	gpul_status st;

	*texts = NULL;
	*failing = NULL;
	if (!options->prune)
		return GPUL_OK;
	for (size_t i = 0; i < n; i++)
		if (inputs[i].kind != GPUL_IMAGE_PTX)
			return GPUL_OK;
	*texts = calloc(n, sizeof **texts);
	if (!*texts)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to link %zu inputs", n);
	for (size_t i = 0; i < n; i++)
		(*texts)[i] = (gpul_ptx_text){ .text = inputs[i].bytes, .n_bytes = inputs[i].n_bytes };
	st = gpul_ptx_prune(*texts, n, &how, &result, NULL);
	if (st == GPUL_ENOMEM)
		return gpul_fail(err, st, 0, "no memory to find what a kernel reaches");
	if (st) { /* the text is not PTX, or no such kernel exists, which the link will report */
		free(*texts);
		*texts = NULL;
		return GPUL_OK;
	}
	*failing = result.failing;
	out->n_left_out = result.n_left_out;
	out->n_failing = result.n_failing;
	return GPUL_OK;
}

static void free_texts(gpul_ptx_text *texts, size_t n)
{
	for (size_t i = 0; texts && i < n; i++)
		free(texts[i].pruned);
	free(texts);
}

/* Parse one more PTX module. */
static gpul_status add_module(const void *text, size_t n_bytes, const char *name, struct ptx_input *ptx, gpul_ptx_link_input *list,
			      size_t *n_ptx, gpul_error *err)
{
	gpul_status st = gpul_ptx_parse(text, n_bytes, name, &ptx[*n_ptx].module, err);

	list[*n_ptx] = (gpul_ptx_link_input){ ptx[*n_ptx].module, name };
	++*n_ptx;
	return st;
}

/* Link PTX and LTO inputs to PTX.  lto (n elements), ptx and list (n + 1 elements) are scratch arrays. */
static gpul_status link_ptx_and_lto(const gpul_link_input *inputs, size_t n, const gpul_link_options *options, gpul_link_input *lto,
				    struct ptx_input *ptx, gpul_ptx_link_input *list, gpul_linked *out, gpul_error *err)
{
	size_t n_ptx = 0, n_lto = 0;
	gpul_ptx_text *texts;
	const char *failing;
	gpul_status st = prune_inputs(inputs, n, options, &texts, &failing, out, err);

	for (size_t i = 0; !st && i < n; i++) {
		if (inputs[i].kind == GPUL_IMAGE_LTO)
			lto[n_lto++] = inputs[i];
		else if (!texts)
			st = add_module(inputs[i].bytes, inputs[i].n_bytes, inputs[i].name, ptx, list, &n_ptx, err);
		else if (texts[i].pruned)
			st = add_module(texts[i].pruned, texts[i].pruned_bytes, inputs[i].name, ptx, list, &n_ptx, err);
	}
	if (!st && failing)
		st = add_module(failing, strlen(failing), "gpuload", ptx, list, &n_ptx, err);
	free_texts(texts, n);
	if (!st && n_lto) {
		st = lto_to_ptx(lto, n_lto, options, &ptx[n_ptx], &out->log, err);
		list[n_ptx] = (gpul_ptx_link_input){ ptx[n_ptx].module, lto[0].name };
		n_ptx++;
	}
	return st ? st : link_modules(list, n_ptx, out, err);
}

static gpul_status link_to_ptx(const gpul_link_input *inputs, size_t n, const gpul_link_options *options, gpul_linked *out, gpul_error *err)
{
	gpul_link_input *lto = calloc(n, sizeof *lto);
	struct ptx_input *ptx = calloc(n + 1, sizeof *ptx);
	gpul_ptx_link_input *list = calloc(n + 1, sizeof *list);
	gpul_status st;

	if (lto && ptx && list)
		st = link_ptx_and_lto(inputs, n, options, lto, ptx, list, out, err);
	else
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory to link %zu inputs", n);
	for (size_t i = 0; ptx && i < n + 1; i++) {
		gpul_ptx_module_destroy(ptx[i].module);
		gpul_linked_free(&ptx[i].made);
	}
	free(list);
	free(ptx);
	free(lto);
	return st;
}

/* ---- the result ------------------------------------------------------------------------- */

static gpul_status check_result(const gpul_linked *l, gpul_error *err)
{
	const gpul_image image = { .kind = l->kind, .bytes = l->n_bytes };
	gpul_kernel_table table = { 0 };
	gpul_status st = gpul_kernels_read(&image, l->bytes, l->n_bytes, &table, err);

	if (!st && table.n == 0)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "the linked code has no kernel");
	gpul_kernel_table_free(&table);
	return st;
}

gpul_status gpul_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *options, gpul_linked *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*out = (gpul_linked){ 0 };
	for (size_t i = 0; !st && i < n; i++)
		st = check_input(&inputs[i], options->to_ptx, err);
	if (!st)
		st = options->to_ptx ? link_to_ptx(inputs, n, options, out, err) : nvjitlink_link(inputs, n, options, out, err);
	if (!st)
		st = check_result(out, err);
	if (st) {
		free(out->bytes);
		*out = (gpul_linked){ .log = out->log };
	}
	return st;
}

void gpul_linked_free(gpul_linked *l)
{
	free(l->bytes);
	free(l->log);
	*l = (gpul_linked){ 0 };
}
