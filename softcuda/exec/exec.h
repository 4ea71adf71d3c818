/* exec.h — the interpreter under the software driver: runs PTX on the CPU, a warp at a time.
 *
 *     gpul_ptx_module ── gpul_exec_program_create ──> program: decoded kernels + memory of its globals
 *     machine (worker threads) + memory (what a kernel may access) + program's kernel + arguments
 *         ── gpul_exec_launch_start ──> launch ── gpul_exec_launch_wait ──> OK or the fault
 *
 * Device addresses are host addresses.  Contexts, streams and CUresult belong to softcuda/api, the layer above. */
#ifndef GPULOAD_SOFTCUDA_EXEC_EXEC_H
#define GPULOAD_SOFTCUDA_EXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "ptx/module.h"

/* ---- memory: the table of address ranges that kernels may access --------------------------- */

typedef struct gpul_exec_memory gpul_exec_memory;

enum {
	GPUL_EXEC_MEM_READ_ONLY = 1, /* a store is a fault, for every device */
	GPUL_EXEC_MEM_CONSTANT = 4,  /* a variable in .const; a store by its global address is valid, as on a GPU */
	GPUL_EXEC_MEM_CONDITION = 2, /* the value of a conditional node: cudaGraphSetConditional's handle is its address */
	GPUL_EXEC_MEM_MULTICAST = 8, /* only stores and multimem instructions access it: the copies of range.team */
	GPUL_EXEC_MAX_DEVICES = 16,
};

/* The memory behind a multicast address: a copy of the same bytes for each device of a team. */
typedef struct gpul_exec_copies {
	uint64_t begin, end;                /* offsets in the multicast object for which at[] holds */
	unsigned n;                         /* devices of the team, without n_gone */
	unsigned n_gone;                    /* devices whose memory there has gone with its process: nobody can read what is stored there */
	uint8_t *at[GPUL_EXEC_MAX_DEVICES]; /* in the team's order: where offset `begin` is in the copy of each device */
	const _Atomic uint64_t *changes;    /* the copies are valid while *changes == seen */
	uint64_t seen;
	/* The memory_id of ranges with the same bytes, and where in them offset `begin` is; 0: unknown. */
	uint64_t memory_id[GPUL_EXEC_MAX_DEVICES], memory_at[GPUL_EXEC_MAX_DEVICES];
} gpul_exec_copies;

typedef struct gpul_exec_team gpul_exec_team;
struct gpul_exec_team {
	/* Find the copies of the byte at this offset.  false: a device has no memory there; why has the reason.  Called by workers, for
	 * addresses of ranges in the table. */
	bool (*find_copies)(gpul_exec_team *team, uint64_t offset, gpul_exec_copies *out, char *why, size_t why_bytes);
};

typedef struct gpul_exec_range {
	uint64_t base, bytes; /* [base, base + bytes) */
	uint64_t padding;     /* bytes after the end that kernels may access too; a GPU also maps whole blocks */
	uint64_t spare;       /* bytes after the end that belong to no other memory of the process, for fault messages */
	unsigned flags;
	/* Masks: bit d is for device d; 0: no device is restricted. */
	uint32_t denied;     /* devices that may neither read nor write */
	uint32_t unwritable; /* devices that may only read */
	const char *remedy;  /* static string: the CUDA call that grants access, for fault messages; NULL: none */
	uint64_t memory_id; /* ranges with the same number are addresses of the same bytes, from their first byte on; 0: no other address */
	gpul_exec_team *team; /* borrowed; GPUL_EXEC_MEM_MULTICAST: the devices whose memory it is */
	void *owner;          /* for the caller's use; the interpreter does not read it */
	char label[48];       /* for fault messages: "cuMemAlloc", "global counter", "device heap" */
} gpul_exec_range;

/** Create an empty table.
 *
 * @out   owned by the caller: gpul_exec_memory_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM */
gpul_status gpul_exec_memory_create(gpul_exec_memory **out, gpul_error *err);
void gpul_exec_memory_destroy(gpul_exec_memory *m); /* accepts NULL; destroy its machines and programs first */

/** Add the range [base, base + bytes): kernels may access it from now on.  Ranges never overlap.
 *
 * @m      borrowed
 * @range  copied
 * Errors  GPUL_EINVAL the range is empty or overlaps another; GPUL_ENOMEM
 * Threads any thread may call, also while kernels run
 * Every access of a kernel is checked against this table, as a GPU checks its page tables */
gpul_status gpul_exec_memory_add(gpul_exec_memory *m, const gpul_exec_range *range, gpul_error *err);
/** Remove the range that starts at base; false: no range starts there. */
bool gpul_exec_memory_remove(gpul_exec_memory *m, uint64_t base);
/** Copy the range that contains address to *out; false: no range contains it. */
bool gpul_exec_memory_find(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** Copy the newest removed range that contained address to *out, for messages; false: none of the last 1,024. */
bool gpul_exec_memory_freed(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** Copy the first range that ends after address to *out; false: all ranges end before. */
bool gpul_exec_memory_next(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** Replace the access rights of the range that starts at base; false: no range starts there. */
bool gpul_exec_memory_set_rights(gpul_exec_memory *m, uint64_t base, uint32_t denied, uint32_t unwritable);
/** Replace the owner of the range that starts at base; false: no range starts there. */
bool gpul_exec_memory_set_owner(gpul_exec_memory *m, uint64_t base, void *owner);

/* ---- program: a module, decoded ------------------------------------------------------------- */

typedef struct gpul_exec_program gpul_exec_program;
typedef struct gpul_exec_kernel gpul_exec_kernel;

/* the place of a parameter in the parameter buffer */
typedef struct gpul_exec_param {
	uint32_t offset, bytes;
} gpul_exec_param;

typedef struct gpul_exec_kernel_info {
	const char *name;
	const gpul_exec_param *params;
	uint32_t n_params, param_bytes;
	uint32_t n_regs;       /* 32-bit registers per thread, estimated from the declarations */
	uint32_t shared_bytes; /* static shared memory of a block */
	uint32_t local_bytes;  /* local memory of a thread, without called functions */
	uint32_t const_bytes;  /* .const variables of the module */
	uint32_t max_threads;  /* per block: product of .maxntid or .reqntid, else 1024 */
	uint32_t reqntid[3];   /* .reqntid; 0: not given */
	uint32_t cluster[3];   /* .reqnctapercluster; 0: not given */
	bool explicit_cluster; /* .explicitcluster: a launch must have clusters */
} gpul_exec_kernel_info;

/** Give the variables of a module addresses, and decode its functions: every function now, or, of a module of
 * gpul_ptx_parse_lazy(), each when it is needed, unless an observer reads whole programs.
 *
 * An instruction that is not interpreted does not fail the call: gpul_exec_kernel_refusal() reports the kernels that reach it by
 * calls of functions by name.  Other kernels fail when they execute it (GPUL_EXEC_ILLEGAL_INSTRUCTION).
 *
 * @memory     borrowed; the module's .global and .const variables are added to this table
 * @module     owned by the program from now on, also on failure
 * @file_name  for messages
 * @out        owned by the caller: gpul_exec_program_destroy(); untouched on failure
 * Errors  GPUL_EUNSUPPORTED .address_size 32; GPUL_EFORMAT an operand of the wrong kind or width, an undefined extern,
 *         with the line; GPUL_ENOMEM
 * Source  PTX ISA 9.0, chapters 5 and 9 */
gpul_status gpul_exec_program_create(gpul_exec_memory *memory, gpul_ptx_module *module, const char *file_name, gpul_exec_program **out,
				     gpul_error *err);
void gpul_exec_program_destroy(gpul_exec_program *p); /* accepts NULL; all its launches must have ended */

/** True if the program has no variable in .global or .const and no texture or surface reference: then all contexts can use it.  False,
 * too, if it has bodies that are not decoded yet. */
bool gpul_exec_program_is_stateless(const gpul_exec_program *p);
size_t gpul_exec_n_kernels(const gpul_exec_program *p);
const gpul_exec_kernel *gpul_exec_kernel_at(const gpul_exec_program *p, size_t i);
const gpul_exec_kernel *gpul_exec_find_kernel(const gpul_exec_program *p, const char *name);
size_t gpul_exec_kernel_index(const gpul_exec_program *p, const gpul_exec_kernel *k); /* index for gpul_exec_kernel_at */
/** Describe a kernel; n_regs, shared_bytes and local_bytes are 0 before gpul_exec_kernel_prepare(). */
const gpul_exec_kernel_info *gpul_exec_kernel_info_of(const gpul_exec_kernel *k);
/** Complete the information of a kernel, unless that has been done.  An error in its PTX does not fail the call: it becomes the
 * kernel's refusal.
 *
 * @k  borrowed
 * Errors  GPUL_ENOMEM */
gpul_status gpul_exec_kernel_prepare(const gpul_exec_kernel *k, gpul_error *err);
/** Decode a kernel and the functions that it calls by name, unless that has been done.  Return why it cannot run: it reaches an
 * instruction that is not interpreted, by calls of functions by name, or its PTX has an error.  NULL: the kernel can run, and fails only
 * if it executes such an instruction in a function that it calls through a pointer.
 * "kernel.ptx:12: tcgen05.wait::ld.sync.aligned: tcgen05 is not supported by the software driver; kernel gemm reaches it"; belongs to the program. */
const char *gpul_exec_kernel_refusal(const gpul_exec_kernel *k);
/** True if gpul_exec_kernel_refusal() may take long, because functions are decoded when they are needed. */
bool gpul_exec_kernel_is_decoded_later(const gpul_exec_kernel *k);
/** Get the address and size of a module-scope variable; false: no variable has that name. */
bool gpul_exec_find_variable(const gpul_exec_program *p, const char *name, uint64_t *address, size_t *bytes);
/** Return the handle of a texture or surface reference of the module (texture/texture_internal.h); 0: no reference has that name. */
uint64_t gpul_exec_find_reference(const gpul_exec_program *p, const char *name, bool surface);
size_t gpul_exec_n_variables(const gpul_exec_program *p);
bool gpul_exec_variable_at(const gpul_exec_program *p, size_t i, const char **name, uint64_t *address, size_t *bytes);
bool gpul_exec_variable_is_managed(const gpul_exec_program *p, size_t i); /* .attribute(.managed); i as in gpul_exec_variable_at */

/* ---- machine and launches -------------------------------------------------------------------- */

typedef struct gpul_exec_machine gpul_exec_machine;
typedef struct gpul_exec_launch gpul_exec_launch;

typedef struct gpul_exec_machine_options {
	unsigned n_workers;           /* number of worker threads; 0: one for each CPU that this process may run on */
	unsigned max_resident_blocks; /* resident blocks of one launch, on all workers; 0: see gpul_exec_max_resident_blocks() */
	uint64_t heap_bytes;          /* size of the heap for device malloc; 0 means 8 MiB */
	unsigned turn;                /* backward branches before a split yields to others; 0 means 1000 */
	unsigned stuck_ms;         /* log a notice after this time if all resident blocks only wait and others cannot start; 0 means 10 s */
	uint32_t pending_launches; /* launches from kernels that can be pending at once; 0 means 2048 */
	/* Get a device attribute, numbered as CUdevice_attribute, or with 0 the number of devices.  Called by workers, so it must not wait
	 * for kernels.  NULL, or false: there is no such attribute. */
	bool (*attribute)(unsigned device, int attribute, int *value);
	void (*print)(void *user, const char *text, size_t text_bytes); /* receives device printf; NULL: stdout */
	void *print_user;
} gpul_exec_machine_options;

/** Create a machine.  Its worker threads start with the first launch.
 *
 * @memory   borrowed; must outlive *out
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_exec_machine_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM */
gpul_status gpul_exec_machine_create(gpul_exec_memory *memory, const gpul_exec_machine_options *options, gpul_exec_machine **out,
				     gpul_error *err);
/** Set how many launches from kernels can be pending at once; false: too late, a kernel has already launched another. */
bool gpul_exec_machine_set_pending_launches(gpul_exec_machine *m, uint32_t n);
void gpul_exec_machine_destroy(gpul_exec_machine *m); /* aborts running launches, joins the workers */
/** Wait until every memory access that a kernel began before this call has ended: memory whose range was removed
 * from the table earlier can then be unmapped.  Waits for the current turns of blocks, not for kernels to end.  NULL is fine. */
void gpul_exec_machine_settle(gpul_exec_machine *m);
/** Stop all kernels between two instructions until gpul_exec_machine_resume(), so that the caller can move their
 * memory.  Must not be called while the machine is paused.  NULL is fine. */
void gpul_exec_machine_pause(gpul_exec_machine *m);
void gpul_exec_machine_resume(gpul_exec_machine *m);

typedef enum gpul_exec_fault_kind {
	GPUL_EXEC_OK = 0,
	GPUL_EXEC_ILLEGAL_ADDRESS,     /* CUDA_ERROR_ILLEGAL_ADDRESS */
	GPUL_EXEC_MISALIGNED,          /* CUDA_ERROR_MISALIGNED_ADDRESS */
	GPUL_EXEC_ILLEGAL_INSTRUCTION, /* CUDA_ERROR_ILLEGAL_INSTRUCTION: call through a bad pointer, bad brx index ... */
	GPUL_EXEC_TRAP,                /* CUDA_ERROR_LAUNCH_FAILED: trap; also a barrier that cannot complete */
	GPUL_EXEC_ASSERT,              /* CUDA_ERROR_ASSERT */
	GPUL_EXEC_STACK,               /* CUDA_ERROR_LAUNCH_FAILED: call stack too deep */
	GPUL_EXEC_NO_MEMORY,           /* the host has no memory for registers or local memory */
	GPUL_EXEC_ABORTED,             /* stopped by gpul_exec_launch_abort or gpul_exec_machine_destroy */
} gpul_exec_fault_kind;

#define GPUL_EXEC_PATH_BYTES 512

typedef struct gpul_exec_fault {
	gpul_exec_fault_kind kind;
	uint32_t block[3], thread[3];
	uint64_t address;                  /* the address of an ILLEGAL_ADDRESS or MISALIGNED fault */
	bool global;                       /* the address is global, or generic; else an offset in another address space, or unknown */
	bool host;                         /* the address is memory of the CPU that kernels cannot access */
	char text[400];                    /* one line: file:line, the access or instruction, the cause, block and thread */
	char source[GPUL_EXEC_PATH_BYTES]; /* the CUDA C++ file of the instruction, as its PTX names it; "": unknown */
	const char *image;                 /* name of the image with the instruction, valid as long as its program; NULL: none */
	uint32_t source_line;
	uint64_t source_timestamp, source_bytes; /* time and size of that file when it was compiled; 0: not recorded */
} gpul_exec_fault;

/* A launch's position in the order of all streams, for observers: it is number `number` of its stream, and comes after the work of
 * each listed stream up to a number.  The caller chooses the numbers of streams (see ORDER_NODE_BITS in observer_internal.h). */
typedef struct gpul_exec_order_fact {
	uint64_t stream, number;
} gpul_exec_order_fact;
typedef struct gpul_exec_order {
	uint64_t stream, number;
	size_t n;
	const gpul_exec_order_fact *after;
} gpul_exec_order;

typedef struct gpul_exec_launch_config {
	const gpul_exec_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t cluster[3]; /* size of a cluster in blocks, which divides the grid; 0: the kernel's, or one block */
	uint32_t dynamic_shared_bytes;
	const void *params;       /* the kernel's param_bytes bytes; copied */
	bool cooperative;         /* all blocks must be resident at once */
	uint64_t grid_id;         /* the value of %gridid */
	unsigned device;          /* the launch has this device's rights in memory; below GPUL_EXEC_MAX_DEVICES */
	gpul_exec_launch *parent; /* the launch whose kernel starts this one, which ends after it; NULL: the host starts it */
	const gpul_exec_order
		*order; /* for observers; must be valid until gpul_exec_launch_start() returns; NULL: after all earlier launches */
	/* A worker calls it once, when the launch has ended; NULL: no call.  The worker holds no lock meanwhile, so
	 * done may start, abort and release launches.  softcuda/api starts a stream's next launch in it.
	 * gpul_exec_launch_abort itself never calls it. */
	void (*done)(void *user, const gpul_exec_fault *fault);
	void *done_user;
} gpul_exec_launch_config;

/** Queue a launch; it starts at once and runs concurrently with other launches.
 *
 * @m       borrowed
 * @config  copied; the kernel's program must exist until the launch has ended
 * @out     owned by the caller: gpul_exec_launch_release(); untouched on failure
 * Errors   GPUL_EUNSUPPORTED gpul_exec_kernel_refusal() is not NULL; GPUL_EINVAL a dimension of 0, more than 1024 threads per block (or more than the kernel's
 *          .maxntid), a grid beyond 2^31-1 x 65535 x 65535, shared memory beyond 227 KiB, or a
 *          cooperative launch with more blocks than can be resident, or a cluster of more than GPUL_EXEC_CLUSTER_BLOCKS
 *          blocks, or one that does not divide the grid or differs from the kernel's; GPUL_ENOMEM
 * Source   CUDA Driver API, cuLaunchKernel */
gpul_status gpul_exec_launch_start(gpul_exec_machine *m, const gpul_exec_launch_config *config, gpul_exec_launch **out, gpul_error *err);
/** Wait until the launch has ended; timeout_ms < 0: no time limit.  Returns false if the launch still runs, else
 * true; *fault (may be NULL) then receives the fault. */
bool gpul_exec_launch_wait(gpul_exec_launch *l, int timeout_ms, gpul_exec_fault *fault);
void gpul_exec_launch_abort(gpul_exec_launch *l);   /* request: the launch ends soon, with GPUL_EXEC_ABORTED */
void gpul_exec_launch_release(gpul_exec_launch *l); /* accepts NULL; a running launch continues */

/* What one multiprocessor of the GPU can hold, as far as the interpreter models it. */
enum {
	GPUL_EXEC_SM_THREADS = 2048,
	GPUL_EXEC_SM_BLOCKS = 32,
	GPUL_EXEC_CLUSTER_BLOCKS = 16,
	GPUL_EXEC_SM_SHARED_BYTES = 228 * 1024,
	GPUL_EXEC_RESERVED_SHARED_BYTES = 1024, /* shared memory of each block that the multiprocessor itself uses */
};
/** Blocks of this size that are resident on one multiprocessor at once; 0: it cannot hold one, or has no threads.  Registers are no limit,
 * because PTX registers are virtual. */
unsigned gpul_exec_blocks_per_sm(uint64_t threads, uint64_t shared_bytes);
/** Blocks of one launch that can be resident at once, which is also the limit of a cooperative launch.  By default those
 * of a GPU with a multiprocessor for each worker, but at least 132 multiprocessors (H200).  A machine starts blocks beyond
 * its workers only while the resident blocks wait, so that a block can wait for one that starts later. */
unsigned gpul_exec_max_resident_blocks(const gpul_exec_machine *m, uint32_t threads, uint32_t shared_bytes);
/** Instructions that an ended launch executed, times the active lanes of each. */
uint64_t gpul_exec_launch_instructions(const gpul_exec_launch *l);

#endif
