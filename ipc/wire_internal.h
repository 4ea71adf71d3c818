/* wire_internal.h — the messages between an owner and a peer, as bytes.
 *
 *     peer ── HELLO ────────────────────────> owner   identity, kinds of memory it can map; attach or query
 *          <── OFFER + one descriptor ───────         the memory; or REFUSED; or INFO for a query
 *          ── READY (or REFUSED) ───────────>         mapped: the lease has begun
 *          <── BYE  ┄ or ┄  BYE ─────────────>        the lease ends normally
 *
 * One message is one packet of a Unix socket of type SEQPACKET, so it arrives whole or not at all.  Both ends run on one machine:
 * numbers are little endian, fields have C's layout, and assertions check the drawings.  A message contains nothing that is valid
 * in only one process, such as descriptor numbers or device ordinals.  A received message is copied once, then checked, then used. */
#ifndef GPULOAD_IPC_WIRE_INTERNAL_H
#define GPULOAD_IPC_WIRE_INTERNAL_H

#include "ipc/client.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire format is little endian: write the conversions first"
#endif

enum {
	WIRE_MAGIC = 0x49505547, /* the bytes "GUPI" as a little-endian number */
	WIRE_VERSION = 1,
	WIRE_MAX_GPUS = 16,
	WIRE_HANDLE_BYTES = 64,
};

enum wire_type { WIRE_HELLO = 1, WIRE_OFFER, WIRE_READY, WIRE_REFUSED, WIRE_INFO, WIRE_BYE };

/*  0       4         6      8
 * ┌───────┬─────────┬──────┐
 * │ magic │ version │ type │   starts every message; BYE has nothing else */
struct wire_head {
	uint32_t magic;
	uint16_t version, type;
};
_Static_assert(sizeof(struct wire_head) == 8, "as drawn");

enum { WIRE_ATTACH = 1, WIRE_QUERY = 2 };
/* Bits of wire_hello.can, besides 1 << gpul_mem_kind for each kind of memory that the process can map. */
enum { WIRE_CAN_FABRIC = 1 << 16, WIRE_CAN_EVENT = 1 << 17 };

/* 0      8        12          16      20       24        40       48          52   56      312
 * ┌──────┬────────┬───────────┬───────┬────────┬─────────┬────────┬───────────┬────┬───────┐
 * │ head │ intent │ read only │ n_gpu │ can    │ boot id │ driver │ its       │ 0  │ UUIDs │
 * └──────┴────────┴───────────┴───────┴────────┴─────────┴────────┴─version───┴────┴───────┘ */
struct wire_hello {
	struct wire_head head;
	uint32_t intent, read_only, n_gpus, can;
	unsigned char boot_id[16];
	char driver[8];
	uint32_t driver_version, zero;
	unsigned char gpu[WIRE_MAX_GPUS][16];
};
_Static_assert(sizeof(struct wire_hello) == 312, "as drawn");

/* Describes the shared memory; part of OFFER and INFO.
 *
 * 0    16           24       32      40            48     52     56      60       64     68      72
 * ┌────┬────────────┬────────┬───────┬─────────────┬──────┬──────┬───────┬────────┬──────┬───────┐
 * │ id │ generation │ mapped │ bytes │ granularity │ kind │ node │ flags │ n_dims │ slot │ via   │
 * ├────┴─┬──────────┴──┬─────┴──┬────┴────┬────────┼──────┴──────┼───────┼────────┴──────┴───────┘
 * │ UUID │ dtype       │ dim[4] │ boot id │ driver │ its version │ 0     │
 * └──────┴─────────────┴────────┴─────────┴────────┴─────────────┴───────┘
 * 72     88            96       128       144      152           156     160 */
struct wire_share {
	unsigned char id[16];
	uint64_t generation;          /* time of the offer (gpul_clock_ns()): grows from each owner of a name to the next */
	uint64_t mapped_bytes, bytes; /* size of the mapping; size of the user's data, which follows the control page */
	uint64_t granularity_bytes;
	uint32_t kind; /* a value of gpul_mem_kind */
	int32_t node;  /* NUMA node of the memory; only for kinds of host memory */
	uint32_t flags, n_dims;
	uint32_t slot, via;
	unsigned char gpu[16]; /* the owner's first GPU; for device kinds, the GPU of the memory */
	char dtype[8];
	uint64_t dim[GPUL_IPC_MAX_DIMS];
	unsigned char boot_id[16];
	char driver[8];
	uint32_t driver_version, zero;
};
_Static_assert(sizeof(struct wire_share) == 160, "as drawn");
enum { WIRE_HAS_CONTROL = 1, WIRE_IS_READ_ONLY = 2, WIRE_HAS_EVENT = 4 };
enum { WIRE_VIA_FD = 1, WIRE_VIA_FABRIC = 2, WIRE_VIA_CUDA_IPC = 3 };

/* 0      8       168      232            296
 * ┌──────┬───────┬────────┬──────────────┐   handle: CUmemFabricHandle or CUipcMemHandle, if no
 * │ head │ share │ handle │ event handle │   descriptor comes with the message */
struct wire_offer {
	struct wire_head head;
	struct wire_share share;
	unsigned char handle[WIRE_HANDLE_BYTES], event[WIRE_HANDLE_BYTES];
};
_Static_assert(sizeof(struct wire_offer) == 296, "as drawn");

/* 0      8     16    24     40          44  48
 * ┌──────┬─────┬─────┬──────┬───────────┬───┐   the peer's addresses, for display only
 * │ head │ cpu │ gpu │ UUID │ read only │ 0 │ */
struct wire_ready {
	struct wire_head head;
	uint64_t cpu, gpu;
	unsigned char device[16];
	uint32_t read_only, zero;
};
_Static_assert(sizeof(struct wire_ready) == 48, "as drawn");

/* 0      8        12       16     216
 * ┌──────┬────────┬────────┬──────┐   the reason, as in gpul_error
 * │ head │ status │ native │ text │ */
struct wire_refused {
	struct wire_head head;
	uint32_t status;
	int32_t native;
	char text[200];
};
_Static_assert(sizeof(struct wire_refused) == 216, "as drawn");

/* 0     4     8      12          16    24    32     48         56
 * ┌─────┬─────┬──────┬───────────┬─────┬─────┬──────┬──────────┐
 * │ pid │ uid │ slot │ read only │ cpu │ gpu │ UUID │ attached │ */
struct wire_peer {
	int32_t pid;
	uint32_t uid, slot, read_only;
	uint64_t cpu, gpu;
	unsigned char device[16];
	uint64_t attached_ms;
};
_Static_assert(sizeof(struct wire_peer) == 56, "as drawn");

/* 0      8       168   176   184       188 192
 * ┌──────┬───────┬─────┬─────┬─────────┬───┬──────────────────┐
 * │ head │ share │ cpu │ gpu │ n_peers │ 0 │ 64 peers         │ */
struct wire_info {
	struct wire_head head;
	struct wire_share share;
	uint64_t cpu, gpu;
	uint32_t n_peers, zero;
	struct wire_peer peer[GPUL_IPC_MAX_PEERS];
};
_Static_assert(sizeof(struct wire_info) == 192 + 56 * GPUL_IPC_MAX_PEERS, "as drawn");

typedef union gpul_ipc_message {
	struct wire_head head;
	struct wire_hello hello;
	struct wire_offer offer;
	struct wire_ready ready;
	struct wire_refused refused;
	struct wire_info info;
} gpul_ipc_message;

/** Check and copy a received message; the bytes are not trusted.
 *
 * @bytes    as received; copied first, then not read again
 * @n_bytes  size of the packet
 * @out      filled; all fields are valid: texts are terminated and printable, counts and enumerations are in
 *           range, sizes are consistent
 * Errors  GPUL_EFORMAT with the reason */
gpul_status gpul_ipc_wire_parse(const void *bytes, size_t n_bytes, gpul_ipc_message *out, gpul_error *err);

/* Make the head of a message of the given type. */
struct wire_head gpul_ipc_wire_head(enum wire_type type);
/* Return the size of a message of the given type; 0: unknown type. */
size_t gpul_ipc_wire_bytes(unsigned type);
/* Return the name of a message type, such as "HELLO"; "?" for an unknown type. */
const char *gpul_ipc_wire_name(unsigned type);

/* Offset of the user's bytes in the mapping. */
static inline size_t gpul_ipc_wire_data_offset(const struct wire_share *share)
{
	return share->flags & WIRE_HAS_CONTROL ? GPUL_IPC_CONTROL_BYTES : 0;
}

/* In view.c: make the view of memory that this process has mapped.  read_only: the owner or the peer requires it. */
gpul_ipc_view gpul_ipc_view_of(const gpul_driver *drv, const gpul_mem *mem, const struct wire_share *share, bool read_only);

#endif
