/* options.h — the settings of the plug-in, from the environment. */
#ifndef GPULOAD_NCCL_NET_OPTIONS_H
#define GPULOAD_NCCL_NET_OPTIONS_H

#include "core/error.h"

/* The strings belong to the environment.  NULL: the variable is not set. */
typedef struct gpul_net_options {
	const char *provider;   /* GPULOAD_NET_PROVIDER: "verbs", "libfabric" (its provider tcp), or the name of a provider of
				 * libfabric; NULL: verbs if there is an active NIC, else libfabric */
	const char *device;     /* GPULOAD_NET_DEVICE: "mlx5_0", or a domain of libfabric */
	const char *secret;     /* GPULOAD_RDMA_SECRET: secret of the job, in addition to the secret in each handle */
	const char *interfaces; /* NCCL_SOCKET_IFNAME */
	int family;             /* NCCL_SOCKET_FAMILY: AF_INET, AF_INET6, or 0 */
	int n_qps;              /* GPULOAD_NET_QPS: queue pairs of a connection; 1 to 16, default 1 */
	int lease_ms;           /* GPULOAD_NET_LEASE_MS: a peer that is silent for this long is considered dead; 100 to 600000,
				  * default 10000 */
	int connect_ms;         /* GPULOAD_NET_CONNECT_MS: time for a connection; 100 to 600000, default 60000 */
} gpul_net_options;

/** Read the settings.
 *
 * @out  untouched on failure
 * @err  explains a failure
 * Errors  GPUL_EINVAL a value is not a number, or out of range: the text names the variable */
gpul_status gpul_net_options_read(gpul_net_options *out, gpul_error *err);

#endif
