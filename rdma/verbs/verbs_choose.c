/* verbs_choose.c — opens a NIC and chooses its port, GID and MTU. */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/nic/topology.h"

size_t gpul_verbs_gids(const gpul_verbs_device *d, struct ibv_gid_entry entries[GPUL_VERBS_MAX_GIDS])
{
	const ssize_t n = d->v->query_gid_table(d->ctx, entries, GPUL_VERBS_MAX_GIDS, 0);

	return n > 0 ? (size_t)n : 0;
}

static gpul_status query_port(gpul_verbs_device *d, uint8_t port, gpul_error *err)
{
	const int r = d->v->query_port(d->ctx, port, &d->port_attr);

	return r ? gpul_verbs_fail(err, gpul_verbs_errno(r), 0, "ibv_query_port %u", port) : GPUL_OK;
}

/* Choose the port that the user gives, which must be active, or else the first active port. */
static gpul_status choose_port(gpul_verbs_device *d, const char *name, int wish, gpul_error *err)
{
	const int n_ports = d->attr.orig_attr.phys_port_cnt;
	char states[120] = "";
	gpul_status st;

	if (wish > n_ports)
		return gpul_fail(err, GPUL_EINVAL, wish, "%s has no port %d: its ports are 1 to %d", name, wish, n_ports);
	for (int port = wish ? wish : 1; port <= (wish ? wish : n_ports); port++) {
		const size_t used = strlen(states);

		st = query_port(d, (uint8_t)port, err);
		if (st)
			return st;
		if (d->port_attr.state == IBV_PORT_ACTIVE) {
			d->port = (uint8_t)port;
			d->ethernet = d->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
			return GPUL_OK;
		}
		snprintf(states + used, sizeof states - used, "%sport %d is %s", used ? ", " : "", port,
			 d->v->port_state_str(d->port_attr.state));
	}
	return gpul_fail(err, GPUL_EUNSUPPORTED, (int)d->port_attr.state,
			 "%s has no active port: %s: check the cable and the network interface (ip link set up)", name,
			 *states ? states : "the device has no port");
}

static enum ibv_mtu mtu_from_bytes(int bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 256 << mtu <= bytes)
		mtu++;
	return mtu;
}

static gpul_status choose_gid(gpul_verbs_device *d, int wish, char *why, size_t why_bytes, gpul_error *err)
{
	struct ibv_gid_entry *entries = calloc(GPUL_VERBS_MAX_GIDS, sizeof *entries);
	gpul_status st;
	size_t n;

	if (!entries)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a GID table");
	n = gpul_verbs_gids(d, entries);
	st = gpul_verbs_gid_choose(entries, n, d->port, d->ethernet, wish, &d->gid, why, why_bytes, err);
	if (st)
		gpul_verbs_gid_log(GPUL_LOG_NOTICE, entries, n, d->port);
	free(entries);
	return st;
}

/* Check the queue pair type: UC on a fabric that drops packets loses messages, because the NIC does not retransmit them. */
static gpul_status check_transport(const gpul_verbs_device *d, const gpul_rdma_device_desc *desc, const char *name, gpul_error *err)
{
	if (d->uc && d->ethernet && !desc->lossless)
		return gpul_fail(
			err, GPUL_EUNSUPPORTED, 0,
			"%s port %u is Ethernet, which drops packets, and an unreliable connection (UC) does not "
			"retransmit them: use RC, or assert by --lossless that the fabric loses none (priority flow control on every "
			"hop)",
			name, d->port);
	return GPUL_OK;
}

/* Open one device, and choose its port, GID and MTU. */
static gpul_status open_device(gpul_verbs_device *d, struct ibv_device *device, const gpul_rdma_device_desc *desc, const char *reason,
			       gpul_error *err)
{
	const char *name = d->v->get_device_name(device);
	char gid_why[120] = "";
	gpul_status st;
	int r;

	if (device->transport_type != IBV_TRANSPORT_IB)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s is not RoCE or InfiniBand: it has no RDMA write with immediate", name);
	d->ctx = d->v->open_device(device);
	if (!d->ctx)
		return gpul_verbs_fail(err, errno, 0, "ibv_open_device %s", name);
	r = d->v->query_device_ex(d->ctx, NULL, &d->attr);
	st = r ? gpul_verbs_fail(err, gpul_verbs_errno(r), 0, "ibv_query_device_ex %s", name) : GPUL_OK;
	if (!st)
		st = choose_port(d, name, desc->port, err);
	if (!st)
		st = choose_gid(d, desc->gid_index, gid_why, sizeof gid_why, err);
	if (!st)
		st = check_transport(d, desc, name, err);
	if (st) {
		(void)d->v->close_device(d->ctx);
		d->ctx = NULL;
		return st;
	}
	d->mtu = d->port_attr.active_mtu;
	if (desc->mtu && mtu_from_bytes(desc->mtu) < d->mtu)
		d->mtu = mtu_from_bytes(desc->mtu);
	snprintf(d->info.name, sizeof d->info.name, "%.48s port %u", name, d->port);
	snprintf(d->info.why, sizeof d->info.why, "%.104s, %s; %.64s", reason, desc->port ? "port chosen by the user" : "first active port",
		 gid_why);
	return GPUL_OK;
}

/* Return the index of the device that is nearest to the GPU of the description, or, without a GPU, of the fastest device; -1: sysfs
 * lists none of the devices. */
static int find_nearest(const gpul_verbs_device *d, struct ibv_device *const *list, int n, const gpul_rdma_device_desc *desc,
			char reason[GPUL_NIC_WHY_BYTES])
{
	const char **names = calloc((size_t)n + 1, sizeof *names);
	gpul_nic_topology *topology = NULL;
	char gpu[GPUL_PCI_TEXT_BYTES] = "";
	const gpul_nic *nic = NULL;
	size_t n_names = 0;
	int found = -1;

	if (desc->drv && desc->gpu >= 0)
		gpul_nic_gpu_address(desc->drv, desc->gpu, gpu);
	for (int i = 0; names && i < n; i++)
		if (list[i]->transport_type == IBV_TRANSPORT_IB)
			names[n_names++] = d->v->get_device_name(list[i]);
	if (n_names && !gpul_nic_topology_read(NULL, &topology, NULL))
		nic = gpul_nic_choose(topology, gpu, names, n_names, reason);
	for (int i = 0; nic && found < 0 && i < n; i++)
		if (!strcmp(d->v->get_device_name(list[i]), nic->name))
			found = i;
	gpul_nic_topology_free(topology);
	free(names);
	return found;
}

/* Open the nearest device, or, if it cannot be used, the first other device that can. */
static gpul_status open_nearest(gpul_verbs_device *d, struct ibv_device *const *list, int n, const gpul_rdma_device_desc *desc,
				gpul_error *err)
{
	char reason[GPUL_NIC_WHY_BYTES] = "";
	int nearest = find_nearest(d, list, n, desc, reason);
	gpul_status st = nearest < 0 ? GPUL_EUNSUPPORTED : open_device(d, list[nearest], desc, reason, err);

	for (int i = 0; i < n && st; i++)
		if (i != nearest)
			st = open_device(d, list[i], desc, nearest < 0 ? "first usable device" : "the nearest NIC cannot be used", err);
	return st;
}

gpul_status gpul_verbs_choose(gpul_verbs_device *d, const gpul_rdma_device_desc *desc, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = GPUL_EUNSUPPORTED;
	int n = 0;
	struct ibv_device **list = d->v->get_device_list(&n);

	if (!list && errno != ENOSYS)
		return gpul_verbs_fail(err, errno, 0, "ibv_get_device_list");
	if (!list || n == 0)
		gpul_fail(&why, st, 0, "this machine has no RDMA device%s", list ? "" : " (the kernel module ib_uverbs is not loaded)");
	else if (!desc->device)
		st = open_nearest(d, list, n, desc, &why); /* keeps the first error in `why` */
	for (int i = 0; desc->device && i < n && st; i++)
		if (strcmp(d->v->get_device_name(list[i]), desc->device) == 0)
			st = open_device(d, list[i], desc, "chosen by the user", &why);
	if (list)
		d->v->free_device_list(list);
	if (st && !why.status)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "no RDMA device has the name '%s': `gpuload rdma devices` lists the %d of this machine", desc->device, n);
	return st ? gpul_fail(err, why.status, why.native, "%s", why.text) : GPUL_OK;
}

#endif
