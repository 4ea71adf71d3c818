/* devices.h — the devices that the plug-in offers to NCCL.
 *
 *     verbs       each active port of a usable RDMA NIC; the connection's socket uses the first interface
 *     libfabric   each interface of NCCL_SOCKET_IFNAME: a connection uses the address of its socket */
#ifndef GPULOAD_NCCL_NET_DEVICES_H
#define GPULOAD_NCCL_NET_DEVICES_H

#include "nccl/net/handle.h"
#include "nccl/net/interfaces.h"
#include "nccl/net/options.h"
#include "rdma/rdma.h"

enum { GPUL_NET_MAX_DEVICES = 32, GPUL_NET_SEGMENT_BYTES = 1 << 20 };

typedef struct gpul_net_device {
	char name[64];      /* "mlx5_0:1", "tcp:eth0" */
	char pci_path[256]; /* path in /sys; "": not a PCI device */
	char interface[48]; /* network interface to whose address the listener's socket is bound */
	uint64_t guid;
	int mbits, port;
	bool dmabuf; /* GPU memory can be registered by a dma-buf */
	gpul_net_backend backend;
	char provider[32], hardware[64]; /* provider and device for gpul_rdma_device_desc; "" stands for NULL */
} gpul_net_device;

typedef struct gpul_net_devices {
	unsigned n;
	gpul_net_device at[GPUL_NET_MAX_DEVICES];
	char why[200]; /* why this backend was chosen */
} gpul_net_devices;

/** List the devices.
 *
 * @options  settings
 * @out      untouched on failure
 * @err      explains a failure
 * Errors  GPUL_EUNSUPPORTED no such device or backend; GPUL_ESYS no interface; GPUL_ENOMEM */
gpul_status gpul_net_devices_read(const gpul_net_options *options, gpul_net_devices *out, gpul_error *err);

/* Return the description with which a device is opened.  Its strings belong to *device. */
gpul_rdma_desc gpul_net_device_desc(const gpul_net_device *device, const gpul_net_options *options, int traffic_class);

#endif
