/* run.c — one FIFO of the soak test: a kernel that is launched repeatedly, and the CPU thread that polls and checks its triggers. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "tests/proxy/soak/soak.h"

enum {
	MAX_BATCH = 4096,
	LAUNCHES = 4,       /* minimum number of launches in a run */
	DAMAGE_AFTER = 100, /* triggers before an error is made, so that stale values exist */
	ABORT_CODE = 1,
};
#define PATIENCE_NS       20000000000ull /* longest time to wait for a trigger */
#define KERNEL_TIMEOUT_NS 30000000000ull /* longer than PATIENCE_NS, because the CPU's error message has more details */
#define SOON_NS           50000ull       /* a time-out that often expires */
#define QUIET_NS          5000000ull     /* idle time after which the kernel's state is queried */

struct one {
	struct run *run;
	const gpul_driver *drv;
	gpul_fifo *fifo;
	CUstream stream;
	uint64_t *host, *results; /* memory that kernels can access: payload, answers, results */
	struct checker checker;
	gpul_fifo_item items[MAX_BATCH];
	uint64_t dice, to_stop, give_up_at;
	bool damaged, gave_up;
};

static bool fail(struct one *o, const char *text)
{
	if (!o->run->text[0])
		snprintf(o->run->text, sizeof(o->run->text), "%s", text);
	return false;
}

static uint64_t roll(struct one *o, uint64_t sides)
{
	o->dice += 0x9e3779b97f4a7c15ull;
	return (soak_mix(o->dice) >> 20) % sides;
}

/* ---- the consumers --------------------------------------------------------------- */

static unsigned batch(struct one *o)
{
	switch (o->run->consumer) {
	case TINY:
		return 1;
	case LARGE:
		return MAX_BATCH;
	case SLOW:
		return 1 + (unsigned)roll(o, 64);
	default:
		return 256;
	}
}

/* Poll triggers.  A consumer of kind RUNS reads them in place in the ring, each word once. */
static unsigned take_out(struct one *o)
{
	gpul_fifo_run run;

	if (o->run->consumer != RUNS)
		return gpul_fifo_poll(o->fifo, o->items, batch(o));
	const unsigned n = gpul_fifo_poll_run(o->fifo, &run, MAX_BATCH);

	for (unsigned i = 0; i < n; i++)
		o->items[i] = (gpul_fifo_item){ .word = { run.triggers[i].word[0] ^ run.lap, run.triggers[i].word[1] ^ run.lap },
						.position = run.position + i,
						.lane = run.lane };
	return n;
}

static void simulate_slow_consumer(struct one *o, unsigned n)
{
	if (o->run->consumer == SLOW && roll(o, 16) == 0) {
		const uint64_t until = gpul_clock_ns() + roll(o, 20000);

		while (gpul_clock_ns() < until)
			;
	}
	if (o->run->consumer == STOPS && (o->to_stop += n) > 4096) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 + (long)roll(o, 2000000) }, NULL);
		o->to_stop = roll(o, 4096);
	}
}

/* Release the batch.  A LATE consumer keeps the last trigger of each lane with probability 1/2, and releases it when the FIFO is empty. */
static void release_or_abort(struct one *o, unsigned n)
{
	if (o->run->consumer == GIVES_UP && !o->gave_up && o->run->came >= o->give_up_at) {
		gpul_fifo_abort(o->fifo, ABORT_CODE);
		o->gave_up = true;
	}
	if (o->gave_up) /* without a release, waiting kernel threads cannot continue */
		return;
	if (o->run->consumer != LATE) {
		gpul_fifo_release(o->fifo);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		if ((i + 1 == n || o->items[i + 1].lane != o->items[i].lane) && roll(o, 2))
			gpul_fifo_release_lane(o->fifo, o->items[i].lane, o->items[i].position);
}

static bool handle(struct one *o, unsigned n)
{
	unsigned left = n;

	if (o->run->damage && !o->damaged && o->run->came > DAMAGE_AFTER)
		o->damaged = damage_do(o->run->damage, &o->checker, o->items, &left);
	if (!checker_take(&o->checker, o->items, left))
		return fail(o, o->checker.text);
	o->run->came += n;
	simulate_slow_consumer(o, n);
	release_or_abort(o, n);
	return true;
}

/* If no trigger has come for some time, check whether more can arrive.  Returns true to continue polling. */
static bool check_kernel(struct one *o, uint64_t quiet_ns, bool *over)
{
	const uint32_t code = gpul_fifo_aborted(o->fifo);
	CUresult result;
	char text[96], buf[64];

	if (code && !o->gave_up) {
		snprintf(text, sizeof(text), "aborted: %s", gpul_fifo_code_text(code, buf));
		return fail(o, text);
	}
	if (quiet_ns > PATIENCE_NS)
		return fail(o, "stuck: the kernel runs, but no trigger arrived for 20 s");
	result = o->drv->cuStreamQuery(o->stream);
	*over = result == CUDA_SUCCESS;
	if (*over || result == CUDA_ERROR_NOT_READY)
		return true;
	snprintf(text, sizeof(text), "the kernel failed: driver error %d", (int)result);
	return fail(o, text);
}

/* Poll until n triggers have arrived, or until the kernel has ended and the FIFO is empty. */
static bool serve(struct one *o, uint64_t n)
{
	uint64_t last = gpul_clock_ns();
	unsigned empty = 0;
	bool over = false;

	for (uint64_t end = o->run->came + n; o->run->came < end;) {
		const unsigned got = take_out(o);

		if (got) {
			if (!handle(o, got))
				return false;
			empty = 0;
			over = false;
			continue;
		}
		if (over)
			return true;
		if (!o->gave_up)
			gpul_fifo_release(o->fifo);
		if (++empty % 64)
			continue;
		sched_yield();
		if (empty == 64)
			last = gpul_clock_ns();
		if (gpul_clock_ns() - last > QUIET_NS && !check_kernel(o, gpul_clock_ns() - last, &over))
			return false;
	}
	if (!o->gave_up)
		gpul_fifo_release(o->fifo);
	return true;
}

/* ---- launches -------------------------------------------------------------------- */

/* True: a push may be repeated after a time-out, because the thread or warp owns its lane, and its triggers fit into the lane. */
static bool may_try_again(const struct shape *s)
{
	return !s->shared && (s->how != SOAK_WARP || s->slots / s->lanes >= 32);
}

static bool launch(struct one *o, uint64_t first, uint64_t count, gpul_error *err)
{
	const struct shape *s = o->run->shape;
	const struct checker *c = &o->checker;
	const bool stops = o->run->consumer == STOPS && may_try_again(s);
	struct soak_work work = {
		.fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(o->fifo)),
		.payload = (unsigned long long *)(uintptr_t)c->payload,
		.answers = (unsigned long long *)(uintptr_t)c->answers,
		.results = (unsigned long long *)o->results,
		.first = first,
		.count = count,
		.seed = o->run->seed,
		.timeout_ns = stops ? SOON_NS : KERNEL_TIMEOUT_NS,
		.tries_again = stops,
		.payload_mask = c->payload_mask,
		.shared = s->shared,
		.how = s->how,
		.think_ns = o->run->consumer == FAST || o->run->consumer == LATE ? 0 : 2000,
	};
	void *args[] = { &work };
	CUfunction kernel = s->how == SOAK_WARP ? o->run->soak->warp : o->run->soak->push;

	memset(o->results, 0xff, 2 * sizeof(uint64_t) * c->n_threads);
	checker_launch(&o->checker);
	return !gpul_cu(o->drv, err, cuLaunchKernel(kernel, s->blocks, 1, 1, s->threads, 1, 1, 0, o->stream, args, NULL));
}

static bool reset_after_abort(struct one *o, uint64_t first, uint64_t count)
{
	gpul_error err = { 0 };
	const unsigned more = gpul_fifo_poll(o->fifo, o->items, MAX_BATCH);

	if (!checker_take(&o->checker, o->items, more) || !checker_end_aborted(&o->checker, o->results, first + count, count))
		return fail(o, o->checker.text);
	o->run->came += more;
	return gpul_fifo_reset(o->fifo, &err) ? fail(o, err.text) : true;
}

static bool push_and_take(struct one *o, uint64_t first, uint64_t count)
{
	gpul_error err = { 0 };
	bool good;

	o->gave_up = false;
	o->give_up_at = o->run->came + roll(o, count * o->checker.n_threads);
	if (!launch(o, first, count, &err))
		return fail(o, err.text);
	good = serve(o, count * o->checker.n_threads);
	if (!good)
		gpul_fifo_abort(o->fifo, ABORT_CODE);
	if (gpul_cu(o->drv, &err, cuStreamSynchronize(o->stream)))
		return fail(o, err.text);
	if (!good)
		return false;
	if (o->gave_up)
		return reset_after_abort(o, first, count);
	if (!checker_end(&o->checker, o->results, first + count, count))
		return fail(o, o->checker.text);
	return gpul_fifo_poll(o->fifo, o->items, 1) ? fail(o, "more triggers arrived than were pushed") : true;
}

static void soak_one(struct one *o)
{
	const uint64_t n = o->checker.n_threads, all = (o->run->quota + n - 1) / n;
	const uint64_t chunk = (all + LAUNCHES - 1) / LAUNCHES;

	for (uint64_t first = 0; first < all; first += chunk) {
		if (o->run->until_ns && first && gpul_clock_ns() > o->run->until_ns)
			return;
		if (!push_and_take(o, first, all - first < chunk ? all - first : chunk))
			return;
	}
}

/* ---- creation -------------------------------------------------------------------- */

static gpul_status make_memory(struct one *o, gpul_error *err)
{
	struct checker *c = &o->checker;
	const size_t n = c->n_threads, payload = n * (c->payload_mask + 1), words = payload + 3 * n;
	void *host = NULL;
	gpul_status st = gpul_cu(o->drv, err,
				 cuMemHostAlloc(&host, words * sizeof(uint64_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));

	if (st)
		return st;
	memset(host, 0, words * sizeof(uint64_t));
	o->host = host;
	c->payload = o->host;
	c->answers = o->host + payload;
	o->results = o->host + payload + n;
	return GPUL_OK;
}

static gpul_status make(struct one *o, gpul_error *err)
{
	const struct shape *s = o->run->shape;
	const gpul_fifo_shape shape = { .slots = s->slots, .lanes = s->lanes };
	gpul_status st;

	if (!checker_open(&o->checker, s, o->run->seed))
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the checker");
	st = make_memory(o, err);
	st = st ? st : gpul_cu(o->drv, err, cuStreamCreate(&o->stream, CU_STREAM_NON_BLOCKING));
	return st ? st : gpul_fifo_create(o->drv, GPUL_MEM_AUTO, o->run->soak->context.device, &shape, &o->fifo, err);
}

void run_close(struct one *o)
{
	if (!o)
		return;
	gpul_fifo_close(o->fifo);
	if (o->stream)
		o->drv->cuStreamDestroy(o->stream);
	if (o->host)
		o->drv->cuMemFreeHost(o->host);
	checker_close(&o->checker);
	free(o);
}

struct one *run_open(struct run *run)
{
	struct one *o = calloc(1, sizeof(*o));
	gpul_error err = { 0 };

	if (!o) {
		snprintf(run->text, sizeof(run->text), "no memory");
		return NULL;
	}
	o->run = run;
	o->drv = run->soak->drv;
	o->dice = run->seed;
	if (!make(o, &err))
		return o;
	fail(o, err.text);
	run_close(o);
	return NULL;
}

void *run_soak(void *one)
{
	struct one *o = one;
	gpul_error err = { 0 };

	if (gpul_cu(o->drv, &err, cuCtxSetCurrent(o->run->soak->context.handle)))
		fail(o, err.text);
	else
		soak_one(o);
	return NULL;
}
