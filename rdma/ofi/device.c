/* device.c — open a provider of libfabric, and register memory with it. */
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/ofi/ofi_internal.h"

enum { MAX_DEPTH = 1024 };

/* What the backend can give a provider that asks for it. */
static const uint64_t our_mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

gpul_status gpul_ofi_fail(const struct ofi_device *d, gpul_error *err, const char *call, long code)
{
	const int number = (int)(code < 0 ? -code : code);

	return gpul_fail(err, number == FI_ENOMEM ? GPUL_ENOMEM : GPUL_ESYS, number, "%s (%s): %s (%d)", call,
			 d->info ? d->info->fabric_attr->prov_name : "libfabric", d->ofi->fi_strerror(number), number);
}

/* ---- choosing a provider ------------------------------------------------------------------------------ */

static bool is_usable(const struct fi_info *i)
{
	const unsigned char *v6 = i->src_addr;

	/* An IPv6 link-local address would need a scope on the other side. */
	if (i->addr_format == FI_SOCKADDR_IN6 && i->src_addr && v6[8] == 0xfe && (v6[9] & 0xc0) == 0x80)
		return false;
	return !((uint64_t)i->domain_attr->mr_mode & ~our_mr_mode) && i->domain_attr->cq_data_size >= 4 && !(i->mode & FI_CONTEXT) &&
	       !(i->mode & FI_CONTEXT2) && !(i->mode & FI_RX_CQ_DATA);
}

static bool is_loopback(const struct fi_info *i)
{
	const unsigned char *v4 = i->src_addr;

	return i->addr_format == FI_SOCKADDR_IN && v4 && v4[4] == 127;
}

int gpul_ofi_rank(const struct fi_info *i)
{
	return !is_usable(i) ? 0 : is_loopback(i) ? 1 : i->addr_format == FI_SOCKADDR_IN6 ? 2 : 3;
}

/* The first of the best entries, in the provider's own order. */
static struct fi_info *choose_info(const struct ofi_device *d, struct fi_info *list)
{
	struct fi_info *best = NULL;
	int best_rank = 0;

	for (struct fi_info *i = list; i; i = i->next) {
		const int rank = gpul_ofi_rank(i);

		if (rank <= best_rank)
			continue;
		best = i;
		best_rank = rank;
	}
	return best ? d->ofi->fi_dupinfo(best) : NULL;
}

struct fi_info *gpul_ofi_hints(const struct gpul_ofi *ofi, const char *provider, const char *domain)
{
	struct fi_info *hints = ofi->fi_dupinfo(NULL);

	if (!hints)
		return NULL;
	hints->caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = (int)our_mr_mode;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	if (domain)
		hints->domain_attr->name = strdup(domain);
	return hints;
}

static gpul_status find_info(struct ofi_device *d, const gpul_rdma_device_desc *desc, gpul_error *err)
{
	const char *provider = desc->provider ? desc->provider : "tcp";
	struct fi_info *hints = gpul_ofi_hints(d->ofi, provider, desc->device), *list = NULL;
	int r;

	if (!hints)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for libfabric's hints");
	r = d->ofi->fi_getinfo(GPUL_OFI_VERSION, NULL, NULL, 0, hints, &list);
	d->ofi->fi_freeinfo(hints);
	if (!r)
		d->info = choose_info(d, list);
	d->ofi->fi_freeinfo(list);
	if (d->info)
		return GPUL_OK;
	return gpul_fail(err, GPUL_EUNSUPPORTED, -r,
			 "libfabric has no provider '%.40s'%s%.40s that writes with remote completion data%s%s: try --provider tcp, or fi_info "
			 "for a list", provider, desc->device ? " on " : "", desc->device ? desc->device : "", r ? ": " : "",
			 r ? d->ofi->fi_strerror(-r) : "");
}

/* ---- the device ------------------------------------------------------------------------------------------- */

static void describe_device(struct ofi_device *d)
{
	const struct fi_info *i = d->info;
	gpul_rdma_device_info *a = &d->about;
	const unsigned char *v4 = i->src_addr;
	const char *provider = i->fabric_attr->prov_name;

	strcpy(a->backend, "libfabric");
	if (i->addr_format == FI_SOCKADDR_IN && v4)
		snprintf(a->name, sizeof a->name, "%.20s on %.15s (%u.%u.%u.%u)", provider, i->domain_attr->name, v4[4], v4[5], v4[6],
			 v4[7]);
	else
		snprintf(a->name, sizeof a->name, "%.20s on %.30s", provider, i->domain_attr->name);
	snprintf(a->why, sizeof a->why, "the first usable entry of fi_getinfo() for this provider");
	/* ofi_rxm of libfabric 1.17 crashes when an endpoint is closed while injected writes wait for the peer: rxm_flush_msg_cq()
	 * reads the context of their error entries, which is NULL. */
	a->inline_bytes = strstr(provider, "ofi_rxm") ? 0 : (uint32_t)i->tx_attr->inject_size;
	a->max_depth = i->tx_attr->size < MAX_DEPTH ? (uint32_t)i->tx_attr->size : MAX_DEPTH;
	a->ordered = (i->tx_attr->msg_order & FI_ORDER_RMA_WAW) && i->ep_attr->max_order_waw_size >= GPUL_RDMA_MAX_PUT;
	/* tcp does not promise an order of completions, but takes the operations of a connection from one queue. */
	a->completes_in_order = (i->tx_attr->comp_order & FI_ORDER_STRICT) || !strncmp(provider, "tcp", 3);
	a->max_qps = GPUL_RDMA_MAX_QPS;
	strcpy(a->flush, "none: GPU memory is copied");
}

gpul_status gpul_ofi_device_open(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	struct ofi_device *d;
	gpul_status st;
	int r;

	if (desc->control_datagrams || desc->qp_type != GPUL_RDMA_RC)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "libfabric: datagrams and UC queue pairs are options of verbs");
	d = calloc(1, sizeof *d);
	if (!d)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a libfabric device");
	st = gpul_ofi_open(&d->ofi, err);
	if (!st)
		st = find_info(d, desc, err);
	if (st)
		goto close;
	r = d->ofi->fi_fabric(d->info->fabric_attr, &d->fabric, NULL);
	if (r) {
		st = gpul_ofi_fail(d, err, "fi_fabric", r);
		goto close;
	}
	r = fi_domain(d->fabric, d->info, &d->domain, NULL);
	if (r) {
		st = gpul_ofi_fail(d, err, "fi_domain", r);
		goto close;
	}
	describe_device(d);
	*device = d;
	return GPUL_OK;
close:
	gpul_ofi_device_close(d);
	return st;
}

void gpul_ofi_device_close(void *device)
{
	struct ofi_device *d = device;

	if (d->domain)
		fi_close(&d->domain->fid);
	if (d->fabric)
		fi_close(&d->fabric->fid);
	if (d->info)
		d->ofi->fi_freeinfo(d->info);
	free(d);
}

void gpul_ofi_device_about(void *device, gpul_rdma_device_info *out)
{
	*out = ((struct ofi_device *)device)->about;
}

/* ---- memory -------------------------------------------------------------------------------------------------- */

gpul_status gpul_ofi_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err)
{
	struct ofi_device *d = device;
	const int mode = d->info->domain_attr->mr_mode;
	struct fid_mr *mr;
	int r;

	if (memory->dmabuf_fd >= 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "libfabric: registration of dma-bufs is not supported");
	r = fi_mr_reg(d->domain, (const void *)(uintptr_t)memory->at, memory->bytes, FI_WRITE | FI_REMOTE_WRITE, 0,
		      atomic_fetch_add(&d->next_key, 1), 0, &mr, NULL);
	if (r)
		return gpul_ofi_fail(d, err, "fi_mr_reg", r);
	*piece = (gpul_rdma_piece){
		.at = memory->at, .bytes = memory->bytes, .local_key = (uint64_t)(uintptr_t)fi_mr_desc(mr),
		.remote = mode & FI_MR_VIRT_ADDR ? memory->at : 0, .remote_key = fi_mr_key(mr),
	};
	*token = mr;
	return GPUL_OK;
}

void gpul_ofi_dereg(void *device, void *token)
{
	(void)device;
	fi_close(&((struct fid_mr *)token)->fid);
}

#else
typedef int no_libfabric;
#endif
