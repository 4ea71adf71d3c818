/* cli_parse.c — split a command line into options and operands, by the option table. */
#include "cli/lib/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

const struct cli_opt cli_no_opts[] = { { 0 } };

/* Find the row of an argument such as "--grid=4" or "-Idir"; *joined is set to the value in the same argument, or to NULL.  Returns
 * -1 if the option is unknown. */
static int find_opt(const struct cli_opt *opts, const char *word, const char **joined)
{
	bool is_long = word[1] == '-';
	const char *name = word + (is_long ? 2 : 1);
	size_t n = strcspn(name, "=");

	*joined = NULL;
	for (int i = 0; opts[i].name; i++) {
		if (!is_long && !opts[i].name[1] && opts[i].name[0] == *name) {
			*joined = name[1] ? name + 1 : NULL;
			return i;
		}
		/* Accept a long option with one dash, too, because compilers use this form: -std=c++17. */
		if (opts[i].name[1] && strlen(opts[i].name) == n && !strncmp(opts[i].name, name, n)) {
			*joined = name[n] ? name + n + 1 : NULL;
			return i;
		}
	}
	return -1;
}

static gpul_status unknown_option(const struct cli_opt *opts, const char *word, gpul_error *err)
{
	const char *names[64];
	size_t n = 0;
	char name[64];
	const char *near, *bare = word + strspn(word, "-");

	snprintf(name, sizeof name, "%.*s", (int)strcspn(bare, "="), bare);
	for (int i = 0; opts[i].name && n < 64; i++)
		if (opts[i].name[1])
			names[n++] = opts[i].name;
	near = gpul_text_nearest(name, names, n);
	if (near)
		return gpul_fail(err, GPUL_EINVAL, 0, "unknown option %s; did you mean --%s?", word, near);
	return gpul_fail(err, GPUL_EINVAL, 0, "unknown option %s; --help lists the options", word);
}

static const char *dashes(const struct cli_opt *o)
{
	return o->name[1] ? "--" : "-";
}

static gpul_status parse_option(const struct cli_opt *opts, char *const *words, size_t n_words, size_t *i, struct cli_args *out,
				gpul_error *err)
{
	const char *word = words[*i], *value;
	int opt = find_opt(opts, word, &value);

	if (opt < 0)
		return unknown_option(opts, word, err);
	if (!opts[opt].value && value)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s%s takes no value, but the command line gives '%s'", dashes(&opts[opt]),
				 opts[opt].name, value);
	if (opts[opt].value && !value && !cli_value_is_optional(&opts[opt])) {
		if (*i + 1 == n_words)
			return gpul_fail(err, GPUL_EINVAL, 0, "%s%s needs a value: %s", dashes(&opts[opt]), opts[opt].name,
					 opts[opt].value);
		value = words[++*i];
	}
	out->given[out->n_given++] = (struct cli_given){ opt, value };
	return GPUL_OK;
}

gpul_status cli_parse(const struct cli_opt *opts, char *const *words, size_t n_words, struct cli_args *out, gpul_error *err)
{
	bool options_end = false;
	gpul_status st = GPUL_OK;

	*out = (struct cli_args){ .given = calloc(n_words + 1, sizeof *out->given),
				  .operands = calloc(n_words + 1, sizeof *out->operands) };
	if (!out->given || !out->operands)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu arguments", n_words);
	for (size_t i = 0; st == GPUL_OK && i < n_words; i++) {
		const char *w = words[i];

		if (options_end || w[0] != '-' || !w[1])
			out->operands[out->n_operands++] = w;
		else if (!strcmp(w, "--")) {
			options_end = true;
			out->n_before_dashes = out->n_operands;
		} else if (!strcmp(w, "--help") || !strcmp(w, "-h"))
			out->help = true;
		else
			st = parse_option(opts, words, n_words, &i, out, err);
	}
	if (!options_end)
		out->n_before_dashes = out->n_operands;
	if (st)
		cli_args_free(out);
	return st;
}

void cli_args_free(struct cli_args *args)
{
	free(args->given);
	free(args->operands);
	*args = (struct cli_args){ 0 };
}

const char *cli_value(const struct cli_args *args, int opt)
{
	for (size_t i = args->n_given; i > 0; i--)
		if (args->given[i - 1].opt == opt)
			return args->given[i - 1].value ? args->given[i - 1].value : "";
	return NULL;
}

int cli_exit_code(gpul_status status)
{
	return status == GPUL_OK ? CLI_DONE : status == GPUL_EINVAL ? CLI_USAGE : CLI_FAILED;
}
