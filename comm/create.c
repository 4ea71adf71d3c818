/* create.c — creates a communicator by joining a job, and destroys it. */
#include <stdlib.h>

#include "comm/comm_internal.h"
#include "comm/persistent.h"
#include "core/clock.h"

enum { DEFAULT_TIMEOUT_MS = 60 * 1000, MAX_SLOT_BYTES = 4 << 20 };

static gpul_status check_options(const gpul_comm_options *o, gpul_error *err)
{
	if (o->device < -1)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "options.device is %d: expected a device number, or -1 for a device chosen by gpuload", o->device);
	if ((unsigned)o->transport >= GPUL_COMM_N_TRANSPORTS || (unsigned)o->algo >= GPUL_COMM_N_ALGOS ||
	    (unsigned)o->proto >= GPUL_COMM_N_PROTOS)
		return gpul_fail(err, GPUL_EINVAL, 0, "unknown transport %d, algorithm %d or protocol %d in the options", (int)o->transport,
				 (int)o->algo, (int)o->proto);
	if (o->n_blocks > GPUL_COMM_MAX_BLOCKS)
		return gpul_fail(err, GPUL_EINVAL, 0, "options.n_blocks is %u: expected at most %d", o->n_blocks, GPUL_COMM_MAX_BLOCKS);
	if (o->slot_bytes > MAX_SLOT_BYTES || o->slot_bytes % GPUL_COMM_LINE_BYTES)
		return gpul_fail(err, GPUL_EINVAL, 0, "options.slot_bytes is %zu: expected a multiple of %d, at most %d", o->slot_bytes,
				 GPUL_COMM_LINE_BYTES, MAX_SLOT_BYTES);
	if (o->ranks_per_host > GPUL_COMM_MAX_RANKS)
		return gpul_fail(err, GPUL_EINVAL, 0, "options.ranks_per_host is %u: expected at most %d", o->ranks_per_host,
				 GPUL_COMM_MAX_RANKS);
	return GPUL_OK;
}

/* Choose the sizes of channels.  A slot is large enough that its copy takes longer than the fence and the step counter.  With the
 * software driver slots are small, because all ranks share the machine's memory.  With a network, only the protocol Simple is used,
 * and no one-shot algorithm; few blocks suffice, and slots are large, because each slot costs the CPUs a put and a credit. */
static void choose_sizes(gpul_comm *c)
{
	const bool small = c->interprets;
	gpul_comm_sizes *s = &c->sizes;

	*s = (gpul_comm_sizes){
		.n_ranks = (uint32_t)c->n_ranks,
		.n_blocks = c->options.n_blocks ? c->options.n_blocks
			    : c->has_network    ? (small ? 4 : 8)
			    : small             ? 2
						: 32,
		.slot_bytes = c->options.slot_bytes ? (uint32_t)c->options.slot_bytes
			      : !small              ? 256 << 10
			      : c->has_network      ? 128 << 10
						    : 16 << 10,
		.ll_bytes = small ? 4 << 10 : 32 << 10,
		.ll128_bytes = small ? 4 << 10 : 64 << 10,
		.scratch_bytes = small ? 64 << 10 : 1 << 20,
	};
	if (c->has_network)
		s->ll_bytes = s->ll128_bytes = s->scratch_bytes = GPUL_COMM_LINE_BYTES;
	gpul_comm_arena_sizes(s);
}

static gpul_status open_device(gpul_comm *c, gpul_error *err)
{
	int n_devices = 0;
	gpul_status st = gpul_cu(c->drv, err, cuDeviceGetCount(&n_devices));

	if (st)
		return st;
	c->device = c->options.device >= 0 || n_devices == 0 ? c->options.device : c->rank % n_devices;
	return gpul_context_open(c->drv, c->device, &c->ctx, err);
}

static int left_ms(uint64_t deadline_ns)
{
	const uint64_t now = gpul_clock_ns();

	return now < deadline_ns ? (int)((deadline_ns - now) / 1000000) : 0;
}

/* Perform those steps of gpul_comm_create() in which the other ranks take part.  The time-out limits their total time. */
static gpul_status join(gpul_comm *c, const gpul_comm_job *job, gpul_error *err)
{
	const int timeout_ms = c->options.create_timeout_ms;
	const uint64_t deadline_ns = gpul_clock_ns() + (uint64_t)timeout_ms * 1000 * 1000;
	gpul_status st = gpul_boot_open(job, timeout_ms, &c->boot, err);

	if (!st)
		gpul_boot_limit(c->boot, deadline_ns, timeout_ms, 0);
	/* checked only after the ranks have met, so that the other ranks report the error, too */
	st = st ? st : check_options(&c->options, err);
	st = st ? st : open_device(c, err);
	st = st ? st : gpul_comm_choices_load(c, err);
	st = st ? st : gpul_comm_introduce(c, timeout_ms, err);
	if (!st)
		gpul_comm_hosts_find(c);
	st = st ? st : gpul_comm_choose_paths(c, timeout_ms, err);
	choose_sizes(c);
	st = st ? st : gpul_comm_network_open(c, left_ms(deadline_ns), err);
	st = st ? st : gpul_comm_network_create(c, timeout_ms, err);
	st = st ? st : gpul_comm_arenas_create(c, timeout_ms, err);
	st = st ? st : gpul_comm_choices_select(c, err);
	st = st ? st : gpul_cu(c->drv, err, cuEventCreate(&c->last.ended, CU_EVENT_DISABLE_TIMING));
	st = st ? st : gpul_cu(c->drv, err, cuEventCreate(&c->last_captured.ended, CU_EVENT_DISABLE_TIMING));
	st = st ? st : gpul_cu(c->drv, err, cuEventCreate(&c->pace, CU_EVENT_DISABLE_TIMING));
	st = st ? st : gpul_comm_kernels_load(c, err);
	st = st ? st : gpul_comm_view_create(c, err);
	st = st ? st : gpul_comm_service_start(c, err);
	st = st ? st : gpul_comm_network_start(c, err);
	st = st ? st : gpul_boot_barrier(c->boot, timeout_ms, err);
	if (!st)
		gpul_boot_limit(c->boot, UINT64_MAX, 0, 0);
	return st;
}

static void free_comm(gpul_comm *c)
{
	gpul_comm_service_stop(c);
	gpul_comm_network_destroy(c);
	gpul_boot_close(c->boot);
	gpul_comm_persistent_destroy(c);
	gpul_comm_replay_destroy(c);
	gpul_comm_kernels_unload(c);
	gpul_comm_windows_destroy(c);
	gpul_comm_arenas_destroy(c);
	if (c->last.ended)
		(void)c->drv->cuEventDestroy(c->last.ended);
	if (c->last_captured.ended)
		(void)c->drv->cuEventDestroy(c->last_captured.ended);
	if (c->pace)
		(void)c->drv->cuEventDestroy(c->pace);
	gpul_comm_view_destroy(c);
	gpul_comm_choices_free(c);
	gpul_context_close(&c->ctx);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
}

gpul_status gpul_comm_create(const gpul_driver *drv, const gpul_comm_options *options, gpul_comm **out, gpul_error *err)
{
	gpul_comm *c = calloc(1, sizeof *c);
	gpul_comm_job job;
	gpul_error why = { 0 };
	gpul_roster_event first;
	gpul_status st = GPUL_OK;
	bool failed;

	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a communicator");
	(void)pthread_mutex_init(&c->lock, NULL);
	c->drv = drv;
	c->interprets = drv->interprets;
	c->options = options ? *options : (gpul_comm_options){ .device = -1 };
	if (c->options.timeout_ms == 0)
		c->options.timeout_ms = DEFAULT_TIMEOUT_MS;
	if (c->options.create_timeout_ms <= 0)
		c->options.create_timeout_ms = DEFAULT_TIMEOUT_MS;
	if (options && options->job)
		job = *options->job;
	else
		st = gpul_comm_job_find(&job, err);
	if (!st) {
		c->rank = job.rank;
		c->n_ranks = job.size;
		st = join(c, &job, &why);
	}
	if (st) {
		if (c->boot && why.status) /* publish the failure, so that the other ranks report it, too */
			gpul_boot_fail(c->boot, &why, c->rank);
		failed = c->boot && gpul_boot_failure(c->boot, &first);
		if (failed && first.kind == GPUL_RANK_DIED)
			st = gpul_fail(err, GPUL_ECOMM, GPUL_COMM_RANK_DIED, "%s", first.text);
		else if (failed && first.status == GPUL_ECOMM) /* another rank failed after it had created its communicator */
			st = gpul_fail(err, GPUL_ECOMM, first.native, "%s", first.text);
		else if (why.status)
			st = gpul_fail(err, why.status, why.native, "%s", why.text);
		free_comm(c);
		return st;
	}
	*out = c;
	return GPUL_OK;
}

void gpul_comm_destroy(gpul_comm *c)
{
	CUstreamCaptureMode mode;
	CUresult r;

	if (!c)
		return;
	mode = gpul_comm_relax(c);
	/* No kernel of any rank may run when memory is unmapped.  After a failure all kernels end, because the abort word is set. */
	(void)c->drv->cuCtxSetCurrent(c->ctx.handle);
	(void)gpul_comm_persistent_stop(c->persistent, NULL);
	r = c->drv->cuCtxSynchronize();
	if (r && c->last.exists) /* cuCtxSynchronize() fails during a stream capture of the program: wait for the last call only */
		r = c->drv->cuEventSynchronize(c->last.ended);
	gpul_comm_unrelax(c, mode);
	if (!gpul_comm_awaited(c, r, "cuCtxSynchronize()", NULL)) {
		gpul_comm_network_leave(c);
		(void)gpul_boot_last_barrier(c->boot, c->options.create_timeout_ms, NULL);
	}
	free_comm(c);
}

int gpul_comm_rank(const gpul_comm *c)
{
	return c->rank;
}

int gpul_comm_size(const gpul_comm *c)
{
	return c->n_ranks;
}

int gpul_comm_device(const gpul_comm *c)
{
	return c->device;
}

CUcontext gpul_comm_context(const gpul_comm *c)
{
	return c->ctx.handle;
}

void gpul_comm_path_to(const gpul_comm *c, int rank, gpul_comm_path *out)
{
	*out = c->paths[rank];
}

/* ---- the order of the ranks by host ---- */

void gpul_comm_hosts_order(struct comm_hosts *out, const int *host, int n_ranks, int rank)
{
	bool placed[GPUL_COMM_MAX_PEERS] = { false };
	int n = 0, first_n = 0;
	bool even = true;

	*out = (struct comm_hosts){ .n = 0 };
	for (int r = 0; r < n_ranks; r++) {
		const int begin = n;

		if (placed[r])
			continue;
		for (int other = r; other < n_ranks; other++)
			if (host[other] == host[r]) {
				if (other == rank)
					out->place = (unsigned)n;
				placed[other] = true;
				out->order[n++] = other;
			}
		first_n = r == 0 ? n : first_n;
		even = even && n - begin == first_n;
		out->n++;
	}
	out->ranks_per_host = even ? (unsigned)first_n : 0;
}

void gpul_comm_hosts_find(gpul_comm *c)
{
	int host[GPUL_COMM_MAX_PEERS];

	for (int r = 0; r < c->n_ranks; r++)
		host[r] = c->options.ranks_per_host ? r / (int)c->options.ranks_per_host : gpul_boot_host(c->boot, r);
	gpul_comm_hosts_order(&c->hosts, host, c->n_ranks, c->rank);
}
