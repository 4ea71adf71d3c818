/* udp_path.c — the sockets of a connection.
 *
 *      0      4      8          16      18            34
 *     ┌──────┬──────┬──────────┬───────┬─────────────┐    the description: number of paths, MTU of the interface, token that the peer
 *     │paths │ mtu  │ token    │ port  │ address     │    puts into its datagrams, and the receiving socket's port and IPv6 address
 *     └──────┴──────┴──────────┴───────┴─────────────┘    (IPv4 as ::ffff:a.b.c.d), both in network order */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "rdma/udp/udp_internal.h"

enum { DESCRIPTION_BYTES = 34, SOCKET_BYTES = 8 << 20, HEADERS = 40 + 8 + 64, LEAST_MTU = 576, MOST_CHUNK = 8192, LINUX_UDP_GRO = 104 };

/* ---- create -------------------------------------------------------------------------------------------------------- */

/* The IPv6 form of the local address of the connection's TCP socket; over a Unix socket, the loopback address. */
static struct sockaddr_in6 own_address(const struct sockaddr *from)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6 };

	memcpy(&a.sin6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	if (from && from->sa_family == AF_INET)
		memcpy(&a.sin6_addr.s6_addr[12], &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
	else if (from && from->sa_family == AF_INET6) {
		a.sin6_addr = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
		a.sin6_scope_id = ((const struct sockaddr_in6 *)(const void *)from)->sin6_scope_id;
	}
	return a;
}

static bool has_address(const struct ifaddrs *i, const struct sockaddr_in6 *a)
{
	const struct sockaddr_in6 b = i->ifa_addr ? own_address(i->ifa_addr) : *a;

	return i->ifa_addr && (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6) &&
	       !memcmp(&a->sin6_addr, &b.sin6_addr, 16);
}

/* The MTU of the interface with this address; 1500 if it is not found. */
static uint32_t find_mtu(int fd, const struct sockaddr_in6 *a)
{
	struct ifaddrs *all = NULL;
	uint32_t mtu = 1500;

	if (getifaddrs(&all))
		return mtu;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct ifreq r = { 0 };

		if (!has_address(i, a))
			continue;
		strncpy(r.ifr_name, i->ifa_name, sizeof r.ifr_name - 1);
		if (!ioctl(fd, SIOCGIFMTU, &r) && r.ifr_mtu >= LEAST_MTU)
			mtu = (uint32_t)r.ifr_mtu;
		break;
	}
	freeifaddrs(all);
	return mtu;
}

/* Ask for large socket buffers: as root beyond the system's limit, else up to it. */
static void enlarge(int fd, int force, int option)
{
	const int bytes = SOCKET_BYTES;

	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof bytes))
		(void)setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
}

static gpul_status create_socket(const struct sockaddr_in6 *own, int *fd, gpul_error *err)
{
	struct sockaddr_in6 any_port = *own;
	const int off = 0;

	any_port.sin6_port = 0;
	*fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "socket: %s", strerror(errno));
	(void)setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(*fd, (const struct sockaddr *)&any_port, sizeof any_port))
		return gpul_fail(err, GPUL_ESYS, errno, "bind, for datagrams: %s", strerror(errno));
	return GPUL_OK;
}

static gpul_status create_sockets(struct udp_path *p, gpul_error *err)
{
	socklen_t n_bytes = sizeof p->own;
	const int on = 1;
	gpul_status st = create_socket(&p->own, &p->receiver, err);

	if (st)
		return st;
	enlarge(p->receiver, SO_RCVBUFFORCE, SO_RCVBUF);
	(void)setsockopt(p->receiver, IPPROTO_UDP, LINUX_UDP_GRO, &on, sizeof on);
	if (getsockname(p->receiver, (struct sockaddr *)&p->own, &n_bytes))
		return gpul_fail(err, GPUL_ESYS, errno, "getsockname: %s", strerror(errno));
	p->mtu = find_mtu(p->receiver, &p->own);
	for (unsigned i = 0; !st && i < p->n_paths; i++) {
		st = create_socket(&p->own, &p->senders[i], err);
		if (!st)
			enlarge(p->senders[i], SO_SNDBUFFORCE, SO_SNDBUF);
	}
	return st;
}

gpul_status gpul_udp_path_create(void *device, unsigned n_qps, unsigned depth, unsigned n_recvs, const struct sockaddr *from, void **path,
				 gpul_error *err)
{
	struct udp_path *p = calloc(1, sizeof *p);
	gpul_status st = GPUL_OK;

	(void)n_recvs;
	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	p->device = device;
	p->n_paths = p->device->n_paths;
	p->receiver = -1;
	memset(p->senders, 0xff, sizeof p->senders);
	p->own = own_address(from);
	p->buffers = malloc((size_t)UDP_BUFFERS * UDP_BUFFER_BYTES);
	if (!p->buffers)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	else if (getrandom(&p->token, sizeof p->token, 0) != sizeof p->token)
		st = gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	if (!st)
		st = gpul_rel_ops_create(&p->ops, n_qps * depth, err);
	if (!st)
		st = create_sockets(p, err);
	if (st)
		gpul_udp_path_destroy(p);
	else
		*path = p;
	return st;
}

/* ---- connect ------------------------------------------------------------------------------------------------------- */

size_t gpul_udp_path_describe(void *path, unsigned char out[GPUL_RDMA_MAX_DESCRIPTION])
{
	const struct udp_path *p = path;
	const uint32_t head[2] = { p->n_paths, p->mtu };

	memcpy(out, head, 8);
	memcpy(out + 8, &p->token, 8);
	memcpy(out + 16, &p->own.sin6_port, 2);
	memcpy(out + 18, &p->own.sin6_addr, 16);
	return DESCRIPTION_BYTES;
}

/* Return the smallest window, a power of two, of which half holds the longest segment. */
static uint32_t window_for(uint32_t chunk_bytes)
{
	uint32_t window = 4096;

	while (window / 2 * chunk_bytes < GPUL_RDMA_MAX_SEGMENT)
		window *= 2;
	return window;
}

static gpul_status create_reliable(struct udp_path *p, uint32_t mtu, uint64_t peer_token, gpul_error *err)
{
	const uint32_t room = (mtu < p->mtu ? mtu : p->mtu) - HEADERS, chunk = (room < MOST_CHUNK ? room : MOST_CHUNK) / 8 * 8;
	/* clang-format off */
	const gpul_rel_options o = {
		.chunk_bytes = chunk, .window = window_for(chunk), .messages = 1024, .n_paths = p->n_paths, .spread = GPUL_REL_TWO_CHOICES,
		.burst = UDP_BATCH_BYTES / (chunk + 64), .threshold = 3, .control = GPUL_REL_SWIFT, .target_ns = 5000000,
		.rto_min_ns = 20000000, .rto_max_ns = UINT64_C(500000000), .ack_every = 32, .ack_delay_ns = 20000,
		.token = p->token, .peer_token = peer_token, .seed = p->token,
	};
	/* clang-format on */

	return gpul_rel_create(&o, gpul_clock_ns(), &p->rel, err);
}

gpul_status gpul_udp_path_connect(void *path, const unsigned char *description, size_t n_bytes, gpul_error *err)
{
	struct udp_path *p = path;
	struct sockaddr_in6 peer = { .sin6_family = AF_INET6, .sin6_scope_id = p->own.sin6_scope_id };
	uint32_t head[2] = { 0, 0 };
	uint64_t token = 0;

	if (n_bytes == DESCRIPTION_BYTES) {
		memcpy(head, description, 8);
		memcpy(&token, description + 8, 8);
		memcpy(&peer.sin6_port, description + 16, 2);
		memcpy(&peer.sin6_addr, description + 18, 16);
	}
	if (head[0] < 1 || head[0] > GPUL_REL_MAX_PATHS || head[1] < LEAST_MTU || head[1] > 1 << 20 || !peer.sin6_port)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the peer describes %u paths with an MTU of %u in %zu bytes: expected 1 to %d, and at least %d", head[0],
				 head[1], n_bytes, GPUL_REL_MAX_PATHS, LEAST_MTU);
	p->n_paths = head[0] < p->n_paths ? head[0] : p->n_paths;
	for (unsigned i = 0; i < p->n_paths; i++)
		if (connect(p->senders[i], (const struct sockaddr *)&peer, sizeof peer))
			return gpul_fail(err, GPUL_ESYS, errno, "connect, for datagrams: %s", strerror(errno));
	return create_reliable(p, head[1], token, err);
}

void gpul_udp_path_break(void *path)
{
	struct udp_path *p = path;

	if (p->receiver >= 0)
		close(p->receiver);
	for (unsigned i = 0; i < GPUL_REL_MAX_PATHS; i++)
		if (p->senders[i] >= 0)
			close(p->senders[i]);
	p->receiver = -1;
	memset(p->senders, 0xff, sizeof p->senders);
}

unsigned gpul_udp_path_stats(void *path, gpul_rel_counters *out, gpul_rel_path_info *paths, unsigned max)
{
	const struct udp_path *p = path;

	gpul_rel_count(p->rel, out);
	for (unsigned i = 0; i < p->n_paths && i < max; i++)
		gpul_rel_path_about(p->rel, i, &paths[i]);
	return p->n_paths;
}

void gpul_udp_path_record(void *path, gpul_rel_trace *trace)
{
	gpul_rel_record(((struct udp_path *)path)->rel, trace);
}

/* Log what the connection has done. */
static void log_counters(const struct udp_path *p)
{
	gpul_rel_counters n;
	gpul_rel_path_info first;

	gpul_rel_count(p->rel, &n);
	gpul_rel_path_about(p->rel, 0, &first);
	gpul_log(
		GPUL_LOG_INFO, "rdma",
		"reliable-udp: %llu chunks sent, %llu of them again (%llu found lost, %llu time-outs), %llu received, %llu twice; "
		"%llu acknowledgements sent; %llu times a path died, %llu returned; path 0: round trip %.0f us, shortest %.0f us, window %.0f chunks",
		(unsigned long long)n.chunks_sent, (unsigned long long)n.chunks_again, (unsigned long long)n.losses,
		(unsigned long long)n.timeouts, (unsigned long long)n.chunks_received, (unsigned long long)n.duplicates,
		(unsigned long long)n.acks_sent, (unsigned long long)n.paths_died, (unsigned long long)n.paths_returned,
		(double)first.rtt_ns * 1e-3, (double)first.rtt_min_ns * 1e-3, first.window);
}

void gpul_udp_path_destroy(void *path)
{
	struct udp_path *p = path;

	if (!p)
		return;
	gpul_udp_path_break(p);
	if (p->rel)
		log_counters(p);
	gpul_rel_destroy(p->rel);
	free(p->buffers);
	gpul_rel_ops_destroy(&p->ops);
	free(p);
}
