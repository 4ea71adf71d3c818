/* link_target.c — chooses .version and .target of the linked module: PTX ISA 9.0, Module Directives.
 *
 *     sm_75            runs on that architecture and all newer ones
 *     sm_100f          runs on its family: the same major, the same or a higher minor version
 *     sm_90a           runs on that architecture only
 *
 * So the result has the newest target of the inputs, and the other inputs must run on it. */
#include "ptx/link/ptx_link_internal.h"

#include <stdio.h>
#include <string.h>

static int suffix_rank(char suffix)
{
	return suffix == 'a' ? 2 : suffix == 'f';
}

/* Find the input with the highest target; among equal targets, the most restricted one (sm_90a before sm_90). */
static uint32_t newest_input(const ptx_linker *l)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < l->n_inputs; i++) {
		const gpul_ptx_module *m = &l->inputs[i].m, *b = &l->inputs[best].m;

		if (m->sm > b->sm || (m->sm == b->sm && suffix_rank(m->sm_suffix) > suffix_rank(b->sm_suffix)))
			best = i;
	}
	return best;
}

static gpul_status choose_sm(ptx_linker *l)
{
	uint32_t best = newest_input(l);
	const gpul_ptx_module *at = &l->inputs[best].m;
	char suffix = at->sm_suffix;

	for (uint32_t i = 0; i < l->n_inputs; i++) {
		const struct ptx_link_input *in = &l->inputs[i];

		if (!gpul_ptx_runs_on(&in->m, at->sm))
			return gpul_fail(l->err, GPUL_EFORMAT, 0,
					 "%.60s is for sm_%u%.1s and %.60s for sm_%u%.1s: no device runs "
					 "both; compile both for the same target",
					 in->name, in->m.sm, (const char[]){ in->m.sm_suffix, 0 }, l->inputs[best].name, at->sm,
					 (const char[]){ at->sm_suffix, 0 });
		/* for example, sm_100f and sm_103 are linked to sm_103f, which runs on the family from sm_103 on */
		if (suffix_rank(in->m.sm_suffix) > suffix_rank(suffix))
			suffix = in->m.sm_suffix;
	}
	snprintf(l->target, sizeof l->target, "sm_%u%.1s", at->sm, (const char[]){ suffix, 0 });
	return GPUL_OK;
}

static bool has_word(const char *list, const char *word, size_t n)
{
	for (const char *at = list; (at = strstr(at, ", "));) {
		at += 2;
		if (!strncmp(at, word, n) && (!at[n] || at[n] == ','))
			return true;
	}
	return false;
}

/* Collect the target options of all inputs (texmode_unified, map_f64_to_f32), except debug, because DWARF is dropped. */
static void add_options(ptx_linker *l, const gpul_ptx_module *m)
{
	const char *word = gpul_ptx_name(m, m->target);
	size_t used = strlen(l->target);

	while (*word) {
		size_t n = strcspn(word, ",");

		if (strncmp(word, "sm_", 3) && !(n == 5 && !memcmp(word, "debug", 5)) && !has_word(l->target, word, n) &&
		    used + n + 3 < sizeof l->target)
			used += (size_t)sprintf(l->target + used, ", %.*s", (int)n, word);
		word += n;
		word += strspn(word, ", ");
	}
}

/* Check that all inputs have the same texture mode; the default is texmode_unified. */
static gpul_status check_texmode(ptx_linker *l)
{
	static const char independent[] = "texmode_independent";
	bool first = has_word(gpul_ptx_name(&l->inputs[0].m, l->inputs[0].m.target), independent, sizeof independent - 1);

	for (uint32_t i = 1; i < l->n_inputs; i++) {
		const gpul_ptx_module *m = &l->inputs[i].m;

		if (has_word(gpul_ptx_name(m, m->target), independent, sizeof independent - 1) != first)
			return gpul_fail(l->err, GPUL_EFORMAT, 0,
					 "only one of %.80s and %.80s has texmode_independent; compile both with the "
					 "same texture mode",
					 l->inputs[0].name, l->inputs[i].name);
	}
	return GPUL_OK;
}

gpul_status ptx_link_target(ptx_linker *l)
{
	gpul_status st = choose_sm(l);

	if (!st)
		st = check_texmode(l);
	for (uint32_t i = 0; i < l->n_inputs && !st; i++) {
		const gpul_ptx_module *m = &l->inputs[i].m;

		if (m->address_size != l->inputs[0].m.address_size)
			st = gpul_fail(l->err, GPUL_EFORMAT, 0,
				       "%.80s has %u-bit addresses and %.80s has %u-bit addresses: compile "
				       "both for 64 bits",
				       l->inputs[0].name, l->inputs[0].m.address_size, l->inputs[i].name, m->address_size);
		if (m->version_major > l->version_major || (m->version_major == l->version_major && m->version_minor > l->version_minor)) {
			l->version_major = m->version_major;
			l->version_minor = m->version_minor;
		}
		add_options(l, m);
	}
	return st;
}
