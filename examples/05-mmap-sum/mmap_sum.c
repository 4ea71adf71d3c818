/* mmap_sum.c — several processes map one buffer; each adds up its elements on a GPU and on a CPU.
 *
 *     mmap_sum [N [KIND [KERNEL]]]      N processes (3); auto, host-numa, memfd, shm, device or device-ipc;
 *                                       sum_blocks.ptx
 *
 * Process i uses GPU i modulo the number of GPUs.  Read main(), run_owner(), run_peer(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "driver/context.h"
#include "ipc/client.h"
#include "ipc/server.h"
#include "loader/loader.h"
#include "sum_blocks.h"

enum { COUNT = 1 << 20, BYTES = COUNT * sizeof(double), MAX_N = 64, TIMEOUT_MS = 30000 };

static const char *ptx = "sum_blocks.ptx";

/* ---- the sum, on CPU and GPU in the same order ---------------------------------------------------------- */

static double add_blocks(const double of_block[SUM_BLOCKS])
{
	double sum = 0;

	for (int b = 0; b < SUM_BLOCKS; b++)
		sum += of_block[b];
	return sum;
}

static double sum_on_cpu(const double *data)
{
	static double of_thread[SUM_BLOCKS * SUM_THREADS];
	double of_block[SUM_BLOCKS];

	memset(of_thread, 0, sizeof of_thread);
	for (size_t i = 0; i < COUNT; i++)
		of_thread[i % (SUM_BLOCKS * SUM_THREADS)] += data[i];
	for (int b = 0; b < SUM_BLOCKS; b++) {
		double *t = of_thread + b * SUM_THREADS;

		for (int half = SUM_THREADS / 2; half; half /= 2)
			for (int i = 0; i < half; i++)
				t[i] += t[i + half];
		of_block[b] = t[0];
	}
	return add_blocks(of_block);
}

static gpul_status sum_on_gpu(const gpul_driver *drv, CUdeviceptr data, double *sum, gpul_error *err)
{
	static const gpul_launch_config grid = { .grid = { SUM_BLOCKS, 1, 1 }, .block = { SUM_THREADS, 1, 1 } };
	unsigned long long n = COUNT;
	double of_block[SUM_BLOCKS];
	CUdeviceptr out = 0;
	void *args[] = { &data, &n, &out };
	const size_t bytes[] = { sizeof data, sizeof n, sizeof out };
	const gpul_kernel *kernel;
	gpul_module *module;
	gpul_status st = gpul_module_load_file(drv, ptx, NULL, &module, err);

	if (st)
		return st;
	st = gpul_kernel_find(module, "sum_blocks", &kernel, err);
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&out, sizeof of_block));
	st = st ? st : gpul_kernel_launch(kernel, &grid, args, bytes, 3, err);
	st = st ? st : gpul_cu(drv, err, cuMemcpyDtoH(of_block, out, sizeof of_block));
	if (!st)
		*sum = add_blocks(of_block);
	if (out)
		drv->cuMemFree(out);
	gpul_module_unload(module);
	return st;
}

/* Print the GPU's sum, and compare it with the CPU's.  The CPU cannot access device memory, so it sums a copy. */
static gpul_status print_sum(const gpul_ipc_view *v, const char *who, gpul_error *err)
{
	double on_gpu, on_cpu, *copy = v->cpu ? NULL : malloc(BYTES);
	gpul_status st = sum_on_gpu(v->drv, v->gpu, &on_gpu, err);

	if (!st && !v->cpu)
		st = copy ? gpul_cu(v->drv, err, cuMemcpyDtoH(copy, v->gpu, BYTES))
			  : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a copy");
	if (!st) {
		on_cpu = sum_on_cpu(copy ? copy : v->cpu);
		printf("total sum [%s]: %.17g\n", who, on_gpu);
		if (memcmp(&on_gpu, &on_cpu, sizeof on_gpu))
			st = gpul_fail(err, GPUL_EFORMAT, 0, "[%s]: the sum on the CPU is %.17g", who, on_cpu);
	}
	free(copy);
	return st;
}

/* ---- the owner: the process that allocates the memory ------------------------------------------------------------- */

static gpul_status fill_memory(const gpul_driver *drv, gpul_mem *mem, gpul_error *err)
{
	double *numbers = malloc(BYTES);
	gpul_status st = GPUL_OK;

	if (!numbers)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the numbers");
	for (size_t i = 0; i < COUNT; i++)
		numbers[i] = 1.0 / (double)(i + 1);
	if (gpul_mem_cpu(mem))
		memcpy(gpul_mem_cpu(mem), numbers, BYTES); /* the CPU writes the shared memory directly */
	else
		st = gpul_cu(drv, err, cuMemcpyHtoD(gpul_mem_gpu(mem), numbers, BYTES));
	free(numbers);
	return st;
}

/* Wait until each peer has detached; the death of a peer is an error. */
static gpul_status serve_peers(gpul_ipc_server *s, int n_peers, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	while (!st && n_peers > 0) {
		gpul_ipc_event event;

		st = gpul_ipc_server_next(s, TIMEOUT_MS, &event, err);
		if (!st && event.kind == GPUL_IPC_NONE)
			st = gpul_fail(err, GPUL_ESYS, 0, "no message from a peer for %d ms", TIMEOUT_MS);
		else if (!st && event.kind != GPUL_IPC_ATTACHED && event.kind != GPUL_IPC_DETACHED)
			st = gpul_fail(err, GPUL_ESYS, 0, "process %d: %s", (int)event.pid, event.why.text);
		n_peers -= event.kind == GPUL_IPC_DETACHED;
	}
	return st;
}

static gpul_status run_owner(const gpul_driver *drv, gpul_mem_kind kind, const int *sockets, int n_peers, gpul_error *err)
{
	const int device = 0;
	gpul_mem_desc desc = {
		.kind = kind, .bytes = BYTES, .node = GPUL_MEM_NODE_OF_GPU, .devices = &device, .n_devices = 1, .exportable = true
	};
	gpul_ipc_server_options options = { .bytes = BYTES, .step_timeout_ms = TIMEOUT_MS };
	gpul_ipc_server *s = NULL;
	gpul_mem *mem;
	gpul_status st = gpul_mem_create(drv, &desc, &mem, err);

	if (st)
		return st;
	st = fill_memory(drv, mem, err);
	st = st ? st : gpul_ipc_server_create(drv, mem, &options, &s, err);
	for (int i = 0; !st && i < n_peers; i++)
		st = gpul_ipc_server_add(s, sockets[i], err);
	st = st ? st : print_sum(gpul_ipc_server_view(s), "master", err);
	fflush(stdout);
	st = st ? st : serve_peers(s, n_peers, err);
	gpul_ipc_server_destroy(s);
	gpul_mem_destroy(mem);
	return st;
}

/* ---- the peers: the processes that attach ------------------------------------------------------------------------------------ */

static gpul_status run_peer(const gpul_driver *drv, int device, int socket, gpul_error *err)
{
	gpul_ipc_client_options options = { .fd = socket, .devices = &device, .n_devices = 1 };
	gpul_ipc_client *client;
	char who[16];
	gpul_status st = gpul_ipc_attach(drv, &options, TIMEOUT_MS, &client, err), closed;

	if (st)
		return st;
	snprintf(who, sizeof who, "%d", (int)getpid());
	st = print_sum(gpul_ipc_client_view(client), who, err);
	fflush(stdout);
	closed = gpul_ipc_client_close(client, TIMEOUT_MS, err);
	return st ? st : closed;
}

/* Run process i of n, after the fork: open the driver and a GPU, then run as the owner (i == 0) or as a peer. */
static int run_process(int i, int n, gpul_mem_kind kind, const int *sockets)
{
	const gpul_driver *drv;
	gpul_context context = { 0 };
	gpul_error err = { 0 };
	int n_devices = 1;
	gpul_status st = gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err);

	st = st ? st : gpul_cu(drv, &err, cuDeviceGetCount(&n_devices));
	st = st ? st : gpul_context_open(drv, i % n_devices, &context, &err);
	if (!st)
		st = i == 0 ? run_owner(drv, kind, sockets, n - 1, &err) : run_peer(drv, i % n_devices, sockets[0], &err);
	gpul_context_close(&context);
	if (st)
		fprintf(stderr, "mmap_sum: process %d: %s\n", (int)getpid(), err.text);
	return st != GPUL_OK;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 3, sockets[MAX_N], bad = 0, status;
	const pid_t master = getpid();
	gpul_mem_kind kind = GPUL_MEM_AUTO;

	if (argc > 3)
		ptx = argv[3];
	if (n < 1 || n > MAX_N || (argc > 2 && !gpul_mem_kind_parse(argv[2], &kind))) {
		fprintf(stderr, "usage: mmap_sum [1..%d [KIND [KERNEL]]]\n", MAX_N);
		return 2;
	}
	for (int i = 1; i < n; i++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
			perror("mmap_sum: socketpair");
			return 1;
		}
		sockets[i - 1] = pair[0];
		if (fork() == 0) { /* fork before a driver is opened, because a driver cannot be used after a fork */
			if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != master)
				return 1;
			for (int k = 0; k < i; k++) /* close the owner's ends: a copy would keep the connections open */
				close(sockets[k]);
			return run_process(i, n, kind, &pair[1]);
		}
		close(pair[1]);
	}
	bad = run_process(0, n, kind, sockets);
	while (!bad && wait(&status) > 0)
		bad |= status != 0;
	return bad;
}
