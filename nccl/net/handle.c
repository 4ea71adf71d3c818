/* handle.c — writes and checks the handles of listeners. */
#include "nccl/net/handle.h"

#include <arpa/inet.h>
#include <string.h>

#include "core/sha256.h"
#include "rdma/oob/address.h"

enum { VERSION_AT = 8, BACKEND_AT = 12, ADDRESS_AT = 16, SECRET_AT = 80, CHECK_AT = 112, CHECK_BYTES = 8, VERSION = 1 };
static_assert(ADDRESS_AT + GPUL_NET_ADDRESS_BYTES == SECRET_AT && SECRET_AT + GPUL_NET_SECRET_BYTES == CHECK_AT &&
		      CHECK_AT + CHECK_BYTES <= GPUL_NCCL_HANDLE_BYTES,
	      "as drawn");
static const unsigned char magic[VERSION_AT] = "gpulNCCL";

static void compute_check(const unsigned char *bytes, unsigned char check[CHECK_BYTES])
{
	unsigned char digest[GPUL_SHA256_BYTES];
	gpul_sha256 s;

	gpul_sha256_begin(&s);
	gpul_sha256_add(&s, bytes, CHECK_AT);
	gpul_sha256_end(&s, digest);
	memcpy(check, digest, CHECK_BYTES);
}

void gpul_net_handle_write(const gpul_net_handle *handle, unsigned char out[GPUL_NCCL_HANDLE_BYTES])
{
	memset(out, 0, GPUL_NCCL_HANDLE_BYTES);
	memcpy(out, magic, sizeof magic);
	out[VERSION_AT] = VERSION;
	out[BACKEND_AT] = (unsigned char)handle->backend;
	memcpy(out + ADDRESS_AT, handle->address, strnlen(handle->address, GPUL_NET_ADDRESS_BYTES - 1));
	memcpy(out + SECRET_AT, handle->secret, GPUL_NET_SECRET_BYTES);
	compute_check(out, out + CHECK_AT);
}

/* True if an address consists of a numeric IP address and a port. */
static bool is_number(const char *text)
{
	unsigned char number[sizeof(struct in6_addr)];
	gpul_rdma_address a;

	if (gpul_rdma_address_parse(text, &a, NULL) || a.path[0] || !a.port)
		return false;
	return inet_pton(AF_INET, a.host, number) == 1 || inet_pton(AF_INET6, a.host, number) == 1;
}

gpul_status gpul_net_handle_read(const unsigned char bytes[GPUL_NCCL_HANDLE_BYTES], gpul_net_handle *out, gpul_error *err)
{
	unsigned char check[CHECK_BYTES];
	gpul_net_handle h = { .backend = (gpul_net_backend)bytes[BACKEND_AT] };

	if (memcmp(bytes, magic, sizeof magic))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the peer's connection handle is not from gpuload: all ranks need the same NCCL network plug-in");
	if (bytes[VERSION_AT] != VERSION || bytes[VERSION_AT + 1])
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the peer's connection handle has version %u, but this plug-in has version %u: install the same "
				 "version on all hosts",
				 bytes[VERSION_AT] | (unsigned)bytes[VERSION_AT + 1] << 8, (unsigned)VERSION);
	compute_check(bytes, check);
	if (memcmp(check, bytes + CHECK_AT, sizeof check))
		return gpul_fail(err, GPUL_EFORMAT, 0, "the peer's connection handle is damaged: its checksum is wrong");
	if (h.backend != GPUL_NET_VERBS && h.backend != GPUL_NET_LIBFABRIC)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the peer's connection handle contains the unknown backend number %u",
				 bytes[BACKEND_AT]);
	memcpy(h.address, bytes + ADDRESS_AT, sizeof h.address);
	memcpy(h.secret, bytes + SECRET_AT, sizeof h.secret);
	if (h.address[sizeof h.address - 1] || !is_number(h.address))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the peer's connection handle has the address '%.40s': expected an IP address and a port, such "
				 "as 10.9.0.1:40123",
				 h.address[sizeof h.address - 1] ? "?" : h.address);
	*out = h;
	return GPUL_OK;
}
