/* interfaces.c — selects network interfaces. */
#include "nccl/net/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

bool gpul_net_interface_matches(const char *rule, const char *name)
{
	const bool excludes = *rule == '^';
	bool found = false, exact;

	rule += excludes;
	exact = *rule == '=';
	rule += exact;
	while (*rule) {
		const size_t word = strcspn(rule, ","), n = strcspn(rule, ",:"); /* NAME:PORT is allowed; the port has no meaning here */

		found |= n && !strncmp(rule, name, n) && (!exact || !name[n]);
		rule += word + (rule[word] == ',');
	}
	return found != excludes;
}

static bool is_usable(const struct ifaddrs *a, int family)
{
	const int is = a->ifa_addr ? a->ifa_addr->sa_family : 0;

	if (!(a->ifa_flags & IFF_UP) || !(a->ifa_flags & IFF_RUNNING) || (is != AF_INET && is != AF_INET6) || (family && is != family))
		return false;
	return is == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a->ifa_addr)->sin6_addr);
}

static void add_interface(const struct ifaddrs *a, gpul_net_interface *out, unsigned *n)
{
	const socklen_t bytes = a->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	gpul_net_interface *i = &out[*n];

	for (unsigned k = 0; k < *n; k++)
		if (!strcmp(out[k].name, a->ifa_name))
			return;
	if (*n == GPUL_NET_MAX_INTERFACES || strlen(a->ifa_name) >= sizeof i->name ||
	    getnameinfo(a->ifa_addr, bytes, i->address, sizeof i->address, NULL, 0, NI_NUMERICHOST))
		return;
	strcpy(i->name, a->ifa_name);
	++*n;
}

gpul_status gpul_net_interfaces_read(const char *rule, int family, gpul_net_interface out[GPUL_NET_MAX_INTERFACES], unsigned *n,
				     gpul_error *err)
{
	static const char *const defaults[] = { "^docker,lo,virbr", "docker", "lo", "virbr" };
	const unsigned n_rules = rule && *rule ? 1 : sizeof defaults / sizeof *defaults;
	struct ifaddrs *all;

	if (getifaddrs(&all))
		return gpul_fail(err, GPUL_ESYS, errno, "getifaddrs: %s", strerror(errno));
	*n = 0;
	for (unsigned r = 0; r < n_rules && !*n; r++)
		for (int v6 = 0; v6 < 2; v6++)
			for (const struct ifaddrs *a = all; a; a = a->ifa_next)
				if (is_usable(a, family) && (a->ifa_addr->sa_family == AF_INET6) == v6 &&
				    gpul_net_interface_matches(n_rules == 1 ? rule : defaults[r], a->ifa_name))
					add_interface(a, out, n);
	freeifaddrs(all);
	if (*n)
		return GPUL_OK;
	return n_rules == 1 ? gpul_fail(err, GPUL_ESYS, ENODEV,
					"NCCL_SOCKET_IFNAME=%.60s selects no interface that is up and has an address", rule)
			    : gpul_fail(err, GPUL_ESYS, ENODEV, "no network interface is up and has an address");
}
