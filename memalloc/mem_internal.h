/* mem_internal.h — the memory object, and the table of operations that each kind of memory implements.
 *
 *     auto.c         gpul_mem_create(): AUTO or one kind    probed.c       reports of earlier probes
 *       mem.c        checks the description, calls the kind's operations
 *         vmm.c      host-numa, device                    ┐
 *         memfd.c ─┐                                      │
 *         shm.c ───┴─ host_file.c: a file, mapped and     │ checks.c: sizes, access between GPUs
 *                                  registered             │ cu.c: error messages
 *         pinned.c                                        │ node.c: NUMA
 *         device_ipc.c                                    ┘
 *
 * The operations create and import of a kind receive an object whose description has been checked: about.kind, bytes, devices,
 * read_only, exportable and (host kinds) node are set, fd is -1, and everything else is 0.  They set the other members; on failure
 * they release what they acquired. */
#ifndef GPULOAD_MEMALLOC_MEM_INTERNAL_H
#define GPULOAD_MEMALLOC_MEM_INTERNAL_H

#include <pthread.h>

#include "memalloc/mem.h"
#include "memalloc/probe.h"

/* The arguments of gpul_mem_import(): an offer, and either a descriptor or a handle. */
struct mem_source {
	const gpul_mem_offer *offer;   /* untrusted, because another process sent it */
	int fd;                        /* the descriptor; -1: the memory comes as a handle */
	const gpul_mem_handle *handle; /* the handle; NULL: the memory comes as a descriptor */
};

struct mem_ops {
	bool on_host;    /* the pages are host memory, on a NUMA node */
	bool has_fd;     /* the memory can be exported as a descriptor */
	bool has_handle; /* the memory can be exported as a handle of 64 bytes; device memory may allow handles and descriptors */
	gpul_status (*create)(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err);
	gpul_status (*import)(gpul_mem *m, const struct mem_source *from, gpul_error *err);
	/* Set m->fd if it is -1; called by one thread at a time.  NULL: create() has already set m->fd. */
	gpul_status (*export_fd)(gpul_mem *m, gpul_error *err);
	gpul_status (*export_handle)(gpul_mem *m, gpul_mem_handle *out, gpul_error *err);
	void (*destroy)(gpul_mem *m);
};

extern const struct mem_ops gpul_mem_vmm_host, gpul_mem_vmm_device, gpul_mem_memfd, gpul_mem_shm, gpul_mem_pinned, gpul_mem_device_ipc;

struct gpul_mem {
	const gpul_driver *drv; /* borrowed */
	const struct mem_ops *ops;
	gpul_mem_info about;
	CUdevice handles[GPUL_MEM_MAX_DEVICES]; /* driver handles of about.devices */
	CUcontext context;                      /* the context that was current when the object was created */
	void *cpu;                              /* address on the CPU; NULL: no CPU access */
	CUdeviceptr gpu;
	pthread_mutex_t export_lock;           /* protects fd of host-numa and device memory */
	int fd;                                /* the exported descriptor, owned; -1: not exported yet, or not possible for this kind */
	CUmemGenericAllocationHandle physical; /* only for host-numa and device memory */
	bool fabric;                           /* device memory: `physical` can also be exported as a fabric handle */
	char *shm_name;                        /* shm: name, owned, removed with the memory; NULL: no name */
};

/* ---- mem.c ----------------------------------------------------------------------------------- */

/* Create memory of the given kind, which is not AUTO; desc->kind is ignored. */
gpul_status gpul_mem_create_kind(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem_kind kind, gpul_mem **out, gpul_error *err);

/* ---- kind.c ---------------------------------------------------------------------------------- */

/* The kinds that AUTO tries, in this order. */
enum { GPUL_MEM_N_AUTO = 3 };
extern const gpul_mem_kind gpul_mem_auto_order[GPUL_MEM_N_AUTO];

/* ---- checks.c -------------------------------------------------------------------------------- */

size_t gpul_mem_page_bytes(void);
/* Set about.granularity_bytes to grain and about.mapped_bytes to about.bytes rounded up to a multiple of grain. */
gpul_status gpul_mem_round(gpul_mem *m, size_t grain, gpul_error *err);
/* Set about.granularity_bytes to grain and about.mapped_bytes to the offered size; GPUL_EFORMAT if that is not a
 * multiple of grain, or is less than about.bytes. */
gpul_status gpul_mem_accept_size(gpul_mem *m, const gpul_mem_offer *offer, size_t grain, gpul_error *err);
/* Fail with GPUL_EUNSUPPORTED if one of the devices cannot access memory of the device `owner`. */
gpul_status gpul_mem_check_peers(gpul_mem *m, CUdevice owner, gpul_error *err);

/* ---- cu.c ------------------------------------------------------------------------------------ */

/* Call a function of m's driver table.  Unlike gpul_cu(), the message begins with the kind and gives advice for that
 * kind, and CUDA_ERROR_NOT_SUPPORTED becomes GPUL_EUNSUPPORTED. */
#define mem_cu(m, err, call) gpul_mem_cu_status((m), (err), (m)->drv->call, #call)
gpul_status gpul_mem_cu_status(const gpul_mem *m, gpul_error *err, CUresult r, const char *call);
/* Report a failed system call: ENOMEM and ENOSPC are GPUL_ENOMEM, others GPUL_ESYS. */
gpul_status gpul_mem_sys_status(const gpul_mem *m, gpul_error *err, int error_number, const char *call, const char *advice);

/* ---- node.c ---------------------------------------------------------------------------------- */

/* Set about.node and about.node_clamped from the requested node. */
gpul_status gpul_mem_find_node(gpul_mem *m, int wanted, gpul_error *err);
/* Make the system place the pages of a mapping on about.node; call this before any page is allocated.  If the system
 * refuses, this is recorded in about.node_unbound and logged. */
void gpul_mem_bind(gpul_mem *m, void *at, size_t bytes);

/* Read the start of a small file in /proc or /sys, and terminate it with a NUL; false: no such file, or it is empty. */
bool gpul_mem_read_text(const char *path, char *text, size_t room);

/* ---- host_file.c: a file in RAM (tmpfs), mapped and registered ------------------------------- */

/* Set the size of the empty file m->fd, allocate its pages now (so that no later access causes SIGBUS), and map it. */
gpul_status gpul_mem_file_fill(gpul_mem *m, const char *advice, gpul_error *err);
/* Check an imported fd.  GPUL_EFORMAT: it is not a tmpfs file of mapped_bytes, or not open for the access that m needs. */
gpul_status gpul_mem_file_check(const gpul_mem *m, int fd, gpul_error *err);
void gpul_mem_file_unmap(gpul_mem *m);
/* Register the mapping with the driver, and set m->gpu. */
gpul_status gpul_mem_register(gpul_mem *m, gpul_error *err);
void gpul_mem_unregister(gpul_mem *m);
/* The last step of an import: map and register the checked file. */
gpul_status gpul_mem_file_adopt(gpul_mem *m, int fd, gpul_error *err);

/* Set the preferred nodes of pages by mbind(2); -1: it failed, see errno. */
long gpul_mem_mbind(void *at, size_t bytes, int policy, const unsigned long *mask, unsigned long n_bits, unsigned flags);

/* The list of probe reports, to which gpul_mem_probe() adds, and which AUTO reads. */

/* The report of one device of one driver. */
struct probe_entry {
	const gpul_driver *drv;
	int device;
	gpul_mem_probe_report report;
	struct probe_entry *next;
};

/* Add an entry to the list, for gpul_mem_probed(); it is never freed. */
void gpul_mem_add_report(struct probe_entry *e);

#endif
