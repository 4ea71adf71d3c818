/* verbs_ports.c — queries the ports of an RDMA device and their GIDs. */
#include "rdma/verbs/verbs_query_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/verbs/gid.h"

/* Codes of InfiniBand's PortInfo (LinkWidthActive, LinkSpeedActive, PortPhysicalState); the speeds are those in
 * /sys/class/infiniband/DEVICE/ports/N/rate. */
static unsigned lanes_of(uint8_t width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 0;
	}
}

static double gbps_of(uint8_t speed)
{
	switch (speed) {
	case 1:
		return 2.5; /* SDR */
	case 2:
		return 5; /* DDR */
	case 4:
		return 10; /* QDR */
	case 8:
		return 10; /* FDR-10 */
	case 16:
		return 14; /* FDR */
	case 32:
		return 25; /* EDR */
	case 64:
		return 50; /* HDR */
	case 128:
		return 100; /* NDR */
	default:
		return 0;
	}
}

static const char *physical_state_of(uint8_t state)
{
	static const char *const names[] = { "", "Sleep", "Polling", "Disabled", "Training", "LinkUp", "LinkErrorRecovery", "PhyTest" };

	return state < sizeof names / sizeof *names ? names[state] : "";
}

static const char *state_of(enum ibv_port_state state)
{
	static const char *const names[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER" };

	return (unsigned)state < sizeof names / sizeof *names ? names[state] : "?";
}

static const char *layer_of(uint8_t layer)
{
	return layer == IBV_LINK_LAYER_INFINIBAND ? "InfiniBand" : layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "unspecified";
}

static unsigned bytes_of_mtu(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static void fill_port(const struct ibv_port_attr *a, gpul_verbs_port_info *p)
{
	p->active = a->state == IBV_PORT_ACTIVE;
	snprintf(p->state, sizeof p->state, "%s", state_of(a->state));
	snprintf(p->physical_state, sizeof p->physical_state, "%s", physical_state_of(a->phys_state));
	snprintf(p->link_layer, sizeof p->link_layer, "%s", layer_of(a->link_layer));
	p->width = lanes_of(a->active_width);
	p->lane_gbps = gbps_of(a->active_speed);
	p->gbps = p->width * p->lane_gbps;
	p->mtu = bytes_of_mtu(a->active_mtu);
	p->max_mtu = bytes_of_mtu(a->max_mtu);
	p->lid = a->lid;
	p->sm_lid = a->sm_lid;
	p->lmc = a->lmc;
	p->sm_sl = a->sm_sl;
	p->gid_entries = a->gid_tbl_len > 0 ? (unsigned)a->gid_tbl_len : 0;
	p->pkey_entries = a->pkey_tbl_len;
	p->max_message_bytes = a->max_msg_sz;
}

static void fill_gid(const struct ibv_gid_entry *e, gpul_verbs_gid_info *g)
{
	char name[IF_NAMESIZE];

	g->index = e->gid_index;
	snprintf(g->type, sizeof g->type, "%s", gpul_verbs_gid_type(e->gid_type));
	gpul_verbs_gid_text(&e->gid, g->address);
	g->ipv4 = gpul_verbs_gid_ipv4(&e->gid);
	g->link_local = gpul_verbs_gid_link_local(&e->gid);
	if (e->ndev_ifindex && if_indextoname(e->ndev_ifindex, name))
		snprintf(g->netdev, sizeof g->netdev, "%s", name);
}

/* Fill in the GIDs of one port, and choose the GID that a connection would use. */
static gpul_status fill_gids(const struct ibv_gid_entry *entries, size_t n, gpul_verbs_port_info *p, gpul_error *err)
{
	struct ibv_gid_entry chosen;
	gpul_error why_not = { 0 };

	p->gids = calloc(n + 1, sizeof *p->gids);
	if (!p->gids)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu GIDs", n);
	for (size_t i = 0; i < n; i++)
		if (entries[i].port_num == (uint32_t)p->number)
			fill_gid(&entries[i], &p->gids[p->n_gids++]);
	if (gpul_verbs_gid_choose(entries, n, (uint32_t)p->number, !strcmp(p->link_layer, "Ethernet"), -1, &chosen, p->gid_why,
				  sizeof p->gid_why, &why_not))
		snprintf(p->gid_why, sizeof p->gid_why, "%.*s", (int)sizeof p->gid_why - 1, why_not.text);
	else
		p->chosen_gid = (int)chosen.gid_index;
	return GPUL_OK;
}

gpul_status gpul_verbs_read_ports(const struct gpul_verbs *v, struct ibv_context *ctx, gpul_verbs_device_info *d, gpul_error *err)
{
	size_t n_entries = 0, n_ports = d->n_ports;
	struct ibv_gid_entry *entries = NULL;
	gpul_status st = GPUL_OK;
	ssize_t n;

	d->n_ports = 0;
	d->ports = calloc(n_ports + 1, sizeof *d->ports);
	for (; d->ports && d->n_ports < n_ports; d->n_ports++) {
		gpul_verbs_port_info *p = &d->ports[d->n_ports];
		struct ibv_port_attr a = { .state = IBV_PORT_NOP };
		int r;

		*p = (gpul_verbs_port_info){ .number = (int)d->n_ports + 1, .chosen_gid = -1 };
		r = v->query_port(ctx, (uint8_t)p->number, &a);
		if (r)
			snprintf(p->error, sizeof p->error, "ibv_query_port: %s", strerror(gpul_verbs_errno(r)));
		else
			fill_port(&a, p);
		n_entries += p->gid_entries;
	}
	/* The query fails if the array is too small for the entries that are not empty; a table has at most a few hundred entries. */
	entries = calloc(n_entries + 1, sizeof *entries);
	if (!d->ports || !entries)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu ports and %zu GIDs", n_ports, n_entries);
	n = entries && n_entries ? v->query_gid_table(ctx, entries, n_entries, 0) : 0;
	for (size_t i = 0; !st && i < d->n_ports; i++) {
		st = fill_gids(entries, n > 0 ? (size_t)n : 0, &d->ports[i], err);
		if (n < 0)
			snprintf(d->ports[i].gid_why, sizeof d->ports[i].gid_why, "_ibv_query_gid_table: %s", strerror((int)-n));
	}
	free(entries);
	return st;
}

#endif
