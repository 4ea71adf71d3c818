/* fuzz_nccl_handle.c — libFuzzer target: reads any bytes as a listener's handle, which NCCL passes on from another process.
 *
 * The input is the part after the magic number.  Its last byte selects whether the target corrects the checksum, so that the fields
 * behind it are tested, too.  An accepted handle is written again, and must then be read as the same handle. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/sha256.h"
#include "nccl/net/handle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MAGIC_BYTES = 8, CHECK_AT = 112, CHECK_BYTES = 8 };

static void require(int truth)
{
	if (!truth)
		abort();
}

static void sign(unsigned char bytes[GPUL_NCCL_HANDLE_BYTES])
{
	unsigned char digest[GPUL_SHA256_BYTES];
	gpul_sha256 s;

	gpul_sha256_begin(&s);
	gpul_sha256_add(&s, bytes, CHECK_AT);
	gpul_sha256_end(&s, digest);
	memcpy(bytes + CHECK_AT, digest, CHECK_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	unsigned char bytes[GPUL_NCCL_HANDLE_BYTES] = "gpulNCCL";
	const size_t n = n_bytes < sizeof bytes - MAGIC_BYTES ? n_bytes : sizeof bytes - MAGIC_BYTES;
	gpul_net_handle h = { .backend = 0 }, again;
	gpul_error err = { 0 };

	if (n)
		memcpy(bytes + MAGIC_BYTES, data, n);
	if (n_bytes && data[n_bytes - 1] % 2)
		sign(bytes);
	if (gpul_net_handle_read(bytes, &h, &err)) {
		require(err.text[0] && !h.backend && !h.address[0]);
		return 0;
	}
	require(h.backend == GPUL_NET_VERBS || h.backend == GPUL_NET_LIBFABRIC);
	require(memchr(h.address, '\0', sizeof h.address) && strncmp(h.address, "unix:", 5));
	require(strspn(h.address, "0123456789.:[]abcdefABCDEF") == strlen(h.address));
	gpul_net_handle_write(&h, bytes);
	require(gpul_net_handle_read(bytes, &again, NULL) == GPUL_OK);
	require(again.backend == h.backend && !strcmp(again.address, h.address) && !memcmp(again.secret, h.secret, sizeof h.secret));
	return 0;
}
