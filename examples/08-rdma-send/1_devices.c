/* 1_devices.c — prints the RDMA devices of this machine, their ports, and the addresses of each port.
 *
 *     1_devices
 *
 * A device is a NIC as libibverbs sees it.  A GID is an address of a port: 16 bytes, like an IPv6 address. */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "lesson.h"

/* An IPv4 address is stored in a GID as ::ffff:10.9.0.1. */
static bool is_ipv4(const union ibv_gid *gid)
{
	static const unsigned char prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, prefix, sizeof prefix) == 0;
}

static void print_gid(struct ibv_context *device, uint8_t port, int index)
{
	static const union ibv_gid empty;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	char text[INET6_ADDRSTRLEN];

	/* ibv_query_gid gives the address; ibv_query_gid_ex also gives the type, which must be the same on both sides. */
	if (ibv_query_gid(device, port, index, &gid) || memcmp(&gid, &empty, sizeof gid) == 0 ||
	    ibv_query_gid_ex(device, port, (uint32_t)index, &entry, 0))
		return;
	inet_ntop(AF_INET6, gid.raw, text, sizeof text);
	printf("    GID %d  %s, %s%s\n", index, text,
	       entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
	       : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
							: "InfiniBand",
	       is_ipv4(&gid) && entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "  (an IPv4 address: the next steps use it)" : "");
}

static void print_port(struct ibv_context *device, uint8_t port)
{
	struct ibv_port_attr p;

	lesson_need(!ibv_query_port(device, port, &p), "ibv_query_port");
	printf("  port %u: %s, %s, packets of up to %d bytes\n", port, ibv_port_state_str(p.state),
	       p.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", 128 << p.active_mtu);
	for (int i = 0; i < p.gid_tbl_len; i++)
		print_gid(device, port, i);
}

static void print_device(struct ibv_device *d)
{
	struct ibv_context *device = ibv_open_device(d);
	struct ibv_device_attr a;

	lesson_need(device != NULL, "ibv_open_device");
	lesson_need(!ibv_query_device(device, &a), "ibv_query_device");
	printf("%s: %d port%s, at most %d queue pairs, %d registrations\n", ibv_get_device_name(d), a.phys_port_cnt,
	       a.phys_port_cnt == 1 ? "" : "s", a.max_qp, a.max_mr);
	for (int port = 1; port <= a.phys_port_cnt; port++)
		print_port(device, (uint8_t)port);
	ibv_close_device(device);
}

int main(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (!list || n == 0)
		lesson_skip("no RDMA device on this machine");
	for (int i = 0; i < n; i++)
		print_device(list[i]);
	ibv_free_device_list(list);
	return 0;
}
