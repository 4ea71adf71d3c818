/* machine_launch.c — creates a launch, counts its references, ends it, and waits for its end. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "softcuda/exec/warp/warp_internal.h"

void gpul_launch_destroy(gpul_exec_launch *l)
{
	if (l->workspace) {
		gpul_exec_memory_remove(l->machine->memory, (uintptr_t)l->workspace);
		free(l->workspace);
	}
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->ended_cond);
	if (atomic_load(&l->nest))
		l->nests->destroy(atomic_load(&l->nest));
	free(l->params);
	free(l);
}

/* Reserve 1 KiB of shared memory for the system, as a GPU does; cooperative groups store their barriers there.  The memory is after the
 * kernel's, and exists only if the program reads %reserved_smem_offset_*, or may do so in a function that is not decoded yet. */
static void reserve_shared(gpul_exec_launch *l, const struct gpul_exec_program *p)
{
	if (!p->reserves_shared)
		return;
	l->reserved_base = whole_shared_units(l->shared_bytes);
	l->shared_bytes = l->reserved_base + RESERVED_SMEM_BYTES;
}

/* Round a block's shared memory up to whole allocation units, as on a GPU, where an access after the last variable faults only if it
 * is beyond the last unit.  If an observer has exact_bounds, all accesses after the last variable fault. */
static void pad_shared(gpul_exec_launch *l)
{
	EACH_OBSERVER(o, l->machine, exact_bounds)
	return;
	l->shared_bytes = whole_shared_units(l->shared_bytes);
}

gpul_exec_launch *gpul_launch_create(gpul_exec_machine *m, const gpul_exec_launch_config *c)
{
	uint32_t param_bytes = c->kernel->info.param_bytes, align = c->kernel->dynamic_align;
	gpul_exec_launch *l = calloc(1, sizeof *l);
	pthread_condattr_t attr;

	if (!l)
		return NULL;
	l->params = aligned_alloc(64, ((size_t)param_bytes + 127) & ~(size_t)63);
	if (!l->params) {
		free(l);
		return NULL;
	}
	if (param_bytes)
		memcpy(l->params, c->params, param_bytes);
	l->machine = m;
	l->nests = m->nests;
	l->kernel = c->kernel;
	memcpy(l->grid, c->grid, sizeof l->grid);
	memcpy(l->block, c->block, sizeof l->block);
	l->cluster_blocks = 1;
	for (unsigned k = 0; k < 3; k++) {
		l->cluster[k] = c->cluster[k] ? c->cluster[k] : c->kernel->info.cluster[k] ? c->kernel->info.cluster[k] : 1;
		l->cluster_blocks *= l->cluster[k];
	}
	l->dynamic_bytes = c->dynamic_shared_bytes;
	l->dynamic_base = (c->kernel->info.shared_bytes + align - 1) & ~(align - 1);
	l->shared_bytes = program_shared_bytes(l);
	reserve_shared(l, c->kernel->code->program);
	pad_shared(l);
	l->grid_id = c->grid_id;
	l->device = c->device;
	l->order = c->order;
	l->cooperative = c->cooperative;
	l->depth = c->parent ? c->parent->depth + 1 : 0;
	l->n_blocks = (uint64_t)c->grid[0] * c->grid[1] * c->grid[2];
	l->max_resident = gpul_exec_max_resident_blocks(m, c->block[0] * c->block[1] * c->block[2], l->shared_bytes);
	l->done = c->done;
	l->done_user = c->done_user;
	atomic_init(&l->refs, 2); /* one reference of the caller, and one of the machine, which drops it when the launch has ended */
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->ended_cond, &attr);
	pthread_condattr_destroy(&attr);
	return l;
}

void gpul_launch_list(gpul_exec_launch *l)
{
	gpul_exec_machine *m = l->machine;

	if (l->depth) { /* launches from kernels come before their parents, so that fewer launches are pending */
		l->next = m->first;
		m->first = l;
		m->last = m->last ? m->last : l;
		atomic_fetch_add(&m->n_nested, 1);
	} else {
		if (m->last)
			m->last->next = l;
		else
			m->first = l;
		m->last = l;
	}
	l->listed = true;
	atomic_fetch_add(&l->refs, 1); /* the reference that the list holds; unlist_launch() in machine_worker.c drops it */
	atomic_fetch_add(&m->n_listed, 1);
}

void gpul_launch_again(gpul_exec_launch *l)
{
	atomic_store(&l->again, true);
}

/* Start a launch again that has no resident blocks.  The observer that requested this is serial, so no other worker has blocks. */
void gpul_launch_begin_again(gpul_exec_launch *l, bool abandoned)
{
	const gpul_exec_fault fault = { .kind = GPUL_EXEC_ABORTED, .text = "the launch begins again" };

	if (abandoned)
		EACH_OBSERVER(o, l->machine, launch_ends)
	o->launch_ends(o, l, &fault);
	pthread_mutex_lock(&l->lock);
	l->fault = (gpul_exec_fault){ 0 };
	pthread_mutex_unlock(&l->lock);
	atomic_store(&l->again, false);
	atomic_store(&l->stop, false);
	if (atomic_load(&l->nest))
		l->nests->begins_again(atomic_load(&l->nest));
	atomic_store(&l->n_ended, 0);
	atomic_store(&l->n_instructions, 0);
	EACH_OBSERVER(o, l->machine, launch_begins)
	o->launch_begins(o, l);
	atomic_store(&l->next_block, 0);
	pthread_mutex_lock(&l->machine->lock);
	if (!l->listed)
		gpul_launch_list(l);
	pthread_mutex_unlock(&l->machine->lock);
}

void gpul_launch_end(gpul_exec_launch *l)
{
	gpul_exec_fault fault;

	pthread_mutex_lock(&l->lock);
	fault = l->fault;
	pthread_mutex_unlock(&l->lock);
	EACH_OBSERVER(o, l->machine, launch_ends)
	o->launch_ends(o, l, &fault);
	if (atomic_load(&l->again) && !atomic_load(&l->machine->quits)) {
		gpul_launch_begin_again(l, false);
		return;
	}
	if (l->done)
		l->done(l->done_user, &fault);
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	pthread_cond_broadcast(&l->ended_cond);
	pthread_mutex_unlock(&l->lock);
	gpul_launch_unref(l);
}

void gpul_launch_blocks_ended(gpul_exec_launch *l, uint64_t n)
{
	uint64_t n_blocks = l->n_blocks; /* read now, because after the addition below another worker may free the launch */
	struct nest *nest;

	if (atomic_fetch_add(&l->n_ended, n) + n != n_blocks)
		return;
	nest = atomic_load(&l->nest);
	if (nest)
		l->machine->nests->blocks_ended(nest);
	else
		gpul_launch_end(l);
}

void gpul_launch_skip_rest(gpul_exec_launch *l)
{
	uint64_t next = atomic_exchange(&l->next_block, l->n_blocks);

	if (next < l->n_blocks)
		gpul_launch_blocks_ended(l, l->n_blocks - next);
}

static struct timespec deadline_after(int timeout_ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += timeout_ms / 1000;
	t.tv_nsec += timeout_ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000L;
	}
	return t;
}

bool gpul_exec_launch_wait(gpul_exec_launch *l, int timeout_ms, gpul_exec_fault *fault)
{
	struct timespec deadline = deadline_after(timeout_ms < 0 ? 0 : timeout_ms);
	int r = 0;
	bool ended;

	pthread_mutex_lock(&l->lock);
	while (!l->ended && r != ETIMEDOUT)
		r = timeout_ms < 0 ? pthread_cond_wait(&l->ended_cond, &l->lock)
				   : pthread_cond_timedwait(&l->ended_cond, &l->lock, &deadline);
	ended = l->ended;
	if (ended && fault)
		*fault = l->fault;
	pthread_mutex_unlock(&l->lock);
	return ended;
}

void gpul_launch_unref(gpul_exec_launch *l)
{
	if (atomic_fetch_sub(&l->refs, 1) == 1)
		gpul_launch_destroy(l);
}

void gpul_exec_launch_release(gpul_exec_launch *l)
{
	if (l)
		gpul_launch_unref(l);
}

uint64_t gpul_exec_launch_instructions(const gpul_exec_launch *l)
{
	return atomic_load(&l->n_instructions);
}
