/* fifo_serve.c — gpuload fifo serve: shares a FIFO with other processes, and counts their triggers with a proxy. */
#include "cli/fifo/cli_fifo.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/share/share.h"
#include "cli/lib/cli_stop.h"
#include "cli/lib/value.h"
#include "core/clock.h"
#include "proxy/proxy.h"

enum { DEFAULT_SLOTS = 128, DEFAULT_LANES = 8, GONE_MS = 10000 };
enum { OPT_SLOTS, OPT_LANES, OPT_PRINT, OPT_KIND, OPT_DEVICE, OPT_UNTIL_DETACHED, OPT_FOR, OPT_JSON, OPT_DRIVER };

static const struct cli_opt serve_opts[] = {
	[OPT_SLOTS] = { "slots", "N", "total number of slots, a power of two (default: 128)", NULL },
	[OPT_LANES] = { "lanes", "N", "number of lanes (rings), a power of two (default: 8)", NULL },
	[OPT_PRINT] = { "print", NULL, "print each trigger", NULL },
	[OPT_KIND] = { "kind", "KIND", "kind of host memory (default: auto)", "auto host-numa memfd shm" },
	[OPT_DEVICE] = { "device", "N", "GPU whose kernels push; the memory is on its NUMA node (default: 0)", NULL },
	[OPT_UNTIL_DETACHED] = { "until-detached", NULL, "end when the first process that pushed has detached", NULL },
	[OPT_FOR] = { "for", "SECONDS", "end after this many seconds, for example 0.5", NULL },
	[OPT_JSON] = { "json", NULL, "print each event as one line of JSON", NULL },
	[OPT_DRIVER] = CLI_DRIVER_OPT,
	{ 0 },
};

static const char serve_details[] = "Creates a FIFO in host memory, offers it to other processes of the same user as NAME (see\n"
				    "gpuload help share), and runs a proxy thread that handles their triggers. In two shells:\n"
				    "\n"
				    "    gpuload fifo serve jobs\n"
				    "    gpuload fifo push jobs --count 1000\n"
				    "\n"
				    "One process at a time pushes; each begins with an empty FIFO. The command prints READY, then\n"
				    "one line per event: ATTACHED, DETACHED or PEER_DIED, and HANDLED with the number of triggers\n"
				    "and, if the kernels were aborted, the reason. If a process is killed while its kernel pushes,\n"
				    "the command reports it at once, and still handles the triggers that were pushed.\n";

/* The period during which one process is attached. */
struct session {
	gpul_proxy *proxy;
	int watched[2]; /* descriptors: the connection to the process, and its pidfd if the system has pidfds */
	unsigned n_watched;
	uint64_t begun_ns;
};

struct serve {
	const char *name; /* borrowed */
	gpul_fifo_shape shape;
	gpul_mem_kind kind;
	bool print, until_detached, json;
	int for_ms; /* how long to serve; -1: until a signal */
	struct devices_arg devices;
	gpul_mem *mem;
	gpul_ipc_server *server;
	gpul_fifo *fifo;
	struct session session;
	bool left; /* true: a process was attached, and has detached */
};

/* ---- the command line ----------------------------------------------------------------- */

static gpul_status parse_count(const struct cli_args *args, int opt, const char *name, unsigned otherwise, unsigned *out, gpul_error *err)
{
	const char *text = cli_value(args, opt);
	size_t value = otherwise;
	gpul_status st = text ? value_parse_size(text, strlen(text), &value, err) : GPUL_OK;

	if (!st && value > UINT32_MAX)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--%s %.40s is too large: at most %u", name, text, UINT32_MAX);
	*out = (unsigned)value;
	return st;
}

static gpul_status parse_request(const struct cli_args *args, struct serve *s, gpul_error *err)
{
	const char *kind = cli_value(args, OPT_KIND), *seconds = cli_value(args, OPT_FOR);
	gpul_status st = GPUL_OK;

	*s = (struct serve){ .print = cli_value(args, OPT_PRINT),
			     .until_detached = cli_value(args, OPT_UNTIL_DETACHED),
			     .json = cli_value(args, OPT_JSON),
			     .for_ms = -1 };
	if (args->n_operands != 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "expected one NAME; see gpuload help fifo serve");
	s->name = args->operands[0];
	if (kind && (!gpul_mem_kind_parse(kind, &s->kind) || s->kind == GPUL_MEM_DEVICE || s->kind == GPUL_MEM_PINNED ||
		     s->kind == GPUL_MEM_DEVICE_IPC))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--kind must be auto, host-numa, memfd or shm, which the CPU and other processes can map; not "
				 "'%s'",
				 kind);
	st = parse_count(args, OPT_SLOTS, "slots", DEFAULT_SLOTS, &s->shape.slots, err);
	s->shape.lanes = s->shape.slots < DEFAULT_LANES ? s->shape.slots : DEFAULT_LANES;
	st = st ? st : parse_count(args, OPT_LANES, "lanes", s->shape.lanes, &s->shape.lanes, err);
	if (!st && !gpul_fifo_area_bytes(&s->shape))
		st = gpul_fifo_area_format(NULL, 0, &s->shape, err); /* NULL: only check the shape, and create the error message */
	st = st || !seconds ? st : value_parse_seconds("for", seconds, &s->for_ms, err);
	return st ? st : devices_arg_parse(cli_value(args, OPT_DRIVER), cli_value(args, OPT_DEVICE), &s->devices, err);
}

/* ---- the memory ------------------------------------------------------------------------- */

/* Create, format and offer the FIFO.  It is formatted first, before another process can attach. */
static gpul_status create_fifo(struct serve *s, gpul_error *err)
{
	const size_t bytes = gpul_fifo_area_bytes(&s->shape);
	const gpul_mem_desc desc = { .kind = s->kind,
				     .bytes = GPUL_IPC_CONTROL_BYTES + bytes,
				     .node = GPUL_MEM_NODE_OF_GPU,
				     .devices = s->devices.ordinal,
				     .n_devices = 1,
				     .exportable = true };
	const gpul_ipc_server_options options = { .name = s->name, .control = true, .bytes = bytes, .max_peers = 1 };
	char *area;
	gpul_status st = gpul_mem_create(s->devices.drv, &desc, &s->mem, err);

	if (st)
		return st;
	area = (char *)gpul_mem_cpu(s->mem) + GPUL_IPC_CONTROL_BYTES;
	st = gpul_fifo_area_format(area, bytes, &s->shape, err);
	st = st ? st : gpul_fifo_open(area, bytes, &s->fifo, err);
	if (!st)
		/* a failure is ignored: peers also notice the end of this process by their sockets, but later */
		(void)gpul_fifo_hold_lifeline(s->fifo, NULL);
	return st ? st : gpul_ipc_server_create(s->devices.drv, s->mem, &options, &s->server, err);
}

static gpul_status print_ready(const struct serve *s, gpul_error *err)
{
	const gpul_mem_info *about = gpul_mem_about(s->mem);
	struct json j = { 0 };

	if (!s->json) {
		printf("%-10s %s: %u slots in %u lanes, %s, node %d\n", "READY", s->name, s->shape.slots, s->shape.lanes,
		       gpul_mem_kind_name(about->kind), about->node);
		return share_flush(err);
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "event", "READY");
	json_text(&j, "name", s->name);
	json_u64(&j, "slots", s->shape.slots);
	json_u64(&j, "lanes", s->shape.lanes);
	json_text(&j, "kind", gpul_mem_kind_name(about->kind));
	json_i64(&j, "node", about->node);
	json_end(&j, '}');
	return share_json_print(&j, err);
}

/* ---- a session ---------------------------------------------------------------------------- */

static void print_json(const struct serve *s, const gpul_fifo_item *item)
{
	printf("{\"event\": \"TRIGGER\", \"name\": \"%s\", \"lane\": %u, \"position\": %" PRIu64 ", \"kind\": %u, "
	       "\"words\": [\"%#018" PRIx64 "\", \"%#018" PRIx64 "\"]}\n",
	       s->name, item->lane, item->position, gpul_fifo_kind(item), item->word[0], item->word[1]);
}

static void print_item(const struct serve *s, const gpul_fifo_item *item)
{
	if (s->json)
		print_json(s, item);
	else
		printf("%-10s %s: lane %u, position %" PRIu64 ": %#018" PRIx64 " %#018" PRIx64 ", kind %u\n", "TRIGGER", s->name,
		       item->lane, item->position, item->word[0], item->word[1], gpul_fifo_kind(item));
}

/* Called by the proxy's thread, which also counts the triggers: print them if --print is given. */
static gpul_status handle_triggers(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	const struct serve *s = context;

	(void)fifo;
	for (unsigned i = 0; s->print && i < n; i++)
		print_item(s, &items[i]);
	return s->print ? share_flush(err) : GPUL_OK;
}

static gpul_status begin_session(struct serve *s, int slot, gpul_error *err)
{
	struct session *now = &s->session;
	gpul_proxy_desc desc = { .fifos = &s->fifo, .n_fifos = 1, .watch_fds = now->watched };

	now->n_watched = desc.n_watch_fds = gpul_ipc_server_peer_fds(s->server, slot, now->watched);
	now->begun_ns = gpul_clock_ns();
	for (int kind = 0; kind < GPUL_FIFO_N_KINDS; kind++)
		desc.kinds[kind] = (gpul_proxy_kind){ handle_triggers, s };
	return gpul_proxy_start(&desc, &now->proxy, err);
}

static gpul_status print_handled(const struct serve *s, uint64_t n, uint64_t ns, const char *gave_up, gpul_error *err)
{
	struct json j = { 0 };

	if (!s->json) {
		printf("%-10s %s: %" PRIu64 " triggers in %.3f ms%s%s\n", "HANDLED", s->name, n, (double)ns / 1e6,
		       gave_up ? ", aborted: " : "", gave_up ? gave_up : "");
		return share_flush(err);
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "event", "HANDLED");
	json_text(&j, "name", s->name);
	json_u64(&j, "triggers", n);
	json_double(&j, "seconds", (double)ns / 1e9);
	if (gave_up)
		json_text(&j, "aborted", gave_up);
	else
		json_null(&j, "aborted");
	json_end(&j, '}');
	return share_json_print(&j, err);
}

/* Wait until the process itself has ended (pidfd): a process that is killed closes its connection before its kernels have ended,
 * and their stores must not reach the FIFO of the next process. */
static void wait_for_process_end(const struct session *now)
{
	const uint64_t until = gpul_clock_ns() + GONE_MS * 1000000ull;

	for (unsigned i = 0; i < now->n_watched; i++) {
		struct pollfd p = { .fd = now->watched[i], .events = POLLIN };

		while (gpul_clock_ns() < until && poll(&p, 1, 10) <= 0)
			;
	}
}

/* Handle the triggers that the proxy thread has not taken out of the FIFO; returns their number. */
static uint64_t take_remaining(struct serve *s)
{
	gpul_fifo_item items[64];
	uint64_t total = 0;

	for (unsigned n; (n = gpul_fifo_poll(s->fifo, items, 64)) != 0; gpul_fifo_release(s->fifo)) {
		handle_triggers(s, s->fifo, items, n, NULL);
		total += n;
	}
	return total;
}

/* End the session of the attached process.  lost: the event that ended the session; NONE: this command is about to end. */
static gpul_status end_session(struct serve *s, gpul_ipc_event_kind lost, gpul_error *err)
{
	struct session *now = &s->session;
	gpul_proxy_stats stats;
	gpul_error why = { 0 };
	char text[64];
	uint32_t code;
	gpul_status st;

	if (!now->proxy)
		return GPUL_OK;
	if (lost == GPUL_IPC_PEER_DIED)
		wait_for_process_end(now);
	gpul_proxy_get_stats(now->proxy, &stats);
	st = gpul_proxy_stop(now->proxy, &why);
	now->proxy = NULL;
	for (unsigned i = 0; i < now->n_watched; i++)
		close(now->watched[i]);
	if (st && why.native != EPIPE && why.native != ECANCELED)
		return gpul_fail(err, st, why.native, "%s", why.text);
	code = gpul_fifo_aborted(s->fifo);
	if (code == GPUL_FIFO_CODE_PEER_GONE || lost == GPUL_IPC_NONE) /* not an error: this process itself has set the abort code */
		code = 0;
	if (lost == GPUL_IPC_NONE)
		gpul_fifo_abort(s->fifo, GPUL_FIFO_CODE_STOPPED);
	stats.triggers += take_remaining(s);
	st = print_handled(s, stats.triggers, gpul_clock_ns() - now->begun_ns, code ? gpul_fifo_code_text(code, text) : NULL, err);
	return st || lost == GPUL_IPC_NONE ? st : gpul_fifo_reset(s->fifo, err);
}

/* ---- serving --------------------------------------------------------------------------------- */

static gpul_status handle_event(struct serve *s, const gpul_ipc_event *e, gpul_error *err)
{
	gpul_status st = share_print_event(s->name, e, (int)gpul_ipc_server_peers(s->server, NULL, 0), s->json, err);

	if (!st && e->kind == GPUL_IPC_ATTACHED)
		return begin_session(s, e->peer, err);
	if (st || (e->kind != GPUL_IPC_DETACHED && e->kind != GPUL_IPC_PEER_DIED))
		return st;
	s->left = true;
	return end_session(s, e->kind, err);
}

/* Return the time in ms until --for is over; -1: no limit. */
static int remaining_ms(uint64_t started_ns, int for_ms)
{
	const uint64_t passed_ms = (gpul_clock_ns() - started_ns) / 1000000;

	if (for_ms < 0)
		return -1;
	return passed_ms >= (uint64_t)for_ms ? 0 : for_ms - (int)passed_ms;
}

static gpul_status serve_until_end(struct serve *s, const char **why, gpul_error *err)
{
	const uint64_t started_ns = gpul_clock_ns();
	gpul_status st = GPUL_OK;

	while (!st && !*why) {
		gpul_ipc_event e = { .kind = GPUL_IPC_NONE };
		const int wait_ms = remaining_ms(started_ns, s->for_ms);

		st = stop_wait(gpul_ipc_server_fd(s->server), wait_ms, err);
		st = st ? st : gpul_ipc_server_next(s->server, 0, &e, err);
		if (!st && e.kind != GPUL_IPC_NONE)
			st = handle_event(s, &e, err);
		*why = stop_requested();
		if (!*why && s->until_detached && s->left)
			*why = "the process has detached (--until-detached)";
		if (!*why && wait_ms == 0)
			*why = "the time given by --for has passed";
	}
	return st;
}

static gpul_status serve_fifo(struct serve *s, gpul_error *err)
{
	const char *why = NULL;
	gpul_status st = devices_arg_open(&s->devices, err), ended;

	st = st ? st : create_fifo(s, err);
	st = st ? st : stop_begin(err);
	st = st ? st : print_ready(s, err);
	st = st ? st : serve_until_end(s, &why, err);
	ended = end_session(s, GPUL_IPC_NONE, err);
	st = st ? st : ended;
	gpul_ipc_server_destroy(s->server);
	gpul_fifo_close(s->fifo);
	gpul_mem_destroy(s->mem);
	devices_arg_close(&s->devices);
	return st ? st : share_print_end(s->name, why, s->json, err);
}

static int cmd_fifo_serve(const struct cli_args *args, gpul_error *err)
{
	struct serve s;
	gpul_status st = parse_request(args, &s, err);

	return cli_exit_code(st ? st : serve_fifo(&s, err));
}

const struct cli_cmd cli_fifo_serve = {
	"fifo serve",  "NAME",     "run a proxy that handles triggers from kernels of other processes",
	serve_details, serve_opts, cmd_fifo_serve,
	NULL,          NULL,
};
