/* share.c — gpuload share: creates memory, fills it, offers it to other processes, and prints their events. */
#include "cli/share/share.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/fill.h"
#include "cli/lib/cli_stop.h"
#include "core/clock.h"
#include "ipc/place.h"

struct share {
	struct share_request ask;
	gpul_mem *mem;
	gpul_ipc_server *server;
	size_t n_attached;
	bool left; /* true: a process was attached, and all processes have detached */
};

/* ---- contents ---------------------------------------------------------------------- */

/* Fill memory in place, because the CPU can access it. */
static gpul_status fill_host(const struct share_request *q, unsigned char *to, gpul_error *err)
{
	if (q->data) {
		memcpy(to, q->data, q->bytes);
		return gpul_file_check(&q->file, "the file of --from", err);
	}
	if (q->fill)
		return fill_in_place(q->type, q->fill, q->bytes / gpul_type_bytes(q->type), to, err);
	return GPUL_OK; /* new pages contain zeros */
}

/* Fill device memory.  Write zeros first, because new device memory contains old data. */
static gpul_status fill_device(const struct share_request *q, CUdeviceptr to, gpul_error *err)
{
	const gpul_driver *drv = q->devices.drv;
	size_t count = q->type ? q->bytes / gpul_type_bytes(q->type) : 0;
	void *made = NULL;
	gpul_status st = gpul_cu(drv, err, cuMemsetD8Async(to, 0, q->bytes, NULL));

	if (st == GPUL_OK && q->fill)
		st = fill_make(q->type, q->fill, NULL, &count, &made, err);
	if (st == GPUL_OK && (made || q->data))
		st = gpul_cu(drv, err, cuMemcpyHtoD(to, made ? made : q->data, q->bytes));
	if (st == GPUL_OK)
		st = gpul_cu(drv, err, cuCtxSynchronize());
	if (st == GPUL_OK && q->data)
		st = gpul_file_check(&q->file, "the file of --from", err);
	free(made);
	return st;
}

/* Create the memory, which consists of the control page and the user's bytes. */
static gpul_status make_memory(struct share *s, gpul_error *err)
{
	struct share_request *q = &s->ask;
	gpul_mem_desc desc = {
		.kind = q->kind,
		.node = q->node,
		.devices = q->devices.ordinal,
		.n_devices = q->devices.n,
		.exportable = true,
		.fabric = q->fabric,
	};
	unsigned char *cpu;
	gpul_status st;

	if (__builtin_add_overflow(q->bytes, (size_t)GPUL_IPC_CONTROL_BYTES, &desc.bytes))
		return gpul_fail(err, GPUL_EINVAL, 0, "%zu bytes exceed the address space", q->bytes);
	st = gpul_mem_create(q->devices.drv, &desc, &s->mem, err);
	if (st)
		return st;
	cpu = gpul_mem_cpu(s->mem);
	st = cpu ? fill_host(q, cpu + GPUL_IPC_CONTROL_BYTES, err) : fill_device(q, gpul_mem_gpu(s->mem) + GPUL_IPC_CONTROL_BYTES, err);
	share_request_free_contents(q);
	return st;
}

static gpul_status create_server(struct share *s, gpul_error *err)
{
	const gpul_ipc_server_options options = {
		.name = s->ask.name,
		.control = true,
		.read_only = s->ask.read_only,
		.bytes = s->ask.bytes,
		.shape = s->ask.shape,
	};

	return gpul_ipc_server_create(s->ask.devices.drv, s->mem, &options, &s->server, err);
}

/* ---- READY ------------------------------------------------------------------------- */

static const char *kind_reason(const struct share *s)
{
	const gpul_mem_info *about = gpul_mem_about(s->mem);

	if (s->ask.kind != GPUL_MEM_AUTO)
		return "--kind";
	return about->why[0] ? about->why : "it is the first kind that works";
}

static void print_address(const gpul_ipc_view *v)
{
	if (v->cpu && (uintptr_t)v->cpu == (uintptr_t)v->gpu)
		printf("CPU and GPU 0x%" PRIxPTR, (uintptr_t)v->cpu);
	else if (v->cpu)
		printf("CPU 0x%" PRIxPTR ", GPU 0x%llx", (uintptr_t)v->cpu, v->gpu);
	else
		printf("GPU 0x%llx", v->gpu);
}

static void ready_text(const struct share *s, const char *socket)
{
	const gpul_mem_info *about = gpul_mem_about(s->mem);
	const gpul_ipc_view *v = gpul_ipc_server_view(s->server);
	char size[SHARE_SIZE_BYTES], mapped[SHARE_SIZE_BYTES], shape[SHARE_SHAPE_BYTES];

	printf("%-10s %s: %s (%s), %s", "READY", s->ask.name, gpul_mem_kind_name(about->kind), kind_reason(s),
	       share_size_text(v->bytes, size));
	if (s->ask.shape.n_dims)
		printf(" of %s", share_shape_text(&s->ask.shape, shape));
	printf(", %s mapped, ", share_size_text(about->mapped_bytes, mapped));
	if (about->node >= 0)
		printf("node %d%s, ", about->node, about->node_clamped ? " (the only one)" : "");
	print_address(v);
	printf(", %s\n", socket);
}

static gpul_status ready_json(const struct share *s, const char *socket, gpul_error *err)
{
	const gpul_mem_info *about = gpul_mem_about(s->mem);
	const gpul_ipc_view *v = gpul_ipc_server_view(s->server);
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_text(&j, "event", "READY");
	json_text(&j, "name", s->ask.name);
	json_text(&j, "kind", gpul_mem_kind_name(about->kind));
	json_text(&j, "why", kind_reason(s));
	json_u64(&j, "bytes", v->bytes);
	json_u64(&j, "mapped_bytes", about->mapped_bytes);
	share_json_shape(&j, &s->ask.shape);
	if (about->node >= 0)
		json_i64(&j, "node", about->node);
	else
		json_null(&j, "node");
	if (v->cpu)
		json_u64(&j, "cpu", (uintptr_t)v->cpu);
	else
		json_null(&j, "cpu");
	json_u64(&j, "gpu", v->gpu);
	json_text(&j, "driver", s->ask.devices.drv->name);
	json_text(&j, "socket", socket);
	json_end(&j, '}');
	return share_json_print(&j, err);
}

static gpul_status print_ready(const struct share *s, gpul_error *err)
{
	char socket[GPUL_IPC_PATH_BYTES] = "";
	gpul_status st = gpul_ipc_place(s->ask.name, false, socket, err);

	if (st == GPUL_OK && s->ask.json)
		return ready_json(s, socket, err);
	if (st == GPUL_OK)
		ready_text(s, socket);
	return st ? st : share_flush(err);
}

/* ---- serving ----------------------------------------------------------------------- */

/* Print pending events, at most GPUL_IPC_MAX_PEERS at a time, so that many events do not delay --for or a signal. */
static gpul_status serve_events(struct share *s, gpul_error *err)
{
	for (int i = 0; i < GPUL_IPC_MAX_PEERS; i++) {
		gpul_ipc_event e;
		gpul_status st = gpul_ipc_server_next(s->server, 0, &e, err);

		if (st || e.kind == GPUL_IPC_NONE)
			return st;
		s->n_attached = gpul_ipc_server_peers(s->server, NULL, 0);
		if (e.kind == GPUL_IPC_DETACHED || e.kind == GPUL_IPC_PEER_DIED)
			s->left = s->n_attached == 0;
		else if (e.kind == GPUL_IPC_ATTACHED)
			s->left = false;
		st = share_print_event(s->ask.name, &e, (int)s->n_attached, s->ask.json, err);
		if (st)
			return st;
	}
	return GPUL_OK;
}

/* Return the time in ms until --for is over; -1: no limit. */
static int remaining_ms(uint64_t started_ns, int for_ms)
{
	uint64_t passed_ms = (gpul_clock_ns() - started_ns) / 1000000;

	if (for_ms < 0)
		return -1;
	return passed_ms >= (uint64_t)for_ms ? 0 : for_ms - (int)passed_ms;
}

/* Serve until a signal, --for or --until-detached ends the command; *why is set to the reason for the end. */
static gpul_status serve_until_end(struct share *s, const char **why, gpul_error *err)
{
	uint64_t started_ns = gpul_clock_ns();
	gpul_status st = GPUL_OK;

	while (st == GPUL_OK) {
		int wait_ms = remaining_ms(started_ns, s->ask.for_ms);

		st = stop_wait(gpul_ipc_server_fd(s->server), wait_ms, err);
		if (st == GPUL_OK)
			st = serve_events(s, err);
		*why = stop_requested();
		if (!*why && s->ask.until_detached && s->left)
			*why = "the last peer has detached";
		if (!*why && wait_ms == 0)
			*why = "the time given by --for has passed";
		if (*why)
			break;
	}
	return st;
}

/* ---- the command ------------------------------------------------------------------- */

static gpul_status run_share(struct share *s, gpul_error *err)
{
	const char *why = NULL;
	gpul_status st = devices_arg_open(&s->ask.devices, err);

	if (st == GPUL_OK)
		st = make_memory(s, err);
	if (st == GPUL_OK)
		st = stop_begin(err);
	if (st == GPUL_OK)
		st = create_server(s, err);
	if (st == GPUL_OK)
		st = print_ready(s, err);
	if (st == GPUL_OK)
		st = serve_until_end(s, &why, err);
	gpul_ipc_server_destroy(s->server);
	gpul_mem_destroy(s->mem);
	devices_arg_close(&s->ask.devices);
	if (st == GPUL_OK)
		st = share_print_end(s->ask.name, why, s->ask.json, err);
	return st;
}

static int cmd_share(const struct cli_args *args, gpul_error *err)
{
	struct share s = { 0 };
	gpul_status st = share_request_make(args, &s.ask, err);

	if (st == GPUL_OK)
		st = run_share(&s, err);
	share_request_free(&s.ask);
	return cli_exit_code(st);
}

const struct cli_cmd cli_share = {
	"share", "NAME", "create memory for GPUs and CPUs, and offer it to other processes", share_details, share_opts, cmd_share,
	NULL,    NULL,
};
