/* nvrtc_args.c — build the option list for NVRTC. */
#include "cli/lib/options/nvrtc_args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpul_status no_memory(gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the compiler options");
}

gpul_status nvrtc_args_add(struct nvrtc_args *a, const struct cli_args *from, struct nvrtc_rows rows, gpul_error *err)
{
	char **words = realloc(a->words, (a->n_words + from->n_given + 1) * sizeof *words);

	if (!words)
		return no_memory(err);
	a->words = words;
	words[a->n_words] = NULL;
	for (size_t i = 0; i < from->n_given; i++) {
		const struct cli_given *g = &from->given[i];
		const char *spelled = g->opt == rows.include ? "-I" : g->opt == rows.define ? "-D" : g->opt == rows.std ? "--std=" : NULL;

		if (!spelled)
			continue;
		if (asprintf(&words[a->n_words], "%s%s", spelled, g->value) < 0) {
			words[a->n_words] = NULL;
			return no_memory(err);
		}
		words[++a->n_words] = NULL;
	}
	return GPUL_OK;
}

gpul_status nvrtc_args_append(struct nvrtc_args *a, const char *option, gpul_error *err)
{
	char **words = realloc(a->words, (a->n_words + 2) * sizeof *words), *word = strdup(option);

	if (words)
		a->words = words;
	if (!words || !word) {
		free(word);
		return no_memory(err);
	}
	words[a->n_words++] = word;
	words[a->n_words] = NULL;
	return GPUL_OK;
}

void nvrtc_args_free(struct nvrtc_args *a)
{
	for (size_t i = 0; i < a->n_words; i++)
		free(a->words[i]);
	free(a->words);
	*a = (struct nvrtc_args){ 0 };
}
