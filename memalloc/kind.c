/* kind.c — names the kinds of memory, and defines the order in which AUTO tries them. */
#include "memalloc/mem_internal.h"

#include <string.h>

static const char *const names[GPUL_MEM_N_KINDS] = {
	[GPUL_MEM_AUTO] = "auto", [GPUL_MEM_HOST_NUMA] = "host-numa", [GPUL_MEM_DEVICE] = "device",         [GPUL_MEM_MEMFD] = "memfd",
	[GPUL_MEM_SHM] = "shm",   [GPUL_MEM_PINNED] = "pinned",       [GPUL_MEM_DEVICE_IPC] = "device-ipc",
};

const gpul_mem_kind gpul_mem_auto_order[GPUL_MEM_N_AUTO] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_MEMFD, GPUL_MEM_SHM };

const char *gpul_mem_kind_name(gpul_mem_kind kind)
{
	return (unsigned)kind < GPUL_MEM_N_KINDS ? names[kind] : "?";
}

bool gpul_mem_kind_parse(const char *text, gpul_mem_kind *out)
{
	for (unsigned i = 0; i < GPUL_MEM_N_KINDS; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (gpul_mem_kind)i;
			return true;
		}
	}
	return false;
}
