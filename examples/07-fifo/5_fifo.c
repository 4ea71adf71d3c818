/* 5_fifo.c — gpuload's FIFO: one queue with one polling thread; lanes and a proxy thread; time-outs and abort.
 *
 *     5_fifo [5_fifo.ptx]
 *
 * Read one_queue() and compare it with main() of step 4; then answer_letters() and lanes(), which use the FIFO as a
 * communication library does; then time_out_and_abort(). */
#include <stdio.h>

#include "core/clock.h"
#include "lesson.h"
#include "proxy/proxy.h"

enum { EACH = 64, ALL = EACH * THREADS };

static gpul_fifo *create_fifo(struct lesson *l, unsigned slots, unsigned lanes)
{
	const gpul_fifo_shape shape = { .slots = slots, .lanes = lanes };
	gpul_error err = { 0 };
	gpul_fifo *f;

	lesson_need(gpul_fifo_create(l->drv, GPUL_MEM_AUTO, 0, &shape, &f, &err), &err);
	return f;
}

/* ---- as in step 4: one queue of 8 slots, and a loop that reads it ---- */

static u64 read_all(gpul_fifo *f)
{
	u64 of_thread[THREADS] = { 0 }, n_bad = 0, n_taken = 0;
	gpul_fifo_item item[SLOTS];

	for (uint64_t since = 0; n_taken < ALL; lesson_wait(&since, "the next trigger")) {
		const unsigned n = gpul_fifo_poll(f, item, SLOTS);

		for (unsigned i = 0; i < n; i++)
			n_bad += item[i].position != n_taken++ || item[i].word[1] != of_thread[item[i].word[0]]++;
		gpul_fifo_release(f);
	}
	return n_bad;
}

static void one_queue(struct lesson *l)
{
	gpul_fifo *f = create_fifo(l, SLOTS, 1);
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	struct polls *polls = lesson_host(l, sizeof *polls);
	u64 n = EACH, n_bad, before = 0, total;
	uint64_t start, since = 0;

	lesson_start(l, "shared", THREADS, (struct lesson_arg[]){ ARG(fifo), ARG(polls), ARG(n) }, 3);
	for (; before < 100 * THREADS; lesson_wait(&since, "polls"))
		lesson_polls(polls, &before);
	printf("%u of %d threads polls over the bus: %llu polls so far\n", lesson_polls(polls, &before).n_threads, THREADS, before);
	puts("-- now the CPU reads");
	start = gpul_clock_ns();
	n_bad = read_all(f);
	lesson_join(l);
	lesson_polls(polls, &total);
	printf("%d sent, %d read, %llu out of order; %.1f polls and %.2f us for each\n", ALL, ALL, n_bad, (double)(total - before) / ALL,
	       (double)(gpul_clock_ns() - start) / 1e3 / ALL);
	gpul_fifo_close(f);
}

/* ---- a lane for each thread, and a proxy thread that answers ---- */

/* The handler of the proxy thread: reads the question of each trigger, and writes the answer. */
static gpul_status answer_letters(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct letters *letters = context;

	(void)fifo;
	for (unsigned i = 0; i < n; i++) {
		const uint32_t lane = items[i].lane;

		if (letters->question[lane] != items[i].word[0]) /* push_release guarantees that the letter has arrived */
			return gpul_fail(err, GPUL_EFORMAT, 0, "lane %u: a trigger arrived before its letter", lane);
		letters->answer[lane] = letters->question[lane] * letters->question[lane];
	}
	return GPUL_OK; /* then the proxy thread releases the triggers: the kernel's sync returns, and the answers are visible */
}

static void lanes(struct lesson *l)
{
	gpul_fifo *f = create_fifo(l, THREADS, THREADS);
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	struct letters *letters = lesson_host(l, sizeof *letters);
	gpul_proxy_desc desc = { .fifos = &f, .n_fifos = 1, .kinds[LETTER] = { answer_letters, letters } };
	gpul_error err = { 0 };
	gpul_proxy_stats stats;
	gpul_proxy *proxy;
	u64 n = EACH, n_right = 0;

	lesson_need(gpul_proxy_start(&desc, &proxy, &err), &err);
	lesson_start(l, "letters", THREADS, (struct lesson_arg[]){ ARG(fifo), ARG(letters), ARG(n) }, 3);
	lesson_join(l);
	lesson_need(gpul_proxy_drain(proxy, 10000, &err), &err);
	gpul_proxy_get_stats(proxy, &stats);
	lesson_need(gpul_proxy_stop(proxy, &err), &err);
	for (int i = 0; i < THREADS; i++)
		n_right += letters->n_right[i];
	printf("%llu letters, %llu correct answers\n", (u64)stats.triggers, n_right);
	gpul_fifo_close(f);
}

/* ---- the CPU reads nothing: a time-out, then an abort ---- */

static void print_ends(const struct ends *ends)
{
	unsigned of_result[4] = { 0 };

	for (int i = 0; i < THREADS; i++)
		of_result[ends->result[i] % 4]++;
	printf("%u threads timed out, %u were aborted; each had filled %llu slots\n", of_result[GPUL_FIFO_TIMED_OUT],
	       of_result[GPUL_FIFO_ABORTED], ends->pushed[0]);
}

static void time_out_and_abort(struct lesson *l)
{
	gpul_fifo *f = create_fifo(l, SLOTS * THREADS, THREADS);
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	struct ends *ends = lesson_host(l, sizeof *ends);
	u64 timeout_ns = 10000000; /* 10 ms */
	char text[64];

	lesson_start(l, "stuck", THREADS, (struct lesson_arg[]){ ARG(fifo), ARG(ends), ARG(timeout_ns) }, 3);
	lesson_join(l);
	print_ends(ends);
	timeout_ns = 60000000000; /* a minute: the abort must end the wait */
	lesson_start(l, "stuck", THREADS, (struct lesson_arg[]){ ARG(fifo), ARG(ends), ARG(timeout_ns) }, 3);
	gpul_fifo_abort(f, GPUL_FIFO_CODE_STOPPED);
	lesson_join(l);
	print_ends(ends);
	printf("abort code: %s\n", gpul_fifo_code_text(gpul_fifo_aborted(f), text));
	gpul_fifo_close(f);
}

int main(int argc, char **argv)
{
	struct lesson l;

	lesson_begin(&l, argc > 1 ? argv[1] : "5_fifo.ptx");
	puts("-- 16 threads, one queue of 8 slots; the CPU does not read");
	one_queue(&l);
	puts("-- 16 lanes of one slot, and a proxy thread that answers letters");
	lanes(&l);
	puts("-- the CPU reads nothing: a time-out of 10 ms, then an abort");
	time_out_and_abort(&l);
	lesson_end(&l);
	return 0;
}
