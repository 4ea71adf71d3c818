/* bench_proxy.c — measures the time that the proxy thread adds to the polling of a FIFO, its cost when idle, and the
 * latency due to its sleep.
 *
 *     bench_proxy [--runs N] [--idle-ms N]
 *
 * First table: nanoseconds for each trigger, best of the runs.  All slots are filled before the measurement, and the
 * handler sums one word.  "bare" is a loop of poll, the same sum, and release; the other columns use the proxy thread, with
 * triggers of one kind, and of two kinds that alternate every 16, 4 or 1 triggers.
 *
 * Second table: the CPU time of an idle proxy; then the time from a push until the handler is called, for triggers at
 * random intervals whose mean is given.  A CPU thread pushes, so the time on the bus is not included.  The pusher runs on
 * the first available CPU, the proxy on the last. */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/timed.h"
#include "cli/lib/bench/samples.h"
#include "core/clock.h"
#include "proxy/proxy.h"
#include "tests/proxy/fifo/pusher.h"

enum { GATE = 15, SAMPLES = 1000 };

/* clang-format off */
static const gpul_fifo_shape shapes[] = { { 4096, 1 }, { 65536, 1 }, { 4096, 64 }, { 65536, 512 } };
static const unsigned batches[] = { 1, 8, 64, 256, 1024 };
static const unsigned runs_of[] = { 1u << 31, 16, 4, 1 };
static const struct {
	uint64_t spin_ns, sleep_ns;
} backing_off[] = {
	{ GPUL_PROXY_SPIN_ALWAYS, 0 }, { 0, 0 }, { 50000, 50000 }, { 50000, 100000 },
	{ 1000, 200000 }, { 1000, 1000000 }, { 1000, 10000000 },
};
/* clang-format on */
static const struct {
	uint64_t ns;
	unsigned n;
} paces[] = { { 100000, SAMPLES }, { 1000000, 300 }, { 20000000, 25 } };
enum {
	N_SHAPES = sizeof shapes / sizeof *shapes,
	N_BATCHES = sizeof batches / sizeof *batches,
	N_RUNS_OF = sizeof runs_of / sizeof *runs_of,
	N_PACES = sizeof paces / sizeof *paces,
	N_BACKING_OFF = sizeof backing_off / sizeof *backing_off,
};

struct bench {
	void *area;
	gpul_fifo *fifo;
	struct pusher *pushers; /* one pusher for each lane */
	unsigned runs, idle_ms;
	int last_cpu;     /* the CPU on which the proxy runs */
	atomic_bool open; /* the handler wait_at_gate() waits until this is set */
	uint64_t n, sum, begun_ns, ended_ns;
	uint64_t latency_ns[SAMPLES];
	atomic_uint n_latencies;
};

static gpul_status open_fifo(struct bench *b, gpul_fifo_shape shape, gpul_error *err)
{
	const size_t bytes = (gpul_fifo_area_bytes(&shape) + 511) / 512 * 512;
	gpul_status st;

	b->area = aligned_alloc(512, bytes);
	b->pushers = calloc(shape.lanes, sizeof(*b->pushers));
	if (!b->area || !b->pushers)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u slots", shape.slots);
	st = gpul_fifo_area_format(b->area, bytes, &shape, err);
	st = st ? st : gpul_fifo_open(b->area, bytes, &b->fifo, err);
	for (unsigned i = 0; !st && i < shape.lanes; i++)
		b->pushers[i] = pusher_of(b->area, i);
	return st;
}

static void close_fifo(struct bench *b)
{
	gpul_fifo_close(b->fifo);
	free(b->area);
	free(b->pushers);
	b->fifo = NULL;
	b->area = NULL;
	b->pushers = NULL;
}

/* ---- slots filled in advance ------------------------------------------------------------------------- */

static void sum_words(struct bench *b, const gpul_fifo_item *items, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		b->sum += items[i].word[0];
	b->n -= n;
	if (b->n == 0)
		b->ended_ns = gpul_clock_ns();
}

static gpul_status sum_handler(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	(void)fifo, (void)err;
	sum_words(context, items, n);
	return GPUL_OK;
}

static gpul_status wait_at_gate(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct bench *b = context;

	(void)fifo, (void)items, (void)n, (void)err;
	while (!atomic_load(&b->open))
		;
	b->begun_ns = gpul_clock_ns();
	return GPUL_OK;
}

/* Fill all slots with triggers whose kind alternates between 0 and 1 every `run` triggers. */
static void fill_slots(struct bench *b, gpul_fifo_shape shape, unsigned run)
{
	b->n = 0;
	for (unsigned lane = 0; lane < shape.lanes; lane++)
		while (pusher_push(&b->pushers[lane], lane, (uint64_t)(b->pushers[lane].next / run & 1) << GPUL_FIFO_KIND_SHIFT))
			b->n++;
}

static gpul_status run_proxy_once(struct bench *b, gpul_fifo_shape shape, unsigned batch, unsigned run, gpul_error *err)
{
	const gpul_proxy_desc desc = {
		.fifos = &b->fifo,
		.n_fifos = 1,
		.batch = batch,
		.pin = GPUL_PROXY_PIN_CPU,
		.pin_number = b->last_cpu,
		.kinds = { { sum_handler, b }, { sum_handler, b }, [GATE] = { wait_at_gate, b } },
	};
	gpul_proxy *p = NULL;
	gpul_status st;

	pusher_push(&b->pushers[0], 0, (uint64_t)GATE << GPUL_FIFO_KIND_SHIFT);
	fill_slots(b, shape, run);
	atomic_store(&b->open, false);
	st = gpul_proxy_start(&desc, &p, err);
	if (st)
		return st;
	atomic_store(&b->open, true);
	st = gpul_proxy_drain(p, -1, err);
	return gpul_proxy_stop(p, st ? NULL : err);
}

static void run_bare_once(struct bench *b, gpul_fifo_shape shape, unsigned batch)
{
	static gpul_fifo_item items[GPUL_PROXY_MAX_BATCH];

	fill_slots(b, shape, 1u << 31);
	b->begun_ns = gpul_clock_ns();
	while (b->n > 0) {
		const unsigned n = gpul_fifo_poll(b->fifo, items, batch);

		sum_words(b, items, n);
		gpul_fifo_release(b->fifo);
	}
}

/* Return the best time for one trigger.  run: number of triggers after which the kind changes; 0: a bare loop without proxy. */
static gpul_status best_ns(struct bench *b, gpul_fifo_shape shape, unsigned batch, unsigned run, double *ns, gpul_error *err)
{
	gpul_status st = open_fifo(b, shape, err);

	*ns = 0;
	for (unsigned i = 0; !st && i < b->runs; i++) {
		if (run)
			st = run_proxy_once(b, shape, batch, run, err);
		else
			run_bare_once(b, shape, batch);
		keep_least(ns, (double)(b->ended_ns - b->begun_ns) / shape.slots);
	}
	close_fifo(b);
	return st;
}

static gpul_status print_throughput(struct bench *b, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	puts("| slots | lanes | batch | bare ns | one kind | runs of 16 | of 4 | of 1 |\n"
	     "|--:|--:|--:|--:|--:|--:|--:|--:|");
	for (int s = 0; s < N_SHAPES; s++)
		for (int i = 0; !st && i < N_BATCHES; i++) {
			double ns;

			st = best_ns(b, shapes[s], batches[i], 0, &ns, err);
			printf("| %u | %u | %u | %.2f |", shapes[s].slots, shapes[s].lanes, batches[i], ns);
			for (int r = 0; !st && r < N_RUNS_OF; r++) {
				st = best_ns(b, shapes[s], batches[i], runs_of[r], &ns, err);
				printf(" %.2f |", ns);
			}
			puts("");
		}
	return st;
}

/* ---- an idle thread, and occasional triggers ---------------------------------------------- */

static void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) }, NULL);
}

static gpul_status record_latency(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	const uint64_t now = gpul_clock_ns();
	struct bench *b = context;

	(void)fifo, (void)err;
	for (unsigned i = 0; i < n; i++) {
		const unsigned at = atomic_load(&b->n_latencies);

		b->latency_ns[at % SAMPLES] = now - items[i].word[0];
		atomic_store(&b->n_latencies, at + 1);
	}
	return GPUL_OK;
}

static void push_at_pace(struct bench *b, uint64_t ns, unsigned n)
{
	atomic_store(&b->n_latencies, 0);
	for (unsigned i = 0; i < n; i++) {
		sleep_ns(ns / 2 + (uint64_t)rand() % ns);
		while (!pusher_push(&b->pushers[0], gpul_clock_ns(), 0))
			;
	}
	while (atomic_load(&b->n_latencies) < n)
		;
	samples_sort_ns((int64_t *)b->latency_ns, n);
	printf(" %.1f, %.1f, %.1f |", (double)b->latency_ns[n / 2] * 1e-3, (double)b->latency_ns[n - 1 - n / 100] * 1e-3,
	       (double)b->latency_ns[n - 1] * 1e-3);
}

static void print_ns(uint64_t ns, uint64_t by_default)
{
	if (ns == GPUL_PROXY_SPIN_ALWAYS)
		printf("| always ");
	else
		printf("| %g us ", (double)(ns ? ns : by_default) * 1e-3);
}

static gpul_status measure_back_off(struct bench *b, uint64_t spin_ns, uint64_t max_sleep_ns, gpul_error *err)
{
	const gpul_proxy_desc desc = { .fifos = &b->fifo,
				       .n_fifos = 1,
				       .kinds[0] = { record_latency, b },
				       .spin_ns = spin_ns,
				       .max_sleep_ns = max_sleep_ns,
				       .pin = GPUL_PROXY_PIN_CPU,
				       .pin_number = b->last_cpu };
	gpul_proxy_stats from, to;
	gpul_proxy *p = NULL;
	gpul_status st = gpul_proxy_start(&desc, &p, err);

	if (st)
		return st;
	sleep_ns(50000000);
	gpul_proxy_get_stats(p, &from);
	sleep_ns((uint64_t)b->idle_ms * 1000000);
	gpul_proxy_get_stats(p, &to);
	const double s = (double)(to.elapsed_ns - from.elapsed_ns) * 1e-9;

	print_ns(spin_ns, GPUL_PROXY_SPIN_NS);
	print_ns(spin_ns == GPUL_PROXY_SPIN_ALWAYS ? spin_ns : max_sleep_ns, GPUL_PROXY_SLEEP_NS);
	printf("| %.1f | %.0f |", (double)(to.cpu_ns - from.cpu_ns) / s * 1e-6, (double)(to.sleeps - from.sleeps) / s);
	for (int i = 0; i < N_PACES; i++)
		push_at_pace(b, paces[i].ns, paces[i].n);
	gpul_proxy_get_stats(p, &to);
	printf(" %.0f | %.0f |\n", (double)to.late_ns * 1e-3, (double)to.longest_sleep_ns * 1e-3);
	return gpul_proxy_stop(p, err);
}

static gpul_status print_back_off(struct bench *b, gpul_error *err)
{
	gpul_status st = open_fifo(b, (gpul_fifo_shape){ 128, 1 }, err);

	puts("\n| spins | sleeps up to | idle: CPU ms/s | sleeps/s | push to handler us, every 100 us: p50, p99, max | every 1 ms | "
	     "every 20 ms | late us | longest sleep us |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
	for (int i = 0; !st && i < N_BACKING_OFF; i++)
		st = measure_back_off(b, backing_off[i].spin_ns, backing_off[i].sleep_ns, err);
	close_fifo(b);
	return st;
}

/* Pin this thread to the first CPU that it may use.  Returns the last CPU that it may use. */
static int pin_to_first_cpu(void)
{
	int first = 0, last = CPU_SETSIZE - 1;
	cpu_set_t may, one;

	CPU_ZERO(&one);
	if (pthread_getaffinity_np(pthread_self(), sizeof may, &may))
		return 0;
	while (!CPU_ISSET((size_t)first, &may))
		first++;
	while (!CPU_ISSET((size_t)last, &may))
		last--;
	CPU_SET((size_t)first, &one);
	pthread_setaffinity_np(pthread_self(), sizeof one, &one);
	return last;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "runs", required_argument, NULL, 'r' },
					       { "idle-ms", required_argument, NULL, 'i' },
					       { NULL, 0, NULL, 0 } };
	static struct bench b = { .runs = 11, .idle_ms = 300 };
	gpul_error err = { 0 };
	gpul_status st;
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'r')
			b.runs = (unsigned)atoi(optarg);
		else if (opt == 'i')
			b.idle_ms = (unsigned)atoi(optarg);
		else
			good = false;
	}
	if (!good || b.runs < 1 || b.runs > 1000 || b.idle_ms < 1 || b.idle_ms > 10000) {
		fputs("usage: bench_proxy [--runs 1...1000] [--idle-ms 1...10000]\n", stderr);
		return 2;
	}
	b.last_cpu = pin_to_first_cpu();
	st = print_throughput(&b, &err);
	st = st ? st : print_back_off(&b, &err);
	if (st)
		fprintf(stderr, "bench_proxy: %s\n", err.text);
	return st != GPUL_OK;
}
