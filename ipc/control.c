/* control.c — see control.h. */
#include "ipc/control.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"

enum { SPIN_NS = 20 * 1000, YIELD_NS = 200 * 1000, NAP_NS = 50 * 1000 };

/* How a view's page is reached: through the CPU's mapping, or by copies on a stream. */
struct page {
	struct gpul_ipc_control *cpu;  /* NULL: by copies */
	const gpul_driver *drv;
	CUdeviceptr gpu;
	CUstream stream;
};

/* ---- by copies ----------------------------------------------------------------------------- */

static gpul_status copy_from(const struct page *p, size_t offset, void *to, size_t bytes, gpul_error *err)
{
	CUdeviceptr from = p->gpu + offset;
	gpul_status st = gpul_cu(p->drv, err, cuMemcpyDtoHAsync(to, from, bytes, p->stream));

	return st ? st : gpul_cu(p->drv, err, cuStreamSynchronize(p->stream));
}

static gpul_status copy_to(const struct page *p, size_t offset, const void *from, size_t bytes,
			   gpul_error *err)
{
	CUdeviceptr to = p->gpu + offset;
	gpul_status st = gpul_cu(p->drv, err, cuMemcpyHtoDAsync(to, from, bytes, p->stream));

	return st ? st : gpul_cu(p->drv, err, cuStreamSynchronize(p->stream));
}

/* ---- one way for both ---------------------------------------------------------------------- */

/* A stream for each call, as it costs less than one copy: nothing is kept, so that threads and
 * contexts need no care. */
static gpul_status page_open(const gpul_ipc_view *v, struct page *out, gpul_error *err)
{
	*out = (struct page){ .cpu = v->control, .drv = v->drv, .gpu = v->control_gpu };
	if (out->cpu)
		return GPUL_OK;
	if (!out->gpu)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "this buffer has no control page: its owner offers it without one");
	return gpul_cu(out->drv, err, cuStreamCreate(&out->stream, CU_STREAM_NON_BLOCKING));
}

static void page_close(struct page *p)
{
	if (p->stream)
		p->drv->cuStreamDestroy(p->stream);
}

static gpul_status writable(const gpul_ipc_view *v, gpul_error *err)
{
	if (v->read_only)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the control page is mapped for reading only: a reader cannot post or abort");
	return GPUL_OK;
}

static gpul_status step_exists(unsigned step, gpul_error *err)
{
	if (step >= GPUL_IPC_N_STEPS)
		return gpul_fail(err, GPUL_EINVAL, 0, "no step counter %u: there are 0 to %d", step,
				 GPUL_IPC_N_STEPS - 1);
	return GPUL_OK;
}

static size_t step_offset(unsigned step)
{
	return offsetof(struct gpul_ipc_control, step) + step * sizeof(struct gpul_ipc_step);
}

static gpul_status read_abort(const struct page *p, uint32_t *out, gpul_error *err)
{
	if (!p->cpu)
		return copy_from(p, offsetof(struct gpul_ipc_control, abort), out, sizeof *out, err);
	*out = __atomic_load_n(&p->cpu->abort, __ATOMIC_ACQUIRE);
	return GPUL_OK;
}

/* Acquire: pairs with the release in step_post(), and with gpul_ipc_post() of a kernel. */
static gpul_status read_step(const struct page *p, unsigned step, uint64_t *out, gpul_error *err)
{
	if (!p->cpu)
		return copy_from(p, step_offset(step), out, sizeof *out, err);
	*out = __atomic_load_n(&p->cpu->step[step].value, __ATOMIC_ACQUIRE);
	return GPUL_OK;
}

/* ---- the abort word ------------------------------------------------------------------------ */

gpul_status gpul_ipc_abort(const gpul_ipc_view *v, uint32_t code, gpul_error *err)
{
	struct page p;
	uint32_t old = 0;
	gpul_status st = writable(v, err);

	if (st)
		return st;
	if (code == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "an abort code of 0 means that nothing is aborted");
	st = page_open(v, &p, err);
	if (st)
		return st;
	if (p.cpu)
		__atomic_compare_exchange_n(&p.cpu->abort, &old, code, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	else
		st = read_abort(&p, &old, err);
	if (!p.cpu && !st && !old)
		st = copy_to(&p, offsetof(struct gpul_ipc_control, abort), &code, sizeof code, err);
	page_close(&p);
	return st;
}

gpul_status gpul_ipc_aborted(const gpul_ipc_view *v, uint32_t *out, gpul_error *err)
{
	struct page p;
	gpul_status st = page_open(v, &p, err);

	if (st)
		return st;
	st = read_abort(&p, out, err);
	page_close(&p);
	return st;
}

/* ---- step counters ------------------------------------------------------------------------- */

gpul_status gpul_ipc_step_post(const gpul_ipc_view *v, unsigned step, uint64_t value, gpul_error *err)
{
	struct page p;
	gpul_status st = writable(v, err);

	st = st ? st : step_exists(step, err);
	st = st ? st : page_open(v, &p, err);
	if (st)
		return st;
	/* Release: pairs with the acquire in read_step(), and in gpul_ipc_read() of a kernel. */
	if (p.cpu)
		__atomic_store_n(&p.cpu->step[step].value, value, __ATOMIC_RELEASE);
	else
		st = copy_to(&p, step_offset(step), &value, sizeof value, err);
	page_close(&p);
	return st;
}

gpul_status gpul_ipc_step_read(const gpul_ipc_view *v, unsigned step, uint64_t *out, gpul_error *err)
{
	struct page p;
	gpul_status st = step_exists(step, err);

	st = st ? st : page_open(v, &p, err);
	if (st)
		return st;
	st = read_step(&p, step, out, err);
	page_close(&p);
	return st;
}

/* A round trip with a GPU takes 2 us: spin for the quick ones, then leave the core to others. */
static void rest(uint64_t waited_ns)
{
	if (waited_ns < SPIN_NS)
		return;
	if (waited_ns < YIELD_NS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

static gpul_status wait_step(const struct page *p, unsigned step, uint64_t value, int timeout_ms,
			     gpul_error *err)
{
	const uint64_t start = gpul_clock_ns();

	for (;;) {
		uint64_t now, reached;
		uint32_t code;
		gpul_status st = read_step(p, step, &reached, err);

		if (st || reached >= value)
			return st;
		st = read_abort(p, &code, err);
		if (st)
			return st;
		if (code)
			return gpul_fail(err, GPUL_ESYS, ECANCELED,
					 "waiting for step %u to be %" PRIu64
					 ": it is %" PRIu64 ", and the abort word was raised with code %" PRIu32,
					 step, value, reached, code);
		now = gpul_clock_ns() - start;
		if (timeout_ms >= 0 && now >= (uint64_t)timeout_ms * 1000000)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
					 "step %u is %" PRIu64 " after %d ms, not %" PRIu64
					 ": who posts it is late or has gone",
					 step, reached, timeout_ms, value);
		rest(now);
	}
}

gpul_status gpul_ipc_step_wait(const gpul_ipc_view *v, unsigned step, uint64_t value, int timeout_ms,
			       gpul_error *err)
{
	struct page p;
	gpul_status st = step_exists(step, err);

	st = st ? st : page_open(v, &p, err);
	if (st)
		return st;
	st = wait_step(&p, step, value, timeout_ms, err);
	page_close(&p);
	return st;
}

void gpul_ipc_control_reset(struct gpul_ipc_control *page, uint64_t generation)
{
	memset(page, 0, sizeof *page);
	page->generation = generation;
	/* Last: a page with the magic is one that is laid out. */
	__atomic_store_n(&page->magic, GPUL_IPC_CONTROL_MAGIC, __ATOMIC_RELEASE);
}
