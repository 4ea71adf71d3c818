/* address.h — parses, prints and resolves addresses of listeners: "HOST[:PORT]", "[IPv6]:PORT", ":PORT", or "unix:PATH". */
#ifndef GPULOAD_RDMA_OOB_ADDRESS_H
#define GPULOAD_RDMA_OOB_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_RDMA_DEFAULT_PORT = 18515, GPUL_RDMA_ADDRESS_BYTES = 64 };

typedef struct gpul_rdma_address {
	char host[256]; /* name or IP address; "": listen on all addresses of this machine, or connect to this machine */
	char path[108]; /* path of a Unix socket; "": TCP */
	unsigned port;  /* port; 0: the system chooses one (only to listen) */
} gpul_rdma_address;

/** Parse an address.
 *
 * @text  "HOST", "HOST:PORT", "10.9.0.2:18515", "fe80::1%eth0", "[fe80::1%eth0]:18515", ":18515", "unix:/run/x.sock", ""
 * @out   untouched on failure
 * @err   explains a failure
 * Errors  GPUL_EINVAL the port is not a number from 0 to 65535, a bracket is missing, or the host or path is too long
 * Source  RFC 3986, 3.2.2 (brackets around an IPv6 address) */
gpul_status gpul_rdma_address_parse(const char *text, gpul_rdma_address *out, gpul_error *err);

/* Write an address in the form that gpul_rdma_address_parse() accepts. */
void gpul_rdma_address_print(const gpul_rdma_address *address, char out[GPUL_RDMA_ADDRESS_BYTES]);

/* Write a socket address in numeric form: "10.9.0.2:18515", "[fe80::1%2]:18515", "unix:/run/x.sock", or "unix:" for a socket
 * without a name.  An IPv4 address in IPv6 form is written as IPv4. */
void gpul_rdma_sockaddr_print(const struct sockaddr *address, socklen_t address_bytes, char out[GPUL_RDMA_ADDRESS_BYTES]);

/* The result of resolving a name: one or several socket addresses. */
typedef struct gpul_rdma_resolved {
	struct {
		struct sockaddr_storage at;
		socklen_t bytes;
	} sockaddrs[8];
	unsigned n;
} gpul_rdma_resolved;

/** Find the socket addresses of an address, for connect() or bind().
 *
 * @address  an address
 * @listen   true: for bind(): an empty host then means all addresses of this machine, the IPv6 wildcard (which accepts IPv4) first
 * @out      at least 1 and at most 8 addresses, in the system's order of preference; untouched on failure
 * @err      explains a failure
 * Errors  GPUL_ESYS the name is unknown
 * Threads any thread may call; waits for the name service, which has time limits of its own
 * Source  POSIX getaddrinfo */
gpul_status gpul_rdma_address_resolve(const gpul_rdma_address *address, bool listen, gpul_rdma_resolved *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
