/* memory_attach.c — measures the time from connect() until another process has a usable pointer to the owner's memory.
 *
 *     owner, forked before a driver is opened          this process
 *     exports and offers two allocations          <──  gpul_ipc_attach, close; 200 times each
 *     sends their two descriptors  ─────────────────>  the driver's bare calls, for comparison */
#include "bench/memory/memory.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/client.h"
#include "ipc/place.h"
#include "ipc/server.h"

enum { N_KINDS = 2, ATTACHES = 200, WARM_UP = 5, TIMEOUT_MS = 20000 };
static const gpul_mem_kind kinds[N_KINDS] = { GPUL_MEM_DEVICE, GPUL_MEM_HOST_NUMA };

struct memory_owner {
	pid_t pid;
	int socket;      /* the owner exits when this process closes the socket */
	char folder[64]; /* contains the sockets on which the owner offers its memory */
};

/* The message that the owner sends when it is ready.  The descriptors of both memories are attached to it (SCM_RIGHTS). */
struct ready {
	gpul_error err;
	size_t mapped_bytes[N_KINDS];
};

static void socket_path(const struct memory_owner *o, int i, char name[GPUL_IPC_PATH_BYTES])
{
	snprintf(name, GPUL_IPC_PATH_BYTES, "%s/%s.sock", o->folder, gpul_mem_kind_name(kinds[i]));
}

/* ---- the process that owns the memory ---------------------------------------------------- */

struct offered {
	gpul_mem *mem;
	gpul_ipc_server *server;
	int fd;
};

static gpul_status create_offer(const struct memory_owner *o, const gpul_driver *drv, size_t bytes, int i, struct offered *out,
				gpul_error *err)
{
	const gpul_mem_desc desc = memory_desc(kinds[i], bytes);
	char name[GPUL_IPC_PATH_BYTES];
	gpul_ipc_server_options options = { .name = name };
	gpul_status st = gpul_mem_create(drv, &desc, &out->mem, err);

	socket_path(o, i, name);
	st = st ? st : gpul_mem_export_fd(out->mem, &out->fd, err);
	return st ? st : gpul_ipc_server_create(drv, out->mem, &options, &out->server, err);
}

static bool send_ready(int socket, const struct ready *r, const struct offered *offers)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(N_KINDS * sizeof(int))];
	} control = { .head = { CMSG_LEN(N_KINDS * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)r, sizeof *r };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	const int fds[N_KINDS] = { offers[0].fd, offers[1].fd };

	if (!r->err.status) {
		message.msg_control = &control;
		message.msg_controllen = sizeof control;
		memcpy(CMSG_DATA(&control.head), fds, sizeof fds);
	}
	return sendmsg(socket, &message, MSG_NOSIGNAL) == sizeof *r;
}

static void serve_offers(int socket, struct offered *offers)
{
	struct pollfd p[N_KINDS + 1] = { [N_KINDS] = { .fd = socket, .events = POLLIN } };
	gpul_ipc_event event;

	for (int i = 0; i < N_KINDS; i++)
		p[i] = (struct pollfd){ .fd = gpul_ipc_server_fd(offers[i].server), .events = POLLIN };
	while (poll(p, N_KINDS + 1, -1) >= 0 && !p[N_KINDS].revents)
		for (int i = 0; i < N_KINDS; i++)
			if (p[i].revents && gpul_ipc_server_next(offers[i].server, 0, &event, NULL))
				return;
}

static void run_owner(const struct memory_owner *o, gpul_driver_choice choice, size_t bytes)
{
	struct offered offers[N_KINDS] = { { .fd = -1 }, { .fd = -1 } };
	gpul_context context = { 0 };
	const gpul_driver *drv = NULL;
	struct ready r = { 0 };

	if (gpul_driver_open(choice, &drv, &r.err) == GPUL_OK)
		gpul_context_open(drv, 0, &context, &r.err);
	for (int i = 0; i < N_KINDS && !r.err.status; i++)
		if (create_offer(o, drv, bytes, i, &offers[i], &r.err) == GPUL_OK)
			r.mapped_bytes[i] = gpul_mem_about(offers[i].mem)->mapped_bytes;
	if (send_ready(o->socket, &r, offers) && !r.err.status)
		serve_offers(o->socket, offers);
	for (int i = 0; i < N_KINDS; i++) {
		gpul_ipc_server_destroy(offers[i].server);
		gpul_mem_destroy(offers[i].mem);
	}
	gpul_context_close(&context);
}

struct memory_owner *memory_owner_start(gpul_driver_choice choice, size_t bytes)
{
	struct memory_owner *o = calloc(1, sizeof *o);
	int ends[2];

	if (!o)
		return NULL;
	snprintf(o->folder, sizeof o->folder, "/tmp/gpuload-bench.XXXXXX");
	if (!mkdtemp(o->folder) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		free(o);
		return NULL;
	}
	o->pid = fork();
	o->socket = ends[o->pid ? 0 : 1];
	close(ends[o->pid ? 1 : 0]);
	if (o->pid)
		return o;
	run_owner(o, choice, bytes);
	_exit(0);
}

void memory_owner_stop(struct memory_owner *o)
{
	static const char *const left[] = { "device.sock",    "device.sock.lock",    "device.lock",
					    "host-numa.sock", "host-numa.sock.lock", "host-numa.lock" };

	if (!o)
		return;
	close(o->socket);
	if (o->pid > 0)
		waitpid(o->pid, NULL, 0);
	for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
		char path[128];

		snprintf(path, sizeof path, "%s/%s", o->folder, left[i]);
		unlink(path);
	}
	rmdir(o->folder);
	free(o);
}

/* ---- the attaching process ---------------------------------------------------------------------------- */

static gpul_status receive_ready(const struct memory_owner *o, struct ready *r, int fds[N_KINDS], gpul_error *err)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(N_KINDS * sizeof(int))];
	} control = { 0 };
	struct iovec part = { r, sizeof *r };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };

	if (recvmsg(o->socket, &message, MSG_CMSG_CLOEXEC) != sizeof *r)
		return gpul_fail(err, GPUL_ESYS, errno, "the owner did not start");
	if (r->err.status)
		return gpul_fail(err, r->err.status, r->err.native, "the owner: %s", r->err.text);
	if (!CMSG_FIRSTHDR(&message))
		return gpul_fail(err, GPUL_EFORMAT, 0, "the owner sent no descriptors");
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), N_KINDS * sizeof(int));
	return GPUL_OK;
}

/* A driver table whose functions call `inner` and add up the time of the calls.  The benchmark subtracts this sum from the time of an
 * attach, and prints the rest as "outside the driver". */
static const gpul_driver *inner;
static uint64_t inner_ns;

#define TIMED(fn, parameters, arguments) \
	static CUresult timed_##fn parameters \
	{ \
		uint64_t start = gpul_clock_ns(); \
		CUresult r = inner->fn arguments; \
		inner_ns += gpul_clock_ns() - start; \
		return r; \
	}
TIMED(cuMemGetAllocationGranularity, (size_t *g, const CUmemAllocationProp *p, CUmemAllocationGranularity_flags f), (g, p, f))
TIMED(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle * h, void *os, CUmemAllocationHandleType t), (h, os, t))
TIMED(cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp * p, CUmemGenericAllocationHandle h), (p, h))
TIMED(cuMemAddressReserve, (CUdeviceptr * p, size_t bytes, size_t align, CUdeviceptr at, unsigned long long f), (p, bytes, align, at, f))
TIMED(cuMemMap, (CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long f),
      (p, bytes, offset, h, f))
TIMED(cuMemSetAccess, (CUdeviceptr p, size_t bytes, const CUmemAccessDesc *d, size_t n), (p, bytes, d, n))
TIMED(cuDeviceGetUuid, (CUuuid * u, CUdevice d), (u, d))
TIMED(cuDeviceGetAttribute, (int *v, CUdevice_attribute a, CUdevice d), (v, a, d))
TIMED(cuDeviceGetCount, (int *n), (n))
TIMED(cuDeviceGet, (CUdevice * d, int i), (d, i))
TIMED(cuDeviceCanAccessPeer, (int *can, CUdevice d, CUdevice peer), (can, d, peer))
TIMED(cuCtxGetCurrent, (CUcontext * c), (c))
TIMED(cuCtxSetCurrent, (CUcontext c), (c))

static gpul_driver timed_table(const gpul_driver *drv)
{
	gpul_driver t = *drv;

	inner = drv;
#define X(fn) t.fn = timed_##fn;
	/* clang-format off */
	X(cuMemGetAllocationGranularity) X(cuMemImportFromShareableHandle) X(cuMemGetAllocationPropertiesFromHandle)
	X(cuMemAddressReserve) X(cuMemMap) X(cuMemSetAccess) X(cuDeviceGetUuid) X(cuDeviceGetAttribute) X(cuDeviceGetCount)
	X(cuDeviceGet) X(cuDeviceCanAccessPeer) X(cuCtxGetCurrent) X(cuCtxSetCurrent)
	/* clang-format on */
#undef X
				return t;
}

struct times {
	double attach[ATTACHES], bare[ATTACHES], cpu[ATTACHES], close[ATTACHES];
};

static gpul_status attach_once(const gpul_driver *drv, const char *name, double *attach_us, double *close_us, gpul_error *err)
{
	static const int device = 0;
	const gpul_ipc_client_options options = { .name = name, .devices = &device, .n_devices = 1 };
	gpul_ipc_client *c = NULL;
	uint64_t start = gpul_clock_ns();
	gpul_status st = gpul_ipc_attach(drv, &options, TIMEOUT_MS, &c, err);

	*attach_us = memory_us(start);
	if (st)
		return st;
	start = gpul_clock_ns();
	st = gpul_ipc_client_close(c, -1, err);
	*close_us = memory_us(start);
	return st;
}

static gpul_status import_once(const gpul_driver *drv, gpul_mem_kind kind, size_t bytes, int fd, double *us, gpul_error *err)
{
	struct bare bare;
	uint64_t start = gpul_clock_ns();
	gpul_status st = bare_import(drv, kind, bytes, fd, &bare, err);

	*us = memory_us(start);
	if (!st)
		bare_destroy(drv, &bare);
	return st;
}

static gpul_status measure_attach(const struct memory_bench *b, const char *name, gpul_mem_kind kind, size_t bytes, int fd, struct times *t,
				  gpul_error *err)
{
	const gpul_driver timed = timed_table(b->drv);
	gpul_status st = GPUL_OK;

	for (int i = -WARM_UP; !st && i < ATTACHES; i++) {
		int at = i < 0 ? 0 : i;
		double with_clocks = 0, unused;

		st = attach_once(b->drv, name, &t->attach[at], &t->close[at], err);
		st = st ? st : import_once(b->drv, kind, bytes, fd, &t->bare[at], err);
		inner_ns = 0;
		st = st ? st : attach_once(&timed, name, &with_clocks, &unused, err);
		t->cpu[at] = with_clocks - (double)inner_ns * 1e-3;
	}
	return st;
}

gpul_status memory_attach(struct memory_bench *b, struct memory_owner *o, gpul_error *err)
{
	static const char *const names[N_KINDS][3] = {
		{ "attach: device (bare: import, map)", "attach: device, outside the driver", "attach: device, undone" },
		{ "attach: host-numa (bare: import, map)", "attach: host-numa, outside the driver", "attach: host-numa, undone" },
	};
	static struct times t;
	int fds[N_KINDS] = { -1, -1 };
	struct ready r = { 0 };
	gpul_status st = receive_ready(o, &r, fds, err);

	for (int i = 0; !st && i < N_KINDS; i++) {
		char name[GPUL_IPC_PATH_BYTES];

		socket_path(o, i, name);
		st = measure_attach(b, name, kinds[i], r.mapped_bytes[i], fds[i], &t, err);
		if (st)
			break;
		memory_row(names[i][0], "us", t.attach, t.bare, ATTACHES);
		memory_row(names[i][1], "us", t.cpu, NULL, ATTACHES);
		memory_row(names[i][2], "us", t.close, NULL, ATTACHES);
	}
	for (int i = 0; i < N_KINDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return st;
}
