/* channel.c — a channel with one slot between two processes, each with a kernel of one thread.
 *
 *     channel [channel.ptx [KIND]]      KIND: device (default) or host-numa
 *
 * The parent process is the receiver and owns the memory; the child is the sender and maps it.  Process i uses GPU i modulo the
 * number of GPUs.  Read run_receiver(), run_sender(), then the kernels in channel.cu. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "channel.h"
#include "driver/context.h"
#include "ipc/client.h"
#include "ipc/server.h"
#include "loader/loader.h"

enum { SLOW_MESSAGES = 3, FAST_MESSAGES = 500, TIMEOUT_MS = 30000 };

struct process {
	const gpul_driver *drv;
	gpul_context context;
	int device;
	gpul_module *module;
	int turns; /* a socket, through which the processes start each round together */
};

static const char *kernels = "channel.ptx";
static gpul_mem_kind kind = GPUL_MEM_DEVICE;

static void need(gpul_status st, const gpul_error *err)
{
	if (st) {
		fprintf(stderr, "lesson: %s\n", err->text);
		exit(1);
	}
}

static void open_process(struct process *p, int index, int turns)
{
	gpul_error err = { 0 };
	int n_devices = 0;

	*p = (struct process){ .turns = turns };
	need(gpul_driver_open(GPUL_DRIVER_AUTO, &p->drv, &err), &err);
	need(gpul_cu(p->drv, &err, cuDeviceGetCount(&n_devices)), &err);
	p->device = index % n_devices;
	need(gpul_context_open(p->drv, p->device, &p->context, &err), &err);
	need(gpul_module_load_file(p->drv, kernels, NULL, &p->module, &err), &err);
}

static void close_process(struct process *p)
{
	gpul_module_unload(p->module);
	gpul_context_close(&p->context);
}

static void launch(struct process *p, const char *name, void *const *args, const size_t *bytes)
{
	const gpul_launch_config one_thread = { .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };
	const gpul_kernel *kernel;
	gpul_error err = { 0 };

	need(gpul_kernel_find(p->module, name, &kernel, &err), &err);
	need(gpul_kernel_launch(kernel, &one_thread, args, bytes, 4, &err), &err);
}

/* Wait until the other process has called this, too. */
static void meet(const struct process *p)
{
	char token = 0;

	if (write(p->turns, &token, 1) != 1 || read(p->turns, &token, 1) != 1) {
		fprintf(stderr, "lesson: the other process has ended\n");
		exit(1);
	}
}

/* ---- the rounds: both processes go through them together ------------------------------------------------- */

static const struct round {
	const char *title;
	unsigned protocol, slow, late;
	u64 n_messages;
} rounds[] = {
	{ "slow motion: tail is raised before the slot is written", TAIL_FIRST, 1, 0, SLOW_MESSAGES },
	{ "slow motion: the slot first, but the sender does not wait for head", NO_CREDIT, 1, 1, SLOW_MESSAGES },
	{ "slow motion: the sender waits for head", RIGHT, 1, 0, SLOW_MESSAGES },
	{ "full speed: tail first", TAIL_FIRST, 0, 0, FAST_MESSAGES },
	{ "full speed: no waiting for head", NO_CREDIT, 0, 0, FAST_MESSAGES },
	{ "full speed: right", RIGHT, 0, 0, FAST_MESSAGES },
};
enum { N_ROUNDS = sizeof rounds / sizeof *rounds };

static void run_sender(struct process *p, CUdeviceptr channel)
{
	for (int i = 0; i < N_ROUNDS; i++) {
		struct round r = rounds[i];
		void *args[] = { &channel, &r.n_messages, &r.protocol, &r.slow };
		gpul_error err = { 0 };

		meet(p);
		launch(p, "sender", args, (const size_t[]){ 8, 8, 4, 4 });
		need(gpul_cu(p->drv, &err, cuCtxSynchronize()), &err);
		meet(p);
	}
}

static void print_log(const struct log *log)
{
	puts("  tail   slot     the receiver");
	for (u64 i = 0; i < log->n_records; i++) {
		const struct record *r = &log->records[i];

		printf("%6llu %4llu %llu", r->tail, r->slot[0], r->slot[1]);
		if (!r->taken)
			puts("");
		else if (r->slot[0] == r->taken && r->slot[1] == r->taken)
			printf("     takes message %llu\n", r->taken);
		else
			printf("     takes message %llu: WRONG, the slot contains %llu and %llu\n", r->taken, r->slot[0], r->slot[1]);
	}
}

static void run_receiver(struct process *p, CUdeviceptr channel)
{
	struct log log;
	gpul_error err = { 0 };
	CUdeviceptr log_at;

	need(gpul_cu(p->drv, &err, cuMemAlloc(&log_at, sizeof log)), &err);
	for (int i = 0; i < N_ROUNDS; i++) {
		struct round r = rounds[i];
		void *args[] = { &channel, &log_at, &r.n_messages, &r.late };

		need(gpul_cu(p->drv, &err, cuMemsetD8Async(channel, 0, sizeof(struct channel), NULL)), &err);
		need(gpul_cu(p->drv, &err, cuMemsetD8Async(log_at, 0, sizeof log, NULL)), &err);
		need(gpul_cu(p->drv, &err, cuCtxSynchronize()), &err);
		meet(p);
		launch(p, "receiver", args, (const size_t[]){ 8, 8, 8, 4 });
		need(gpul_cu(p->drv, &err, cuMemcpyDtoH(&log, log_at, sizeof log)), &err);
		meet(p);
		printf("-- %s\n", r.title);
		if (r.slow)
			print_log(&log);
		else
			printf("%llu messages: %llu right, %llu wrong\n", r.n_messages, log.n_whole, log.n_wrong);
	}
	p->drv->cuMemFree(log_at);
}

/* ---- the memory: the receiver owns it, the sender maps it ------------------------------------------------ */

static void sender_process(int offer, int turns)
{
	struct process p;
	gpul_ipc_client *client;
	gpul_error err = { 0 };

	open_process(&p, 1, turns);
	need(gpul_ipc_attach(p.drv, &(gpul_ipc_client_options){ .fd = offer, .devices = &p.device, .n_devices = 1 }, TIMEOUT_MS, &client,
			     &err),
	     &err);
	run_sender(&p, gpul_ipc_client_view(client)->gpu);
	need(gpul_ipc_client_close(client, TIMEOUT_MS, &err), &err);
	close_process(&p);
}

static void wait_for_event(gpul_ipc_server *server, gpul_ipc_event_kind wanted)
{
	gpul_ipc_event e = { 0 };
	gpul_error err = { 0 };

	need(gpul_ipc_server_next(server, TIMEOUT_MS, &e, &err), &err);
	if (e.kind != wanted) {
		fprintf(stderr, "lesson: %s %s\n", gpul_ipc_event_name(e.kind), e.why.text);
		exit(1);
	}
}

static void receiver_process(int offer, int turns)
{
	struct process p;
	gpul_mem *mem;
	gpul_ipc_server *server;
	gpul_error err = { 0 };

	open_process(&p, 0, turns);
	need(gpul_mem_create(p.drv,
			     &(gpul_mem_desc){ .kind = kind,
					       .bytes = sizeof(struct channel),
					       .node = GPUL_MEM_NODE_OF_GPU,
					       .devices = &p.device,
					       .n_devices = 1,
					       .exportable = true },
			     &mem, &err),
	     &err);
	need(gpul_ipc_server_create(p.drv, mem, &(gpul_ipc_server_options){ 0 }, &server, &err), &err);
	need(gpul_ipc_server_add(server, offer, &err), &err);
	wait_for_event(server, GPUL_IPC_ATTACHED);
	run_receiver(&p, gpul_mem_gpu(mem));
	wait_for_event(server, GPUL_IPC_DETACHED);
	gpul_ipc_server_destroy(server);
	gpul_mem_destroy(mem);
	close_process(&p);
}

int main(int argc, char **argv)
{
	int offer[2], turns[2], status;
	pid_t child;

	if (argc > 1)
		kernels = argv[1];
	if (argc > 2 && !gpul_mem_kind_parse(argv[2], &kind)) {
		fprintf(stderr, "usage: channel [channel.ptx [device|host-numa]]\n");
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, offer) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, turns)) {
		perror("lesson: socketpair");
		return 1;
	}
	child = fork(); /* before the driver is opened: it cannot be used after a fork */
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(offer[0]);
		close(turns[0]);
		sender_process(offer[1], turns[1]);
		return 0;
	}
	close(offer[1]);
	close(turns[1]);
	receiver_process(offer[0], turns[0]);
	return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
