/* rdma_bench.c — gpuload rdma bench: starts a peer if there is no HOST, measures in a thread, and prints the result. */
#include "cli/rdma/rdma_bench.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/lib/bench/bench_output.h"
#include "cli/lib/progress.h"
#include "cli/lib/cli_stop.h"

enum { LOOK_MS = 100 };

/* The measuring thread.  The main thread shows the progress and waits for signals. */
struct measurement {
	const struct rdma_bench_request *q;
	gpul_rdma *r;
	struct rdma_bench_result *result;
	const char *address;
	struct rdma_watch watch;
	int end_fd; /* readable when the thread has ended */
	gpul_status status;
	gpul_error err;
};

static void *measure(void *context)
{
	struct measurement *m = context;
	const uint64_t one = 1;

	m->status = rdma_bench_measure(m->q, m->r, m->address, &m->watch, m->result, &m->err);
	while (write(m->end_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	return NULL;
}

static bool has_ended(const struct measurement *m)
{
	uint64_t n;

	return read(m->end_fd, &n, sizeof n) == sizeof n;
}

/* Print a line of --stats if it is time. */
static void print_live(struct measurement *m, struct progress *p)
{
	struct out o = { 0 };

	if (m->watch.live)
		reliable_live_look(m->watch.live, &o);
	if (o.n) {
		progress_wipe(p);
		fwrite(o.at, 1, o.n, stderr);
	}
	out_free(&o);
}

static gpul_status watch_measurement(struct measurement *m, gpul_error *err)
{
	struct progress p;
	gpul_status st = GPUL_OK;

	progress_begin(&p, "rdma bench");
	while (!has_ended(m)) {
		const uint64_t done = atomic_load(&m->watch.row) * 1000ull + atomic_load(&m->watch.permille);

		p.hook.tell(p.hook.context, done, m->q->n_sizes * 1000ull);
		print_live(m, &p);
		if (!st)
			st = stop_wait(m->end_fd, LOOK_MS, err);
		if (st || stop_requested())
			atomic_store(&m->watch.stop, true);
		if (st)
			poll(NULL, 0, LOOK_MS);
	}
	progress_wipe(&p);
	return st;
}

static gpul_status run_measurement(const struct rdma_bench_request *q, gpul_rdma *r, const char *address, struct reliable_trace *trace,
				   struct rdma_bench_result *result, gpul_error *err)
{
	struct measurement m = { .q = q, .r = r, .address = address, .result = result, .end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	pthread_t thread;
	gpul_status st = stop_begin(err);

	m.watch.trace = trace;
	if (!st && q->stats_ms)
		st = reliable_live_create(q->shape.n_flows, (unsigned)q->stats_ms, &m.watch.live, err);
	if (!st && m.end_fd < 0)
		st = gpul_fail(err, GPUL_ESYS, errno, "eventfd: %s", strerror(errno));
	if (!st && pthread_create(&thread, NULL, measure, &m))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "cannot start a thread");
	if (st)
		goto close_fd;
	st = watch_measurement(&m, err);
	pthread_join(thread, NULL);
	if (!st && m.status && stop_requested())
		st = gpul_fail(err, GPUL_ESYS, ECANCELED, "stopped: %s", stop_requested());
	else if (!st && m.status)
		st = gpul_fail(err, m.status, m.err.native, "%s", m.err.text);
close_fd:
	if (m.end_fd >= 0)
		close(m.end_fd);
	reliable_live_free(m.watch.live);
	return st;
}

/* ---- output --------------------------------------------------------------------------------------------- */

static gpul_status print_result(const struct rdma_bench_request *q, const struct rdma_bench_result *result, gpul_error *err)
{
	struct output o = { .plot = q->plot, .force = q->force, .json = q->setup.json };

	if (q->setup.json)
		rdma_bench_json(result, &o.text);
	else if (!q->plot || strcmp(q->plot, "-") != 0)
		rdma_bench_text(result, &o.text.out);
	if (q->plot)
		rdma_bench_svg(result, &o.svg);
	return output_write(&o, err);
}

/* ---- the command ------------------------------------------------------------------------------------------ */

static gpul_status find_server(const struct rdma_bench_request *q, struct rdma_child *child, char address[RDMA_ADDRESS_BYTES],
			       gpul_error *err)
{
	const char *colon;
	gpul_status st;

	if (!q->host) {
		st = rdma_child_start(&q->setup, child, err);
		snprintf(address, RDMA_ADDRESS_BYTES, "%s", child->address);
		return st;
	}
	if (strlen(q->host) > RDMA_ADDRESS_BYTES - 16)
		return gpul_fail(err, GPUL_EINVAL, 0, "the name of HOST is too long");
	colon = strchr(q->host, ':');
	if (!strncmp(q->host, "unix:", 5) || strstr(q->host, "]:") || (colon && !strchr(colon + 1, ':')))
		snprintf(address, RDMA_ADDRESS_BYTES, "%s", q->host); /* HOST contains a port, or is the path of a socket */
	else if (colon && q->host[0] != '[')
		/* an IPv6 address needs brackets before the port */
		snprintf(address, RDMA_ADDRESS_BYTES, "[%s]:%u", q->host, q->setup.port);
	else
		snprintf(address, RDMA_ADDRESS_BYTES, "%s:%u", q->host, q->setup.port);
	return GPUL_OK;
}

static gpul_status run_benchmark(struct rdma_bench_request *q, struct reliable_trace *trace, struct rdma_bench_result *result,
				 gpul_error *err)
{
	struct rdma_child child = { 0 };
	gpul_rdma *r = NULL;
	char address[RDMA_ADDRESS_BYTES] = "";
	gpul_status st = find_server(q, &child, address, err); /* starts the child before a driver is opened */
	const bool uses_driver = q->setup.memory != RDMA_HOST;

	if (!st && uses_driver)
		st = devices_arg_open(&q->setup.devices, err);
	if (!st && uses_driver)
		q->setup.rdma.device.drv = q->setup.devices.drv;
	/* Until stop_begin() catches signals, a signal ends this process and its child; so open the device, which may take long, first. */
	st = st ? st : gpul_rdma_open(&q->setup.rdma, &r, err);
	st = st ? st : run_measurement(q, r, address, trace, result, err);
	gpul_rdma_close(r);
	devices_arg_close(&q->setup.devices);
	rdma_child_end(&child, err);
	return st;
}

static int cmd_rdma_bench(const struct cli_args *args, gpul_error *err)
{
	struct rdma_bench_request *q = calloc(1, sizeof *q);
	struct rdma_bench_result *result = calloc(1, sizeof *result);
	struct reliable_trace *trace = NULL;
	gpul_status st = GPUL_OK;

	if (!q || !result)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a benchmark");
	st = st ? st : rdma_bench_parse(args, q, err);
	st = st ? st : output_check(q->plot, q->force, err);
	st = st ? st : output_check(q->trace, q->force, err);
	if (!st && q->trace)
		st = reliable_trace_create(q->trace_message, &trace, err);
	st = st ? st : run_benchmark(q, trace, result, err);
	st = st ? st : print_result(q, result, err);
	if (!st && trace)
		st = reliable_trace_write(trace, q->trace, q->force, err);
	reliable_trace_free(trace);
	if (result)
		free(result->reliable);
	free(result);
	free(q);
	return cli_exit_code(st);
}

/* clang-format off */
const struct cli_cmd cli_rdma_bench = {
	"rdma bench", "[HOST]", "measure throughput and latency of messages and puts by size",
	rdma_bench_details, rdma_bench_opts, cmd_rdma_bench, NULL, NULL,
};
/* clang-format on */
