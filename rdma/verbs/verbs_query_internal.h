/* verbs_query_internal.h — functions that verbs_devices.c and verbs_ports.c share. */
#ifndef GPULOAD_RDMA_VERBS_VERBS_QUERY_INTERNAL_H
#define GPULOAD_RDMA_VERBS_VERBS_QUERY_INTERNAL_H

#include "rdma/verbs/verbs_devices.h"
#include "rdma/verbs/verbs_lib.h"

#if GPUL_HAVE_LIBIBVERBS

/* Fill in d->ports, which has d->n_ports elements, and their GIDs.  On failure (no memory), the
 * filled parts are released together with d. */
gpul_status gpul_verbs_read_ports(const struct gpul_verbs *v, struct ibv_context *ctx, gpul_verbs_device_info *d, gpul_error *err);

#endif
#endif
