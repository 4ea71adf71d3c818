/* ofi_devices.c — lists the entries that libfabric offers. */
#include "rdma/ofi/ofi_devices.h"

#include <stdlib.h>

#include "rdma/ofi/ofi_lib.h"

void gpul_ofi_entries_free(gpul_ofi_entries *e)
{
	free(e->at);
	*e = (gpul_ofi_entries){ 0 };
}

#if GPUL_HAVE_LIBFABRIC

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "rdma/ofi/ofi_internal.h"

static void write_address(const struct fi_info *i, char *out, size_t out_bytes)
{
	char text[INET6_ADDRSTRLEN];
	const void *a = i->src_addr;

	out[0] = '\0';
	if (!a)
		return;
	if (i->addr_format == FI_SOCKADDR_IN && i->src_addrlen >= sizeof(struct sockaddr_in) &&
	    inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, text, sizeof text))
		snprintf(out, out_bytes, "%s", text);
	else if (i->addr_format == FI_SOCKADDR_IN6 && i->src_addrlen >= sizeof(struct sockaddr_in6) &&
		 inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, text, sizeof text))
		snprintf(out, out_bytes, "[%s]", text);
	else if (i->addr_format == FI_ADDR_STR)
		snprintf(out, out_bytes, "%.*s", (int)strnlen(a, i->src_addrlen), (const char *)a);
}

static const char *endpoint_of(enum fi_ep_type type)
{
	return type == FI_EP_RDM ? "RDM" : type == FI_EP_MSG ? "MSG" : type == FI_EP_DGRAM ? "DGRAM" : "other";
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static void fill_entry(const struct fi_info *i, gpul_ofi_entry *e)
{
	snprintf(e->provider, sizeof e->provider, "%s", or_empty(i->fabric_attr->prov_name));
	snprintf(e->fabric, sizeof e->fabric, "%s", or_empty(i->fabric_attr->name));
	snprintf(e->domain, sizeof e->domain, "%s", or_empty(i->domain_attr->name));
	snprintf(e->version, sizeof e->version, "%u.%u", FI_MAJOR(i->fabric_attr->prov_version), FI_MINOR(i->fabric_attr->prov_version));
	snprintf(e->endpoint, sizeof e->endpoint, "%s", endpoint_of(i->ep_attr->type));
	write_address(i, e->address, sizeof e->address);
	e->max_message_bytes = i->ep_attr->max_msg_size;
	e->inject_bytes = i->tx_attr ? i->tx_attr->inject_size : 0;
	e->depth = i->tx_attr ? i->tx_attr->size : 0;
	e->remote_data_bytes = i->domain_attr->cq_data_size;
	e->rma = (i->caps & FI_RMA) != 0;
	e->gpu_memory = (i->caps & FI_HMEM) != 0;
}

static bool is_same(const gpul_ofi_entry *a, const gpul_ofi_entry *b)
{
	return !strcmp(a->provider, b->provider) && !strcmp(a->domain, b->domain) && !strcmp(a->fabric, b->fabric) &&
	       !strcmp(a->endpoint, b->endpoint) && !strcmp(a->address, b->address);
}

static bool is_listed(const gpul_ofi_entries *all, const gpul_ofi_entry *e)
{
	for (size_t i = 0; i < all->n; i++)
		if (is_same(&all->at[i], e))
			return true;
	return false;
}

/* Append the entries of one result of fi_getinfo() that are not in *all yet. */
static gpul_status add_entries(gpul_ofi_entries *all, const struct fi_info *list, bool by_our_hints, gpul_error *err)
{
	size_t n = 0;
	gpul_ofi_entry *at;

	for (const struct fi_info *i = list; i; i = i->next)
		n++;
	at = realloc(all->at, (all->n + n + 1) * sizeof *at);
	if (!at)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu entries of libfabric", all->n + n);
	all->at = at;
	for (const struct fi_info *i = list; i; i = i->next) {
		gpul_ofi_entry *e = &at[all->n];

		if (!i->fabric_attr || !i->domain_attr || !i->ep_attr)
			continue;
		*e = (gpul_ofi_entry){ .usable = false };
		fill_entry(i, e);
		e->usable = by_our_hints && gpul_ofi_rank(i) > 0;
		all->n += !is_listed(all, e);
	}
	return GPUL_OK;
}

static bool has_chosen(const gpul_ofi_entries *all, const char *provider)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->at[i].chosen && !strcmp(all->at[i].provider, provider))
			return true;
	return false;
}

/* For each provider, mark the entry that the backend would use: the first one of the highest rank. */
static void mark_chosen(gpul_ofi_entries *all, const struct fi_info *list)
{
	for (const struct fi_info *i = list; i; i = i->next) {
		const char *provider = or_empty(i->fabric_attr->prov_name);
		const struct fi_info *best = i;
		gpul_ofi_entry chosen = { .chosen = false };

		for (const struct fi_info *k = i; k; k = k->next)
			if (!strcmp(or_empty(k->fabric_attr->prov_name), provider) && gpul_ofi_rank(k) > gpul_ofi_rank(best))
				best = k;
		if (gpul_ofi_rank(best) == 0 || has_chosen(all, provider))
			continue;
		fill_entry(best, &chosen);
		for (size_t n = 0; n < all->n; n++)
			all->at[n].chosen |= is_same(&all->at[n], &chosen);
	}
}

static gpul_status add_answer(const struct gpul_ofi *ofi, struct fi_info *hints, gpul_ofi_entries *all, bool by_our_hints, gpul_error *err)
{
	struct fi_info *list = NULL;
	int r = hints ? ofi->fi_getinfo(GPUL_OFI_VERSION, NULL, NULL, 0, hints, &list) : -FI_ENOMEM;
	gpul_status st = GPUL_OK;

	if (r && r != -FI_ENODATA)
		st = gpul_fail(err, r == -FI_ENOMEM ? GPUL_ENOMEM : GPUL_ESYS, -r, "fi_getinfo: %s", ofi->fi_strerror(-r));
	else if (!r)
		st = add_entries(all, list, by_our_hints, err);
	if (!st && !r && by_our_hints)
		mark_chosen(all, list);
	if (list)
		ofi->fi_freeinfo(list);
	if (hints)
		ofi->fi_freeinfo(hints);
	return st;
}

gpul_status gpul_ofi_entries_read(gpul_ofi_entries *out, gpul_error *err)
{
	gpul_ofi_entries all = { .n = 0 };
	const struct gpul_ofi *ofi;
	struct fi_info *any;
	gpul_status st = gpul_ofi_open(&ofi, err);

	if (st)
		return st;
	snprintf(all.version, sizeof all.version, "%u.%u", FI_MAJOR(ofi->fi_version()), FI_MINOR(ofi->fi_version()));
	st = add_answer(ofi, gpul_ofi_hints(ofi, NULL, NULL), &all, true, err);
	any = st ? NULL : ofi->fi_dupinfo(NULL);
	if (any) { /* use hints without restrictions, which accept every mode, as the tool fi_info(1) does */
		any->mode = ~0ULL;
		any->domain_attr->mode = ~0ULL;
		any->domain_attr->mr_mode = (int)~(unsigned)(GPUL_OFI_MR_BASIC | GPUL_OFI_MR_SCALABLE);
	}
	if (!st)
		st = add_answer(ofi, any, &all, false, err);
	if (st)
		gpul_ofi_entries_free(&all);
	else
		*out = all;
	return st;
}

#else

gpul_status gpul_ofi_entries_read(gpul_ofi_entries *out, gpul_error *err)
{
	const struct gpul_ofi *ofi;

	(void)out;
	return gpul_ofi_open(&ofi, err);
}

#endif
