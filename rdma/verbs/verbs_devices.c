/* verbs_devices.c — opens and queries every RDMA device. */
#include "rdma/verbs/verbs_devices.h"

#include <stdlib.h>

#include "rdma/verbs/verbs_lib.h"

void gpul_verbs_devices_free(gpul_verbs_devices *d)
{
	for (size_t i = 0; i < d->n; i++) {
		for (size_t p = 0; p < d->at[i].n_ports; p++)
			free(d->at[i].ports[p].gids);
		free(d->at[i].ports);
	}
	free(d->at);
	*d = (gpul_verbs_devices){ 0 };
}

#if GPUL_HAVE_LIBIBVERBS

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rdma/verbs/verbs_query_internal.h"

static void write_guid(__be64 guid, char out[20])
{
	unsigned char b[8];

	memcpy(b, &guid, sizeof b);
	snprintf(out, 20, "%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]);
}

static void add_word(char *text, size_t text_bytes, const char *word)
{
	size_t n = strlen(text);

	snprintf(text + n, text_bytes - n, "%s%s", n ? " " : "", word);
}

struct flag {
	uint64_t bit;
	const char *name;
};

static void write_flags(uint64_t value, const struct flag *flags, size_t n, char *out, size_t out_bytes)
{
	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		if (value & flags[i].bit)
			add_word(out, out_bytes, flags[i].name);
	if (!out[0])
		snprintf(out, out_bytes, "none");
}

static void write_capabilities(const struct ibv_device_attr_ex *a, gpul_verbs_device_info *d)
{
	static const struct flag device[] = {
		{ IBV_DEVICE_RESIZE_MAX_WR, "resize_max_wr" }, { IBV_DEVICE_BAD_PKEY_CNTR, "bad_pkey_counter" },
		{ IBV_DEVICE_BAD_QKEY_CNTR, "bad_qkey_counter" }, { IBV_DEVICE_RAW_MULTI, "raw_multicast" },
		{ IBV_DEVICE_AUTO_PATH_MIG, "path_migration" }, { IBV_DEVICE_CHANGE_PHY_PORT, "change_port" },
		{ IBV_DEVICE_UD_AV_PORT_ENFORCE, "ud_port_enforce" }, { IBV_DEVICE_SHUTDOWN_PORT, "shutdown_port" },
		{ IBV_DEVICE_PORT_ACTIVE_EVENT, "port_active_event" }, { IBV_DEVICE_SYS_IMAGE_GUID, "system_guid" },
		{ IBV_DEVICE_RC_RNR_NAK_GEN, "rnr_nak" }, { IBV_DEVICE_SRQ_RESIZE, "srq_resize" },
		{ IBV_DEVICE_N_NOTIFY_CQ, "n_notify_cq" }, { IBV_DEVICE_MEM_WINDOW, "memory_window" },
		{ IBV_DEVICE_UD_IP_CSUM, "ud_ip_checksum" }, { IBV_DEVICE_XRC, "xrc" },
		{ IBV_DEVICE_MEM_MGT_EXTENSIONS, "memory_management" }, { IBV_DEVICE_MEM_WINDOW_TYPE_2A, "memory_window_2a" },
		{ IBV_DEVICE_MEM_WINDOW_TYPE_2B, "memory_window_2b" }, { IBV_DEVICE_RC_IP_CSUM, "rc_ip_checksum" },
		{ IBV_DEVICE_RAW_IP_CSUM, "raw_ip_checksum" }, { IBV_DEVICE_MANAGED_FLOW_STEERING, "flow_steering" },
		{ IBV_DEVICE_RAW_SCATTER_FCS, "raw_scatter_fcs" }, { IBV_DEVICE_PCI_WRITE_END_PADDING, "write_end_padding" },
	}, paging[] = {
		{ IBV_ODP_SUPPORT_SEND, "send" }, { IBV_ODP_SUPPORT_RECV, "recv" }, { IBV_ODP_SUPPORT_WRITE, "write" },
		{ IBV_ODP_SUPPORT_READ, "read" }, { IBV_ODP_SUPPORT_ATOMIC, "atomic" }, { IBV_ODP_SUPPORT_SRQ_RECV, "srq_recv" },
	};
	bool pages = a->odp_caps.general_caps & IBV_ODP_SUPPORT;

	/* device_cap_flags_ex includes the flags of the older query; it is 0 if the driver supports only that query. */
	write_flags(a->device_cap_flags_ex | a->orig_attr.device_cap_flags, device, sizeof device / sizeof *device, d->capabilities,
		    sizeof d->capabilities);
	write_flags(pages ? a->odp_caps.per_transport_caps.rc_odp_caps : 0, paging, sizeof paging / sizeof *paging, d->on_demand_paging,
		    sizeof d->on_demand_paging);
}

static void add_number(gpul_verbs_device_info *d, const char *name, uint64_t value)
{
	if (d->n_numbers < GPUL_VERBS_MAX_NUMBERS)
		d->numbers[d->n_numbers++] = (gpul_verbs_number){ name, value };
}

static void add_numbers(const struct ibv_device_attr_ex *a, gpul_verbs_device_info *d)
{
/* Some providers report negative limits as "not limited". */
#define ADD(field)          add_number(d, #field, a->orig_attr.field < 0 ? 0 : (uint64_t)a->orig_attr.field);
#define ADD_UNSIGNED(field) add_number(d, #field, a->orig_attr.field);
#define ADD_EXTENDED(field) add_number(d, #field, a->field);
	/* clang-format off */
	ADD(max_qp) ADD(max_qp_wr) ADD(max_sge) ADD(max_sge_rd) ADD(max_cq) ADD(max_cqe) ADD(max_mr)
	ADD_UNSIGNED(max_mr_size) ADD_UNSIGNED(page_size_cap) ADD(max_pd) ADD(max_qp_rd_atom) ADD(max_qp_init_rd_atom)
	ADD(max_res_rd_atom) ADD(max_mw) ADD(max_ah) ADD(max_srq) ADD(max_srq_wr) ADD(max_srq_sge) ADD(max_mcast_grp)
	ADD(max_mcast_qp_attach) ADD(max_total_mcast_qp_attach) ADD_UNSIGNED(max_pkeys) ADD_UNSIGNED(local_ca_ack_delay)
	ADD_EXTENDED(completion_timestamp_mask) ADD_EXTENDED(hca_core_clock) ADD_EXTENDED(max_dm_size) ADD_EXTENDED(max_wq_type_rq)
	ADD_UNSIGNED(phys_port_cnt)
	/* clang-format on */
#undef ADD
#undef ADD_UNSIGNED
#undef ADD_EXTENDED
}

static int open_inline(const struct gpul_verbs *v, struct ibv_pd *pd, struct ibv_cq *cq)
{
	static const uint32_t sizes[] = { 1024, 512, 256, 128, 64, 32, 0 };

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = sizes[i] },
		};
		struct ibv_qp *qp = v->create_qp(pd, &attr);

		if (qp) {
			(void)v->destroy_qp(qp);
			return (int)(attr.cap.max_inline_data > sizes[i] ? attr.cap.max_inline_data : sizes[i]);
		}
	}
	return -1;
}

/* Find out by trial what no attribute reports: the size of inline data, and whether dma-bufs can be registered (registering
 * descriptor -1 then fails with EBADF). */
static void probe_device(const struct gpul_verbs *v, struct ibv_context *ctx, gpul_verbs_device_info *d)
{
	struct ibv_pd *pd = v->alloc_pd(ctx);
	struct ibv_cq *cq = pd ? v->create_cq(ctx, 1, NULL, NULL, 0) : NULL;

	d->max_inline_bytes = cq ? open_inline(v, pd, cq) : -1;
	if (pd) {
		struct ibv_mr *mr;

		errno = 0;
		mr = v->reg_dmabuf_mr(pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE);
		d->dmabuf = mr || errno == EBADF;
		if (mr)
			(void)v->dereg_mr(mr);
	}
	if (cq)
		(void)v->destroy_cq(cq);
	if (pd)
		(void)v->dealloc_pd(pd);
}

static bool read_attributes(const struct gpul_verbs *v, struct ibv_context *ctx, gpul_verbs_device_info *d)
{
	static const char *const atomics[] = { [IBV_ATOMIC_NONE] = "none", [IBV_ATOMIC_HCA] = "device", [IBV_ATOMIC_GLOB] = "global" };
	struct ibv_device_attr_ex a = { .comp_mask = 0 };
	int r = v->query_device_ex(ctx, NULL, &a);

	if (r) {
		snprintf(d->error, sizeof d->error, "ibv_query_device_ex: %s", strerror(gpul_verbs_errno(r)));
		return false;
	}
	snprintf(d->firmware, sizeof d->firmware, "%.*s", (int)sizeof d->firmware - 1, a.orig_attr.fw_ver);
	write_guid(a.orig_attr.node_guid, d->node_guid);
	write_guid(a.orig_attr.sys_image_guid, d->system_guid);
	d->vendor = a.orig_attr.vendor_id;
	d->part = a.orig_attr.vendor_part_id;
	d->hardware = a.orig_attr.hw_ver;
	snprintf(d->atomics, sizeof d->atomics, "%s", a.orig_attr.atomic_cap <= IBV_ATOMIC_GLOB ? atomics[a.orig_attr.atomic_cap] : "?");
	write_capabilities(&a, d);
	add_numbers(&a, d);
	d->n_ports = a.orig_attr.phys_port_cnt;
	return true;
}

static gpul_status read_device(const struct gpul_verbs *v, struct ibv_device *device, gpul_verbs_device_info *d, gpul_error *err)
{
	struct ibv_context *ctx;
	gpul_status st = GPUL_OK;

	snprintf(d->name, sizeof d->name, "%s", v->get_device_name(device));
	snprintf(d->node_type, sizeof d->node_type, "%s", v->node_type_str(device->node_type));
	d->usable = device->transport_type == IBV_TRANSPORT_IB;
	d->max_inline_bytes = -1;
	errno = 0;
	ctx = v->open_device(device);
	if (!ctx) {
		snprintf(d->error, sizeof d->error, "ibv_open_device: %s%s", strerror(errno),
			 errno == EACCES || errno == EPERM ? ": no permission for /dev/infiniband/uverbs*"
			 : errno == ENOENT                 ? ": /dev/infiniband/uverbs* is missing; a container needs the device"
							   : "");
		return GPUL_OK;
	}
	if (read_attributes(v, ctx, d)) {
		probe_device(v, ctx, d);
		st = gpul_verbs_read_ports(v, ctx, d, err);
	} else {
		d->n_ports = 0;
	}
	(void)v->close_device(ctx);
	return st;
}

gpul_status gpul_verbs_devices_read(gpul_verbs_devices *out, gpul_error *err)
{
	gpul_verbs_devices all = { 0 };
	const struct gpul_verbs *v;
	struct ibv_device **list;
	int n = 0;
	gpul_status st = gpul_verbs_open(&v, err);

	if (st)
		return st;
	list = v->get_device_list(&n);
	if (!list && errno != ENOSYS) /* ENOSYS: the kernel module ib_uverbs is not loaded, so there are no devices */
		return gpul_fail(err, GPUL_EVERBS, errno, "ibv_get_device_list: %s", strerror(errno));
	if (!list || n < 0)
		n = 0;
	all.at = calloc((size_t)n + 1, sizeof *all.at);
	if (!all.at)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %d RDMA devices", n);
	for (; !st && all.n < (size_t)n; all.n++)
		st = read_device(v, list[all.n], &all.at[all.n], err);
	if (list)
		v->free_device_list(list);
	if (st)
		gpul_verbs_devices_free(&all);
	else
		*out = all;
	return st;
}

#else

gpul_status gpul_verbs_devices_read(gpul_verbs_devices *out, gpul_error *err)
{
	const struct gpul_verbs *v;

	(void)out;
	return gpul_verbs_open(&v, err);
}

#endif
