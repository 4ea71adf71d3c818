/* udp_io.c — operations become messages, messages become datagrams, and datagrams that arrive become writes into registered memory. */
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"
#include "rdma/udp/udp_internal.h"

enum { LINUX_UDP_SEGMENT = 103, LINUX_UDP_GRO = 104, ROUNDS = 4 };

static gpul_status fail_call(const char *call, gpul_rdma_failure *why)
{
	return gpul_rdma_fail(why, GPUL_ESYS, errno, call, "check the network between the machines, and its firewalls", "%s",
			      strerror(errno));
}

/* ---- send ------------------------------------------------------------------------------------------------------ */

/* Whether the error means only that these datagrams are lost, as a switch may lose them. */
static bool is_loss(int error)
{
	return error == ECONNREFUSED || error == ENOBUFS || error == EHOSTUNREACH || error == ENETUNREACH || error == EMSGSIZE;
}

/* Send the batch with one call, or, without UDP_SEGMENT, with one call for each datagram.  Returns false if the socket has no room. */
static bool send_batch(struct udp_path *p, gpul_rdma_failure *why)
{
	struct udp_batch *b = &p->batch;
	_Alignas(struct cmsghdr) unsigned char control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	const struct cmsghdr head = { .cmsg_len = CMSG_LEN(sizeof(uint16_t)), .cmsg_level = IPPROTO_UDP, .cmsg_type = LINUX_UDP_SEGMENT };
	const uint16_t segment = (uint16_t)b->segment_bytes;
	struct msghdr m = { .msg_iov = b->pieces, .msg_iovlen = b->n_pieces };

	if (!b->n)
		return true;
	if (b->n > 1) {
		memcpy(control, &head, sizeof head);
		memcpy(control + CMSG_LEN(0), &segment, sizeof segment);
		m.msg_control = control;
		m.msg_controllen = sizeof control;
	}
	while (sendmsg(p->senders[b->path], &m, 0) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			return false;
		if (b->n > 1 && (errno == EINVAL || errno == EIO || errno == ENOPROTOOPT || errno == EOPNOTSUPP))
			p->no_segments = true; /* from now on one datagram a call; these are lost */
		else if (!is_loss(errno))
			(void)fail_call("sendmsg", why);
		break;
	}
	b->n = b->n_pieces = b->bytes = 0;
	b->ended = false;
	return true;
}

/* Whether the datagram, which has this size and path, may be sent in the same call as those of the batch. */
static bool fits(const struct udp_path *p, const gpul_rel_datagram *d)
{
	const struct udp_batch *b = &p->batch;
	const uint32_t n_bytes = d->header_bytes + d->bytes;

	return !b->n || (!p->no_segments && !b->ended && d->path == b->path && n_bytes <= b->segment_bytes && b->n < UDP_SEGMENTS - 1 &&
			 b->bytes + n_bytes <= UDP_BATCH_BYTES);
}

static void add_to_batch(struct udp_batch *b, const gpul_rel_datagram *d)
{
	const uint32_t n_bytes = d->header_bytes + d->bytes;
	gpul_rel_datagram *kept = &b->datagrams[b->n];

	if (!b->n)
		b->segment_bytes = n_bytes;
	b->path = d->path;
	b->ended = n_bytes < b->segment_bytes;
	b->bytes += n_bytes;
	if (kept != d)
		memcpy(kept, d, offsetof(gpul_rel_datagram, header) + d->header_bytes);
	b->n++;
	b->pieces[b->n_pieces++] = (struct iovec){ .iov_base = kept->header, .iov_len = d->header_bytes };
	if (d->bytes)
		b->pieces[b->n_pieces++] = (struct iovec){ .iov_base = (void *)(uintptr_t)d->local, .iov_len = d->bytes };
}

/* Send what may be sent now. */
static void send_datagrams(struct udp_path *p, gpul_rdma_failure *why)
{
	const uint64_t now_ns = gpul_clock_ns();
	struct udp_batch *b = &p->batch;

	if (b->n && !send_batch(p, why)) /* of an earlier call, when the socket had no room */
		return;
	while (!why->status) {
		gpul_rel_datagram *d = &b->datagrams[b->n];

		if (!gpul_rel_next(p->rel, now_ns, d))
			break;
		if (!fits(p, d)) {
			gpul_rel_datagram first;

			memcpy(&first, d, offsetof(gpul_rel_datagram, header) + d->header_bytes);
			if (!send_batch(p, why)) {
				/* No room, and `first` does not fit: it counts as sent, so it is lost, and will be sent again. */
				return;
			}
			d = &first;
			add_to_batch(b, d);
			continue;
		}
		add_to_batch(b, d);
	}
	(void)send_batch(p, why);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

gpul_status gpul_udp_post(void *path, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why)
{
	struct udp_path *p = path;
	unsigned i = 0;

	while (i < n && gpul_rel_ops_add(&p->ops, &ops[i]))
		i++;
	gpul_rel_ops_start(&p->ops, p->rel);
	send_datagrams(p, &p->failed);
	if (p->failed.status && !why->status)
		*why = p->failed;
	*n_posted = i;
	return p->failed.status;
}

/* ---- receive ---------------------------------------------------------------------------------------------------------- */

/* Process a datagram; its payload goes into registered memory.  False: the connection fails. */
static bool receive_one(struct udp_path *p, uint64_t now_ns, const unsigned char *at, uint32_t n_bytes, gpul_rdma_failure *why)
{
	gpul_rel_chunk c;

	return gpul_rel_receive(p->rel, now_ns, at, n_bytes, &c, why) && gpul_rel_memory_write(&p->device->memory, &c, at, why);
}

/* The size of the datagrams that the kernel has joined to one (UDP_GRO); all of it if there is only one. */
static uint32_t segment_of(struct msghdr *m, uint32_t n_bytes)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int segment = 0;

		if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != LINUX_UDP_GRO)
			continue;
		memcpy(&segment, CMSG_DATA(c), sizeof segment);
		return segment > 0 ? (uint32_t)segment : n_bytes;
	}
	return n_bytes;
}

/* Receive a batch of datagrams.  Returns true if more may wait. */
static bool receive_datagrams(struct udp_path *p, gpul_rdma_failure *why)
{
	struct mmsghdr messages[UDP_BUFFERS] = { 0 };
	struct iovec pieces[UDP_BUFFERS];
	_Alignas(struct cmsghdr) unsigned char controls[UDP_BUFFERS][CMSG_SPACE(sizeof(int))];
	uint64_t now_ns;
	int n;

	for (unsigned i = 0; i < UDP_BUFFERS; i++) {
		pieces[i] = (struct iovec){ .iov_base = p->buffers + (size_t)i * UDP_BUFFER_BYTES, .iov_len = UDP_BUFFER_BYTES };
		messages[i].msg_hdr = (struct msghdr){
			.msg_iov = &pieces[i], .msg_iovlen = 1, .msg_control = controls[i], .msg_controllen = sizeof controls[i]
		};
	}
	n = recvmmsg(p->receiver, messages, UDP_BUFFERS, 0, NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR && !is_loss(errno))
		(void)fail_call("recvmmsg", why);
	if (n <= 0)
		return false;
	now_ns = gpul_clock_ns();
	pthread_rwlock_rdlock(&p->device->memory.lock);
	for (int i = 0; i < n && !why->status; i++) {
		const uint32_t n_bytes = messages[i].msg_len, segment = segment_of(&messages[i].msg_hdr, n_bytes);
		const unsigned char *at = pieces[i].iov_base;

		for (uint32_t done = 0; done < n_bytes; done += segment)
			if (!receive_one(p, now_ns, at + done, n_bytes - done < segment ? n_bytes - done : segment, why))
				break;
	}
	pthread_rwlock_unlock(&p->device->memory.lock);
	return n == UDP_BUFFERS;
}

/* ---- poll -------------------------------------------------------------------------------------------------------------- */

/* A failure is reported after the events before it. */
gpul_status gpul_udp_poll(void *path, gpul_rdma_event *events, unsigned max, unsigned *n_events, gpul_rdma_failure *why)
{
	struct udp_path *p = path;

	*n_events = 0;
	for (unsigned i = 0; i < ROUNDS && !p->failed.status && receive_datagrams(p, &p->failed); i++)
		;
	gpul_rel_ops_events(&p->ops, p->rel, events, max, n_events);
	if (!p->failed.status)
		(void)gpul_rel_tick(p->rel, gpul_clock_ns(), &p->failed);
	if (!p->failed.status) {
		gpul_rel_ops_start(&p->ops, p->rel);
		send_datagrams(p, &p->failed);
	}
	if (!p->failed.status || *n_events)
		return GPUL_OK;
	if (!why->status)
		*why = p->failed;
	return p->failed.status;
}
