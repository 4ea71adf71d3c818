/* reach.c — finds out why an endpoint accepts no writes.
 *
 * libfabric connects when the first write is posted, and returns "try again" until the connection exists.  That takes some
 * milliseconds; but if a firewall blocks the peer's port, libfabric returns "try again" forever.  It also does so until the peer's
 * process calls test or progress, which is not an error.  To distinguish these cases, after WAIT_NS a TCP connection to the same
 * port is tried, and closed immediately. */
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "rdma/ofi/ofi_internal.h"

static const uint64_t WAIT_NS = 2000000000, LIMIT_NS = 3000000000;

void gpul_ofi_end_probe(struct ofi_path *p)
{
	if (p->probe.fd >= 0)
		close(p->probe.fd);
	p->probe.fd = -1;
	p->probe.ended = true;
}

static void write_name(const struct sockaddr_storage *to, char *out, size_t out_bytes)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)to;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)to;
	char host[INET6_ADDRSTRLEN] = "?";

	if (to->ss_family == AF_INET) {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
		snprintf(out, out_bytes, "%s:%u", host, ntohs(v4->sin_port));
	} else {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
		snprintf(out, out_bytes, "[%s]:%u", host, ntohs(v6->sin6_port));
	}
}

static gpul_status fail_reach(const struct sockaddr_storage *to, int number, gpul_rdma_failure *why)
{
	char name[64];

	write_name(to, name, sizeof name);
	return gpul_rdma_fail(why, GPUL_ESYS, number, "connect",
			      "check the firewall on both machines (libfabric uses a free port of its own for the data), and that this "
			      "address of the peer can be reached from here",
			      "cannot connect to the peer's data port %s: %s", name, strerror(number));
}

/* Start the test connection, or check whether it has succeeded or failed. */
static gpul_status probe(struct ofi_path *p, const struct sockaddr_storage *to, uint64_t now_ns, gpul_rdma_failure *why)
{
	struct pollfd ready = { .fd = p->probe.fd, .events = POLLOUT };
	int number = 0;
	socklen_t n = sizeof number;

	if (ready.fd < 0) {
		p->probe.fd = ready.fd = socket(to->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		p->probe.begun_ns = now_ns;
		if (ready.fd >= 0 && connect(ready.fd, (const struct sockaddr *)to, (socklen_t)p->address_bytes) && errno != EINPROGRESS)
			number = errno;
	}
	if (ready.fd < 0 || (!number && poll(&ready, 1, 0) <= 0)) {
		if (ready.fd >= 0 && now_ns - p->probe.begun_ns < LIMIT_NS)
			return GPUL_OK;
		number = ready.fd < 0 ? 0 : ETIMEDOUT;
	} else if (!number) {
		(void)getsockopt(ready.fd, SOL_SOCKET, SO_ERROR, &number, &n);
	}
	gpul_ofi_end_probe(p);
	if (number)
		return fail_reach(to, number, why);
	gpul_log(GPUL_LOG_INFO, "libfabric",
		 "the peer can be reached, but does not accept data: the peer's program must call test or "
		 "progress");
	return GPUL_OK;
}

gpul_status gpul_ofi_check_reach(struct ofi_path *p, unsigned qp, gpul_rdma_failure *why)
{
	const uint32_t format = p->device->info->addr_format;
	const uint64_t now_ns = gpul_clock_ns();
	struct sockaddr_storage to = { 0 };

	if (p->probe.ended || (format != FI_SOCKADDR_IN && format != FI_SOCKADDR_IN6))
		return GPUL_OK;
	if (!p->probe.since_ns)
		p->probe.since_ns = now_ns;
	if (now_ns - p->probe.since_ns < WAIT_NS)
		return GPUL_OK;
	memcpy(&to, p->addresses + qp * p->address_bytes, p->address_bytes);
	return probe(p, &to, now_ns, why);
}

#else
typedef int no_libfabric;
#endif
