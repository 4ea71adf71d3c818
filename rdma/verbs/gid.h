/* gid.h — chooses the entry of a port's GID table that a connection uses.  A GID is the port's address: on RoCE an IPv6 address, or
 * an IPv4 address written as ::ffff:a.b.c.d; the table contains each address once for each RoCE version. */
#ifndef GPULOAD_RDMA_VERBS_GID_H
#define GPULOAD_RDMA_VERBS_GID_H

#include "core/error.h"
#include "core/log.h"
#include "rdma/verbs/verbs_lib.h"

#if GPUL_HAVE_LIBIBVERBS

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_VERBS_GID_TEXT = 48, GPUL_VERBS_MAX_GIDS = 1024 };

/* Write a GID as text: "10.9.0.1" or "fe80::1". */
void gpul_verbs_gid_text(const union ibv_gid *gid, char out[GPUL_VERBS_GID_TEXT]);

/* Return the name of a GID type: "InfiniBand", "RoCE v1", "RoCE v2" or "unknown type". */
const char *gpul_verbs_gid_type(uint32_t type);

/* True for a link-local GID, fe80::/10 or 169.254.0.0/16 (IPv4): it is not routable. */
bool gpul_verbs_gid_link_local(const union ibv_gid *gid);

/* True for a GID with an IPv4 address, ::ffff:a.b.c.d. */
bool gpul_verbs_gid_ipv4(const union ibv_gid *gid);

/** Choose a GID of a port.
 *
 * On Ethernet: RoCE v2 with an IPv4 address first, then RoCE v2 with an IPv6 address, then RoCE v1; among equals the
 * lowest index.  A link-local address is used only if the user gives its index.  On InfiniBand: index 0.
 *
 * @entries  the GID table of the device; entries of other ports are skipped
 * @n        number of entries
 * @port     port number
 * @ethernet true: the link layer of the port is Ethernet
 * @wish     index that the user wants; -1: choose
 * @out      the entry
 * @why      receives the reason, at most why_bytes with its NUL
 * @why_bytes size of why
 * @err      explains a failure
 * Errors  GPUL_EUNSUPPORTED no entry is usable; the text explains why; GPUL_EINVAL no entry with index wish
 * Source  InfiniBand Architecture, annex A17 RoCE v2; Linux drivers/infiniband/core/roce_gid_mgmt.c */
gpul_status gpul_verbs_gid_choose(const struct ibv_gid_entry *entries, size_t n, uint32_t port, bool ethernet, int wish,
				  struct ibv_gid_entry *out, char *why, size_t why_bytes, gpul_error *err);

/* Log the table, one line for each entry of this port. */
void gpul_verbs_gid_log(gpul_log_level level, const struct ibv_gid_entry *entries, size_t n, uint32_t port);

#ifdef __cplusplus
}
#endif

#endif
#endif
