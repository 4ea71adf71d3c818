/* network.c — connects pairs of ranks on different machines: allocates their memory and the mirrors of it, and starts the proxy.
 *
 *     memory of this rank, for each such pair:
 *
 *                │ inboxes from the rank │ outboxes for it │ words          │ mirror: its inboxes │ mirror: its outboxes │  n_blocks of each
 *     counters   │ tail                  │ head            │ asks, grants,  │ tail, sizes         │ head                 │
 *                │                       │                 │ announced      │                     │                      │
 *     slots      │ slots                 │                 │                │ slots               │                      │
 *                  its proxy writes        its proxy writes  its proxy writes our kernels write     our kernels write
 *                  our kernels read        our kernels read  our proxy reads  our proxy reads       our proxy reads
 *
 * The counters are in host memory.  The slots are in device memory if the NIC can access it (GPU-direct): data goes from GPU to
 * GPU, and the proxy of the receiver raises the tail after a flush (net/arrivals.h).  Otherwise they are in host memory (staged):
 * the kernels of both ranks write and read them there themselves, so the data crosses the bus once on each side, slot by slot,
 * while earlier slots are in flight.  The two ranks of a pair may use different kinds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm_internal.h"
#include "comm/net/grants.h"

/* clang-format off */
enum { EXPLANATION_MS = 1000, CLOSED_EXPLANATION_MS = 5000, SPIN_NS = 50 * 1000, INTERPRETED_SPIN_NS = 5 * 1000, WINDOW_SLOTS = 8,
       INTERPRETED_WINDOW_SLOTS = 4, RUNS_MS = 450, UNDELIVERED_MS = 1000 };
/* clang-format on */

/* Offsets of the columns of the drawing above, in the counters and in the slots of one pair of ranks. */
struct network_parts {
	uint64_t inboxes, outboxes, asks, grants, announced, mirror_inboxes, mirror_outboxes, counter_bytes;
	uint64_t slots, mirror_slots, slot_bytes;
};

static struct network_parts parts_of(const gpul_comm_sizes *s)
{
	const uint64_t inboxes = s->n_blocks * sizeof(gpul_comm_inbox), outboxes = s->n_blocks * sizeof(gpul_comm_outbox);
	const uint64_t words = (s->n_blocks * sizeof(uint64_t) + GPUL_COMM_LINE_BYTES - 1) / GPUL_COMM_LINE_BYTES * GPUL_COMM_LINE_BYTES;
	const uint64_t slots = s->n_blocks * s->slots_bytes;
	struct network_parts p = {
		.outboxes = inboxes, .asks = inboxes + outboxes, .slots = 0, .mirror_slots = slots, .slot_bytes = 2 * slots
	};

	p.grants = p.asks + words;
	p.announced = p.grants + words;
	p.mirror_inboxes = p.announced + words;
	p.mirror_outboxes = p.mirror_inboxes + inboxes;
	p.counter_bytes = p.mirror_outboxes + outboxes;
	return p;
}

static bool by_network(const gpul_comm *c, int r)
{
	return r != c->rank && c->paths[r].transport == GPUL_COMM_NET;
}

/* ---- the window: comm/net/grants.h ------------------------------------------------------------------------------- */

/* Return the number of connections that use a NIC of this rank. */
static unsigned n_routes_of(const gpul_comm *c, unsigned nic)
{
	const gpul_comm_mesh *m = c->network.mesh;
	unsigned n = 0;

	for (int r = 0; r < c->n_ranks; r++)
		for (unsigned i = 0; by_network(c, r) && i < gpul_comm_mesh_n_conns(m, r); i++)
			n += gpul_comm_mesh_nic_of(m, c->rank, i) == nic;
	return n;
}

/* Compute how many bytes may be in flight to this rank; 0: no limit.  By default the window has room for several slots, so that
 * each of two senders has one in flight while another one arrives.  With slots of 256 KiB it is 2 MiB, the bandwidth-delay product
 * of 400 Gbit/s and 40 us. */
static gpul_status window_bytes(const gpul_comm *c, uint64_t *out, gpul_error *err)
{
	const char *set = c->options.net_window ? NULL : secure_getenv("GPULOAD_COMM_NET_WINDOW");
	char *end = NULL;

	if (c->options.net_window) {
		*out = c->options.net_window == GPUL_COMM_NO_WINDOW ? 0 : c->options.net_window;
		return GPUL_OK;
	}
	*out = (uint64_t)(c->interprets ? INTERPRETED_WINDOW_SLOTS : WINDOW_SLOTS) * c->sizes.slot_bytes;
	if (!set || !*set)
		return GPUL_OK;
	if (strcmp(set, "off") == 0)
		*out = 0;
	else if (*set < '1' || *set > '9' || (*out = strtoull(set, &end, 10), *end))
		return gpul_fail(err, GPUL_EINVAL, 0, "GPULOAD_COMM_NET_WINDOW is '%.40s': expected a number of bytes, or off", set);
	return GPUL_OK;
}

/* Return the bytes that each sender may have in flight without a grant.  A single sender never needs grants. */
static uint64_t free_bytes(const gpul_comm *c, unsigned nic)
{
	const gpul_comm_grants_desc desc = { .n_routes = n_routes_of(c, nic),
					     .slot_bytes = c->sizes.slot_bytes,
					     .window_bytes = c->network.window_bytes };

	return desc.window_bytes && desc.n_routes > 1 ? gpul_comm_grants_free_bytes(&desc) : UINT64_MAX;
}

/* ---- the send path ----------------------------------------------------------------------------------------------- */

/* True if slots in device memory should be tried.  If the driver's device memory is host memory, they are tried only if the user
 * asks for it. */
static bool tries_direct(const gpul_comm *c)
{
	const gpul_rdma_gpu_direct wanted = c->options.net ? c->options.net->gpu_direct : GPUL_RDMA_GPU_DIRECT_AUTO;

	return wanted == GPUL_RDMA_GPU_DIRECT_YES || (wanted == GPUL_RDMA_GPU_DIRECT_AUTO && !c->interprets);
}

/* Set the options of the send path, without staging buffers, because comm/ stages data itself. */
static void describe_rdma(const gpul_comm *c, gpul_rdma_desc *out)
{
	if (c->options.net)
		*out = *c->options.net;
	out->device.drv = tries_direct(c) ? c->drv : NULL;
	if (tries_direct(c) && out->device.gpu < 0)
		out->device.gpu = c->device;
	out->gpu_direct = GPUL_RDMA_GPU_DIRECT_YES;
}

/* Open the network, and connect the pairs that need it.  Every rank calls this if any pair needs the network. */
gpul_status gpul_comm_network_open(gpul_comm *c, int timeout_ms, gpul_error *err)
{
	bool wanted[GPUL_COMM_MAX_RANKS] = { false };
	gpul_comm_mesh_desc desc = { .rdma = { .device = { .gpu = -1, .gid_index = -1 } }, .wanted = wanted };

	if (!c->has_network)
		return GPUL_OK;
	for (int r = 0; r < c->n_ranks; r++)
		wanted[r] = by_network(c, r);
	describe_rdma(c, &desc.rdma);
	return gpul_comm_mesh_create(c->boot, &desc, timeout_ms, &c->network.mesh, err);
}

/* Write the NICs of the connections with a rank, such as "eth0 - eth0, eth1 - eth0"; in each pair, this rank's NIC comes first. */
static void describe_nics(const gpul_comm_mesh *m, int rank, int r, char *out, size_t out_bytes)
{
	size_t used = 0;

	*out = '\0';
	for (unsigned i = 0; i < gpul_comm_mesh_n_conns(m, r) && used < out_bytes; i++)
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%.16s - %.16s", i ? ", " : "",
					 gpul_comm_mesh_nic_name(m, rank, gpul_comm_mesh_nic_of(m, rank, i)),
					 gpul_comm_mesh_nic_name(m, r, gpul_comm_mesh_nic_of(m, r, i)));
}

/* Describe the path to a rank, with the memory of the slots at both ends. */
static void describe_path(gpul_comm *c, int r)
{
	const struct network *n = &c->network;
	const bool there = n->theirs[r].direct;
	char why[61], memory[160], nics[80];
	gpul_rdma_device_info info;

	gpul_rdma_about(gpul_comm_mesh_rdma(n->mesh), &info);
	if (gpul_comm_mesh_n_conns(n->mesh, r) > 1)
		describe_nics(n->mesh, c->rank, r, nics, sizeof nics);
	else
		(void)snprintf(nics, sizeof nics, "%.40s", info.name);
	if (n->direct)
		(void)snprintf(memory, sizeof memory, "GPU-direct%s",
			       there ? "" : " on this side, staged in host memory on the other side");
	else
		(void)snprintf(memory, sizeof memory, "%sstaged in host memory: %s",
			       there ? "GPU-direct on the other side; on this side " : "", n->why_staged);
	(void)snprintf(why, sizeof why, "%.60s", c->paths[r].reason);
	(void)snprintf(c->paths[r].reason, sizeof c->paths[r].reason, "%s; %.15s, %s, %.94s", why, info.backend, nics, memory);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

static void unregister_slots(gpul_comm *c)
{
	for (int r = 0; r < c->n_ranks; r++)
		for (int k = 0; k < GPUL_COMM_MAX_NICS; k++) {
			struct network_regions *regions = &c->network.regions[r][k];

			gpul_rdma_unregister(regions->data);
			gpul_rdma_unregister(regions->mirror);
			regions->data = regions->mirror = NULL;
		}
}

static void unregister_words(gpul_comm *c)
{
	for (int r = 0; r < c->n_ranks; r++)
		for (int k = 0; k < GPUL_COMM_MAX_NICS; k++) {
			gpul_rdma_unregister(c->network.regions[r][k].words);
			c->network.regions[r][k].words = NULL;
		}
}

/* Register the counters that each other rank writes; they lie before the mirrors, which only this rank writes. */
static gpul_status register_words(gpul_comm *c, gpul_error *err)
{
	const struct network_parts parts = parts_of(&c->sizes);
	struct network *n = &c->network;
	gpul_status st = GPUL_OK;

	for (int r = 0; r < c->n_ranks; r++)
		for (unsigned k = 0; !st && by_network(c, r) && k < gpul_comm_mesh_n_nics(n->mesh); k++)
			st = gpul_rdma_register_part(gpul_comm_mesh_nic(n->mesh, k), n->counters, n->counters_at[r], parts.mirror_inboxes,
						     GPUL_RDMA_STEPS, &n->regions[r][k].words, err);
	return st;
}

static gpul_status register_slots(gpul_comm *c, const gpul_mem_desc *desc, gpul_error *err)
{
	const struct network_parts parts = parts_of(&c->sizes);
	struct network *n = &c->network;
	gpul_status st = gpul_mem_create(c->drv, desc, &n->slots, err);

	for (int r = 0; r < c->n_ranks; r++)
		for (unsigned k = 0; !st && by_network(c, r) && k < gpul_comm_mesh_n_nics(n->mesh); k++) {
			gpul_rdma *nic = gpul_comm_mesh_nic(n->mesh, k);

			st = gpul_rdma_register_part(nic, n->slots, n->slots_at[r] + parts.slots, parts.mirror_slots - parts.slots,
						     GPUL_RDMA_DATA, &n->regions[r][k].data, err);
			st = st ? st
				: gpul_rdma_register_part(nic, n->slots, n->slots_at[r] + parts.mirror_slots,
							  parts.slot_bytes - parts.mirror_slots, GPUL_RDMA_SOURCE, &n->regions[r][k].mirror,
							  err);
		}
	if (st) {
		unregister_slots(c);
		gpul_mem_destroy(n->slots);
		n->slots = NULL;
	}
	return st;
}

/* Allocate the slots in device memory if it can be registered, else in host memory. */
static gpul_status allocate_slots(gpul_comm *c, uint64_t n_bytes, gpul_error *err)
{
	gpul_mem_desc desc = {
		.kind = GPUL_MEM_DEVICE, .bytes = n_bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &c->device, .n_devices = 1
	};
	struct network *n = &c->network;
	gpul_error why = { 0 };

	if (tries_direct(c)) {
		n->direct = !register_slots(c, &desc, &why);
		if (n->direct)
			return GPUL_OK;
		if (c->options.net && c->options.net->gpu_direct == GPUL_RDMA_GPU_DIRECT_YES)
			return gpul_fail(err, why.status, why.native,
					 "GPU-direct is not possible: %.170s; set gpu_direct to auto or no to copy through host memory",
					 why.text);
		(void)snprintf(n->why_staged, sizeof n->why_staged, "%.79s", why.text);
	} else {
		(void)snprintf(n->why_staged, sizeof n->why_staged, "%s",
			       c->options.net && c->options.net->gpu_direct ? "requested"
									    : "the device memory of the software driver is host memory");
	}
	desc.kind = GPUL_MEM_AUTO;
	return register_slots(c, &desc, err);
}

static gpul_status allocate(gpul_comm *c, gpul_error *err)
{
	const struct network_parts parts = parts_of(&c->sizes);
	struct network *n = &c->network;
	gpul_mem_desc counters = { .kind = GPUL_MEM_AUTO, .node = GPUL_MEM_NODE_OF_GPU, .devices = &c->device, .n_devices = 1 };
	uint64_t n_slot_bytes = 0;
	gpul_status st;

	for (int r = 0; r < c->n_ranks; r++)
		if (by_network(c, r)) {
			n->counters_at[r] = counters.bytes;
			n->slots_at[r] = n_slot_bytes;
			counters.bytes += parts.counter_bytes;
			n_slot_bytes += parts.slot_bytes;
		}
	if (counters.bytes == 0)
		return GPUL_OK;
	st = gpul_mem_create(c->drv, &counters, &n->counters, err);
	if (st)
		return st;
	memset(gpul_mem_cpu(n->counters), 0, counters.bytes);
	st = register_words(c, err);
	return st ? st : allocate_slots(c, n_slot_bytes, err);
}

/* Return the address at which the NICs access the slots of the pair of this rank and rank r. */
static uint64_t slots_address(const gpul_comm *c, int r)
{
	const struct network *n = &c->network;
	void *cpu = gpul_mem_cpu(n->slots);

	return (cpu ? (uintptr_t)cpu : (uint64_t)gpul_mem_gpu(n->slots)) + n->slots_at[r];
}

/* Describe the memory that another rank may write over one connection. */
static gpul_status offer_memory(const gpul_comm *c, int r, unsigned nic, struct network_memory *out, gpul_error *err)
{
	const struct network_parts parts = parts_of(&c->sizes);
	const struct network *n = &c->network;
	const uint64_t at = (uintptr_t)gpul_mem_cpu(n->counters) + n->counters_at[r];
	const gpul_rdma_region *words = n->regions[r][nic].words;
	gpul_status st = gpul_rdma_offer(n->regions[r][nic].data, slots_address(c, r) + parts.slots, parts.mirror_slots - parts.slots,
					 &out->data, err);

	out->free_bytes = free_bytes(c, nic);
	if (n->direct)
		st = st ? st : gpul_rdma_offer(words, at + parts.announced, parts.mirror_inboxes - parts.announced, &out->steps, err);
	else
		st = st ? st : gpul_rdma_offer(words, at + parts.inboxes, parts.outboxes - parts.inboxes, &out->steps, err);
	st = st ? st : gpul_rdma_offer(words, at + parts.outboxes, parts.asks - parts.outboxes, &out->heads, err);
	st = st ? st : gpul_rdma_offer(words, at + parts.asks, parts.grants - parts.asks, &out->asks, err);
	return st ? st : gpul_rdma_offer(words, at + parts.grants, parts.announced - parts.grants, &out->grants, err);
}

static gpul_status make_offer(const gpul_comm *c, int r, struct network_target *out, gpul_error *err)
{
	const struct network *n = &c->network;
	gpul_status st = GPUL_OK;

	out->direct = n->direct;
	out->step_stride = n->direct ? sizeof(uint64_t) : sizeof(gpul_comm_inbox);
	for (unsigned i = 0; !st && i < gpul_comm_mesh_n_conns(n->mesh, r); i++)
		st = offer_memory(c, r, gpul_comm_mesh_nic_of(n->mesh, c->rank, i), &out->conns[i], err);
	return st;
}

/* Allocate and register the memory, and exchange its addresses.  Every rank calls this if any pair needs the network. */
gpul_status gpul_comm_network_create(gpul_comm *c, int timeout_ms, gpul_error *err)
{
	const size_t n_ranks = (size_t)c->n_ranks;
	struct network *n = &c->network;
	struct network_target *all, mine[GPUL_COMM_MAX_PEERS] = { 0 };
	gpul_status st;

	if (!c->has_network)
		return GPUL_OK;
	st = window_bytes(c, &n->window_bytes, err);
	st = st ? st : allocate(c, err);
	for (int r = 0; !st && r < c->n_ranks; r++)
		if (by_network(c, r))
			st = make_offer(c, r, &mine[r], err);
	if (st)
		return st;
	all = calloc(n_ranks * n_ranks, sizeof *all);
	if (!all)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to exchange buffer addresses with %zu ranks", n_ranks);
	st = gpul_boot_allgather(c->boot, mine, n_ranks * sizeof *mine, all, timeout_ms, err);
	for (int r = 0; !st && r < c->n_ranks; r++) {
		n->theirs[r] = all[(size_t)r * n_ranks + (size_t)c->rank];
		if (by_network(c, r))
			describe_path(c, r);
	}
	free(all);
	return st;
}

void gpul_comm_network_describe(const gpul_comm *c, gpul_comm_view *view)
{
	const gpul_comm_sizes *s = &c->sizes;
	const struct network_parts parts = parts_of(s);

	for (int r = 0; r < c->n_ranks; r++) {
		/* The kernels add the offset of a rank's channels in an arena that contains the channels of all ranks.  The memory
		 * here has the channels of one rank only, so subtract that offset. */
		const uint64_t theirs = (uint64_t)r * s->n_blocks, ours = (uint64_t)c->rank * s->n_blocks;
		unsigned char *at, *slots;

		if (!by_network(c, r))
			continue;
		at = (unsigned char *)(uintptr_t)(gpul_mem_gpu(c->network.counters) + c->network.counters_at[r]);
		slots = (unsigned char *)(uintptr_t)(gpul_mem_gpu(c->network.slots) + c->network.slots_at[r]);
		view->peers[r] = (gpul_comm_peer){
			.inboxes = at + parts.inboxes - theirs * sizeof(gpul_comm_inbox),
			.outboxes = at + parts.outboxes - theirs * sizeof(gpul_comm_outbox),
			.their_inboxes = at + parts.mirror_inboxes - ours * sizeof(gpul_comm_inbox),
			.their_outboxes = at + parts.mirror_outboxes - ours * sizeof(gpul_comm_outbox),
			.slots = slots + parts.slots - theirs * s->slots_bytes,
			.their_slots = slots + parts.mirror_slots - ours * s->slots_bytes,
		};
	}
}

/* ---- the proxy ------------------------------------------------------------------------------------------------------- */

bool gpul_comm_network_undelivered(gpul_comm *c, unsigned least_ms, enum gpul_comm_cause cause, const char *why)
{
	for (int r = 0; r < c->n_ranks; r++) {
		unsigned n_puts;
		uint64_t for_ns;

		/* Puts to a stopped process are not acknowledged either, so exclude ranks whose heartbeat has not changed. */
		if (!by_network(c, r) || !gpul_comm_proxy_unacknowledged(c->network.proxy, r, &n_puts, &for_ns) ||
		    for_ns < (uint64_t)least_ms * 1000 * 1000 || gpul_boot_silent_ms(c->boot, r) >= RUNS_MS)
			continue;
		gpul_comm_fail(c, cause, r,
			       "the network between rank %d (%.24s) and rank %d (%.24s) does not deliver data: %u RDMA writes "
			       "have not been acknowledged for %.1f s%s%.90s",
			       c->rank, gpul_boot_host_name(c->boot, c->rank), r, gpul_boot_host_name(c->boot, r), n_puts,
			       (double)for_ns * 1e-9, *why ? "; " : "", why);
		return true;
	}
	return false;
}

/* Called when a connection has failed.  Usually another rank reports the cause more precisely, so wait a while for its report:
 * after a failure, a rank closes its connections, and its report of the failure may arrive later than the end of the connection. */
static void connection_failed(void *context, int rank, unsigned conn, const gpul_rdma_failure *why)
{
	const int limit_ms = why->native == ESHUTDOWN ? CLOSED_EXPLANATION_MS : EXPLANATION_MS;
	const struct timespec nap = { .tv_nsec = 1000 * 1000 };
	gpul_comm *c = context;
	const gpul_comm_mesh *m = c->network.mesh;
	char nic[60] = "";

	if (gpul_comm_mesh_n_conns(m, rank) > 1)
		(void)snprintf(nic, sizeof nic, " from NIC %.20s to NIC %.20s",
			       gpul_comm_mesh_nic_name(m, c->rank, gpul_comm_mesh_nic_of(m, c->rank, conn)),
			       gpul_comm_mesh_nic_name(m, rank, gpul_comm_mesh_nic_of(m, rank, conn)));
	for (int ms = 0; ms < limit_ms && !atomic_load(&c->failed); ms++) {
		if (gpul_boot_failure(c->boot, NULL))
			return; /* the watch thread of the bootstrap records that failure */
		(void)nanosleep(&nap, NULL);
	}
	if (why->native != EPIPE && why->native != ESHUTDOWN && !why->by_peer &&
	    gpul_comm_network_undelivered(c, UNDELIVERED_MS, GPUL_COMM_RANK_FAILED, why->what))
		return;
	if (why->native != EPIPE && why->native != ESHUTDOWN && gpul_boot_silent_ms(c->boot, rank) >= UNDELIVERED_MS)
		gpul_comm_fail(c, GPUL_COMM_RANK_STALLED, rank,
			       "rank %d (pid %d) is not running: is it stopped by SIGSTOP or a debugger?  %.100s", rank,
			       (int)c->paths[rank].pid, why->what);
	else if (why->native == ETIMEDOUT && !why->by_peer) /* the process of the other rank runs, so the network is the cause */
		gpul_comm_fail(c, GPUL_COMM_RANK_FAILED, rank,
			       "the network between rank %d (%.24s) and rank %d (%.24s) does not deliver data: %.120s", c->rank,
			       gpul_boot_host_name(c->boot, c->rank), rank, gpul_boot_host_name(c->boot, rank), why->what);
	else if (why->native == EPIPE)
		gpul_comm_fail(c, GPUL_COMM_RANK_DIED, rank, "rank %d (pid %d) has ended: its connection with rank %d was closed", rank,
			       (int)c->paths[rank].pid, c->rank);
	else
		gpul_comm_fail(c, GPUL_COMM_RANK_FAILED, rank, "the connection of rank %d with rank %d (pid %d)%s failed: %.30s: %.100s",
			       c->rank, rank, (int)c->paths[rank].pid, nic, why->call, why->what);
}

/* Describe the channels that a connection carries between this rank and another one. */
static void describe_route(gpul_comm *c, int r, unsigned i, gpul_comm_arrivals_desc *arrivals, gpul_comm_proxy_route *out)
{
	const struct network_parts parts = parts_of(&c->sizes);
	struct network *n = &c->network;
	const struct network_memory *theirs = &n->theirs[r].conns[i];
	const unsigned nic = gpul_comm_mesh_nic_of(n->mesh, c->rank, i), n_conns = gpul_comm_mesh_n_conns(n->mesh, r);
	unsigned char *at = (unsigned char *)gpul_mem_cpu(n->counters) + n->counters_at[r];

	*arrivals = (gpul_comm_arrivals_desc){
		.conn = gpul_comm_mesh_conn_at(n->mesh, r, i),
		.announced = (const void *)(at + parts.announced),
		.inboxes = (void *)(at + parts.inboxes),
		.n_blocks = c->sizes.n_blocks,
		.first_block = i,
		.block_step = n_conns,
		.slots = { .region = n->regions[r][nic].data,
			   .at = slots_address(c, r) + parts.slots,
			   .bytes = parts.mirror_slots - parts.slots },
	};
	*out = (gpul_comm_proxy_route){
		.rank = r,
		.nic = nic,
		.first_block = i,
		.block_step = n_conns,
		.region = n->regions[r][nic].mirror,
		.conn = arrivals->conn,
		.inboxes = (const void *)(at + parts.mirror_inboxes),
		.outboxes = (const void *)(at + parts.mirror_outboxes),
		.slots = slots_address(c, r) + parts.mirror_slots,
		.data = theirs->data,
		.steps = theirs->steps,
		.step_stride = n->theirs[r].step_stride,
		.heads = theirs->heads,
		.freed = (const void *)(at + parts.outboxes),
		.arrived = (const void *)(at + parts.inboxes),
		.asks = (const void *)(at + parts.asks),
		.grants = (const void *)(at + parts.grants),
		.to_asks = theirs->asks,
		.to_grants = theirs->grants,
		.free_bytes = theirs->free_bytes,
		.arrivals = n->direct ? arrivals : NULL,
	};
}

gpul_status gpul_comm_network_start(gpul_comm *c, gpul_error *err)
{
	gpul_comm_proxy_route routes[GPUL_COMM_MAX_PEERS * GPUL_COMM_MAX_NICS];
	gpul_comm_arrivals_desc arrivals[GPUL_COMM_MAX_PEERS * GPUL_COMM_MAX_NICS];
	struct network *n = &c->network;
	gpul_comm_proxy_desc desc = {
		.routes = routes,
		.n_blocks = c->sizes.n_blocks,
		.slots_bytes = c->sizes.slots_bytes,
		.data_at = c->sizes.data_at,
		.slot_bytes = c->sizes.slot_bytes,
		.window_bytes = n->window_bytes,
		.spin_ns = c->interprets ? INTERPRETED_SPIN_NS : SPIN_NS,
		.bell = gpul_boot_bell(c->boot),
		.drv = n->direct ? c->drv : NULL,
		.gpu = c->ctx.handle,
		.failed = connection_failed,
		.context = c,
	};

	for (int r = 0; r < c->n_ranks; r++)
		for (unsigned i = 0; by_network(c, r) && i < gpul_comm_mesh_n_conns(n->mesh, r); i++, desc.n_routes++)
			describe_route(c, r, i, &arrivals[desc.n_routes], &routes[desc.n_routes]);
	return desc.n_routes ? gpul_comm_proxy_start(&desc, &n->proxy, err) : GPUL_OK;
}

void gpul_comm_network_report(gpul_comm *c)
{
	gpul_comm_proxy_report(c->network.proxy);
}

void gpul_comm_network_leave(gpul_comm *c)
{
	gpul_comm_proxy_leave(c->network.proxy);
}

void gpul_comm_network_destroy(gpul_comm *c)
{
	struct network *n = &c->network;

	gpul_comm_proxy_stop(n->proxy);
	gpul_comm_mesh_disconnect(n->mesh);
	unregister_words(c);
	unregister_slots(c);
	gpul_comm_mesh_destroy(n->mesh);
	gpul_mem_destroy(n->slots);
	gpul_mem_destroy(n->counters);
	*n = (struct network){ 0 };
}
