/* path.c — the endpoints of a connection: one reliable datagram endpoint for each queue pair.
 *
 *      0          4           8             24
 *     ┌──────────┬───────────┬─────────────┬───────────┬───────────┬┄┄   the description: where the peer writes words (words.c; 0: it does
 *     │ endpoints│ addr bytes│ words       │ address 0 │ address 1 │     not), as address and key; the endpoints' addresses, in the form of
 *     └──────────┴───────────┴─────────────┴───────────┴───────────┴┄┄   the provider, each of `addr bytes` bytes */
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/ofi/ofi_internal.h"

enum { HEAD_BYTES = 24 };

static gpul_status create_queues(struct ofi_path *p, unsigned depth, unsigned n_recvs, gpul_error *err)
{
	struct ofi_device *d = p->device;
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA, .size = (size_t)p->n_eps * (depth + n_recvs) };
	struct fi_av_attr av = { .type = FI_AV_UNSPEC, .count = p->n_eps };
	int r = fi_cq_open(d->domain, &cq, &p->cq, NULL);

	if (r)
		return gpul_ofi_fail(d, err, "fi_cq_open", r);
	r = fi_av_open(d->domain, &av, &p->av, NULL);
	return r ? gpul_ofi_fail(d, err, "fi_av_open", r) : GPUL_OK;
}

/* A network provider binds to the first interface, which the peer may be unable to reach; but the peer can reach the address of the
 * connection's socket.  Returns a copy of the device's fi_info with that address (NULL: no memory). */
static struct fi_info *copy_info(const struct ofi_device *d, const struct sockaddr *from)
{
	struct fi_info *info = d->ofi->fi_dupinfo(d->info);
	struct sockaddr_in v4 = { .sin_family = AF_INET };

	if (!info || !from || info->addr_format != FI_SOCKADDR_IN || !info->src_addr || info->src_addrlen != sizeof v4)
		return info;
	if (from->sa_family == AF_INET)
		v4.sin_addr = ((const struct sockaddr_in *)(const void *)from)->sin_addr;
	else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)(const void *)from)->sin6_addr))
		memcpy(&v4.sin_addr, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr.s6_addr[12], sizeof v4.sin_addr);
	else
		return info;
	memcpy(info->src_addr, &v4, sizeof v4);
	return info;
}

static gpul_status create_endpoint(struct ofi_path *p, struct fi_info *info, unsigned i, gpul_error *err)
{
	struct ofi_device *d = p->device;
	int r = fi_endpoint(d->domain, info, &p->eps[i], NULL);

	if (r)
		return gpul_ofi_fail(d, err, "fi_endpoint", r);
	r = fi_ep_bind(p->eps[i], &p->av->fid, 0);
	if (r)
		return gpul_ofi_fail(d, err, "fi_ep_bind", r);
	r = fi_ep_bind(p->eps[i], &p->cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
	if (r)
		return gpul_ofi_fail(d, err, "fi_ep_bind", r);
	r = fi_enable(p->eps[i]);
	return r ? gpul_ofi_fail(d, err, "fi_enable", r) : GPUL_OK;
}

gpul_status gpul_ofi_path_create(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				 gpul_error *err)
{
	struct ofi_path *p = calloc(1, sizeof *p);
	struct fi_info *info;
	gpul_status st;

	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the endpoints of a connection");
	p->device = device;
	p->n_eps = n_qps;
	p->probe.fd = -1;
	info = copy_info(p->device, from);
	st = info ? create_queues(p, depth, n_recvs, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for libfabric's attributes");
	for (unsigned i = 0; !st && i < n_qps; i++)
		st = create_endpoint(p, info, i, err);
	if (!st && p->device->has_words)
		st = gpul_ofi_words_create(p, err);
	if (info)
		p->device->ofi->fi_freeinfo(info);
	if (st)
		gpul_ofi_path_destroy(p);
	else
		*path = p;
	return st;
}

size_t gpul_ofi_path_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION])
{
	struct ofi_path *p = path;
	uint32_t head[2] = { p->n_eps, 0 };
	size_t bytes = 0;

	(void)fi_getname(&p->eps[0]->fid, NULL, &bytes); /* a call with size 0 only returns the size that an address needs */
	if (!bytes || HEAD_BYTES + bytes * p->n_eps > GPUL_RDMA_MAX_DESCRIPTION)
		return 0;
	p->address_bytes = bytes;
	head[1] = (uint32_t)bytes;
	memcpy(out, head, sizeof head);
	memcpy(out + sizeof head, (const uint64_t[]){ p->words.arrivals_piece.remote, p->words.arrivals_piece.remote_key }, 16);
	for (unsigned i = 0; i < p->n_eps; i++) {
		size_t room = bytes;

		if (fi_getname(&p->eps[i]->fid, out + HEAD_BYTES + bytes * i, &room) || room != bytes)
			return 0;
	}
	return HEAD_BYTES + bytes * p->n_eps;
}

/* Check the peer's description, which is not trusted: a wrong address family would make libfabric read beyond the address. */
static gpul_status check_description(const struct ofi_path *p, const unsigned char *description, size_t n_bytes, gpul_error *err)
{
	const uint32_t format = p->device->info->addr_format;
	const size_t bytes = p->address_bytes;
	uint32_t head[2] = { 0, 0 };
	sa_family_t family;

	if (n_bytes >= HEAD_BYTES)
		memcpy(head, description, sizeof head);
	if (head[0] != p->n_eps || head[1] != bytes || n_bytes != HEAD_BYTES + p->n_eps * bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the peer sent %u endpoints with addresses of %u bytes in %zu bytes: expected %u endpoints with "
				 "%zu bytes; the peer uses a different version of gpuload or a different provider",
				 head[0], head[1], n_bytes, p->n_eps, bytes);
	for (unsigned i = 0; i < p->n_eps; i++) {
		const unsigned char *address = description + HEAD_BYTES + bytes * i;

		memcpy(&family, address, sizeof family);
		if ((format == FI_SOCKADDR_IN && family != AF_INET) || (format == FI_SOCKADDR_IN6 && family != AF_INET6))
			return gpul_fail(err, GPUL_EFORMAT, 0,
					 "the address of the peer's endpoint %u has address family %u: expected IPv%d", i, family,
					 format == FI_SOCKADDR_IN ? 4 : 6);
		if (format == FI_ADDR_STR && !memchr(address, 0, bytes))
			return gpul_fail(err, GPUL_EFORMAT, 0, "the name of the peer's endpoint %u has no terminating NUL byte", i);
	}
	return GPUL_OK;
}

gpul_status gpul_ofi_path_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err)
{
	struct ofi_path *p = path;
	const gpul_status st = check_description(p, description, n_bytes, err);

	if (st)
		return st;
	memcpy(&p->words.peer.address, description + 8, sizeof p->words.peer.address);
	memcpy(&p->words.peer.key, description + 16, sizeof p->words.peer.key);
	memcpy(p->addresses, description + HEAD_BYTES, n_bytes - HEAD_BYTES);
	for (unsigned i = 0; i < p->n_eps; i++) {
		const int r = fi_av_insert(p->av, p->addresses + p->address_bytes * i, 1, &p->peers[i], 0, NULL);

		if (r != 1)
			return gpul_ofi_fail(p->device, err, "fi_av_insert", r < 0 ? r : -FI_EINVAL);
	}
	return GPUL_OK;
}

void gpul_ofi_path_break(void *path)
{
	struct ofi_path *p = path;

	gpul_ofi_end_probe(p);
	for (unsigned i = 0; i < p->n_eps; i++)
		if (p->eps[i]) {
			fi_close(&p->eps[i]->fid);
			p->eps[i] = NULL;
		}
}

void gpul_ofi_path_destroy(void *path)
{
	struct ofi_path *p = path;

	gpul_ofi_path_break(p);
	gpul_ofi_words_destroy(p);
	if (p->av)
		fi_close(&p->av->fid);
	if (p->cq)
		fi_close(&p->cq->fid);
	free(p);
}

#else
typedef int no_libfabric;
#endif
