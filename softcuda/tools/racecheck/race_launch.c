/* race_launch.c — numbers launches, keeps their descriptions for messages, and records which launches are ordered by streams. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdio.h>
#include <stdlib.h>

enum { CHUNK = 1024, MOST_CHUNKS = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct launch_info *_Atomic chunks[MOST_CHUNKS];
static _Atomic uint32_t n_launches = 1; /* starts at 1: number 0 means "no launch" */
static struct running {
	struct running *next;
	const gpul_exec_launch *l;
	uint32_t number;
} *running;

static struct launch_info *info_of(uint32_t number)
{
	struct launch_info *chunk = atomic_load_explicit(&chunks[number / CHUNK], memory_order_acquire);

	return chunk ? &chunk[number % CHUNK] : NULL;
}

const struct launch_info *race_launch_info(uint32_t launch)
{
	return info_of(launch);
}

static void copy_order(struct launch_info *info, const gpul_exec_order *order)
{
	const size_t bytes = order ? order->n * sizeof order->after[0] : 0;
	gpul_exec_order_fact *after = order ? malloc(bytes + 1) : NULL;

	if (!after)
		return;
	memcpy(after, order->after, bytes);
	info->order = *order;
	info->order.after = after;
}

/* Add a launch with the number n_launches; NULL: out of memory.  The caller holds the lock. */
static struct launch_info *next_launch(void)
{
	const uint32_t n = atomic_load(&n_launches);

	if (!chunks[n / CHUNK])
		atomic_store(&chunks[n / CHUNK], calloc(CHUNK, sizeof(struct launch_info)));
	return info_of(n);
}

void race_launch_begins(const gpul_exec_launch *l)
{
	struct running *r = malloc(sizeof *r);
	struct launch_info *info;

	if (!r)
		return;
	pthread_mutex_lock(&lock);
	info = next_launch();
	if (info) {
		copy_order(info, l->order);
		*r = (struct running){ .next = running, .l = l, .number = atomic_fetch_add(&n_launches, 1) };
		running = r;
		gpul_shown_name(l->kernel->info.name, info->kernel, sizeof info->kernel);
		memcpy(info->grid, l->grid, sizeof info->grid);
		memcpy(info->block, l->block, sizeof info->block);
	} else {
		free(r);
	}
	pthread_mutex_unlock(&lock);
}

void race_launch_ends(const gpul_exec_launch *l)
{
	struct running **at, *r;

	pthread_mutex_lock(&lock);
	for (at = &running; *at && (*at)->l != l; at = &(*at)->next)
		;
	r = *at;
	if (r)
		*at = r->next;
	pthread_mutex_unlock(&lock);
	free(r);
}

uint32_t race_copy_number(const struct host_move *m)
{
	struct launch_info *info;
	uint32_t number = 0;

	pthread_mutex_lock(&lock);
	info = next_launch();
	if (info) {
		copy_order(info, m->order);
		info->copy = true;
		snprintf(info->kernel, sizeof info->kernel, "a %s of %llu bytes", m->fill ? "fill" : "copy",
			 (unsigned long long)(m->row_bytes * m->n_rows * m->n_slices));
		number = atomic_fetch_add(&n_launches, 1);
	}
	pthread_mutex_unlock(&lock);
	return number;
}

uint32_t race_next_launch(void)
{
	return atomic_load_explicit(&n_launches, memory_order_relaxed);
}

uint32_t race_launch_number(const gpul_exec_launch *l)
{
	const struct running *r;
	uint32_t number;

	pthread_mutex_lock(&lock);
	for (r = running; r && r->l != l; r = r->next)
		;
	number = r ? r->number : 0;
	pthread_mutex_unlock(&lock);
	return number;
}

bool race_launch_before(uint32_t earlier, uint32_t later)
{
	const struct launch_info *a = info_of(earlier), *b = info_of(later);

	if (!a || !b || !a->order.after || !b->order.after)
		return earlier < later;
	return gpul_order_is_after(&b->order, &a->order);
}
