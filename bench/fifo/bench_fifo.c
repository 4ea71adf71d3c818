/* bench_fifo.c — measures the CPU's end of the proxy FIFO: the time to poll, handle (trivially) and release a trigger, in ns.
 *
 *     bench_fifo [--runs N] [--batch N] [--producers N]
 *
 * A row for each shape (slots and lanes) of the FIFO; a column has the best of the runs:
 *     full    all slots are filled before the measurement, so only the reading of triggers is timed
 *     runs    like "full", but gpul_fifo_poll_run() reads the triggers without a copy; a release for each run of slots
 *     fed     other threads fill the slots as kernels do; each thread fills a part of the lanes
 *     one     one trigger in a random lane, all other lanes empty, so that all lanes are polled
 *     empty   a poll that finds no trigger
 *     reading for comparison, only the loads that read the filled slots
 * The FIFO is in ordinary memory.  Writes of a GPU do not pass through the same caches as those of a CPU core, so "fed" only
 * approximates `gpuload fifo bench`. */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "core/clock.h"
#include "proxy/fifo.h"
#include "tests/proxy/fifo/pusher.h"

enum { MAX_BATCH = 4096, MAX_PRODUCERS = 64, FULL_TRIGGERS = 1 << 20, FED_TRIGGERS = 1 << 22, ROUNDS = 200, TRIGGERS_PER_ROUND = 64 };

static const gpul_fifo_shape shapes[] = {
	{ 1, 1 },    { 128, 1 },   { 512, 1 },   { 65536, 1 },   { 64, 8 },       { 128, 128 },
	{ 512, 64 }, { 512, 512 }, { 4096, 64 }, { 65536, 512 }, { 65536, 4096 },
};

struct bench {
	void *area;
	gpul_fifo *fifo;
	struct pusher *pushers; /* one pusher for each lane */
	gpul_fifo_item *items;
	unsigned batch, producers, runs;
	uint64_t sum; /* sum of the words, computed by the trivial handler */
};

struct producer {
	pthread_t thread;
	struct bench *bench;
	unsigned first, step; /* this thread fills the lanes first, first + step, ... */
	uint64_t n;           /* number of triggers for each lane */
};

static unsigned handle_batch(struct bench *b)
{
	const unsigned n = gpul_fifo_poll(b->fifo, b->items, b->batch);

	for (unsigned i = 0; i < n; i++)
		b->sum += b->items[i].word[0];
	gpul_fifo_release(b->fifo);
	return n;
}

static void handle_all(struct bench *b, uint64_t n)
{
	for (unsigned idle = 1; n > 0; idle++) {
		const unsigned took = handle_batch(b);

		n -= took;
		if (took)
			idle = 0;
		else if (idle % 1024 == 0) /* the producer thread may need this core */
			sched_yield();
	}
}

static void fill_slots(struct bench *b, gpul_fifo_shape shape)
{
	for (unsigned lane = 0; lane < shape.lanes; lane++)
		while (pusher_push(&b->pushers[lane], lane, 1))
			;
}

/* The time of the fastest round so far, which other processes hardly affect, and the start of the current round. */
struct best {
	double ns;
	uint64_t start;
};

static void begin_round(struct best *b)
{
	b->start = gpul_clock_ns();
}

static void end_round(struct best *b, unsigned n)
{
	keep_least(&b->ns, (double)(gpul_clock_ns() - b->start) / n);
}

static double full_ns(struct bench *b, gpul_fifo_shape shape)
{
	struct best best = { 0 };

	for (uint64_t n = 0; n < FULL_TRIGGERS; n += shape.slots) {
		fill_slots(b, shape);
		begin_round(&best);
		handle_all(b, shape.slots);
		end_round(&best, shape.slots);
	}
	return best.ns;
}

/* Like full_ns(), but reads the triggers in place. */
static double runs_ns(struct bench *b, gpul_fifo_shape shape)
{
	struct best best = { 0 };

	for (uint64_t n = 0; n < FULL_TRIGGERS; n += shape.slots) {
		fill_slots(b, shape);
		begin_round(&best);
		for (unsigned left = shape.slots; left > 0;) {
			gpul_fifo_run run = { 0 };

			left -= gpul_fifo_poll_run(b->fifo, &run, b->batch);
			for (unsigned i = 0; i < run.n; i++)
				b->sum += run.triggers[i].word[0] ^ run.lap;
			gpul_fifo_release_lane(b->fifo, run.lane, run.position + run.n);
		}
		end_round(&best, shape.slots);
		gpul_fifo_release(b->fifo);
	}
	return best.ns;
}

static double read_ns(struct bench *b, gpul_fifo_shape shape)
{
	const struct gpul_trigger *slots = b->pushers[0].slots;
	struct best best = { 0 };

	for (uint64_t n = 0; n < FULL_TRIGGERS; n += shape.slots) {
		fill_slots(b, shape);
		begin_round(&best);
		for (unsigned i = 0; i < shape.slots; i++)
			b->sum += __atomic_load_n(&slots[i].word[0], __ATOMIC_ACQUIRE) +
				  __atomic_load_n(&slots[i].word[1], __ATOMIC_ACQUIRE);
		end_round(&best, shape.slots);
		handle_all(b, shape.slots);
	}
	return best.ns;
}

static double empty_ns(struct bench *b)
{
	struct best best = { 0 };

	for (unsigned round = 0; round < ROUNDS; round++) {
		begin_round(&best);
		for (unsigned i = 0; i < TRIGGERS_PER_ROUND; i++)
			handle_batch(b);
		end_round(&best, TRIGGERS_PER_ROUND);
	}
	return best.ns;
}

static double one_ns(struct bench *b, gpul_fifo_shape shape)
{
	struct best best = { 0 };
	uint32_t random = 1;

	for (unsigned round = 0; round < ROUNDS; round++) {
		begin_round(&best);
		for (unsigned i = 0; i < TRIGGERS_PER_ROUND; i++) {
			random = random * 1664525 + 1013904223;
			pusher_push(&b->pushers[(random >> 8) & (shape.lanes - 1)], i, 1);
			handle_all(b, 1);
		}
		end_round(&best, TRIGGERS_PER_ROUND);
	}
	return best.ns;
}

static void *push_triggers(void *context)
{
	struct producer *p = context;
	struct bench *b = p->bench;
	const unsigned lanes = gpul_fifo_shape_of(b->fifo).lanes;
	uint64_t left = p->n;

	while (left > 0) {
		const uint64_t before = left;

		for (unsigned lane = p->first; left > 0 && lane < lanes; lane += p->step)
			for (unsigned i = 0; left > 0 && i < 16 && pusher_push(&b->pushers[lane], lane, 1); i++)
				left--;
		if (left == before)
			sched_yield();
	}
	return NULL;
}

static double fed_ns(struct bench *b, gpul_fifo_shape shape)
{
	const unsigned n_producers = b->producers < shape.lanes ? b->producers : shape.lanes;
	struct producer all[MAX_PRODUCERS];
	const uint64_t start = gpul_clock_ns(), laps = (uint64_t)shape.slots << 12, n = laps < FED_TRIGGERS ? laps : FED_TRIGGERS;
	uint64_t left = 0;

	for (unsigned i = 0; i < n_producers; i++) {
		all[i] = (struct producer){ .bench = b, .first = i, .step = n_producers, .n = n / n_producers };
		if (pthread_create(&all[i].thread, NULL, push_triggers, &all[i])) {
			fputs("bench_fifo: a thread could not be started\n", stderr);
			exit(1);
		}
		left += all[i].n;
	}
	handle_all(b, left);
	for (unsigned i = 0; i < n_producers; i++)
		pthread_join(all[i].thread, NULL);
	return (double)(gpul_clock_ns() - start) / (double)n;
}

enum { FULL, RUNS, FED, ONE, EMPTY, READ, N_COLUMNS };

static void measure_shape(struct bench *b, gpul_fifo_shape shape)
{
	double best[N_COLUMNS] = { 0 };

	for (unsigned run = 0; run < b->runs; run++) {
		const double now[N_COLUMNS] = { full_ns(b, shape), runs_ns(b, shape), fed_ns(b, shape),
						one_ns(b, shape),  empty_ns(b),       read_ns(b, shape) };

		for (int i = 0; i < N_COLUMNS; i++)
			keep_least(&best[i], now[i]);
	}
	printf("| %u | %u | %.2f | %.1f | %.2f | %.2f | %.0f | %.0f | %.2f |\n", shape.slots, shape.lanes, best[FULL], 1e3 / best[FULL],
	       best[RUNS], best[FED], best[ONE], best[EMPTY], best[READ]);
	fflush(stdout);
}

static bool bench_shape(struct bench *b, gpul_fifo_shape shape)
{
	const size_t bytes = gpul_fifo_area_bytes(&shape);
	gpul_error err = { 0 };

	b->area = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	b->pushers = calloc(shape.lanes, sizeof(*b->pushers));
	if (!b->area || !b->pushers || gpul_fifo_area_format(b->area, bytes, &shape, &err) ||
	    gpul_fifo_open(b->area, bytes, &b->fifo, &err)) {
		fprintf(stderr, "bench_fifo: %s\n", err.status ? err.text : "no memory");
		return false;
	}
	for (unsigned lane = 0; lane < shape.lanes; lane++)
		b->pushers[lane] = pusher_of(b->area, lane);
	measure_shape(b, shape);
	gpul_fifo_close(b->fifo);
	free(b->pushers);
	free(b->area);
	return true;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "runs", required_argument, NULL, 'r' },
					       { "batch", required_argument, NULL, 'b' },
					       { "producers", required_argument, NULL, 'p' },
					       { NULL, 0, NULL, 0 } };
	struct bench b = { .batch = 64, .producers = 1, .runs = 5 };
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;)
		if (opt == '?')
			good = false;
		else
			*(opt == 'r' ? &b.runs : opt == 'b' ? &b.batch : &b.producers) = (unsigned)strtoul(optarg, NULL, 10);
	if (!good || optind < argc || b.runs < 1 || b.batch < 1 || b.batch > MAX_BATCH || b.producers < 1 || b.producers > MAX_PRODUCERS) {
		fprintf(stderr, "usage: bench_fifo [--runs N] [--batch 1...%d] [--producers 1...%d]\n", MAX_BATCH, MAX_PRODUCERS);
		return 2;
	}
	b.items = calloc(b.batch, sizeof(*b.items));
	if (!b.items)
		return 1;
	puts("| slots | lanes | full, ns | M/s | runs, ns | fed, ns | one, ns | empty, ns | reading, ns |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
	for (size_t i = 0; good && i < sizeof(shapes) / sizeof(*shapes); i++)
		good = bench_shape(&b, shapes[i]);
	printf("\nsum %llu\n", (unsigned long long)b.sum);
	free(b.items);
	return !good;
}
