/* so_devices.c — a fake libibverbs with some devices, their attributes, ports and GIDs; the test can make any call fail.
 *
 *     mlx5_0   InfiniBand, 400 Gbit/s; its provider has the newer functions of struct verbs_context
 *     mlx5_1   RoCE, two ports, the second down; its provider has only the functions that all providers have
 *     iw0      iWARP
 *     locked   cannot be opened: EACCES
 *
 * $FAKE_VERBS_DEVICES: the list ends after this number of devices; default: all.  Tests do not link this library: they set
 * $GPULOAD_IBVERBS to its path. */
#if __has_include(<infiniband/verbs.h>)

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_query_port

enum { N_DEVICES = 4 };

int fake_verbs_fail_at, fake_verbs_calls, fake_verbs_alive; /* the test finds them with dlsym() */

static struct ibv_device devices[N_DEVICES] = {
	{ .name = "mlx5_0", .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB },
	{ .name = "mlx5_1", .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB },
	{ .name = "iw0", .node_type = IBV_NODE_RNIC, .transport_type = IBV_TRANSPORT_IWARP },
	{ .name = "locked", .node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB },
};
static struct verbs_context contexts[N_DEVICES];

/* Count a call; returns true, with errno EIO, if this call must fail. */
static int fails(void)
{
	errno = EIO;
	return ++fake_verbs_calls == fake_verbs_fail_at;
}

struct ibv_device **ibv_get_device_list(int *n)
{
	const char *text = getenv("FAKE_VERBS_DEVICES");
	struct ibv_device **list = calloc(N_DEVICES + 1, sizeof(struct ibv_device *));

	if (fails() || !list) {
		free(list);
		return NULL;
	}
	*n = text ? atoi(text) : N_DEVICES;
	for (int i = 0; i < *n; i++)
		list[i] = &devices[i];
	fake_verbs_alive++;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	fake_verbs_alive--;
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	return type == IBV_NODE_RNIC ? "iWARP NIC" : "InfiniBand channel adapter";
}

static void fill_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof *a);
	strcpy(a->fw_ver, "28.39.1002");
	a->node_guid = htobe64(0x506b4b0300a1b2c3);
	a->sys_image_guid = htobe64(0x506b4b0300a1b2c0);
	a->vendor_id = 0x02c9;
	a->vendor_part_id = 4129;
	a->max_qp = 131072;
	a->max_mr = 16777216;
	a->max_mr_size = UINT64_MAX;
	a->max_sge = 30;
	a->max_fmr = -1;
	a->max_ah = -1;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->device_cap_flags = IBV_DEVICE_XRC;
	a->phys_port_cnt = ctx->device == &devices[1] ? 2 : 1;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	if (fails())
		return EIO;
	fill_device(ctx, a);
	return 0;
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *a,
			   size_t bytes)
{
	(void)input;
	if (fails())
		return -1; /* older providers return -1 and set errno */
	memset(a, 0, bytes);
	fill_device(ctx, &a->orig_attr);
	a->odp_caps.general_caps = IBV_ODP_SUPPORT;
	a->odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE;
	a->device_cap_flags_ex = IBV_DEVICE_XRC | IBV_DEVICE_PCI_WRITE_END_PADDING;
	a->hca_core_clock = 1000000;
	return 0;
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *a, size_t bytes)
{
	int ethernet = ctx->device != &devices[0];

	if (fails())
		return EIO;
	memset(a, 0, bytes);
	a->state = port == 1 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	a->phys_state = port == 1 ? 5 : 3;
	a->link_layer = ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
	a->max_mtu = IBV_MTU_4096;
	a->active_mtu = ethernet ? IBV_MTU_1024 : IBV_MTU_4096;
	a->active_width = 2;
	a->active_speed = ethernet ? 32 : 128;
	a->gid_tbl_len = ethernet ? 4 : 1;
	a->max_msg_sz = 1u << 30;
	a->lid = ethernet ? 0 : 17;
	a->sm_lid = ethernet ? 0 : 1;
	return 0;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *a)
{
	/* The caller's structure is a struct ibv_port_attr; this version of the function knows the fields before `flags`. */
	return query_port(ctx, port, (struct ibv_port_attr *)a, offsetof(struct ibv_port_attr, flags));
}

static struct ibv_gid_entry gid(uint32_t port, uint32_t index, uint32_t type, const char *address)
{
	struct ibv_gid_entry e = { .port_num = port, .gid_index = index, .gid_type = type, .ndev_ifindex = port };

	inet_pton(AF_INET6, address, e.gid.raw);
	return e;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max, uint32_t flags, size_t entry_bytes)
{
	const struct ibv_gid_entry of_roce[] = {
		gid(1, 0, IBV_GID_TYPE_ROCE_V1, "fe80::526b:4bff:fea1:b2c3"), gid(1, 1, IBV_GID_TYPE_ROCE_V2, "fe80::526b:4bff:fea1:b2c3"),
		gid(1, 2, IBV_GID_TYPE_ROCE_V1, "::ffff:192.168.7.1"), gid(1, 3, IBV_GID_TYPE_ROCE_V2, "::ffff:192.168.7.1"),
		gid(2, 0, IBV_GID_TYPE_ROCE_V2, "fe80::526b:4bff:fea1:b2c4"),
	}, of_ib = gid(1, 0, IBV_GID_TYPE_IB, "fe80::506b:4b03:a1:b2c3");
	size_t n = ctx->device == &devices[0] ? 1 : ctx->device == &devices[1] ? 5 : 0;

	if (fails())
		return -EIO;
	if (entry_bytes != sizeof *entries || flags || max < n)
		return -EINVAL;
	memcpy(entries, n == 1 ? &of_ib : of_roce, n * sizeof *entries);
	return (ssize_t)n;
}

struct ibv_context *ibv_open_device(struct ibv_device *d)
{
	struct verbs_context *c = &contexts[d - devices];

	if (fails())
		return NULL;
	if (d == &devices[3]) {
		errno = EACCES;
		return NULL;
	}
	*c = (struct verbs_context){ .sz = sizeof *c,
				     .query_device_ex = query_device_ex,
				     .query_port = query_port,
				     .context = { .device = d, .abi_compat = d == &devices[0] ? __VERBS_ABI_IS_EXTENDED : NULL } };
	fake_verbs_alive++;
	return &c->context;
}

int ibv_close_device(struct ibv_context *ctx)
{
	(void)ctx;
	fake_verbs_alive--;
	return 0;
}

static void *create(size_t bytes)
{
	void *object = fails() ? NULL : calloc(1, bytes);

	fake_verbs_alive += object != NULL;
	return object;
}

static int destroy(void *object)
{
	fake_verbs_alive--;
	free(object);
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	(void)ctx;
	return create(sizeof(struct ibv_pd));
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return destroy(pd);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int n, void *user, struct ibv_comp_channel *channel, int vector)
{
	(void)ctx, (void)n, (void)user, (void)channel, (void)vector;
	return create(sizeof(struct ibv_cq));
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return destroy(cq);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	(void)pd;
	if (a->cap.max_inline_data > 220) {
		errno = EINVAL;
		return NULL;
	}
	a->cap.max_inline_data = 220;
	return create(sizeof(struct ibv_qp));
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return destroy(qp);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)bytes, (void)iova, (void)access;
	errno = fd < 0 ? EBADF : EIO;
	return NULL;
}

/* The other functions of the table must exist; they are not called. */
static __attribute__((used)) void never(void)
{
	abort();
}
#define STUB(name) __asm__(".globl ibv_" #name "\n.set ibv_" #name ", never");
/* clang-format off */
STUB(get_device_guid) STUB(query_gid) STUB(query_pkey) STUB(get_async_event) STUB(ack_async_event) STUB(reg_mr) STUB(reg_mr_iova2)
STUB(dereg_mr) STUB(create_comp_channel) STUB(destroy_comp_channel) STUB(get_cq_event) STUB(ack_cq_events) STUB(modify_qp)
STUB(query_qp) STUB(create_ah) STUB(destroy_ah) STUB(wc_status_str) STUB(event_type_str) STUB(port_state_str)
/* clang-format on */

#else
extern int fake_verbs_fail_at;
int fake_verbs_fail_at; /* without <infiniband/verbs.h>, this library is empty, and the tests that need it are skipped */
#endif
