/* tree.h — a temporary folder for a copy of sysfs. */
#ifndef GPULOAD_TESTS_RDMA_NIC_TREE_H
#define GPULOAD_TESTS_RDMA_NIC_TREE_H

#include "rdma/nic/topology.h"

struct tree {
	char root[64];
	gpul_nic_topology *topology; /* NULL before tree_read() */
};

/* Create an empty folder or, with the name of a file in machines/, the sysfs tree of that machine, and read it.  An error ends the test. */
struct tree tree_create(const char *machine);
void tree_read(struct tree *t);
void tree_remove(struct tree *t);

#endif
