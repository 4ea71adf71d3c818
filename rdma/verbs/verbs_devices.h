/* verbs_devices.h — lists the RDMA devices that libibverbs finds, with all attributes, as plain data.
 *
 * This file uses no types of libibverbs, so that a program built without libibverbs' headers can include it. */
#ifndef GPULOAD_RDMA_VERBS_VERBS_DEVICES_H
#define GPULOAD_RDMA_VERBS_VERBS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_verbs_gid_info {
	unsigned index;
	char type[16];    /* such as "InfiniBand", "RoCE v1" or "RoCE v2" */
	char address[48]; /* such as "10.9.0.1" or "fe80::1" */
	char netdev[24];  /* "": there is none, or it is in another network namespace */
	bool ipv4, link_local;
} gpul_verbs_gid_info;

typedef struct gpul_verbs_port_info {
	int number;      /* port number, from 1 */
	char error[128]; /* why the port cannot be queried; "": the other members are valid */
	bool active;
	char state[16];          /* such as "ACTIVE", "DOWN", "INIT" or "ARMED" */
	char physical_state[24]; /* such as "LinkUp", "Polling" or "Disabled" */
	char link_layer[16];     /* such as "InfiniBand" or "Ethernet" */
	unsigned width;          /* lanes; 0: unknown */
	double lane_gbps, gbps;  /* rates of one lane and of all lanes, in 10^9 bits per second; 0: unknown */
	unsigned mtu, max_mtu;   /* current and largest MTU in bytes */
	unsigned lid, sm_lid, lmc, sm_sl;
	unsigned gid_entries, pkey_entries; /* sizes of the GID table and the P_Key table */
	uint64_t max_message_bytes;
	int chosen_gid;    /* index of the GID that a connection uses; -1: none is usable */
	char gid_why[200]; /* why this GID was chosen, or why none is usable */
	size_t n_gids;     /* number of entries that are not empty */
	gpul_verbs_gid_info *gids;
} gpul_verbs_port_info;

typedef struct gpul_verbs_number {
	const char *name; /* name of the field in struct ibv_device_attr, such as "max_qp" */
	uint64_t value;
} gpul_verbs_number;

enum { GPUL_VERBS_MAX_NUMBERS = 40 };

typedef struct gpul_verbs_device_info {
	char name[64];
	char error[200];    /* why the device cannot be opened or queried; "": the other members are valid */
	char node_type[32]; /* such as "InfiniBand channel adapter" */
	bool usable;        /* the send path can use it: it is RoCE or InfiniBand (iWARP has no write with immediate) */
	char firmware[64];
	char node_guid[20], system_guid[20]; /* such as "506b:4b03:00a1:b2c3" */
	unsigned vendor, part, hardware;
	char atomics[16];          /* "none", "device" (atomic among verbs), "global" (also with the CPU) */
	char on_demand_paging[48]; /* operations that work on unregistered memory: "none", or names from "send recv write read atomic" */
	bool dmabuf;               /* GPU memory can be registered by a dmabuf descriptor */
	int max_inline_bytes;      /* maximum inline data of a send of an RC queue pair; -1: unknown */
	char capabilities[400];    /* names of the flags, separated by blanks */
	size_t n_numbers;
	gpul_verbs_number numbers[GPUL_VERBS_MAX_NUMBERS]; /* limits and other numbers */
	size_t n_ports;
	gpul_verbs_port_info *ports;
} gpul_verbs_device_info;

typedef struct gpul_verbs_devices {
	size_t n;
	gpul_verbs_device_info *at;
} gpul_verbs_devices;

/** Open and query every RDMA device.
 *
 * A device that cannot be opened (no permission, no provider) is listed with its .error.
 *
 * @out  owned by the caller: gpul_verbs_devices_free(); untouched on failure; may be empty
 * @err  explains a failure
 * Errors  GPUL_EUNSUPPORTED no libibverbs; GPUL_EVERBS native = errno: the list cannot be read; GPUL_ENOMEM
 * Source  manual pages ibv_get_device_list(3), ibv_query_device_ex(3), ibv_query_port(3), ibv_query_gid_table(3) */
gpul_status gpul_verbs_devices_read(gpul_verbs_devices *out, gpul_error *err);
void gpul_verbs_devices_free(gpul_verbs_devices *d); /* accepts a *d that is all zeros; cannot fail */

#ifdef __cplusplus
}
#endif

#endif
