/* interfaces.h — the network interfaces that connections use, by the rules of NCCL_SOCKET_IFNAME.
 *
 *     "eth,ib"    interfaces whose name begins with eth or ib        "^docker,lo"   all whose name begins with neither
 *     "=eth0"     exactly eth0                                       "^=eth0"       all but eth0
 *     unset       "^docker,lo,virbr"; if there is none, those of docker, then lo, then virbr */
#ifndef GPULOAD_NCCL_NET_INTERFACES_H
#define GPULOAD_NCCL_NET_INTERFACES_H

#include <stdbool.h>

#include "core/error.h"

enum { GPUL_NET_MAX_INTERFACES = 16 };

typedef struct gpul_net_interface {
	char name[16];    /* "eth0" */
	char address[48]; /* a numeric address, such as "192.0.2.2" or "fd00::2" */
} gpul_net_interface;

/* True if a rule selects an interface. */
bool gpul_net_interface_matches(const char *rule, const char *name);

/** List the interfaces that are up and that the rule selects, IPv4 before IPv6: one address for each.
 *
 * @rule     NULL: the default
 * @family   AF_INET or AF_INET6: only addresses of this family; 0: any.  Link-local addresses are not used
 * @out      the first GPUL_NET_MAX_INTERFACES of them
 * @n        number of elements of out
 * @err      explains a failure
 * Errors  GPUL_ESYS native = ENODEV: the rule selects none; or the interfaces cannot be read
 * Source  NVIDIA, NCCL User Guide, Environment Variables: NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY */
gpul_status gpul_net_interfaces_read(const char *rule, int family, gpul_net_interface out[GPUL_NET_MAX_INTERFACES], unsigned *n,
				     gpul_error *err);

#endif
