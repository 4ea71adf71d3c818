/* 5_fifo.c — gpuload's own FIFO: one queue with one looker, lanes and a proxy thread, time-outs, abort.
 *
 *     5_fifo [5_fifo.ptx]
 *
 * Read one_queue() beside step 4's main(); then answer() and lanes(), which is how a communication library uses it;
 * then two_ends(). */
#include <stdio.h>

#include "core/clock.h"
#include "lesson.h"
#include "proxy/proxy.h"

enum { EACH = 64, ALL = EACH * THREADS };

static gpul_fifo *create(struct lesson *l, unsigned slots, unsigned lanes)
{
	const gpul_fifo_shape shape = { .slots = slots, .lanes = lanes };
	gpul_error err = { 0 };
	gpul_fifo *f;

	lesson_need(gpul_fifo_create(l->drv, GPUL_MEM_AUTO, 0, &shape, &f, &err), &err);
	return f;
}

/* ---- step 4 again: one queue of 8 slots, a loop of our own ---- */

static u64 serve(gpul_fifo *f)
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
	gpul_fifo *f = create(l, SLOTS, 1);
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	struct looks *looks = lesson_host(l, sizeof *looks);
	u64 n = EACH, n_bad, before = 0, total;
	uint64_t start, since = 0;

	lesson_start(l, "shared", THREADS, (struct lesson_arg[]){ ARG(fifo), ARG(looks), ARG(n) }, 3);
	for (; before < 100 * THREADS; lesson_wait(&since, "looks"))
		lesson_looks(looks, &before);
	printf("%u of %d threads looks over the bus: %llu times so far\n", lesson_looks(looks, &before).n_threads, THREADS,
	       before);
	puts("-- now it takes them");
	start = gpul_clock_ns();
	n_bad = serve(f);
	lesson_join(l);
	lesson_looks(looks, &total);
	printf("%d sent, %d taken, %llu out of order; %.1f looks each, %.2f us each\n", ALL, ALL, n_bad,
	       (double)(total - before) / ALL, (double)(gpul_clock_ns() - start) / 1e3 / ALL);
	gpul_fifo_close(f);
}

/* ---- a lane for each thread, a proxy thread that answers ---- */

static gpul_status answer(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct letters *letters = context;

	(void)fifo;
	for (unsigned i = 0; i < n; i++) {
		const uint32_t lane = items[i].lane;

		if (letters->question[lane] != items[i].word[0])  /* push_release promised that it is there */
			return gpul_fail(err, GPUL_EFORMAT, 0, "lane %u: a trigger came before its letter", lane);
		letters->answer[lane] = letters->question[lane] * letters->question[lane];
	}
	return GPUL_OK;  /* the thread releases them now: the kernel's sync returns, and sees the answers */
}

static void lanes(struct lesson *l)
{
	gpul_fifo *f = create(l, THREADS, THREADS);
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	struct letters *letters = lesson_host(l, sizeof *letters);
	gpul_proxy_desc desc = { .fifos = &f, .n_fifos = 1, .kinds[LETTER] = { answer, letters } };
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
	printf("%llu letters, %llu right answers\n", (u64)stats.triggers, n_right);
	gpul_fifo_close(f);
}

/* ---- nobody takes anything ---- */

static void tell_ends(const struct ends *ends)
{
	unsigned of_result[4] = { 0 };

	for (int i = 0; i < THREADS; i++)
		of_result[ends->result[i] % 4]++;
	printf("%u threads timed out, %u were aborted; each had filled %llu slots\n", of_result[GPUL_FIFO_TIMED_OUT],
	       of_result[GPUL_FIFO_ABORTED], ends->pushed[0]);
}

static void two_ends(struct lesson *l)
{
	gpul_fifo *f = create(l, SLOTS * THREADS, THREADS);
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(f));
	struct ends *ends = lesson_host(l, sizeof *ends);
	u64 timeout_ns = 10000000;  /* 10 ms */
	char text[64];

	lesson_start(l, "stuck", THREADS, (struct lesson_arg[]){ ARG(fifo), ARG(ends), ARG(timeout_ns) }, 3);
	lesson_join(l);
	tell_ends(ends);
	timeout_ns = 60000000000;  /* a minute: only the abort can end it sooner */
	lesson_start(l, "stuck", THREADS, (struct lesson_arg[]){ ARG(fifo), ARG(ends), ARG(timeout_ns) }, 3);
	gpul_fifo_abort(f, GPUL_FIFO_CODE_STOPPED);
	lesson_join(l);
	tell_ends(ends);
	printf("the abort's code says: %s\n", gpul_fifo_code_text(gpul_fifo_aborted(f), text));
	gpul_fifo_close(f);
}

int main(int argc, char **argv)
{
	struct lesson l;

	lesson_begin(&l, argc > 1 ? argv[1] : "5_fifo.ptx");
	puts("-- 16 threads, one queue of 8 slots; the CPU stands still");
	one_queue(&l);
	puts("-- 16 lanes of one slot, a proxy thread that answers letters");
	lanes(&l);
	puts("-- nobody takes anything: a time-out of 10 ms, then an abort");
	two_ends(&l);
	lesson_end(&l);
	return 0;
}
