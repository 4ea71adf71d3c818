/* device.c — opens a provider of libfabric, and registers memory with it. */
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rdma/ofi/ofi_internal.h"

enum { MAX_DEPTH = 1024, KEY_TRIES = 100 };

/* The memory registration modes that the backend supports if a provider requires them. */
static const uint64_t our_mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

gpul_status gpul_ofi_fail(const struct ofi_device *d, gpul_error *err, const char *call, long code)
{
	const int number = (int)(code < 0 ? -code : code);

	return gpul_fail(err, number == FI_ENOMEM ? GPUL_ENOMEM : GPUL_ESYS, number, "%s (%s): %s (%d)", call,
			 d->info ? d->info->fabric_attr->prov_name : "libfabric", d->ofi->fi_strerror(number), number);
}

/* ---- choosing a provider ------------------------------------------------------------------------------ */

/* True if an immediate must be a word in the peer's memory.  ofi_rxm of libfabric 1.17 crashes when a connection ends in the middle of a
 * write with an immediate: tcp of that version reports the write, which has no context, as an error (tcpx_ep_flush_all_queues).  Plain
 * writes are not affected. */
static bool needs_words(const struct fi_info *i)
{
	return !strncmp(i->fabric_attr->prov_name, "tcp;ofi_rxm", 11);
}

/* Explain why the backend cannot use an entry of fi_getinfo(); NULL: it can. */
static const char *why_unusable(const struct fi_info *i)
{
	const unsigned char *v6 = i->src_addr;

	if (i->addr_format == FI_SOCKADDR_IN6 && v6 && v6[8] == 0xfe && (v6[9] & 0xc0) == 0x80)
		return "has only an IPv6 link-local address, which has no meaning on another machine";
	if ((uint64_t)i->domain_attr->mr_mode & ~our_mr_mode)
		return "needs memory to be registered in a mode (mr_mode) that gpuload does not support";
	if (i->domain_attr->cq_data_size < sizeof(uint32_t))
		return "cannot send 4 bytes of completion data with a write (cq_data_size)";
	if (i->mode & (FI_CONTEXT | FI_CONTEXT2))
		return "needs the mode FI_CONTEXT, which gpuload does not support";
	if (i->mode & FI_RX_CQ_DATA)
		return "needs the mode FI_RX_CQ_DATA, which gpuload does not support";
	if (needs_words(i) && (i->tx_attr->iov_limit < 2 || i->tx_attr->rma_iov_limit < 2))
		return "cannot write to two addresses in one operation (rma_iov_limit)";
	return NULL;
}

static bool is_loopback(const struct fi_info *i)
{
	static const unsigned char one[16] = { [15] = 1 };
	const unsigned char *at = i->src_addr;

	if (i->addr_format == FI_SOCKADDR_IN6)
		return at && memcmp(at + 8, one, sizeof one) == 0;
	return i->addr_format == FI_SOCKADDR_IN && at && at[4] == 127;
}

/* Loopback entries have the lowest rank, but are usable: they may be the only entries while no other interface has a carrier.  An IPv4
 * loopback entry works even between machines, because a connection replaces its address by that of the connection's socket. */
int gpul_ofi_rank(const struct fi_info *i)
{
	const bool v6 = i->addr_format == FI_SOCKADDR_IN6;

	return why_unusable(i) ? 0 : is_loopback(i) ? (v6 ? 1 : 2) : v6 ? 3 : 4;
}

/* True if an entry has the wanted domain.  Checked here because ofi_rxm of libfabric 1.17 ignores the domain in the hints. */
static bool is_wanted(const struct fi_info *i, const char *domain)
{
	return !domain || (i->domain_attr->name && strcmp(i->domain_attr->name, domain) == 0);
}

/* Copy the entry of a domain with the highest rank; of equal entries, the first one that the provider lists.  NULL: no memory, or,
 * if *why is set, no usable entry. */
static struct fi_info *choose_info(const struct ofi_device *d, const struct fi_info *list, const char *domain, const char **why)
{
	const struct fi_info *best = NULL;
	const char *reason = NULL;
	int best_rank = 0;

	for (const struct fi_info *i = list; i; i = i->next) {
		const int rank = gpul_ofi_rank(i);

		if (!is_wanted(i, domain))
			continue;
		reason = reason ? reason : why_unusable(i);
		if (rank <= best_rank)
			continue;
		best = i;
		best_rank = rank;
	}
	*why = best ? NULL : reason;
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

/* Query the entries of a provider.  order: the message order to request, because some providers order the writes of an endpoint
 * only on request. */
static int list_entries(struct ofi_device *d, const gpul_rdma_device_desc *desc, uint64_t order, struct fi_info **list)
{
	struct fi_info *hints = gpul_ofi_hints(d->ofi, desc->provider ? desc->provider : "tcp", desc->device);
	int r;

	if (!hints)
		return -FI_ENOMEM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = order;
	r = d->ofi->fi_getinfo(GPUL_OFI_VERSION, NULL, NULL, 0, hints, list);
	d->ofi->fi_freeinfo(hints);
	return r;
}

static bool has_name(const struct fi_info *i, const char *provider)
{
	const char *name = i->fabric_attr->prov_name;
	const size_t n = strlen(provider);

	return !strncmp(name, provider, n) && (!name[n] || name[n] == ';'); /* "tcp" also selects "tcp;ofi_rxm" */
}

/* Explain that no entry fits: say whether the provider exists, and list the providers that do. */
static gpul_status explain_lack(const struct ofi_device *d, const gpul_rdma_device_desc *desc, int code, gpul_error *err)
{
	const char *provider = desc->provider ? desc->provider : "tcp";
	struct fi_info *all = NULL;
	char names[120] = "";
	size_t used = 0;
	bool exists = false;

	if (code != -FI_ENODATA)
		return gpul_fail(err, code == -FI_ENOMEM ? GPUL_ENOMEM : GPUL_ESYS, -code, "fi_getinfo (%.40s): %s (%d)", provider,
				 d->ofi->fi_strerror(-code), -code);
	if (d->ofi->fi_getinfo(GPUL_OFI_VERSION, NULL, NULL, 0, NULL, &all))
		all = NULL;
	for (const struct fi_info *i = all, *before = NULL; i; before = i, i = i->next) {
		const char *name = i->fabric_attr->prov_name;

		exists |= has_name(i, provider);
		if ((!before || strcmp(before->fabric_attr->prov_name, name)) && used + strlen(name) + 3 < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
	}
	if (all)
		d->ofi->fi_freeinfo(all);
	if (exists)
		return gpul_fail(err, GPUL_EUNSUPPORTED, FI_ENODATA,
				 "libfabric's provider '%.40s'%s%.40s has no reliable endpoints that can write into memory of "
				 "the peer (FI_EP_RDM with FI_RMA)",
				 provider, desc->device ? " on " : "", desc->device ? desc->device : "");
	return gpul_fail(err, GPUL_EUNSUPPORTED, FI_ENODATA, "libfabric has no provider '%.40s'; it has %s", provider,
			 *names ? names : "none");
}

/* Explain that the provider has no such domain. */
static gpul_status explain_domain(const struct fi_info *list, const gpul_rdma_device_desc *desc, gpul_error *err)
{
	char names[120] = "";
	size_t used = 0;

	for (const struct fi_info *i = list, *before = NULL; i; before = i, i = i->next)
		if (i->domain_attr->name && (!before || strcmp(before->domain_attr->name, i->domain_attr->name)) &&
		    used + strlen(i->domain_attr->name) + 3 < sizeof names)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", i->domain_attr->name);
	return gpul_fail(err, GPUL_EUNSUPPORTED, FI_ENODATA, "libfabric's provider '%.40s' has no domain '%.40s'; it has %s",
			 list->fabric_attr->prov_name, desc->device, names);
}

static gpul_status find_info(struct ofi_device *d, const gpul_rdma_device_desc *desc, gpul_error *err)
{
	struct fi_info *list = NULL;
	bool has_domain = false;
	const char *why;
	int r = list_entries(d, desc, FI_ORDER_WAW | FI_ORDER_RMA_WAW, &list);
	gpul_status st;

	if (r == -FI_ENODATA)
		r = list_entries(d, desc, 0, &list);
	if (r)
		return explain_lack(d, desc, r, err);
	for (const struct fi_info *i = list; i; i = i->next)
		has_domain |= is_wanted(i, desc->device);
	d->info = choose_info(d, list, desc->device, &why);
	if (d->info)
		st = GPUL_OK;
	else if (!has_domain)
		st = explain_domain(list, desc, err);
	else if (!why)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for libfabric's attributes");
	else
		st = gpul_fail(err, GPUL_EUNSUPPORTED, 0, "libfabric's provider '%.40s' on %.40s %s", list->fabric_attr->prov_name,
			       list->domain_attr->name, why);
	d->ofi->fi_freeinfo(list);
	return st;
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
	snprintf(a->why, sizeof a->why, "the best entry of fi_getinfo() for this provider%s",
		 i->addr_format == FI_SOCKADDR_IN ? "; a connection uses the address of its socket" : "");
	/* ofi_rxm of libfabric 1.17 crashes when an endpoint is closed while injected writes wait for the peer: rxm_flush_msg_cq()
	 * reads the context of their error entries, which is NULL. */
	a->inline_bytes = strstr(provider, "ofi_rxm") ? 0 : (uint32_t)i->tx_attr->inject_size;
	d->has_words = needs_words(i);
	a->max_depth = i->tx_attr->size < MAX_DEPTH ? (uint32_t)i->tx_attr->size : MAX_DEPTH;
	a->ordered = (i->tx_attr->msg_order & FI_ORDER_RMA_WAW) && i->ep_attr->max_order_waw_size >= GPUL_RDMA_MAX_PUT;
	/* tcp does not promise ordered completions, but takes the operations of a connection from one queue, so they complete in order. */
	a->completes_in_order = (i->tx_attr->comp_order & GPUL_OFI_ORDER_STRICT) || !strncmp(provider, "tcp", 3);
	a->unnamed_arrivals = true; /* all endpoints of a path share one completion queue, whose entries do not name the endpoint */
	a->max_qps = GPUL_RDMA_MAX_QPS;
	strcpy(a->flush, "none: GPU memory is copied");
}

gpul_status gpul_ofi_device_open(const gpul_rdma_device_desc *desc, void **device, gpul_error *err)
{
	struct ofi_device *d;
	gpul_status st;
	int r;

	if (desc->control_datagrams || desc->qp_type != GPUL_RDMA_RC)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "datagrams and UC queue pairs need the backend verbs, but the backend is libfabric");
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

/* Register memory.  If the user may choose the key, it is random, so that a peer that knows one key of this process cannot guess
 * another one. */
static int register_memory(const struct ofi_device *d, const gpul_rdma_memory *memory, struct fid_mr **mr)
{
	const struct fi_domain_attr *domain = d->info->domain_attr;
	const uint64_t access = memory->source ? FI_WRITE : FI_WRITE | FI_REMOTE_WRITE;
	int r = -FI_ENOKEY;

	for (unsigned tries = 0; tries < KEY_TRIES && r == -FI_ENOKEY; tries++) { /* ENOKEY: another registration already has this key */
		uint64_t key = 0;

		if (!(domain->mr_mode & FI_MR_PROV_KEY)) {
			if (getrandom(&key, sizeof key, 0) != sizeof key)
				return -errno;
			if (domain->mr_key_size && domain->mr_key_size < sizeof key)
				key &= (1ull << 8 * domain->mr_key_size) - 1;
		}
		r = fi_mr_reg(d->domain, (const void *)(uintptr_t)memory->at, memory->bytes, access, 0, key, 0, mr, NULL);
	}
	return r;
}

gpul_status gpul_ofi_reg(void *device, const gpul_rdma_memory *memory, gpul_rdma_piece *piece, void **token, gpul_error *err)
{
	struct ofi_device *d = device;
	const int mode = d->info->domain_attr->mr_mode;
	struct fid_mr *mr;
	int r;

	if (memory->dmabuf_fd >= 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the backend libfabric cannot register dma-bufs");
	r = register_memory(d, memory, &mr);
	if (r)
		return gpul_ofi_fail(d, err, "fi_mr_reg", r);
	*piece = (gpul_rdma_piece){
		.at = memory->at,
		.bytes = memory->bytes,
		.local_key = (uint64_t)(uintptr_t)fi_mr_desc(mr),
		.remote = mode & FI_MR_VIRT_ADDR ? memory->at : 0,
		.remote_key = fi_mr_key(mr),
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
