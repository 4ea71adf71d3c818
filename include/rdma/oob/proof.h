/* proof.h — how both ends of a connection prove, before HELLO, that they know a common secret.
 *
 *     client ── IDENTIFY ───────────────> server    its identity, and a random number
 *            <── CHALLENGE ──────────────           another random number, and the server's proof
 *            ── PROOF ──────────────────>           the client's proof; HELLO follows
 *
 * A proof is an HMAC-SHA256, with a key derived from the secret, of the sender's role, both random numbers and the identity.  So it
 * is valid only for one connection, one direction and one purpose; the secret is never sent. */
#ifndef GPULOAD_RDMA_OOB_PROOF_H
#define GPULOAD_RDMA_OOB_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#include "core/sha256.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_RDMA_NONCE_BYTES = 32 };

/* The identity of a connection.  The program defines the numbers; unused ones are 0. */
typedef struct gpul_rdma_identity {
	uint32_t purpose;
	uint32_t from, to; /* ranks of the connecting and of the listening end */
	uint32_t channel;  /* number of the connection, if there are several between the two ranks */
} gpul_rdma_identity;

/* The payload of the three frames.
 *
 * 0       32         48      80
 * ┌───────┬──────────┬───────┐   nonce: of the sender; PROOF repeats the nonce of IDENTIFY.  identity: of the connection.
 * │ nonce │ identity │ proof │   proof: zero in IDENTIFY
 * └───────┴──────────┴───────┘ */
typedef struct gpul_rdma_credentials {
	unsigned char nonce[GPUL_RDMA_NONCE_BYTES];
	gpul_rdma_identity identity;
	unsigned char proof[GPUL_SHA256_BYTES];
} gpul_rdma_credentials;

typedef enum gpul_rdma_role { GPUL_RDMA_CLIENT, GPUL_RDMA_SERVER } gpul_rdma_role;

/* Derive the key from a secret. */
void gpul_rdma_make_key(const char *secret, unsigned char key[GPUL_SHA256_BYTES]);
/* Fill a nonce with random bytes; false: the kernel has none. */
bool gpul_rdma_make_nonce(unsigned char nonce[GPUL_RDMA_NONCE_BYTES]);
/* Compute the proof of one end of a connection. */
void gpul_rdma_make_proof(const unsigned char key[GPUL_SHA256_BYTES], gpul_rdma_role role, const gpul_rdma_identity *identity,
			  const unsigned char client_nonce[GPUL_RDMA_NONCE_BYTES], const unsigned char server_nonce[GPUL_RDMA_NONCE_BYTES],
			  unsigned char proof[GPUL_SHA256_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
