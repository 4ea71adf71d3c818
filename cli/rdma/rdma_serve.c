/* rdma_serve.c — gpuload rdma serve: accepts the flows of clients, and serves each client in a thread.
 *
 *     accept ──> guest (a connection without a hello yet) ──> session of the hello's id ── all flows have connected ──> thread
 *
 * The main thread accepts, and prints the result of a session when its thread has ended. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/lib/json/cli_json.h"
#include "cli/lib/cli_stop.h"
#include "cli/rdma/rdma_bench_session.h"
#include "cli/share/share.h"
#include "core/clock.h"

enum { MOST_GUESTS = 64, MOST_SESSIONS = 16, HELLO_MS = 10000, JOIN_MS = 10000, REFUSE_MS = 1000, LOOK_MS = 20, GREET_MS = 1 };
enum { OPT_LISTEN = RDMA_N_COMMON_OPTS, OPT_ONCE };

static const struct cli_opt serve_opts[] = {
	RDMA_COMMON_OPTS,
	[OPT_LISTEN] = { "listen", "ADDRESS", "listen only at this address of this machine (default: all)", NULL },
	[OPT_ONCE] = { "once", NULL, "end after the first client", NULL },
	{ 0 },
};

static const char serve_details[] = "Waits for gpuload rdma bench on another machine (or on this one), and takes part in its\n"
				    "measurement. The client decides what is measured; the memory and the NIC of this end are\n"
				    "chosen here. Prints READY, then one table per client; several clients are served at the same\n"
				    "time, and slow each other down. Ends on Ctrl-C or SIGTERM.\n";

/* A guest: an accepted connection whose hello has not arrived yet. */
struct guest {
	struct rdma_flow flow;
	gpul_rdma_request request;
	uint64_t deadline_ns;
};

struct served {
	uint64_t id; /* id of the client */
	struct rdma_session s;
	struct rdma_watch watch;
	struct rdma_bench_result result;
	struct rdma_end client;
	unsigned n_joined;
	uint64_t deadline_ns; /* deadline for the hellos of all flows */
	pthread_t thread;
	bool running;
	atomic_bool ended;
	gpul_error err;
};

struct server {
	struct rdma_serve_request *q;
	gpul_rdma *r;
	gpul_rdma_listener *listener;
	struct guest *guest[MOST_GUESTS];
	struct served *served[MOST_SESSIONS];
	struct rdma_watch watch; /* for control messages to guests; its `stop` stays false */
	bool over;               /* with --once: the only client has been served */
};

/* ---- output --------------------------------------------------------------------------------------------- */

static gpul_status flush_text(struct out *o, gpul_error *err)
{
	const gpul_status st = out_flush(o, err);

	out_free(o);
	return st ? st : share_flush(err);
}

static gpul_status print_event(const struct server *v, const char *event, const char *key, const char *text, gpul_error *err)
{
	struct out o = { 0 };
	struct json j = { 0 };

	if (v->q->ready_fd >= 0)
		return GPUL_OK;
	if (!v->q->setup.json) {
		out_add(&o, "%-10s %s\n", event, text);
		return flush_text(&o, err);
	}
	json_begin(&j, NULL, '{');
	json_text(&j, "event", event);
	json_text(&j, key, text);
	json_end(&j, '}');
	return share_json_print(&j, err);
}

static gpul_status print_client(const struct server *v, const struct rdma_bench_result *result, gpul_error *err)
{
	struct out o = { 0 };
	struct json j = { 0 };

	if (v->q->ready_fd >= 0)
		return GPUL_OK;
	if (!v->q->setup.json) {
		out_text(&o, "CLIENT     ");
		rdma_bench_text(result, &o);
		return flush_text(&o, err);
	}
	rdma_bench_json(result, &j);
	return share_json_print(&j, err);
}

/* Report that the server listens: to the user, or to the parent process. */
static gpul_status report_ready(const struct server *v, gpul_error *err)
{
	struct rdma_ready ready = { 0 };
	gpul_rdma_device_info info;
	char text[400];

	if (v->q->ready_fd >= 0) {
		snprintf(ready.address, sizeof ready.address, "%s", gpul_rdma_listener_address(v->listener));
		if (write(v->q->ready_fd, &ready, sizeof ready) != sizeof ready)
			return gpul_fail(err, GPUL_ESYS, errno, "the parent process has ended: %s", strerror(errno));
		return GPUL_OK;
	}
	gpul_rdma_about(v->r, &info);
	snprintf(text, sizeof text, "%s: %s, %s, %s memory", gpul_rdma_listener_address(v->listener), info.backend, info.name,
		 rdma_memory_names[v->q->setup.memory]);
	return print_event(v, "READY", "text", text, err);
}

/* ---- sessions ------------------------------------------------------------------------------------------- */

static void *serve_session(void *context)
{
	struct served *d = context;

	(void)rdma_session_serve(&d->s, &d->client, &d->result, &d->err);
	rdma_read_stats(&d->s, &d->result);
	rdma_session_close(&d->s);
	atomic_store(&d->ended, true);
	return NULL;
}

static void free_session(struct server *v, unsigned i)
{
	struct served *d = v->served[i];

	if (!d)
		return;
	if (d->running)
		pthread_join(d->thread, NULL);
	rdma_session_close(&d->s);
	free(d->result.reliable);
	free(d);
	v->served[i] = NULL;
}

/* Print the results of the sessions that have ended, and drop sessions whose flows do not connect in time. */
static gpul_status reap_sessions(struct server *v, gpul_error *err)
{
	char text[400];
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < MOST_SESSIONS; i++) {
		struct served *d = v->served[i];

		if (d && !d->running && gpul_clock_ns() > d->deadline_ns)
			gpul_fail(&d->err, GPUL_ESYS, ETIMEDOUT, "only %u of the client's %u flows have connected", d->n_joined,
				  d->s.shape.n_flows);
		else if (!d || !atomic_load(&d->ended))
			continue;
		if (d->result.n_rows)
			st = print_client(v, &d->result, err);
		snprintf(text, sizeof text, "client %s, pid %d: %s", d->client.host, d->client.pid, d->err.text);
		if (!st && d->err.status && v->q->once)
			st = gpul_fail(err, d->err.status, d->err.native, "%s", text);
		else if (!st && d->err.status)
			st = print_event(v, "FAILED", "error", text, err);
		v->over = v->q->once;
		free_session(v, i);
	}
	return st;
}

/* ---- guests: pending connections ------------------------------------------------------------------------- */

static void free_guest(struct server *v, unsigned i)
{
	if (v->guest[i])
		rdma_flow_close(&v->guest[i]->flow);
	free(v->guest[i]);
	v->guest[i] = NULL;
}

/* Refuse a guest (a new connection): send it the reason, and close it. */
static void refuse_guest(struct server *v, unsigned i, const gpul_error *why)
{
	struct rdma_session nobody = { .watch = &v->watch };
	struct rdma_flow *f = &v->guest[i]->flow;
	gpul_error err = { 0 };
	char text[300];

	f->mail->welcome = (struct rdma_welcome){ .magic = RDMA_WIRE_MAGIC, .err = *why };
	(void)rdma_control(&nobody, f, &f->mail->welcome, sizeof f->mail->welcome, REFUSE_MS, NULL, &err);
	snprintf(text, sizeof text, "a client: %s", why->text);
	(void)print_event(v, "REFUSED", "error", text, &err);
	free_guest(v, i);
}

/* Find the session to which a hello belongs: the session of the client's other flows, or a new one. */
static gpul_status find_session(struct server *v, const struct rdma_hello *h, struct served **out, gpul_error *err)
{
	const struct rdma_shape shape = { .mode = (enum rdma_mode)h->mode,
					  .n_flows = h->n_flows,
					  .n_parts = h->n_parts,
					  .n_requests = h->n_requests,
					  .flush = h->flush,
					  .buffer_bytes = h->buffer_bytes };
	struct served *d;
	int free_place = -1;
	gpul_status st;

	for (int i = MOST_SESSIONS - 1; i >= 0; i--) {
		if (!v->served[i])
			free_place = i;
		else if (v->served[i]->id == h->id && !v->served[i]->running && v->served[i]->s.shape.n_flows == h->n_flows) {
			*out = v->served[i];
			return GPUL_OK;
		}
	}
	if (free_place < 0)
		return gpul_fail(err, GPUL_ESYS, EBUSY, "the server is busy with %d other clients: try again later", MOST_SESSIONS);
	d = calloc(1, sizeof *d);
	if (!d)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a client");
	st = rdma_session_open(&d->s, &v->q->setup, &shape, &d->watch, false, err);
	if (st) {
		free(d);
		return st;
	}
	d->id = h->id;
	d->client = h->client;
	d->s.r = v->r;
	d->deadline_ns = gpul_clock_ns() + JOIN_MS * 1000000ull;
	v->served[free_place] = *out = d;
	return GPUL_OK;
}

/* The hello of a guest (a new connection) has arrived: make the connection a flow of its session.  The last flow starts the session. */
static void seat_guest(struct server *v, unsigned i, uint64_t bytes)
{
	struct rdma_flow *f = &v->guest[i]->flow;
	struct rdma_hello h = f->mail->hello; /* a copy, because the peer could change the message in the registered memory */
	struct served *d = NULL;
	char text[200];
	gpul_error why = { 0 };
	gpul_status st = rdma_wire_check_hello(&h, bytes, &why);

	st = st ? st : find_session(v, &h, &d, &why);
	if (!st && d->s.flow[h.flow].conn)
		st = gpul_fail(&why, GPUL_EFORMAT, 0, "the client has connected flow %u twice", h.flow);
	if (st) {
		refuse_guest(v, i, &why);
		return;
	}
	f->number = h.flow;
	f->peer_in = h.in;
	f->peer_signals = h.signals;
	d->s.flow[h.flow] = *f;
	free(v->guest[i]);
	v->guest[i] = NULL;
	if (++d->n_joined < d->s.shape.n_flows)
		return;
	snprintf(text, sizeof text, "client %s, pid %d: mode %s, %u flow%s", d->client.host, d->client.pid,
		 rdma_mode_names[d->s.shape.mode], d->s.shape.n_flows, d->s.shape.n_flows == 1 ? "" : "s");
	(void)print_event(v, "SERVING", "text", text, &d->err);
	d->running = pthread_create(&d->thread, NULL, serve_session, d) == 0;
	if (!d->running) {
		gpul_fail(&d->err, GPUL_ENOMEM, 0, "cannot start a thread");
		atomic_store(&d->ended, true);
	}
}

/* Poll each guest (a new connection) for its hello; returns the number of guests whose hello has not arrived. */
static unsigned greet_guests(struct server *v)
{
	unsigned n = 0;

	for (unsigned i = 0; i < MOST_GUESTS; i++) {
		struct guest *g = v->guest[i];
		gpul_error err = { 0 };
		uint64_t bytes = 0;
		bool done = false;

		if (!g)
			continue;
		if (!gpul_rdma_test(g->flow.conn, g->request, &done, &bytes, &err) && !done && gpul_clock_ns() > g->deadline_ns)
			gpul_fail(&err, GPUL_ESYS, ETIMEDOUT, "a client has sent nothing within %d ms: do both ends use the same provider?",
				  HELLO_MS);
		if (err.status) {
			(void)print_event(v, "REFUSED", "error", err.text, NULL);
			free_guest(v, i);
		} else if (done)
			seat_guest(v, i, bytes);
		n += v->guest[i] != NULL;
	}
	return n;
}

static void receive_guest(struct server *v, gpul_rdma_conn *conn)
{
	struct guest *g = calloc(1, sizeof *g);
	unsigned place = 0;
	gpul_error err = { 0 };
	gpul_rdma_buffer b = { .bytes = sizeof g->flow.mail->hello, .tag = RDMA_TAG_CONTROL };

	while (place < MOST_GUESTS && v->guest[place])
		place++;
	if (!g || place == MOST_GUESTS) {
		free(g);
		gpul_rdma_conn_close(conn);
		return;
	}
	v->guest[place] = g;
	g->flow.conn = conn;
	g->deadline_ns = gpul_clock_ns() + HELLO_MS * 1000000ull;
	if (rdma_flow_open(v->r, &g->flow, &err) == GPUL_OK) {
		b.region = g->flow.mail_region;
		b.at = (uint64_t)(uintptr_t)&g->flow.mail->hello;
		if (gpul_rdma_irecv(conn, &b, 1, 0, &g->request, &err) == GPUL_OK && g->request)
			return;
	}
	free_guest(v, place);
}

/* ---- the server -------------------------------------------------------------------------------------------- */

static gpul_status serve_until_end(struct server *v, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	while (!st && !stop_requested() && !v->over) {
		gpul_rdma_conn *conn = NULL;
		gpul_error why = { 0 };
		const unsigned n_guests = greet_guests(v);

		if (gpul_rdma_accept(v->listener, n_guests ? GREET_MS : LOOK_MS, &conn, &why) == GPUL_OK) {
			receive_guest(v, conn);
		} else if (why.native != ETIMEDOUT || why.status != GPUL_ESYS) {
			st = print_event(v, "FAILED", "error", why.text, err);
			poll(NULL, 0, LOOK_MS);
		}
		st = st ? st : reap_sessions(v, err);
		st = st ? st : stop_wait(-1, 0, err); /* detects whether the reader of the output has closed it */
	}
	return st;
}

static gpul_status open_server(struct server *v, gpul_error *err)
{
	struct rdma_setup *setup = &v->q->setup;
	gpul_status st = setup->memory == RDMA_HOST ? GPUL_OK : devices_arg_open(&setup->devices, err);

	setup->rdma.device.drv = setup->devices.drv;
	setup->rdma.secret = secure_getenv("GPULOAD_RDMA_SECRET");
	st = st ? st : gpul_rdma_open(&setup->rdma, &v->r, err);
	st = st ? st : gpul_rdma_listen(v->r, v->q->address, &v->listener, err);
	st = st ? st : stop_begin(err);
	return st ? st : report_ready(v, err);
}

static void close_server(struct server *v)
{
	for (unsigned i = 0; i < MOST_SESSIONS; i++)
		if (v->served[i])
			atomic_store(&v->served[i]->watch.stop, true);
	for (unsigned i = 0; i < MOST_SESSIONS; i++)
		free_session(v, i);
	for (unsigned i = 0; i < MOST_GUESTS; i++)
		free_guest(v, i);
	gpul_rdma_listener_close(v->listener);
	gpul_rdma_close(v->r);
	devices_arg_close(&v->q->setup.devices);
}

gpul_status rdma_serve(struct rdma_serve_request *q, gpul_error *err)
{
	struct server *v = calloc(1, sizeof *v);
	const char *why;
	gpul_status st;

	if (!v)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a server");
	v->q = q;
	st = open_server(v, err);
	st = st ? st : serve_until_end(v, err);
	close_server(v);
	why = v->over ? "the client has ended (--once)" : stop_requested();
	st = st ? st : print_event(v, "ENDED", "why", why, err);
	free(v);
	return st;
}

/* ---- the command -------------------------------------------------------------------------------------------- */

static int cmd_rdma_serve(const struct cli_args *args, gpul_error *err)
{
	struct rdma_serve_request q = { .once = cli_value(args, OPT_ONCE), .ready_fd = -1 };
	const char *listen = cli_value(args, OPT_LISTEN);
	char address[RDMA_ADDRESS_BYTES];
	gpul_status st = GPUL_OK;

	if (args->n_operands)
		st = gpul_fail(err, GPUL_EINVAL, 0, "unexpected operand '%s': rdma serve has only options", args->operands[0]);
	if (!st && listen && strlen(listen) > RDMA_ADDRESS_BYTES - 16)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--listen: the address is too long");
	st = st ? st : rdma_setup_parse(args, &q.setup, err);
	if (st)
		return cli_exit_code(st);
	if (listen && !strncmp(listen, "unix:", 5))
		snprintf(address, sizeof address, "%s", listen);
	else
		snprintf(address, sizeof address, listen && strchr(listen, ':') ? "[%s]:%u" : "%s:%u", listen ? listen : "", q.setup.port);
	q.address = address;
	return cli_exit_code(rdma_serve(&q, err));
}

const struct cli_cmd cli_rdma_serve = {
	"rdma serve",  "",         "take part in the measurements of gpuload rdma bench on other machines",
	serve_details, serve_opts, cmd_rdma_serve,
	NULL,          NULL,
};
