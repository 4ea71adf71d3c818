/* choose_explain.c — explains the choice of an image: the verdict on each image, or why nothing can be loaded. */
#include <cuda.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/text.h"
#include "loader/choose/choose_internal.h"
#include "core/demangle.h"
#include "loader/names/names.h"

/* ---- options->explain: a line for each image ------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void report(const gpul_load_options *o, const char *fmt, ...)
{
	char line[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	o->explain(o->explain_context, line);
}

static void report_image(const gpul_choice *c, const gpul_input *s, size_t i, const gpul_chosen *chosen)
{
	const gpul_image *image = &s->all[i];
	const char *section = gpul_images_place(s->images, image)->section;
	const char *what = gpul_verdict_text(s->verdicts[i]);
	char name[400], arch[16];

	if (s->verdicts[i] == GPUL_TAKEN && chosen && image != chosen->image) {
		if (!chosen->image && gpul_choice_links(c, s, i))
			what = "used: it will be linked";
		else
			what = "suits this device, but another image has the kernel";
	}
	report(c->options, "%s%s%s: %s %s, %llu bytes: %s", gpul_input_image_name(s, image, name, sizeof name), *section ? " " : "",
	       section, gpul_image_kind_name(image->kind), gpul_image_arch(image, arch), (unsigned long long)image->bytes, what);
}

void gpul_choice_explain(const gpul_choice *c, const gpul_chosen *chosen)
{
	if (!c->options->explain)
		return;
	for (size_t k = 0; k < c->n_inputs; k++)
		for (size_t i = 0; i < c->inputs[k].n; i++)
			report_image(c, &c->inputs[k], i, chosen);
}

/* ---- no image --------------------------------------------------------------------------- */

gpul_status gpul_choice_no_code(const gpul_choice *c, gpul_error *err)
{
	const gpul_input *s = &c->inputs[0];

	return gpul_fail(err, GPUL_EFORMAT, 0,
			 "%.100s is %s without device code: it was not built by nvcc, or "
			 "its section .nv_fatbin was removed",
			 s->name, gpul_content_text(s->content));
}

/* List the kinds and architectures of all images, each once, as many as fit: "cubin sm_75, cubin sm_80, ptx sm_100". */
static void list_archs(const gpul_choice *c, char *out, size_t out_bytes)
{
	size_t used = 0;

	*out = '\0';
	for (size_t k = 0; k < c->n_inputs; k++)
		for (size_t i = 0; i < c->inputs[k].n; i++) {
			const gpul_image *image = &c->inputs[k].all[i];
			char arch[16], one[32];

			snprintf(one, sizeof one, "%s %s", gpul_image_kind_name(image->kind), gpul_image_arch(image, arch));
			if (strstr(out, one) || used + strlen(one) + 8 > out_bytes)
				continue;
			used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "", one);
		}
}

static bool all_machine_code(const gpul_choice *c)
{
	for (size_t k = 0; k < c->n_inputs; k++)
		for (size_t i = 0; i < c->inputs[k].n; i++)
			if (c->inputs[k].all[i].kind != GPUL_IMAGE_CUBIN)
				return false;
	return true;
}

static gpul_status no_ptx(const gpul_choice *c, const char *archs, gpul_error *err)
{
	const gpul_input *s = &c->inputs[0];

	if (s->content == GPUL_CONTENT_CUBIN)
		return gpul_fail(err, GPUL_EUNSUPPORTED, CUDA_ERROR_NO_BINARY_FOR_GPU,
				 "%.80s is a cubin (GPU machine code): the software driver runs "
				 "PTX only; give it the PTX (nvcc -ptx), or use --driver nvidia",
				 s->name);
	return gpul_fail(err, GPUL_EUNSUPPORTED, CUDA_ERROR_NO_BINARY_FOR_GPU,
			 "%.60s has machine code only (%.60s): the software driver runs PTX only; nvcc -gencode "
			 "arch=compute_75,code=compute_75 adds PTX, or use --driver nvidia",
			 s->name, archs);
}

gpul_status gpul_choice_no_image(const gpul_choice *c, gpul_error *err)
{
	const gpul_target *t = &c->target;
	char archs[90];

	list_archs(c, archs, sizeof archs);
	if (t->only_sm || t->only_kind)
		return gpul_fail(err, GPUL_EUNSUPPORTED, CUDA_ERROR_NO_BINARY_FOR_GPU,
				 "%.60s has no image selected by --sm or --kind that runs on sm_%u; "
				 "it has %s",
				 c->inputs[0].name, t->cc, archs);
	if (!t->machine_code && all_machine_code(c))
		return no_ptx(c, archs, err);
	return gpul_fail(err, GPUL_EUNSUPPORTED, CUDA_ERROR_NO_BINARY_FOR_GPU,
			 "%.50s has no image for this device, sm_%u, only %s: nvcc -gencode "
			 "arch=compute_%u,code=sm_%u adds it",
			 c->inputs[0].name, t->cc, archs, t->cc, t->cc);
}

/* ---- no kernel -------------------------------------------------------------------------- */

#define MAX_NAMES 2000 /* at most this many names are compared with the user's name */

struct names {
	const gpul_choice *c;
	const gpul_input *input;
	GPUL_ARRAY(char *) seen; /* demangled names of kernels, without parameters; owned */
	char elsewhere[16];      /* architecture of an image that has the kernel; "": none */
};

/* True if no image in the unit (fatbin) of image i has the verdict TAKEN. */
static bool unit_is_left_out(const gpul_input *s, size_t i)
{
	size_t from = i, to = i;

	while (from > 0 && s->all[from - 1].unit == s->all[i].unit)
		from--;
	while (to + 1 < s->n && s->all[to + 1].unit == s->all[i].unit)
		to++;
	for (size_t k = from; k <= to; k++)
		if (s->verdicts[k] == GPUL_TAKEN)
			return false;
	return true;
}

static bool is_named_in_errors(const gpul_image *image, void *context)
{
	const struct names *n = context;
	size_t i = (size_t)(image - n->input->all);

	return n->input->verdicts[i] == GPUL_TAKEN || unit_is_left_out(n->input, i);
}

static void remember_name(struct names *n, const char *demangled)
{
	size_t bytes = gpul_name_before_params(demangled);
	char **to;

	if (n->seen.n >= MAX_NAMES)
		return;
	if (strncmp(demangled, "void ", 5) == 0)
		demangled += 5, bytes -= 5;
	to = gpul_array_push(&n->seen);
	if (to && !(*to = strndup(demangled, bytes)))
		n->seen.n--;
}

static gpul_status collect_names(const gpul_image *image, const gpul_kernel_table *table, const gpul_error *failed, void *context,
				 gpul_error *err)
{
	struct names *n = context;
	const char *wanted = n->c->options->kernel;
	bool taken = n->input->verdicts[image - n->input->all] == GPUL_TAKEN;

	(void)failed;
	(void)err;
	for (size_t i = 0; i < table->n; i++) {
		const char *name = table->at[i].name;
		char *demangled = gpul_demangle(name);

		if (taken)
			remember_name(n, demangled ? demangled : name);
		else if (strcmp(name, wanted) == 0 || (demangled && gpul_name_matches(demangled, wanted)))
			gpul_image_arch(image, n->elsewhere);
		free(demangled);
	}
	return GPUL_OK;
}

static gpul_status fail_not_found(const struct names *n, const gpul_error *damage, gpul_error *err)
{
	const gpul_choice *c = n->c;
	const char *wanted = c->options->kernel, *path = c->inputs[0].name;
	const char *near = gpul_text_nearest(wanted, (const char *const *)n->seen.at, n->seen.n);

	if (*n->elsewhere)
		return gpul_fail(err, GPUL_EUNSUPPORTED, CUDA_ERROR_NO_BINARY_FOR_GPU,
				 "kernel '%.60s' is in %.40s for %s, not for this device, sm_%u: "
				 "nvcc -gencode arch=compute_%u,code=sm_%u adds it",
				 wanted, path, n->elsewhere, c->target.cc, c->target.cc, c->target.cc);
	if (damage->status)
		return gpul_fail(err, damage->status, damage->native, "no kernel '%.40s' in %.40s, which is damaged: %.120s", wanted, path,
				 damage->text);
	if (near && *near)
		return gpul_fail(err, GPUL_EINVAL, 0, "no kernel '%.60s' in %s: did you mean '%.100s'?", wanted, path, near);
	return gpul_fail(err, GPUL_EINVAL, 0, "no kernel '%.60s' in %s: gpuload ls lists its kernels", wanted, path);
}

gpul_status gpul_choice_no_kernel(const gpul_choice *c, const gpul_error *damage, gpul_error *err)
{
	struct names n = { .c = c };
	gpul_status st = GPUL_OK;

	for (size_t i = 0; !st && i < c->n_inputs; i++) {
		n.input = &c->inputs[i];
		st = gpul_kernels_visit(n.input->images, is_named_in_errors, collect_names, &n, NULL, err);
	}
	if (!st)
		st = fail_not_found(&n, damage, err);
	while (n.seen.n)
		free(n.seen.at[--n.seen.n]);
	gpul_array_free(&n.seen);
	return st;
}
