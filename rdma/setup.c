/* setup.c — creates the parts of a connection: its memory and queue pairs, and negotiates its values.
 *
 *     connecting side                                  listening side
 *     wish ─ create ─ HELLO ─────────────────────────> check ─ create ─ join
 *     check ─ join <───────────────────────── WELCOME ─┘
 *     READY ─────────────────────────────────────────> watch
 *     watch */
#include "rdma/rdma_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

enum { CONTROL_ALIGN = 4096, REPEAT_NS = 20000000 };

void gpul_rdma_wish(const gpul_rdma *r, gpul_rdma_hello *wish)
{
	const unsigned most = r->info.max_depth ? r->info.max_depth : r->desc.depth;
	unsigned depth = r->desc.depth;

	while (depth > most && depth > 64)
		depth /= 2;
	*wish = (gpul_rdma_hello){
		.version = GPUL_RDMA_WIRE_VERSION,
		.n_qps = r->desc.n_qps,
		.depth = depth,
		.segment_bytes = r->desc.segment_bytes,
		.stripe_bytes = r->desc.stripe_bytes,
		.striping = r->desc.striping,
		.qp_type = r->desc.device.qp_type,
		.flags = (r->info.ordered ? GPUL_RDMA_HELLO_ORDERED : 0) |
			 (r->desc.device.control_datagrams ? GPUL_RDMA_HELLO_CONTROL_DATAGRAMS : 0),
	};
}

gpul_status gpul_rdma_check_peer(const gpul_rdma *r, const gpul_rdma_hello *peer, gpul_error *err)
{
	gpul_rdma_hello own;

	gpul_rdma_wish(r, &own);
	if (strcmp(peer->backend, r->info.backend))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s uses the backend %s, but this side uses %s: choose the same backend on both sides", peer->host,
				 peer->backend, r->info.backend);
	if (peer->qp_type != own.qp_type)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s uses %s queue pairs, but this side uses %s: choose the same type on both sides", peer->host,
				 gpul_rdma_qp_name(peer->qp_type), gpul_rdma_qp_name(own.qp_type));
	if (peer->flags != own.flags)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s %s and this side does not, or the reverse: choose the same provider and options on both sides",
				 peer->host,
				 (peer->flags ^ own.flags) & GPUL_RDMA_HELLO_ORDERED ? "uses a fabric that orders writes"
										     : "uses datagrams for control messages");
	if (peer->n_qps > r->info.max_qps)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s requests %u queue pairs, but this side has at most %u", peer->host,
				 peer->n_qps, r->info.max_qps);
	return GPUL_OK;
}

/* ---- create ------------------------------------------------------------------------------------------------ */

/* Register memory that belongs to a connection.  source false: the peer may write to it by the registration's remote key. */
static gpul_status register_own(gpul_rdma *r, void *at, size_t bytes, bool source, gpul_rdma_piece *piece, void **token, gpul_error *err)
{
	const gpul_rdma_memory memory = { .at = (uint64_t)(uintptr_t)at, .bytes = bytes, .dmabuf_fd = -1, .source = source };

	return r->backend->reg(r->device, &memory, piece, token, err);
}

/* Create the staging buffers if this connection may need them, for GPU memory that the fabric cannot access. */
static gpul_status create_stages(gpul_rdma_conn *c, gpul_error *err)
{
	gpul_rdma *r = c->r;
	const gpul_driver *drv = r->desc.device.drv;
	const int gpu = r->desc.device.gpu < 0 ? 0 : r->desc.device.gpu;
	const size_t half = (size_t)r->desc.n_stages * c->hello.segment_bytes;
	unsigned char *stages;
	gpul_status st;

	if (!drv || r->desc.gpu_direct == GPUL_RDMA_GPU_DIRECT_YES || (r->info.dmabuf && r->desc.gpu_direct == GPUL_RDMA_GPU_DIRECT_AUTO))
		return GPUL_OK;
	st = gpul_rdma_copies_create(drv, gpu, r->desc.n_stages, c->hello.segment_bytes, &c->copies, err);
	if (st)
		return st;
	c->info.staged = true;
	stages = gpul_rdma_copies_stages(c->copies);
	st = register_own(r, stages, half, true, &c->stages_piece, &c->tokens[2], err);
	return st ? st : register_own(r, stages + half, half, false, &c->in_stages_piece, &c->tokens[3], err);
}

static gpul_status create_memory(gpul_rdma_conn *c, gpul_error *err)
{
	const size_t slots_bytes = offsetof(gpul_rdma_control, grants);
	gpul_status st;

	c->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->failed_fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "eventfd: %s", strerror(errno));
	c->control = aligned_alloc(CONTROL_ALIGN, (sizeof *c->control + CONTROL_ALIGN - 1) / CONTROL_ALIGN * CONTROL_ALIGN);
	if (!c->control)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the slots of a connection");
	memset(c->control, 0, sizeof *c->control);
	st = register_own(c->r, c->control->slots, slots_bytes, false, &c->slots_piece, &c->tokens[0], err);
	return st ? st
		  : register_own(c->r, c->control->grants, sizeof *c->control - slots_bytes, true, &c->control_piece, &c->tokens[1], err);
}

gpul_status gpul_rdma_conn_create(gpul_rdma *r, const gpul_rdma_hello *wish, const struct sockaddr *from, gpul_rdma_conn **out,
				  gpul_error *err)
{
	gpul_rdma_conn *c = calloc(1, sizeof *c);
	gpul_status st;

	if (!c)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	c->r = r;
	c->failed_fd = -1;
	c->begun_ns = gpul_clock_ns();
	pthread_mutex_init(&c->lock, NULL);
	c->hello = *wish;
	st = create_memory(c, err);
	if (!st)
		st = create_stages(c, err);
	if (!st)
		st = r->backend->create_path(r->device, wish->n_qps, wish->depth, GPUL_RDMA_RECVS, from, &c->path, err);
	if (st) {
		gpul_rdma_conn_close(c);
		return st;
	}
	c->hello.description_bytes = (uint32_t)r->backend->describe(c->path, c->hello.description);
	if (!c->hello.description_bytes) {
		gpul_rdma_conn_close(c);
		return gpul_fail(err, GPUL_ESYS, 0, "%s: cannot get the address of the new queue pairs", r->info.name);
	}
	c->hello.slots = (gpul_rdma_remote){
		.address = c->slots_piece.remote,
		.key = c->slots_piece.remote_key,
		.bytes = sizeof c->control->slots,
	};
	c->hello.lease_ms = (uint32_t)r->desc.lease_ms;
	c->hello.notice_ms = (uint32_t)(r->info.notice_ns / 1000000);
	c->hello.pid = (uint32_t)getpid();
	strcpy(c->hello.backend, r->info.backend);
	if (gethostname(c->hello.host, sizeof c->hello.host - 1))
		strcpy(c->hello.host, "?");
	*out = c;
	return GPUL_OK;
}

/* ---- join, watch ---------------------------------------------------------------------------------------------- */

gpul_status gpul_rdma_conn_join(gpul_rdma_conn *c, const gpul_rdma_hello *peer, gpul_error *err)
{
	gpul_rdma *r = c->r;
	/* clang-format off */
	const gpul_rdma_link_desc desc = {
		.n_qps = c->hello.n_qps, .depth = c->hello.depth,
		.segment_bytes = c->hello.segment_bytes, .stripe_bytes = c->hello.stripe_bytes,
		.striping = (gpul_rdma_striping)c->hello.striping,
		.inline_bytes = r->info.inline_bytes, .ordered = r->info.ordered,
		.completes_in_order = r->info.completes_in_order, .unnamed_arrivals = r->info.unnamed_arrivals,
		.control_datagrams = r->desc.device.control_datagrams, .repeat_ns = REPEAT_NS,
		.control = c->control, .control_piece = c->control_piece, .peer_slots = peer->slots,
		.stages = c->copies ? gpul_rdma_copies_stages(c->copies) : NULL, .stages_piece = c->stages_piece,
		.in_stages_piece = c->in_stages_piece,
		.n_stages = c->copies ? r->desc.n_stages : 0,
	};
	/* clang-format on */
	gpul_status st = gpul_rdma_link_create(&desc, &c->link, err);

	if (st)
		return st;
	gpul_rdma_link_tick(c->link, gpul_clock_ns());
	return r->backend->connect_path(c->path, peer->description, peer->description_bytes, err);
}

static void on_failed(void *context, const gpul_rdma_failure *why, const gpul_rdma_totals *totals)
{
	gpul_rdma_conn_fail(context, why, totals);
}

gpul_status gpul_rdma_conn_watch(gpul_rdma_conn *c, gpul_rdma_channel *channel, const gpul_rdma_hello *peer, gpul_error *err)
{
	const uint64_t limit_ns = (uint64_t)c->r->desc.lease_ms * 1000000;
	gpul_status st;

	strncpy(c->info.peer, gpul_rdma_channel_peer(channel), sizeof c->info.peer - 1);
	memcpy(c->info.peer_host, peer->host, sizeof c->info.peer_host);
	c->info.peer_pid = (int)peer->pid;
	c->info.n_qps = c->hello.n_qps;
	c->info.depth = c->hello.depth;
	c->info.segment_bytes = c->hello.segment_bytes;
	c->info.notice_ns = limit_ns;
	c->info.fabric_notice_ns = c->r->info.notice_ns;
	c->begun_ns = gpul_clock_ns();
	gpul_rdma_channel_set_limit(channel, limit_ns);
	c->channel = channel;
	st = gpul_rdma_watch_add(c->r->watch, channel, limit_ns, (uint64_t)peer->lease_ms * 1000000, on_failed, c, &c->watched, err);
	if (st) {
		c->channel = NULL;
		return st;
	}
	gpul_rdma_conn_remember(c);
	gpul_log(GPUL_LOG_INFO, "rdma",
		 "%s: connected to %s, process %d, with %u queue pairs; a dead peer is detected within %.1f s, a "
		 "broken network path within %.1f s",
		 c->info.peer, c->info.peer_host, c->info.peer_pid, c->info.n_qps, (double)limit_ns * 1e-9,
		 (double)(c->r->info.notice_ns ? c->r->info.notice_ns : limit_ns) * 1e-9);
	return GPUL_OK;
}
