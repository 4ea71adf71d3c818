/* storage.c — memory that a program owns: allocations that are freed with it, its variables, and its constants (lists of operands, and
 * immediates; equal immediates are stored once, as 32 copies, one per lane). */
#include <stdlib.h>
#include <sys/mman.h>

#include "softcuda/exec/exec_arena_internal.h"
#include "softcuda/exec/decode/decode_internal.h"

enum { SLOT_ALIGN = 64, BLOCK_BYTES = 1 << 18 };

void *gpul_program_alloc(struct gpul_exec_program *p, size_t bytes, gpul_error *err)
{
	void *block;

	if (p->n_blocks == p->blocks_capacity) {
		size_t capacity = p->blocks_capacity ? 2 * p->blocks_capacity : 64;
		void **grown = realloc(p->blocks, capacity * sizeof *grown);

		if (!grown)
			goto no_memory;
		p->blocks = grown;
		p->blocks_capacity = capacity;
	}
	block = calloc(1, bytes ? bytes : 1);
	if (!block)
		goto no_memory;
	p->blocks[p->n_blocks++] = block;
	return block;
no_memory:
	gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a program (%zu bytes)", bytes);
	return NULL;
}

/* Append a block of zeroed pages that has room for at least `bytes` bytes. */
static bool add_variable_block(struct gpul_exec_program *p, size_t bytes, size_t align)
{
	const size_t n_bytes = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
	struct arena_block **b = gpul_array_push(&p->variable_blocks);
	uint64_t base;

	if (!b)
		return false;
	*b = gpul_arena_take(n_bytes, align, &base);
	if (!*b)
		return false;
	if (madvise((void *)(uintptr_t)base, n_bytes, MADV_DONTNEED))
		memset((void *)(uintptr_t)base, 0, n_bytes);
	p->next_variable = base;
	p->variables_end = base + n_bytes;
	return true;
}

bool gpul_program_take(struct gpul_exec_program *p, size_t bytes, size_t align, uint64_t *address, gpul_error *err)
{
	uint64_t at = (p->next_variable + align - 1) & ~(uint64_t)(align - 1);

	if (at > p->variables_end || bytes > p->variables_end - at) {
		if (!add_variable_block(p, bytes, align)) {
			gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the variables of a program (%zu bytes)", bytes);
			return false;
		}
		at = p->next_variable;
	}
	*address = at;
	p->next_variable = at + bytes;
	return true;
}

void gpul_program_give(struct gpul_exec_program *p)
{
	for (size_t k = 0; k < p->variable_blocks.n; k++)
		gpul_arena_give(p->variable_blocks.at[k]);
	gpul_array_free(&p->variable_blocks);
}

/* Reserve `bytes` bytes of the constants, and return their offset, a multiple of 64; UINT32_MAX: out of memory. */
static uint32_t reserve_consts(struct const_pool *c, size_t bytes)
{
	size_t at = (c->used + SLOT_ALIGN - 1) & ~(size_t)(SLOT_ALIGN - 1);
	size_t need = (at + bytes + SLOT_ALIGN - 1) & ~(size_t)(SLOT_ALIGN - 1), capacity = c->capacity ? c->capacity : 4096;
	uint8_t *grown;

	if (need > UINT32_MAX / 2 || (c->reserved && need > c->reserved))
		return UINT32_MAX;
	while (capacity < need)
		capacity *= 2;
	if (capacity > c->capacity) {
		grown = aligned_alloc(SLOT_ALIGN, capacity);
		if (!grown)
			return UINT32_MAX;
		memset(grown, 0, capacity);
		if (c->used)
			memcpy(grown, c->bytes, c->used);
		free(c->bytes);
		c->bytes = grown;
		c->capacity = capacity;
	}
	c->used = at + bytes;
	return (uint32_t)at;
}

static void broadcast(uint8_t *to, uint64_t bits, unsigned bytes)
{
	for (unsigned l = 0; l < LANES; l++)
		memcpy(to + l * bytes, &bits, bytes);
}

/* Hash an immediate.  An entry of the hash table is the constant's offset (a multiple of 64) + its width in bytes + 1; 0: empty. */
static size_t hash_const(uint64_t bits, unsigned bytes)
{
	return (size_t)((bits + bytes) * 0x9e3779b97f4a7c15u >> 17);
}

static uint64_t const_bits(const struct const_pool *c, uint32_t offset, unsigned bytes)
{
	uint64_t bits = 0;

	memcpy(&bits, c->bytes + offset, bytes ? bytes : 4);
	return bits;
}

static bool grow_const_table(struct const_pool *c)
{
	size_t size = c->table_size ? 2 * c->table_size : 256;
	uint32_t *table = calloc(size, sizeof *table);

	if (!table)
		return false;
	for (size_t k = 0; k < c->table_size; k++) {
		uint32_t entry = c->table[k];
		unsigned bytes;
		size_t at;

		if (!entry)
			continue;
		bytes = (entry - 1) & 15;
		at = hash_const(const_bits(c, (entry - 1) & ~15u, bytes), bytes);
		while (table[at & (size - 1)])
			at++;
		table[at & (size - 1)] = entry;
	}
	free(c->table);
	c->table = table;
	c->table_size = size;
	return true;
}

uint32_t gpul_consts_broadcast(struct const_pool *c, uint64_t bits, unsigned bytes)
{
	size_t at;
	uint32_t offset;

	if (!bytes)
		bits = bits ? ALL_LANES : 0;
	else if (bytes < 8)
		bits &= (1ull << (8 * bytes)) - 1;
	if (2 * (c->n_entries + 1) > c->table_size && !grow_const_table(c))
		return UINT32_MAX;
	for (at = hash_const(bits, bytes); c->table[at & (c->table_size - 1)]; at++) {
		uint32_t entry = c->table[at & (c->table_size - 1)] - 1;

		if ((entry & 15) == bytes && const_bits(c, entry & ~15u, bytes) == bits)
			return entry & ~15u;
	}
	offset = reserve_consts(c, bytes ? (size_t)bytes * LANES : 4);
	if (offset == UINT32_MAX)
		return offset;
	if (bytes)
		broadcast(c->bytes + offset, bits, bytes);
	else
		memcpy(c->bytes + offset, &bits, 4);
	c->table[at & (c->table_size - 1)] = (offset | bytes) + 1;
	c->n_entries++;
	return offset;
}

uint32_t gpul_consts_list(struct const_pool *c, const opref *list, unsigned n)
{
	uint32_t at = reserve_consts(c, n * sizeof *list);

	if (at != UINT32_MAX)
		memcpy(c->bytes + at, list, n * sizeof *list);
	return at;
}

bool gpul_consts_reserve(struct const_pool *c, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return false;
	c->bytes = at;
	c->capacity = c->reserved = bytes;
	return true;
}

void gpul_consts_free(struct const_pool *c)
{
	if (c->reserved)
		munmap(c->bytes, c->reserved);
	else
		free(c->bytes);
	free(c->table);
}
