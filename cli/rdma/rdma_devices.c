/* rdma_devices.c — gpuload rdma devices: collect the NICs of sysfs and of libibverbs, and the GPUs of the driver. */
#include "cli/rdma/rdma_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_ALL, DEVICES_DRIVER, DEVICES_SYSFS, DEVICES_JSON };

/* clang-format off */
static const struct cli_opt devices_opts[] = {
	[DEVICES_ALL] = { "all", NULL, "print all attributes, GIDs and reasons", NULL },
	[DEVICES_DRIVER] = CLI_DRIVER_OPT,
	[DEVICES_SYSFS] = { "sysfs", "DIR",
		"read the NICs and GPUs from a copy of the /sys of another machine", CLI_FILES },
	[DEVICES_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

static const char devices_details[] =
	"The first table has a line for each port of each RDMA NIC. GID is the address that a connection\n"
	"uses: its index, and the address. --all prints the whole GID table.\n"
	"\n"
	"The last table has the distance of each NIC from each GPU, and '*' at the NIC that is used for a\n"
	"GPU. The nearest NIC with an active port is used; of several equal ones, each GPU gets another.\n"
	"\n"
	"    PIX   behind one PCIe switch              NODE  on the same NUMA node\n"
	"    PXB   behind several PCIe switches        SYS   on another NUMA node\n"
	"    PHB   at the same PCIe host bridge        virtual, unknown  no PCI device\n";

const char *rdma_row_name(const struct rdma_row *r)
{
	return r->verbs ? r->verbs->name : r->nic->name;
}

gpul_nic_distance rdma_row_distance(const struct rdma_devices *d, const struct rdma_row *r, const struct rdma_gpu *gpu)
{
	return r->nic ? gpul_nic_measure(d->topology, gpu->pci, r->nic) : GPUL_NIC_UNKNOWN;
}

static const gpul_verbs_device_info *find_verbs(const gpul_verbs_devices *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->at[i].name, name))
			return &all->at[i];
	return NULL;
}

/* The devices of both lists.  A NIC without a provider of libibverbs is in sysfs only. */
static gpul_status merge_lists(struct rdma_devices *d, gpul_error *err)
{
	size_t n_nics = gpul_nic_count(d->topology);

	d->rows = calloc(n_nics + d->verbs.n + 1, sizeof *d->rows);
	if (!d->rows)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu NICs", n_nics);
	for (size_t i = 0; i < n_nics; i++) {
		const gpul_nic *nic = gpul_nic_at(d->topology, i);

		d->rows[d->n_rows++] = (struct rdma_row){ nic, find_verbs(&d->verbs, nic->name) };
	}
	for (size_t i = 0; i < d->verbs.n; i++)
		if (!gpul_nic_find(d->topology, d->verbs.at[i].name))
			d->rows[d->n_rows++] = (struct rdma_row){ NULL, &d->verbs.at[i] };
	return GPUL_OK;
}

/* Choose the NIC for each GPU, and for host memory, among those that libibverbs can use. */
static gpul_status choose_nics(struct rdma_devices *d, gpul_error *err)
{
	const char **usable = calloc(d->verbs.n + 1, sizeof *usable);
	bool all = d->recorded || d->no_verbs[0];
	size_t n = 0;

	if (!usable)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu NICs", d->verbs.n);
	for (size_t i = 0; i < d->verbs.n; i++)
		if (d->verbs.at[i].usable && !d->verbs.at[i].error[0])
			usable[n++] = d->verbs.at[i].name;
	d->nic = gpul_nic_choose(d->topology, NULL, all ? NULL : usable, n, d->why);
	for (size_t i = 0; i < d->n_gpus; i++)
		d->gpus[i].nic = gpul_nic_choose(d->topology, d->gpus[i].pci, all ? NULL : usable, n, d->gpus[i].why);
	free(usable);
	return GPUL_OK;
}

static void list_recorded_gpus(struct rdma_devices *d)
{
	size_t n = gpul_nic_gpu_count(d->topology);

	for (size_t i = 0; i < n && d->n_gpus < RDMA_MAX_GPUS; i++) {
		struct rdma_gpu *gpu = &d->gpus[d->n_gpus++];

		gpu->ordinal = (int)i;
		snprintf(gpu->pci, sizeof gpu->pci, "%s", gpul_nic_gpu_at(d->topology, i));
	}
}

/* Without a driver there are no GPUs; that is not a failure of this command. */
static void list_gpus(struct rdma_devices *d, gpul_driver_choice choice)
{
	const gpul_driver *drv;
	gpul_error why = { 0 };
	int n = 0;

	if (gpul_driver_open(choice, &drv, &why) || gpul_cu(drv, &why, cuDeviceGetCount(&n))) {
		snprintf(d->no_gpus, sizeof d->no_gpus, "%s", why.text);
		return;
	}
	for (int i = 0; i < n && d->n_gpus < RDMA_MAX_GPUS; i++) {
		struct rdma_gpu *gpu = &d->gpus[d->n_gpus++];
		CUdevice dev;

		gpu->ordinal = i;
		gpul_nic_gpu_address(drv, i, gpu->pci);
		if (drv->cuDeviceGet(&dev, i) != CUDA_SUCCESS || drv->cuDeviceGetName(gpu->name, sizeof gpu->name, dev) != CUDA_SUCCESS)
			gpu->name[0] = '\0';
	}
}

static gpul_status collect(struct rdma_devices *d, gpul_driver_choice choice, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = gpul_nic_topology_read(d->recorded, &d->topology, err);

	if (!st && d->recorded)
		snprintf(d->no_verbs, sizeof d->no_verbs, "%s is a copy of sysfs", d->recorded);
	else if (!st && gpul_verbs_devices_read(&d->verbs, &why))
		snprintf(d->no_verbs, sizeof d->no_verbs, "%s", why.text);
	if (!st)
		st = merge_lists(d, err);
	if (!st && d->recorded)
		list_recorded_gpus(d);
	else if (!st && d->n_rows)
		list_gpus(d, choice);
	return st ? st : choose_nics(d, err);
}

static int cmd_devices(const struct cli_args *args, gpul_error *err)
{
	struct rdma_devices d = { .recorded = cli_value(args, DEVICES_SYSFS) };
	const char *driver = cli_value(args, DEVICES_DRIVER);
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	gpul_status st;

	if (args->n_operands) {
		gpul_fail(err, GPUL_EINVAL, 0, "unexpected argument '%.40s'", args->operands[0]);
		return CLI_USAGE;
	}
	if (driver && !gpul_driver_choice_parse(driver, &choice)) {
		gpul_fail(err, GPUL_EINVAL, 0, "--driver must be auto, nvidia or soft, not '%.40s'", driver);
		return CLI_USAGE;
	}
	st = collect(&d, choice, err);
	if (!st && cli_value(args, DEVICES_JSON)) {
		struct json j = { 0 };

		rdma_devices_json(&j, &d);
		st = json_print(&j, err);
	} else if (!st) {
		st = rdma_devices_print(&d, cli_value(args, DEVICES_ALL) != NULL, err);
	}
	free(d.rows);
	gpul_verbs_devices_free(&d.verbs);
	gpul_nic_topology_free(d.topology);
	return cli_exit_code(st);
}

const struct cli_cmd cli_rdma_devices = {
	"rdma devices", "", "list the RDMA NICs, libfabric's providers, and how near each NIC is to each GPU",
	devices_details, devices_opts, cmd_devices, NULL, NULL,
};
