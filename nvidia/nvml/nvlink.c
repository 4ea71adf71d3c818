/* nvlink.c — libnvidia-ml.so.1: the NVLinks of the devices, and the fabric that they form.
 *
 * Two or more devices of sm_90 or later are described like those of an H200 machine: each has 18 links to one switch.  Programs
 * such as NCCL use direct pointers, multicast objects and their fast algorithms only between GPUs that NVLink connects, and the
 * software driver has all of these.  A single device, and older devices, have no links. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "nvidia/nvml/nvml_internal.h"

enum { N_LINKS = 18, FIRST_CC = 90, N_CAPABILITIES = 6, P2P = 0, ATOMICS = 2, TO_SWITCH = 2, VERSION_4 = 6 };
enum { FIELD_LINK_COUNT = 91, FIELD_LINK_STATE = 165, UNSIGNED_INT = 1 };
enum { FABRIC_NOT_SUPPORTED = 0, FABRIC_COMPLETED = 3 };

struct fabric_info { /* the type nvmlGpuFabricInfo_t of NVML */
	unsigned char cluster_uuid[16];
	int status;
	unsigned clique;
	unsigned char state;
};

struct fabric_info_v2 { /* the type nvmlGpuFabricInfo_v2_t of NVML; the third version adds a byte */
	unsigned version;
	struct fabric_info info;
	unsigned health_mask;
};

struct fabric_info_v3 { /* the type nvmlGpuFabricInfo_v3_t of NVML */
	struct fabric_info_v2 v2;
	unsigned char health_summary;
};

bool gpul_ml_has_links(const struct ml_device *d)
{
	return gpul_ml_device(1) && d->is.cc >= FIRST_CC;
}

bool gpul_ml_link_field(const struct ml_device *d, struct field_value *v)
{
	if (!gpul_ml_has_links(d) || (v->field != FIELD_LINK_COUNT && (v->field != FIELD_LINK_STATE || v->scope >= N_LINKS)))
		return false;
	v->type = UNSIGNED_INT;
	v->value = v->field == FIELD_LINK_COUNT ? N_LINKS : 1;
	v->status = SUCCESS;
	return true;
}

static int find_link(void *handle, unsigned link, const void *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);

	if (r)
		return r;
	if (link >= N_LINKS)
		return INVALID_ARGUMENT;
	return gpul_ml_has_links(d) ? SUCCESS : NOT_SUPPORTED;
}

CALL(nvmlDeviceGetNvLinkState, void *handle, unsigned link, int *active)
{
	int r = find_link(handle, link, active);

	if (!r)
		*active = 1;
	return r;
}

CALL(nvmlDeviceGetNvLinkVersion, void *handle, unsigned link, unsigned *version)
{
	int r = find_link(handle, link, version);

	if (!r)
		*version = VERSION_4;
	return r;
}

/* The software driver's NVLinks support accesses and atomic operations between devices, but not to system memory. */
CALL(nvmlDeviceGetNvLinkCapability, void *handle, unsigned link, int capability, unsigned *has)
{
	int r = find_link(handle, link, has);

	if (!r && (capability < 0 || capability >= N_CAPABILITIES))
		r = INVALID_ARGUMENT;
	if (!r)
		*has = capability == P2P || capability == ATOMICS;
	return r;
}

CALL(nvmlDeviceGetNvLinkRemoteDeviceType, void *handle, unsigned link, int *type)
{
	int r = find_link(handle, link, type);

	if (!r)
		*type = TO_SWITCH;
	return r;
}

/* Return the PCI address of the NVLink switch.  As in a virtual machine on an H200 machine, no device has this address. */
CALL(nvmlDeviceGetNvLinkRemotePciInfo_v2, void *handle, unsigned link, pci_info *out)
{
	int r = find_link(handle, link, out);

	if (r)
		return r;
	*out = (pci_info){ .domain = 0xffff, .bus = 0xff };
	snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "FFFF:FF:00.0");
	snprintf(out->bus_id, sizeof out->bus_id, "0000FFFF:FF:00.0");
	return SUCCESS;
}

/* The older form of nvmlDeviceGetNvLinkRemotePciInfo_v2(), with a structure that ends before subsystem_id. */
CALL(nvmlDeviceGetNvLinkRemotePciInfo, void *handle, unsigned link, void *out)
{
	pci_info info;
	int r = find_link(handle, link, out);

	if (!r)
		r = nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, &info);
	if (!r)
		memcpy(out, &info, offsetof(pci_info, subsystem_id));
	return r;
}

/* Return the same values as an H200 machine: the fabric is complete, and its UUID of zeros means that it contains only this
 * machine.  A device without links has no fabric; a device older than sm_90 does not support the call. */
CALL(nvmlDeviceGetGpuFabricInfo, void *handle, struct fabric_info *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);

	if (!r && d->is.cc < FIRST_CC)
		r = NOT_SUPPORTED;
	if (!r)
		*out = (struct fabric_info){ .state = gpul_ml_has_links(d) ? FABRIC_COMPLETED : FABRIC_NOT_SUPPORTED };
	return r;
}

/* The health fields are zeros, which means unknown. */
CALL(nvmlDeviceGetGpuFabricInfoV, void *handle, struct fabric_info_v3 *out)
{
	struct ml_device *d;
	int r = gpul_ml_find_device(handle, out, &d);
	bool third;

	if (r)
		return r;
	third = out->v2.version == ML_VERSION(*out, 3);
	if (!third && out->v2.version != ML_VERSION(out->v2, 2))
		return VERSION_MISMATCH;
	r = nvmlDeviceGetGpuFabricInfo(handle, &out->v2.info);
	if (!r)
		out->v2.health_mask = 0;
	if (!r && third)
		out->health_summary = 0;
	return r;
}
