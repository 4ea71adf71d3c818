/* machine.h — build a copy of a machine's sysfs from a short description.
 *
 *     # a comment
 *     cpus 0 0-55,112-167                            the CPUs of a NUMA node
 *     pci NODE CLASS VENDOR PATH                     a PCI function at devices/PATH; the functions on the way are bridges
 *     nic NAME ADDRESS STATE RATE LAYER NETDEV       an RDMA device of that function with one port; ADDRESS -: virtual
 *     file PATH TEXT                                 a file with one line
 *     link PATH TARGET                               a symbolic link
 *     expect GPU NIC CLASS                           the NIC to choose for a GPU, and its distance
 *     distance GPU NIC CLASS                         a distance
 *     why GPU TEXT                                   a text that the reason must contain
 *
 * All paths are below the root of sysfs. */
#ifndef GPULOAD_TESTS_RDMA_NIC_MACHINE_H
#define GPULOAD_TESTS_RDMA_NIC_MACHINE_H

#include <stdbool.h>

/* Build the tree of the description at path in the folder root, which exists; false: a line is wrong, or a system call
 * failed, and stderr has the reason. */
bool machine_build(const char *path, const char *root);

/* Create one file or link below root, and the folders in its path. */
bool machine_file(const char *root, const char *path, const char *text);
bool machine_link(const char *root, const char *path, const char *target);

#endif
