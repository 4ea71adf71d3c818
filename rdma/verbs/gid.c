/* gid.c — ranks the GIDs of a port, and chooses one. */
#include "rdma/verbs/gid.h"

#if GPUL_HAVE_LIBIBVERBS

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const unsigned char ipv4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

bool gpul_verbs_gid_ipv4(const union ibv_gid *gid)
{
	return memcmp(gid->raw, ipv4_prefix, sizeof ipv4_prefix) == 0;
}

bool gpul_verbs_gid_link_local(const union ibv_gid *gid)
{
	if (gpul_verbs_gid_ipv4(gid))
		return gid->raw[12] == 169 && gid->raw[13] == 254;
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

void gpul_verbs_gid_text(const union ibv_gid *gid, char out[GPUL_VERBS_GID_TEXT])
{
	const bool ipv4 = gpul_verbs_gid_ipv4(gid);

	if (!inet_ntop(ipv4 ? AF_INET : AF_INET6, gid->raw + (ipv4 ? 12 : 0), out, GPUL_VERBS_GID_TEXT))
		out[0] = '\0';
}

const char *gpul_verbs_gid_type(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "InfiniBand";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "unknown type";
	}
}

static bool is_empty(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return memcmp(gid, &zero, sizeof zero) == 0;
}

/* The ranks of GIDs on Ethernet, best first. */
enum rank { V2_IPV4, V2_IPV6, V1, UNUSABLE };

static enum rank rank_of(const struct ibv_gid_entry *e)
{
	if (is_empty(&e->gid) || gpul_verbs_gid_link_local(&e->gid) || e->gid.raw[0] == 0xff)
		return UNUSABLE;
	if (e->gid_type == IBV_GID_TYPE_ROCE_V2)
		return gpul_verbs_gid_ipv4(&e->gid) ? V2_IPV4 : V2_IPV6;
	return e->gid_type == IBV_GID_TYPE_ROCE_V1 ? V1 : UNUSABLE;
}

static const char *const rank_reasons[] = {
	[V2_IPV4] = "first IPv4 address with RoCE v2",
	[V2_IPV6] = "no IPv4 address; first IPv6 address with RoCE v2",
	[V1] = "no address with RoCE v2; RoCE v1 reaches only peers on the same Ethernet segment",
};

static void explain(const struct ibv_gid_entry *e, const char *reason, char *why, size_t why_bytes)
{
	char text[GPUL_VERBS_GID_TEXT];

	gpul_verbs_gid_text(&e->gid, text);
	snprintf(why, why_bytes, "GID %u %s, %s: %s", e->gid_index, text, gpul_verbs_gid_type(e->gid_type), reason);
}

gpul_status gpul_verbs_gid_choose(const struct ibv_gid_entry *entries, size_t n, uint32_t port, bool ethernet, int wish,
				  struct ibv_gid_entry *out, char *why, size_t why_bytes, gpul_error *err)
{
	const struct ibv_gid_entry *best = NULL;
	unsigned n_of_port = 0, n_local = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ibv_gid_entry *e = &entries[i];

		if (e->port_num != port || is_empty(&e->gid))
			continue;
		n_of_port++;
		n_local += gpul_verbs_gid_link_local(&e->gid);
		if (wish >= 0  ? e->gid_index == (uint32_t)wish
		    : ethernet ? rank_of(e) != UNUSABLE && (!best || rank_of(e) < rank_of(best))
			       : !best || e->gid_index < best->gid_index)
			best = e;
	}
	if (!best && wish >= 0)
		return gpul_fail(err, GPUL_EINVAL, wish, "port %u has no GID with index %d: `gpuload rdma devices` lists its %u", port,
				 wish, n_of_port);
	if (!best)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "port %u has no usable GID: %u entries, of which %u are link-local addresses, which cannot be "
				 "routed: give the network interface an IPv4 address (ip addr add), or choose a GID by its index",
				 port, n_of_port, n_local);
	explain(best, wish >= 0 ? "chosen by the user" : ethernet ? rank_reasons[rank_of(best)] : "the port's first", why, why_bytes);
	*out = *best;
	return GPUL_OK;
}

void gpul_verbs_gid_log(gpul_log_level level, const struct ibv_gid_entry *entries, size_t n, uint32_t port)
{
	for (size_t i = 0; i < n; i++) {
		char text[GPUL_VERBS_GID_TEXT];

		if (entries[i].port_num != port)
			continue;
		gpul_verbs_gid_text(&entries[i].gid, text);
		gpul_log(level, "verbs", "GID table of port %u: %3u  %-10s  %s%s", port, entries[i].gid_index,
			 gpul_verbs_gid_type(entries[i].gid_type), text,
			 gpul_verbs_gid_link_local(&entries[i].gid) ? "  (link-local)" : "");
	}
}

#endif
