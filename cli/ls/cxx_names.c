/* cxx_names.c — keeps demangled names in a hash table with open addressing. */
#include "cli/ls/cxx_names.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"
#include "loader/names/names.h"

enum { FIRST_ROOM = 4096 };

struct entry {
	uint64_t hash;
	struct cxx_name name;
	char mangled[]; /* NUL-terminated */
};

struct cxx_names {
	struct entry **slots; /* NULL: empty slot */
	size_t n, room;       /* room is a power of two */
};

/* Hash eight bytes in each step, because names of templates have hundreds of bytes. */
static uint64_t hash_name(const char *text, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15u;

	for (; n; text += n < 8 ? n : 8, n -= n < 8 ? n : 8) {
		uint64_t word = 0;

		memcpy(&word, text, n < 8 ? n : 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	return h;
}

struct cxx_names *cxx_names_create(void)
{
	return calloc(1, sizeof(struct cxx_names));
}

static void destroy_entry(struct entry *e)
{
	if (e) {
		free((void *)(uintptr_t)e->name.demangled);
		free((void *)(uintptr_t)e->name.params);
		free(e);
	}
}

void cxx_names_destroy(struct cxx_names *names)
{
	for (size_t i = 0; names && i < names->room; i++)
		destroy_entry(names->slots[i]);
	if (names)
		free(names->slots);
	free(names);
}

static bool read_params(struct cxx_name *name)
{
	size_t n = gpul_cxx_params(name->demangled, NULL, 0);
	gpul_cxx_param *params;

	name->n_params = n;
	if (n == GPUL_CXX_NO_LIST || n == 0)
		return true;
	params = calloc(n, sizeof *params);
	if (!params)
		return false;
	gpul_cxx_params(name->demangled, params, n);
	name->params = params;
	return true;
}

static struct entry *create_entry(const char *mangled, size_t n, uint64_t hash)
{
	struct entry *e = calloc(1, sizeof *e + n + 1);

	if (!e)
		return NULL;
	e->hash = hash;
	memcpy(e->mangled, mangled, n);
	e->name = (struct cxx_name){ .mangled = e->mangled, .n_params = GPUL_CXX_NO_LIST };
	e->name.demangled = gpul_demangle(e->mangled);
	if (e->name.demangled) {
		e->name.n_demangled = strlen(e->name.demangled);
		if (!read_params(&e->name)) {
			destroy_entry(e);
			return NULL;
		}
	}
	return e;
}

/* Find the slot of a name, or the empty slot where it belongs. */
static struct entry **find_slot(const struct cxx_names *names, const char *mangled, uint64_t hash)
{
	size_t i = hash & (names->room - 1);

	while (names->slots[i] && (names->slots[i]->hash != hash || strcmp(names->slots[i]->mangled, mangled) != 0))
		i = (i + 1) & (names->room - 1);
	return &names->slots[i];
}

/* Double the table when it is half full, so that a search takes few steps. */
static bool make_room(struct cxx_names *names)
{
	struct cxx_names bigger = { .n = names->n, .room = names->room ? 2 * names->room : FIRST_ROOM };

	if (2 * (names->n + 1) <= names->room)
		return true;
	bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < names->room; i++)
		if (names->slots[i])
			*find_slot(&bigger, names->slots[i]->mangled, names->slots[i]->hash) = names->slots[i];
	free(names->slots);
	*names = bigger;
	return true;
}

const struct cxx_name *cxx_names_get(struct cxx_names *names, const char *mangled)
{
	size_t n = strlen(mangled);
	uint64_t hash = hash_name(mangled, n);
	struct entry **slot;

	if (!make_room(names))
		return NULL;
	slot = find_slot(names, mangled, hash);
	if (!*slot) {
		*slot = create_entry(mangled, n, hash);
		names->n += *slot != NULL;
	}
	return *slot ? &(*slot)->name : NULL;
}

const gpul_cxx_param *cxx_name_types(const struct cxx_name *name, const gpul_kernel_info *kernel)
{
	if (!name || name->n_params != kernel->n_params)
		return NULL;
	for (uint32_t i = 0; i < kernel->n_params; i++)
		if (name->params[i].bytes && name->params[i].bytes != kernel->params[i].bytes)
			return NULL;
	return name->params;
}

/* Match the glob against the name without return type and parameters: "f<int>" of "void f<int>(int*)". */
static bool matches_without_params(const char *glob, const char *demangled)
{
	size_t start = strncmp(demangled, "void ", 5) ? 0 : 5, end = gpul_name_before_params(demangled);
	char *bare = strndup(demangled + start, end - start);
	bool fits = bare && fnmatch(glob, bare, 0) == 0;

	free(bare);
	return fits;
}

bool cxx_name_matches(const char *glob, const char *mangled, const struct cxx_name *name)
{
	if (!glob || fnmatch(glob, mangled, 0) == 0)
		return true;
	return name && name->demangled && (fnmatch(glob, name->demangled, 0) == 0 || matches_without_params(glob, name->demangled));
}
