/* plugin.c — a network plug-in of NCCL over TCP sockets that writes a line for each call of NCCL to the file NET_LOG.  This file opens
 * connections; solution.c or exercise.c has the transfers.  No function waits, because one thread of NCCL serves all connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net.h"

/* ---- the log ----------------------------------------------------------------------------------------------------------- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

/* Write a line to the log; locked, because several threads of NCCL call the plug-in. */
__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
	static FILE *out;
	const char *path = getenv("NET_LOG");
	va_list ap;

	if (!path)
		return;
	pthread_mutex_lock(&log_lock);
	if (!out && (out = fopen(path, "w")) != NULL)
		setvbuf(out, NULL, _IOLBF, 0);
	if (out) {
		va_start(ap, fmt);
		vfprintf(out, fmt, ap);
		va_end(ap);
		fputc('\n', out);
	}
	pthread_mutex_unlock(&log_lock);
}

/* ---- the plug-in and its device ---------------------------------------------------------------------------------------- */

static result init(logger *log, void *profiler)
{
	(void)log, (void)profiler;
	note("init");
	return SUCCESS;
}

static result devices(int *n)
{
	*n = 1;
	note("devices: 1");
	return SUCCESS;
}

static result get_properties(int device, properties *out)
{
	static char name[] = "tcp";

	memset(out, 0, sizeof *out);
	out->name = name;
	out->pointers = HOST_MEMORY;
	out->mbits = 10000;
	out->max_connections = 1024;
	out->max_receives = 1;
	out->n_devices = 1;
	out->devices[0] = device;
	out->max_p2p_bytes = out->max_collective_bytes = (size_t)1 << 30;
	note("properties of device %d: %s, kinds of memory %d", device, out->name, out->pointers);
	return SUCCESS;
}

/* ---- connections --------------------------------------------------------------------------------------------------------- */

static struct end *new_end(int fd)
{
	struct end *e = calloc(1, sizeof *e);
	const int on = 1, n_bytes = 1 << 18; /* socket buffers; the default differs between machines */

	if (!e)
		return NULL;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n_bytes, sizeof n_bytes);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n_bytes, sizeof n_bytes);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	e->fd = fd;
	return e;
}

/* The handle is the address of a socket; NCCL sends the handle to the peer over its bootstrap network. */
static result listen_on(int device, void *handle, void **listener)
{
	struct sockaddr_in *address = handle;
	socklen_t n_bytes = sizeof *address;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	memset(handle, 0, HANDLE_BYTES);
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* a plug-in for several machines would choose an interface */
	if (fd < 0 || bind(fd, handle, n_bytes) || listen(fd, 16) || getsockname(fd, handle, &n_bytes) || fcntl(fd, F_SETFL, O_NONBLOCK)) {
		close(fd);
		return SYSTEM_ERROR;
	}
	*listener = new_end(fd);
	note("listen on device %d: port %d", device, ntohs(address->sin_port));
	return *listener ? SUCCESS : SYSTEM_ERROR;
}

static result connect_to(int device, const void *config, const void *handle, void **sender, void **offload)
{
	const struct sockaddr_in *address = handle;
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)config, (void)offload;
	*sender = NULL;
	if (fd < 0 ||
	    connect(fd, handle, sizeof *address)) { /* connect() does not wait for accept(), because the peer's kernel completes it */
		close(fd);
		return SYSTEM_ERROR;
	}
	*sender = new_end(fd);
	note("connect by device %d: port %d", device, ntohs(address->sin_port));
	return *sender ? SUCCESS : SYSTEM_ERROR;
}

static result accept_from(void *listener, void **receiver, void **offload)
{
	const struct end *l = listener;
	const int fd = accept(l->fd, NULL, NULL);

	(void)offload;
	*receiver = NULL;
	if (fd < 0)
		return errno == EAGAIN ? SUCCESS : SYSTEM_ERROR; /* nobody has connected yet: NCCL calls again */
	*receiver = new_end(fd);
	note("accept");
	return *receiver ? SUCCESS : SYSTEM_ERROR;
}

static result close_end(struct end *e, const char *what)
{
	note("close %s", what);
	close(e->fd);
	free(e);
	return SUCCESS;
}

static result close_sender(void *sender)
{
	return close_end(sender, "sender");
}

static result close_receiver(void *receiver)
{
	return close_end(receiver, "receiver");
}

static result close_listener(void *listener)
{
	return close_end(listener, "listener");
}

/* ---- memory and transfers ------------------------------------------------------------------------------------------------ */

static const char *kind_name(int kind)
{
	return kind == HOST_MEMORY ? "host" : kind == GPU_MEMORY ? "GPU" : "other";
}

/* A socket needs no registration; an RDMA NIC would pin the pages and give keys. */
static result register_memory(void *end, void *at, size_t n_bytes, int kind, void **region)
{
	(void)end, (void)at;
	*region = NULL;
	note("register %zu bytes of %s memory", n_bytes, kind_name(kind));
	return SUCCESS;
}

static result unregister(void *end, void *region)
{
	(void)end, (void)region;
	note("unregister");
	return SUCCESS;
}

static result isend(void *sender, void *at, size_t n_bytes, int tag, void *region, void *profile, void **request)
{
	const result r = start_transfer(sender, 1, at, n_bytes, (struct request **)request);

	(void)tag, (void)region, (void)profile;
	if (*request)
		note("isend %zu bytes", n_bytes);
	return r;
}

static result irecv(void *receiver, int n, void **at, size_t *n_bytes, int *tags, void **regions, void **profiles, void **request)
{
	result r = INVALID_ARGUMENT;

	(void)tags, (void)regions, (void)profiles;
	*request = NULL;
	if (n == 1) /* properties.max_receives is 1 */
		r = start_transfer(receiver, 0, at[0], n_bytes[0], (struct request **)request);
	if (*request)
		note("irecv %zu bytes", n_bytes[0]);
	return r;
}

/* The data of a finished receive must be visible to the GPU.  A NIC would read back over PCIe; here the CPU has stored the data. */
static result iflush(void *receiver, int n, void **at, int *n_bytes, void **regions, void **request)
{
	(void)receiver, (void)n, (void)at, (void)regions;
	*request = NULL; /* NULL: the flush is complete */
	note("iflush %d bytes", n_bytes[0]);
	return SUCCESS;
}

static result test(void *request, int *done, int *n_bytes)
{
	const int is_send = ((struct request *)request)->is_send;
	int n_moved = 0;
	const result r = test_transfer(request, done, &n_moved);

	if (*done) {
		note("test: %s of %d bytes is done", is_send ? "isend" : "irecv", n_moved);
		if (n_bytes)
			*n_bytes = n_moved;
	}
	return r;
}

__attribute__((visibility("default"))) const net_plugin ncclNetPlugin_v10 = {
	.name = "lesson",
	.init = init,
	.devices = devices,
	.get_properties = get_properties,
	.listen = listen_on,
	.connect = connect_to,
	.accept = accept_from,
	.register_memory = register_memory,
	.unregister = unregister,
	.isend = isend,
	.irecv = irecv,
	.iflush = iflush,
	.test = test,
	.close_sender = close_sender,
	.close_receiver = close_receiver,
	.close_listener = close_listener,
};
