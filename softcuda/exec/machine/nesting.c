/* nesting.c — the lock and the parameter buffers that a machine needs for launches from kernels. */
#include <stdlib.h>
#include <sys/mman.h>

#include "softcuda/exec/machine/nest_internal.h"

static struct nesting *create_nesting(gpul_exec_machine *m)
{
	struct nesting *g = calloc(1, sizeof *g);
	gpul_exec_range range = { .label = "parameters of launches by kernels" };

	if (!g)
		return NULL;
	g->n_slots = m->options.pending_launches;
	g->first_free = UINT32_MAX;
	range.bytes = (uint64_t)g->n_slots * PARAMS_BYTES;
	g->slot = calloc(g->n_slots, sizeof *g->slot);
	g->slots = mmap(NULL, range.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!g->slot || g->slots == MAP_FAILED)
		goto free_slots;
	range.base = (uintptr_t)g->slots;
	if (gpul_exec_memory_add(m->memory, &range, NULL))
		goto free_slots;
	pthread_mutex_init(&g->lock, NULL);
	return g;
free_slots:
	if (g->slots != MAP_FAILED)
		munmap(g->slots, range.bytes);
	free(g->slot);
	free(g);
	return NULL;
}

struct nesting *gpul_nesting_of(gpul_exec_machine *m)
{
	struct nesting *g = atomic_load(&m->nesting);

	if (g)
		return g;
	pthread_mutex_lock(&m->lock);
	g = atomic_load(&m->nesting);
	if (!g) {
		g = create_nesting(m);
		atomic_store(&m->nesting, g);
	}
	pthread_mutex_unlock(&m->lock);
	return g;
}

void gpul_nesting_destroy(gpul_exec_machine *m)
{
	struct nesting *g = atomic_load(&m->nesting);

	if (!g)
		return;
	gpul_exec_program_destroy(g->copies);
	if (g->texts) {
		gpul_exec_memory_remove(m->memory, (uintptr_t)g->texts);
		free(g->texts);
	}
	gpul_exec_memory_remove(m->memory, (uintptr_t)g->slots);
	munmap(g->slots, (size_t)g->n_slots * PARAMS_BYTES);
	pthread_mutex_destroy(&g->lock);
	free(g->slot);
	free(g);
}

bool gpul_exec_machine_set_pending_launches(gpul_exec_machine *m, uint32_t n)
{
	bool set;

	pthread_mutex_lock(&m->lock);
	set = !atomic_load(&m->nesting);
	if (set)
		m->options.pending_launches = n ? n : PENDING_LAUNCHES;
	pthread_mutex_unlock(&m->lock);
	return set;
}

void *gpul_nesting_take_slot(struct nesting *g, gpul_exec_memory *memory, const gpul_exec_launch_config *config)
{
	uint32_t row = UINT32_MAX;
	uint8_t *params;

	pthread_mutex_lock(&g->lock);
	if (g->first_free != UINT32_MAX) {
		row = g->first_free;
		g->first_free = g->slot[row].next_free;
	} else if (g->n_fresh < g->n_slots) {
		row = g->n_fresh++;
	}
	if (row != UINT32_MAX) {
		g->slot[row].prepared = true;
		g->slot[row].config = *config;
	}
	pthread_mutex_unlock(&g->lock);
	if (row == UINT32_MAX)
		return NULL;
	params = g->slots + (size_t)row * PARAMS_BYTES;
	/* tells observers that the buffer is new memory, unrelated to its previous use */
	gpul_exec_memory_written(memory, (uintptr_t)params, 0, PARAMS_BYTES);
	return params;
}

bool gpul_nesting_claim_slot(struct nesting *g, uint64_t params, gpul_exec_launch_config *config)
{
	const uint64_t offset = params - (uintptr_t)g->slots, row = offset / PARAMS_BYTES;
	bool prepared;

	if (offset % PARAMS_BYTES || row >= g->n_slots)
		return false;
	pthread_mutex_lock(&g->lock);
	prepared = g->slot[row].prepared;
	if (prepared) {
		*config = g->slot[row].config;
		config->params = g->slots + offset;
		g->slot[row].prepared = false;
	}
	pthread_mutex_unlock(&g->lock);
	return prepared;
}

void gpul_nesting_free_slot(struct nesting *g, const void *params)
{
	const uint32_t row = (uint32_t)((size_t)((const uint8_t *)params - g->slots) / PARAMS_BYTES);

	g->slot[row].prepared = false;
	g->slot[row].next_free = g->first_free;
	g->first_free = row;
}
