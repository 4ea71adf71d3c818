/* sha256.h — computes SHA-256, a cryptographic digest that identifies contents, and HMAC, by which two sides prove that they know a
 * common secret. */
#ifndef GPULOAD_CORE_SHA256_H
#define GPULOAD_CORE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_SHA256_BYTES = 32 };

typedef struct gpul_sha256 {
	uint32_t state[8];
	uint64_t n_bytes;        /* bytes added so far */
	unsigned char block[64]; /* the last n_bytes % 64 bytes */
} gpul_sha256;

/** Compute a digest: begin, add bytes any number of times, end.  A copy of the struct is an independent digest. Cannot fail.  Any
 * thread, but one thread at a time for each struct.  Source: FIPS 180-4. */
void gpul_sha256_begin(gpul_sha256 *s);
void gpul_sha256_add(gpul_sha256 *s, const void *bytes, size_t n_bytes);
void gpul_sha256_end(gpul_sha256 *s, unsigned char digest[GPUL_SHA256_BYTES]);

typedef struct gpul_hmac {
	gpul_sha256 inner, outer;
} gpul_hmac;

/** HMAC-SHA256 with a key of any length; used like a digest.
 * Cannot fail.  Any thread, but one thread at a time for each struct.  Source: RFC 2104, FIPS 198-1. */
void gpul_hmac_begin(gpul_hmac *h, const void *key, size_t key_bytes);
void gpul_hmac_add(gpul_hmac *h, const void *bytes, size_t n_bytes);
void gpul_hmac_end(gpul_hmac *h, unsigned char digest[GPUL_SHA256_BYTES]);

/* Compare two digests in constant time.  Any thread. */
bool gpul_sha256_same(const unsigned char a[GPUL_SHA256_BYTES], const unsigned char b[GPUL_SHA256_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
