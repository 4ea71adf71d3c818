/* fifo_push.c — gpuload fifo push: a kernel of this process pushes to a proxy in another process. */
#include "cli/fifo/cli_fifo.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fifo/fifo_push.h"
#include "cli/share/share.h"
#include "cli/lib/cli_stop.h"
#include "cli/lib/value.h"
#include "core/clock.h"
#include "loader/embedded.h"
#include "loader/loader.h"
#include "proxy/fifo.h"

GPUL_EMBED(fifo_push_ptx, "cli/kernels/fifo_push.ptx");

enum { DEFAULT_COUNT = 1000, MOST_BLOCKS = 4096, DEFAULT_TIMEOUT_MS = 10000, RETRY_MS = 10, DETACH_MS = 10000, LOOK_MS = 1 };
enum { OPT_COUNT, OPT_BLOCKS, OPT_SHARE, OPT_SYNC_EACH, OPT_RELAXED, OPT_TIMEOUT, OPT_WAIT, OPT_DEVICE, OPT_JSON, OPT_DRIVER };

static const struct cli_opt push_opts[] = {
	[OPT_COUNT] = { "count", "N", "triggers that each block pushes (default: 1000)", NULL },
	[OPT_BLOCKS] = { "blocks", "N", "number of blocks, one thread each (default: one per lane)", NULL },
	[OPT_SHARE] = { "share", NULL, "let several blocks push into one lane; always on with more blocks than lanes", NULL },
	[OPT_SYNC_EACH] = { "sync-each", NULL, "wait after each push until it has been handled", NULL },
	[OPT_RELAXED] = { "relaxed", NULL, "push with relaxed order: earlier writes may become visible later", NULL },
	[OPT_TIMEOUT] = { "timeout", "SECONDS", "seconds that a push or a sync waits for the proxy (default: 10)", NULL },
	[OPT_WAIT] = { "wait", "SECONDS", "seconds to wait until NAME is shared (default: 0)", NULL },
	[OPT_DEVICE] = { "device", "N", "number of the GPU, counted from 0 (default: 0)", NULL },
	[OPT_JSON] = CLI_JSON_OPT,
	[OPT_DRIVER] = CLI_DRIVER_OPT,
	{ 0 },
};

static const char push_details[] = "Attaches to the FIFO that gpuload fifo serve offers as NAME, and runs a kernel whose blocks\n"
				   "push triggers and wait until the proxy, in the other process, has handled them. A trigger's\n"
				   "first word is its number in its block, its second word the number of the block; its kind is 1.\n"
				   "\n"
				   "If the other process ends, the kernel is aborted at once; if that process does not handle\n"
				   "triggers, the kernel ends after --timeout. In both cases the exit status is 1.\n";

struct push {
	const char *name; /* borrowed */
	uint64_t count;
	unsigned blocks, flags; /* blocks is 0: one block per lane */
	int timeout_ms, wait_ms;
	bool json;
	struct devices_arg devices;
	gpul_ipc_client *client;
	const gpul_ipc_view *view;
	gpul_fifo_gpu *end;
	gpul_module *module;
	CUstream stream;
	CUdeviceptr first, results;
	gpul_error lost; /* why this process aborted the kernel; status OK: it did not abort the kernel */
	uint64_t elapsed_ns;
	struct fifo_push_result total;
};

/* ---- the command line ----------------------------------------------------------------- */

static gpul_status parse_numbers(const struct cli_args *args, struct push *p, gpul_error *err)
{
	const char *count = cli_value(args, OPT_COUNT), *blocks = cli_value(args, OPT_BLOCKS);
	size_t n_count = DEFAULT_COUNT, n_blocks = 0;
	gpul_status st = count ? value_parse_size(count, strlen(count), &n_count, err) : GPUL_OK;

	if (!st && blocks)
		st = value_parse_size(blocks, strlen(blocks), &n_blocks, err);
	if (!st && (n_blocks > MOST_BLOCKS || (blocks && n_blocks == 0)))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--blocks must be a number from 1 to %d, not '%s'", MOST_BLOCKS, blocks);
	p->count = n_count;
	p->blocks = (unsigned)n_blocks;
	return st;
}

static gpul_status parse_request(const struct cli_args *args, struct push *p, gpul_error *err)
{
	const char *timeout = cli_value(args, OPT_TIMEOUT), *wait = cli_value(args, OPT_WAIT);
	gpul_status st = GPUL_OK;

	*p = (struct push){ .json = cli_value(args, OPT_JSON), .timeout_ms = DEFAULT_TIMEOUT_MS };
	if (args->n_operands != 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "expected one NAME; see gpuload help fifo push");
	p->name = args->operands[0];
	p->flags = (cli_value(args, OPT_SHARE) ? FIFO_PUSH_SHARE : 0u) | (cli_value(args, OPT_SYNC_EACH) ? FIFO_PUSH_SYNC_EACH : 0u) |
		   (cli_value(args, OPT_RELAXED) ? FIFO_PUSH_RELAXED : 0u);
	st = parse_numbers(args, p, err);
	if (!st && timeout)
		st = value_parse_seconds("timeout", timeout, &p->timeout_ms, err);
	if (!st && wait)
		st = value_parse_seconds("wait", wait, &p->wait_ms, err);
	return st ? st : devices_arg_parse(cli_value(args, OPT_DRIVER), cli_value(args, OPT_DEVICE), &p->devices, err);
}

/* ---- attaching, and the GPU's access to the FIFO -------------------------------------------- */

static gpul_status attach_fifo(struct push *p, gpul_error *err)
{
	const gpul_ipc_client_options options = { .name = p->name, .fd = -1, .devices = p->devices.ordinal, .n_devices = 1 };
	const uint64_t until_ns = gpul_clock_ns() + (uint64_t)p->wait_ms * 1000000;

	for (;;) {
		gpul_error why = { 0 };

		if (gpul_ipc_attach(p->devices.drv, &options, DEFAULT_TIMEOUT_MS, &p->client, &why) == GPUL_OK)
			break;
		/* retry if the name is not shared yet, or if the owner of its socket has ended */
		if (why.status != GPUL_ESYS || (why.native != ENOENT && why.native != ECONNREFUSED) || gpul_clock_ns() >= until_ns)
			return share_explain(p->name, &why, err);
		poll(NULL, 0, RETRY_MS);
	}
	p->view = gpul_ipc_client_view(p->client);
	if (!p->view->cpu)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "'%.64s' is device memory, which a proxy cannot access: expected a FIFO of gpuload fifo serve", p->name);
	return GPUL_OK;
}

static gpul_status create_gpu_access(struct push *p, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = gpul_fifo_gpu_create(p->devices.drv, p->view->cpu, p->view->gpu, p->view->bytes, &p->end, &why);

	if (st == GPUL_EFORMAT)
		return gpul_fail(err, st, 0, "'%.64s' is shared, but it is not a FIFO; gpuload fifo serve creates FIFOs", p->name);
	if (st)
		return gpul_fail(err, st, why.native, "%s", why.text);
	/* a failure is ignored: the owner also notices the end of this process by its socket, but later */
	(void)gpul_fifo_gpu_hold_lifeline(p->end, NULL);
	if (!p->blocks)
		p->blocks = gpul_fifo_gpu_param(p->end)->n_lanes;
	if (p->blocks > gpul_fifo_gpu_param(p->end)->n_lanes)
		p->flags |= FIFO_PUSH_SHARE;
	return GPUL_OK;
}

static gpul_status allocate_buffers(struct push *p, gpul_error *err)
{
	const gpul_driver *drv = p->devices.drv;
	const size_t first_bytes = p->blocks * sizeof(uint64_t), bytes = first_bytes + p->blocks * sizeof(struct fifo_push_result);
	gpul_status st = gpul_cu(drv, err, cuMemAlloc(&p->first, bytes));

	if (st)
		return st;
	p->results = p->first + first_bytes;
	st = gpul_cu(drv, err, cuMemsetD8Async(p->first, 0, bytes, NULL));
	st = st ? st : gpul_cu(drv, err, cuStreamSynchronize(NULL));
	return st ? st : gpul_cu(drv, err, cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
}

/* ---- push ------------------------------------------------------------------------------------ */

static gpul_status launch_kernel(struct push *p, gpul_error *err)
{
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(p->end);
	uint64_t timeout_ns = (uint64_t)p->timeout_ms * 1000000;
	const gpul_launch_config config = { .grid = { p->blocks, 1, 1 }, .block = { 1, 1, 1 }, .stream = p->stream };
	void *args[] = { &fifo, &p->first, &p->count, &timeout_ns, &p->flags, &p->results };
	const size_t bytes[] = { sizeof fifo, sizeof p->first, sizeof p->count, sizeof timeout_ns, sizeof p->flags, sizeof p->results };
	const gpul_kernel *kernel;
	gpul_status st = gpul_module_load_embedded(p->devices.drv, &fifo_push_ptx, &p->module, err);

	st = st ? st : gpul_kernel_find(p->module, "fifo_push", &kernel, err);
	return st ? st : gpul_kernel_launch(kernel, &config, args, bytes, 6, err);
}

/* Abort the kernel if a signal has arrived, or if the owner has ended, because nobody would handle the triggers. */
static gpul_status check_owner(struct push *p, gpul_error *err)
{
	gpul_ipc_event e = { .kind = GPUL_IPC_NONE };
	gpul_status st;

	if (p->lost.status) { /* the kernel is aborted and ends soon */
		poll(NULL, 0, LOOK_MS);
		return GPUL_OK;
	}
	st = stop_wait(gpul_ipc_client_fd(p->client), LOOK_MS, err);
	st = st ? st : gpul_ipc_client_next(p->client, 0, &e, err);
	if (st)
		return st;
	if (e.kind == GPUL_IPC_OWNER_DIED || gpul_fifo_gpu_peer_died(p->end))
		gpul_fail(&p->lost, GPUL_ESYS, EPIPE, "the process that serves '%.64s' has died", p->name);
	else if (e.kind == GPUL_IPC_DETACHED)
		gpul_fail(&p->lost, GPUL_ESYS, EPIPE, "the process that serves '%.64s' has ended", p->name);
	else if (stop_requested())
		gpul_fail(&p->lost, GPUL_ESYS, ECANCELED, "ended by %s", stop_requested());
	if (p->lost.status)
		gpul_fifo_gpu_abort(p->end, p->lost.native == EPIPE ? GPUL_FIFO_CODE_PEER_GONE : GPUL_FIFO_CODE_STOPPED);
	return GPUL_OK;
}

static gpul_status wait_for_kernel(struct push *p, gpul_error *err)
{
	const gpul_driver *drv = p->devices.drv;
	const uint64_t begun_ns = gpul_clock_ns();
	gpul_status st = GPUL_OK;
	CUresult r;

	while (!st && (r = drv->cuStreamQuery(p->stream)) == CUDA_ERROR_NOT_READY)
		st = check_owner(p, err);
	p->elapsed_ns = gpul_clock_ns() - begun_ns;
	if (st) /* let the kernel stop waiting, because this process no longer polls it */
		gpul_fifo_gpu_abort(p->end, GPUL_FIFO_CODE_STOPPED);
	return st ? st : gpul_cu_status(drv, err, r, "cuStreamQuery(p->stream)");
}

static gpul_status read_results(struct push *p, gpul_error *err)
{
	struct fifo_push_result *results = calloc(p->blocks, sizeof *results);
	gpul_status st;

	if (!results)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results of %u blocks", p->blocks);
	st = gpul_cu(p->devices.drv, err, cuMemcpyDtoH(results, p->results, p->blocks * sizeof *results));
	for (unsigned i = 0; !st && i < p->blocks; i++) {
		p->total.pushed += results[i].pushed;
		if (results[i].result > p->total.result)
			p->total.result = results[i].result;
	}
	free(results);
	return st;
}

/* ---- the result --------------------------------------------------------------------------------- */

static const char *result_name(unsigned result)
{
	static const char *const names[] = { "ok", "timed-out", "aborted", "busy" };

	return result < sizeof names / sizeof *names ? names[result] : "?";
}

static gpul_status print_result(const struct push *p, gpul_error *err)
{
	struct json j = { 0 };

	if (!p->json) {
		printf("%-10s %s: %u blocks x %" PRIu64 " triggers, all handled, in %.3f ms: %.3f M/s\n", "PUSHED", p->name, p->blocks,
		       p->count, (double)p->elapsed_ns / 1e6, (double)p->total.pushed * 1e3 / (double)p->elapsed_ns);
		return share_flush(err);
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "name", p->name);
	json_text(&j, "driver", p->devices.drv->name);
	json_u64(&j, "blocks", p->blocks);
	json_u64(&j, "count", p->count);
	json_u64(&j, "pushed", p->total.pushed);
	json_text(&j, "result", result_name(p->total.result));
	json_double(&j, "seconds", (double)p->elapsed_ns / 1e9);
	json_end(&j, '}');
	return share_json_print(&j, err);
}

static gpul_status explain_failure(const struct push *p, gpul_error *err)
{
	const uint64_t all = p->count * p->blocks;
	const uint32_t code = gpul_fifo_gpu_aborted(p->end);
	char text[64];

	if (p->lost.status)
		return gpul_fail(err, p->lost.status, p->lost.native, "%s; %" PRIu64 " of %" PRIu64 " triggers were pushed", p->lost.text,
				 (uint64_t)p->total.pushed, all);
	if (p->total.result == GPUL_FIFO_TIMED_OUT || code == GPUL_FIFO_CODE_TIMED_OUT)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
				 "a push waited more than %d ms for the proxy of '%.64s' (--timeout); %" PRIu64 " of %" PRIu64
				 " triggers were pushed",
				 p->timeout_ms, p->name, (uint64_t)p->total.pushed, all);
	if (code == GPUL_FIFO_CODE_STOPPED) /* the FIFO has reported the owner's end before the socket did */
		return gpul_fail(err, GPUL_ESYS, EPIPE,
				 "the process that serves '%.64s' has ended; %" PRIu64 " of %" PRIu64 " triggers were pushed", p->name,
				 (uint64_t)p->total.pushed, all);
	return gpul_fail(err, GPUL_ESYS, ECANCELED, "the kernel was aborted: %s; %" PRIu64 " of %" PRIu64 " triggers were pushed",
			 gpul_fifo_code_text(code, text), (uint64_t)p->total.pushed, all);
}

static gpul_status run_kernel(struct push *p, gpul_error *err)
{
	gpul_status st = stop_begin(err);

	st = st ? st : launch_kernel(p, err);
	st = st ? st : wait_for_kernel(p, err);
	st = st ? st : read_results(p, err);
	if (st)
		return st;
	return p->total.result == GPUL_FIFO_OK ? print_result(p, err) : explain_failure(p, err);
}

/* Free everything except the attachment to the owner's memory, in the reverse order of creation. */
static void free_push(struct push *p)
{
	const gpul_driver *drv = p->devices.drv;

	if (p->stream)
		drv->cuStreamDestroy(p->stream);
	if (p->first)
		drv->cuMemFree(p->first); /* waits for the kernel if it still runs */
	gpul_module_unload(p->module);
	gpul_fifo_gpu_destroy(p->end);
}

static gpul_status push_to_fifo(struct push *p, gpul_error *err)
{
	gpul_status st = devices_arg_open(&p->devices, err), closed;

	if (st)
		return st;
	st = attach_fifo(p, err);
	st = st ? st : create_gpu_access(p, err);
	st = st ? st : allocate_buffers(p, err);
	st = st ? st : run_kernel(p, err);
	free_push(p);
	closed = gpul_ipc_client_close(p->client, DETACH_MS, err);
	devices_arg_close(&p->devices);
	return st ? st : closed;
}

static int cmd_fifo_push(const struct cli_args *args, gpul_error *err)
{
	struct push p;
	gpul_status st = parse_request(args, &p, err);

	return cli_exit_code(st ? st : push_to_fifo(&p, err));
}

const struct cli_cmd cli_fifo_push = {
	"fifo push", "NAME", "run a kernel that pushes to the proxy of another process", push_details, push_opts, cmd_fifo_push,
	CLI_SHARES,  NULL,
};
