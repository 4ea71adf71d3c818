/* topology_internal.h — the struct of a topology, and functions that read files below the root of sysfs. */
#ifndef GPULOAD_RDMA_NIC_TOPOLOGY_INTERNAL_H
#define GPULOAD_RDMA_NIC_TOPOLOGY_INTERNAL_H

#include <limits.h>

#include "core/array.h"
#include "rdma/nic/topology.h"

struct pci_function {
	char address[GPUL_PCI_TEXT_BYTES];
	char path[sizeof((gpul_nic *)0)->path];
	int node;
	unsigned vendor, class; /* class: base class and subclass, 0x0302; -1u: unknown */
};

struct gpul_nic_topology {
	char root[PATH_MAX];                  /* root of sysfs, without symbolic links */
	GPUL_ARRAY(gpul_nic) nics;            /* sorted by name */
	GPUL_ARRAY(struct pci_function) gpus; /* the display controllers, sorted by PCI address */
};

/* Find a PCI function by its address, such as "0000:43:00.0"; returns false if the machine has no such function. */
bool gpul_topology_find_pci(const gpul_nic_topology *t, const char *address, struct pci_function *out);

/* The functions of sysfs.c.  fmt and the arguments after it give a path below the root, as for printf. */

/* Read the first line of a file, without control characters; if the file cannot be read, the line is "" and the result false. */
bool gpul_sysfs_line(const char *root, char *line, size_t line_bytes, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Read the first number in a file, decimal or 0x...; returns `otherwise` if there is none, or if it does not fit into an int. */
int gpul_sysfs_int(const char *root, int otherwise, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Resolve all symbolic links of a path; the result is relative to the root, "devices/pci0000:00/...".  Returns false if the path does
 * not exist, contains a cycle of links, or leads out of the root. */
bool gpul_sysfs_resolve(const char *root, char resolved[PATH_MAX], const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Call visit(user, name) for each entry of a folder, sorted by name, except names that begin with '.'; visit returns false to stop. */
typedef bool gpul_sysfs_visit(void *user, const char *name);
bool gpul_sysfs_each(const char *root, gpul_sysfs_visit *visit, void *user, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
