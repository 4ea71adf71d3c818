/* control.c — functions for CPU threads that access the abort word and the step counters of a control page. */
#include "ipc/control.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"

enum { SPIN_NS = 20 * 1000, YIELD_NS = 200 * 1000, NAP_NS = 50 * 1000 };

/* How to access the control page of a view: through the mapping on the CPU, or by copies on a stream. */
struct page {
	struct gpul_ipc_control *cpu; /* CPU address of the page; NULL: the CPU accesses it by copies */
	const gpul_driver *drv;
	CUdeviceptr gpu;
	CUstream stream;
};

/* ---- access by copies ------------------------------------------------------------------------ */

static gpul_status copy_from(const struct page *p, size_t offset, void *to, size_t bytes, gpul_error *err)
{
	CUdeviceptr from = p->gpu + offset;
	gpul_status st = gpul_cu(p->drv, err, cuMemcpyDtoHAsync(to, from, bytes, p->stream));

	return st ? st : gpul_cu(p->drv, err, cuStreamSynchronize(p->stream));
}

static gpul_status copy_to(const struct page *p, size_t offset, const void *from, size_t bytes, gpul_error *err)
{
	CUdeviceptr to = p->gpu + offset;
	gpul_status st = gpul_cu(p->drv, err, cuMemcpyHtoDAsync(to, from, bytes, p->stream));

	return st ? st : gpul_cu(p->drv, err, cuStreamSynchronize(p->stream));
}

/* ---- access by the CPU or by copies ---------------------------------------------------------- */

/* Create a stream for this access, because a stream shared by several calls would have to be protected from other threads and
 * contexts; creating one takes less time than one copy. */
static gpul_status open_page(const gpul_ipc_view *v, struct page *out, gpul_error *err)
{
	*out = (struct page){ .cpu = v->control, .drv = v->drv, .gpu = v->control_gpu };
	if (out->cpu)
		return GPUL_OK;
	if (!out->gpu)
		return gpul_fail(err, GPUL_EINVAL, 0, "this buffer has no control page: its owner shares it without one (option control)");
	return gpul_cu(out->drv, err, cuStreamCreate(&out->stream, CU_STREAM_NON_BLOCKING));
}

static void close_page(struct page *p)
{
	if (p->stream)
		p->drv->cuStreamDestroy(p->stream);
}

static gpul_status check_writable(const gpul_ipc_view *v, gpul_error *err)
{
	if (v->read_only)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot post a step or abort: the control page is mapped read-only");
	return GPUL_OK;
}

static gpul_status check_step(unsigned step, gpul_error *err)
{
	if (step >= GPUL_IPC_N_STEPS)
		return gpul_fail(err, GPUL_EINVAL, 0, "step counter %u does not exist: the step counters are 0 to %d", step,
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

/* Acquire: pairs with the release in step_post() of a CPU thread, and in gpul_ipc_post() of a kernel. */
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
	gpul_status st = check_writable(v, err);

	if (st)
		return st;
	if (code == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "abort code 0 is not allowed, because 0 means that nothing was aborted");
	st = open_page(v, &p, err);
	if (st)
		return st;
	if (p.cpu)
		__atomic_compare_exchange_n(&p.cpu->abort, &old, code, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	else
		st = read_abort(&p, &old, err);
	if (!p.cpu && !st && !old)
		st = copy_to(&p, offsetof(struct gpul_ipc_control, abort), &code, sizeof code, err);
	close_page(&p);
	return st;
}

gpul_status gpul_ipc_aborted(const gpul_ipc_view *v, uint32_t *out, gpul_error *err)
{
	struct page p;
	gpul_status st = open_page(v, &p, err);

	if (st)
		return st;
	st = read_abort(&p, out, err);
	close_page(&p);
	return st;
}

/* ---- step counters ------------------------------------------------------------------------- */

gpul_status gpul_ipc_step_post(const gpul_ipc_view *v, unsigned step, uint64_t value, gpul_error *err)
{
	struct page p;
	gpul_status st = check_writable(v, err);

	st = st ? st : check_step(step, err);
	st = st ? st : open_page(v, &p, err);
	if (st)
		return st;
	/* Release: pairs with the acquire in read_step() of a CPU thread, and in gpul_ipc_read() of a kernel. */
	if (p.cpu)
		__atomic_store_n(&p.cpu->step[step].value, value, __ATOMIC_RELEASE);
	else
		st = copy_to(&p, step_offset(step), &value, sizeof value, err);
	close_page(&p);
	return st;
}

gpul_status gpul_ipc_step_read(const gpul_ipc_view *v, unsigned step, uint64_t *out, gpul_error *err)
{
	struct page p;
	gpul_status st = check_step(step, err);

	st = st ? st : open_page(v, &p, err);
	if (st)
		return st;
	st = read_step(&p, step, out, err);
	close_page(&p);
	return st;
}

/* Spin first, because a round trip to a GPU takes only 2 us; after a longer wait, leave the core to other threads. */
static void pause_poll(uint64_t waited_ns)
{
	if (waited_ns < SPIN_NS)
		return;
	if (waited_ns < YIELD_NS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

static gpul_status wait_step(const struct page *p, unsigned step, uint64_t value, int timeout_ms, gpul_error *err)
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
					 "waited for step counter %u to reach %" PRIu64 ": its value is %" PRIu64
					 ", and another process aborted the wait with code %" PRIu32,
					 step, value, reached, code);
		now = gpul_clock_ns() - start;
		if (timeout_ms >= 0 && now >= (uint64_t)timeout_ms * 1000000)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
					 "step counter %u is %" PRIu64 " after %d ms, not %" PRIu64
					 ": the process that writes it is slow or has ended",
					 step, reached, timeout_ms, value);
		pause_poll(now);
	}
}

gpul_status gpul_ipc_step_wait(const gpul_ipc_view *v, unsigned step, uint64_t value, int timeout_ms, gpul_error *err)
{
	struct page p;
	gpul_status st = check_step(step, err);

	st = st ? st : open_page(v, &p, err);
	if (st)
		return st;
	st = wait_step(&p, step, value, timeout_ms, err);
	close_page(&p);
	return st;
}

void gpul_ipc_control_reset(struct gpul_ipc_control *page, uint64_t generation)
{
	memset(page, 0, sizeof *page);
	page->generation = generation;
	/* Written last, so that a page with the magic number is completely initialised. */
	__atomic_store_n(&page->magic, GPUL_IPC_CONTROL_MAGIC, __ATOMIC_RELEASE);
}
