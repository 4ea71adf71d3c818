/* hosts_proof.c — computes the proof that a connection comes from the same job: HMAC-SHA256 with the job's secret as key. */
#include "comm/bootstrap/hosts/messages_internal.h"
#include "comm/bootstrap/job_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { SECRET_RANDOM_BYTES = 16 };

void gpul_boot_proof(const char *secret, enum boot_side side, const struct boot_visit *hello,
		     const unsigned char challenge[BOOT_NONCE_BYTES], unsigned char out[GPUL_SHA256_BYTES])
{
	static const char *const sides[] = { "gpuload visitor", "gpuload rank 0" };
	gpul_hmac h;

	gpul_hmac_begin(&h, secret, strlen(secret));
	gpul_hmac_add(&h, sides[side], strlen(sides[side]));
	gpul_hmac_add(&h, challenge, BOOT_NONCE_BYTES);
	gpul_hmac_add(&h, hello, sizeof *hello);
	gpul_hmac_end(&h, out);
}

bool gpul_boot_nonce(unsigned char out[BOOT_NONCE_BYTES])
{
	return getrandom(out, BOOT_NONCE_BYTES, 0) == BOOT_NONCE_BYTES;
}

gpul_status gpul_comm_make_secret(char out[GPUL_COMM_SECRET_BYTES], gpul_error *err)
{
	unsigned char random[SECRET_RANDOM_BYTES];

	if (getrandom(random, sizeof random, 0) != sizeof random)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(out + 2 * i, 3, "%02x", random[i]);
	return GPUL_OK;
}
