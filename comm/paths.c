/* paths.c — exchanges information between the ranks, and chooses the transport of each pair of ranks. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm_internal.h"

/* Check that the options are equal on all ranks. */
static gpul_status check_equal(const gpul_comm *c, int r, gpul_error *err)
{
	const struct rank_info *a = &c->infos[0], *b = &c->infos[r];
	const char *what = strcmp(a->driver, b->driver) != 0        ? "the driver"
			   : a->transport != b->transport           ? "options.transport"
			   : a->n_blocks != b->n_blocks             ? "options.n_blocks"
			   : a->slot_bytes != b->slot_bytes         ? "options.slot_bytes"
			   : a->timeout_ms != b->timeout_ms         ? "options.timeout_ms"
			   : a->plan != b->plan                     ? "options.algo or options.proto"
			   : a->ranks_per_host != b->ranks_per_host ? "options.ranks_per_host"
			   : a->table_hash != b->table_hash         ? "the tuning table"
								    : NULL;

	return what ? gpul_fail(err, GPUL_EINVAL, 0, "%s of rank 0 and of rank %d differ: all ranks must use the same value", what, r)
		    : GPUL_OK;
}

static void describe_self(gpul_comm *c, struct rank_info *info)
{
	CUuuid uuid = { { 0 } };

	*info = (struct rank_info){ .pid = getpid(),
				    .transport = c->options.transport,
				    .n_blocks = c->options.n_blocks,
				    .slot_bytes = c->options.slot_bytes,
				    .ranks_per_host = c->options.ranks_per_host,
				    .timeout_ms = c->options.timeout_ms,
				    .plan = (uint32_t)c->options.algo << 8 | c->options.proto,
				    .table_hash = gpul_comm_table_hash(c) };
	(void)snprintf(info->driver, sizeof info->driver, "%s", c->drv->name);
	(void)c->drv->cuDeviceGetName(info->device_name, sizeof info->device_name, c->ctx.device);
	(void)c->drv->cuDeviceGetUuid(&uuid, c->ctx.device);
	memcpy(info->device_uuid, uuid.bytes, sizeof info->device_uuid);
}

gpul_status gpul_comm_introduce(gpul_comm *c, int timeout_ms, gpul_error *err)
{
	struct rank_info info;
	gpul_status st;

	describe_self(c, &info);
	st = gpul_boot_allgather(c->boot, &info, sizeof info, c->infos, timeout_ms, err);
	for (int r = 1; !st && r < c->n_ranks; r++)
		st = check_equal(c, r, err);
	return st;
}

/* Return the ordinal, in this process, of the GPU with a UUID; -1: the GPU is not visible. */
static int ordinal_of(const gpul_driver *drv, const char uuid[16])
{
	int n = 0;

	(void)drv->cuDeviceGetCount(&n);
	for (int i = 0; i < n; i++) {
		CUdevice device;
		CUuuid u;

		if (!drv->cuDeviceGet(&device, i) && !drv->cuDeviceGetUuid(&u, device) && memcmp(u.bytes, uuid, 16) == 0)
			return i;
	}
	return -1;
}

/* True if this rank's GPU can access device memory of rank r; otherwise the reason is stored, for messages. */
static bool reaches(gpul_comm *c, int r)
{
	const struct rank_info *info = &c->infos[r];
	gpul_comm_path *path = &c->paths[r];
	CUdevice device;
	int can = 0;

	path->pid = info->pid;
	path->device = -1;
	if (gpul_boot_host(c->boot, r) != gpul_boot_host(c->boot, c->rank))
		return false;
	path->device = ordinal_of(c->drv, info->device_uuid);
	if (path->device == c->device) {
		(void)snprintf(path->reason, sizeof path->reason, "same GPU");
		return true;
	}
	if (path->device < 0) {
		(void)snprintf(path->reason, sizeof path->reason,
			       "the GPU of the other rank is not visible in this process (CUDA_VISIBLE_DEVICES)");
		return false;
	}
	if (!c->drv->cuDeviceGet(&device, path->device) && !c->drv->cuDeviceCanAccessPeer(&can, c->ctx.device, device) && can) {
		(void)snprintf(path->reason, sizeof path->reason, "peer access between GPU %d and GPU %d", c->device, path->device);
		return true;
	}
	(void)snprintf(path->reason, sizeof path->reason, "GPU %d cannot access GPU %d's memory", c->device, path->device);
	return false;
}

/* Choose the transport of a pair; both ranks choose the same. here: this rank's GPU can access the other rank's device memory;
 * there: the reverse. */
static gpul_status choose(gpul_comm *c, int r, bool here, bool there, gpul_error *err)
{
	const gpul_comm_transport wanted = c->options.transport;
	const bool far = gpul_boot_host(c->boot, r) != gpul_boot_host(c->boot, c->rank);
	gpul_comm_path *path = &c->paths[r];

	if (r == c->rank) {
		(void)snprintf(path->reason, sizeof path->reason, "itself");
		path->transport = wanted == GPUL_COMM_HOST ? GPUL_COMM_HOST : GPUL_COMM_DEVICE;
		return GPUL_OK;
	}
	if (far)
		(void)snprintf(path->reason, sizeof path->reason, "the other rank runs on host %.40s", gpul_boot_host_name(c->boot, r));
	else if (here && !there)
		(void)snprintf(path->reason, sizeof path->reason, "rank %d cannot access GPU %d's memory", r, c->device);
	if ((wanted == GPUL_COMM_DEVICE && !(here && there)) || (wanted == GPUL_COMM_HOST && far))
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "transport %s is not possible between rank %d and rank %d: %s",
				 gpul_comm_transport_name(wanted), c->rank, r, path->reason);
	path->transport = far ? GPUL_COMM_NET : here && there ? GPUL_COMM_DEVICE : GPUL_COMM_HOST;
	if (wanted == GPUL_COMM_HOST || wanted == GPUL_COMM_NET) {
		path->transport = wanted;
		if (!far)
			(void)snprintf(path->reason, sizeof path->reason, "requested");
	}
	return GPUL_OK;
}

/* If an option needs shared memory between all ranks, check that no pair uses the network. */
static gpul_status check_network(const gpul_comm *c, gpul_error *err)
{
	const gpul_comm_proto proto = c->options.proto;

	if (!c->has_network)
		return GPUL_OK;
	if (proto == GPUL_COMM_LL || proto == GPUL_COMM_LL128)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "protocol %s is not possible over the network, where only protocol simple works: use "
				 "options.proto simple or auto",
				 gpul_comm_proto_name(proto));
	if (c->options.algo == GPUL_COMM_ONE_SHOT)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "algorithm %s is not possible: all ranks must share memory, but some pairs of ranks are "
				 "connected only by the network",
				 gpul_comm_algo_name(c->options.algo));
	return GPUL_OK;
}

gpul_status gpul_comm_choose_paths(gpul_comm *c, int timeout_ms, gpul_error *err)
{
	uint8_t mine[GPUL_COMM_MAX_PEERS] = { 0 }, all[GPUL_COMM_MAX_PEERS][GPUL_COMM_MAX_PEERS];
	gpul_error results[GPUL_COMM_MAX_PEERS], result = { 0 };
	bool needs_network = false, networks[GPUL_COMM_MAX_PEERS];
	gpul_status st;

	for (int r = 0; r < c->n_ranks; r++)
		mine[r] = reaches(c, r);
	st = gpul_boot_allgather(c->boot, mine, sizeof mine, all, timeout_ms, err);
	if (st)
		return st;
	for (int r = 0; r < c->n_ranks && !result.status; r++)
		(void)choose(c, r, mine[r], all[r][c->rank], &result);
	for (int r = 0; r < c->n_ranks; r++)
		needs_network |= c->paths[r].transport == GPUL_COMM_NET;
	st = gpul_boot_allgather(c->boot, &needs_network, sizeof needs_network, networks, timeout_ms, err);
	for (int r = 0; !st && r < c->n_ranks; r++)
		c->has_network |= networks[r];
	if (!st && !result.status)
		(void)check_network(c, &result);
	st = st ? st : gpul_boot_allgather(c->boot, &result, sizeof result, results, timeout_ms, err);
	for (int r = 0; !st && r < c->n_ranks; r++)
		if (results[r].status)
			st = gpul_fail(err, results[r].status, results[r].native, "%s", results[r].text);
	return st;
}
