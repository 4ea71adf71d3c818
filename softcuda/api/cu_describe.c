/* cu_describe.c — describes the devices of the machine. */
#include "softcuda/api/cu_describe.h"

#include <stdio.h>

#include "core/thread/parallel.h"
#include "softcuda/api/base/cu_state_internal.h"

EXPORT int gpuloadSoftDescribeDevice(int index, gpuload_soft_device *out)
{
	int n = soft_count_physical();
	unsigned cc;
	int version;

	if (index < 0 || index >= n || !out)
		return n;
	if (soft_choose_cc(&cc))
		cc = DEFAULT_CC;
	soft_choose_version(&version);
	*out = (gpuload_soft_device){ .pci_domain = 0xffff,
				      .pci_bus = (unsigned)index & 0xff,
				      .cc = cc,
				      .n_processors = (unsigned)gpul_cpus(),
				      .driver_version = version };
	snprintf(out->name, sizeof out->name, "%s", DEVICE_NAME);
	soft_uuid_text(index, out->uuid);
	soft_lock();
	if (soft.initialised)
		out->memory_bytes = soft.memory_bytes;
	else
		soft_choose_memory(&out->memory_bytes, NULL);
	for (int i = 0; soft.initialised && i < soft.n_devices; i++) {
		if (soft.device[i].physical != index)
			continue;
		out->used_bytes = soft.device[i].allocated_bytes;
		out->n_faults = soft.device[i].n_faults;
		out->last_fault = (int)soft.device[i].last_fault;
	}
	soft_unlock();
	return n;
}
