/* ring.c — performs an all-reduce around a ring of processes, and prints which data each rank holds after each step.
 *
 *     ring [N [ring.ptx]]      N processes (4), 2 to 8; process i uses GPU i modulo the number of GPUs
 *
 * Each process owns the memory of its incoming channel, and maps that of the next process.
 * Element i of rank r is 16^r, so a sum shows which ranks' data it contains.  Read run_rank(),
 * print_picture(), then the kernel in ring.cu. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/context.h"
#include "ipc/client.h"
#include "ipc/server.h"
#include "loader/loader.h"
#include "ring.h"

enum { TIMEOUT_MS = 30000 };

static const char *kernels = "ring.ptx";

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "lesson: %s\n", err->text);
		exit(1);
	}
}

/* Serve the previous rank and attach to the next rank, until both are done.  Each rank does
 * both at the same time: if all ranks first waited for the previous rank, none would answer. */
static void connect_ring(gpul_ipc_server *server, gpul_ipc_client *out)
{
	gpul_error err = { 0 };

	for (bool served = false; !served || !gpul_ipc_client_view(out);) {
		gpul_ipc_event e = { 0 };

		need(gpul_ipc_server_next(server, 1, &e, &err), &err);
		served = served || e.kind == GPUL_IPC_ATTACHED;
		if (!gpul_ipc_client_view(out) && e.kind != GPUL_IPC_REFUSED)
			need(gpul_ipc_client_next(out, 1, &e, &err), &err);
		if (e.kind == GPUL_IPC_REFUSED) {
			fprintf(stderr, "lesson: %s\n", e.why.text);
			exit(1);
		}
	}
}

/* Launch the kernel and get the log. */
static void reduce(const gpul_driver *drv, gpul_module *module, CUdeviceptr in, CUdeviceptr out, unsigned rank, unsigned n_ranks,
		   struct log *log)
{
	const gpul_launch_config one_block = { .grid = { 1, 1, 1 }, .block = { CHUNK, 1, 1 } };
	u64 data[MAX_RANKS * CHUNK];
	CUdeviceptr data_at, log_at;
	void *args[] = { &in, &out, &data_at, &log_at, &rank, &n_ranks };
	const gpul_kernel *kernel;
	gpul_error err = { 0 };

	for (unsigned i = 0; i < n_ranks * CHUNK; i++)
		data[i] = 1ull << 4 * rank;
	need(gpul_cu(drv, &err, cuMemAlloc(&data_at, sizeof data)), &err);
	need(gpul_cu(drv, &err, cuMemAlloc(&log_at, sizeof *log)), &err);
	need(gpul_cu(drv, &err, cuMemcpyHtoD(data_at, data, sizeof data)), &err);
	need(gpul_cu(drv, &err, cuMemcpyHtoD(log_at, log, sizeof *log)), &err);
	need(gpul_kernel_find(module, "ring_allreduce", &kernel, &err), &err);
	need(gpul_kernel_launch(kernel, &one_block, args, (const size_t[]){ 8, 8, 8, 8, 4, 4 }, 6, &err), &err);
	need(gpul_cu(drv, &err, cuMemcpyDtoH(log, log_at, sizeof *log)), &err);
	drv->cuMemFree(data_at);
	drv->cuMemFree(log_at);
}

/* Run a rank: offer its channel to the previous rank, map the channel of the next rank, and
 * take part in the all-reduce. */
static void run_rank(unsigned rank, unsigned n_ranks, int to_before, int to_next, struct log *log)
{
	const gpul_driver *drv;
	gpul_context context;
	gpul_module *module;
	gpul_mem *in;
	gpul_ipc_server *server;
	gpul_ipc_client *out;
	gpul_error err = { 0 };
	int n_devices = 0, device;

	need(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err), &err);
	need(gpul_cu(drv, &err, cuDeviceGetCount(&n_devices)), &err);
	device = (int)rank % n_devices;
	need(gpul_context_open(drv, device, &context, &err), &err);
	need(gpul_module_load_file(drv, kernels, NULL, &module, &err), &err);
	need(gpul_mem_create(drv,
			     &(gpul_mem_desc){ .kind = GPUL_MEM_DEVICE,
					       .bytes = sizeof(struct channel),
					       .devices = &device,
					       .n_devices = 1,
					       .exportable = true },
			     &in, &err),
	     &err);
	need(gpul_cu(drv, &err, cuMemsetD8Async(gpul_mem_gpu(in), 0, sizeof(struct channel), NULL)), &err);
	need(gpul_cu(drv, &err, cuCtxSynchronize()), &err);
	need(gpul_ipc_server_create(drv, in, &(gpul_ipc_server_options){ 0 }, &server, &err), &err);
	need(gpul_ipc_client_open(drv, &(gpul_ipc_client_options){ .fd = to_next, .devices = &device, .n_devices = 1 }, &out, &err), &err);
	need(gpul_ipc_server_add(server, to_before, &err), &err);
	connect_ring(server, out);
	reduce(drv, module, gpul_mem_gpu(in), gpul_ipc_client_view(out)->gpu, rank, n_ranks, log);
	need(gpul_ipc_client_close(out, TIMEOUT_MS, &err), &err);
	need(gpul_ipc_server_next(server, TIMEOUT_MS, &(gpul_ipc_event){ 0 }, &err), &err); /* the previous rank has detached */
	gpul_ipc_server_destroy(server);
	gpul_mem_destroy(in);
	gpul_module_unload(module);
	gpul_context_close(&context);
}

/* ---- the picture ----------------------------------------------------------------------------------------- */

/* Print which ranks' data a sum contains: its digit r in base 16 is the number of times that it
 * contains rank r's data. */
static void print_chunk(u64 sum, unsigned n_ranks, int width)
{
	char whose[MAX_RANKS + 4] = "";
	unsigned n = 0;

	for (unsigned r = 0; r < n_ranks; r++)
		if (sum >> 4 * r & 15)
			whose[n++] = (char)('0' + r);
	printf(" %-*s", width, n == n_ranks ? "all" : whose); /* width is 0 for the last chunk of a line, which needs no padding */
}

static int print_picture(const struct log *logs, unsigned n_ranks)
{
	static const char *const primitives[] = { "start", "send", "recvReduceSend", "recvReduceCopySend", "recvCopySend", "recv" };
	const int width = n_ranks > 4 ? (int)n_ranks - 1 : 3; /* room for "all", or for the digits of up to n_ranks - 1 ranks */
	u64 all = 0;
	int n_wrong = 0;

	for (unsigned r = 0; r < n_ranks; r++)
		all |= 1ull << 4 * r;
	printf("step %-18s", "");
	for (unsigned r = 0; r < n_ranks; r++)
		printf("  | rank %-*u", r + 1 < n_ranks ? (int)n_ranks * (width + 1) - 6 : 0, r);
	puts("");
	for (unsigned i = 0; i < 2 * n_ranks; i++) {
		printf("%4u %-18s", i, primitives[logs[0].primitive[i]]);
		for (unsigned r = 0; r < n_ranks; r++) {
			printf("  |");
			for (unsigned c = 0; c < n_ranks; c++)
				print_chunk(logs[r].records[i].chunk[c], n_ranks, r + c + 2 < 2 * n_ranks ? width : 0);
		}
		puts("");
	}
	for (unsigned r = 0; r < n_ranks; r++)
		for (unsigned c = 0; c < n_ranks; c++)
			n_wrong += logs[r].timed_out || logs[r].records[2 * n_ranks - 1].chunk[c] != all;
	printf("%u chunks on %u ranks: %d wrong\n", n_ranks, n_ranks, n_wrong);
	return n_wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
	const unsigned n_ranks = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 4;
	int pairs[MAX_RANKS][2], status, n_failed = 0;
	struct log *logs = mmap(NULL, MAX_RANKS * sizeof *logs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (n_ranks < 2 || n_ranks > MAX_RANKS || logs == MAP_FAILED) {
		fprintf(stderr, "usage: ring [N [ring.ptx]]: N is 2 to %d\n", MAX_RANKS);
		return 2;
	}
	if (argc > 2)
		kernels = argv[2];
	/* Pair r connects rank r - 1, which sends (end 0), with rank r, which receives (end 1). */
	for (unsigned r = 0; r < n_ranks; r++)
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[r]))
			return perror("lesson: socketpair"), 1;
	for (unsigned r = 0; r < n_ranks; r++)
		if (fork() == 0) {
			const unsigned next = (r + 1) % n_ranks;

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (unsigned p = 0; p < n_ranks; p++)
				for (int end = 0; end < 2; end++)
					if ((p != r || end != 1) && (p != next || end != 0))
						close(pairs[p][end]);
			run_rank(r, n_ranks, pairs[r][1], pairs[next][0], &logs[r]);
			exit(0);
		}
	for (unsigned r = 0; r < n_ranks; r++)
		close(pairs[r][0]), close(pairs[r][1]);
	while (wait(&status) > 0)
		n_failed += status != 0;
	return n_failed ? 1 : print_picture(logs, n_ranks);
}
