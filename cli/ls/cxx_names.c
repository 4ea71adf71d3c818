/* cxx_names.c — see cxx_names.h.  A hash table in shards, each under its own lock: the threads
 * that read images ask at the same time, mostly for different names. */
#include "cli/ls/cxx_names.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "loader/names/demangle.h"

#define N_SHARDS   64
#define FIRST_ROOM 64

struct entry {
	uint64_t hash;
	struct cxx_name name;
	char mangled[]; /* then its NUL */
};

struct cxx_names {
	struct shard {
		pthread_mutex_t lock;
		struct entry **slots; /* open addressing; room is a power of two */
		size_t n, room;
	} shards[N_SHARDS];
};

/* Eight bytes a step: names of templates have hundreds. */
static uint64_t hash_of(const char *text, size_t n)
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
	struct cxx_names *names = calloc(1, sizeof *names);

	for (size_t i = 0; names && i < N_SHARDS; i++)
		pthread_mutex_init(&names->shards[i].lock, NULL);
	return names;
}

static void entry_free(struct entry *e)
{
	if (e) {
		free((void *)(uintptr_t)e->name.demangled);
		free((void *)(uintptr_t)e->name.params);
		free(e);
	}
}

void cxx_names_destroy(struct cxx_names *names)
{
	for (size_t i = 0; names && i < N_SHARDS; i++) {
		struct shard *s = &names->shards[i];

		for (size_t k = 0; k < s->room; k++)
			entry_free(s->slots[k]);
		free(s->slots);
		pthread_mutex_destroy(&s->lock);
	}
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

static struct entry *entry_create(const char *mangled, size_t n, uint64_t hash)
{
	struct entry *e = calloc(1, sizeof *e + n + 1);

	if (!e)
		return NULL;
	e->hash = hash;
	memcpy(e->mangled, mangled, n);
	e->name = (struct cxx_name){ .n_params = GPUL_CXX_NO_LIST };
	e->name.demangled = gpul_demangle(e->mangled);
	if (e->name.demangled) {
		e->name.n_demangled = strlen(e->name.demangled);
		if (!read_params(&e->name)) {
			entry_free(e);
			return NULL;
		}
	}
	return e;
}

/* Where the name is, or would be. */
static struct entry **find(const struct shard *s, const char *mangled, uint64_t hash)
{
	size_t i = hash & (s->room - 1);

	while (s->slots[i] &&
	       (s->slots[i]->hash != hash || strcmp(s->slots[i]->mangled, mangled) != 0))
		i = (i + 1) & (s->room - 1);
	return &s->slots[i];
}

/* At most half of the slots are taken, so that find() ends soon. */
static bool make_room(struct shard *s)
{
	struct shard bigger = { .room = s->room ? 2 * s->room : FIRST_ROOM };

	if (2 * (s->n + 1) <= s->room)
		return true;
	bigger.slots = calloc(bigger.room, sizeof(struct entry *));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < s->room; i++)
		if (s->slots[i])
			*find(&bigger, s->slots[i]->mangled, s->slots[i]->hash) = s->slots[i];
	free(s->slots);
	s->slots = bigger.slots;
	s->room = bigger.room;
	return true;
}

const struct cxx_name *cxx_names_get(struct cxx_names *names, const char *mangled)
{
	size_t n = strlen(mangled);
	uint64_t hash = hash_of(mangled, n);
	struct shard *s = &names->shards[hash >> 58];
	struct entry **slot, *e = NULL;

	pthread_mutex_lock(&s->lock);
	if (make_room(s)) {
		slot = find(s, mangled, hash);
		if (!*slot) {
			*slot = entry_create(mangled, n, hash);
			s->n += *slot != NULL;
		}
		e = *slot;
	}
	pthread_mutex_unlock(&s->lock);
	return e ? &e->name : NULL;
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
