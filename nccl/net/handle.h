/* handle.h — the handle of a listener: what a peer needs to connect, in the 128 bytes that NCCL carries to it.
 *
 *     0         8     10   12        16             80           112       120   128
 *     ┌─────────┬─────┬────┬─────────┬──────────────┬────────────┬─────────┬─────┐   address: "10.9.0.1:40123" of the socket, NUL-padded
 *     │ magic   │ ver │ 0  │ backend │ address      │ secret     │ check   │ 0   │   secret: random, of this listener alone
 *     └─────────┴─────┴────┴─────────┴──────────────┴────────────┴─────────┴─────┘   check: first 8 bytes of the SHA-256 of bytes 0 to 111
 *
 * The secret is the proof that a peer has got the handle from NCCL: each side proves that it knows the secret, without sending it.  The
 * check only detects damage.  A handle comes from another process, so every field is checked; its address must be a number, so that
 * a handle cannot make this process look up names or open a Unix socket. */
#ifndef GPULOAD_NCCL_NET_HANDLE_H
#define GPULOAD_NCCL_NET_HANDLE_H

#include "core/error.h"
#include "nccl/net/nccl_abi.h"

enum { GPUL_NET_ADDRESS_BYTES = 64, GPUL_NET_SECRET_BYTES = 32 };

typedef enum gpul_net_backend { GPUL_NET_VERBS = 1, GPUL_NET_LIBFABRIC = 2 } gpul_net_backend;

typedef struct gpul_net_handle {
	gpul_net_backend backend;
	char address[GPUL_NET_ADDRESS_BYTES];
	unsigned char secret[GPUL_NET_SECRET_BYTES];
} gpul_net_handle;

/* Write a handle; all 128 bytes are set. */
void gpul_net_handle_write(const gpul_net_handle *handle, unsigned char out[GPUL_NCCL_HANDLE_BYTES]);

/** Read a handle of a peer.
 *
 * @bytes  128 bytes, not trusted
 * @out    untouched on failure
 * @err    explains a failure
 * Errors  GPUL_EFORMAT another plug-in or version, or damaged; GPUL_EINVAL the address is not a number and a port */
gpul_status gpul_net_handle_read(const unsigned char bytes[GPUL_NCCL_HANDLE_BYTES], gpul_net_handle *out, gpul_error *err);

#endif
