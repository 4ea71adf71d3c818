/* cu_handle.c — a handle is the index of a row in a table, so that every value can be checked before it is used.
 *
 *      63                32 31                5 4    0
 *     ┌────────────────────┬───────────────────┬──────┐
 *     │ generation of row  │ row + 1           │ kind │
 *     └────────────────────┴───────────────────┴──────┘
 *
 * The generation of a row is incremented when the row is freed, so a stale handle has an old generation.
 * No handle equals NULL, CU_STREAM_LEGACY (1) or CU_STREAM_PER_THREAD (2), because row + 1 is not 0. */
#include "softcuda/api/base/cu_state_internal.h"

#include <stdlib.h>

struct row {
	void *object; /* the object of the handle; NULL: the row is free */
	uint32_t generation;
	uint32_t next_free; /* the next free row + 1; 0: end of the list */
};

static struct row *rows;
static uint32_t n_rows, capacity, first_free;

enum { KIND_BITS = 5, MAX_ROWS = (1 << 27) - 2 };

static bool grow_table(void)
{
	uint32_t wanted = capacity ? capacity * 2 : 256;
	struct row *bigger = wanted > MAX_ROWS ? NULL : realloc(rows, wanted * sizeof *rows);

	if (!bigger)
		return false;
	rows = bigger;
	capacity = wanted;
	return true;
}

void *soft_handle_new(enum handle_kind kind, void *object)
{
	uint32_t row;

	if (first_free) {
		row = first_free - 1;
		first_free = rows[row].next_free;
	} else {
		if (n_rows == capacity && !grow_table())
			return NULL;
		row = n_rows++;
		rows[row].generation = 1;
	}
	rows[row].object = object;
	return (void *)(uintptr_t)((uint64_t)rows[row].generation << 32 | (uint64_t)(row + 1) << KIND_BITS | (uint64_t)kind);
}

static struct row *find_row(const void *handle)
{
	uint64_t value = (uintptr_t)handle;
	uint32_t number = (uint32_t)value >> KIND_BITS;

	if (!number || number > n_rows)
		return NULL;
	return rows[number - 1].generation == value >> 32 ? &rows[number - 1] : NULL;
}

void *soft_handle_find(enum handle_kind kind, const void *handle)
{
	uint64_t value = (uintptr_t)handle;
	struct row *row = find_row(handle);

	return row && (value & ((1u << KIND_BITS) - 1)) == (uint64_t)kind ? row->object : NULL;
}

bool soft_handle_was(enum handle_kind kind, const void *handle)
{
	const uint64_t value = (uintptr_t)handle;
	const uint32_t number = (uint32_t)value >> KIND_BITS;

	return number && number <= n_rows && (value & ((1u << KIND_BITS) - 1)) == (uint64_t)kind &&
	       value >> 32 < rows[number - 1].generation && value >> 32;
}

void soft_handle_free(const void *handle)
{
	struct row *row = find_row(handle);

	if (!row || !row->object)
		return;
	row->object = NULL;
	row->generation++;
	row->next_free = first_free;
	first_free = (uint32_t)(row - rows) + 1;
}
