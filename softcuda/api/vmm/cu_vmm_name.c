/* cu_vmm_name.c — the name of a memfd, which describes the memory to a process that imports it.
 *
 * Applications send only the descriptor, so the importer gets everything else from the name of the memfd, which the system shows to
 * every process that has the descriptor:
 *
 *     /proc/self/fd/N -> /memfd:gpuload-vmm:1:d:<UUID of the device>:<bytes>:<random id> (deleted)
 *                                             n:<NUMA node>
 *                                             h:0                     all numbers in hexadecimal */
#include "softcuda/api/vmm/cu_vmm_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { UUID_TEXT = 33 };

static void to_hex(char *text, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;

	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", from[i]);
}

bool soft_memory_name(const char *kind, const CUmemLocation *location, size_t bytes, char *buf, size_t buf_bytes)
{
	unsigned char id[16];
	char id_text[UUID_TEXT], where[UUID_TEXT] = "0";
	char letter = 'h';
	CUuuid uuid;
	int n;

	if (getrandom(id, sizeof id, 0) != sizeof id)
		return false;
	to_hex(id_text, id, sizeof id);
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
		letter = 'd';
		soft_device_uuid(&soft.device[location->id], &uuid);
		to_hex(where, uuid.bytes, sizeof uuid.bytes);
	} else if (location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
		letter = 'n';
		snprintf(where, sizeof where, "%x", (unsigned)location->id);
	}
	n = snprintf(buf, buf_bytes, "gpuload-%s:1:%c:%s:%zx:%s", kind, letter, where, bytes, id_text);
	return n > 0 && (size_t)n < buf_bytes;
}

/* ---- parsing the name of an exported allocation -------------------------------------------------------------------- */

static bool find_device_by_uuid(const char *uuid_text, int *ordinal)
{
	char text[UUID_TEXT];
	CUuuid uuid;

	for (int i = 0; i < soft.n_devices; i++) {
		soft_device_uuid(&soft.device[i], &uuid);
		to_hex(text, uuid.bytes, sizeof uuid.bytes);
		if (!strcmp(text, uuid_text)) {
			*ordinal = i;
			return true;
		}
	}
	return false;
}

static CUresult parse_location(char letter, const char *where, CUmemLocation *out)
{
	char *end;
	unsigned long node;

	if (letter == 'd') {
		out->type = CU_MEM_LOCATION_TYPE_DEVICE;
		return find_device_by_uuid(where, &out->id) ? CUDA_SUCCESS
							    : soft_refuse(CUDA_ERROR_INVALID_DEVICE,
									  "import: the memory is on the device with UUID %s, which "
									  "this process does not see: check CUDA_VISIBLE_DEVICES",
									  where);
	}
	node = strtoul(where, &end, 16);
	if (letter != 'n' || *end || end == where || node > 0xffff)
		return soft_refuse(CUDA_ERROR_UNKNOWN, "import: the memory is neither on a device nor on a NUMA node");
	out->type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	out->id = (int)node;
	return CUDA_SUCCESS;
}

CUresult soft_memory_parse_name(const char *kind, int fd, size_t *bytes, CUmemLocation *location)
{
	char path[40], name[256], form[96], where[UUID_TEXT], id[UUID_TEXT], letter, rest;
	size_t start;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name - 1);
	name[n < 0 ? 0 : n] = '\0';
	snprintf(form, sizeof form, "/memfd:gpuload-%s:1:", kind);
	start = strlen(form);
	if (strncmp(name, form, start) != 0 ||
	    sscanf(name + start, "%c:%32[0-9a-f]:%zx:%32[0-9a-f] (deleted%c", &letter, where, bytes, id, &rest) != 5 || rest != ')')
		return soft_refuse(CUDA_ERROR_UNKNOWN, "import: descriptor %d is \"%.60s\", not memory that gpuload exports", fd, name);
	return parse_location(letter, where, location);
}
