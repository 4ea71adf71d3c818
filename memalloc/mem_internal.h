/* mem_internal.h — one object, and the row of functions that each kind of memory is.
 *
 *     mem.c ─ checks, dispatch ─┬─ vmm.c         host-numa, device
 *     auto.c ─ which kind       ├─ memfd.c ─┐
 *     node.c ─ NUMA             ├─ shm.c ───┴─ host_file.c   a file, mapped and registered
 *     cu.c ─ driver errors      ├─ pinned.c
 *                               └─ device_ipc.c
 *
 * A kind's create and import find an object whose description is checked: about.kind, bytes, devices, read_only,
 * exportable and (host kinds) node are filled, everything else is zero, fd is -1.  They fill the rest, or undo what
 * they did. */
#ifndef GPULOAD_MEMALLOC_MEM_INTERNAL_H
#define GPULOAD_MEMALLOC_MEM_INTERNAL_H

#include <pthread.h>

#include "memalloc/mem.h"

/* What an import stands on: one of the two. */
struct mem_source {
	const gpul_mem_offer *offer;    /* not trusted: see gpul_mem_import() */
	int fd;                         /* -1: handle */
	const gpul_mem_handle *handle;  /* NULL: fd */
};

struct mem_ops {
	bool on_host;       /* its pages lie on a NUMA node */
	bool has_fd;        /* another process maps it by a descriptor, ... */
	bool has_handle;    /* ... by 64 bytes (fabric handles are beside this) */
	gpul_status (*create)(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err);
	gpul_status (*import)(gpul_mem *m, const struct mem_source *from, gpul_error *err);
	/* Set m->fd when it is -1; NULL: create has done so.  Called by one thread at a time. */
	gpul_status (*export_fd)(gpul_mem *m, gpul_error *err);
	gpul_status (*export_handle)(gpul_mem *m, gpul_mem_handle *out, gpul_error *err);
	void (*destroy)(gpul_mem *m);
};

extern const struct mem_ops gpul_mem_vmm_host, gpul_mem_vmm_device, gpul_mem_memfd, gpul_mem_shm,
	gpul_mem_pinned, gpul_mem_device_ipc;

struct gpul_mem {
	const gpul_driver *drv;                /* borrowed */
	const struct mem_ops *ops;
	gpul_mem_info about;
	CUdevice handles[GPUL_MEM_MAX_DEVICES];  /* of about.devices */
	CUcontext context;                     /* that was current when it was made */
	void *cpu;                             /* NULL: none */
	CUdeviceptr gpu;
	pthread_mutex_t export_lock;           /* guards fd of host-numa and device */
	int fd;                                /* owned; -1: none (yet) */
	CUmemGenericAllocationHandle physical; /* host-numa, device */
	bool fabric;                           /* device: physical has a fabric handle, too */
	char *shm_name;                        /* shm: owned; to be unlinked; NULL: it has none */
};

/* ---- mem.c ----------------------------------------------------------------------------------- */

/* Create memory of one kind, which is not AUTO; desc->kind is ignored. */
gpul_status gpul_mem_create_kind(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem_kind kind,
				 gpul_mem **out, gpul_error *err);

/* ---- kind.c ---------------------------------------------------------------------------------- */

/* The kinds that AUTO tries, in this order. */
enum { GPUL_MEM_N_AUTO = 3 };
extern const gpul_mem_kind gpul_mem_auto_order[GPUL_MEM_N_AUTO];

/* ---- checks.c -------------------------------------------------------------------------------- */

size_t gpul_mem_page_bytes(void);
/* Set about.granularity_bytes to grain and about.mapped_bytes to about.bytes rounded up to a multiple of it. */
gpul_status gpul_mem_round(gpul_mem *m, size_t grain, gpul_error *err);
/* Set about.granularity_bytes to grain and about.mapped_bytes to the offered size; GPUL_EFORMAT if that is not a
 * multiple of grain, or about.bytes do not fit. */
gpul_status gpul_mem_accept_size(gpul_mem *m, const gpul_mem_offer *offer, size_t grain, gpul_error *err);
/* GPUL_EUNSUPPORTED when one of the devices cannot access the owner's memory. */
gpul_status gpul_mem_check_peers(gpul_mem *m, CUdevice owner, gpul_error *err);

/* ---- cu.c ------------------------------------------------------------------------------------ */

/* Call through m's table.  Like gpul_cu(), but the text begins with the kind, says what to do about it for
 * this kind, and what the driver does not support is GPUL_EUNSUPPORTED. */
#define mem_cu(m, err, call) gpul_mem_cu_status((m), (err), (m)->drv->call, #call)
gpul_status gpul_mem_cu_status(const gpul_mem *m, gpul_error *err, CUresult r, const char *call);
/* The same for a system call: ENOMEM and ENOSPC are GPUL_ENOMEM, the others GPUL_ESYS. */
gpul_status gpul_mem_sys_status(const gpul_mem *m, gpul_error *err, int error_number, const char *call,
				const char *advice);

/* ---- node.c ---------------------------------------------------------------------------------- */

/* Find the node that is asked for: about.node, about.node_clamped. */
gpul_status gpul_mem_find_node(gpul_mem *m, int wanted, gpul_error *err);
/* Have the pages of a mapping come from about.node, before any is there.  What the system will not do is
 * said in about.node_unbound and the log. */
void gpul_mem_bind(gpul_mem *m, void *at, size_t bytes);

/* Read the start of a small file of the kernel's, NUL behind it; false: it is not there, or empty. */
bool gpul_mem_read_text(const char *path, char *text, size_t room);

/* ---- host_file.c: a file of RAM, mapped and registered --------------------------------------- */

/* Give m->fd, an empty file, its size and pages: now, not by SIGBUS when they are touched.  Maps it. */
gpul_status gpul_mem_file_fill(gpul_mem *m, const char *advice, gpul_error *err);
/* GPUL_EFORMAT unless fd is a file of RAM that has mapped_bytes, opened for what is wanted of it. */
gpul_status gpul_mem_file_check(const gpul_mem *m, int fd, gpul_error *err);
void gpul_mem_file_unmap(gpul_mem *m);
/* Tell the driver of the mapping: m->gpu. */
gpul_status gpul_mem_register(gpul_mem *m, gpul_error *err);
void gpul_mem_unregister(gpul_mem *m);
/* Both, for a file that was checked: the end of an import. */
gpul_status gpul_mem_file_adopt(gpul_mem *m, int fd, gpul_error *err);

#endif
