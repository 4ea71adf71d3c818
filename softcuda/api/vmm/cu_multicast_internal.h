/* cu_multicast_internal.h — multicast objects: a team of devices, each with memory at the same offsets.
 *
 *     process 1                       the memfd of the object                      process 2
 *     struct multicast ── mmap ──> devices, in the order of cuMulticastAddDevice <── mmap ── struct multicast
 *       copies[]: mappings of        bindings: offset, device, process id and         copies[]
 *       the bound memory             descriptor of the bound memory
 *
 * cuMemExportToShareableHandle exports this memfd.  To map memory that another process has bound, a process opens it by /proc/PID/fd, as
 * cuIpcOpenMemHandle does.  This works only while that process runs, so all bound memory is mapped early, in each of these cases:
 *
 *     cuMulticastBind*, cuMemSetAccess of an address of the object, each operation of a stream, the first access of a kernel
 *
 * If the process that bound the memory is killed, the existing mappings keep the memory with its last contents, and multimem instructions
 * still access it.  If the process is killed before its memory was mapped, the memory is lost: stores reach only the other devices, and
 * a load is a fault. */
#ifndef GPULOAD_SOFTCUDA_API_VMM_CU_MULTICAST_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_VMM_CU_MULTICAST_INTERNAL_H

#include <fcntl.h>
#include <stdatomic.h>

#include "softcuda/api/vmm/cu_vmm_internal.h"

enum { MOST_BINDINGS = 1024, MEMFD_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

/* A process writes a row only while the row's state is ROW_TAKEN.  This replaces a lock, which a killed process would keep forever. */
enum row_state { ROW_FREE, ROW_TAKEN, ROW_READY };

struct shared_device {
	_Atomic uint32_t state;
	unsigned char uuid[16];
};

struct shared_binding {
	_Atomic uint32_t state;
	uint32_t device; /* index in shared_team.device */
	int32_t pid, fd; /* the process that bound the memory, and its descriptor */
	uint64_t pids;   /* inode of the PID namespace in which `pid` is valid */
	uint64_t inode;  /* inode of the memfd, which identifies the memory */
	uint64_t offset; /* offset in the multicast object */
	uint64_t memory_offset, bytes;
};

struct shared_team {
	uint32_t n_devices, unused;
	uint64_t bytes;
	_Atomic uint64_t changes; /* number of changes of the bindings so far */
	_Atomic uint32_t n_devices_added;
	struct shared_device device[GPUL_EXEC_MAX_DEVICES];
	struct shared_binding binding[MOST_BINDINGS];
};

struct copy { /* a mapping of the memory of a binding into this process */
	struct copy *next;
	uint32_t device;
	uint64_t inode, offset, memory_offset, bytes;
	uint8_t *at;   /* address of the mapping; NULL: the memory no longer exists, because the process that bound it has ended */
	bool is_bound; /* false: the binding was removed, and the memory is unmapped when no instruction uses it */
};

struct own_binding { /* memory that this process has bound; holds a reference to the memory */
	struct own_binding *next;
	uint32_t row;
	struct memory *memory;
};

struct multicast {
	gpul_exec_team team;  /* must be the first member, because the interpreter's pointer to the team is also a pointer to this struct */
	pthread_mutex_t lock; /* protects copies, failed, is_short, seen; taken after the driver's lock, or by a worker without it */
	struct shared_team *shared;
	struct copy *copies;
	char failed[128];        /* why a binding could not be mapped; "": all are mapped */
	bool is_short;           /* descriptors or memory were exhausted, so the next access tries again to map the bindings */
	uint64_t seen;           /* value of shared->changes when the copies were mapped */
	struct own_binding *own; /* memory that this process has bound; protected by the driver's lock */
	bool is_shareable;       /* the object can be shared between processes, so bound memory must be shareable, too */
	struct multicast *next;  /* next shareable object of this process; protected by the driver's lock */
};

/* Functions of cu_multicast_team.c.  On success, *fd is the object's memfd, which the caller closes. */
CUresult soft_team_create(const CUmulticastObjectProp *prop, struct multicast **out, int *fd);
bool soft_is_team_file(int fd);
CUresult soft_team_open(int fd, struct multicast **out);
void soft_team_free(struct multicast *t); /* also releases the memory that this process has bound */
/* Return the index of a device in the team; -1: the device is not in the team. */
int soft_team_device(const struct multicast *t, const struct device *d);
bool soft_team_is_complete(const struct multicast *t); /* all devices were added */
/* Bind or unbind memory.  The caller holds the driver's lock. */
CUresult soft_team_bind(struct multicast *t, uint32_t device, struct memory *memory, const struct shared_binding *wanted);
CUresult soft_team_unbind(struct multicast *t, uint32_t device, uint64_t offset, uint64_t bytes);

/* Functions of cu_multicast_copies.c. */
bool soft_memfd_name_begins(int fd, const char *wanted); /* true: fd is a memfd whose name begins with `wanted` */
uint64_t soft_own_pids(void);                            /* the inode of this process's PID namespace; 0: unknown */
/* Implements find_copies of a gpul_exec_team (softcuda/exec): finds the bound memory at an offset of the multicast object. */
bool soft_team_find_copies(gpul_exec_team *team, uint64_t offset, gpul_exec_copies *out, char *why, size_t why_bytes);
/* Map all memory that is bound now.  Returns false if descriptors or memory are exhausted; *why (if not NULL) then has the reason,
 * and the next call tries again.  Other failures are ignored here: a kernel that accesses the memory faults. */
bool soft_team_map(struct multicast *t, char *why, size_t why_bytes);
/* From now on, call soft_team_map() before each operation of a stream.  The caller holds the driver's lock. */
void soft_teams_add(struct multicast *t);
void soft_teams_remove(struct multicast *t); /* does nothing if t was not added */
/* Unmap the memory of removed bindings.  The caller holds the driver's lock, and soft_settle() has waited for running accesses. */
void soft_team_drop_copies(struct multicast *t);

#endif
