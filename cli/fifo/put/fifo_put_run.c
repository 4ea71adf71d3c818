/* fifo_put_run.c — the parent process: starts the child, and sends messages from a kernel through a FIFO and a proxy. */
#include "cli/fifo/put/fifo_put_end.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/lib/cli_stop.h"
#include "core/clock.h"
#include "core/log.h"
#include "rdma/put/put.h"

enum { SLOTS_PER_LANE = 8, LOOK_NS = 500 * 1000 };

struct sending {
	struct fifo_put_trace *t;
	struct fifo_put_end end;
	struct fifo_put_shared *shared;
	size_t shared_bytes;
	pid_t child;
	gpul_rdma_put_route route;
	gpul_fifo *fifo;
	gpul_rdma_putter *putter;
	gpul_proxy *proxy;
	uint64_t began_ns;
};

/* ---- the child --------------------------------------------------------------------------------- */

/* Drivers do not work after a fork, so the child is forked before a driver is opened. */
static gpul_status start_child(struct sending *s, int *socket, gpul_error *err)
{
	const pid_t parent = getpid();
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return gpul_fail(err, GPUL_ESYS, errno, "socketpair: %s", strerror(errno));
	fflush(NULL); /* otherwise the child would write the buffered output, too */
	s->child = fork();
	if (s->child == 0) {
		close(sockets[0]);
		/* The signal is not sent if the parent died before prctl(), so compare its pid, too. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		if (!gpul_log_shows(GPUL_LOG_INFO)) /* only the parent prints which driver is used */
			gpul_log_set_level(GPUL_LOG_OFF);
		_exit(fifo_put_serve(&s->t->ask, sockets[1], s->shared));
	}
	close(sockets[1]);
	*socket = sockets[0];
	if (s->child < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "fork: %s", strerror(errno));
	return GPUL_OK;
}

/* After a failure, check whether the child has failed earlier, and report its error as the cause.  Call this before closing
 * anything, because that would make the child fail, too. */
static gpul_status find_cause(const struct sending *s, gpul_error *err)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	siginfo_t info = { 0 };

	if (err->native == EINTR || s->child <= 0)
		return err->status;
	nanosleep(&pause, NULL); /* wait a little, because the child may be about to report its error */
	if (s->shared->err.status)
		*err = s->shared->err;
	else if (!waitid(P_PID, (id_t)s->child, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid && info.si_code != CLD_EXITED)
		*err = (gpul_error){ .status = GPUL_ESYS, .native = ECHILD };
	if (!err->text[0])
		snprintf(err->text, sizeof err->text, "the receiving process was killed by signal %d (%s)", info.si_status,
			 strsignal(info.si_status));
	return err->status;
}

/* End the child.  It normally ends when the socket is closed, but after a failure it may be unable to do so. */
static void end_child(struct sending *s, int socket, bool failed)
{
	close(socket);
	if (s->child <= 0)
		return;
	if (failed)
		kill(s->child, SIGKILL);
	while (waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- preparation ----------------------------------------------------------------------------------- */

static gpul_status connect_child(struct sending *s, gpul_error *err)
{
	struct fifo_put_end *e = &s->end;
	char address[FIFO_PUT_ADDRESS_BYTES];
	gpul_rdma_remote offers[2];
	gpul_rdma_device_info info;
	gpul_status st = fifo_put_receive(e, address, sizeof address, err);

	st = st ? st : gpul_rdma_connect(e->rdma, address, (int)(e->ask->timeout_ns / 1000000) + FIFO_PUT_GRACE_MS, &e->conn, err);
	st = st ? st : fifo_put_receive(e, offers, sizeof offers, err);
	if (st)
		return st;
	gpul_rdma_about(e->rdma, &info);
	snprintf(s->t->fabric, sizeof s->t->fabric, "%s, %s", info.backend, info.name);
	s->route = (gpul_rdma_put_route){
		.conn = e->conn, .from = e->region, .to = offers[0], .steps = offers[1], .n_steps = e->ask->blocks
	};
	return GPUL_OK;
}

static void observe_put(void *context, const gpul_rdma_put_event *event)
{
	struct sending *s = context;
	struct fifo_put_times *times;

	if (event->lane >= s->t->ask.blocks || event->position >= s->t->ask.puts)
		return;
	times = &s->t->puts[event->lane * s->t->ask.puts + event->position];
	times->popped = (int64_t)(event->popped_ns - s->began_ns);
	times->posted = (int64_t)(event->posted_ns - s->began_ns);
	times->acknowledged = (int64_t)(event->ended_ns - s->began_ns);
}

static gpul_status start_proxy(struct sending *s, gpul_error *err)
{
	const struct fifo_put_request *q = &s->t->ask;
	const gpul_rdma_putter_desc desc = { .routes = &s->route,
					     .n_routes = 1,
					     .timeout_ms = (int)(q->timeout_ns / 1000000),
					     .observer = observe_put,
					     .observer_context = s };
	gpul_fifo_shape shape = { .slots = 1, .lanes = 1 };
	gpul_status st;

	while (shape.lanes < q->blocks)
		shape.lanes *= 2;
	shape.slots = shape.lanes * SLOTS_PER_LANE;
	st = gpul_fifo_create(s->end.drv, q->kind, q->devices.ordinal[0], &shape, &s->fifo, err);
	st = st ? st : gpul_rdma_putter_create(&desc, &s->putter, err);
	const gpul_proxy_desc proxy = { .fifos = &s->fifo,
					.n_fifos = 1,
					.kinds = { { gpul_rdma_put_handle, s->putter } },
					.progress = gpul_rdma_put_progress,
					.progress_context = s->putter,
					.release_later = true };

	return st ? st : gpul_proxy_start(&proxy, &s->proxy, err);
}

static gpul_status prepare(struct sending *s, int socket, gpul_error *err)
{
	struct fifo_put_trace *t = s->t;
	CUdevice device;
	gpul_status st = fifo_put_end_open(&t->ask, socket, t->ask.devices.ordinal[0], "put_send", sizeof(struct fifo_put_stamps), &s->end,
					   err);

	st = st ? st : gpul_cu(s->end.drv, err, cuCtxGetDevice(&device));
	st = st ? st : gpul_cu(s->end.drv, err, cuDeviceGetName(t->device, sizeof t->device, device));
	st = st ? st : connect_child(s, err);
	st = st ? st : start_proxy(s, err);
	if (st)
		return st;
	t->driver = s->end.drv->name;
	t->kind = gpul_mem_kind_name(gpul_mem_about(s->end.data)->kind);
	return GPUL_OK;
}

/* ---- the messages ------------------------------------------------------------------------------------- */

static gpul_status launch_kernel(struct sending *s, gpul_error *err)
{
	const struct fifo_put_request *q = &s->t->ask;
	struct fifo_put_end *e = &s->end;
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(s->fifo));
	CUdeviceptr data = gpul_mem_gpu(e->data);
	uint32_t puts = q->puts, bytes = q->bytes, stride = fifo_put_stride(q);
	uint64_t timeout_ns = q->timeout_ns;
	const gpul_launch_config config = { .grid = { q->blocks, 1, 1 }, .block = { 1, 1, 1 }, .stream = e->stream };
	void *args[] = { &fifo, &data, &e->stamps, &e->results, &puts, &bytes, &stride, &timeout_ns };
	const size_t arg_bytes[] = { sizeof fifo, 8, 8, 8, 4, 4, 4, 8 };

	s->began_ns = gpul_clock_ns();
	return gpul_kernel_launch(e->kernel, &config, args, arg_bytes, 8, err);
}

static gpul_status wait_for_kernel(struct sending *s, gpul_error *err)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const gpul_driver *drv = s->end.drv;
	CUresult r;

	while ((r = drv->cuStreamQuery(s->end.stream)) == CUDA_ERROR_NOT_READY && !stop_requested())
		nanosleep(&pause, NULL);
	if (r == CUDA_ERROR_NOT_READY) {
		gpul_fifo_abort(s->fifo, GPUL_FIFO_CODE_STOPPED); /* let the kernel stop waiting, so that it ends */
		(void)drv->cuStreamSynchronize(s->end.stream);
		return gpul_fail(err, GPUL_ESYS, EINTR, "ended by %s", stop_requested());
	}
	return gpul_cu_status(drv, err, r, "cuStreamQuery(stream)");
}

static gpul_status check_results(const struct sending *s, gpul_error *err)
{
	const unsigned n = s->t->ask.blocks;
	uint32_t *results = calloc(n, sizeof *results);
	char why[64];
	gpul_status st;

	if (!results)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results of %u blocks", n);
	st = gpul_cu(s->end.drv, err, cuMemcpyDtoH(results, s->end.results, n * sizeof *results));
	for (unsigned i = 0; !st && i < n; i++)
		if (results[i]) {
			st = gpul_proxy_failed(s->proxy, err);
			st = st ? st
				: gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "block %u could not push or sync: %s (%s)", i,
					    results[i] == GPUL_FIFO_TIMED_OUT ? "timed out" : "aborted",
					    gpul_fifo_code_text(gpul_fifo_aborted(s->fifo), why));
		}
	free(results);
	return st;
}

static gpul_status run_messages(struct sending *s, gpul_error *err)
{
	struct fifo_put_end *e = &s->end;
	gpul_status st = fifo_put_expect(e, 'c', err);

	st = st ? st : fifo_clock_take(e->clock, e->stream, err);
	st = st ? st : fifo_put_say(e, 'g', err);
	st = st ? st : fifo_put_expect(e, 'l', err);
	st = st ? st : launch_kernel(s, err);
	st = st ? st : wait_for_kernel(s, err);
	st = st ? st : check_results(s, err);
	st = st ? st : fifo_put_expect(e, 'r', err);
	st = st ? st : fifo_clock_take(e->clock, e->stream, err);
	st = st ? st : fifo_clock_fit(e->clock, &s->t->relation, err);
	st = st ? st : fifo_put_say(e, 'c', err);
	return st ? st : fifo_put_expect(e, 'd', err);
}

/* ---- results --------------------------------------------------------------------------------------------- */

static gpul_status collect_times(struct sending *s, gpul_error *err)
{
	struct fifo_put_trace *t = s->t;
	struct fifo_put_stamps *stamps = calloc(t->n_puts, sizeof *stamps);
	gpul_status st;

	if (!stamps)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the times of %u puts", t->n_puts);
	st = gpul_cu(s->end.drv, err, cuMemcpyDtoH(stamps, s->end.stamps, t->n_puts * sizeof *stamps));
	for (unsigned i = 0; !st && i < t->n_puts; i++) {
		struct fifo_put_times *to = &t->puts[i];

		to->begun = (int64_t)(fifo_clock_cpu_ns(&t->relation, stamps[i].begun) - s->began_ns);
		to->pushed = (int64_t)(fifo_clock_cpu_ns(&t->relation, stamps[i].pushed) - s->began_ns);
		to->synced = (int64_t)(fifo_clock_cpu_ns(&t->relation, stamps[i].synced) - s->began_ns);
		to->seen = (int64_t)(s->shared->times[i].seen - s->began_ns);
		to->flushed = (int64_t)(s->shared->times[i].flushed - s->began_ns);
		to->kernel_seen = (int64_t)(s->shared->times[i].kernel_seen - s->began_ns);
	}
	free(stamps);
	t->peer_relation = s->shared->relation;
	snprintf(t->peer_device, sizeof t->peer_device, "%s", s->shared->device);
	return st;
}

static gpul_status share_memory(struct sending *s, gpul_error *err)
{
	void *at;

	s->shared_bytes = sizeof *s->shared + s->t->n_puts * sizeof s->shared->times[0];
	at = mmap(NULL, s->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return gpul_fail(err, GPUL_ENOMEM, errno, "no shared memory for the times of %u puts", s->t->n_puts);
	s->shared = at;
	s->t->puts = calloc(s->t->n_puts, sizeof *s->t->puts);
	return s->t->puts ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the times of %u puts", s->t->n_puts);
}

gpul_status fifo_put_run(const struct fifo_put_request *ask, struct fifo_put_trace *out, gpul_error *err)
{
	struct sending s = { .t = out };
	gpul_error why = { 0 };
	int socket = -1;
	gpul_status st;

	*out = (struct fifo_put_trace){ .ask = *ask, .n_puts = ask->blocks * ask->puts };
	st = share_memory(&s, &why);
	st = st ? st : start_child(&s, &socket, &why);
	st = st ? st : stop_begin(&why);
	st = st ? st : prepare(&s, socket, &why);
	st = st ? st : run_messages(&s, &why);
	st = st ? find_cause(&s, &why) : GPUL_OK;
	(void)gpul_proxy_stop(s.proxy, NULL); /* if the child failed, the proxy has aborted the kernel, which check_results() reports */
	st = st ? st : collect_times(&s, &why);
	gpul_rdma_putter_destroy(s.putter);
	gpul_fifo_close(s.fifo);
	fifo_put_end_close(&s.end);
	end_child(&s, socket, st);
	if (s.shared)
		munmap(s.shared, s.shared_bytes);
	if (st) {
		fifo_put_free(out);
		gpul_fail(err, why.status, why.native, "%s", why.text);
	}
	return st;
}

void fifo_put_free(struct fifo_put_trace *t)
{
	free(t->puts);
	*t = (struct fifo_put_trace){ 0 };
}
