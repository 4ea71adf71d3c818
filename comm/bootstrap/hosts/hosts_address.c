/* hosts_address.c — chooses the address and the port at which rank 0 listens. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/bootstrap/hosts/hosts_internal.h"
#include "comm/bootstrap/job_internal.h"
#include "core/log.h"

static bool is_number(const char *host)
{
	struct in_addr v4;

	return strchr(host, ':') || inet_pton(AF_INET, host, &v4) == 1;
}

/* Find the interface of the default route; "": there is none. */
static void find_default_route(char out[IF_NAMESIZE])
{
	FILE *f = fopen("/proc/net/route", "re");
	char line[256], name[IF_NAMESIZE];
	unsigned long to;

	out[0] = '\0';
	while (f && !out[0] && fgets(line, sizeof line, f))
		if (sscanf(line, "%15s %lx", name, &to) == 2 && to == 0)
			memcpy(out, name, sizeof name);
	if (f)
		fclose(f);
}

/* Rate an address of an interface; 0: not usable. */
static int rate_address(const struct ifaddrs *a, const char *wanted, const char *route)
{
	int score = 1;

	if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
		return 0;
	if (a->ifa_addr->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr))
		return 0; /* a link-local address is valid on its own link only */
	if (wanted[0] ? strcmp(a->ifa_name, wanted) != 0 : (a->ifa_flags & IFF_LOOPBACK))
		return 0;
	score += a->ifa_addr->sa_family == AF_INET;
	/* a running interface is preferred; one that has just come up does not have the flag yet */
	score += a->ifa_flags & IFF_RUNNING ? 4 : 0;
	return score + 2 * (strcmp(a->ifa_name, route) == 0);
}

/* Choose an IP address of this machine. wanted: an interface; "": that of the default route, else the first one that is up. */
static gpul_status choose_address(const char *wanted, char *out, size_t out_bytes, gpul_error *err)
{
	struct ifaddrs *all = NULL, *best = NULL;
	char route[IF_NAMESIZE];
	int best_score = 0, error = 0;

	find_default_route(route);
	if (getifaddrs(&all))
		return gpul_fail(err, GPUL_ESYS, errno, "getifaddrs: %s", strerror(errno));
	for (struct ifaddrs *a = all; a; a = a->ifa_next) {
		const int score = rate_address(a, wanted, route);

		if (score > best_score) {
			best = a;
			best_score = score;
		}
	}
	if (best)
		error = getnameinfo(best->ifa_addr,
				    best->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6), out,
				    (socklen_t)out_bytes, NULL, 0, NI_NUMERICHOST);
	freeifaddrs(all);
	if (best && !error)
		return GPUL_OK;
	return wanted[0] ? gpul_fail(err, GPUL_ESYS, ENODEV,
				     "GPULOAD_COMM_INTERFACE=%s: there is no such interface, or it is down or has no address", wanted)
			 : gpul_fail(err, GPUL_ESYS, ENODEV, "no network interface is up, so ranks of other hosts cannot connect");
}

static gpul_status apply_interface(const char *interface, gpul_rdma_address *address, gpul_error *err)
{
	if (!is_number(interface))
		return choose_address(interface, address->host, sizeof address->host, err);
	snprintf(address->host, sizeof address->host, "%s", interface);
	return GPUL_OK;
}

gpul_status gpul_boot_listen(const gpul_comm_job *job, gpul_rdma_port *out, gpul_error *err)
{
	gpul_rdma_address address;
	gpul_status st = gpul_rdma_address_parse(job->address, &address, err);

	if (st)
		return st;
	if (job->interface[0])
		st = apply_interface(job->interface, &address, err);
	else if (!is_number(
			 address.host)) /* for a host name, /etc/hosts often has an address that others cannot reach, such as 127.0.1.1 */
		address.host[0] = '\0';
	if (!st)
		st = gpul_rdma_port_open(&address, out, err);
	if (!st)
		gpul_log(GPUL_LOG_INFO, "comm", "rank 0 of job %s listens on %s, announced as %s%s%s", job->name, out->name, job->address,
			 job->interface[0] ? "; chosen by GPULOAD_COMM_INTERFACE=" : "", job->interface);
	return st;
}

/* A socket that is bound, but does not listen, keeps other programs from using the port; with SO_REUSEADDR on both sockets,
 * this process can still listen there (Linux).  The socket stays open until the process ends. */
static int reserve_port(const gpul_rdma_address *address, unsigned *port)
{
	struct sockaddr_storage bound = { 0 };
	socklen_t n = sizeof bound;
	gpul_rdma_resolved to;
	const int on = 1;
	int fd;

	if (gpul_rdma_address_resolve(address, false, &to, NULL))
		return EADDRNOTAVAIL;
	fd = socket(to.sockaddrs[0].at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
	    bind(fd, (const struct sockaddr *)&to.sockaddrs[0].at, to.sockaddrs[0].bytes) ||
	    getsockname(fd, (struct sockaddr *)&bound, &n)) {
		const int error = errno;

		close(fd);
		return error;
	}
	/* sockaddr_in6 has the port at the same offset as sockaddr_in */
	*port = ntohs(((const struct sockaddr_in *)(const void *)&bound)->sin_port);
	return 0;
}

gpul_status gpul_comm_reserve_address(const char *interface, char out[GPUL_COMM_ADDRESS_BYTES], gpul_error *err)
{
	gpul_rdma_address address = { .port = 0 };
	gpul_status st = apply_interface(interface, &address, err);
	int error;

	if (st)
		return st;
	error = reserve_port(&address, &address.port);
	if (error)
		return gpul_fail(err, GPUL_ESYS, error, "cannot reserve a port of %.100s: %s", address.host, strerror(error));
	snprintf(out, GPUL_COMM_ADDRESS_BYTES, strchr(address.host, ':') ? "[%s]:%u" : "%s:%u", address.host, address.port);
	return GPUL_OK;
}
