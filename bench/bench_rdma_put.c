/* bench_rdma_put.c — measures the rate of small puts that a kernel requests through FIFO and proxy, compared with puts that a
 * CPU thread posts directly.
 *
 *     bench_rdma_put [--puts N] [--blocks N] [--bytes N] [--runs N] [--backend verbs|libfabric] [--provider NAME]
 *                    [--device NAME] [--driver auto|nvidia|soft] [--pin]
 *
 *     direct   CPU thread: 64 puts ─ progress ─ test              ┐
 *     kernel   64 blocks ─ FIFO ─ proxy: 64 triggers ─ progress   ┴──> the same connection ──> a child process
 *
 * Each put writes 64 bytes and increments a step counter.  Both ways use the same batch size and have the same number of puts in flight.
 * Runs of the two ways alternate; the ratio is that of the medians.  This program includes only headers that are installed.
 *
 * A real GPU takes no CPU time, but the software driver's kernels do: its threads and the child run on the first CPU, and the
 * posting thread, or the proxy, on the others.  With one CPU, or with a real GPU, no thread is pinned. */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/lib/bench/samples.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "driver/context.h"
#include "rdma/put/put.h"

enum { BATCH = 64, SLOTS_PER_LANE = 16, MOST_RUNS = 99, MOST_BLOCKS = 1024, TIMEOUT_MS = 60000, CONNECT_MS = 20000 };

struct bench {
	uint64_t puts, blocks, bytes, runs;
	gpul_rdma_desc desc;
	gpul_driver_choice driver;
	bool pin;
	cpu_set_t first_cpu, other_cpus; /* with the software driver, threads are pinned to these CPUs */
	const gpul_driver *drv;
	gpul_context context;
	CUlibrary library;
	CUfunction kernel;
	CUstream stream;
	gpul_mem *source, *results;
	gpul_fifo *fifo;
	gpul_rdma *rdma;
	gpul_rdma_conn *conn;
	gpul_rdma_region *region;
	gpul_rdma_remote to, to_steps;
	uint64_t *steps;                              /* the current value of each step counter in the child's memory */
	double direct[MOST_RUNS], kernels[MOST_RUNS]; /* puts per second */
	double direct_cpu_us, kernels_cpu_us;         /* CPU time of the posting thread for each put, in the last run */
};

/* ---- the child process, into whose memory the puts go ---------------------------------------------------- */

struct offers {
	gpul_rdma_remote to, steps;
};

/* Make progress until the parent closes the socket.  A NIC writes without the help of this thread, which then sleeps, so that it
 * takes no CPU away from the sender. */
static gpul_status make_progress(gpul_rdma *r, gpul_rdma_conn *conn, int socket, gpul_error *err)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	gpul_rdma_device_info info;
	unsigned char byte;
	gpul_status st = GPUL_OK;

	gpul_rdma_about(r, &info);
	const bool sleeps = !strcmp(info.backend, "verbs");

	for (unsigned turn = 1; !st; turn++) {
		st = gpul_rdma_progress(conn, NULL, err);
		if (sleeps)
			nanosleep(&pause, NULL);
		if ((sleeps || turn % 1024 == 0) && recv(socket, &byte, 1, MSG_DONTWAIT) == 0)
			break;
	}
	return st;
}

/* Offer memory to the parent, and make progress while its puts write there. */
static gpul_status serve_puts(const struct bench *b, int socket, gpul_error *err)
{
	const size_t data_bytes = b->blocks * b->bytes, step_bytes = b->blocks * sizeof(uint64_t);
	unsigned char *data = aligned_alloc(4096, (data_bytes + 4095) / 4096 * 4096);
	uint64_t *words = aligned_alloc(4096, (step_bytes + 4095) / 4096 * 4096);
	gpul_rdma_region *region = NULL, *steps = NULL;
	gpul_rdma_listener *listener = NULL;
	gpul_rdma_conn *conn = NULL;
	gpul_rdma *r = NULL;
	struct offers offers;
	char address[128] = "";
	gpul_status st;

	if (!data || !words) {
		free(data);
		free(words);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes", data_bytes + step_bytes);
	}
	memset(words, 0, step_bytes);
	st = gpul_rdma_open(&b->desc, &r, err);
	st = st ? st : gpul_rdma_register(r, data, data_bytes, GPUL_RDMA_DATA, &region, err);
	st = st ? st : gpul_rdma_register(r, words, step_bytes, GPUL_RDMA_STEPS, &steps, err);
	st = st ? st : gpul_rdma_listen(r, "127.0.0.1:0", &listener, err);
	st = st ? st : gpul_rdma_offer(region, (uintptr_t)data, data_bytes, &offers.to, err);
	st = st ? st : gpul_rdma_offer(steps, (uintptr_t)words, step_bytes, &offers.steps, err);
	if (!st)
		snprintf(address, sizeof address, "%s", gpul_rdma_listener_address(listener));
	if (!st && (write(socket, address, sizeof address) != sizeof address || write(socket, &offers, sizeof offers) != sizeof offers))
		st = gpul_fail(err, GPUL_ESYS, errno, "write: %s", strerror(errno));
	st = st ? st : gpul_rdma_accept(listener, CONNECT_MS, &conn, err);
	st = st ? st : make_progress(r, conn, socket, err);
	gpul_rdma_conn_close(conn);
	gpul_rdma_listener_close(listener);
	gpul_rdma_unregister(steps);
	gpul_rdma_unregister(region);
	gpul_rdma_close(r);
	free(data);
	free(words);
	return st;
}

static pid_t start_target(const struct bench *b, int *socket)
{
	const pid_t parent = getpid();
	gpul_error err = { 0 };
	int sockets[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -1;
	child = fork();
	if (child == 0) {
		close(sockets[0]);
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		if (serve_puts(b, sockets[1], &err))
			fprintf(stderr, "bench_rdma_put: target: %s\n", err.text);
		_exit(err.status ? 1 : 0);
	}
	close(sockets[1]);
	*socket = sockets[0];
	return child;
}

/* ---- the CPUs ------------------------------------------------------------------------------------------------------ */

static void divide_cpus(struct bench *b)
{
	bool first = true;

	if (sched_getaffinity(0, sizeof b->other_cpus, &b->other_cpus) || CPU_COUNT(&b->other_cpus) < 2)
		return;
	for (size_t i = 0; i < CPU_SETSIZE && first; i++)
		if (CPU_ISSET(i, &b->other_cpus)) {
			CPU_SET(i, &b->first_cpu);
			CPU_CLR(i, &b->other_cpus);
			first = false;
		}
}

/* Pin this thread, and those that it starts from now on, to these CPUs. */
static void use_cpus(const struct bench *b, const cpu_set_t *cpus)
{
	if (CPU_COUNT(&b->first_cpu) && b->driver == GPUL_DRIVER_SOFT)
		(void)sched_setaffinity(0, sizeof *cpus, cpus);
}

/* ---- preparation --------------------------------------------------------------------------------------------- */

/* Launch the kernel, in which each block pushes `count` puts, and wait for it. */
static gpul_status run_kernel(const struct bench *b, uint64_t count, gpul_error *err)
{
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(b->fifo));
	uint64_t timeout_ns = (uint64_t)TIMEOUT_MS * 1000000;
	unsigned bytes = (unsigned)b->bytes, stride = bytes;
	CUdeviceptr results = gpul_mem_gpu(b->results);
	void *args[] = { &fifo, &count, &bytes, &stride, &timeout_ns, &results };
	gpul_status st = gpul_cu(b->drv, err, cuLaunchKernel(b->kernel, (unsigned)b->blocks, 1, 1, 1, 1, 1, 0, b->stream, args, NULL));

	return st ? st : gpul_cu(b->drv, err, cuStreamSynchronize(b->stream));
}

static gpul_status open_gpu(struct bench *b, gpul_error *err)
{
	const int device = 0;
	const gpul_mem_desc desc = {
		.kind = GPUL_MEM_AUTO, .bytes = b->blocks * b->bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1
	};
	gpul_fifo_shape shape = { .slots = 1, .lanes = 1 };
	CUkernel kernel;
	gpul_file ptx;
	int registers;
	gpul_status st;

	use_cpus(b, &b->first_cpu);
	st = gpul_driver_open(b->driver, &b->drv, err);
	while (shape.lanes < b->blocks)
		shape.lanes *= 2;
	shape.slots = shape.lanes * SLOTS_PER_LANE;
	st = st ? st : gpul_context_open(b->drv, 0, &b->context, err);
	st = st ? st : gpul_file_open(GPUL_KERNELS "/bench/kernels/rdma_put.ptx", &ptx, err);
	if (st)
		return st;
	st = gpul_cu(b->drv, err, cuLibraryLoadData(&b->library, ptx.bytes, NULL, NULL, 0, NULL, NULL, 0));
	gpul_file_close(&ptx);
	st = st ? st : gpul_cu(b->drv, err, cuLibraryGetKernel(&kernel, b->library, "rdma_put"));
	st = st ? st : gpul_cu(b->drv, err, cuKernelGetFunction(&b->kernel, kernel));
	st = st ? st : gpul_cu(b->drv, err, cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, b->kernel));
	st = st ? st : gpul_cu(b->drv, err, cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_fifo_create(b->drv, GPUL_MEM_AUTO, 0, &shape, &b->fifo, err);
	st = st ? st : gpul_mem_create(b->drv, &desc, &b->source, err);
	st = st ? st : gpul_mem_create(b->drv, &desc, &b->results, err);
	st = st ? st : run_kernel(b, 0, err); /* the software driver's threads start here, and inherit the CPUs of this thread */
	use_cpus(b, &b->other_cpus);
	return st;
}

static gpul_status open_connection(struct bench *b, int socket, gpul_error *err)
{
	struct offers offers;
	char address[128];
	gpul_status st;

	b->steps = calloc(b->blocks, sizeof *b->steps);
	if (read(socket, address, sizeof address) != sizeof address || read(socket, &offers, sizeof offers) != sizeof offers)
		return gpul_fail(err, GPUL_ESYS, EPIPE, "the target has ended");
	b->to = offers.to;
	b->to_steps = offers.steps;
	st = gpul_rdma_open(&b->desc, &b->rdma, err);
	st = st ? st : gpul_rdma_register_mem(b->rdma, b->source, GPUL_RDMA_DATA, &b->region, err);
	return st ? st : gpul_rdma_connect(b->rdma, address, CONNECT_MS, &b->conn, err);
}

/* ---- puts from a CPU thread ------------------------------------------------------------------------------------ */

struct window {
	gpul_rdma_request requests[2048];
	uint64_t posted, ended;
};

static gpul_status post_one(struct bench *b, struct window *w, gpul_error *err)
{
	const uint64_t block = w->posted % b->blocks;
	const gpul_rdma_put_desc put = {
		.from = { .at = (uintptr_t)gpul_mem_cpu(b->source) + block * b->bytes,
			  .bytes = b->bytes,
			  .area = gpul_rdma_region_area(b->region) },
		.to = { .address = b->to.address + block * b->bytes, .key = b->to.key, .bytes = b->bytes },
		.signal = { .address = b->to_steps.address + block * 8, .key = b->to_steps.key, .bytes = 8 },
		.signal_value = ++b->steps[block],
		.lane = (unsigned)block,
	};
	gpul_rdma_request request = 0;
	gpul_status st;

	do {
		st = gpul_rdma_put(b->conn, &put, TIMEOUT_MS, &request, err);
		if (!st && !request)
			st = gpul_rdma_progress(b->conn, NULL, err);
	} while (!st && !request);
	w->requests[w->posted++ % 2048] = request;
	return st;
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static gpul_status run_direct(struct bench *b, double *rate, gpul_error *err)
{
	const uint64_t cpu = thread_ns();
	const uint64_t most = b->blocks * SLOTS_PER_LANE < 1024 ? b->blocks * SLOTS_PER_LANE : 1024, begun = gpul_clock_ns();
	struct window w = { .posted = 0 };
	gpul_status st = GPUL_OK;

	while (!st && w.ended < b->puts) {
		for (unsigned i = 0; !st && i < BATCH && w.posted < b->puts && w.posted - w.ended < most; i++)
			st = post_one(b, &w, err);
		st = st ? st : gpul_rdma_progress(b->conn, NULL, err);
		for (bool done = true; !st && done && w.ended < w.posted;) {
			st = gpul_rdma_test(b->conn, w.requests[w.ended % 2048], &done, NULL, err);
			w.ended += done;
		}
	}
	*rate = (double)b->puts * 1e9 / (double)(gpul_clock_ns() - begun);
	b->direct_cpu_us = (double)(thread_ns() - cpu) / 1e3 / (double)b->puts;
	return st;
}

/* ---- puts from kernels -------------------------------------------------------------------------------------------- */

static gpul_status launch_and_wait(struct bench *b, gpul_proxy *proxy, gpul_error *err)
{
	gpul_status st = run_kernel(b, b->puts / b->blocks, err);

	for (unsigned i = 0; !st && i < b->blocks; i++)
		if (((const unsigned *)gpul_mem_cpu(b->results))[i]) {
			st = gpul_proxy_failed(proxy, err);
			st = st ? st : gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "block %u could not push", i);
		}
	return st ? st : gpul_proxy_drain(proxy, TIMEOUT_MS, err);
}

static gpul_status run_kernels(struct bench *b, double *rate, gpul_error *err)
{
	const gpul_rdma_put_route route = {
		.conn = b->conn, .from = b->region, .to = b->to, .steps = b->to_steps, .n_steps = (unsigned)b->blocks
	};
	const gpul_rdma_putter_desc desc = { .routes = &route, .n_routes = 1, .timeout_ms = TIMEOUT_MS };
	gpul_rdma_putter *putter = NULL;
	gpul_proxy *proxy = NULL;
	gpul_proxy_stats stats;
	gpul_status st = gpul_rdma_putter_create(&desc, &putter, err), stopped;
	const gpul_proxy_desc how = { .fifos = &b->fifo,
				      .n_fifos = 1,
				      .kinds = { { gpul_rdma_put_handle, putter } },
				      .batch = BATCH,
				      .progress = gpul_rdma_put_progress,
				      .progress_context = putter,
				      .release_later = true,
				      .pin = b->pin ? GPUL_PROXY_PIN_AUTO : GPUL_PROXY_PIN_NONE };
	uint64_t begun = 0;

	st = st ? st : gpul_proxy_start(&how, &proxy, err);
	if (!st) {
		begun = gpul_clock_ns();
		st = launch_and_wait(b, proxy, err);
		*rate = (double)b->puts * 1e9 / (double)(gpul_clock_ns() - begun);
		gpul_proxy_get_stats(proxy, &stats);
		b->kernels_cpu_us = (double)stats.cpu_ns / 1e3 / (double)b->puts;
	}
	stopped = gpul_proxy_stop(proxy, st ? NULL : err);
	gpul_rdma_putter_destroy(putter);
	return st ? st : stopped;
}

/* ---- main ------------------------------------------------------------------------------------------------------ */

static gpul_status run_all(struct bench *b, int socket, gpul_error *err)
{
	gpul_rdma_device_info info;
	double direct, kernels;
	gpul_status st = open_gpu(b, err);

	st = st ? st : open_connection(b, socket, err);
	if (st)
		return st;
	gpul_rdma_about(b->rdma, &info);
	printf("%llu puts of %llu bytes and a step, %llu blocks, over %s, %s, %s driver\n", (unsigned long long)b->puts,
	       (unsigned long long)b->bytes, (unsigned long long)b->blocks, info.backend, info.name, b->drv->name);
	st = run_direct(b, &direct, err); /* a warm-up run */
	for (uint64_t i = 0; !st && i < b->runs; i++) {
		st = run_direct(b, &b->direct[i], err);
		st = st ? st : run_kernels(b, &b->kernels[i], err);
		if (!st)
			printf("run %2llu: direct %9.0f puts/s, CPU %6.2f us a put; kernels %9.0f puts/s, CPU %6.2f us a put\n",
			       (unsigned long long)i + 1, b->direct[i], b->direct_cpu_us, b->kernels[i], b->kernels_cpu_us);
		fflush(stdout);
	}
	if (st)
		return st;
	direct = samples_spread_of(b->direct, b->runs).median;
	kernels = samples_spread_of(b->kernels, b->runs).median;
	printf("median: direct %9.0f puts/s, kernels %9.0f puts/s, ratio %.2f\n", direct, kernels, kernels / direct);
	return GPUL_OK;
}

static void close_all(struct bench *b)
{
	gpul_rdma_conn_close(b->conn);
	gpul_rdma_unregister(b->region);
	gpul_rdma_close(b->rdma);
	gpul_fifo_close(b->fifo);
	gpul_mem_destroy(b->source);
	gpul_mem_destroy(b->results);
	if (b->stream)
		b->drv->cuStreamDestroy(b->stream);
	if (b->library)
		b->drv->cuLibraryUnload(b->library);
	gpul_context_close(&b->context);
	free(b->steps);
}

static bool parse(int argc, char **argv, struct bench *b)
{
	static const struct option options[] = { { "puts", 1, NULL, 'n' },    { "blocks", 1, NULL, 'b' },
						 { "bytes", 1, NULL, 's' },   { "runs", 1, NULL, 'r' },
						 { "backend", 1, NULL, 'k' }, { "provider", 1, NULL, 'p' },
						 { "device", 1, NULL, 'i' },  { "driver", 1, NULL, 'd' },
						 { "pin", 0, NULL, 'c' },     { 0 } };
	bool good = true;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (c) {
		case 'n':
			b->puts = strtoull(optarg, NULL, 10);
			break;
		case 'b':
			b->blocks = strtoull(optarg, NULL, 10);
			break;
		case 's':
			b->bytes = strtoull(optarg, NULL, 10);
			break;
		case 'r':
			b->runs = strtoull(optarg, NULL, 10);
			break;
		case 'k':
			b->desc.backend = optarg;
			break;
		case 'p':
			b->desc.device.provider = optarg;
			break;
		case 'i':
			b->desc.device.device = optarg;
			break;
		case 'd':
			good = good && gpul_driver_choice_parse(optarg, &b->driver);
			break;
		case 'c':
			b->pin = true;
			break;
		default:
			good = false;
		}
	}
	b->puts = b->blocks ? b->puts / b->blocks * b->blocks : 0;
	return good && optind == argc && b->puts && b->blocks <= MOST_BLOCKS && b->bytes && b->bytes % 16 == 0 && b->runs &&
	       b->runs <= MOST_RUNS;
}

int main(int argc, char **argv)
{
	static struct bench b = { .puts = 200000,
				  .blocks = 64,
				  .bytes = 64,
				  .runs = 5,
				  .driver = GPUL_DRIVER_AUTO,
				  .desc = { .device = { .gpu = -1, .gid_index = -1 } } };
	gpul_error err = { 0 };
	int socket = -1, status;
	pid_t target;

	if (!parse(argc, argv, &b)) {
		fprintf(stderr, "usage: bench_rdma_put [--puts N] [--blocks N] [--bytes N] [--runs N] [--backend verbs|libfabric]\n"
				"                      [--provider NAME] [--device NAME] [--driver auto|nvidia|soft] [--pin]\n");
		return 2;
	}
	divide_cpus(&b);
	use_cpus(&b, &b.first_cpu);
	target = start_target(&b, &socket);
	if (target < 0) {
		perror("bench_rdma_put");
		return 1;
	}
	if (run_all(&b, socket, &err))
		fprintf(stderr, "bench_rdma_put: %s\n", err.text);
	close(socket); /* makes the child close its end, and exit */
	waitpid(target, &status, 0);
	close_all(&b);
	return err.status ? 1 : 0;
}
