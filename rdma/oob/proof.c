/* proof.c — derives keys, gets random numbers, and computes proofs. */
#include "rdma/oob/proof.h"

#include <string.h>
#include <sys/random.h>

void gpul_rdma_make_key(const char *secret, unsigned char key[GPUL_SHA256_BYTES])
{
	static const char use[] = "gpuload rdma connections";
	gpul_hmac h;

	gpul_hmac_begin(&h, secret, strlen(secret));
	gpul_hmac_add(&h, use, sizeof use);
	gpul_hmac_end(&h, key);
}

bool gpul_rdma_make_nonce(unsigned char nonce[GPUL_RDMA_NONCE_BYTES])
{
	return getrandom(nonce, GPUL_RDMA_NONCE_BYTES, 0) == GPUL_RDMA_NONCE_BYTES;
}

void gpul_rdma_make_proof(const unsigned char key[GPUL_SHA256_BYTES], gpul_rdma_role role, const gpul_rdma_identity *identity,
			  const unsigned char client_nonce[GPUL_RDMA_NONCE_BYTES], const unsigned char server_nonce[GPUL_RDMA_NONCE_BYTES],
			  unsigned char proof[GPUL_SHA256_BYTES])
{
	const unsigned char as = role == GPUL_RDMA_SERVER ? 's' : 'c';
	gpul_hmac h;

	gpul_hmac_begin(&h, key, GPUL_SHA256_BYTES);
	gpul_hmac_add(&h, &as, sizeof as);
	gpul_hmac_add(&h, client_nonce, GPUL_RDMA_NONCE_BYTES);
	gpul_hmac_add(&h, server_nonce, GPUL_RDMA_NONCE_BYTES);
	gpul_hmac_add(&h, identity, sizeof *identity);
	gpul_hmac_end(&h, proof);
}
