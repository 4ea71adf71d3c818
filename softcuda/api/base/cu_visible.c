/* cu_visible.c — the devices that this process sees, their order, and their UUIDs.
 *
 *     GPULOAD_SOFT_DEVICES=4        the machine has 0 1 2 3        "physical"
 *     CUDA_VISIBLE_DEVICES=2,0      this process sees 2 as its device 0 and 0 as its device 1
 *
 * UUID and PCI bus id belong to the physical device, so two processes can identify a device that has a different ordinal in each.
 *
 * Source: CUDA C++ Programming Guide, CUDA Environment Variables; in cases that it does not define (an
 * item twice, both kinds mixed) the result is that of driver 580.159. */
#include "softcuda/api/base/cu_state_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void make_uuid(int physical, CUuuid *out)
{
	/* The UUID begins with the device's number, so that a short prefix of its text identifies the device. */
	memcpy(out->bytes, " gpuload-softgpu", sizeof out->bytes);
	out->bytes[0] = (char)(physical + 1);
}

void soft_device_uuid(const struct device *d, CUuuid *out)
{
	make_uuid(d->physical, out);
}

struct device *soft_device_of_uuid(const unsigned char uuid[16])
{
	for (int i = 0; i < soft.n_devices; i++) {
		CUuuid own;

		soft_device_uuid(&soft.device[i], &own);
		if (!memcmp(own.bytes, uuid, sizeof own.bytes))
			return &soft.device[i];
	}
	return NULL;
}

/* Write the UUID as nvidia-smi does: "GPU-01677075-6c6f-...". */
void soft_uuid_text(int physical, char out[48])
{
	CUuuid u;
	int n;

	make_uuid(physical, &u);
	n = snprintf(out, 48, "GPU-");
	for (int i = 0; i < 16; i++) {
		const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

		n += snprintf(out + n, 48 - (size_t)n, "%s%02x", dash, (unsigned char)u.bytes[i]);
	}
}

/* Count the devices of the machine: GPULOAD_SOFT_DEVICES, else 1. */
int soft_count_physical(void)
{
	const char *text = secure_getenv("GPULOAD_SOFT_DEVICES");
	long n = text ? strtol(text, NULL, 10) : 1;

	return n < 0 ? 0 : n > MAX_DEVICES ? MAX_DEVICES : (int)n;
}

static const char uuid_start[] = "GPU-";

static bool is_uuid(const char *item)
{
	return strncasecmp(item, uuid_start, sizeof uuid_start - 1) == 0;
}

/* Find the device whose UUID begins with this text; -1: there is no such device, or there are several. */
static int find_by_uuid(const char *item, size_t length, int n_physical)
{
	int found = -1;

	if (length < sizeof uuid_start)
		return -1;
	for (int i = 0; i < n_physical; i++) {
		char text[48];

		soft_uuid_text(i, text);
		if (strncasecmp(text, item, length))
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* Find the device that an item of CUDA_VISIBLE_DEVICES specifies, by number or UUID; -1: no such device. */
static int find_physical(const char *item, size_t length, int n_physical)
{
	char *end;
	long n;

	if (is_uuid(item))
		return find_by_uuid(item, length, n_physical);
	if (!length || !isdigit((unsigned char)*item))
		return -1;
	n = strtol(item, &end, 10);
	return end == item + length && n < n_physical ? (int)n : -1;
}

static bool is_listed(int physical)
{
	for (int i = 0; i < soft.n_devices; i++)
		if (soft.device[i].physical == physical)
			return true;
	return false;
}

/* Choose the listed devices, up to the first invalid item of the list.  A list must not contain both numbers and UUIDs. */
static CUresult choose_listed(const char *list, int n_physical)
{
	bool by_uuid = is_uuid(list);

	for (const char *item = list;;) {
		size_t length = strcspn(item, ",");
		int physical = find_physical(item, length, n_physical);

		if (physical < 0 || is_uuid(item) != by_uuid)
			return CUDA_SUCCESS;
		if (is_listed(physical))
			return soft_refuse(CUDA_ERROR_INVALID_DEVICE, "CUDA_VISIBLE_DEVICES=%s names device %d twice", list, physical);
		soft.device[soft.n_devices++].physical = physical;
		if (!item[length])
			return CUDA_SUCCESS;
		item += length + 1;
	}
}

CUresult soft_choose_devices(void)
{
	const char *list = secure_getenv("CUDA_VISIBLE_DEVICES");
	int n_physical = soft_count_physical();
	CUresult r = CUDA_SUCCESS;

	soft.n_devices = 0;
	if (list)
		r = choose_listed(list, n_physical);
	else
		for (; soft.n_devices < n_physical; soft.n_devices++)
			soft.device[soft.n_devices].physical = soft.n_devices;
	for (int i = 0; i < soft.n_devices; i++)
		soft.device[i].ordinal = i;
	if (!r && !soft.n_devices)
		r = soft_refuse(CUDA_ERROR_NO_DEVICE, "none of %d devices is visible: CUDA_VISIBLE_DEVICES=%s", n_physical,
				list ? list : "");
	return r;
}
