/* device_rig.c — runs the kernels of device.cu against a FIFO, and checks their triggers. */
#include "tests/proxy/device_rig.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "core/file/file.h"

enum { PATIENCE_S = 60 };

static void must(gpul_status st, const gpul_error *err)
{
	if (st)
		fail_msg("status %d, native %d: %s", st, err->native, err->text);
}

static void *pinned(const gpul_driver *drv, size_t bytes)
{
	void *p = NULL;

	assert_int_equal(drv->cuMemHostAlloc(&p, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP), 0);
	memset(p, 0, bytes);
	return p;
}

int rig_open(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	gpul_error err = { 0 };
	gpul_file ptx;

	assert_non_null(r);
	must(gpul_file_open(*state, &ptx, &err), &err);
	*state = r;
	must(gpul_driver_open(GPUL_DRIVER_AUTO, &r->drv, &err), &err);
	must(gpul_context_open(r->drv, 0, &r->context, &err), &err);
	must(gpul_cu(r->drv, &err, cuLibraryLoadData(&r->library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0)), &err);
	gpul_file_close(&ptx);
	must(gpul_cu(r->drv, &err, cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING)), &err);
	r->results = pinned(r->drv, 2 * MAX_THREADS * sizeof(uint64_t));
	r->notes = pinned(r->drv, 2 * MAX_THREADS * sizeof(uint64_t));
	return 0;
}

int rig_close(void **state)
{
	struct rig *r = *state;

	if (!r->notes) /* rig_open() failed, so there is nothing to close */
		return 0;
	rig_fifo_close(r);
	r->drv->cuMemFreeHost((void *)r->notes);
	r->drv->cuMemFreeHost(r->results);
	r->drv->cuStreamDestroy(r->stream);
	r->drv->cuLibraryUnload(r->library);
	gpul_context_close(&r->context);
	free(r);
	return 0;
}

void rig_fifo(struct rig *r, unsigned slots, unsigned lanes)
{
	gpul_error err = { 0 };

	rig_fifo_close(r); /* closes the FIFO that a failed test left open */
	r->shape = (gpul_fifo_shape){ .slots = slots, .lanes = lanes };
	must(gpul_fifo_create(r->drv, GPUL_MEM_AUTO, 0, &r->shape, &r->fifo, &err), &err);
	memset(r->results, 0xff, 2 * MAX_THREADS * sizeof(uint64_t));
	memset(r->seen, 0, sizeof(r->seen));
	memset(r->position, 0, sizeof(r->position));
	for (int i = 0; i < 2 * MAX_THREADS; i++)
		r->notes[i] = 0;
	r->notes_first = r->shared = false;
}

void rig_fifo_close(struct rig *r)
{
	if (!r->fifo)
		return;
	gpul_fifo_abort(r->fifo, 1); /* ends the kernel that a failed test left running */
	rig_wait(r);
	gpul_fifo_close(r->fifo);
	r->fifo = NULL;
}

void rig_launch(struct rig *r, const struct rig_kernel *k)
{
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(r->fifo));
	unsigned shared = r->shared, count = k->count;
	uint64_t first = k->first, timeout_ns = k->timeout_ns;
	uint64_t *results = r->results;
	volatile uint64_t *notes = r->notes;
	void *args[] = { &fifo, &shared, &count, &first, &timeout_ns, &results, &notes };
	gpul_error err = { 0 };
	CUkernel kernel;
	CUfunction function;

	assert_true(k->blocks * k->threads <= MAX_THREADS);
	must(gpul_cu(r->drv, &err, cuLibraryGetKernel(&kernel, r->library, k->name)), &err);
	must(gpul_cu(r->drv, &err, cuKernelGetFunction(&function, kernel)), &err);
	must(gpul_cu(r->drv, &err, cuLaunchKernel(function, k->blocks, 1, 1, k->threads, 1, 1, 0, r->stream, args, NULL)), &err);
}

bool rig_ended(struct rig *r)
{
	const CUresult result = r->drv->cuStreamQuery(r->stream);

	assert_true(result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY);
	return result == CUDA_SUCCESS;
}

void rig_wait(struct rig *r)
{
	assert_int_equal(r->drv->cuStreamSynchronize(r->stream), CUDA_SUCCESS);
}

static void check(struct rig *r, const gpul_fifo_item *item)
{
	const uint64_t thread = item->word[0] >> 32, i = item->word[0] & UINT32_MAX;

	assert_int_equal(item->word[1], item->word[0] ^ UINT64_MAX >> 1);
	assert_in_range(thread, 0, MAX_THREADS - 1);
	assert_int_equal(i, r->seen[thread]);
	assert_int_equal(item->position, r->position[item->lane]);
	if (r->notes_first)
		assert_in_range(__atomic_load_n(&r->notes[2 * thread], __ATOMIC_RELAXED), i + 1, UINT64_MAX);
	r->notes[2 * thread + 1] = i + 1;
	r->seen[thread]++;
	r->position[item->lane]++;
}

unsigned rig_take(struct rig *r, unsigned max)
{
	gpul_fifo_item items[64];
	const unsigned n = gpul_fifo_poll(r->fifo, items, max < 64 ? max : 64);

	for (unsigned i = 0; i < n; i++)
		check(r, &items[i]);
	return n;
}

void rig_serve(struct rig *r, uint64_t n)
{
	const uint64_t start = gpul_clock_ns();

	for (uint64_t came = 0; came < n;) {
		const unsigned now = rig_take(r, 64);

		gpul_fifo_release(r->fifo);
		came += now;
		if (now)
			continue;
		sched_yield();
		if (gpul_fifo_aborted(r->fifo) || gpul_clock_ns() - start > PATIENCE_S * 1000000000ull) {
			gpul_fifo_abort(r->fifo, 1);
			rig_wait(r);
			fail_msg("%llu of %llu triggers arrived; abort code %u", (unsigned long long)came, (unsigned long long)n,
				 gpul_fifo_aborted(r->fifo));
		}
	}
}

void rig_forget_threads(struct rig *r)
{
	memset(r->seen, 0, sizeof(r->seen));
}

void rig_expect(const struct rig *r, unsigned n_threads, unsigned result, unsigned pushed)
{
	for (unsigned i = 0; i < n_threads; i++) {
		assert_int_equal(r->results[2 * i], result);
		assert_int_equal(r->results[2 * i + 1], pushed);
	}
}
