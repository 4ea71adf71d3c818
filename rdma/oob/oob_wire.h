/* oob_wire.h — encodes and decodes the frames that both ends exchange over a socket, in addition to the fabric.  No I/O.
 *
 *     client ── HELLO ──────────────────> server    what this end can do; where its slots and queue pairs are
 *            <── WELCOME ────────────────           the same about the server, with negotiated values; or REFUSED
 *            ── READY ──────────────────>           the client's queue pairs are connected
 *            <── BEAT ───────── BEAT ────>          a heartbeat: this end is alive
 *            <── FAILED ┄ or ┄ BYE ──────>          the connection ends; FAILED contains the reason
 *
 * With a secret, IDENTIFY, CHALLENGE and PROOF come before HELLO: proof.h.
 *
 *      0       4      6        8
 *     ┌───────┬──────┬────────┬─────────┐   A frame.  Numbers are little endian.  The ends run on machines that do
 *     │ magic │ type │ bytes  │ payload │   not know each other, so nothing received is used before it was checked.
 *     └───────┴──────┴────────┴─────────┘   READY and BEAT have no payload, BYE has gpul_rdma_totals. */
#ifndef GPULOAD_RDMA_OOB_OOB_WIRE_H
#define GPULOAD_RDMA_OOB_OOB_WIRE_H

#include "core/error.h"
#include "rdma/backend/backend.h"
#include "rdma/oob/proof.h"
#include "rdma/protocol/protocol_failure.h"
#include "rdma/protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	GPUL_RDMA_WIRE_VERSION = 3, /* in version 1, BYE had no payload; in version 2, slots had no check value */
	GPUL_RDMA_FRAME_HEAD_BYTES = 8,
	GPUL_RDMA_MAX_PAYLOAD = 4096,
	GPUL_RDMA_FRAME_BYTES = GPUL_RDMA_FRAME_HEAD_BYTES + GPUL_RDMA_MAX_PAYLOAD, /* limit of the bytes of a frame */
};

typedef enum gpul_rdma_frame_type {
	GPUL_RDMA_HELLO = 1,
	GPUL_RDMA_WELCOME,
	GPUL_RDMA_REFUSED,
	GPUL_RDMA_READY,
	GPUL_RDMA_BEAT,
	GPUL_RDMA_FAILED,
	GPUL_RDMA_BYE,
	GPUL_RDMA_IDENTIFY = 16,
	GPUL_RDMA_CHALLENGE,
	GPUL_RDMA_PROOF,
} gpul_rdma_frame_type;

/* bit values of gpul_rdma_hello.flags */
enum { GPUL_RDMA_HELLO_ORDERED = 1, GPUL_RDMA_HELLO_CONTROL_DATAGRAMS = 2 };

/* The payload of HELLO and WELCOME; on the wire it ends after description_bytes of the description.
 *
 * 0         4       8       12        16       20         24     28      32      36       40    44           48
 * ┌─────────┬───────┬───────┬─────────┬────────┬──────────┬──────┬───────┬───────┬────────┬─────┬────────────┐
 * │ version │ n_qps │ depth │ segment │ stripe │ striping │ type │ flags │ lease │ notice │ pid │ desc bytes │
 * ├─────────┴───────┴───┬───┴───────┬─┴────────┴──────────┴─┬────┴───────┴───────┴────────┴─────┴────────────┘
 * │ slots: address, key,│ backend   │ host                  │ description
 * └─────bytes───────────┴───────────┴───────────────────────┴┄┄┄
 * 48                    72          88                      152 */
typedef struct gpul_rdma_hello {
	uint32_t version;      /* GPUL_RDMA_WIRE_VERSION */
	uint32_t n_qps, depth; /* as in gpul_rdma_link_desc, with the same limits */
	uint32_t segment_bytes, stripe_bytes;
	uint32_t striping; /* a value of gpul_rdma_striping */
	uint32_t qp_type;  /* a value of gpul_rdma_qp_type */
	uint32_t flags;
	uint32_t lease_ms;  /* lease: this end considers a peer dead that is silent for longer; 10 ms to 1 h */
	uint32_t notice_ms; /* time that this end needs to detect a dead peer; 0: unknown; at most 1 day */
	uint32_t pid;
	uint32_t description_bytes;
	gpul_rdma_remote slots;                               /* address of this end's slots, which the other end writes */
	char backend[16];                                     /* name of the backend: "verbs" or "libfabric" */
	char host[64];                                        /* host name, only for messages */
	unsigned char description[GPUL_RDMA_MAX_DESCRIPTION]; /* how to connect to the path; only the peer's backend reads it */
} gpul_rdma_hello;
static_assert(offsetof(gpul_rdma_hello, slots) == 48 && offsetof(gpul_rdma_hello, backend) == 72 &&
		      offsetof(gpul_rdma_hello, description) == 152,
	      "as drawn");

/* 0        4        8        12        16      24     64     184    248      408
 * ┌────────┬────────┬────────┬─────────┬───────┬──────┬──────┬──────┬────────┐   gpul_rdma_failure, the payload of
 * │ status │ native │ vendor │ by peer │ after │ call │ what │ peer │ advice │   REFUSED and FAILED
 * └────────┴────────┴────────┴─────────┴───────┴──────┴──────┴──────┴────────┘ */
static_assert(sizeof(gpul_rdma_failure) == 408 && offsetof(gpul_rdma_failure, after_ns) == 16 && offsetof(gpul_rdma_failure, what) == 64 &&
		      offsetof(gpul_rdma_failure, advice) == 248,
	      "as drawn");

static_assert(sizeof(gpul_rdma_credentials) == 80, "as drawn in proof.h");

typedef struct gpul_rdma_frame {
	gpul_rdma_frame_type type;
	union {
		gpul_rdma_hello hello;             /* payload of HELLO and WELCOME */
		gpul_rdma_failure failure;         /* payload of REFUSED and FAILED */
		gpul_rdma_totals totals;           /* payload of BYE */
		gpul_rdma_credentials credentials; /* payload of IDENTIFY, CHALLENGE and PROOF */
	};
} gpul_rdma_frame;

/* Encode a frame; returns the number of bytes.  Unprintable characters in a failure's texts become '?'. */
size_t gpul_rdma_frame_encode(const gpul_rdma_frame *frame, unsigned char out[GPUL_RDMA_FRAME_BYTES]);

/** Decode the first frame of the bytes that have arrived so far, which may end in the middle of a frame.
 *
 * @bytes    not trusted
 * @n_bytes  their number; GPUL_RDMA_FRAME_BYTES are always enough for a whole frame
 * @out      filled if *used > 0: numbers are in range, texts are terminated and printable; a failure has by_peer = 1 and an empty
 *           .peer, because the address in it is only this end's address as the sender sees it
 * @used     size of the frame; 0: it is not complete yet
 * @err      explains a failure
 * Errors  GPUL_EFORMAT, as soon as the bytes cannot become a valid frame; the stream is then unusable */
gpul_status gpul_rdma_frame_decode(const void *bytes, size_t n_bytes, gpul_rdma_frame *out, size_t *used, gpul_error *err);

/* Return the name of a frame type, such as "HELLO"; "?" for an unknown type. */
const char *gpul_rdma_frame_name(unsigned type);

#ifdef __cplusplus
}
#endif

#endif
