/* proof.c — the proof that a connection comes from the same job: HMAC-SHA256 with the job's secret as key. */
#include "comm/bootstrap/hosts/messages_internal.h"
#include "comm/bootstrap/job_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { BLOCK_BYTES = 64 /* of SHA-256 */, SECRET_RANDOM_BYTES = 16 };

/* RFC 2104: H(key ^ outer, H(key ^ inner, text)). */
static void begin_hmac(const unsigned char key[BLOCK_BYTES], unsigned char pad, gpul_sha256 *out)
{
	unsigned char block[BLOCK_BYTES];

	for (int i = 0; i < BLOCK_BYTES; i++)
		block[i] = key[i] ^ pad;
	gpul_sha256_begin(out);
	gpul_sha256_add(out, block, sizeof block);
}

static void make_key(const char *secret, unsigned char out[BLOCK_BYTES])
{
	size_t n = strlen(secret);
	gpul_sha256 hash;

	memset(out, 0, BLOCK_BYTES);
	if (n <= BLOCK_BYTES) {
		memcpy(out, secret, n);
		return;
	}
	gpul_sha256_begin(&hash);
	gpul_sha256_add(&hash, secret, n);
	gpul_sha256_end(&hash, out);
}

void gpul_boot_proof(const char *secret, enum boot_side side, const struct boot_visit *hello,
		     const unsigned char challenge[BOOT_NONCE_BYTES], unsigned char out[GPUL_SHA256_BYTES])
{
	static const char *const sides[] = { "gpuload visitor", "gpuload rank 0" };
	unsigned char key[BLOCK_BYTES], inner[GPUL_SHA256_BYTES];
	gpul_sha256 hash;

	make_key(secret, key);
	begin_hmac(key, 0x36, &hash);
	gpul_sha256_add(&hash, sides[side], strlen(sides[side]));
	gpul_sha256_add(&hash, challenge, BOOT_NONCE_BYTES);
	gpul_sha256_add(&hash, hello, sizeof *hello);
	gpul_sha256_end(&hash, inner);
	begin_hmac(key, 0x5c, &hash);
	gpul_sha256_add(&hash, inner, sizeof inner);
	gpul_sha256_end(&hash, out);
}

bool gpul_boot_same_proof(const unsigned char *a, const unsigned char *b)
{
	volatile unsigned char different = 0;

	for (int i = 0; i < GPUL_SHA256_BYTES; i++)
		different = different | (unsigned char)(a[i] ^ b[i]);
	return different == 0;
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
