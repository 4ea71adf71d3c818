/* rdma_devices.h — gpuload rdma devices: the NICs, libfabric's providers, and the distance of each NIC from each GPU.
 *
 *     sysfs ──> nic/ ────┐
 *     libibverbs ────────┼──> struct rdma_devices ──> text or JSON
 *     libfabric ─────────┤
 *     the driver's GPUs ─┘ */
#ifndef GPULOAD_CLI_RDMA_DEVICES_RDMA_DEVICES_H
#define GPULOAD_CLI_RDMA_DEVICES_RDMA_DEVICES_H

#include "cli/lib/command.h"
#include "cli/lib/json/cli_json.h"
#include "driver/driver.h"
#include "rdma/nic/topology.h"
#include "rdma/ofi/ofi_devices.h"
#include "rdma/verbs/verbs_devices.h"

extern const struct cli_cmd cli_rdma_devices;

enum { RDMA_MAX_GPUS = 64 };

struct rdma_gpu {
	int ordinal;                   /* the driver's ordinal; in a recorded copy of /sys, the position in the list */
	char name[128];                /* name of the GPU; "": a recorded copy of /sys, which has no names */
	char pci[GPUL_PCI_TEXT_BYTES]; /* PCI address of the GPU; "": none */
	const gpul_nic *nic;           /* the NIC that is used for this GPU; NULL: there is none */
	char why[GPUL_NIC_WHY_BYTES];
};

/* a device in the lists of sysfs and libibverbs; a pointer is NULL if the device is not in that list */
struct rdma_device_row {
	const gpul_nic *nic;                 /* the NIC as sysfs shows it */
	const gpul_verbs_device_info *verbs; /* the device as libibverbs shows it */
};

struct rdma_devices {
	const char *recorded; /* root folder of a recorded copy of /sys; NULL: /sys of this machine */
	gpul_nic_topology *topology;
	gpul_verbs_devices verbs;
	char no_verbs[248];         /* why libibverbs lists no devices; "": its devices are listed */
	gpul_ofi_entries providers; /* the providers that libfabric lists */
	char no_providers[248];     /* why libfabric lists no providers; "": its providers are listed */
	size_t n_rows, n_gpus;
	struct rdma_device_row *rows; /* sorted by name */
	struct rdma_gpu gpus[RDMA_MAX_GPUS];
	char no_gpus[248];   /* why the driver cannot be opened; "": it was opened */
	const gpul_nic *nic; /* the NIC for host memory; NULL: there is none */
	char why[GPUL_NIC_WHY_BYTES];
};

/** Collect the NICs, the providers and the GPUs.  A missing library or driver is not an error: .no_verbs and similar
 * members contain the reason.
 *
 * @d       .recorded is set, the rest zero; the caller calls rdma_devices_free(), even after a failure
 * @choice  the driver whose GPUs are listed; it is opened only if there is a NIC
 * Errors  as gpul_nic_topology_read()
 * Threads one at a time */
gpul_status rdma_devices_collect(struct rdma_devices *d, gpul_driver_choice choice, gpul_error *err);
void rdma_devices_free(struct rdma_devices *d); /* accepts a *d of zeros; cannot fail */

/* rdma_device_name() returns the name of a row's device; rdma_device_distance() returns the distance of the row's NIC from a GPU. */
const char *rdma_device_name(const struct rdma_device_row *r);
gpul_nic_distance rdma_device_distance(const struct rdma_devices *d, const struct rdma_device_row *r, const struct rdma_gpu *gpu);

/** Print as text: tables, or with `all` every attribute and GID.
 *
 * @d    filled
 * @all  print everything
 * Errors  as out_flush()
 * Threads one at a time */
gpul_status rdma_devices_print(const struct rdma_devices *d, bool all, gpul_error *err);

/* Print everything as one JSON object; README.md describes the members. */
void rdma_devices_json(struct json *j, const struct rdma_devices *d);

#endif
