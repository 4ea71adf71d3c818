/* ofi_devices.h — lists the entries of libfabric's fi_getinfo(), as plain data.
 *
 * This file uses no types of libfabric, so that a program built without libfabric's headers can include it. */
#ifndef GPULOAD_RDMA_OFI_OFI_DEVICES_H
#define GPULOAD_RDMA_OFI_OFI_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ofi_entry {
	char provider[64];           /* such as "tcp;ofi_rxm" or "efa" */
	char domain[64], fabric[64]; /* such as "eth0" or "192.0.2.0/24" */
	char version[16];            /* version of the provider, "117.0" */
	char endpoint[16];           /* such as "RDM", "MSG" or "DGRAM" */
	char address[64];            /* such as "192.0.2.1", "[fd00::2]", a name; "": none */
	uint64_t max_message_bytes, inject_bytes, remote_data_bytes;
	uint64_t depth;  /* limit of the operations in flight of an endpoint */
	bool rma;        /* the endpoint can write into the peer's memory */
	bool gpu_memory; /* FI_HMEM: the provider can register GPU memory */
	bool usable;     /* the send path can use it */
	bool chosen;     /* the entry that the send path uses if the user gives this provider (--provider) */
} gpul_ofi_entry;

typedef struct gpul_ofi_entries {
	char version[24]; /* version of libfabric, "1.17" */
	size_t n;
	gpul_ofi_entry *at; /* usable entries first, then the others, each group in the order of libfabric */
} gpul_ofi_entries;

/** List the entries that libfabric offers on this machine.
 *
 * @out  owned by the caller: gpul_ofi_entries_free(); untouched on failure; may be empty
 * @err  explains a failure
 * Errors  GPUL_EUNSUPPORTED no libfabric; GPUL_ESYS fi_getinfo failed, native = its error number; GPUL_ENOMEM
 * Source  manual page fi_getinfo(3) */
gpul_status gpul_ofi_entries_read(gpul_ofi_entries *out, gpul_error *err);
void gpul_ofi_entries_free(gpul_ofi_entries *e); /* accepts an *e that is all zeros; cannot fail */

#ifdef __cplusplus
}
#endif

#endif
