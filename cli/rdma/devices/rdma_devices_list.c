/* rdma_devices_list.c — collects the NICs of sysfs and of libibverbs, libfabric's providers, and the GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rdma/devices/rdma_devices.h"

const char *rdma_device_name(const struct rdma_device_row *r)
{
	return r->verbs ? r->verbs->name : r->nic->name;
}

gpul_nic_distance rdma_device_distance(const struct rdma_devices *d, const struct rdma_device_row *r, const struct rdma_gpu *gpu)
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

/* Merge the lists of sysfs and of libibverbs.  A NIC for which libibverbs has no provider is in sysfs only. */
static gpul_status merge_lists(struct rdma_devices *d, gpul_error *err)
{
	size_t n_nics = gpul_nic_count(d->topology);

	d->rows = calloc(n_nics + d->verbs.n + 1, sizeof *d->rows);
	if (!d->rows)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu NICs", n_nics);
	for (size_t i = 0; i < n_nics; i++) {
		const gpul_nic *nic = gpul_nic_at(d->topology, i);

		d->rows[d->n_rows++] = (struct rdma_device_row){ nic, find_verbs(&d->verbs, nic->name) };
	}
	for (size_t i = 0; i < d->verbs.n; i++)
		if (!gpul_nic_find(d->topology, d->verbs.at[i].name))
			d->rows[d->n_rows++] = (struct rdma_device_row){ NULL, &d->verbs.at[i] };
	return GPUL_OK;
}

/* Choose the NIC for each GPU, and the NIC for host memory, among the NICs that libibverbs can use. */
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

/* List the GPUs.  If there is no driver, the list is empty, which is not a failure of this command. */
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

gpul_status rdma_devices_collect(struct rdma_devices *d, gpul_driver_choice choice, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = gpul_nic_topology_read(d->recorded, &d->topology, err);

	if (!st && d->recorded)
		snprintf(d->no_verbs, sizeof d->no_verbs, "%s is a copy of sysfs", d->recorded);
	else if (!st && gpul_verbs_devices_read(&d->verbs, &why))
		snprintf(d->no_verbs, sizeof d->no_verbs, "%s", why.text);
	why = (gpul_error){ 0 };
	if (!st && !d->recorded && gpul_ofi_entries_read(&d->providers, &why))
		snprintf(d->no_providers, sizeof d->no_providers, "%s", why.text);
	else if (!st && d->recorded)
		snprintf(d->no_providers, sizeof d->no_providers, "%s", d->no_verbs);
	if (!st)
		st = merge_lists(d, err);
	if (!st && d->recorded)
		list_recorded_gpus(d);
	else if (!st && d->n_rows)
		list_gpus(d, choice);
	return st ? st : choose_nics(d, err);
}

void rdma_devices_free(struct rdma_devices *d)
{
	free(d->rows);
	gpul_ofi_entries_free(&d->providers);
	gpul_verbs_devices_free(&d->verbs);
	gpul_nic_topology_free(d->topology);
	*d = (struct rdma_devices){ 0 };
}
