/* node.c — chooses a NUMA node, and places pages on it. */
#include "memalloc/mem_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/mempolicy.h>

#include "core/log.h"

enum { MAX_NODES = 1024, NODES_TEXT = 1024 };

bool gpul_mem_read_text(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* Read the nodes that have memory, in the kernel's notation: "0-1,4".  Returns false if unknown (no NUMA, no /sys). */
static bool read_nodes(char text[NODES_TEXT])
{
	bool known = gpul_mem_read_text("/sys/devices/system/node/has_memory", text, NODES_TEXT);

	text[strcspn(text, "\n")] = '\0';
	return known;
}

/* True if the node is in a list such as "0-1,4". */
static bool list_has(const char *text, int node)
{
	while (*text) {
		char *end;
		long from = strtol(text, &end, 10), to = from;

		if (end == text)
			return false;
		if (*end == '-')
			to = strtol(end + 1, &end, 10);
		if (node >= from && node <= to)
			return true;
		text = *end == ',' ? end + 1 : end;
	}
	return false;
}

/* Find the NUMA node of devices[0]; -1: unknown. */
static gpul_status node_of_gpu(gpul_mem *m, int *node, gpul_error *err)
{
	*node = -1;
	if (m->drv->version < 12020) /* CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID was added in CUDA 12.2 */
		return GPUL_OK;
	return mem_cu(m, err, cuDeviceGetAttribute(node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, m->handles[0]));
}

gpul_status gpul_mem_find_node(gpul_mem *m, int wanted, gpul_error *err)
{
	const bool of_gpu = wanted == GPUL_MEM_NODE_OF_GPU;
	char nodes[NODES_TEXT];
	gpul_status st = of_gpu ? node_of_gpu(m, &wanted, err) : GPUL_OK;

	if (st)
		return st;
	if (!read_nodes(nodes))
		snprintf(nodes, sizeof nodes, "0");
	/* Never pass a node without memory to the driver: NVIDIA's drivers before release 595 are reported to crash on it. */
	if (!list_has(nodes, wanted) && !of_gpu)
		return gpul_fail(err, GPUL_EINVAL, wanted, "NUMA node %d has no memory: use one of %s", wanted, nodes);
	m->about.node_clamped = !list_has(nodes, wanted);
	m->about.node = m->about.node_clamped ? (int)strtol(nodes, NULL, 10) : wanted;
	if (m->about.node_clamped)
		gpul_log(GPUL_LOG_INFO, "memalloc", "device %d is attached to NUMA node %d, which has no memory: using node %d",
			 m->about.device, wanted, m->about.node);
	return GPUL_OK;
}

static int bind_pages(void *at, size_t bytes, int node)
{
	unsigned long mask[MAX_NODES / (8 * sizeof(unsigned long))] = { 0 };
	const unsigned bits = 8 * sizeof mask[0];

	if (node >= MAX_NODES)
		return EINVAL;
	mask[(unsigned)node / bits] = 1UL << ((unsigned)node % bits);
	/* MPOL_PREFERRED instead of MPOL_BIND, so that a full node does not start the OOM killer while other nodes have free memory. */
	return gpul_mem_mbind(at, bytes, MPOL_PREFERRED, mask, MAX_NODES + 1, 0) ? errno : 0;
}

void gpul_mem_bind(gpul_mem *m, void *at, size_t bytes)
{
	char nodes[NODES_TEXT];
	int failed;

	if (!read_nodes(nodes) || !strpbrk(nodes, "-,"))
		return; /* harmless: the machine has only one node, and a container may forbid mbind() */
	failed = bind_pages(at, bytes, m->about.node);
	if (!failed)
		return;
	m->about.node_unbound = true;
	gpul_log(GPUL_LOG_INFO, "memalloc", "%s memory could not be placed on NUMA node %d: mbind: %s%s", gpul_mem_kind_name(m->about.kind),
		 m->about.node, strerror(failed), failed == EPERM ? "; in a container, use docker run --cap-add SYS_NICE" : "");
}
