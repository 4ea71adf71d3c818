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
	int ordinal;                   /* the driver's ordinal; in a recorded tree, the position in the list */
	char name[128];                /* name of the GPU; "": a recorded tree */
	char pci[GPUL_PCI_TEXT_BYTES]; /* PCI address of the GPU; "": none */
	const gpul_nic *nic;           /* the NIC that is used for this GPU; NULL: there is none */
	char why[GPUL_NIC_WHY_BYTES];
};

struct rdma_device_row {                     /* a device in both lists; nic or verbs may be NULL */
	const gpul_nic *nic;                 /* the NIC as sysfs shows it */
	const gpul_verbs_device_info *verbs; /* the device as libibverbs shows it */
};

struct rdma_devices {
	const char *recorded; /* root of a recorded copy of /sys; NULL: this machine */
	gpul_nic_topology *topology;
	gpul_verbs_devices verbs;
	char no_verbs[248];         /* why libibverbs lists nothing; "": the list was
						* read */
	gpul_ofi_entries providers; /* the entries of libfabric */
	char no_providers[248];     /* why libfabric lists nothing; "": the list was
						* read */
	size_t n_rows, n_gpus;
	struct rdma_device_row *rows; /* sorted by name */
	struct rdma_gpu gpus[RDMA_MAX_GPUS];
	char no_gpus[248];   /* why the driver cannot be opened; "": it was opened */
	const gpul_nic *nic; /* the NIC for host memory; NULL: there is none */
	char why[GPUL_NIC_WHY_BYTES];
};

/** Collect the NICs, the providers and the GPUs.  A library or driver that is missing is not an error: .no_verbs
 * and so on have the reason.
 *
 * @d       .recorded is set, the rest zero; the caller calls rdma_devices_free(), also after a failure
 * @choice  the driver whose GPUs are listed; it is opened only if there is a NIC
 * Errors  as gpul_nic_topology_read()
 * Threads one at a time */
gpul_status rdma_devices_collect(struct rdma_devices *d, gpul_driver_choice choice, gpul_error *err);
void rdma_devices_free(struct rdma_devices *d); /* accepts a *d of zeros; cannot fail */

/* Return the name of a row's device; the distance of a row's NIC from a GPU. */
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
