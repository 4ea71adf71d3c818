/* find.c — a kernel by the name that people know it by. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "loader/loader_internal.h"
#include "loader/names/names.h"

const char *gpul_kernel_demangled_locked(gpul_kernel *k)
{
	if (!k->demangled)
		k->demangled = gpul_demangle(k->name);
	return k->demangled ? k->demangled : k->name;
}

const char *gpul_kernel_demangled(const gpul_kernel *k)
{
	const char *name;

	pthread_mutex_lock(&k->m->lock);
	name = gpul_kernel_demangled_locked(&k->m->kernels[k - k->m->kernels]);
	pthread_mutex_unlock(&k->m->lock);
	return name;
}

/* "a, b, c", as far as it fits, of the kernels that mean asked; asked NULL: of all. */
static void list(const gpul_module *m, const char *asked, char *out, size_t out_bytes)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < m->n_kernels; i++) {
		const char *name = gpul_kernel_demangled_locked(&m->kernels[i]);
		size_t n = gpul_name_before_params(name);

		if (asked && !gpul_name_matches(name, asked))
			continue;
		if (asked)
			n = strlen(name); /* they differ in their parameters */
		if (used == 0 && n + 8 > out_bytes)
			n = out_bytes - 8; /* a part of one is better than none */
		if (used + n + 8 > out_bytes) {
			snprintf(out + used, out_bytes - used, ", ...");
			return;
		}
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%.*s",
					 used ? ", " : "", (int)n, name);
	}
}

/* The one kernel whose demangled name means asked; *n_found: how many do. */
static const gpul_kernel *by_meaning(const gpul_module *m, const char *asked, size_t *n_found)
{
	const gpul_kernel *found = NULL;

	*n_found = 0;
	for (size_t i = 0; i < m->n_kernels; i++)
		if (gpul_name_matches(gpul_kernel_demangled_locked(&m->kernels[i]), asked)) {
			found = &m->kernels[i];
			++*n_found;
		}
	return found;
}

/* A name near the one that was asked for, as it would be typed; owned: free().  NULL: none. */
static char *near_name(const gpul_module *m, const char *asked)
{
	char **names = calloc(m->n_kernels, sizeof *names);
	const char *best;
	char *copy = NULL;
	size_t n = 0;

	if (!names)
		return NULL;
	for (; n < m->n_kernels; n++) {
		const char *name = gpul_kernel_demangled_locked(&m->kernels[n]);

		if (strncmp(name, "void ", 5) == 0)
			name += 5;
		names[n] = strndup(name, gpul_name_before_params(name));
		if (!names[n])
			break;
	}
	best = gpul_text_nearest(asked, (const char *const *)names, n);
	if (best && *best)
		copy = strdup(best);
	while (n)
		free(names[--n]);
	free(names);
	return copy;
}

static gpul_status not_found(const gpul_module *m, const char *asked, gpul_error *err)
{
	char *near = near_name(m, asked);
	char names[140];
	gpul_status st;

	list(m, NULL, names, sizeof names);
	if (near)
		st = gpul_fail(err, GPUL_EINVAL, 0, "no kernel '%.80s': did you mean '%.120s'?",
			       asked, near);
	else
		st = gpul_fail(err, GPUL_EINVAL, 0, "no kernel '%.60s'; there is: %s", asked,
			       names);
	free(near);
	return st;
}

static gpul_status find_locked(const gpul_module *m, const char *name, const gpul_kernel **out,
			       gpul_error *err)
{
	char names[170];
	const gpul_kernel *k;
	size_t n;

	for (size_t i = 0; name && i < m->n_kernels; i++)
		if (strcmp(m->kernels[i].name, name) == 0) {
			*out = &m->kernels[i];
			return GPUL_OK;
		}
	if (!name && m->n_kernels == 1) {
		*out = &m->kernels[0];
		return GPUL_OK;
	}
	if (!name) {
		list(m, NULL, names, sizeof names);
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu kernels: name one of %s",
				 m->n_kernels, names);
	}
	k = by_meaning(m, name, &n);
	if (n == 1) {
		*out = k;
		return GPUL_OK;
	}
	if (n == 0)
		return not_found(m, name, err);
	list(m, name, names, sizeof names);
	return gpul_fail(err, GPUL_EINVAL, 0, "%zu kernels are called '%.40s': %s", n, name,
			 names);
}

gpul_status gpul_kernel_find(const gpul_module *m, const char *name, const gpul_kernel **out,
			     gpul_error *err)
{
	gpul_module *shared = m->kernels ? m->kernels[0].m
					 : NULL; /* the same module, to lock and to cache in */
	gpul_status st;

	if (!shared)
		return gpul_fail(err, GPUL_EINVAL, 0, "the module has no kernels");
	pthread_mutex_lock(&shared->lock);
	st = find_locked(m, name, out, err);
	pthread_mutex_unlock(&shared->lock);
	return st;
}
