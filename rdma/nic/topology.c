/* topology.c — lists the NICs of a machine: their ports, PCI addresses, NUMA nodes and network devices. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/nic/topology_internal.h"

/* limit of the levels of stacked network devices, such as a VLAN on a bond on a port */
enum { MAX_LOWER = 4 };

bool gpul_pci_parse(const char *text, char out[GPUL_PCI_TEXT_BYTES])
{
	unsigned domain, bus, device, function;
	int end = 0;

	out[0] = '\0';
	if (!text || !isxdigit((unsigned char)text[0]) || strlen(text) >= GPUL_PCI_TEXT_BYTES ||
	    sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4 || text[end])
		return false;
	snprintf(out, GPUL_PCI_TEXT_BYTES, "%04x:%02x:%02x.%x", domain, bus, device, function);
	return true;
}

bool gpul_nic_gpu_address(const gpul_driver *drv, int ordinal, char out[GPUL_PCI_TEXT_BYTES])
{
	char text[GPUL_PCI_TEXT_BYTES] = "";
	CUdevice dev;

	out[0] = '\0';
	return drv->cuDeviceGet(&dev, ordinal) == CUDA_SUCCESS &&
	       drv->cuDeviceGetPCIBusId(text, (int)sizeof text - 1, dev) == CUDA_SUCCESS && gpul_pci_parse(text, out);
}

/* Cut a resolved path of sysfs down to its PCI part, from the host bridge to the last PCI function:
 *
 *     devices/pci0000:00/0000:00:03.0/virtio2  ──>  pci0000:00/0000:00:03.0, address 0000:00:03.0
 *
 * Returns false if the path contains no PCI function. */
static bool find_pci_part(const char *resolved, char *path, size_t path_bytes, char address[GPUL_PCI_TEXT_BYTES])
{
	const char *bridge = strstr(resolved, "/pci"), *end = NULL;

	while (bridge && !isxdigit((unsigned char)bridge[4])) /* skip ancestors with names such as /pcie-controller */
		bridge = strstr(bridge + 1, "/pci");
	address[0] = '\0';
	for (const char *part = bridge; part; part = strchr(part + 1, '/')) {
		size_t n = strcspn(part + 1, "/");
		char word[GPUL_PCI_TEXT_BYTES] = "", parsed[GPUL_PCI_TEXT_BYTES];

		if (n < sizeof word)
			memcpy(word, part + 1, n);
		if (gpul_pci_parse(word, parsed)) {
			memcpy(address, parsed, sizeof parsed);
			end = part + 1 + n;
		}
	}
	if (!end || (size_t)(end - bridge) > path_bytes)
		return false;
	memcpy(path, bridge + 1, (size_t)(end - bridge - 1));
	path[end - bridge - 1] = '\0';
	return true;
}

bool gpul_topology_find_pci(const gpul_nic_topology *t, const char *address, struct pci_function *out)
{
	char resolved[PATH_MAX];

	*out = (struct pci_function){ .node = -1 };
	if (!gpul_sysfs_resolve(t->root, resolved, "bus/pci/devices/%s", address) ||
	    !find_pci_part(resolved, out->path, sizeof out->path, out->address))
		return false;
	out->node = gpul_sysfs_int(t->root, -1, "%s/numa_node", resolved);
	out->vendor = (unsigned)gpul_sysfs_int(t->root, -1, "%s/vendor", resolved);
	out->class = (unsigned)gpul_sysfs_int(t->root, -1, "%s/class", resolved) >> 8;
	return true;
}

static bool add_gpu(void *user, const char *name)
{
	gpul_nic_topology *t = user;
	unsigned class = (unsigned)gpul_sysfs_int(t->root, 0, "bus/pci/devices/%s/class", name) >> 8;
	struct pci_function f, *g;

	if (class >> 8 != 3 || !gpul_topology_find_pci(t, name, &f)) /* base class 03: display controllers */
		return true;
	g = gpul_array_push(&t->gpus);
	if (g)
		*g = f;
	return g != NULL;
}

/* Read the PCIe link of a function ("16.0 GT/s x16"), and, if the link is slower or narrower than the function supports, the maximum. */
static void read_link(const char *root, const char *folder, char *link, size_t link_bytes)
{
	char speed[20], max_speed[20];
	int width = gpul_sysfs_int(root, 0, "%s/current_link_width", folder);
	int max_width = gpul_sysfs_int(root, 0, "%s/max_link_width", folder);
	int n;

	if (!gpul_sysfs_line(root, speed, sizeof speed, "%s/current_link_speed", folder) || width <= 0 || width > 64)
		return;
	n = snprintf(link, link_bytes, "%s x%d", speed, width);
	if (gpul_sysfs_line(root, max_speed, sizeof max_speed, "%s/max_link_speed", folder) && max_width > 0 &&
	    (strtod(speed, NULL) < strtod(max_speed, NULL) || width < max_width) && n > 0 && (size_t)n < link_bytes)
		snprintf(link + n, link_bytes - (size_t)n, " of %s x%d", max_speed, max_width);
}

/* Fill in the fields that depend on the PCI function at a resolved path; returns false if the path has no PCI function. */
static bool read_pci(const char *root, const char *resolved, gpul_nic *nic)
{
	char folder[PATH_MAX], link[PATH_MAX];

	if (!find_pci_part(resolved, nic->path, sizeof nic->path, nic->pci) ||
	    !gpul_sysfs_resolve(root, folder, "bus/pci/devices/%s", nic->pci)) {
		nic->pci[0] = nic->path[0] = '\0';
		return false;
	}
	nic->node = gpul_sysfs_int(root, -1, "%s/numa_node", folder);
	nic->virtual_function = gpul_sysfs_resolve(root, link, "%s/physfn", folder);
	if (!gpul_sysfs_line(root, nic->cpus, sizeof nic->cpus, "%s/local_cpulist", folder) && nic->node >= 0)
		gpul_sysfs_line(root, nic->cpus, sizeof nic->cpus, "devices/system/node/node%d/cpulist", nic->node);
	read_link(root, folder, nic->link, sizeof nic->link);
	return true;
}

static bool keep_lower(void *user, const char *name)
{
	char *lower = user;

	if (strncmp(name, "lower_", 6) != 0 || strlen(name + 6) >= sizeof((gpul_nic_port *)0)->netdev)
		return true;
	memcpy(lower, name + 6, strlen(name + 6) + 1);
	return false;
}

/* Give a software NIC (rxe) the location of its network device: that device's PCI function, or, for a VLAN or a bond, the function
 * of the first device below it. */
static bool read_pci_of_netdev(const char *root, const char *netdev, gpul_nic *nic)
{
	char name[sizeof nic->port[0].netdev], resolved[PATH_MAX];

	snprintf(name, sizeof name, "%s", netdev);
	for (int i = 0; i < MAX_LOWER && name[0]; i++) {
		char lower[sizeof name] = "";

		if (gpul_sysfs_resolve(root, resolved, "class/net/%s/device", name) && read_pci(root, resolved, nic))
			return true;
		gpul_sysfs_each(root, keep_lower, lower, "class/net/%s", name);
		memcpy(name, lower, sizeof name);
	}
	return false;
}

/* Remove the number from a text of sysfs: "4: ACTIVE" becomes "ACTIVE". */
static void drop_number(char *text)
{
	char *colon = strstr(text, ": ");

	if (colon)
		memmove(text, colon + 2, strlen(colon + 2) + 1);
}

struct reader {
	const char *root;
	gpul_nic *nic;
};

static bool add_port(void *user, const char *name)
{
	const struct reader *r = user;
	gpul_nic *nic = r->nic;
	gpul_nic_port *p;
	char at[160], rate[40], *end;
	long number = strtol(name, &end, 10);

	if (*end || end == name || number < 1 || number > 255 || nic->n_ports == GPUL_NIC_MAX_PORTS)
		return true;
	p = &nic->port[nic->n_ports++];
	*p = (gpul_nic_port){ .number = (int)number };
	snprintf(at, sizeof at, "class/infiniband/%s/ports/%ld", nic->name, number);
	gpul_sysfs_line(r->root, p->state, sizeof p->state, "%s/state", at);
	gpul_sysfs_line(r->root, p->physical_state, sizeof p->physical_state, "%s/phys_state", at);
	gpul_sysfs_line(r->root, p->link_layer, sizeof p->link_layer, "%s/link_layer", at);
	gpul_sysfs_line(r->root, p->netdev, sizeof p->netdev, "%s/gid_attrs/ndevs/0", at);
	p->active = atoi(p->state) == 4; /* IB_PORT_ACTIVE */
	drop_number(p->state);
	drop_number(p->physical_state);
	gpul_sysfs_line(r->root, rate, sizeof rate, "%s/rate", at);
	p->gbps = strtod(rate, NULL);
	if (!(p->gbps > 0 && p->gbps < 1e6)) /* also excludes inf and nan */
		p->gbps = 0;
	return true;
}

/* An Ethernet port without a GID (link down, or no IP address) has no file ndevs/0: use the network devices of its PCI function instead. */
static bool keep_netdev(void *user, const char *name)
{
	gpul_nic_port *p = user;

	snprintf(p->netdev, sizeof p->netdev, "%.*s", (int)sizeof p->netdev - 1, name);
	return false;
}

static void sum_ports(gpul_nic *nic)
{
	for (unsigned i = 0; i < nic->n_ports; i++)
		nic->active |= nic->port[i].active;
	for (unsigned i = 0; i < nic->n_ports; i++)
		if (nic->port[i].active == nic->active && nic->port[i].gbps > nic->gbps)
			nic->gbps = nic->port[i].gbps;
}

static bool add_nic(void *user, const char *name)
{
	gpul_nic_topology *t = user;
	struct reader r = { t->root, NULL };
	char resolved[PATH_MAX], parent[sizeof r.nic->port[0].netdev];

	if (strlen(name) >= sizeof r.nic->name)
		return true;
	r.nic = gpul_array_push(&t->nics);
	if (!r.nic)
		return false;
	r.nic->node = -1;
	memcpy(r.nic->name, name, strlen(name) + 1);
	gpul_sysfs_each(t->root, add_port, &r, "class/infiniband/%s/ports", name);
	sum_ports(r.nic);
	/* rxe names its network device in the file `parent`. */
	if (gpul_sysfs_line(t->root, parent, sizeof parent, "class/infiniband/%s/parent", name) && r.nic->n_ports &&
	    !r.nic->port[0].netdev[0])
		memcpy(r.nic->port[0].netdev, parent, sizeof parent);
	if (gpul_sysfs_resolve(t->root, resolved, "class/infiniband/%s/device", name) && read_pci(t->root, resolved, r.nic)) {
		if (r.nic->n_ports == 1 && !r.nic->port[0].netdev[0])
			gpul_sysfs_each(t->root, keep_netdev, &r.nic->port[0], "bus/pci/devices/%s/net", r.nic->pci);
		r.nic->by_netdev = parent[0] != '\0';
	} else if (r.nic->n_ports) {
		r.nic->by_netdev = read_pci_of_netdev(t->root, r.nic->port[0].netdev, r.nic);
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	return strcmp(((const struct pci_function *)a)->address, ((const struct pci_function *)b)->address);
}

gpul_status gpul_nic_topology_read(const char *sysfs, gpul_nic_topology **out, gpul_error *err)
{
	gpul_nic_topology *t = calloc(1, sizeof *t);
	const char *copy = secure_getenv("GPULOAD_SYSFS");
	gpul_status st = GPUL_OK;

	if (!sysfs)
		sysfs = copy && *copy ? copy : "/sys";
	if (!t)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the list of NICs");
	if (!realpath(sysfs, t->root))
		st = gpul_fail(err, GPUL_ESYS, errno, "%s: %s", sysfs, strerror(errno));
	else if (!gpul_sysfs_each(t->root, add_nic, t, "class/infiniband") ||
		 (t->nics.n && !gpul_sysfs_each(t->root, add_gpu, t, "bus/pci/devices")))
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the list of NICs");
	if (st) {
		gpul_nic_topology_free(t);
		return st;
	}
	if (t->gpus.n)
		qsort(t->gpus.at, t->gpus.n, sizeof *t->gpus.at, by_address);
	*out = t;
	return GPUL_OK;
}

void gpul_nic_topology_free(gpul_nic_topology *t)
{
	if (!t)
		return;
	gpul_array_free(&t->nics);
	gpul_array_free(&t->gpus);
	free(t);
}

size_t gpul_nic_count(const gpul_nic_topology *t)
{
	return t->nics.n;
}

const gpul_nic *gpul_nic_at(const gpul_nic_topology *t, size_t index)
{
	return index < t->nics.n ? &t->nics.at[index] : NULL;
}

const gpul_nic *gpul_nic_find(const gpul_nic_topology *t, const char *name)
{
	for (size_t i = 0; i < t->nics.n; i++)
		if (!strcmp(t->nics.at[i].name, name))
			return &t->nics.at[i];
	return NULL;
}

enum { NVIDIA = 0x10de };

size_t gpul_nic_gpu_count(const gpul_nic_topology *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->gpus.n; i++)
		n += t->gpus.at[i].vendor == NVIDIA;
	return n;
}

const char *gpul_nic_gpu_at(const gpul_nic_topology *t, size_t index)
{
	for (size_t i = 0; i < t->gpus.n; i++)
		if (t->gpus.at[i].vendor == NVIDIA && index-- == 0)
			return t->gpus.at[i].address;
	return NULL;
}
