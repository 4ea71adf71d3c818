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
	GPUL_EXEC_MEM_READ_ONLY = 1, /* a store by any device is a fault */
	GPUL_EXEC_MEM_CONSTANT = 4,  /* a .const variable; a store through a global address is valid, as on a GPU */
	GPUL_EXEC_MEM_CONDITION = 2, /* value of a conditional graph node; its address is the handle that cudaGraphSetConditional gets */
	GPUL_EXEC_MEM_MULTICAST = 8, /* multicast addresses: stores and multimem instructions access the copies of range.team */
	GPUL_EXEC_MAX_DEVICES = 16,
};

/* The memory to which multicast addresses refer: each device of the multicast team has a copy of the bytes. */
typedef struct gpul_exec_copies {
	uint64_t begin, end;                /* range of offsets in the multicast object that at[] covers */
	unsigned n;                         /* number of elements of at[]: the number of devices in the team, minus n_gone */
	unsigned n_gone;                    /* devices whose process has ended, so that their copies cannot be read */
	uint8_t *at[GPUL_EXEC_MAX_DEVICES]; /* host address of offset `begin` in each device's copy, in the order of the team */
	const _Atomic uint64_t *changes;    /* a counter of changes of the team: the copies are valid while *changes == seen */
	uint64_t seen;
	/* For each copy: the memory_id of the gpul_exec_range with the same bytes, and the offset of `begin` in it; 0: unknown. */
	uint64_t memory_id[GPUL_EXEC_MAX_DEVICES], memory_at[GPUL_EXEC_MAX_DEVICES];
} gpul_exec_copies;

typedef struct gpul_exec_team gpul_exec_team;
struct gpul_exec_team {
	/* Find the copies of the byte at an offset in the multicast object.  Returns false if a device has no memory there; `why`
	 * receives the reason.  Worker threads call this, for addresses of ranges in the table. */
	bool (*find_copies)(gpul_exec_team *team, uint64_t offset, gpul_exec_copies *out, char *why, size_t why_bytes);
};

typedef struct gpul_exec_range {
	uint64_t base, bytes; /* [base, base + bytes) */
	uint64_t padding;     /* bytes after the end that kernels may access, because a GPU maps whole pages */
	uint64_t spare;       /* bytes after the end that no other memory of the process uses; for fault messages */
	unsigned flags;
	/* Masks with bit d for device d; 0: no device is restricted. */
	uint32_t denied;      /* devices that may neither read nor write */
	uint32_t unwritable;  /* devices that may only read */
	const char *remedy;   /* static string: the CUDA call that grants access, for fault messages; NULL: none */
	uint64_t memory_id;   /* ranges with the same number map the same bytes, from their first byte on; 0: no other range does */
	gpul_exec_team *team; /* borrowed; for GPUL_EXEC_MEM_MULTICAST: the devices that have copies */
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
 * Threads any thread may call, even while kernels run
 * Every access of a kernel is checked against this table, as a GPU checks its page tables */
gpul_status gpul_exec_memory_add(gpul_exec_memory *m, const gpul_exec_range *range, gpul_error *err);
/** Remove the range that starts at base; false: no range starts there. */
bool gpul_exec_memory_remove(gpul_exec_memory *m, uint64_t base);
/** Copy the range that contains address to *out; false: no range contains it. */
bool gpul_exec_memory_find(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** Find the newest removed range that contained address, for messages; false: none of the last 1,024 removed ranges did. */
bool gpul_exec_memory_freed(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** Copy the first range that ends after address to *out; false: no range ends after it. */
bool gpul_exec_memory_next(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** Replace the access rights of the range that starts at base; false: no range starts there. */
bool gpul_exec_memory_set_rights(gpul_exec_memory *m, uint64_t base, uint32_t denied, uint32_t unwritable);
/** Replace the owner of the range that starts at base; false: no range starts there. */
bool gpul_exec_memory_set_owner(gpul_exec_memory *m, uint64_t base, void *owner);

/* ---- program: a module, decoded ------------------------------------------------------------- */

typedef struct gpul_exec_program gpul_exec_program;
typedef struct gpul_exec_kernel gpul_exec_kernel;

/* offset and size of a parameter in the parameter buffer */
typedef struct gpul_exec_param {
	uint32_t offset, bytes;
} gpul_exec_param;

typedef struct gpul_exec_kernel_info {
	const char *name;
	const gpul_exec_param *params;
	uint32_t n_params, param_bytes;
	uint32_t n_regs;       /* 32-bit registers per thread, estimated from the .reg declarations */
	uint32_t shared_bytes; /* static shared memory of a block */
	uint32_t local_bytes;  /* local memory of a thread, without that of called functions */
	uint32_t const_bytes;  /* size of the module's .const variables */
	uint32_t max_threads;  /* maximum threads per block: product of .maxntid or .reqntid, else 1024 */
	uint32_t reqntid[3];   /* .reqntid; 0: not given */
	uint32_t cluster[3];   /* .reqnctapercluster; 0: not given */
	bool explicit_cluster; /* .explicitcluster: a launch must have clusters */
} gpul_exec_kernel_info;

/* The attributes of a kernel that depend on its body. */
typedef struct gpul_exec_attributes {
	uint32_t n_regs, shared_bytes, local_bytes; /* as in gpul_exec_kernel_info */
	uint32_t dynamic_align;                     /* alignment of dynamic shared memory, in bytes */
} gpul_exec_attributes;

/** Give the variables of a module addresses, and decode its functions.  The functions of a module from gpul_ptx_parse_lazy() are decoded
 * later, each when it is first needed, unless an observer reads whole programs.
 *
 * An instruction that the interpreter does not implement does not fail this call: gpul_exec_kernel_refusal() reports the kernels that
 * reach it by calls of functions by name.  Other kernels fail when they execute it (GPUL_EXEC_ILLEGAL_INSTRUCTION).
 *
 * @memory     borrowed; the module's .global and .const variables are added to this table
 * @module     the program takes ownership, even on failure
 * @file_name  for messages
 * @out        owned by the caller: gpul_exec_program_destroy(); untouched on failure
 * Errors  GPUL_EUNSUPPORTED .address_size 32; GPUL_EFORMAT an operand of the wrong kind or width, an undefined extern,
 *         with the line; GPUL_ENOMEM
 * Source  PTX ISA 9.0, chapters 5 and 9 */
gpul_status gpul_exec_program_create(gpul_exec_memory *memory, gpul_ptx_module *module, const char *file_name, gpul_exec_program **out,
				     gpul_error *err);

/** Create another program of the same module, with variables of its own.  As `first` has been decoded without an error, functions are
 * decoded when they are first needed, unless an observer reads whole programs.
 *
 * @first  borrowed, during this call only
 * @out    owned by the caller: gpul_exec_program_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM */
gpul_status gpul_exec_program_again(const gpul_exec_program *first, gpul_exec_program **out, gpul_error *err);
void gpul_exec_program_destroy(gpul_exec_program *p); /* accepts NULL; all its launches must have ended */

/** Return true if the program has no state, so that all contexts can share it: it has no .global or .const variable, and no texture or
 * surface reference.  False if some function bodies are not decoded yet, because these may declare variables. */
bool gpul_exec_program_is_stateless(const gpul_exec_program *p);
size_t gpul_exec_n_kernels(const gpul_exec_program *p);
const gpul_exec_kernel *gpul_exec_kernel_at(const gpul_exec_program *p, size_t i);
const gpul_exec_kernel *gpul_exec_find_kernel(const gpul_exec_program *p, const char *name);
size_t gpul_exec_kernel_index(const gpul_exec_program *p, const gpul_exec_kernel *k); /* index for gpul_exec_kernel_at */
/** Describe a kernel; n_regs, shared_bytes and local_bytes are 0 before gpul_exec_kernel_prepare(). */
const gpul_exec_kernel_info *gpul_exec_kernel_info_of(const gpul_exec_kernel *k);
/** Complete the information of a kernel, if it is not complete.  An error in the kernel's PTX does not fail this call:
 * gpul_exec_kernel_refusal() returns it.
 *
 * @k  borrowed
 * Errors  GPUL_ENOMEM */
gpul_status gpul_exec_kernel_prepare(const gpul_exec_kernel *k, gpul_error *err);
/** Return the attributes of a prepared kernel. */
gpul_exec_attributes gpul_exec_kernel_attributes(const gpul_exec_kernel *k);
/** Set the attributes of the kernels of a new program, which were those of an earlier program of the same text: gpul_exec_kernel_prepare()
 * then needs no body.  Nothing happens if n is not the number of the kernels. */
void gpul_exec_program_describe(gpul_exec_program *p, const gpul_exec_attributes *all, size_t n);
/** Decode a kernel and the functions that it calls by name, if that has not been done, and return why the kernel cannot run: its PTX has an
 * error, or it reaches an instruction that the interpreter does not implement, by calls of functions by name.  NULL: the kernel can run,
 * and fails only if it executes such an instruction in a function that it calls through a pointer.  The text belongs to the program:
 * "kernel.ptx:12: tcgen05.wait::ld.sync.aligned: tcgen05 is not supported by the software driver; kernel gemm reaches it" */
const char *gpul_exec_kernel_refusal(const gpul_exec_kernel *k);
/** Return true if gpul_exec_kernel_refusal() may take long, because the program decodes functions lazily. */
bool gpul_exec_kernel_is_decoded_later(const gpul_exec_kernel *k);
/** Get the address and size of a module-scope variable; false: no variable has that name. */
bool gpul_exec_find_variable(const gpul_exec_program *p, const char *name, uint64_t *address, size_t *bytes);
/** Return the handle of a texture or surface reference of the module (texture/texture_internal.h); 0: no reference has that name. */
uint64_t gpul_exec_find_reference(const gpul_exec_program *p, const char *name, bool surface);
size_t gpul_exec_n_variables(const gpul_exec_program *p);
bool gpul_exec_variable_at(const gpul_exec_program *p, size_t i, const char **name, uint64_t *address, size_t *bytes);
bool gpul_exec_variable_is_managed(const gpul_exec_program *p, size_t i); /* i as in gpul_exec_variable_at() */

/* ---- machine and launches -------------------------------------------------------------------- */

typedef struct gpul_exec_machine gpul_exec_machine;
typedef struct gpul_exec_launch gpul_exec_launch;

typedef struct gpul_exec_machine_options {
	unsigned n_workers;           /* number of worker threads; 0: one for each CPU that this process may run on */
	unsigned max_resident_blocks; /* per launch, on all workers together; 0: see gpul_exec_max_resident_blocks() */
	uint64_t heap_bytes;          /* size of the heap for device malloc; 0 means 8 MiB */
	unsigned turn;                /* backward branches after which diverged lanes let other lanes run; 0 means 1000 */
	unsigned stuck_ms;         /* log a notice if all resident blocks only wait for this time, and no other can start; 0 means 10 s */
	uint32_t pending_launches; /* maximum number of pending launches from kernels; 0 means 2048 */
	/* Get a device attribute by its number in CUdevice_attribute; 0: the number of devices.  Returns false if there is no such
	 * attribute.  Worker threads call it, so it must not wait for kernels.  NULL: kernels can get no attributes. */
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
/** Set the maximum number of pending launches from kernels; false: too late, because a kernel has already launched another. */
bool gpul_exec_machine_set_pending_launches(gpul_exec_machine *m, uint32_t n);
void gpul_exec_machine_destroy(gpul_exec_machine *m); /* aborts running launches, joins the workers */
/** Wait until every memory access that a kernel began before this call has ended, so that memory whose range was removed from the table
 * earlier can be unmapped.  Waits for the current time slices of blocks, not for the end of kernels.  m may be NULL. */
void gpul_exec_machine_settle(gpul_exec_machine *m);
/** Stop all kernels between two instructions until gpul_exec_machine_resume(), so that the caller can move their
 * memory.  Must not be called while the machine is paused.  m may be NULL. */
void gpul_exec_machine_pause(gpul_exec_machine *m);
void gpul_exec_machine_resume(gpul_exec_machine *m);

typedef enum gpul_exec_fault_kind {
	GPUL_EXEC_OK = 0,
	GPUL_EXEC_ILLEGAL_ADDRESS,     /* CUDA_ERROR_ILLEGAL_ADDRESS */
	GPUL_EXEC_MISALIGNED,          /* CUDA_ERROR_MISALIGNED_ADDRESS */
	GPUL_EXEC_ILLEGAL_INSTRUCTION, /* CUDA_ERROR_ILLEGAL_INSTRUCTION: call through a bad pointer, bad brx index ... */
	GPUL_EXEC_TRAP,                /* CUDA_ERROR_LAUNCH_FAILED: a trap instruction, or a barrier that cannot complete */
	GPUL_EXEC_ASSERT,              /* CUDA_ERROR_ASSERT */
	GPUL_EXEC_STACK,               /* CUDA_ERROR_LAUNCH_FAILED: call stack too deep */
	GPUL_EXEC_NO_MEMORY,           /* out of host memory for registers or local memory */
	GPUL_EXEC_ABORTED,             /* stopped by gpul_exec_launch_abort or gpul_exec_machine_destroy */
} gpul_exec_fault_kind;

#define GPUL_EXEC_PATH_BYTES 512

typedef struct gpul_exec_fault {
	gpul_exec_fault_kind kind;
	uint32_t block[3], thread[3];
	uint64_t address;                  /* the address of an ILLEGAL_ADDRESS or MISALIGNED fault */
	bool global;                       /* the address is global or generic; false: an offset in another address space, or unknown */
	bool host;                         /* the address is host memory that kernels cannot access */
	char text[400];                    /* one line: file:line, the access or instruction, the cause, block and thread */
	char source[GPUL_EXEC_PATH_BYTES]; /* the CUDA C++ file of the instruction, as its PTX names it; "": unknown */
	const char *image;                 /* name of the image with the instruction, valid as long as its program; NULL: none */
	uint32_t source_line;
	uint64_t source_timestamp, source_bytes; /* time and size of the file `source` when it was compiled; 0: not recorded */
} gpul_exec_fault;

/* A launch's position in the order of all streams, for observers: it is operation `number` of its stream, and comes after operation
 * after[k].number of each stream after[k].stream.  The caller numbers the streams (see ORDER_NODE_BITS in observer_internal.h). */
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
	uint32_t cluster[3]; /* size of a cluster in blocks, which must divide the grid; 0: as the kernel declares, else one block */
	uint32_t dynamic_shared_bytes;
	const void *params;           /* values of the parameters, param_bytes bytes; copied */
	bool cooperative;             /* all blocks must be resident at the same time */
	uint64_t grid_id;             /* the value of %gridid */
	unsigned device;              /* device whose memory access rights the launch has; below GPUL_EXEC_MAX_DEVICES */
	gpul_exec_launch *parent;     /* launch whose kernel starts this launch, and which ends after it; NULL: started by the host */
	const gpul_exec_order *order; /* for observers; read by gpul_exec_launch_start() only; NULL: after all earlier launches */
	/* A worker thread calls done once, when the launch has ended; NULL: no call.  The worker holds no lock, so done may start, abort
	 * and release launches; softcuda/api starts a stream's next launch in done.  gpul_exec_launch_abort() never calls done itself. */
	void (*done)(void *user, const gpul_exec_fault *fault);
	void *done_user;
} gpul_exec_launch_config;

/** Queue a launch, which runs concurrently with the launches that were started earlier.
 *
 * @m       borrowed
 * @config  copied; the kernel's program must exist until the launch has ended
 * @out     owned by the caller: gpul_exec_launch_release(); untouched on failure
 * Errors   GPUL_EUNSUPPORTED gpul_exec_kernel_refusal() is not NULL; GPUL_EINVAL a dimension of 0, more than 1024 threads per block or
 *          more than the kernel's .maxntid, a grid beyond 2^31-1 x 65535 x 65535, shared memory beyond 227 KiB, a cooperative launch with
 *          more blocks than can be resident, a cluster that has more than GPUL_EXEC_CLUSTER_BLOCKS blocks, does not divide the grid, or
 *          differs from the kernel's; GPUL_ENOMEM
 * Source   CUDA Driver API, cuLaunchKernel */
gpul_status gpul_exec_launch_start(gpul_exec_machine *m, const gpul_exec_launch_config *config, gpul_exec_launch **out, gpul_error *err);
/** Wait until the launch has ended; timeout_ms < 0: no time limit.  Returns false if the launch still runs; else returns true, and *fault
 * (fault may be NULL) receives the fault. */
bool gpul_exec_launch_wait(gpul_exec_launch *l, int timeout_ms, gpul_exec_fault *fault);
void gpul_exec_launch_abort(gpul_exec_launch *l);   /* does not wait: the launch ends soon, with GPUL_EXEC_ABORTED */
void gpul_exec_launch_release(gpul_exec_launch *l); /* accepts NULL; a running launch continues */

/* The limits of a multiprocessor (SM) that the interpreter models. */
enum {
	GPUL_EXEC_SM_THREADS = 2048,
	GPUL_EXEC_SM_BLOCKS = 32,
	GPUL_EXEC_CLUSTER_BLOCKS = 16,
	GPUL_EXEC_SM_SHARED_BYTES = 228 * 1024,
	GPUL_EXEC_RESERVED_SHARED_BYTES = 1024, /* shared memory that the system uses in each block */
};
/** Return how many blocks of this size one multiprocessor holds at the same time; 0: the block is too large, or has no threads.  Registers
 * are not counted, because PTX registers are virtual. */
unsigned gpul_exec_blocks_per_sm(uint64_t threads, uint64_t shared_bytes);
/** Return how many blocks of one launch can be resident at the same time, which is also the limit for cooperative launches.  The default
 * is that of a GPU with one multiprocessor per worker, but at least 132 (H200).  A machine has more resident blocks than workers only if
 * the running blocks wait, so that a block can wait for another that starts later. */
unsigned gpul_exec_max_resident_blocks(const gpul_exec_machine *m, uint32_t threads, uint32_t shared_bytes);
/** Return the number of instructions that an ended launch executed, summed over all threads. */
uint64_t gpul_exec_launch_instructions(const gpul_exec_launch *l);

#endif
