/* rdma_bench_request.c — parses the command line of gpuload rdma bench, and the options that it shares with gpuload rdma serve. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/value.h"
#include "cli/rdma/rdma_bench.h"
#include "cli/rdma/rdma_bench_memory.h"

/* clang-format off */
enum {
	OPT_MODE = RDMA_N_COMMON_OPTS, OPT_SIZES, OPT_NFLOW, OPT_NMSG, OPT_NREQ, OPT_BUFFERS, OPT_ITERATIONS, OPT_TIME, OPT_FLUSH, OPT_QPS,
	OPT_STRIPE, OPT_SEGMENT, OPT_WAIT, OPT_PLOT, OPT_STATS, OPT_TRACE,
	OPT_TRACE_MESSAGE, OPT_FORCE,
};
/* clang-format on */

const char *const rdma_mode_names[RDMA_N_MODES] = { "tpt", "bi", "lat", "put", "put-lat", "basic" };
const char *const rdma_memory_names[RDMA_N_MEMORIES] = { "host", "host-numa", "device" };

/* clang-format off */
const struct cli_opt rdma_bench_opts[] = {
	RDMA_COMMON_OPTS,
	[OPT_MODE] = { "mode", "MODE", "tpt (default), bi, lat, put, put-lat or basic; see below", "tpt bi lat put put-lat basic" },
	[OPT_SIZES] = { "sizes", "LIST",
		"bytes per message: numbers and ranges, such as 8,256:1M or 256:100M:4", NULL },
	[OPT_NFLOW] = { "nflow", "N", "number of connections (default: 1)", NULL },
	[OPT_NMSG] = { "nmsg", "N", "messages that one receive takes, in any order, 1 to 8 (default: 1)", NULL },
	[OPT_NREQ] = { "nreq", "N", "receives or puts in flight per connection (default: 8; put: 64)", NULL },
	[OPT_BUFFERS] = { "buffers", "N",
		"number of buffers for the messages in flight (default: one per message; ib_write_bw and fi_rma_bw use one for "
		"all)", NULL },
	[OPT_ITERATIONS] = { "iterations", "N", "receives or puts per size and connection (default: as many as fit into --time)", NULL },
	[OPT_TIME] = { "time", "SECONDS", "seconds to measure each size (default: 0.5)", NULL },
	[OPT_FLUSH] = { "flush", NULL, "flush each received message, so that kernels that are already running see it", NULL },
	[OPT_QPS] = { "qps", "N", "queue pairs of each connection, 1 to 16 (default: 1)", NULL },
	[OPT_STRIPE] = { "stripe", "HOW",
		"use of several queue pairs: split each segment (default), or round-robin", "split round-robin" },
	[OPT_SEGMENT] = { "segment", "BYTES", "size of the segments into which a longer message is divided (default: 1M)", NULL },
	[OPT_WAIT] = { "wait", "SECONDS", "seconds to wait until the server listens (default: 3)", NULL },
	[OPT_PLOT] = { "plot", "FILE", "also draw the result as SVG; - is stdout, without the table", CLI_FILES },
	[OPT_STATS] = { "stats", "SECONDS", "reliable-udp: print a line to stderr every SECONDS, at least 0.1", NULL },
	[OPT_TRACE] = { "trace", "FILE",
		"reliable-udp: write the way of each chunk of one message to FILE.json (for ui.perfetto.dev), FILE.svg or, as text, FILE; -: text on stdout",
		CLI_FILES },
	[OPT_TRACE_MESSAGE] = { "trace-message", "N", "number of this message on connection 0, from 0 (default: 0), of the first size that has so many", NULL },
	[OPT_FORCE] = { "force", NULL, "replace FILE if it exists", NULL },
	{ 0 },
};
/* clang-format on */

const char rdma_bench_details[] = "Measures the send path to gpuload rdma serve on HOST. Without HOST, the command starts a\n"
				  "server on this machine, and stops it at the end. Both ends print what they have measured.\n"
				  "\n"
				  "    tpt       messages from the client to the server, --nreq in flight per connection\n"
				  "    bi        messages in both directions at the same time; the rates are the sums\n"
				  "    lat       ping-pong of messages; the latency is half a round trip\n"
				  "    put       writes into the server's memory, each followed by a signal of 8 bytes\n"
				  "    put-lat   ping-pong of puts; up to 8 bytes, the signal alone\n"
				  "    basic     --nreq messages of each size in both directions, at odd addresses\n"
				  "\n"
				  "Latency in tpt, bi and put is the time from the start of a request until its end, with the\n"
				  "other requests that are in flight. After each size, one window of messages is compared with\n"
				  "its pattern, byte for byte; the measured messages carry their number.\n"
				  "\n"
				  "A range A:B doubles; A:B:4 multiplies by 4. B is always measured. K, M and G are powers of\n"
				  "1024. Default: 256:100M:4; for lat and put-lat 8:1M:4; basic has sizes around the limits.\n";

static const char usual_sizes[] = "256:100M:4", latency_sizes[] = "8:1M:4";
static const char basic_sizes[] = "0,1,3,8,63,64,255,4095,4096,4097,65537,1048575,1M,1048577,4194307,100M";

enum {
	DEFAULT_TIME_MS = 500,
	DEFAULT_WAIT_MS = 3000,
	DEFAULT_REQUESTS = 8,
	DEFAULT_PUTS = 64,
	LATENCY_REQUESTS = 32,
	LEAST_STATS_MS = 100
};
static const uint64_t most_buffer_bytes = 256 << 20; /* limit of the buffer of one flow and direction, unless two messages need more */

/* ---- numbers ----------------------------------------------------------------------------------------- */

static gpul_status parse_unsigned(const char *option, const char *text, unsigned least, unsigned most, unsigned *out, gpul_error *err)
{
	uint64_t n = *out;
	gpul_status st = value_parse_count(option, text, least, most, &n, err);

	*out = (unsigned)n;
	return st;
}

/* Return the index of a text in a list of names; -1: the list does not contain it. */
static int find_name(const char *text, const char *const *names, int n)
{
	while (n-- > 0)
		if (!strcmp(text, names[n]))
			return n;
	return -1;
}

/* ---- options of both commands --------------------------------------------------------------------------- */

static gpul_status parse_memory(const struct cli_args *args, struct rdma_setup *out, gpul_error *err)
{
	const char *memory = cli_value(args, RDMA_OPT_MEMORY), *gpu = cli_value(args, RDMA_OPT_GPU);
	const int kind = memory ? find_name(memory, rdma_memory_names, RDMA_N_MEMORIES) : RDMA_HOST;
	gpul_status st;

	if (kind < 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--memory must be host, host-numa or device, not '%s'", memory);
	out->memory = (enum rdma_memory)kind;
	st = devices_arg_parse(cli_value(args, RDMA_OPT_DRIVER), gpu, &out->devices, err);
	if (!st && out->devices.n > 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "--gpu must be one number, not '%s'", gpu);
	return st;
}

/* The type of the queue pairs, and whether a backend makes them reliable. */
static gpul_status parse_queue_pairs(const struct cli_args *args, gpul_rdma_desc *out, gpul_error *err)
{
	const bool reliable = cli_value(args, RDMA_OPT_RELIABLE);
	const char *qp = cli_value(args, RDMA_OPT_QP);

	qp = qp ? qp : cli_value(args, RDMA_OPT_UC) || reliable ? "uc" : "rc";
	if (strcmp(qp, "rc") && strcmp(qp, "uc") && strcmp(qp, "ud"))
		return gpul_fail(err, GPUL_EINVAL, 0, "--qp must be rc, uc or ud, not '%s'", qp);
	out->device.qp_type = !strcmp(qp, "ud") ? GPUL_RDMA_UD : !strcmp(qp, "uc") ? GPUL_RDMA_UC : GPUL_RDMA_RC;
	if (!reliable)
		return GPUL_OK;
	if (out->device.qp_type == GPUL_RDMA_RC)
		return gpul_fail(err, GPUL_EINVAL, 0, "--reliable is for --qp uc and ud: RC is reliable by itself");
	if (out->backend && strcmp(out->backend, "verbs") && strcmp(out->backend, "reliable-verbs"))
		return gpul_fail(err, GPUL_EINVAL, 0, "--reliable is for verbs, but the backend is %s", out->backend);
	out->backend = "reliable-verbs";
	return GPUL_OK;
}

static gpul_status parse_flush(const struct cli_args *args, gpul_rdma_flush *out, gpul_error *err)
{
	static const char *const names[] = { "auto", "none", "read", "atomic", "cuda" }; /* as enum gpul_rdma_flush */
	const char *name = cli_value(args, RDMA_OPT_FLUSH_BY);
	unsigned i = 0;

	while (name && i < 5 && strcmp(name, names[i]) != 0)
		i++;
	if (i == 5)
		return gpul_fail(err, GPUL_EINVAL, 0, "--flush-by must be auto, none, read, atomic or cuda, not '%s'", name);
	*out = (gpul_rdma_flush)i;
	return GPUL_OK;
}

gpul_status rdma_setup_parse(const struct cli_args *args, struct rdma_setup *out, gpul_error *err)
{
	gpul_rdma_device_desc *d = &out->rdma.device;
	unsigned gid = 0, timeout = 0, retry = 0;
	gpul_status st;

	*out = (struct rdma_setup){ .port = GPUL_RDMA_PORT, .n_threads = 1, .json = cli_value(args, RDMA_OPT_JSON) };
	*d = (gpul_rdma_device_desc){ .gpu = -1,
				      .gid_index = -1,
				      .device = cli_value(args, RDMA_OPT_DEVICE),
				      .provider = cli_value(args, RDMA_OPT_PROVIDER),
				      .lossless = cli_value(args, RDMA_OPT_LOSSLESS),
				      .control_datagrams = cli_value(args, RDMA_OPT_DATAGRAMS) };
	st = parse_unsigned("--port", cli_value(args, RDMA_OPT_PORT), 1, 65535, &out->port, err);
	st = st ? st : parse_unsigned("--gid", cli_value(args, RDMA_OPT_GID), 0, 255, &gid, err);
	st = st ? st : parse_unsigned("--timeout", cli_value(args, RDMA_OPT_TIMEOUT), 1, 31, &timeout, err);
	st = st ? st : parse_unsigned("--retry", cli_value(args, RDMA_OPT_RETRY), 1, 6, &retry, err);
	st = st ? st : parse_unsigned("--paths", cli_value(args, RDMA_OPT_PATHS), 1, 256, &d->n_paths, err);
	st = st ? st : parse_unsigned("--threads", cli_value(args, RDMA_OPT_THREADS), 1, RDMA_MOST_THREADS, &out->n_threads, err);
	st = st ? st : devices_arg_backend(cli_value(args, RDMA_OPT_BACKEND), d->provider, &out->rdma.backend, err);
	st = st ? st : parse_queue_pairs(args, &out->rdma, err);
	st = st ? st : parse_flush(args, &d->flush, err);
	st = st ? st : parse_memory(args, out, err);
	if (cli_value(args, RDMA_OPT_GID))
		d->gid_index = (int)gid;
	d->timeout = (int)timeout;
	d->retry = (int)retry;
	if (out->memory != RDMA_HOST)
		d->gpu = out->devices.ordinal[0];
	return st;
}

/* ---- sizes ------------------------------------------------------------------------------------------------ */

static gpul_status add_size(struct rdma_bench_request *q, uint64_t bytes, gpul_error *err)
{
	if (bytes > GPUL_RDMA_MAX_PUT)
		return gpul_fail(err, GPUL_EINVAL, 0, "--sizes: %llu bytes exceed the limit of %d bytes", (unsigned long long)bytes,
				 GPUL_RDMA_MAX_PUT);
	if (q->n_sizes == RDMA_MOST_ROWS)
		return gpul_fail(err, GPUL_EINVAL, 0, "--sizes gives more than %d sizes", RDMA_MOST_ROWS);
	q->bytes[q->n_sizes++] = bytes;
	return GPUL_OK;
}

/* Parse one range, such as "8", "256:1M" or "256:100M:4", without the comma after it. */
static gpul_status parse_range(const char *text, size_t n, struct rdma_bench_request *q, gpul_error *err)
{
	size_t part[3] = { 0, 0, 2 };
	unsigned n_parts = 0;
	gpul_status st = value_parse_sizes(text, n, part, &n_parts, err);

	if (n_parts > 3)
		return gpul_fail(err, GPUL_EINVAL, 0, "--sizes: '%.*s' has too many colons", (int)n, text);
	if (st || n_parts == 1)
		return st ? st : add_size(q, part[0], err);
	if (part[0] < 1 || part[0] > part[1] || part[2] < 2)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--sizes: expected FROM:TO or FROM:TO:FACTOR with FROM from 1 to TO and FACTOR at least 2, not '%.*s'",
				 (int)n, text);
	for (uint64_t bytes = part[0]; !st && bytes < part[1]; bytes *= part[2])
		st = add_size(q, bytes, err);
	return st ? st : add_size(q, part[1], err);
}

static gpul_status parse_sizes(const char *list, struct rdma_bench_request *q, gpul_error *err)
{
	const enum rdma_mode mode = q->shape.mode;
	gpul_status st;

	if (!list)
		list = mode == RDMA_BASIC ? basic_sizes : mode == RDMA_LAT || mode == RDMA_PUT_LAT ? latency_sizes : usual_sizes;
	for (;; list++) {
		const size_t n = strcspn(list, ",");

		st = parse_range(list, n, q, err);
		list += n;
		if (st || !*list)
			return st;
	}
}

/* ---- groups and buffers for a size of message -------------------------------------------------------------- */

unsigned rdma_bench_parts(const struct rdma_shape *shape, uint64_t bytes, uint32_t segment_bytes)
{
	return bytes <= segment_bytes ? shape->n_parts : 1;
}

unsigned rdma_bench_window(const struct rdma_shape *shape, uint64_t bytes, unsigned n_parts)
{
	const uint64_t fit = shape->buffer_bytes / (rdma_memory_stride(bytes) * n_parts);

	return fit < shape->n_requests ? (unsigned)fit : shape->n_requests;
}

/* Choose the size of a flow's buffers: enough for all requests in flight, but at most most_buffer_bytes, unless two groups need more. */
static void choose_buffer(struct rdma_bench_request *q)
{
	struct rdma_shape *shape = &q->shape;
	const uint32_t segment = q->setup.rdma.segment_bytes ? q->setup.rdma.segment_bytes : GPUL_RDMA_MAX_SEGMENT;

	for (unsigned i = 0; i < q->n_sizes; i++) {
		const uint64_t group = rdma_memory_stride(q->bytes[i]) * rdma_bench_parts(shape, q->bytes[i], segment);
		const uint64_t two = group * (shape->n_requests > 1 ? 2 : 1), all = group * shape->n_requests;
		const uint64_t wanted = all <= most_buffer_bytes ? all : two > most_buffer_bytes ? two : most_buffer_bytes;

		if (wanted > shape->buffer_bytes)
			shape->buffer_bytes = wanted;
	}
}

/* ---- the whole command line ---------------------------------------------------------------------------------- */

static gpul_status parse_shape(const struct cli_args *args, struct rdma_bench_request *q, gpul_error *err)
{
	const char *mode = cli_value(args, OPT_MODE);
	const int found = mode ? find_name(mode, rdma_mode_names, RDMA_N_MODES) : RDMA_TPT;
	struct rdma_shape *shape = &q->shape;
	gpul_status st;

	if (found < 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--mode must be tpt, bi, lat, put, put-lat or basic, not '%s'", mode);
	*shape = (struct rdma_shape){ .mode = (enum rdma_mode)found,
				      .n_flows = 1,
				      .n_parts = 1,
				      .n_requests = DEFAULT_REQUESTS,
				      .flush = cli_value(args, OPT_FLUSH) };
	if (shape->mode == RDMA_LAT || shape->mode == RDMA_PUT_LAT)
		shape->n_requests = LATENCY_REQUESTS;
	if (shape->mode == RDMA_PUT)
		shape->n_requests = DEFAULT_PUTS;
	st = parse_unsigned("--nflow", cli_value(args, OPT_NFLOW), 1, RDMA_MOST_FLOWS, &shape->n_flows, err);
	st = st ? st : parse_unsigned("--nmsg", cli_value(args, OPT_NMSG), 1, GPUL_RDMA_MAX_PARTS, &shape->n_parts, err);
	st = st ? st : parse_unsigned("--nreq", cli_value(args, OPT_NREQ), 1, RDMA_MOST_REQUESTS, &shape->n_requests, err);
	if (!st && shape->n_requests * shape->n_parts > RDMA_MOST_RING)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--nreq %u times --nmsg %u exceeds the limit of %d messages in flight",
			       shape->n_requests, shape->n_parts, RDMA_MOST_RING);
	if (!st && shape->n_parts > 1 && shape->mode != RDMA_TPT && shape->mode != RDMA_BI && shape->mode != RDMA_BASIC)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--nmsg needs --mode tpt, bi or basic");
	if (!st && shape->flush && (shape->mode == RDMA_PUT || shape->mode == RDMA_PUT_LAT))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--flush needs a mode with messages: tpt, bi, lat or basic");
	return st;
}

static gpul_status parse_path(const struct cli_args *args, gpul_rdma_desc *d, gpul_error *err)
{
	const char *stripe = cli_value(args, OPT_STRIPE), *segment = cli_value(args, OPT_SEGMENT);
	size_t bytes = 0;
	gpul_status st = parse_unsigned("--qps", cli_value(args, OPT_QPS), 1, GPUL_RDMA_MAX_QPS, &d->n_qps, err);

	if (!st && stripe && strcmp(stripe, "split") && strcmp(stripe, "round-robin"))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--stripe must be split or round-robin, not '%s'", stripe);
	d->striping = stripe && !strcmp(stripe, "round-robin") ? GPUL_RDMA_ROUND_ROBIN : GPUL_RDMA_SPLIT;
	if (!st && segment)
		st = value_parse_size(segment, strlen(segment), &bytes, err);
	if (!st && segment && (bytes < 4096 || bytes > GPUL_RDMA_MAX_SEGMENT || bytes % GPUL_RDMA_STRIPE_ALIGN))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--segment must be a multiple of %d from 4096 to %d, not '%s'", GPUL_RDMA_STRIPE_ALIGN,
			       GPUL_RDMA_MAX_SEGMENT, segment);
	d->segment_bytes = (uint32_t)bytes;
	d->secret = secure_getenv("GPULOAD_RDMA_SECRET");
	return st;
}

static gpul_status check_memory(const struct rdma_bench_request *q, gpul_error *err)
{
	const uint64_t ends = q->host ? 1 : 2, most = rdma_memory_limit();

	if (2 * ends * q->shape.n_flows * q->shape.buffer_bytes > most)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--sizes, --nflow and --nmsg need %llu MiB of buffers, more than a quarter of this "
				 "machine's memory (%llu MiB)",
				 (unsigned long long)(2 * ends * q->shape.n_flows * q->shape.buffer_bytes >> 20),
				 (unsigned long long)most >> 20);
	return GPUL_OK;
}

static gpul_status parse_reports(const struct cli_args *args, struct rdma_bench_request *q, gpul_error *err)
{
	const char *backend = q->setup.rdma.backend, *stats = cli_value(args, OPT_STATS), *message = cli_value(args, OPT_TRACE_MESSAGE);
	gpul_status st = stats ? value_parse_time("stats", stats, &q->stats_ms, err) : GPUL_OK;

	st = st ? st : value_parse_count("--trace-message", message, 0, 1ull << 32, &q->trace_message, err);
	if (!st && (q->stats_ms || q->trace) && (!backend || strncmp(backend, "reliable-", 9) != 0))
		return gpul_fail(err, GPUL_EINVAL, 0, "--stats and --trace need a reliable transport: --provider reliable-udp");
	if (!st && stats && q->stats_ms < LEAST_STATS_MS)
		return gpul_fail(err, GPUL_EINVAL, 0, "--stats must be at least 0.1 seconds, not %s", stats);
	if (!st && message && !q->trace)
		return gpul_fail(err, GPUL_EINVAL, 0, "--trace-message needs --trace");
	if (!st && q->trace && q->n_buffers)
		return gpul_fail(err, GPUL_EINVAL, 0, "--trace needs a buffer for each message: leave --buffers out");
	if (!st && q->trace && q->setup.memory != RDMA_HOST)
		return gpul_fail(err, GPUL_EINVAL, 0, "--trace needs --memory host");
	if (!st && q->trace && !strcmp(q->trace, "-") && (q->setup.json || (q->plot && !strcmp(q->plot, "-"))))
		return gpul_fail(err, GPUL_EINVAL, 0, "--trace - writes to stdout, like --json and --plot -");
	return st;
}

gpul_status rdma_bench_parse(const struct cli_args *args, struct rdma_bench_request *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct rdma_bench_request){ .time_ms = DEFAULT_TIME_MS,
					    .wait_ms = DEFAULT_WAIT_MS,
					    .plot = cli_value(args, OPT_PLOT),
					    .trace = cli_value(args, OPT_TRACE),
					    .force = cli_value(args, OPT_FORCE) };
	if (args->n_operands > 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "expected at most one HOST; see gpuload help rdma bench");
	out->host = args->n_operands ? args->operands[0] : NULL;
	st = rdma_setup_parse(args, &out->setup, err);
	st = st ? st : parse_shape(args, out, err);
	st = st ? st : parse_path(args, &out->setup.rdma, err);
	st = st ? st : parse_sizes(cli_value(args, OPT_SIZES), out, err);
	st = st ? st : parse_unsigned("--buffers", cli_value(args, OPT_BUFFERS), 1, RDMA_MOST_RING, &out->n_buffers, err);
	st = st ? st : value_parse_count("--iterations", cli_value(args, OPT_ITERATIONS), 1, 1ull << 32, &out->iterations, err);
	st = st ? st : value_parse_time("time", cli_value(args, OPT_TIME), &out->time_ms, err);
	st = st ? st : value_parse_time("wait", cli_value(args, OPT_WAIT), &out->wait_ms, err);
	if (!st && out->setup.json && out->plot && !strcmp(out->plot, "-"))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--plot - and --json both write to stdout");
	st = st ? st : parse_reports(args, out, err);
	choose_buffer(out);
	return st ? st : check_memory(out, err);
}
