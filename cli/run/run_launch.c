/* run_launch.c — copy buffers to the device, launch and time the kernel, copy buffers back. */
#include "cli/run/cli_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"

/* ---- buffers ----------------------------------------------------------------------- */

/* Allocate the buffers that are members of a struct, and write their addresses into its bytes. */
static gpul_status alloc_members(const struct run *r, struct arg *a, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t k = 0; st == GPUL_OK && k < a->n_members; k++) {
		struct arg *m = &a->members[k];
		CUdeviceptr address = 0;

		if (m->kind != ARG_BUFFER)
			continue;
		st = gpul_cu(r->drv, err, cuMemAlloc(&address, m->bytes));
		m->address = address;
		memcpy(a->data + m->offset, &m->address, sizeof m->address);
	}
	return st;
}

static gpul_status alloc_buffers(struct run *r, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	r->device = calloc(r->ask.n_args + 1, sizeof *r->device);
	if (!r->device)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu arguments", r->ask.n_args);
	for (size_t i = 0; st == GPUL_OK && i < r->ask.n_args; i++)
		if (r->ask.args[i].kind == ARG_BUFFER)
			st = gpul_cu(r->drv, err, cuMemAlloc(&r->device[i], r->ask.args[i].bytes));
		else
			st = alloc_members(r, &r->ask.args[i], err);
	return st;
}

static gpul_status set_buffer(const struct run *r, const struct arg *a, CUdeviceptr at, bool first, gpul_error *err)
{
	gpul_status st;

	if (a->kind != ARG_BUFFER || (!first && !a->out))
		return GPUL_OK;
	st = gpul_cu(r->drv, err, cuMemcpyHtoD(at, a->data, a->bytes));
	if (st == GPUL_OK && !a->in && r->drv->forget_memory)
		r->drv->forget_memory(at, a->bytes);
	return st;
}

/* Write the initial contents or the poison into the device buffers: into all buffers before the first launch, and only into those
 * that the kernel writes before later launches. */
static gpul_status set_buffers(const struct run *r, bool first, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0; st == GPUL_OK && i < r->ask.n_args; i++) {
		const struct arg *a = &r->ask.args[i];

		st = set_buffer(r, a, r->device[i], first, err);
		for (size_t k = 0; st == GPUL_OK && k < a->n_members; k++)
			st = set_buffer(r, &a->members[k], a->members[k].address, first, err);
	}
	return st;
}

/* Compare an input buffer with its initial contents, in pieces.  If the kernel has written to it, a->data gets the new contents. */
static gpul_status fetch_changes(const struct run *r, struct arg *a, CUdeviceptr from, gpul_error *err)
{
	enum { PIECE_BYTES = 4 << 20 };
	unsigned char *piece = malloc(a->bytes < PIECE_BYTES ? a->bytes + 1 : PIECE_BYTES);
	gpul_status st = GPUL_OK;

	if (!piece)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to compare a buffer with its initial contents");
	for (size_t at = 0, n; st == GPUL_OK && at < a->bytes; at += n) {
		n = a->bytes - at < PIECE_BYTES ? a->bytes - at : PIECE_BYTES;
		st = gpul_cu(r->drv, err, cuMemcpyDtoH(piece, from + at, n));
		if (st == GPUL_OK && memcmp(piece, a->data + at, n) != 0) {
			memcpy(a->data + at, piece, n);
			a->changed = true;
		}
	}
	free(piece);
	return st;
}

static gpul_status fetch_buffer(const struct run *r, struct arg *a, CUdeviceptr from, gpul_error *err)
{
	gpul_status st;

	if (a->kind != ARG_BUFFER)
		return GPUL_OK;
	st = a->out ? gpul_cu(r->drv, err, cuMemcpyDtoH(a->data, from, a->bytes)) : fetch_changes(r, a, from, err);
	arg_examine(a);
	return st;
}

/* Copy back all buffers; args[].data then contains the result. */
static gpul_status fetch_buffers(struct run *r, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (size_t i = 0; st == GPUL_OK && i < r->ask.n_args; i++) {
		struct arg *a = &r->ask.args[i];

		st = fetch_buffer(r, a, r->device[i], err);
		for (size_t k = 0; st == GPUL_OK && k < a->n_members; k++)
			st = fetch_buffer(r, &a->members[k], a->members[k].address, err);
	}
	return st;
}

/* ---- time -------------------------------------------------------------------------- */

/* Wait for an event, at most ask.timeout_ms.  With a time-out, poll, because cuEventSynchronize() has no time-out. */
static gpul_status wait_for_event(struct run *r, CUevent event, gpul_error *err)
{
	uint64_t pause_ns = 10000, deadline = gpul_clock_ns() + (uint64_t)r->ask.timeout_ms * 1000000;
	CUresult result;

	if (r->ask.timeout_ms < 0)
		return gpul_cu(r->drv, err, cuEventSynchronize(event));
	while ((result = r->drv->cuEventQuery(event)) == CUDA_ERROR_NOT_READY) {
		uint64_t now = gpul_clock_ns();

		if (now >= deadline) {
			r->still_running = true;
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%.120s is still running after %g s (--timeout)",
					 gpul_kernel_demangled(r->kernel), (double)r->ask.timeout_ms / 1000);
		}
		if (pause_ns < 1000000) /* pause longer for longer kernels, up to 1 ms, to save CPU time */
			pause_ns += pause_ns / 2;
		nanosleep(&(struct timespec){ .tv_nsec = (long)(pause_ns < deadline - now ? pause_ns : deadline - now) }, NULL);
	}
	return gpul_cu_status(r->drv, err, result, "cuEventQuery");
}

/* ---- launches ---------------------------------------------------------------------- */

struct launch_args {
	void **values;
	size_t *bytes;
};

static gpul_status gather_args(const struct run *r, struct launch_args *out, gpul_error *err)
{
	out->values = calloc(r->ask.n_args + 1, sizeof *out->values);
	out->bytes = calloc(r->ask.n_args + 1, sizeof *out->bytes);
	if (!out->values || !out->bytes)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu arguments", r->ask.n_args);
	for (size_t i = 0; i < r->ask.n_args; i++) {
		bool buffer = r->ask.args[i].kind == ARG_BUFFER;

		out->values[i] = buffer ? (void *)&r->device[i] : r->ask.args[i].data;
		out->bytes[i] = buffer ? sizeof r->device[i] : r->ask.args[i].bytes;
	}
	return GPUL_OK;
}

static gpul_status launch_once(struct run *r, const struct launch_args *args, const CUevent events[2], double *ms, gpul_error *err)
{
	float elapsed = 0;
	gpul_status st = gpul_cu(r->drv, err, cuEventRecord(events[0], r->config.stream));

	if (st == GPUL_OK)
		st = gpul_kernel_launch(r->kernel, &r->config, args->values, args->bytes, r->ask.n_args, err);
	if (st == GPUL_OK)
		st = gpul_cu(r->drv, err, cuEventRecord(events[1], r->config.stream));
	if (st == GPUL_OK)
		st = wait_for_event(r, events[1], err);
	if (st == GPUL_OK)
		st = gpul_cu(r->drv, err, cuEventElapsedTime(&elapsed, events[0], events[1]));
	*ms = (double)elapsed;
	return st;
}

static gpul_status launch_all(struct run *r, const struct launch_args *args, gpul_error *err)
{
	CUevent events[2] = { NULL, NULL };
	gpul_status st = gpul_cu(r->drv, err, cuEventCreate(&events[0], CU_EVENT_DEFAULT));

	if (st == GPUL_OK)
		st = gpul_cu(r->drv, err, cuEventCreate(&events[1], CU_EVENT_DEFAULT));
	for (uint32_t i = 0; st == GPUL_OK && i < r->ask.repeat; i++) {
		st = set_buffers(r, i == 0, err);
		if (st == GPUL_OK)
			st = launch_once(r, args, events, &r->times_ms[i], err);
	}
	for (int i = 0; i < 2 && !r->still_running; i++)
		if (events[i])
			r->drv->cuEventDestroy(events[i]);
	return st;
}

gpul_status run_launch(struct run *r, gpul_error *err)
{
	struct launch_args args = { 0 };
	gpul_status st;

	r->times_ms = calloc(r->ask.repeat, sizeof *r->times_ms);
	if (!r->times_ms)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the times of %u launches", r->ask.repeat);
	st = gpul_kernel_prepare(r->kernel, err); /* otherwise times_ms[0] would include the time to load the code */
	if (st == GPUL_OK)
		st = alloc_buffers(r, err);
	if (st == GPUL_OK)
		st = gather_args(r, &args, err);
	if (st == GPUL_OK)
		st = launch_all(r, &args, err);
	if (st == GPUL_OK)
		st = fetch_buffers(r, err);
	free(args.values);
	free(args.bytes);
	return st;
}
