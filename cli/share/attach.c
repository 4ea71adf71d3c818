/* attach.c — gpuload attach: maps another process' memory, shows it, and detaches. */
#include "cli/share/attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/lib/cli_stop.h"
#include "cli/lib/message.h"
#include "cli/lib/value.h"
#include "core/clock.h"

/* clang-format off */
enum {
	ATTACH_SUM, ATTACH_DUMP, ATTACH_ROWS, ATTACH_SAVE, ATTACH_FORCE, ATTACH_HOLD, ATTACH_TYPE,
	ATTACH_READ_ONLY, ATTACH_DEVICES, ATTACH_WAIT, ATTACH_TIMEOUT, ATTACH_JSON, ATTACH_DRIVER,
};
/* clang-format on */

/* clang-format off */
static const struct cli_opt attach_opts[] = {
	[ATTACH_SUM] = { "sum", NULL, "add up the elements, on the GPU and on the CPU", NULL },
	[ATTACH_DUMP] = { "dump", NULL, "print elements, or bytes in hex", NULL },
	[ATTACH_ROWS] = { "rows", "N", "number of rows that --dump prints (default: 10)", NULL },
	[ATTACH_SAVE] = { "save", "FILE",
		"write the data to FILE: as a NumPy array if FILE ends in .npy, otherwise as raw bytes", CLI_FILES },
	[ATTACH_FORCE] = { "force", NULL, "replace FILE if it exists", NULL },
	[ATTACH_HOLD] = { "hold", NULL,
		"stay attached until a signal arrives or the owner ends", NULL },
	[ATTACH_TYPE] = { "type", "TYPE",
		"element type to use instead of the one that the owner has given", "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64" },
	[ATTACH_READ_ONLY] = { "read-only", NULL, "map the memory read-only", NULL },
	[ATTACH_DEVICES] = DEVICES_LIST_OPT,
	[ATTACH_WAIT] = { "wait", "SECONDS", "seconds to wait until NAME is shared (default: 0)", NULL },
	[ATTACH_TIMEOUT] = { "timeout", "SECONDS",
		"seconds to wait for the owner's answer, or for a sum (default: 10)", NULL },
	[ATTACH_JSON] = CLI_JSON_OPT,
	[ATTACH_DRIVER] = CLI_DRIVER_OPT,
	{ 0 },
};
/* clang-format on */

static const char attach_details[] = "Maps the memory that another process shares, on the first GPU of LIST and, unless it is\n"
				     "device memory, on the CPU; prints a description, does what the options ask for, and detaches.\n"
				     "The options can be combined.\n"
				     "\n"
				     "    --sum    adds in an order that depends only on the number of elements: the sums of all\n"
				     "             processes, GPUs and CPUs are the same, bit for bit; otherwise exit status 1\n"
				     "    --dump   a row is one of the last dimension, or 10 elements; 16 bytes if the type is\n"
				     "             unknown\n"
				     "    --save   the file appears only when it is complete\n"
				     "\n"
				     "If the owner dies, the memory stays readable until this process detaches; --hold prints the\n"
				     "event, detaches and exits with status 1.\n";

enum { DEFAULT_ROWS = 10, DEFAULT_TIMEOUT_MS = 10000, RETRY_MS = 10, DETACH_MS = 10000 };

/* ---- the command line -------------------------------------------------------------- */

static gpul_status read_times(const struct cli_args *args, struct attach_request *q, gpul_error *err)
{
	const char *wait = cli_value(args, ATTACH_WAIT), *timeout = cli_value(args, ATTACH_TIMEOUT);
	gpul_status st = wait ? value_parse_seconds("wait", wait, &q->wait_ms, err) : GPUL_OK;

	q->timeout_ms = DEFAULT_TIMEOUT_MS;
	if (st == GPUL_OK && timeout)
		st = value_parse_seconds("timeout", timeout, &q->timeout_ms, err);
	return st;
}

static gpul_status read_type_and_rows(const struct cli_args *args, struct attach_request *q, gpul_error *err)
{
	const char *type = cli_value(args, ATTACH_TYPE), *rows = cli_value(args, ATTACH_ROWS);

	q->type = type ? value_type(type, strlen(type)) : GPUL_TYPE_NONE;
	if (type && !q->type)
		return gpul_fail(err, GPUL_EINVAL, 0, "--type must be i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 or f64, not '%s'", type);
	q->rows = DEFAULT_ROWS;
	if (rows && !q->dump)
		return gpul_fail(err, GPUL_EINVAL, 0, "--rows needs --dump");
	return rows ? value_parse_size(rows, strlen(rows), &q->rows, err) : GPUL_OK;
}

static gpul_status read_request(const struct cli_args *args, struct attach_request *q, gpul_error *err)
{
	gpul_status st;

	if (args->n_operands != 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "expected one NAME; see gpuload help attach");
	q->name = args->operands[0];
	q->save = cli_value(args, ATTACH_SAVE);
	q->sum = cli_value(args, ATTACH_SUM) != NULL;
	q->dump = cli_value(args, ATTACH_DUMP) != NULL;
	q->hold = cli_value(args, ATTACH_HOLD) != NULL;
	q->force = cli_value(args, ATTACH_FORCE) != NULL;
	q->read_only = cli_value(args, ATTACH_READ_ONLY) != NULL;
	q->json = cli_value(args, ATTACH_JSON) != NULL;
	st = read_times(args, q, err);
	if (st == GPUL_OK)
		st = read_type_and_rows(args, q, err);
	if (st == GPUL_OK)
		st = devices_arg_parse(cli_value(args, ATTACH_DRIVER), cli_value(args, ATTACH_DEVICES), &q->devices, err);
	return st;
}

/* ---- attach and detach ------------------------------------------------------------- */

/* True if --wait must retry: the name does not exist yet, or its socket belongs to an owner that has died. */
static bool may_appear(const gpul_error *why)
{
	return why->status == GPUL_ESYS && (why->native == ENOENT || why->native == ECONNREFUSED);
}

/* Try once to connect and map. */
static gpul_status attach_once(struct attach *a, gpul_error *err)
{
	const struct attach_request *q = &a->ask;
	const gpul_ipc_client_options options = {
		.name = q->name,
		.fd = -1,
		.devices = q->devices.ordinal,
		.n_devices = q->devices.n,
		.read_only = q->read_only,
	};
	gpul_ipc_event e;
	gpul_status st = gpul_ipc_client_open(q->devices.drv, &options, &a->client, err);

	if (st)
		return st;
	st = gpul_ipc_client_next(a->client, q->timeout_ms, &e, err);
	if (st == GPUL_OK && e.kind == GPUL_IPC_ATTACHED) {
		a->owner = e.pid;
		a->view = gpul_ipc_client_view(a->client);
		return GPUL_OK;
	}
	if (st == GPUL_OK && e.kind == GPUL_IPC_NONE)
		st = gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
			       "the owner of '%.64s' has not answered within %d ms (--timeout): its process is stopped or busy", q->name,
			       q->timeout_ms);
	else if (st == GPUL_OK)
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s", e.why.text);
	(void)gpul_ipc_client_close(a->client, 0, NULL);
	a->client = NULL;
	return st;
}

static gpul_status attach_with_wait(struct attach *a, gpul_error *err)
{
	uint64_t until_ns = gpul_clock_ns() + (uint64_t)a->ask.wait_ms * 1000000;
	gpul_error why = { 0 };

	while (attach_once(a, &why)) {
		if (!may_appear(&why) || gpul_clock_ns() >= until_ns)
			return share_explain(a->ask.name, &why, err);
		why = (gpul_error){ 0 };
		poll(NULL, 0, RETRY_MS);
	}
	return GPUL_OK;
}

/* Set the type and the number of elements in *a. */
static gpul_status set_elements(struct attach *a, gpul_error *err)
{
	const gpul_ipc_shape *shape = &a->view->shape;
	size_t width;

	a->type = a->ask.type ? a->ask.type : share_type(shape);
	a->shaped = a->type && a->type == share_type(shape);
	width = a->type ? gpul_type_bytes(a->type) : 1;
	a->count = a->view->bytes / width;
	if (a->shaped) { /* no further check: ipc/ has checked that the shape fits into the memory */
		a->count = 1;
		for (unsigned i = 0; i < shape->n_dims; i++)
			a->count *= (size_t)shape->dim[i];
	} else if (a->view->bytes % width) {
		return gpul_fail(err, GPUL_EINVAL, 0, "size %zu is not a multiple of %zu bytes (%s)", a->view->bytes, width,
				 gpul_type_name(a->type));
	}
	return GPUL_OK;
}

/* ---- output ------------------------------------------------------------------------ */

static gpul_status show_requested(struct attach *a, struct json *j, gpul_error *err)
{
	gpul_status st = a->ask.sum ? attach_sum(a, j, err) : GPUL_OK;

	if (st == GPUL_OK && a->ask.dump)
		st = attach_dump(a, j, err);
	if (st == GPUL_OK && a->ask.save)
		st = attach_save(a, err);
	if (st == GPUL_OK && a->ask.save && j)
		json_text(j, "saved", a->ask.save);
	else if (st == GPUL_OK && a->ask.save)
		printf("%-10s %s: %s\n", "SAVED", a->ask.name, a->ask.save);
	return st;
}

static gpul_status show_all(struct attach *a, gpul_error *err)
{
	struct json j = { 0 }, *json = a->ask.json ? &j : NULL;
	gpul_status st;

	if (json)
		json_begin(json, NULL, '{');
	attach_describe(a, json);
	st = show_requested(a, json, err);
	if (json)
		json_end(json, '}');
	if (st)
		out_free(&j.out);
	else if (json)
		st = json_print(json, err);
	return st ? st : share_flush(err);
}

/* Handle a pending event; *ended is set if the owner has ended or withdrawn the memory. */
static gpul_status handle_events(struct attach *a, bool *ended, gpul_error *err)
{
	gpul_ipc_event e;
	gpul_status st = gpul_ipc_client_next(a->client, 0, &e, err);

	if (st || e.kind == GPUL_IPC_NONE || e.kind == GPUL_IPC_ATTACHED)
		return st;
	*ended = true;
	if (e.kind == GPUL_IPC_OWNER_DIED && !a->ask.hold) {
		cli_message("attach", "the owner of %s died during this command; its memory could still be read", a->ask.name);
		return GPUL_OK;
	}
	st = a->ask.hold ? share_print_event(a->ask.name, &e, -1, a->ask.json, err) : GPUL_OK;
	if (st == GPUL_OK && e.kind == GPUL_IPC_OWNER_DIED)
		st = gpul_fail(err, GPUL_ESYS, ECONNRESET, "the owner of %.64s died", a->ask.name);
	return st;
}

static gpul_status hold_lease(struct attach *a, gpul_error *err)
{
	bool ended = false;
	gpul_status st = stop_begin(err);

	while (st == GPUL_OK && !ended && !stop_requested()) {
		st = stop_wait(gpul_ipc_client_fd(a->client), -1, err);
		if (st == GPUL_OK)
			st = handle_events(a, &ended, err);
	}
	if (st == GPUL_OK && !ended)
		st = share_print_end(a->ask.name, stop_requested(), a->ask.json, err);
	return st;
}

static gpul_status run_attach(struct attach *a, gpul_error *err)
{
	gpul_status st = devices_arg_open(&a->ask.devices, err), closed;
	bool ended = false;

	if (st == GPUL_OK)
		st = attach_with_wait(a, err);
	if (st)
		goto close_devices;
	st = set_elements(a, err);
	if (st == GPUL_OK)
		st = show_all(a, err);
	if (st == GPUL_OK)
		st = a->ask.hold ? hold_lease(a, err) : handle_events(a, &ended, err);
	closed = gpul_ipc_client_close(a->client, DETACH_MS, err);
	st = st ? st : closed;
close_devices:
	devices_arg_close(&a->ask.devices);
	return st;
}

static int cmd_attach(const struct cli_args *args, gpul_error *err)
{
	struct attach a = { 0 };
	gpul_status st = read_request(args, &a.ask, err);

	signal(SIGPIPE, SIG_IGN); /* so that `gpuload attach | head` detaches before it ends */
	if (st == GPUL_OK)
		st = run_attach(&a, err);
	return cli_exit_code(st);
}

const struct cli_cmd cli_attach = {
	"attach",   "NAME", "map another process' memory: add up, print or save it", attach_details, attach_opts, cmd_attach,
	CLI_SHARES, NULL,
};
