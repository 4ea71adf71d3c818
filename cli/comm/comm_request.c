/* comm_request.c — parses the command line of the collectives of gpuload comm. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/comm/comm_bench.h"
#include "cli/lib/options/devices_arg.h"
#include "cli/lib/value.h"

/* clang-format off */
enum {
	OPT_BYTES = COMM_N_PLACE_OPTS, OPT_THREADS, OPT_DTYPE, OPT_OP, OPT_ROOT, OPT_ALGO, OPT_PROTO, OPT_BLOCKS, OPT_WINDOW, OPT_TABLE, OPT_ITERS,
	OPT_WARMUP,
	OPT_IN_PLACE, OPT_OUT_OF_PLACE, OPT_UNGROUPED, OPT_GRAPH, OPT_NO_REGISTER, OPT_CHECK, OPT_EXPLAIN, OPT_JSON, OPT_PLOT, OPT_TRACE, OPT_FORCE,
};
/* clang-format on */

/* clang-format off */
const struct cli_opt comm_bench_opts[] = {
	COMM_PLACE_OPTS,
	[OPT_BYTES] = { "bytes", "MIN:MAX:FACTOR",
		"sizes, such as 8:256M:2 or 1M; K, M and G are powers of 1024 (default: depends on the driver)", NULL },
	[OPT_THREADS] = { "threads", NULL, "run the ranks as threads of one process: those on one GPU run at the same time", NULL },
	[OPT_DTYPE] = { "dtype", "TYPE", "type of an element (default: f32)", "f16 bf16 f32 f64 i32 u8" },
	[OPT_OP] = { "op", "OP", "operation of " GPUL_COMM_LIST_REDUCES " (default: sum)", "sum prod min max avg" },
	[OPT_ROOT] = { "root", "RANK", "root rank of broadcast, whose data all ranks get (default: 0)", NULL },
	[OPT_ALGO] = { "algo", "NAME", "algorithm: auto (default), ring, oneshot, direct, tree or twolevel",
		"auto ring oneshot direct tree twolevel" },
	[OPT_PROTO] = { "proto", "NAME", "protocol: auto (default), ll, ll128 or simple", "auto ll ll128 simple" },
	[OPT_BLOCKS] = { "blocks", "N", "blocks of a kernel, 1 to 64 (default: depends on the size)", NULL },
	[OPT_WINDOW] = { "window", "SIZE|off",
		"limit of bytes in flight to one rank over the network, from all ranks together (default: $GPULOAD_COMM_NET_WINDOW, else "
		"a few slots)", "off" },
	[OPT_TABLE] = { "table", "FILE", "table of algorithms and protocols by size, written by gpuload comm tune (default: "
					 "$GPULOAD_COMM_TABLE)", CLI_FILES },
	[OPT_ITERS] = { "iters", "N", "timed calls (default: 20; 3 on the software driver)", NULL },
	[OPT_WARMUP] = { "warmup", "N", "warm-up calls before them (default: 5; 1 on the software driver)", NULL },
	[OPT_IN_PLACE] = { "in-place", NULL, "measure in place only (default: both)", NULL },
	[OPT_OUT_OF_PLACE] = { "out-of-place", NULL, "measure out of place only", NULL },
	[OPT_UNGROUPED] = { "ungrouped", NULL, "sendrecv, alltoall: call all sends before all receives, without a group; large messages "
					       "then time out", NULL },
	[OPT_GRAPH] = { "graph", NULL, "capture the timed calls into a CUDA graph, and launch it", NULL },
	[OPT_NO_REGISTER] = { "no-register", NULL, "do not register the buffers, so that other ranks cannot map them", NULL },
	[OPT_CHECK] = { "check", "on|off", "compare the data with those that the CPU computes (default: on)", "on off" },
	[OPT_EXPLAIN] = { "explain", NULL, "print the chosen plan for each size, and the reason, instead of measuring", NULL },
	[OPT_JSON] = CLI_JSON_OPT,
	[OPT_PLOT] = { "plot", "FILE", "also plot time and bus bandwidth against the size, as SVG", CLI_FILES },
	[OPT_TRACE] = { "trace", "FILE", "record the timed calls, for ui.perfetto.dev; FILE.svg: draw the last one", CLI_FILES },
	[OPT_FORCE] = { "force", NULL, "replace the files of --plot and --trace if they exist", NULL },
	{ 0 },
};
/* clang-format on */

gpul_status comm_parse_int(const char *option, const char *text, int least, int most, int *out, gpul_error *err)
{
	uint64_t n = 0;
	gpul_status st = value_parse_count(option, text, (uint64_t)least, (uint64_t)most, &n, err);

	if (!st && text)
		*out = (int)n;
	return st;
}

gpul_status comm_parse_bytes(const char *text, size_t *min, size_t *max, size_t *factor, gpul_error *err)
{
	size_t part[3] = { 0, 0, 2 };
	unsigned n_parts = 0;
	gpul_status st = value_parse_sizes(text, strlen(text), part, &n_parts, err);

	if (n_parts > 3)
		return gpul_fail(err, GPUL_EINVAL, 0, "--bytes: '%s' has too many colons; expected MIN:MAX:FACTOR", text);
	if (st)
		return st;
	if (n_parts == 1)
		part[1] = part[0];
	if (part[0] < 1 || part[0] > part[1] || part[2] < 2)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--bytes: expected MIN:MAX:FACTOR with MIN from 1 to MAX and FACTOR at least 2, not '%s'", text);
	*min = part[0];
	*max = part[1];
	*factor = part[2];
	return GPUL_OK;
}

/* ---- where the ranks run ---------------------------------------------------------------------------------- */

gpul_status comm_parse_hosts(const char *list, const char *file, int *n_ranks, gpul_comm_hosts *out, gpul_error *err)
{
	gpul_status st;

	*out = (gpul_comm_hosts){ .n = 0 };
	if (!list && !file)
		return GPUL_OK;
	if (list && file)
		return gpul_fail(err, GPUL_EINVAL, 0, "--hosts and --hostfile cannot be combined");
	st = list ? gpul_comm_hosts_parse(list, out, err) : gpul_comm_hosts_read(file, out, err);
	if (!st && *n_ranks && *n_ranks != out->n_ranks)
		st = gpul_fail(err, GPUL_EINVAL, 0, "-n is %d, but %s lists %d ranks", *n_ranks, list ? "--hosts" : "--hostfile",
			       out->n_ranks);
	if (!st)
		*n_ranks = out->n_ranks;
	return st;
}

static gpul_status parse_devices(const char *list, struct comm_place *out, gpul_error *err)
{
	for (const char *at = list; at; at = *at == ',' ? at + 1 : NULL) {
		char *end = NULL;
		const long n = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;

		if (n < 0 || n > INT_MAX || (*end && *end != ','))
			return gpul_fail(err, GPUL_EINVAL, 0, "--devices must be device numbers, such as 0,1, not '%s'", list);
		if (out->n_devices == COMM_MOST_DEVICES)
			return gpul_fail(err, GPUL_EINVAL, 0, "--devices lists more than %d devices", COMM_MOST_DEVICES);
		out->devices[out->n_devices++] = (int)n;
		at = end;
	}
	return GPUL_OK;
}

static gpul_status parse_gpu_direct(const char *text, gpul_rdma_gpu_direct *out, gpul_error *err)
{
	static const char *const names[] = { "auto", "yes", "no" };

	for (unsigned i = 0; text && i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (gpul_rdma_gpu_direct)i;
			return GPUL_OK;
		}
	return text ? gpul_fail(err, GPUL_EINVAL, 0, "--gpu-direct must be auto, yes or no, not '%s'", text) : GPUL_OK;
}

/* Parse the options of the network, which are those of gpuload rdma bench. */
static gpul_status parse_net(const struct cli_args *args, struct comm_place *out, gpul_error *err)
{
	const char *backend = cli_value(args, COMM_OPT_BACKEND), *provider = cli_value(args, COMM_OPT_PROVIDER);
	const bool host = out->transport == GPUL_COMM_DEVICE || out->transport == GPUL_COMM_HOST;
	const char *gpu_direct = cli_value(args, COMM_OPT_GPU_DIRECT), *found = NULL;
	gpul_rdma_gpu_direct direct = GPUL_RDMA_GPU_DIRECT_AUTO;
	int n_qps = 0;
	gpul_status st = comm_parse_int("--qps", cli_value(args, COMM_OPT_QPS), 1, GPUL_RDMA_MAX_QPS, &n_qps, err);

	st = st ? st : parse_gpu_direct(gpu_direct, &direct, err);
	st = st ? st : devices_arg_backend(backend, provider, &found, err);
	if (st)
		return st;
	if (host && (backend || provider || n_qps || gpu_direct || cli_value(args, COMM_OPT_NIC)))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--backend, --provider, --nic, --qps and --gpu-direct apply only to the network, but "
				 "--transport is %s",
				 gpul_comm_transport_name(out->transport));
	out->net = (gpul_rdma_desc){ .backend = found,
				     .n_qps = (unsigned)n_qps,
				     .gpu_direct = direct,
				     .device = {
					     .gpu = -1, .gid_index = -1, .provider = provider, .device = cli_value(args, COMM_OPT_NIC) } };
	return GPUL_OK;
}

gpul_status comm_place_parse(const struct cli_args *args, struct comm_place *out, gpul_error *err)
{
	const char *driver = cli_value(args, COMM_OPT_DRIVER), *transport = cli_value(args, COMM_OPT_TRANSPORT);
	const char *timeout = cli_value(args, COMM_OPT_TIMEOUT);
	gpul_status st;

	*out = (struct comm_place){ .driver = GPUL_DRIVER_AUTO };
	st = comm_parse_int("-n", cli_value(args, COMM_OPT_N), 1, GPUL_COMM_MAX_RANKS, &out->n_ranks, err);
	st = st ? st : comm_parse_hosts(cli_value(args, COMM_OPT_HOSTS), NULL, &out->n_ranks, &out->hosts, err);
	out->agent = cli_value(args, COMM_OPT_AGENT);
	if (!st && out->agent && !out->hosts.n)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--agent needs --hosts, which is missing");
	st = st ? st : parse_devices(cli_value(args, COMM_OPT_DEVICES), out, err);
	if (!st && driver && !gpul_driver_choice_parse(driver, &out->driver))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--driver must be auto, nvidia or soft, not '%s'", driver);
	if (!st && transport && !gpul_comm_transport_parse(transport, &out->transport))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--transport must be auto, device, host or net, not '%s'", transport);
	st = st ? st : parse_net(args, out, err);
	if (!st && timeout) {
		st = value_parse_seconds("timeout", timeout, &out->timeout_ms, err);
		out->timeout_ms = out->timeout_ms ? out->timeout_ms : -1;
	}
	return st ? st
		  : comm_parse_int("--ranks-per-host", cli_value(args, COMM_OPT_PER_HOST), 1, GPUL_COMM_MAX_RANKS, &out->ranks_per_host,
				   err);
}

/* ---- a collective ------------------------------------------------------------------------------------------ */

static gpul_status parse_names(const struct cli_args *args, struct comm_request *out, gpul_error *err)
{
	const char *dtype = cli_value(args, OPT_DTYPE), *op = cli_value(args, OPT_OP);
	const char *algo = cli_value(args, OPT_ALGO), *proto = cli_value(args, OPT_PROTO), *check = cli_value(args, OPT_CHECK);

	if (dtype && !gpul_comm_dtype_parse(dtype, &out->dtype))
		return gpul_fail(err, GPUL_EINVAL, 0, "--dtype must be f16, bf16, f32, f64, i32 or u8, not '%s'", dtype);
	if (op && !gpul_comm_call_info(out->call)->reduces)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--op cannot be used with %s, which does not reduce data; only " GPUL_COMM_LIST_REDUCES " do",
				 gpul_comm_call_name(out->call));
	if (op && !gpul_comm_op_parse(op, &out->op))
		return gpul_fail(err, GPUL_EINVAL, 0, "--op must be sum, prod, min, max or avg, not '%s'", op);
	if (algo && !gpul_comm_algo_parse(algo, &out->algo))
		return gpul_fail(err, GPUL_EINVAL, 0, "--algo must be auto, ring, oneshot, direct, tree or twolevel, not '%s'", algo);
	if (proto && !gpul_comm_proto_parse(proto, &out->proto))
		return gpul_fail(err, GPUL_EINVAL, 0, "--proto must be auto, ll, ll128 or simple, not '%s'", proto);
	if (check && strcmp(check, "on") != 0 && strcmp(check, "off") != 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--check must be on or off, not '%s'", check);
	out->check = !check || !strcmp(check, "on");
	return GPUL_OK;
}

static gpul_status parse_places(const struct cli_args *args, struct comm_request *out, gpul_error *err)
{
	const bool in = cli_value(args, OPT_IN_PLACE), both = in == !!cli_value(args, OPT_OUT_OF_PLACE);
	const bool possible = comm_shape_of(out->call, out->dtype, 0, 1, 1).in_place;

	if (in && !possible)
		return gpul_fail(err, GPUL_EINVAL, 0, "--in-place: the buffers of %s must not overlap", gpul_comm_call_name(out->call));
	out->in_place = possible && (both || in);
	out->out_of_place = both || !in;
	return GPUL_OK;
}

static gpul_status parse_numbers(const struct cli_args *args, struct comm_request *out, gpul_error *err)
{
	const char *bytes = cli_value(args, OPT_BYTES), *root = cli_value(args, OPT_ROOT);
	const int most_ranks = out->place.n_ranks ? out->place.n_ranks : GPUL_COMM_MAX_RANKS;
	int n_blocks = 0;
	gpul_status st = bytes ? comm_parse_bytes(bytes, &out->min_bytes, &out->max_bytes, &out->factor, err) : GPUL_OK;

	if (!st && root && !gpul_comm_call_info(out->call)->has_root)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--root cannot be used with %s, which has no root rank; broadcast has one",
			       gpul_comm_call_name(out->call));
	st = st ? st : comm_parse_int("--root", root, 0, most_ranks - 1, &out->root, err);
	st = st ? st : comm_parse_int("--blocks", cli_value(args, OPT_BLOCKS), 1, 64, &n_blocks, err);
	st = st ? st : comm_parse_int("--iters", cli_value(args, OPT_ITERS), 1, COMM_MOST_ITERATIONS, &out->iterations, err);
	st = st ? st : comm_parse_int("--warmup", cli_value(args, OPT_WARMUP), 0, COMM_MOST_ITERATIONS, &out->warmups, err);
	out->n_blocks = (unsigned)n_blocks;
	return st;
}

static gpul_status parse_window(const char *text, struct comm_request *out, gpul_error *err)
{
	if (!text)
		return GPUL_OK;
	if (strcmp(text, "off") == 0) {
		out->window = GPUL_COMM_NO_WINDOW;
		return GPUL_OK;
	}
	if (value_parse_size(text, strlen(text), &out->window, NULL) || out->window == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--window must be a size, such as 512K, or off, not '%s'", text);
	if (out->place.transport == GPUL_COMM_DEVICE || out->place.transport == GPUL_COMM_HOST)
		return gpul_fail(err, GPUL_EINVAL, 0, "--window applies only to the network, but --transport is %s",
				 gpul_comm_transport_name(out->place.transport));
	return GPUL_OK;
}

static gpul_status check_outputs(const struct comm_request *q, gpul_error *err)
{
	if (q->explain && (q->plot || q->trace || q->graph))
		return gpul_fail(err, GPUL_EINVAL, 0, "--explain measures nothing; it cannot be combined with --plot, --trace or --graph");
	if (q->ungrouped && !gpul_comm_call_info(q->call)->transfers)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--ungrouped cannot be used with %s, which is one call; sendrecv and alltoall consist of sends "
				 "and receives",
				 gpul_comm_call_name(q->call));
	if ((q->plot && !strcmp(q->plot, "-")) || (q->trace && !strcmp(q->trace, "-")))
		return gpul_fail(err, GPUL_EINVAL, 0, "--plot and --trace need the name of a file, not -");
	return GPUL_OK;
}

gpul_status comm_request_parse(const struct cli_args *args, gpul_comm_call call, struct comm_request *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct comm_request){
		.call = call,
		.dtype = GPUL_COMM_F32,
		.iterations = -1,
		.warmups = -1,
		.table = cli_value(args, OPT_TABLE),
		.plot = cli_value(args, OPT_PLOT),
		.trace = cli_value(args, OPT_TRACE),
		.graph = cli_value(args, OPT_GRAPH),
		.no_register = cli_value(args, OPT_NO_REGISTER),
		.ungrouped = cli_value(args, OPT_UNGROUPED),
		.threads = cli_value(args, OPT_THREADS),
		.json = cli_value(args, OPT_JSON),
		.explain = cli_value(args, OPT_EXPLAIN),
		.force = cli_value(args, OPT_FORCE),
	};
	if (args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "unexpected argument '%s'; see gpuload help comm %s", args->operands[0],
				 gpul_comm_call_name(call));
	st = comm_place_parse(args, &out->place, err);
	st = st ? st : parse_names(args, out, err);
	st = st ? st : parse_places(args, out, err);
	st = st ? st : parse_numbers(args, out, err);
	st = st ? st : parse_window(cli_value(args, OPT_WINDOW), out, err);
	return st ? st : check_outputs(out, err);
}
