/* devices.c — lists NICs and interfaces, with the properties that sysfs has. */
#include "nccl/net/devices.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/verbs/verbs_devices.h"

/* assumed speed of an interface that reports none, such as lo; NCCL's socket transport assumes the same */
enum { DEFAULT_MBITS = 10000 };

/* Find the PCI device of an entry of /sys/class; "": the entry is not a PCI device. */
static void find_pci_path(const char *class, const char *name, char *out, size_t out_bytes)
{
	char link[128], path[PATH_MAX];

	out[0] = '\0';
	snprintf(link, sizeof link, "/sys/class/%.20s/%.60s/device", class, name);
	if (realpath(link, path) && strlen(path) < out_bytes)
		strcpy(out, path);
}

static int read_mbits(const char *interface)
{
	char path[128];
	long mbits = 0;
	FILE *f;

	snprintf(path, sizeof path, "/sys/class/net/%.15s/speed", interface);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%ld", &mbits) != 1)
			mbits = 0;
		fclose(f);
	}
	return mbits > 0 && mbits < INT_MAX ? (int)mbits : DEFAULT_MBITS;
}

/* Parse "506b:4b03:00a1:b2c3" as a number. */
static uint64_t parse_guid(const char *text)
{
	uint64_t guid = 0;

	for (; *text; text++)
		if (*text != ':')
			guid = guid << 4 | (uint64_t)(*text <= '9' ? *text - '0' : (*text | 32) - 'a' + 10);
	return guid;
}

static void add_port(const gpul_verbs_device_info *d, const gpul_verbs_port_info *p, const gpul_net_interface *i, gpul_net_devices *out)
{
	gpul_net_device *n = &out->at[out->n];

	if (out->n == GPUL_NET_MAX_DEVICES || !p->active || p->chosen_gid < 0)
		return;
	*n = (gpul_net_device){
		.backend = GPUL_NET_VERBS,
		.guid = parse_guid(d->node_guid),
		.mbits = p->gbps > 0 ? (int)(p->gbps * 1000) : DEFAULT_MBITS,
		.port = p->number,
		.dmabuf = d->dmabuf,
	};
	snprintf(n->name, sizeof n->name, "%.50s:%d", d->name, p->number);
	snprintf(n->hardware, sizeof n->hardware, "%s", d->name);
	snprintf(n->interface, sizeof n->interface, "%s", i->address);
	find_pci_path("infiniband", d->name, n->pci_path, sizeof n->pci_path);
	out->n++;
}

static gpul_status list_ports(const gpul_net_options *options, const gpul_net_interface *i, gpul_net_devices *out, gpul_error *err)
{
	gpul_verbs_devices all = { 0 };
	const gpul_status st = gpul_verbs_devices_read(&all, err);

	if (st)
		return st;
	for (size_t k = 0; k < all.n; k++) {
		const gpul_verbs_device_info *d = &all.at[k];

		if (d->error[0] || !d->usable || (options->device && strcmp(options->device, d->name)))
			continue;
		for (size_t p = 0; p < d->n_ports; p++)
			add_port(d, &d->ports[p], i, out);
	}
	gpul_verbs_devices_free(&all);
	return out->n ? GPUL_OK
		      : gpul_fail(err, GPUL_EUNSUPPORTED, 0, "there is no RDMA NIC%s%.40s that has an active port with a usable address",
				  options->device ? " with the name " : "", options->device ? options->device : "");
}

static void list_interfaces(const gpul_net_options *options, const gpul_net_interface *all, unsigned n, gpul_net_devices *out)
{
	const char *provider = options->provider && strcmp(options->provider, "libfabric") ? options->provider : "tcp";

	for (unsigned k = 0; k < n; k++) {
		gpul_net_device *d = &out->at[out->n++];

		*d = (gpul_net_device){ .backend = GPUL_NET_LIBFABRIC, .guid = k, .mbits = read_mbits(all[k].name) };
		snprintf(d->name, sizeof d->name, "%.30s:%.15s", provider, all[k].name);
		snprintf(d->interface, sizeof d->interface, "%s", all[k].address);
		snprintf(d->provider, sizeof d->provider, "%s", provider);
		snprintf(d->hardware, sizeof d->hardware, "%s", options->device ? options->device : "");
		find_pci_path("net", all[k].name, d->pci_path, sizeof d->pci_path);
	}
}

gpul_status gpul_net_devices_read(const gpul_net_options *options, gpul_net_devices *out, gpul_error *err)
{
	gpul_net_interface interfaces[GPUL_NET_MAX_INTERFACES];
	const bool wants_verbs = options->provider && !strcmp(options->provider, "verbs");
	gpul_net_devices found = { 0 };
	gpul_error no_verbs = { 0 };
	unsigned n = 0;
	gpul_status st = gpul_net_interfaces_read(options->interfaces, options->family, interfaces, &n, err);

	if (st)
		return st;
	if (wants_verbs || !options->provider) {
		st = list_ports(options, interfaces, &found, &no_verbs);
		snprintf(found.why, sizeof found.why, "%s", wants_verbs ? "GPULOAD_NET_PROVIDER=verbs" : "an RDMA NIC is active");
		if (st && wants_verbs)
			return gpul_fail(err, st, no_verbs.native, "%s", no_verbs.text);
	}
	if (!found.n) {
		list_interfaces(options, interfaces, n, &found);
		snprintf(found.why, sizeof found.why, options->provider ? "GPULOAD_NET_PROVIDER=%.150s" : "%.190s",
			 options->provider ? options->provider : no_verbs.text);
	}
	*out = found;
	return GPUL_OK;
}

gpul_rdma_desc gpul_net_device_desc(const gpul_net_device *device, const gpul_net_options *options, int traffic_class)
{
	const bool verbs = device->backend == GPUL_NET_VERBS;

	return (gpul_rdma_desc){
		.backend = verbs ? "verbs" : "libfabric",
		.device = {
			.gpu = -1, .gid_index = -1, .port = verbs ? device->port : 0,
			.provider = device->provider[0] ? device->provider : NULL,
			.device = device->hardware[0] ? device->hardware : NULL,
			.traffic_class = verbs && traffic_class > 0 ? traffic_class : 0,
			.flush = device->dmabuf ? GPUL_RDMA_FLUSH_READ : GPUL_RDMA_FLUSH_AUTO,
		},
		.n_qps = (unsigned)options->n_qps, .segment_bytes = GPUL_NET_SEGMENT_BYTES, .lease_ms = options->lease_ms,
	};
}
