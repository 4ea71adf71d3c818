/* fifo_clock.c — samples the GPU's clock with a kernel, and fits a line that converts GPU times to CPU times. */
#include "cli/fifo/clock/fifo_clock.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "loader/embedded.h"
#include "loader/loader.h"

GPUL_EMBED(fifo_clock_ptx, "cli/kernels/fifo_clock.ptx");

enum { ROUNDS = 400, POLLS = 256, ANSWERS = 8 /* index of the first answer in the mailbox */, TIMEOUT_MS = 10000 };
static const uint64_t END = UINT64_MAX; /* a question with this value ends the kernel */

/* ---- fitting the line ---------------------------------------------------------------------------------------- */

static uint64_t round_trip(const struct fifo_clock_sample *s)
{
	return s->after_ns - s->before_ns;
}

static const struct fifo_clock_sample *shortest(const struct fifo_clock_sample *samples, size_t n)
{
	const struct fifo_clock_sample *best = samples;

	for (size_t i = 1; i < n; i++)
		if (round_trip(&samples[i]) < round_trip(best))
			best = &samples[i];
	return best;
}

/* Return b - a, which may be negative.  Subtract integers, because a double cannot hold nanoseconds since 1970 exactly. */
static double difference(uint64_t a, uint64_t b)
{
	return (double)(int64_t)(b - a);
}

/* Convert a GPU time to CPU time, relative to r->cpu_ns. */
static double cpu_offset(const struct fifo_clock_relation *r, uint64_t gpu_ns)
{
	return difference(r->gpu_ns, gpu_ns) * (1 + r->drift);
}

/* Return the distance in ns between the line and a sample's interval; 0: the line passes through the interval. */
static double distance_outside(const struct fifo_clock_relation *r, const struct fifo_clock_sample *s)
{
	double at = cpu_offset(r, s->gpu_ns), half_step = (double)r->step_ns / 2;
	double early = difference(r->cpu_ns, s->before_ns) - half_step - at;
	double late = at - difference(r->cpu_ns, s->after_ns) - half_step;

	return fmax(0, fmax(early, late));
}

gpul_status fifo_clock_relate(const struct fifo_clock_sample *samples, size_t n, uint64_t step_ns, struct fifo_clock_relation *out,
			      gpul_error *err)
{
	struct fifo_clock_relation r = { .step_ns = step_ns };
	const struct fifo_clock_sample *a, *b;
	const size_t first = n - n / 2;
	double half;

	if (n == 0)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "cannot relate the GPU's clock to the CPU's clock: no sample of both clocks was taken");
	for (size_t i = 0; i < n; i++)
		if (samples[i].after_ns < samples[i].before_ns)
			return gpul_fail(err, GPUL_EINVAL, 0, "sample %zu of the GPU's clock is invalid: it ends before it begins", i);
	a = shortest(samples, first);
	b = first < n ? shortest(samples + first, n - first) : a;
	half = (double)round_trip(round_trip(a) < round_trip(b) ? b : a) / 2;
	r.gpu_ns = a->gpu_ns + step_ns / 2;
	r.cpu_ns = a->before_ns + round_trip(a) / 2;
	if (b->gpu_ns != a->gpu_ns)
		r.drift = difference(r.cpu_ns, b->before_ns + round_trip(b) / 2) / difference(a->gpu_ns, b->gpu_ns) - 1;
	r.shortest_ns = round_trip(round_trip(a) < round_trip(b) ? a : b);
	r.bound_ns = half + (double)step_ns / 2;
	for (size_t i = 0; i < n; i++) {
		double off = distance_outside(&r, &samples[i]);

		if (off > half + (double)step_ns / 2) /* one of the clocks has been set, or has changed its speed */
			r.bound_ns = fmax(r.bound_ns, off + (double)round_trip(&samples[i]));
	}
	*out = r;
	return GPUL_OK;
}

uint64_t fifo_clock_cpu_ns(const struct fifo_clock_relation *r, uint64_t gpu_ns)
{
	int64_t past = llround(cpu_offset(r, gpu_ns));

	if (past < 0 && r->cpu_ns < (uint64_t)-past)
		return 0;
	return r->cpu_ns + (uint64_t)past;
}

/* ---- the samples --------------------------------------------------------------------------------------------- */

struct fifo_clock {
	const gpul_driver *drv;
	gpul_module *module;
	const gpul_kernel *kernel;
	uint64_t *mailbox; /* page-locked memory; its layout is drawn in fifo_clock.ptx */
	CUdeviceptr mailbox_gpu;
	struct fifo_clock_sample *samples;
	size_t n_samples;
	uint64_t step_ns;
};

static gpul_status make_mailbox(struct fifo_clock *c, gpul_error *err)
{
	const unsigned flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
	void *mailbox;
	gpul_status st = gpul_cu(c->drv, err, cuMemHostAlloc(&mailbox, (ANSWERS + ROUNDS + 1) * sizeof(uint64_t), flags));

	if (st)
		return st;
	c->mailbox = mailbox;
	return gpul_cu(c->drv, err, cuMemHostGetDevicePointer(&c->mailbox_gpu, mailbox, 0));
}

gpul_status fifo_clock_create(const gpul_driver *drv, struct fifo_clock **out, gpul_error *err)
{
	struct fifo_clock *c = calloc(1, sizeof *c);
	gpul_status st;

	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to read the GPU's clock");
	c->drv = drv;
	st = gpul_module_load_embedded(drv, &fifo_clock_ptx, &c->module, err);
	st = st ? st : gpul_kernel_find(c->module, "fifo_clock", &c->kernel, err);
	st = st ? st : gpul_kernel_prepare(c->kernel, err);
	st = st ? st : make_mailbox(c, err);
	if (st) {
		fifo_clock_destroy(c);
		return st;
	}
	*out = c;
	return GPUL_OK;
}

void fifo_clock_destroy(struct fifo_clock *c)
{
	if (!c)
		return;
	if (c->mailbox)
		c->drv->cuMemFreeHost(c->mailbox);
	gpul_module_unload(c->module);
	free(c->samples);
	free(c);
}

/* The kernel polls once per round trip of the bus, and a question waits for the next poll, which takes up to 1.2 us on an H200.  If
 * each question followed the last answer immediately, the wait would always be equally long.  So each round begins after a
 * different delay, and some questions arrive just before a poll. */
static void delay_round(unsigned round)
{
	const uint64_t from = gpul_clock_ns(), ns = round * UINT64_C(37) % 1500;

	while (gpul_clock_ns() - from < ns)
		;
}

/* Take one sample: write a question, and wait for the kernel's answer. */
static gpul_status take_sample(struct fifo_clock *c, unsigned round, struct fifo_clock_sample *out, gpul_error *err)
{
	uint64_t *answer = &c->mailbox[ANSWERS + round];

	delay_round(round);
	out->before_ns = gpul_clock_ns();
	__atomic_store_n(&c->mailbox[0], round, __ATOMIC_RELEASE);
	for (unsigned polls = 1; !(out->gpu_ns = __atomic_load_n(answer, __ATOMIC_ACQUIRE)); polls++) {
		if (polls % POLLS)
			continue;
		if (gpul_clock_ns() - out->before_ns > TIMEOUT_MS * UINT64_C(1000000))
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the kernel that reads the GPU's clock did not answer within %d s",
					 TIMEOUT_MS / 1000);
		sched_yield(); /* the software driver may need this CPU to run the kernel */
	}
	out->after_ns = gpul_clock_ns();
	return GPUL_OK;
}

static gpul_status launch_kernel(struct fifo_clock *c, CUstream stream, gpul_error *err)
{
	uint32_t rounds = ROUNDS;
	uint64_t timeout_ns = TIMEOUT_MS * UINT64_C(1000000);
	gpul_launch_config config = { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .stream = stream };
	void *args[] = { &c->mailbox_gpu, &rounds, &timeout_ns };
	const size_t bytes[] = { sizeof c->mailbox_gpu, sizeof rounds, sizeof timeout_ns };

	memset(c->mailbox, 0, (ANSWERS + ROUNDS + 1) * sizeof *c->mailbox);
	return gpul_kernel_launch(c->kernel, &config, args, bytes, 3, err);
}

gpul_status fifo_clock_take(struct fifo_clock *c, CUstream stream, gpul_error *err)
{
	struct fifo_clock_sample *more = realloc(c->samples, (c->n_samples + ROUNDS) * sizeof *more);
	gpul_status st;
	unsigned round = 0;

	if (!more)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %d samples of the GPU's clock", ROUNDS);
	c->samples = more;
	st = launch_kernel(c, stream, err);
	if (st)
		return st;
	while (!st && round++ < ROUNDS)
		st = take_sample(c, round, &more[c->n_samples + round - 1], err);
	/* Send END instead of a question: it ends the kernel, also after a failure, which would otherwise leave the kernel polling. */
	__atomic_store_n(&c->mailbox[0], END, __ATOMIC_RELEASE);
	if (st) {
		(void)c->drv->cuStreamSynchronize(stream);
		return st;
	}
	st = gpul_cu(c->drv, err, cuStreamSynchronize(stream));
	if (!st) {
		c->n_samples += ROUNDS;
		c->step_ns = c->mailbox[ANSWERS];
	}
	return st;
}

gpul_status fifo_clock_fit(struct fifo_clock *c, struct fifo_clock_relation *out, gpul_error *err)
{
	gpul_status st = fifo_clock_relate(c->samples, c->n_samples, c->step_ns, out, err);

	c->n_samples = 0;
	return st;
}
