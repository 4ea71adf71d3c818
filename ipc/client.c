/* client.c — the process that uses memory of an owner: connects to the owner, maps the memory, watches the owner, and detaches. */
#include "ipc/client_internal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

enum { POLL_NS = 100 * 1000 };

static void set_event(const gpul_ipc_client *c, gpul_ipc_event *out, gpul_ipc_event_kind kind, const gpul_error *why)
{
	*out = (gpul_ipc_event){ .kind = kind, .peer = c->slot, .pid = c->owner.pid, .uid = c->owner.uid };
	if (why)
		out->why = *why;
}

static void free_client(gpul_ipc_client *c)
{
	if (c->event)
		(void)c->drv->cuEventDestroy(c->event);
	gpul_mem_destroy(c->mem);
	if (c->owner.pidfd >= 0)
		close(c->owner.pidfd);
	if (c->epoll >= 0)
		close(c->epoll);
	if (c->socket >= 0)
		close(c->socket);
	free(c);
}

static void make_hello(gpul_ipc_client *c, bool read_only)
{
	c->hello = (struct wire_hello){ .head = gpul_ipc_wire_head(WIRE_HELLO),
					.intent = WIRE_ATTACH,
					.read_only = read_only,
					.n_gpus = c->here.n_gpus,
					.can = c->here.can,
					.driver_version = (uint32_t)c->drv->version };
	memcpy(c->hello.boot_id, c->here.boot_id, sizeof c->hello.boot_id);
	memcpy(c->hello.driver, c->here.driver, sizeof c->hello.driver);
	memcpy(c->hello.gpu, c->here.gpu, sizeof c->hello.gpu);
}

static gpul_status watch_fd(gpul_ipc_client *c, int fd, gpul_error *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot watch the connection to the owner of the memory: epoll_ctl: %s",
				 strerror(errno));
	return GPUL_OK;
}

/* Use a socket that the caller provides. The owner sends its credentials with the OFFER, because SO_PEERCRED of a socket pair
 * identifies the process that created the pair. */
static gpul_status adopt_socket(gpul_ipc_client *c, gpul_error *err)
{
	c->owner = (struct gpul_ipc_identity){ .uid = geteuid(), .pidfd = -1 };
	c->by_pid = true;
	return gpul_ipc_adopt(c->socket, err);
}

static gpul_status send_hello(gpul_ipc_client *c, const gpul_ipc_client_options *o, gpul_error *err)
{
	gpul_status st = o->name ? gpul_ipc_connect(o->name, &c->socket, &c->owner, err) : adopt_socket(c, err);

	if (st)
		return st;
	st = c->by_pid ? gpul_ipc_send_signed(c->socket, &c->hello, sizeof c->hello, err)
		       : gpul_ipc_send(c->socket, &c->hello, sizeof c->hello, -1, err);
	if (st)
		return st;
	/* create these descriptors after HELLO was sent, while the owner prepares its reply */
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "epoll_create1: %s", strerror(errno));
	if (!c->by_pid)
		gpul_ipc_watch(&c->owner, c->socket, false);
	st = watch_fd(c, c->socket, err);
	if (!st && c->owner.pidfd >= 0)
		st = watch_fd(c, c->owner.pidfd, err);
	return st;
}

gpul_status gpul_ipc_client_open(const gpul_driver *drv, const gpul_ipc_client_options *o, gpul_ipc_client **out, gpul_error *err)
{
	gpul_ipc_client *c = calloc(1, sizeof *c);
	gpul_status st = GPUL_OK;

	if (!c)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: cannot attach to shared memory");
	else if (!o->devices || o->n_devices == 0 || o->n_devices > GPUL_MEM_MAX_DEVICES)
		st = gpul_fail(err, GPUL_EINVAL, (int)o->n_devices, "the number of devices is %u: expected 1 to %d", o->n_devices,
			       GPUL_MEM_MAX_DEVICES);
	if (st) {
		free(c);
		if (!o->name && o->fd >= 0)
			close(o->fd);
		return st;
	}
	c->drv = drv;
	c->socket = o->name ? -1 : o->fd;
	c->epoll = c->owner.pidfd = c->slot = -1;
	c->n_devices = o->n_devices;
	memcpy(c->devices, o->devices, o->n_devices * sizeof *o->devices);
	st = gpul_ipc_here_get(drv, &c->here, err);
	if (!st) {
		make_hello(c, o->read_only);
		st = send_hello(c, o, err);
	}
	if (st) {
		free_client(c);
		return st;
	}
	*out = c;
	return GPUL_OK;
}

static gpul_status import_offer(gpul_ipc_client *c, const struct wire_offer *m, int fd, gpul_error *err)
{
	const struct wire_share *share = &m->share;
	bool on_gpu = share->kind == GPUL_MEM_DEVICE || share->kind == GPUL_MEM_DEVICE_IPC;
	gpul_mem_offer offer = {
		.kind = (gpul_mem_kind)share->kind,
		.bytes = gpul_ipc_wire_data_offset(share) + share->bytes,
		.mapped_bytes = share->mapped_bytes,
		.fabric = share->via == WIRE_VIA_FABRIC,
	};
	gpul_mem_desc desc = { .devices = c->devices,
			       .n_devices = c->n_devices,
			       .read_only = c->hello.read_only || share->flags & WIRE_IS_READ_ONLY };
	gpul_mem_handle handle;

	if (on_gpu)
		offer.owner_device = gpul_ipc_find_gpu((const unsigned char(*)[16])c->here.gpu, c->here.n_gpus, share->gpu);
	memcpy(handle.bytes, m->handle, sizeof handle.bytes);
	return gpul_mem_import(c->drv, &offer, fd, share->via == WIRE_VIA_FD ? NULL : &handle, &desc, &c->mem, err);
}

static gpul_status open_event(gpul_ipc_client *c, const struct wire_offer *m, gpul_error *err)
{
	CUipcEventHandle handle;

	if (!(m->share.flags & WIRE_HAS_EVENT))
		return GPUL_OK;
	memcpy(&handle, m->event, sizeof handle);
	return gpul_cu(c->drv, err, cuIpcOpenEventHandle(&c->event, handle));
}

static gpul_status send_ready(gpul_ipc_client *c, gpul_error *err)
{
	struct wire_ready m = { .head = gpul_ipc_wire_head(WIRE_READY),
				.gpu = gpul_mem_gpu(c->mem),
				.cpu = (uint64_t)(uintptr_t)gpul_mem_cpu(c->mem),
				.read_only = c->view.read_only };

	if (c->devices[0] >= 0 && (unsigned)c->devices[0] < c->here.n_gpus)
		memcpy(m.device, c->here.gpu[c->devices[0]], sizeof m.device);
	return gpul_ipc_send(c->socket, &m, sizeof m, -1, err);
}

static gpul_status map_offer(gpul_ipc_client *c, const struct wire_offer *m, int fd, gpul_error *err)
{
	gpul_status st = gpul_ipc_here_fits(&c->hello, &m->share, err);

	if (!st)
		st = import_offer(c, m, fd, err);
	if (st)
		return st;
	c->view = gpul_ipc_view_of(c->drv, c->mem, &m->share, c->hello.read_only || m->share.flags & WIRE_IS_READ_ONLY);
	st = open_event(c, m, err);
	if (!st)
		st = send_ready(c, err);
	if (st) {
		gpul_mem_destroy(c->mem);
		c->mem = NULL;
	}
	return st;
}

static void send_refused(gpul_ipc_client *c, const gpul_error *why)
{
	struct wire_refused m = { .head = gpul_ipc_wire_head(WIRE_REFUSED), .status = (uint32_t)why->status, .native = why->native };

	memcpy(m.text, why->text, sizeof m.text - 1);
	(void)gpul_ipc_send(c->socket, &m, sizeof m, -1, NULL);
}

/* Stop polling the owner's socket and pidfd, which stay readable after the owner has ended. */
static void end_lease(gpul_ipc_client *c)
{
	(void)epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->socket, NULL);
	if (c->owner.pidfd >= 0)
		(void)epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->owner.pidfd, NULL);
	c->state = CLIENT_OVER;
}

static gpul_status handle_offer(gpul_ipc_client *c, const struct wire_offer *m, int fd, gpul_ipc_event *out, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st;

	if (c->by_pid) {
		gpul_ipc_watch(&c->owner, c->socket, true);
		if (c->owner.pidfd >= 0)
			(void)watch_fd(c, c->owner.pidfd, NULL);
	}
	c->slot = (int)m->share.slot;
	st = map_offer(c, m, fd, &why);
	if (st) {
		send_refused(c, &why);
		end_lease(c);
		return gpul_fail(err, st, why.native, "%s", why.text);
	}
	c->state = CLIENT_ATTACHED;
	set_event(c, out, GPUL_IPC_ATTACHED, NULL);
	return GPUL_OK;
}

static void report_owner_end(gpul_ipc_client *c, const char *what, gpul_ipc_event *out)
{
	gpul_error why = { 0 };

	(void)gpul_fail(&why, GPUL_ESYS, ECONNRESET, "the owner of the memory, pid %d, %s without saying that it stops sharing the memory",
			(int)c->owner.pid, what);
	gpul_log(GPUL_LOG_INFO, "ipc", "%s", why.text);
	c->owner_died = true;
	end_lease(c);
	set_event(c, out, GPUL_IPC_OWNER_DIED, &why);
}

static gpul_status handle_message(gpul_ipc_client *c, const gpul_ipc_message *m, int fd, gpul_ipc_event *out, gpul_error *err)
{
	gpul_error why = { 0 };

	if (c->state == CLIENT_GREETED && m->head.type == WIRE_OFFER)
		return handle_offer(c, &m->offer, fd, out, err);
	if (m->head.type == WIRE_REFUSED) {
		(void)gpul_fail(&why, (gpul_status)m->refused.status, m->refused.native, "%s", m->refused.text);
		end_lease(c);
		set_event(c, out, GPUL_IPC_REFUSED, &why);
		return GPUL_OK;
	}
	if (m->head.type == WIRE_BYE) {
		end_lease(c);
		set_event(c, out, GPUL_IPC_DETACHED, NULL);
		return GPUL_OK;
	}
	end_lease(c);
	return gpul_fail(err, GPUL_EFORMAT, 0, "the owner of the memory sent an unexpected %s message", gpul_ipc_wire_name(m->head.type));
}

/* Receive one message, or detect the end of the connection.  process_ended: the owner's pidfd is readable. */
static gpul_status receive_from_owner(gpul_ipc_client *c, bool process_ended, gpul_ipc_event *out, gpul_error *err)
{
	bool signs = c->by_pid && c->state == CLIENT_GREETED;
	gpul_ipc_message m;
	gpul_status st = GPUL_OK;
	int fd;

	switch (gpul_ipc_receive(c->socket, &m, &fd, signs ? &c->owner : NULL, err)) {
	case GOT_MESSAGE:
		st = handle_message(c, &m, fd, out, err);
		if (fd >= 0)
			close(fd);
		return st;
	case GOT_BAD:
		end_lease(c);
		return GPUL_EFORMAT;
	case GOT_END:
		report_owner_end(c, "closed the connection", out);
		break;
	case GOT_NOTHING:
		if (process_ended)
			report_owner_end(c, "ended", out);
		break;
	}
	return st;
}

gpul_status gpul_ipc_client_next(gpul_ipc_client *c, int timeout_ms, gpul_ipc_event *out, gpul_error *err)
{
	uint64_t begun_ns = timeout_ms > 0 ? gpul_clock_ns() : 0;
	gpul_status st = GPUL_OK;

	set_event(c, out, GPUL_IPC_NONE, NULL);
	while (!st && out->kind == GPUL_IPC_NONE) {
		struct epoll_event ready;
		int n = epoll_wait(c->epoll, &ready, 1, gpul_ipc_left_ms(begun_ns, timeout_ms));

		if (n <= 0)
			break; /* a time-out, or a signal, which the caller may have to handle */
		st = receive_from_owner(c, ready.data.fd != c->socket, out, err);
	}
	return st;
}

/* Open a client.  While the owner's backlog of connections is full, try again until the deadline. */
static gpul_status open_with_retry(const gpul_driver *drv, const gpul_ipc_client_options *o, uint64_t begun_ns, int timeout_ms,
				   gpul_ipc_client **out, gpul_error *err)
{
	for (;;) {
		gpul_error why = { 0 };
		gpul_status st = gpul_ipc_client_open(drv, o, out, &why);

		if (st != GPUL_ESYS || why.native != EAGAIN ||
		    (timeout_ms >= 0 && gpul_clock_ns() - begun_ns >= (uint64_t)timeout_ms * 1000000))
			return st ? gpul_fail(err, st, why.native, "%s", why.text) : GPUL_OK;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

static gpul_status attach_error(const gpul_ipc_event *event, int timeout_ms, gpul_error *err)
{
	switch (event->kind) {
	case GPUL_IPC_REFUSED:
		return gpul_fail(err, GPUL_EUNSUPPORTED, event->why.native, "refused: %s", event->why.text);
	case GPUL_IPC_NONE:
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the owner of the memory, pid %d, did not answer within %d ms", (int)event->pid,
				 timeout_ms);
	case GPUL_IPC_OWNER_DIED:
		return gpul_fail(err, GPUL_ESYS, ECONNRESET, "%s", event->why.text);
	default:
		return gpul_fail(err, GPUL_ESYS, ECONNRESET, "the owner of the memory stopped sharing it before this process was attached");
	}
}

/* Poll for a short time before sleeping: the owner usually replies after 20 us, and a sleeping thread takes as long to wake.  Yield
 * the CPU to other processes between polls. */
static gpul_status poll_briefly(gpul_ipc_client *c, gpul_ipc_event *out, gpul_error *err)
{
	const uint64_t begun_ns = gpul_clock_ns();
	gpul_status st;

	do {
		sched_yield();
		st = gpul_ipc_client_next(c, 0, out, err);
	} while (!st && out->kind == GPUL_IPC_NONE && gpul_clock_ns() - begun_ns < POLL_NS);
	return st;
}

gpul_status gpul_ipc_attach(const gpul_driver *drv, const gpul_ipc_client_options *options, int timeout_ms, gpul_ipc_client **out,
			    gpul_error *err)
{
	uint64_t begun_ns = timeout_ms > 0 ? gpul_clock_ns() : 0;
	gpul_ipc_event event;
	gpul_ipc_client *c;
	int left_ms = timeout_ms;
	gpul_status st = open_with_retry(drv, options, begun_ns, timeout_ms, &c, err);

	if (st)
		return st;
	st = poll_briefly(c, &event, err);
	while (!st && event.kind == GPUL_IPC_NONE && left_ms != 0) {
		left_ms = gpul_ipc_left_ms(begun_ns, timeout_ms);
		st = gpul_ipc_client_next(c, left_ms, &event, err);
	}
	if (!st && event.kind != GPUL_IPC_ATTACHED)
		st = attach_error(&event, timeout_ms, err);
	if (st) {
		free_client(c);
		return st;
	}
	*out = c;
	return GPUL_OK;
}

/* Keep the mapping and the connection until this process ends, because kernels still use the memory.  A list keeps the client
 * reachable, so that leak checkers do not report it. */
static void abandon_client(gpul_ipc_client *c)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static gpul_ipc_client *abandoned;

	pthread_mutex_lock(&lock);
	c->next_abandoned = abandoned;
	abandoned = c;
	pthread_mutex_unlock(&lock);
}

gpul_status gpul_ipc_client_close(gpul_ipc_client *c, int drain_timeout_ms, gpul_error *err)
{
	struct wire_head bye = gpul_ipc_wire_head(WIRE_BYE);
	gpul_status st = GPUL_OK;

	if (!c)
		return GPUL_OK;
	if (c->mem)
		st = gpul_ipc_drain(c, drain_timeout_ms, err);
	if (st) {
		abandon_client(c);
		return st;
	}
	gpul_mem_destroy(c->mem);
	c->mem = NULL;
	if (c->state != CLIENT_OVER)
		(void)gpul_ipc_send(c->socket, &bye, sizeof bye, -1, NULL);
	free_client(c);
	return GPUL_OK;
}

int gpul_ipc_client_fd(const gpul_ipc_client *c)
{
	return c->epoll;
}

const gpul_ipc_view *gpul_ipc_client_view(const gpul_ipc_client *c)
{
	return c->mem ? &c->view : NULL;
}

gpul_mem *gpul_ipc_client_mem(const gpul_ipc_client *c)
{
	return c->mem;
}

CUevent gpul_ipc_client_gpu_event(const gpul_ipc_client *c)
{
	return c->event;
}
