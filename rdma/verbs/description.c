/* description.c — encodes this end of a path for the peer, and decodes that of the peer.  Numbers are little-endian; reserved
 * bytes are 0.
 *
 *      0       4  5    6    7     8    9    10    11       12     14        16          32     36     40
 *     ┌───────┬──┬────┬────┬─────┬────┬────┬─────┬────────┬──────┬─────────┬───────────┬──────┬──────┬────────────────┐
 *     │ magic │v │link│GID │ MTU │ QP │ n  │flags│reserved│ LID  │reserved │ GID       │ UD   │ UD   │ n times:       │
 *     │ "GPVB"│1 │ayer│type│1..5 │type│QPs │     │        │      │         │           │ QPN  │ Qkey │ QPN u32 PSN u32│
 *     └───────┴──┴────┴────┴─────┴────┴────┴─────┴────────┴──────┴─────────┴───────────┴──────┴──────┴────────────────┘ */
#include "rdma/verbs/verbs_internal.h"

#if GPUL_HAVE_LIBIBVERBS

#include <string.h>

enum {
	VERSION = 1,
	HEADER_BYTES = 40,
	QP_BYTES = 8,
	MAX_NUMBER = 0xffffff, /* queue pair numbers and packet sequence numbers have 24 bits */
	FIRST_MULTICAST_LID = 0xc000,
};
static_assert(HEADER_BYTES + QP_BYTES * GPUL_RDMA_MAX_QPS <= GPUL_RDMA_MAX_DESCRIPTION, "a description fits");

static const unsigned char magic[4] = { 'G', 'P', 'V', 'B' };

static void put32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> 8 * i);
}

static uint32_t get32(const unsigned char *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

size_t gpul_verbs_description_write(const gpul_verbs_description *in, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION])
{
	const size_t n_bytes = HEADER_BYTES + (size_t)in->n_qps * QP_BYTES;

	memset(out, 0, n_bytes);
	memcpy(out, magic, sizeof magic);
	out[4] = VERSION;
	out[5] = in->link_layer;
	out[6] = in->gid_type;
	out[7] = in->mtu;
	out[8] = in->qp_type;
	out[9] = in->n_qps;
	out[10] = in->flags;
	out[12] = (unsigned char)in->lid;
	out[13] = (unsigned char)(in->lid >> 8);
	memcpy(out + 16, in->gid.raw, 16);
	put32(out + 32, in->datagram_qpn);
	put32(out + 36, in->datagram_qkey);
	for (unsigned i = 0; i < in->n_qps; i++) {
		put32(out + HEADER_BYTES + i * QP_BYTES, in->qps[i].qpn);
		put32(out + HEADER_BYTES + i * QP_BYTES + 4, in->qps[i].psn);
	}
	return n_bytes;
}

/* Return the offset of the first byte that no version of gpuload writes; -1: all are valid. */
static int find_bad_byte(const unsigned char *from, size_t n_bytes)
{
	const unsigned char link_layer = from[5];
	const bool has_datagrams = from[10] & GPUL_VERBS_DATAGRAM_FLAG;
	const uint32_t lid = from[12] | (uint32_t)from[13] << 8;

	if (link_layer != IBV_LINK_LAYER_INFINIBAND && link_layer != IBV_LINK_LAYER_ETHERNET)
		return 5;
	if (from[6] > IBV_GID_TYPE_ROCE_V2)
		return 6;
	if (from[7] < IBV_MTU_256 || from[7] > IBV_MTU_4096)
		return 7;
	if (from[8] > GPUL_RDMA_UD)
		return 8;
	if (from[9] < 1 || from[9] > GPUL_RDMA_MAX_QPS || n_bytes != HEADER_BYTES + from[9] * (size_t)QP_BYTES)
		return 9;
	if (from[10] & ~(GPUL_VERBS_DATAGRAM_FLAG | GPUL_VERBS_GLOBAL_FLAG) || from[11])
		return 10;
	if (link_layer == IBV_LINK_LAYER_INFINIBAND && lid >= FIRST_MULTICAST_LID)
		return 12;
	if (from[14] || from[15])
		return 14;
	if (from[16] == 0xff) /* a multicast address */
		return 16;
	if (get32(from + 32) > MAX_NUMBER || (get32(from + 32) != 0) != has_datagrams)
		return 32;
	for (size_t at = HEADER_BYTES; at < n_bytes; at += QP_BYTES)
		if (!get32(from + at) || get32(from + at) > MAX_NUMBER || get32(from + at + 4) > MAX_NUMBER)
			return (int)at;
	return -1;
}

gpul_status gpul_verbs_description_read(const unsigned char *from, size_t n_bytes, gpul_verbs_description *out, gpul_error *err)
{
	int bad;

	if (n_bytes < HEADER_BYTES)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the peer's connection data has %zu bytes, but at least %d are needed: check that the peer's "
				 "backend is verbs, too",
				 n_bytes, HEADER_BYTES);
	if (memcmp(from, magic, sizeof magic) != 0 || from[4] != VERSION)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the peer's connection data is not in the format of verbs, version %d: use the same backend and "
				 "version of gpuload on both sides",
				 VERSION);
	bad = find_bad_byte(from, n_bytes);
	if (bad >= 0)
		return gpul_fail(err, GPUL_EFORMAT, bad, "the peer's connection data is malformed at byte %d (0x%02x)", bad, from[bad]);
	*out = (gpul_verbs_description){
		.link_layer = from[5],
		.gid_type = from[6],
		.mtu = from[7],
		.qp_type = from[8],
		.n_qps = from[9],
		.flags = from[10],
		.lid = (uint16_t)(from[12] | from[13] << 8),
		.datagram_qpn = get32(from + 32),
		.datagram_qkey = get32(from + 36),
	};
	memcpy(out->gid.raw, from + 16, 16);
	for (unsigned i = 0; i < out->n_qps; i++) {
		out->qps[i].qpn = get32(from + HEADER_BYTES + i * QP_BYTES);
		out->qps[i].psn = get32(from + HEADER_BYTES + i * QP_BYTES + 4);
	}
	return GPUL_OK;
}

#endif
