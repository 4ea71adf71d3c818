/* topology.h — reads the RDMA NICs of a machine from sysfs, and their distances from its GPUs.
 *
 *     class    what is between GPU and NIC (the names are those of nvidia-smi topo -m)
 *     PIX      one PCIe switch                                    GPU ─ switch ─ NIC
 *     PXB      several PCIe switches, but no host bridge          GPU ─ switch ─ switch ─ NIC
 *     PHB      the PCIe host bridge (the CPU)                     GPU ─ root port ─ CPU ─ root port ─ NIC
 *     NODE     two host bridges of one NUMA node
 *     SYS      the link between two NUMA nodes
 *     virtual  the NIC is not a PCI device: a software NIC (rxe, siw) on a network device that is not one either
 *     unknown  the GPU is not a PCI device of this machine: the software driver
 *
 *     gpul_nic_topology_read("/sys") ─> topology ─ gpul_nic_choose(GPU address) ─> NIC, and a sentence that explains why
 *
 * No function here opens a device, so a recorded copy of another machine's /sys can be used as well. */
#ifndef GPULOAD_RDMA_NIC_TOPOLOGY_H
#define GPULOAD_RDMA_NIC_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
typedef enum gpul_nic_distance {  /* the distances, the nearest first */
	GPUL_NIC_PIX, GPUL_NIC_PXB, GPUL_NIC_PHB, GPUL_NIC_NODE, GPUL_NIC_SYS, GPUL_NIC_VIRTUAL, GPUL_NIC_UNKNOWN,
} gpul_nic_distance;
/* clang-format on */

enum { GPUL_PCI_TEXT_BYTES = 24, GPUL_NIC_MAX_PORTS = 8, GPUL_NIC_WHY_BYTES = 200 };

typedef struct gpul_nic_port {
	int number; /* port number, from 1 */
	bool active;
	double gbps;             /* speed in 10^9 bits per second; 0: unknown */
	char state[16];          /* such as "ACTIVE" or "DOWN"; "": unknown, as in every text of this struct */
	char physical_state[24]; /* such as "LinkUp" or "Polling" */
	char link_layer[16];     /* such as "InfiniBand" or "Ethernet" */
	char netdev[24];         /* the network device of the port, "eth0" */
} gpul_nic_port;

typedef struct gpul_nic {
	char name[64];                 /* "mlx5_0" */
	char pci[GPUL_PCI_TEXT_BYTES]; /* "0000:18:00.0"; "": not a PCI device */
	bool by_netdev;                /* a software NIC; pci, node and cpus are those of its network device */
	bool virtual_function;         /* an SR-IOV virtual function */
	int node;                      /* NUMA node; -1: unknown, or a machine with one node */
	char cpus[256];                /* the CPUs near the NIC, "0-55,112-167" */
	char link[48];                 /* PCIe link: "32.0 GT/s PCIe x16"; also the maximum if the link is slower */
	bool active;                   /* at least one port is active */
	double gbps;                   /* speed of the fastest active port, or of the fastest port if none is active */
	unsigned n_ports;
	gpul_nic_port port[GPUL_NIC_MAX_PORTS];
	char path[320]; /* path from the host bridge: "pci0000:15/0000:15:01.0/..."; private to this folder */
} gpul_nic;

typedef struct gpul_nic_topology gpul_nic_topology; /* opaque; the struct is defined in topology_internal.h */

/** List the RDMA NICs of a machine, and the PCI functions that may be GPUs.
 *
 * A file that is missing or that has unexpected contents makes only one value unknown, and is not an error.
 *
 * @sysfs  where sysfs is mounted, or a recorded copy of it; NULL: $GPULOAD_SYSFS, else "/sys"
 * @out    owned by the caller: gpul_nic_topology_free(); sorted by name, mlx5_2 before mlx5_10; no NICs if the
 *         machine has none; untouched on failure
 * Errors  GPUL_ENOMEM; GPUL_ESYS sysfs does not exist
 * Source  Linux Documentation/ABI/stable/sysfs-class-infiniband, Documentation/ABI/testing/sysfs-bus-pci */
gpul_status gpul_nic_topology_read(const char *sysfs, gpul_nic_topology **out, gpul_error *err);
void gpul_nic_topology_free(gpul_nic_topology *t); /* accepts NULL; cannot fail */

/* Return the NICs of a topology: their number; one NIC by index or by name (NULL: no such NIC), borrowed from t. */
size_t gpul_nic_count(const gpul_nic_topology *t);
const gpul_nic *gpul_nic_at(const gpul_nic_topology *t, size_t index);
const gpul_nic *gpul_nic_find(const gpul_nic_topology *t, const char *name);

/* Return the PCI addresses of NVIDIA's GPUs in a topology, in ascending order.  A topology without a NIC lists no GPUs. */
size_t gpul_nic_gpu_count(const gpul_nic_topology *t);
const char *gpul_nic_gpu_at(const gpul_nic_topology *t, size_t index);

/* Convert a PCI address to the form of sysfs, "0000:1b:00.0"; text may also be "0000:1B:00.0" (CUDA) or
 * "00000000:1B:00.0" (nvidia-smi).  Returns false if it is not a PCI address; out is then "". */
bool gpul_pci_parse(const char *text, char out[GPUL_PCI_TEXT_BYTES]);

/* Get the PCI address of a GPU of the driver, for the functions below; false: the driver reports none, and out is "". */
bool gpul_nic_gpu_address(const gpul_driver *drv, int ordinal, char out[GPUL_PCI_TEXT_BYTES]);

/* Measure the distance of a NIC from a GPU.  gpu: a PCI address in any of the forms above; NULL or "": unknown. */
gpul_nic_distance gpul_nic_measure(const gpul_nic_topology *t, const char *gpu, const gpul_nic *nic);

/* Return the name of a distance: "PIX" and so on, as in the table above. */
const char *gpul_nic_distance_name(gpul_nic_distance d);

/** Choose the NIC for a GPU: the nearest one with an active port.
 *
 * Among equally near NICs it prefers the fastest, and physical to virtual functions.  NICs that are still equal are distributed
 * among the GPUs that they are nearest to: the first GPU by PCI address gets the first NIC, and so on, so that 8 GPUs and 8 NICs
 * form pairs.  Every GPU in sysfs counts, even one that this process cannot see (CUDA_VISIBLE_DEVICES), so that processes with
 * one GPU each do not all choose the same NIC.
 *
 * @t      a topology
 * @gpu    PCI address of the GPU; NULL or "": unknown, and the fastest active NIC is chosen
 * @only   names of the NICs that may be chosen; NULL: all
 * @n_only their number
 * @why    receives the reason, in one sentence, even if there is no NIC; NULL: not wanted
 * Errors  NULL: there is no NIC, or none of `only` is in the topology
 * Source  NVIDIA, nvidia-smi topo -m, for the order of the classes */
const gpul_nic *gpul_nic_choose(const gpul_nic_topology *t, const char *gpu, const char *const *only, size_t n_only,
				char why[GPUL_NIC_WHY_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
