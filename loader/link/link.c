/* link.c — see link.h: what goes in, by whom it is linked, what comes out.
 *
 *     cubin, PTX, LTO ── nvJitLink ──────────────────────────> cubin
 *     LTO ── nvJitLink: PTX ──┐
 *     PTX ────────────────────┴── ptx/link/link.h: one text ──────> PTX, for a driver that runs no other */
#include "loader/link/link.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/names/demangle.h"
#include "loader/image/kernels/kernels.h"
#include "loader/link/nvjitlink_internal.h"
#include "ptx/link/link.h"

/* ---- before ------------------------------------------------------------------------- */

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
			       "%.80s is a whole program, nothing that can be linked: compile it "
			       "with nvcc -dc (relocatable device code)",
			       in->name);
	return st;
}

/* ---- to PTX ---------------------------------------------------------------------------- */

struct text { /* a module to be joined */
	gpul_ptx_module *module;
	gpul_linked made; /* of LTO code; else empty */
};

/* "'_Z5twicei' is not defined": the error again, its name as it is written in C++. */
static gpul_status with_demangled(const gpul_error *why, gpul_error *err)
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
	st = gpul_fail(err, why->status, why->native, "%.*s%.100s%s",
		       (int)(quote + 1 - why->text), why->text, demangled, quote + 1 + n);
	free(demangled);
	return st;
}

/* All LTO inputs at once, as nvJitLink wants them. */
static gpul_status lto_to_text(const gpul_link_input *lto, size_t n,
			       const gpul_link_options *options, struct text *to, char **log,
			       gpul_error *err)
{
	gpul_status st = nvjitlink_link_cached(lto, n, options, &to->made, err);

	*log = to->made.log;
	to->made.log = NULL;
	return st ? st
		  : gpul_ptx_parse(to->made.bytes, to->made.n_bytes, lto[0].name, &to->module,
				   err);
}

static gpul_status join(const gpul_ptx_link_input *list, size_t n, gpul_linked *out,
			gpul_error *err)
{
	gpul_error why = { 0 };
	char *text = NULL;
	gpul_status st = gpul_ptx_link(list, n, &text, &out->n_bytes, &why);

	if (st)
		return with_demangled(&why, err);
	out->kind = GPUL_IMAGE_PTX;
	out->bytes = text;
	return GPUL_OK;
}

/* lto and texts and list have room for n. */
static gpul_status link_texts(const gpul_link_input *inputs, size_t n,
			      const gpul_link_options *options, gpul_link_input *lto,
			      struct text *texts, gpul_ptx_link_input *list, gpul_linked *out,
			      gpul_error *err)
{
	size_t n_texts = 0, n_lto = 0;
	gpul_status st = GPUL_OK;

	for (size_t i = 0; !st && i < n; i++) {
		if (inputs[i].kind == GPUL_IMAGE_LTO) {
			lto[n_lto++] = inputs[i];
			continue;
		}
		st = gpul_ptx_parse(inputs[i].bytes, inputs[i].n_bytes, inputs[i].name,
				    &texts[n_texts].module, err);
		list[n_texts] = (gpul_ptx_link_input){ texts[n_texts].module, inputs[i].name };
		n_texts++;
	}
	if (!st && n_lto) {
		st = lto_to_text(lto, n_lto, options, &texts[n_texts], &out->log, err);
		list[n_texts] = (gpul_ptx_link_input){ texts[n_texts].module, lto[0].name };
		n_texts++;
	}
	return st ? st : join(list, n_texts, out, err);
}

static gpul_status link_to_ptx(const gpul_link_input *inputs, size_t n,
			       const gpul_link_options *options, gpul_linked *out,
			       gpul_error *err)
{
	gpul_link_input *lto = calloc(n, sizeof *lto);
	struct text *texts = calloc(n, sizeof *texts);
	gpul_ptx_link_input *list = calloc(n, sizeof *list);
	gpul_status st;

	if (lto && texts && list)
		st = link_texts(inputs, n, options, lto, texts, list, out, err);
	else
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory to link %zu inputs", n);
	for (size_t i = 0; texts && i < n; i++) {
		gpul_ptx_module_destroy(texts[i].module);
		gpul_linked_free(&texts[i].made);
	}
	free(list);
	free(texts);
	free(lto);
	return st;
}

/* ---- after ------------------------------------------------------------------------------ */

static gpul_status check_result(const gpul_linked *l, gpul_error *err)
{
	const gpul_image image = { .kind = l->kind, .bytes = l->n_bytes };
	gpul_kernel_table table = { 0 };
	gpul_status st = gpul_kernels_read(&image, l->bytes, l->n_bytes, &table, err);

	if (!st && table.n == 0)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "linked, but there is no kernel in the result");
	gpul_kernel_table_free(&table);
	return st;
}

gpul_status gpul_link(const gpul_link_input *inputs, size_t n, const gpul_link_options *options,
		      gpul_linked *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*out = (gpul_linked){ 0 };
	for (size_t i = 0; !st && i < n; i++)
		st = check_input(&inputs[i], options->to_ptx, err);
	if (!st)
		st = options->to_ptx ? link_to_ptx(inputs, n, options, out, err)
				     : nvjitlink_link_cached(inputs, n, options, out, err);
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
