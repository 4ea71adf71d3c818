/* fifo_trace.c — gpuload fifo trace: records the times of triggers from push to completion, for a trace viewer. */
#include "cli/fifo/fifo_trace.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fifo/put/fifo_put.h"
#include "cli/lib/new_file.h"
#include "cli/lib/cli_stop.h"
#include "cli/lib/value.h"
#include "proxy/fifo_layout.h"

/* clang-format off */
static const char default_path[] = "fifo-trace.json";
enum { DEFAULT_SLOTS = 32, DEFAULT_BLOCKS = 4, DEFAULT_TRIGGERS = 64, DEFAULT_HANDLER_NS = 500, DEFAULT_SECONDS = 10,
       MOST_HANDLER_NS = 100 * 1000 * 1000, DEFAULT_BYTES = 64, MOST_BYTES = 65536 };
/* clang-format on */

/* clang-format off */
enum {
	OPT_OUT, OPT_FORCE, OPT_SIZE, OPT_PARALLEL, OPT_MODE, OPT_TRIGGERS, OPT_SYNC, OPT_HANDLER_NS, OPT_KIND, OPT_DEVICE,
	OPT_TIMEOUT, OPT_PUT, OPT_BYTES, OPT_BACKEND, OPT_PROVIDER, OPT_PEER, OPT_DRIVER,
};
/* clang-format on */

static const struct cli_opt trace_opts[] = {
	[OPT_OUT] = { "o", "FILE", "output file; - is stdout (default: fifo-trace.json)", CLI_FILES },
	[OPT_FORCE] = { "force", NULL, "replace FILE if it exists", NULL },
	[OPT_SIZE] = { "size", "N", "total number of slots, a power of two (default: 32)", NULL },
	[OPT_PARALLEL] = { "parallel", "P", "blocks that push, one thread each (default: 4)", NULL },
	[OPT_MODE] = { "mode", "MODE", "one queue for all blocks, or one lane per block (default: lanes)", "shared lanes" },
	[OPT_TRIGGERS] = { "triggers", "N", "triggers that each block pushes (default: 64)", NULL },
	[OPT_SYNC] = { "sync", NULL, "wait after each push until it has been handled", NULL },
	[OPT_HANDLER_NS] = { "handler-ns", "N", "nanoseconds that the CPU works on each trigger (default: 500)", NULL },
	[OPT_KIND] = { "kind", "KIND", "kind of host memory (default: auto, the first that works)", "auto host-numa memfd shm pinned" },
	[OPT_DEVICE] = { "device", "N", "number of the GPU, counted from 0 (default: 0)", NULL },
	[OPT_TIMEOUT] = { "timeout", "SECONDS", "seconds that a push or a sync waits (default: 10)", NULL },
	[OPT_PUT] = { "put", NULL, "trace puts (RDMA writes) to a kernel of another process", NULL },
	[OPT_BYTES] = { "bytes", "N", "with --put: size of a put (default: 64)", NULL },
	[OPT_BACKEND] = { "backend", "NAME", "with --put: verbs or libfabric (default: verbs if there is a NIC)", "auto verbs libfabric" },
	[OPT_PROVIDER] = { "provider", "NAME", "with --put: libfabric's provider (default: tcp)", "tcp shm verbs efa" },
	[OPT_PEER] = { "peer-device", "N", "with --put: GPU of the other process (default: --device)", NULL },
	[OPT_DRIVER] = CLI_DRIVER_OPT,
	{ 0 },
};

static const char trace_details[] = "A kernel pushes triggers; this program takes them out, works on each for --handler-ns, and\n"
				    "releases them. Both record the times, and GPU times are converted to the CPU's clock. Open\n"
				    "FILE in https://ui.perfetto.dev or in chrome://tracing:\n"
				    "\n"
				    "    GPU        one track per block: push, with wait for room if the ring was full; sync\n"
				    "    CPU proxy  batch (the triggers of one poll), with handle for each trigger, and release\n"
				    "    ring       each trigger from its push until it is taken out; the number of taken slots\n"
				    "\n"
				    "Arrows lead from each push to its handle and, with --sync, on to its sync. GPU times can be\n"
				    "wrong by half the shortest round trip between the two clocks; this bound is printed with the\n"
				    "percentiles of each step (on stderr with -o -), and is part of FILE.\n"
				    "\n"
				    "With --put, each trigger is a message: the proxy writes --bytes into the memory of a second\n"
				    "process, which this command starts, and raises a step there. Each block waits until its put is\n"
				    "acknowledged. FILE then has four processes on one clock: the kernel that pushes; the proxy, with\n"
				    "post and in flight; the receiver's CPU, with flush; the receiver's kernel, with wait for step.\n"
				    "\n"
				    "At most 100000 triggers. Mode lanes has one lane per block, but at most one per slot.\n";

/* ---- the command line ------------------------------------------------------------------------------------------- */

/* Parse a whole number from least to most; `otherwise` is the value if the option is not given. */
static gpul_status parse_number(const struct cli_args *args, int opt, const char *name, uint64_t least, uint64_t most, uint64_t otherwise,
				uint64_t *out, gpul_error *err)
{
	const char *text = cli_value(args, opt);
	size_t value = otherwise;

	if (text && value_parse_size(text, strlen(text), &value, NULL))
		value = SIZE_MAX;
	if (value < least || value > most)
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", name, least, most,
				 text);
	*out = value;
	return GPUL_OK;
}

/* Parse --mode.  Mode lanes has as many lanes as blocks, so that each block owns a lane, but at most as many lanes as slots. */
static gpul_status parse_mode(const char *text, struct fifo_trace_request *q, gpul_error *err)
{
	if (text && strcmp(text, "lanes") && strcmp(text, "shared"))
		return gpul_fail(err, GPUL_EINVAL, 0, "--mode must be shared or lanes, not '%s'", text);
	q->lanes = 1;
	while ((!text || !strcmp(text, "lanes")) && q->lanes < q->blocks && q->lanes < q->slots && q->lanes < GPUL_FIFO_MAX_LANES)
		q->lanes *= 2;
	return GPUL_OK;
}

static gpul_status parse_kind(const char *text, struct fifo_trace_request *q, gpul_error *err)
{
	if (text && (!gpul_mem_kind_parse(text, &q->kind) || q->kind == GPUL_MEM_DEVICE || q->kind == GPUL_MEM_DEVICE_IPC))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--kind must be auto, host-numa, memfd, shm or pinned, which the CPU can access; not '%s'", text);
	return GPUL_OK;
}

static uint64_t power_above(uint64_t n)
{
	uint64_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

static gpul_status parse_numbers(const struct cli_args *args, struct fifo_trace_request *q, gpul_error *err)
{
	uint64_t slots = 0, blocks = 0, triggers = 0;
	gpul_status st = parse_number(args, OPT_SIZE, "size", 1, FIFO_TRACE_MOST_SLOTS, DEFAULT_SLOTS, &slots, err);

	st = st ? st : parse_number(args, OPT_PARALLEL, "parallel", 1, FIFO_TRACE_MOST_BLOCKS, DEFAULT_BLOCKS, &blocks, err);
	st = st ? st : parse_number(args, OPT_TRIGGERS, "triggers", 1, FIFO_TRACE_MOST, DEFAULT_TRIGGERS, &triggers, err);
	st = st ? st : parse_number(args, OPT_HANDLER_NS, "handler-ns", 0, MOST_HANDLER_NS, DEFAULT_HANDLER_NS, &q->handler_ns, err);
	if (!st && slots & (slots - 1))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--size %" PRIu64 " is not a power of two; the next one is %" PRIu64, slots,
			       power_above(slots));
	if (!st && blocks * triggers > FIFO_TRACE_MOST)
		st = gpul_fail(err, GPUL_EINVAL, 0,
			       "%" PRIu64 " triggers from each of %" PRIu64 " blocks are %" PRIu64
			       " triggers; a trace can have at most %d, because trace viewers open no more",
			       triggers, blocks, blocks * triggers, FIFO_TRACE_MOST);
	q->slots = (unsigned)slots;
	q->blocks = (unsigned)blocks;
	q->triggers = (unsigned)triggers;
	return st;
}

/* The default time-out also allows for the handling of all triggers that may be queued before a trigger. */
static gpul_status parse_timeout(const char *text, struct fifo_trace_request *q, gpul_error *err)
{
	int ms = DEFAULT_SECONDS * 1000;
	gpul_status st = text ? value_parse_seconds("timeout", text, &ms, err) : GPUL_OK;

	q->timeout_ns = (uint64_t)ms * 1000000;
	if (!text)
		q->timeout_ns += q->handler_ns * 2 * (q->slots < q->blocks ? q->blocks : q->slots);
	return st;
}

static gpul_status parse_device(const struct cli_args *args, struct fifo_trace_request *q, gpul_error *err)
{
	uint64_t ordinal = 0;
	gpul_status st = parse_number(args, OPT_DEVICE, "device", 0, INT_MAX, 0, &ordinal, err);

	st = st ? st : devices_arg_parse(cli_value(args, OPT_DRIVER), NULL, &q->devices, err);
	q->devices.ordinal[0] = (int)ordinal;
	return st;
}

static gpul_status parse_request(const struct cli_args *args, struct fifo_trace_request *q, gpul_error *err)
{
	const char *path = cli_value(args, OPT_OUT);
	gpul_status st = GPUL_OK;

	*q = (struct fifo_trace_request){ .path = path ? path : default_path,
					  .force = cli_value(args, OPT_FORCE),
					  .sync = cli_value(args, OPT_SYNC),
					  .kind = GPUL_MEM_AUTO };
	if (args->n_operands)
		st = gpul_fail(err, GPUL_EINVAL, 0, "unexpected operand '%s': fifo trace has only options; -o names the file",
			       args->operands[0]);
	st = st ? st : parse_numbers(args, q, err);
	st = st ? st : parse_mode(cli_value(args, OPT_MODE), q, err);
	st = st ? st : parse_kind(cli_value(args, OPT_KIND), q, err);
	st = st ? st : parse_timeout(cli_value(args, OPT_TIMEOUT), q, err);
	return st ? st : parse_device(args, q, err);
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

/* Write the trace to its file and the text to stdout.  With -o -, write the trace to stdout and the text to stderr. */
static gpul_status write_trace(const struct fifo_trace_request *q, struct out *json, struct out *text, gpul_error *err)
{
	const bool to_stdout = !strcmp(q->path, "-");
	gpul_status st = to_stdout ? out_flush(json, err) : new_file_write(q->path, NULL, 0, json->at, json->n, q->force, err);

	if (st)
		return st;
	if (!to_stdout) {
		out_text(text, "\n");
		out_name(text, q->path, strlen(q->path));
		out_text(text, ": open it in https://ui.perfetto.dev or in chrome://tracing\n");
		return out_flush(text, err);
	}
	fwrite(text->at, 1, text->n, stderr);
	return GPUL_OK;
}

static gpul_status trace_and_write(const struct fifo_trace_request *q, gpul_error *err)
{
	struct fifo_trace t = { 0 };
	struct out json = { 0 }, text = { 0 };
	gpul_status st = stop_begin(err);

	st = st ? st : fifo_trace_run(q, &t, err);
	st = st ? st : fifo_trace_json(&t, &json, err);
	st = st ? st : fifo_trace_text(&t, &text, err);
	st = st ? st : write_trace(q, &json, &text, err);
	out_free(&json);
	out_free(&text);
	fifo_trace_free(&t);
	return st;
}

/* ---- --put ------------------------------------------------------------------------------------------------------ */

/* Refuse options that cannot be combined. */
static gpul_status check_options(const struct cli_args *args, gpul_error *err)
{
	static const int only_put[] = { OPT_BYTES, OPT_BACKEND, OPT_PROVIDER, OPT_PEER };
	static const int never_put[] = { OPT_SIZE, OPT_MODE, OPT_SYNC, OPT_HANDLER_NS };

	for (int i = 0; i < 4; i++) {
		if (cli_value(args, OPT_PUT) && cli_value(args, never_put[i]))
			return gpul_fail(err, GPUL_EINVAL, 0, "--%s cannot be combined with --put", trace_opts[never_put[i]].name);
		if (!cli_value(args, OPT_PUT) && cli_value(args, only_put[i]))
			return gpul_fail(err, GPUL_EINVAL, 0, "--%s needs the option --put", trace_opts[only_put[i]].name);
	}
	return GPUL_OK;
}

static gpul_status parse_put(const struct cli_args *args, const struct fifo_trace_request *q, struct fifo_put_request *p, gpul_error *err)
{
	uint64_t bytes = 0, peer = 0;
	gpul_status st = parse_number(args, OPT_BYTES, "bytes", 8, MOST_BYTES, DEFAULT_BYTES, &bytes, err);

	*p = (struct fifo_put_request){ .blocks = q->blocks,
					.puts = q->triggers,
					.timeout_ns = q->timeout_ns,
					.kind = q->kind,
					.devices = q->devices,
					.provider = cli_value(args, OPT_PROVIDER) };
	st = st ? st : parse_number(args, OPT_PEER, "peer-device", 0, INT_MAX, (uint64_t)q->devices.ordinal[0], &peer, err);
	if (!st && bytes % 8)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--bytes must be a multiple of 8, not %" PRIu64, bytes);
	p->bytes = (unsigned)bytes;
	p->peer_device = (int)peer;
	return st ? st : devices_arg_backend(cli_value(args, OPT_BACKEND), p->provider, &p->backend, err);
}

static gpul_status trace_puts(const struct fifo_put_request *p, const struct fifo_trace_request *q, gpul_error *err)
{
	struct fifo_put_trace t = { 0 };
	struct out json = { 0 }, text = { 0 };
	gpul_status st = fifo_put_run(p, &t, err);

	st = st ? st : fifo_put_json(&t, &json, err);
	st = st ? st : fifo_put_text(&t, &text, err);
	st = st ? st : write_trace(q, &json, &text, err);
	out_free(&json);
	out_free(&text);
	fifo_put_free(&t);
	return st;
}

static int cmd_fifo_trace(const struct cli_args *args, gpul_error *err)
{
	struct fifo_trace_request q;
	struct fifo_put_request p;
	gpul_status st = check_options(args, err);

	st = st ? st : parse_request(args, &q, err);
	if (!st && cli_value(args, OPT_PUT)) {
		st = parse_put(args, &q, &p, err);
		return cli_exit_code(st ? st : trace_puts(&p, &q, err));
	}
	return cli_exit_code(st ? st : trace_and_write(&q, err));
}

const struct cli_cmd cli_fifo_trace = {
	"fifo trace", "",   "record each trigger from push to completion, for ui.perfetto.dev", trace_details, trace_opts, cmd_fifo_trace,
	NULL,         NULL,
};
