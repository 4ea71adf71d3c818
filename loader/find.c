/* find.c — finds a kernel of a module by its name. */
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

/* List the kernels that match wanted (NULL: all kernels), as many as fit: "a, b, c". */
static void list_kernels(const gpul_module *m, const char *wanted, char *out, size_t out_bytes)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < m->n_kernels; i++) {
		const char *name = gpul_kernel_demangled_locked(&m->kernels[i]);
		size_t n = gpul_name_before_params(name);

		if (wanted && !gpul_name_matches(name, wanted))
			continue;
		if (wanted)
			n = strlen(name); /* show the parameters, too, because the matching kernels differ only in these */
		if (used == 0 && n + 8 > out_bytes)
			n = out_bytes - 8; /* show at least a part of the first name */
		if (used + n + 8 > out_bytes) {
			snprintf(out + used, out_bytes - used, ", ...");
			return;
		}
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%.*s", used ? ", " : "", (int)n, name);
	}
}

/* Find a kernel whose demangled name matches wanted; *n_found is set to the number of such kernels. */
static const gpul_kernel *find_match(const gpul_module *m, const char *wanted, size_t *n_found)
{
	const gpul_kernel *found = NULL;

	*n_found = 0;
	for (size_t i = 0; i < m->n_kernels; i++)
		if (gpul_name_matches(gpul_kernel_demangled_locked(&m->kernels[i]), wanted)) {
			found = &m->kernels[i];
			++*n_found;
		}
	return found;
}

/* Find a kernel name similar to wanted, as a user would type it; owned: free().  NULL: none. */
static char *similar_name(const gpul_module *m, const char *wanted)
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
	best = gpul_text_nearest(wanted, (const char *const *)names, n);
	if (best && *best)
		copy = strdup(best);
	while (n)
		free(names[--n]);
	free(names);
	return copy;
}

static gpul_status fail_not_found(const gpul_module *m, const char *wanted, gpul_error *err)
{
	char *near = similar_name(m, wanted);
	char names[140];
	gpul_status st;

	list_kernels(m, NULL, names, sizeof names);
	if (near)
		st = gpul_fail(err, GPUL_EINVAL, 0, "no kernel '%.80s': did you mean '%.120s'?", wanted, near);
	else
		st = gpul_fail(err, GPUL_EINVAL, 0, "no kernel '%.60s'; the module has: %s", wanted, names);
	free(near);
	return st;
}

static gpul_status find_locked(const gpul_module *m, const char *name, const gpul_kernel **out, gpul_error *err)
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
		list_kernels(m, NULL, names, sizeof names);
		return gpul_fail(err, GPUL_EINVAL, 0, "the module has %zu kernels: name one of %s", m->n_kernels, names);
	}
	k = find_match(m, name, &n);
	if (n == 1) {
		*out = k;
		return GPUL_OK;
	}
	if (n == 0)
		return fail_not_found(m, name, err);
	list_kernels(m, name, names, sizeof names);
	return gpul_fail(err, GPUL_EINVAL, 0, "%zu kernels match '%.40s': %s", n, name, names);
}

gpul_status gpul_kernel_find(const gpul_module *m, const char *name, const gpul_kernel **out, gpul_error *err)
{
	/* m without const, because the look-up locks the module and stores demangled names in it. */
	gpul_module *shared = m->kernels ? m->kernels[0].m : NULL;
	gpul_status st;

	if (!shared)
		return gpul_fail(err, GPUL_EINVAL, 0, "the module has no kernels");
	pthread_mutex_lock(&shared->lock);
	st = find_locked(m, name, out, err);
	pthread_mutex_unlock(&shared->lock);
	return st;
}
