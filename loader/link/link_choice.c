/* link_choice.c — links the relocatable images of all sources into one image. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/log.h"
#include "loader/link/link_choice_internal.h"
#include "loader/link/ptxas_options.h"

struct input {
	gpul_unpacked unpacked;
	char *name;
};

struct inputs {
	GPUL_ARRAY(struct input) own;
	GPUL_ARRAY(gpul_link_input) list;
	char suffix;
	unsigned long registers; /* the largest -maxrregcount of a PTX input; 0: none */
};

static void free_inputs(struct inputs *in)
{
	for (size_t i = 0; i < in->own.n; i++) {
		gpul_unpacked_free(&in->own.at[i].unpacked);
		free(in->own.at[i].name);
	}
	gpul_array_free(&in->own);
	gpul_array_free(&in->list);
}

/* Use the largest -maxrregcount of all inputs, because a kernel may need as many registers as its input allows. */
static void note_register_limit(struct inputs *in, const gpul_image *image)
{
	gpul_ptxas_options o;

	if (image->kind != GPUL_IMAGE_PTX || !image->options)
		return;
	gpul_ptxas_options_parse(image->options, image->options_bytes, &o);
	for (unsigned i = 0; i < o.n; i++)
		if (o.keys[i] == CU_JIT_MAX_REGISTERS && (unsigned long)(uintptr_t)o.values[i] > in->registers)
			in->registers = (unsigned long)(uintptr_t)o.values[i];
}

static gpul_status add_input(struct inputs *in, const gpul_input *s, const gpul_image *image, gpul_error *err)
{
	struct input *own = gpul_array_push(&in->own);
	gpul_link_input *l = gpul_array_push(&in->list);
	char name[400];
	gpul_status st;

	if (!own || !l)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a linker input");
	own->name = strdup(gpul_input_image_name(s, image, name, sizeof name));
	if (!own->name)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the name of a linker input");
	st = gpul_input_unpack(s, image, &own->unpacked, err);
	*l = (gpul_link_input){ image->kind, own->unpacked.bytes, own->unpacked.n_bytes, own->name };
	if (image->suffix && in->suffix != 'a')
		in->suffix = image->suffix;
	note_register_limit(in, image);
	return st;
}

static gpul_status collect_inputs(struct inputs *in, const gpul_choice *c, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t k = 0; k < c->n_inputs; k++)
		for (size_t i = 0; !st && i < c->inputs[k].n; i++)
			if (gpul_choice_links(c, &c->inputs[k], i))
				st = add_input(in, &c->inputs[k], &c->inputs[k].all[i], err);
	return st;
}

/* Make a list of the register limit and the caller's linker options; free() the list, not its strings. */
static const char **linker_options(const struct inputs *in, const gpul_load_options *o, char limit[40])
{
	size_t n = 0, k;
	const char **words;

	while (o->link_args && o->link_args[n])
		n++;
	words = calloc(n + 2, sizeof *words);
	if (!words)
		return NULL;
	k = in->registers ? 1 : 0;
	if (k) { /* placed first, so that the caller's options override it */
		snprintf(limit, 40, "-maxrregcount=%lu", in->registers);
		words[0] = limit;
	}
	for (size_t i = 0; i < n; i++)
		words[k + i] = o->link_args[i];
	return words;
}

static void explain_link(const gpul_choice *c, size_t n, const gpul_linked *l)
{
	char line[160];

	if (!c->options->explain)
		return;
	snprintf(line, sizeof line, "linked %zu images to %zu bytes of %s", n, l->n_bytes,
		 l->kind == GPUL_IMAGE_PTX ? "PTX" : "machine code");
	c->options->explain(c->options->explain_context, line);
	if (!l->n_left_out && !l->n_failing)
		return;
	snprintf(line, sizeof line,
		 "left out %zu functions that the kernel does not reach, and %zu that only a table of function pointers refers to",
		 l->n_left_out, l->n_failing);
	c->options->explain(c->options->explain_context, line);
}

static gpul_status link_inputs(const struct inputs *in, const gpul_choice *c, gpul_linked *out, gpul_error *err)
{
	char limit[40];
	const char **words = linker_options(in, c->options, limit);
	const gpul_link_options how = {
		.cc = c->target.cc,
		.suffix = in->suffix,
		.to_ptx = !c->target.machine_code,
		.arguments = words,
		.no_cache = c->options->no_cache,
		.prune = c->options->kernel_only,
		.kernel = c->options->kernel,
		.link_all = c->options->link_all,
	};
	gpul_status st;

	if (!words)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the linker's options");
	st = gpul_link(in->list.at, in->list.n, &how, out, err);
	gpul_log_lines(GPUL_LOG_INFO, "loader", out->log);
	if (!st)
		explain_link(c, in->list.n, out);
	free(words);
	return st;
}

gpul_status gpul_link_choice(const gpul_choice *c, gpul_linked *out, gpul_error *err)
{
	struct inputs in = { 0 };
	gpul_status st = collect_inputs(&in, c, err);

	if (!st)
		st = link_inputs(&in, c, out, err);
	free_inputs(&in);
	return st;
}
