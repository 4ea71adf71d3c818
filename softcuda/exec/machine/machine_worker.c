/* machine_worker.c — a worker: a thread that executes blocks.
 *
 * A worker runs its resident blocks in turn; one turn of every block is a round. The worker starts another block when it has none, or
 * when its blocks only poll, because they may wait for a block that has not started. A launch has no more resident blocks than a GPU
 * holds (residency.c). When all blocks of the worker have polled without progress for several rounds, it yields the CPU, because the
 * blocks may wait for another thread on the same CPU. When all blocks only poll words that do not change, the worker sleeps between
 * rounds (rest.c). */
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "softcuda/exec/guard_internal.h"
#include "softcuda/exec/warp/warp_internal.h"

/* IDLE_TURNS: sched_yield() is called after this number of turns of polling warps in rounds without progress; a round without polling
 * warps counts as one turn.  With limits of 64 and 4 rounds, on one core, a FIFO push and its acknowledgement took 7.5 and 2.5 us
 * with one block, 4.7 and 1.0 us with 16; on two cores, there was no difference.  Turns are counted because a round of many polling
 * warps takes long: a hop in a ring of 8 processes on two cores (bench_ring), in which 512 threads per block poll, took 1,090 us with
 * 4 rounds and 120 us with 4 turns.  PATIENCE: another block is started after this number of rounds without progress.  SOON: a worker
 * with fewer resident blocks than this starts another block in each round in which all blocks poll; a worker with more does so only
 * every GROWTH_ROUNDS rounds, because its blocks usually wait for the CPU, and more blocks make rounds longer. */
enum { IDLE_TURNS = 4, PATIENCE = 256, SOON = 256, GROWTH_ROUNDS = 64 };

/* Pending launches from kernels start before further blocks of launches from the host; if more than MANY_NESTED are pending, they
 * start before further blocks of all other launches. */
enum { MANY_NESTED = 256 };

/* Remove a launch from the machine's list; the caller holds m->lock and a reference to the launch. */
static void unlist_launch(gpul_exec_machine *m, gpul_exec_launch *l)
{
	gpul_exec_launch *before = NULL;

	if (!l->listed)
		return;
	atomic_fetch_sub(&l->refs, 1); /* drops the list's reference; the caller holds another, so the launch is not freed here */
	for (gpul_exec_launch *at = m->first; at != l; at = at->next)
		before = at;
	if (before)
		before->next = l->next;
	else
		m->first = l->next;
	if (m->last == l)
		m->last = before;
	l->next = NULL;
	l->listed = false;
	if (l->depth)
		atomic_fetch_sub(&m->n_nested, 1);
}

/* Stop starting blocks of the current launch.  The launch stays in the list, because some of its blocks have not started. */
static void leave_current_launch(struct worker *k)
{
	gpul_launch_unref(k->current);
	k->current = NULL;
}

static void drop_current_launch(struct worker *k)
{
	gpul_exec_machine *m = k->machine;

	pthread_mutex_lock(&m->lock);
	unlist_launch(m, k->current);
	pthread_mutex_unlock(&m->lock);
	leave_current_launch(k);
}

/* End launches that were stopped before all their blocks had started. */
static void end_stopped_launches(gpul_exec_machine *m)
{
	gpul_exec_launch *l;
	bool all = atomic_load(&m->quits);

	atomic_store(&m->stops, false);
	do {
		pthread_mutex_lock(&m->lock);
		for (l = m->first; l && !all && !atomic_load(&l->stop); l = l->next)
			;
		if (l) {
			atomic_fetch_add(&l->refs, 1);
			unlist_launch(m, l);
		}
		pthread_mutex_unlock(&m->lock);
		if (l) {
			gpul_exec_fault fault = { .kind = GPUL_EXEC_ABORTED, .text = "the machine was destroyed" };

			gpul_launch_fault(l, &fault); /* has no effect if the launch already has a fault */
			gpul_launch_skip_rest(l);
			gpul_launch_unref(l);
		}
	} while (l);
}

/* Find a launch that may have one more resident block.  The caller holds m->lock. */
static gpul_exec_launch *launch_with_room(gpul_exec_machine *m)
{
	gpul_exec_launch *l = m->first;

	while (l && !gpul_launch_has_room(l))
		l = l->next;
	return l;
}

/* Find the next block to start, in k->current or in another launch, which then becomes k->current.  *index receives the index of the
 * block, or of the first block of its cluster.  Returns false if no launch has a block that may start. */
static bool next_block(struct worker *k, uint64_t *index)
{
	gpul_exec_machine *m = k->machine;

	for (;;) {
		const uint64_t n_nested = atomic_load_explicit(&m->n_nested, memory_order_relaxed);

		if (k->current && (!gpul_launch_has_room(k->current) || (n_nested && (!k->current->depth || n_nested > MANY_NESTED))))
			leave_current_launch(k);
		if (!k->current) {
			pthread_mutex_lock(&m->lock);
			k->current = launch_with_room(m);
			if (k->current)
				atomic_fetch_add(&k->current->refs, 1);
			pthread_mutex_unlock(&m->lock);
			if (!k->current)
				return false;
		}
		if (atomic_load(&k->current->stop))
			gpul_launch_skip_rest(k->current);
		*index = atomic_fetch_add(&k->current->next_block, k->current->cluster_blocks);
		if (*index < k->current->n_blocks)
			return true;
		drop_current_launch(k);
	}
}

static bool room_for_resident(struct worker *k)
{
	unsigned capacity = k->resident_capacity ? 2 * k->resident_capacity : 2 * GPUL_EXEC_CLUSTER_BLOCKS;
	struct block **grown;

	if (k->n_resident + GPUL_EXEC_CLUSTER_BLOCKS <= k->resident_capacity)
		return true;
	grown = realloc(k->resident, capacity * sizeof *grown);
	if (!grown)
		return false;
	k->resident = grown;
	k->resident_capacity = capacity;
	return true;
}

/* Create all blocks of the cluster whose first block has this index; false: out of memory. */
static bool create_cluster(struct worker *k, struct gpul_exec_launch *l, uint64_t index)
{
	const unsigned first = k->n_resident, n = l->cluster_blocks;
	struct cluster *c = n > 1 ? gpul_cluster_create(l) : NULL;

	if (!room_for_resident(k) || (n > 1 && !c)) {
		free(c);
		return false;
	}
	for (unsigned rank = 0; rank < n; rank++) {
		struct block *b = gpul_block_create(k, l, index + rank);

		if (!b) {
			if (c && !rank)
				free(c);
			while (k->n_resident > first)
				gpul_block_release(k->resident[--k->n_resident]);
			return false;
		}
		if (c)
			gpul_cluster_add(c, b, rank);
		k->resident[k->n_resident++] = b;
	}
	for (unsigned m = first; m < k->n_resident; m++)
		EACH_OBSERVER(o, k->machine, block_begins)
	o->block_begins(o, k->resident[m]);
	return true;
}

/* Start the next block, or all blocks of the next cluster.  Returns false if none can be started. */
static bool start_block(struct worker *k)
{
	gpul_exec_fault fault = { .kind = GPUL_EXEC_NO_MEMORY, .text = "no memory for a block's registers and local memory" };
	gpul_exec_launch *l;
	uint64_t index, n_listed = atomic_load(&k->machine->n_listed);

	if (!next_block(k, &index)) {
		k->tried = n_listed;
		return false;
	}
	l = k->current;
	if (create_cluster(k, l, index))
		return true;
	gpul_launch_fault(l, &fault);
	gpul_launch_skip_rest(l);
	gpul_launch_blocks_ended(l, l->cluster_blocks);
	return true;
}

static void end_block(struct worker *k, unsigned n, bool faulted)
{
	struct block *b = k->resident[n];
	gpul_exec_launch *l = b->launch;

	EACH_OBSERVER(o, k->machine, block_ends)
	o->block_ends(o, b);
	gpul_block_release(b);
	k->resident[n] = k->resident[--k->n_resident];
	k->tried = 0; /* makes next_block() search again, because another block may become resident now */
	if (faulted)
		gpul_launch_skip_rest(l);
	gpul_launch_blocks_ended(l, 1);
}

/* Drop the blocks of a launch that an observer wants to run again. */
static void begin_again(struct worker *k, gpul_exec_launch *l)
{
	for (unsigned n = 0; n < k->n_resident;) {
		struct block *b = k->resident[n];

		if (b->launch != l) {
			n++;
			continue;
		}
		EACH_OBSERVER(o, k->machine, block_ends)
		o->block_ends(o, b);
		gpul_block_release(b);
		k->resident[n] = k->resident[--k->n_resident];
	}
	k->tried = 0;
	gpul_launch_begin_again(l, true);
}

/* The result of one turn of every block.  waits: all blocks polled, and none made progress; quiet: in addition, no polled word changed. */
struct round {
	bool progressed, polls, waits, quiet;
	unsigned n_repolls; /* number of warp turns in which the warp loaded the same word again */
};

struct turn {
	struct block *block;
	enum block_result result;
};

static void run_block(void *turn)
{
	struct turn *t = turn;

	t->result = gpul_block_run(t->block);
}

static enum block_result run_turn(struct worker *k, struct block *b)
{
	struct turn turn = { .block = b };
	uint64_t address;

	/* First increment turns, then read the table's generation: gpul_exec_machine_settle() relies on this order. */
	atomic_fetch_add(&k->turns, 1);
	while (atomic_load(&k->machine->paused)) {
		atomic_fetch_add(&k->turns, 1);
		usleep(50);
		atomic_fetch_add(&k->turns, 1);
	}
	gpul_range_cache_refresh(&k->cache[b->launch->device]);
	if (!gpul_guarded(k->machine->memory, run_block, &turn, &address)) {
		gpul_fault_pages(b, address);
		turn.result = BLOCK_FAULT;
	}
	atomic_fetch_add(&k->turns, 1);
	return turn.result;
}

static struct round run_residents(struct worker *k)
{
	struct round round = { .waits = true, .quiet = true };

	for (unsigned n = 0; n < k->n_resident;) {
		struct block *b = k->resident[n];
		bool stopped = atomic_load_explicit(&b->launch->stop, memory_order_relaxed);
		enum block_result r = stopped ? BLOCK_FAULT : run_turn(k, b);

		if (atomic_load_explicit(&b->launch->again, memory_order_relaxed) && !atomic_load(&k->machine->quits)) {
			begin_again(k, b->launch);
			round.progressed = true;
			n = 0;
		} else if (r == BLOCK_YIELDS) {
			round.progressed |= b->progressed;
			round.polls |= b->polls;
			round.n_repolls += b->n_repolls;
			round.waits &= b->polls && !b->progressed;
			round.quiet &= b->quiet;
			n++;
		} else {
			round.progressed = true;
			round.waits = round.quiet = false;
			end_block(k, n, r == BLOCK_FAULT);
		}
	}
	return round;
}

static void stop_residents(struct worker *k)
{
	gpul_exec_fault fault = { .kind = GPUL_EXEC_ABORTED, .text = "the machine was destroyed" };

	for (unsigned n = 0; n < k->n_resident; n++)
		gpul_launch_fault(k->resident[n]->launch, &fault);
}

/* Sleep until there is a launch to run or to stop.  Returns false if the machine is being destroyed. */
static bool wait_for_work(struct worker *k)
{
	gpul_exec_machine *m = k->machine;
	bool quits, full;

	pthread_mutex_lock(&m->lock);
	while (!m->first && !atomic_load(&m->quits) && !atomic_load(&m->stops)) {
		m->n_sleeping++;
		pthread_cond_wait(&m->work, &m->lock);
		m->n_sleeping--;
	}
	quits = atomic_load(&m->quits) && !m->first;
	full = m->first && !launch_with_room(m);
	pthread_mutex_unlock(&m->lock);
	if (full) /* nothing wakes this worker when one more block may become resident, so it polls */
		usleep(1000);
	return !quits;
}

/* Start more blocks if the resident ones have made no progress for some rounds.  Returns false if none was started. */
static bool start_more_blocks(struct worker *k, const struct round *round, unsigned rounds)
{
	const bool waits = round->polls && !round->progressed, late = rounds % GROWTH_ROUNDS == GROWTH_ROUNDS - 1;
	unsigned n;

	if (k->tried == atomic_load(&k->machine->n_listed) && !late)
		return false;
	if (!waits && rounds % PATIENCE != PATIENCE - 1)
		return false;
	n = k->n_resident < SOON ? 1 : waits && late ? k->n_resident / 2 : 0;
	for (unsigned i = 0; i < n; i++)
		if (!start_block(k))
			return i;
	return n;
}

void *gpul_worker_main(void *worker)
{
	struct worker *k = worker;
	gpul_exec_machine *m = k->machine;
	unsigned idle = 0, rounds = 0;

	prctl(PR_SET_TIMERSLACK, 1); /* otherwise the default timer slack makes each sleep 50 us longer */
	for (;;) {
		struct round round;

		if (atomic_load(&m->stops) || atomic_load(&m->quits)) {
			end_stopped_launches(m);
			if (atomic_load(&m->quits))
				stop_residents(k);
		}
		if (!k->n_resident && !start_block(k)) {
			if (!wait_for_work(k))
				break;
			continue;
		}
		round = run_residents(k);
		rounds = round.progressed ? 0 : rounds + 1;
		if (!round.waits)
			atomic_fetch_add_explicit(&k->n_active_rounds, 1, memory_order_relaxed);
		else if (rounds % GROWTH_ROUNDS == 0)
			gpul_worker_check_stuck(k);
		if (k->n_resident && start_more_blocks(k, &round, rounds))
			continue;
		if (!round.quiet)
			k->quiet_ns = 0;
		idle = round.progressed ? 0 : idle + (round.n_repolls ? round.n_repolls : 1);
		if (idle >= IDLE_TURNS) {
			gpul_worker_rest(k, round.quiet);
			idle = 0;
		}
	}
	if (k->current)
		drop_current_launch(k);
	return NULL;
}
