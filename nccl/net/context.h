/* context.h — the opened network devices, which the listeners and connections of one communicator of NCCL share; a device is opened at its first use.
 *
 * NCCL may finalize a context while another communicator, which was made from the first one by ncclCommSplit(), still uses its connections.  So a context has a
 * reference count: each listener and connection has a reference, and releasing the last one closes the devices. */
#ifndef GPULOAD_NCCL_NET_CONTEXT_H
#define GPULOAD_NCCL_NET_CONTEXT_H

#include "nccl/net/devices.h"

typedef struct gpul_net_context gpul_net_context; /* opaque; the struct is defined in context.c */

/* The settings and devices of this process, read at the first gpul_net_context_create(). */
typedef struct gpul_net_process {
	gpul_net_options options;
	gpul_net_devices devices;
} gpul_net_process;

/** Read the settings and the devices of this process, once.
 *
 * @out  valid until the process ends; untouched on failure
 * @err  explains a failure; the next call tries again
 * Errors  as gpul_net_options_read() and gpul_net_devices_read() */
gpul_status gpul_net_process_get(const gpul_net_process **out, gpul_error *err);

/** Create a context.
 *
 * @traffic_class  traffic class of RoCE: DSCP << 2; less than 1: none
 * @out            owned by the caller: gpul_net_context_release(); untouched on failure
 * @err            explains a failure
 * Errors  as gpul_net_process_get(); GPUL_ENOMEM */
gpul_status gpul_net_context_create(int traffic_class, gpul_net_context **out, gpul_error *err);
void gpul_net_context_hold(gpul_net_context *c);
void gpul_net_context_release(gpul_net_context *c); /* accepts NULL */

/** Get a device of the send path; the first call for a device opens it.
 *
 * @c       context
 * @device  index in the list of devices
 * @out     borrowed; valid as long as the context
 * @err     explains a failure
 * Errors  GPUL_EINVAL no such device; as gpul_rdma_open() */
gpul_status gpul_net_context_device(gpul_net_context *c, int device, gpul_rdma **out, gpul_error *err);

#endif
