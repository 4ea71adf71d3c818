/* audit.c — an auditor of the dynamic loader (LD_AUDIT): binds calls of libcuda and libcudart to wrappers that log the calls.
 *
 *     program ── call through its PLT, or dlsym() ──> dynamic loader ── la_symbind64 ──> wrapper in libcuda-calls.so.1 (preloaded)
 *             ── address in its data ───────────────> symbols of a library that it needs ──┘  └── the driver's function
 *
 * The libraries themselves are not replaced, so a program finds all their functions, by whatever path it opens the libraries.
 * Source: rtld-audit(7). */
#include <string.h>

#include "nvidia/calls/bind.h"
#include "nvidia/loaded.h"

#define EXPORTED __attribute__((visibility("default")))

enum { MAX_CANDIDATES = 16 };

/* No lock is needed, because the dynamic loader calls auditors one at a time, except for la_symbind64(), which changes nothing here. */
static const struct link_map *wrappers;                   /* the preloaded library with the wrappers; NULL: no log */
static const struct link_map *candidates[MAX_CANDIDATES]; /* loaded CUDA drivers and runtimes */
static size_t n_candidates;

EXPORTED unsigned la_version(unsigned version);
EXPORTED unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie);
EXPORTED unsigned la_objclose(uintptr_t *cookie);
EXPORTED uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags, const char *name);

unsigned la_version(unsigned version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* Redirect the symbols of the drivers and runtimes that a loaded object needs (DT_NEEDED), before the object is relocated. */
static void own_needed(const struct link_map *map)
{
	const struct link_map *first = map;
	bool is_new = map == wrappers || (n_candidates && candidates[n_candidates - 1] == map);

	while (first->l_prev)
		first = first->l_prev;
	for (size_t i = 0; i < n_candidates; i++)
		for (const struct link_map *user = is_new ? first : map; user; user = user == map ? NULL : user->l_next)
			if (needs_library(user, candidates[i]))
				calls_own(wrappers, candidates[i]);
}

/* Called for each loaded object.  LA_FLG_BINDTO is set only for drivers and runtimes, because each reported binding takes time. */
unsigned la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	bool is_candidate;

	*cookie = (uintptr_t)map;
	if (namespace != LM_ID_BASE)
		return 0;
	if (calls_are_in(map))
		wrappers = map;
	is_candidate = find_export(map, "cuDriverGetVersion") || find_export(map, "cudaRuntimeGetVersion");
	if (is_candidate && n_candidates < MAX_CANDIDATES)
		candidates[n_candidates++] = map;
	own_needed(map);
	return map == wrappers ? 0 : is_candidate ? LA_FLG_BINDTO | LA_FLG_BINDFROM : LA_FLG_BINDFROM;
}

unsigned la_objclose(uintptr_t *cookie)
{
	for (size_t i = 0; i < n_candidates; i++)
		if (candidates[i] == (const struct link_map *)*cookie)
			candidates[i] = candidates[--n_candidates];
	calls_unbind(wrappers, (const struct link_map *)*cookie);
	if (wrappers == (const struct link_map *)*cookie)
		wrappers = NULL;
	return 0;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to, unsigned *flags, const char *name)
{
	const bool is_own = *from == *to && !(*flags & LA_SYMB_DLSYM); /* in a call for dlsym(), `from` is the searched library */

	(void)index;
	if (is_own || (strncmp(name, "cu", 2) && strncmp(name, "__cuda", 6)))
		return symbol->st_value;
	return calls_bind(wrappers, (const struct link_map *)*to, name, symbol->st_value);
}
