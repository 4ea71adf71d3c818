/* ipc_request.c — queries the owner of a name: the memory that it offers, and the attached peers. */
#include "ipc/client_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

static void describe_share(const struct wire_info *m, const struct gpul_ipc_identity *owner, gpul_ipc_share *out)
{
	const struct wire_share *s = &m->share;

	*out = (gpul_ipc_share){
		.pid = owner->pid,
		.uid = owner->uid,
		.kind = (gpul_mem_kind)s->kind,
		.bytes = s->bytes,
		.mapped_bytes = s->mapped_bytes,
		.read_only = s->flags & WIRE_IS_READ_ONLY,
		.control = s->flags & WIRE_HAS_CONTROL,
		.node = s->node,
		.cpu = m->cpu,
		.gpu = m->gpu,
		.generation = s->generation,
		.n_peers = m->n_peers,
		.shape = { .n_dims = s->n_dims },
	};
	memcpy(out->device_uuid, s->gpu, sizeof out->device_uuid);
	memcpy(out->driver, s->driver, sizeof out->driver);
	memcpy(out->id, s->id, sizeof out->id);
	memcpy(out->shape.dtype, s->dtype, sizeof out->shape.dtype);
	memcpy(out->shape.dim, s->dim, sizeof out->shape.dim);
	for (unsigned i = 0; i < m->n_peers; i++) {
		const struct wire_peer *p = &m->peer[i];

		out->peers[i] = (gpul_ipc_peer){ .slot = (int)p->slot,
						 .pid = p->pid,
						 .uid = p->uid,
						 .cpu = p->cpu,
						 .gpu = p->gpu,
						 .read_only = p->read_only,
						 .attached_ms = p->attached_ms };
		memcpy(out->peers[i].device_uuid, p->device, sizeof p->device);
	}
}

static gpul_status receive_info(int socket, gpul_ipc_message *m, gpul_error *err)
{
	int fd;

	switch (gpul_ipc_receive(socket, m, &fd, NULL, err)) {
	case GOT_BAD:
		return GPUL_EFORMAT;
	case GOT_MESSAGE:
		if (fd >= 0)
			close(fd);
		if (m->head.type == WIRE_INFO)
			return GPUL_OK;
		if (m->head.type == WIRE_REFUSED)
			return gpul_fail(err, GPUL_EUNSUPPORTED, m->refused.native, "refused: %s", m->refused.text);
		return gpul_fail(err, GPUL_EFORMAT, 0, "the owner of the memory sent %s instead of INFO", gpul_ipc_wire_name(m->head.type));
	default:
		return gpul_fail(err, GPUL_ESYS, ECONNRESET, "the owner of the memory ended, or closed the connection, without an answer");
	}
}

/* Wait until the owner has answered or ended; false: time-out. */
static bool wait_for_answer(int socket, const struct gpul_ipc_identity *owner, uint64_t begun_ns, int timeout_ms)
{
	for (;;) {
		int left_ms = gpul_ipc_left_ms(begun_ns, timeout_ms);
		struct pollfd either[] = { { .fd = socket, .events = POLLIN }, { .fd = owner->pidfd, .events = POLLIN } };
		int n = poll(either, 2, left_ms);

		if (n > 0)
			return true;
		if (n == 0 && left_ms >= 0)
			return false;
	}
}

gpul_status gpul_ipc_request(const char *name, int timeout_ms, gpul_ipc_share *out, gpul_error *err)
{
	struct wire_hello hello = { .head = gpul_ipc_wire_head(WIRE_HELLO), .intent = WIRE_QUERY };
	uint64_t begun_ns = gpul_clock_ns();
	struct gpul_ipc_identity owner;
	gpul_ipc_message m;
	int socket;
	gpul_status st = gpul_ipc_connect(name, &socket, &owner, err);

	if (st)
		return st;
	st = gpul_ipc_send(socket, &hello, sizeof hello, -1, err);
	gpul_ipc_watch(&owner, socket, false); /* watches the owner's process, because a forked child of an ended owner may keep the
					        * socket open */
	if (!st && !wait_for_answer(socket, &owner, begun_ns, timeout_ms))
		st = gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the owner of %s, pid %d, did not answer within %d ms", name, (int)owner.pid,
			       timeout_ms);
	if (!st)
		st = receive_info(socket, &m, err);
	if (!st)
		describe_share(&m.info, &owner, out);
	if (owner.pidfd >= 0)
		close(owner.pidfd);
	close(socket);
	return st;
}
