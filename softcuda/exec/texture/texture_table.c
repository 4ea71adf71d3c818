/* texture_table.c — the handles of textures and surfaces.  Kernels look up handles without a lock.
 *
 *      63           32 31                  0
 *     ┌───────────────┬─────────────────────┐
 *     │ generation    │ row + 1             │   the generation of a row is incremented when its handle is removed
 *     └───────────────┴─────────────────────┘ */
#include "softcuda/exec/texture/texture_internal.h"

#include <pthread.h>
#include <stdlib.h>

enum { CHUNK_ROWS = 1024, MAX_CHUNKS = 4096 };

struct row {
	_Atomic uint64_t handle; /* 0: the row is free */
	_Atomic(const struct texture *) texture;
	uint8_t kind;                   /* enum texture_kind; must be written before `handle` */
	uint32_t generation, next_free; /* next_free: 1 + index of the next free row */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct row *) chunks[MAX_CHUNKS]; /* never freed, because a kernel may look up a removed handle at any time */
static uint32_t n_rows, first_free;

static struct row *row_at(uint32_t number)
{
	struct row *chunk = number / CHUNK_ROWS < MAX_CHUNKS ? atomic_load(&chunks[number / CHUNK_ROWS]) : NULL;

	return chunk ? &chunk[number % CHUNK_ROWS] : NULL;
}

/* Take a free row of the table, and set *number to its index; NULL: out of memory. */
static struct row *take_row(uint32_t *number)
{
	struct row *row, *chunk;

	if (first_free) {
		*number = first_free - 1;
		row = row_at(*number);
		first_free = row->next_free;
		return row;
	}
	if (n_rows == CHUNK_ROWS * MAX_CHUNKS)
		return NULL;
	if (n_rows % CHUNK_ROWS == 0) {
		chunk = calloc(CHUNK_ROWS, sizeof *chunk);
		if (!chunk)
			return NULL;
		atomic_store(&chunks[n_rows / CHUNK_ROWS], chunk);
	}
	*number = n_rows++;
	return row_at(*number);
}

uint64_t gpul_texture_add(enum texture_kind kind, const struct texture *t)
{
	uint64_t handle = 0;
	uint32_t number;
	struct row *row;

	pthread_mutex_lock(&lock);
	row = take_row(&number);
	if (row) {
		row->generation++;
		handle = (uint64_t)row->generation << 32 | (number + 1);
		row->kind = (uint8_t)kind;
		atomic_store(&row->texture, t);
		atomic_store(&row->handle, handle);
	}
	pthread_mutex_unlock(&lock);
	return handle;
}

static struct row *find_row(uint64_t handle)
{
	struct row *row = (uint32_t)handle ? row_at((uint32_t)handle - 1) : NULL;

	return row && atomic_load(&row->handle) == handle ? row : NULL;
}

const struct texture *gpul_texture_bind(uint64_t handle, const struct texture *t)
{
	struct row *row = find_row(handle);

	return row ? atomic_exchange(&row->texture, t) : NULL;
}

const struct texture *gpul_texture_remove(uint64_t handle)
{
	const struct texture *was = NULL;
	struct row *row;

	pthread_mutex_lock(&lock);
	row = find_row(handle);
	if (row) {
		atomic_store(&row->handle, 0);
		was = atomic_exchange(&row->texture, NULL);
		row->next_free = first_free;
		first_free = (uint32_t)handle;
	}
	pthread_mutex_unlock(&lock);
	return was;
}

bool gpul_texture_is(uint64_t handle, enum texture_kind kind)
{
	const struct row *row = find_row(handle);

	return row && row->kind == kind;
}

const struct texture *gpul_texture_find(uint64_t handle, enum texture_kind kind)
{
	struct row *row = find_row(handle);

	return row && row->kind == kind ? atomic_load(&row->texture) : NULL;
}
