/* mmap_sum.c — gpuload mmap-sum: several processes map one buffer, and compare the sums of their GPUs and CPUs. */
#include "cli/sum/mmap_sum.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/command.h"
#include "cli/lib/fill.h"
#include "ipc/server.h"

/* clang-format off */
enum {
	MMAP_SUM_N, MMAP_SUM_BYTES, MMAP_SUM_KIND, MMAP_SUM_FILL, MMAP_SUM_DEVICES, MMAP_SUM_TIMEOUT,
	MMAP_SUM_DRIVER, MMAP_SUM_JSON,
};
/* clang-format on */

/* clang-format off */
static const struct cli_opt mmap_sum_opts[] = {
	[MMAP_SUM_N] = { "n", "N", "number of processes, from 1 to 64 (default: 3)", NULL },
	[MMAP_SUM_BYTES] = { "bytes", "SIZE",
		"size of the buffer; K, M or G may follow (default: 64M)", NULL },
	[MMAP_SUM_KIND] = { "kind", "KIND",
		"kind of memory (default: auto, in host memory)", "auto host-numa device memfd shm device-ipc" },
	[MMAP_SUM_FILL] = { "fill", "TYPE=FILL",
		"contents, as in gpuload run (default: f64=rand)", NULL },
	[MMAP_SUM_DEVICES] = { "devices", "LIST",
		"GPUs, such as 0,1; the processes use them in turn (default: 0)", NULL },
	[MMAP_SUM_TIMEOUT] = { "timeout", "SECONDS",
		"time limit of the whole command in seconds (default: 60)", NULL },
	[MMAP_SUM_DRIVER] = CLI_DRIVER_OPT,
	[MMAP_SUM_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char mmap_sum_details[] = "One process, the master, creates the buffer and fills it; the others attach without a copy.\n"
				       "Each process adds up the buffer on its GPU and on its CPU (device memory is copied for\n"
				       "the CPU's sum), and the sums are printed:\n"
				       "\n"
				       "    total sum [master]: 4196125.058501036\n"
				       "    total sum [4711]: 4196125.058501036       of process 4711\n"
				       "\n"
				       "The sums agree bit for bit, because all processors add in the same order: in pairs, then pairs\n"
				       "of pairs.  Floats are added up as f64, integers as i64 or u64.\n"
				       "\n"
				       "Memory of kind pinned is refused: no other process can map it.\n"
				       "\n"
				       "Exit status: 0 all sums agree, 1 they differ or a process failed, 2 wrong command line.\n";

enum { DEFAULT_N = 3, DEFAULT_BYTES = 64 << 20, DEFAULT_SECONDS = 60 };

/* ---- the command line ---------------------------------------------------------------------- */

static gpul_status parse_n(const char *text, unsigned *out, gpul_error *err)
{
	char *end;
	long n = text ? strtol(text, &end, 10) : DEFAULT_N;

	if (text && (end == text || *end || n < 1 || n > MMAP_SUM_MOST))
		return gpul_fail(err, GPUL_EINVAL, 0, "-n must be a number of processes from 1 to %d, not '%s'", MMAP_SUM_MOST, text);
	*out = (unsigned)n;
	return GPUL_OK;
}

static gpul_status parse_kind(const char *text, gpul_mem_kind *out, gpul_error *err)
{
	*out = GPUL_MEM_AUTO;
	if (text && !gpul_mem_kind_parse(text, out))
		return gpul_fail(err, GPUL_EINVAL, 0, "--kind must be auto, host-numa, device, memfd, shm or device-ipc, not '%s'", text);
	if (*out == GPUL_MEM_PINNED)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--kind pinned: memory of cuMemHostAlloc has no descriptor and no name, so no other "
				 "process can map it; use host-numa or memfd");
	return GPUL_OK;
}

/* Parse TYPE=FILL. */
static gpul_status parse_fill(const char *text, struct mmap_sum_request *r, gpul_error *err)
{
	const char *equals;

	text = text ? text : "f64=rand";
	equals = strchr(text, '=');
	if (!equals)
		return gpul_fail(err, GPUL_EINVAL, 0, "--fill must be TYPE=FILL, such as f32=iota; not '%s'", text);
	r->type = value_type(text, (size_t)(equals - text));
	r->fill = equals + 1;
	if (r->type == GPUL_TYPE_NONE)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--fill: unknown type '%.*s'; expected i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 or f64",
				 (int)(equals - text < 20 ? equals - text : 20), text);
	return GPUL_OK;
}

static gpul_status parse_bytes(const char *text, struct mmap_sum_request *r, gpul_error *err)
{
	size_t bytes = DEFAULT_BYTES, each = gpul_type_bytes(r->type);
	gpul_status st = text ? value_parse_size(text, strlen(text), &bytes, err) : GPUL_OK;

	if (st)
		return st;
	if (bytes == 0 || bytes % each)
		return gpul_fail(err, GPUL_EINVAL, 0, "--bytes %s is not a multiple of %zu bytes (%s), or is 0", text, each,
				 gpul_type_name(r->type));
	r->count = !text && r->fill[0] == '@' ? 0 : bytes / each;
	return GPUL_OK;
}

static gpul_status parse_timeout(const char *text, int *out_ms, gpul_error *err)
{
	char *end;
	double seconds = text ? strtod(text, &end) : DEFAULT_SECONDS;

	if (text && (end == text || *end || !(seconds > 0) || seconds > 1e6))
		return gpul_fail(err, GPUL_EINVAL, 0, "--timeout must be a number of seconds above 0, not '%s'", text);
	*out_ms = (int)ceil(seconds * 1000);
	return GPUL_OK;
}

static gpul_status parse_request(const struct cli_args *args, struct mmap_sum_request *r, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*r = (struct mmap_sum_request){ .json = cli_value(args, MMAP_SUM_JSON) };
	if (args->n_operands)
		st = gpul_fail(err, GPUL_EINVAL, 0, "unexpected operand '%s': mmap-sum has only options", args->operands[0]);
	st = st ? st : parse_n(cli_value(args, MMAP_SUM_N), &r->n, err);
	st = st ? st : parse_kind(cli_value(args, MMAP_SUM_KIND), &r->kind, err);
	st = st ? st : parse_fill(cli_value(args, MMAP_SUM_FILL), r, err);
	st = st ? st : parse_bytes(cli_value(args, MMAP_SUM_BYTES), r, err);
	st = st ? st : parse_timeout(cli_value(args, MMAP_SUM_TIMEOUT), &r->timeout_ms, err);
	return st ? st : devices_arg_parse(cli_value(args, MMAP_SUM_DRIVER), cli_value(args, MMAP_SUM_DEVICES), &r->devices, err);
}

/* ---- the master ---------------------------------------------------------------------------- */

/* Create and fill the memory.  The numbers are generated before the memory is created, so that a buffer that is too large fails early. */
static gpul_status create_filled(const gpul_driver *drv, struct mmap_sum_request *r, gpul_mem **out, gpul_error *err)
{
	gpul_mem_desc desc = {
		.kind = r->kind, .node = GPUL_MEM_NODE_OF_GPU, .devices = r->devices.ordinal, .n_devices = 1, .exportable = true
	};
	gpul_mem *mem = NULL;
	void *numbers = NULL;
	gpul_status st = fill_make(r->type, r->fill, NULL, &r->count, &numbers, err);

	if (st)
		return st;
	desc.bytes = r->count * gpul_type_bytes(r->type);
	st = gpul_mem_create(drv, &desc, &mem, err);
	if (!st && gpul_mem_cpu(mem))
		memcpy(gpul_mem_cpu(mem), numbers, desc.bytes);
	else if (!st)
		st = gpul_cu(drv, err, cuMemcpyHtoD(gpul_mem_gpu(mem), numbers, desc.bytes));
	free(numbers);
	if (st) {
		gpul_mem_destroy(mem);
		return st;
	}
	*out = mem;
	return GPUL_OK;
}

static gpul_status offer_to_children(struct mmap_sum_team *team, gpul_ipc_server *s, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (unsigned i = 1; !st && i < team->n; i++) {
		st = gpul_ipc_server_add(s, team->member[i].socket, err);
		team->member[i].socket = -1;
	}
	return st;
}

/* Offer the memory to the children; add up the elements while the children do the same. */
static gpul_status share_and_sum(const struct mmap_sum_request *r, const gpul_driver *drv, gpul_mem *mem, struct mmap_sum_team *team,
				 gpul_error *err)
{
	gpul_ipc_server_options options = { .bytes = r->count * gpul_type_bytes(r->type),
					    .max_peers = r->n,
					    .step_timeout_ms = r->timeout_ms };
	struct mmap_sum_report *own = &team->member[0].report;
	gpul_ipc_server *s;
	gpul_status st = gpul_ipc_server_create(drv, mem, &options, &s, err);

	if (st)
		return st;
	st = offer_to_children(team, s, err);
	st = st ? st : mmap_sum_team_serve(team, s, false, err);
	st = st ? st : mmap_sum_compute(gpul_ipc_server_view(s), r->type, mmap_sum_left_ms(team), own, err);
	st = st ? st : mmap_sum_team_serve(team, s, true, err);
	gpul_ipc_server_destroy(s);
	return st;
}

static gpul_status run_master(struct mmap_sum_request *r, struct mmap_sum_team *team, gpul_error *err)
{
	struct devices_arg own = { .choice = r->devices.choice, .ordinal = { r->devices.ordinal[0] }, .n = 1 };
	gpul_mem *mem = NULL;
	gpul_status st = devices_arg_open(&own, err);

	if (st)
		return st;
	st = create_filled(own.drv, r, &mem, err);
	st = st ? st : share_and_sum(r, own.drv, mem, team, err);
	mmap_sum_team_end(team, st != GPUL_OK);
	st = st ? st : mmap_sum_print(r, mem, team, err);
	gpul_mem_destroy(mem);
	devices_arg_close(&own);
	return st;
}

static int cmd_mmap_sum(const struct cli_args *args, gpul_error *err)
{
	struct mmap_sum_request r;
	struct mmap_sum_team team;
	gpul_status st = parse_request(args, &r, err);

	st = st ? st : mmap_sum_team_start(&r, &team, err);
	if (st)
		return cli_exit_code(st);
	st = run_master(&r, &team, err);
	mmap_sum_team_end(&team, true);
	return cli_exit_code(st);
}

/* clang-format off */
const struct cli_cmd cli_mmap_sum = {
	"mmap-sum", "", "map one buffer into several processes and compare their GPUs' sums",
	mmap_sum_details, mmap_sum_opts, cmd_mmap_sum, NULL, NULL,
};
/* clang-format on */
