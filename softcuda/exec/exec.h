/* exec.h — run PTX on the CPU, a warp at a time.  The engine under the software driver.
 *
 *     gpul_ptx_module ── gpul_exec_program_create ──> program: decoded kernels + memory of its globals
 *     machine (worker threads) + memory (what a kernel may touch) + program's kernel + arguments
 *         ── gpul_exec_launch ──> launch ── gpul_exec_launch_wait ──> OK or the fault
 *
 * Device addresses are host addresses.  This layer knows nothing of contexts, streams or CUresult
 * handles; softcuda/api builds those on it. */
#ifndef GPULOAD_SOFTCUDA_EXEC_EXEC_H
#define GPULOAD_SOFTCUDA_EXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "ptx/module.h"

/* ---- memory: the table of what a kernel may touch ------------------------------------------ */

typedef struct gpul_exec_memory gpul_exec_memory;

enum {
	GPUL_EXEC_MEM_READ_ONLY = 1,  /* a store there is a fault, of whichever device */
	GPUL_EXEC_MAX_DEVICES = 16,
};

typedef struct gpul_exec_range {
	uint64_t base, bytes;     /* [base, base + bytes) */
	unsigned flags;
	/* Bit d speaks of device d, so that 0 means: every device may. */
	uint32_t denied;          /* may not touch it */
	uint32_t unwritable;      /* may only read it */
	const char *remedy;       /* lives for ever: the call that gives a device its right; NULL: none */
	void *owner;              /* the caller's own; NULL for none */
	char label[48];           /* for fault messages: "cuMemAlloc", "global counter", "device heap" */
} gpul_exec_range;

/** Make an empty table.
 *
 * @out   owned by the caller: gpul_exec_memory_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status gpul_exec_memory_create(gpul_exec_memory **out, gpul_error *err);
void gpul_exec_memory_destroy(gpul_exec_memory *m);  /* NULL is fine; nothing that uses it may be left */

/** Make [base, base + bytes) usable by kernels.  Ranges never overlap.
 *
 * @m      borrowed
 * @range  copied
 * Errors  GPUL_EINVAL overlaps a range or is empty; GPUL_ENOMEM
 * Threads any thread may call, also while kernels run
 * Source  - : every access of a kernel is checked against this table, as by a GPU's page tables */
gpul_status gpul_exec_memory_add(gpul_exec_memory *m, const gpul_exec_range *range, gpul_error *err);
/** Remove the range that starts at base; false: there is none. */
bool gpul_exec_memory_remove(gpul_exec_memory *m, uint64_t base);
/** The range that holds address; false: none does.  *out is a copy. */
bool gpul_exec_memory_find(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** The first range that ends beyond address; false: there is none.  *out is a copy. */
bool gpul_exec_memory_next(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out);
/** Give the range that starts at base other rights; false: there is none. */
bool gpul_exec_memory_set_rights(gpul_exec_memory *m, uint64_t base, uint32_t denied, uint32_t unwritable);

/* ---- program: a module, decoded ------------------------------------------------------------- */

typedef struct gpul_exec_program gpul_exec_program;
typedef struct gpul_exec_kernel gpul_exec_kernel;

typedef struct gpul_exec_param { uint32_t offset, bytes; } gpul_exec_param;  /* in the parameter buffer */

typedef struct gpul_exec_kernel_info {
	const char *name;
	const gpul_exec_param *params;
	uint32_t n_params, param_bytes;
	uint32_t n_regs;               /* 32-bit registers a thread, an estimate from the declarations */
	uint32_t shared_bytes;         /* static */
	uint32_t local_bytes;          /* a thread, this kernel's own frame */
	uint32_t const_bytes;          /* user .const of the module */
	uint32_t max_threads;          /* .maxntid or .reqntid product, else 1024 */
	uint32_t reqntid[3];           /* 0: not required */
} gpul_exec_kernel_info;

/** Decode every function of a module and lay out its variables.
 *
 * @memory     borrowed; the module's .global and .const variables are entered there
 * @module     owned by the program from here on, also on failure
 * @file_name  for messages
 * @out        owned by the caller: gpul_exec_program_destroy(); untouched on failure
 * Errors  GPUL_EUNSUPPORTED an instruction or form that the interpreter does not have:
 *         "kernel.ptx:12: wgmma.mma_async...: tensor instructions are not interpreted"; GPUL_EFORMAT
 *         an operand that does not fit, an unresolved extern; GPUL_ENOMEM
 * Threads any thread may call
 * Source  PTX ISA 9.0, chapters 5 and 9 */
gpul_status gpul_exec_program_create(gpul_exec_memory *memory, gpul_ptx_module *module,
				     const char *file_name, gpul_exec_program **out, gpul_error *err);
void gpul_exec_program_destroy(gpul_exec_program *p);  /* no launch of it may be running */

size_t gpul_exec_n_kernels(const gpul_exec_program *p);
const gpul_exec_kernel *gpul_exec_kernel_at(const gpul_exec_program *p, size_t i);
const gpul_exec_kernel *gpul_exec_find_kernel(const gpul_exec_program *p, const char *name);
const gpul_exec_kernel_info *gpul_exec_kernel_info_of(const gpul_exec_kernel *k);
/** Address and size of a module-scope variable; false: no such. */
bool gpul_exec_find_variable(const gpul_exec_program *p, const char *name, uint64_t *address, size_t *bytes);
size_t gpul_exec_n_variables(const gpul_exec_program *p);
bool gpul_exec_variable_at(const gpul_exec_program *p, size_t i, const char **name, uint64_t *address, size_t *bytes);

/* ---- machine and launches -------------------------------------------------------------------- */

typedef struct gpul_exec_machine gpul_exec_machine;
typedef struct gpul_exec_launch gpul_exec_launch;

typedef struct gpul_exec_machine_options {
	unsigned n_workers;            /* 0: one for each CPU this process may run on */
	unsigned max_resident_blocks;  /* 0: 256; the "multiprocessors" of a cooperative launch */
	uint64_t heap_bytes;           /* device malloc; 0: 8 MiB */
	unsigned turn;                 /* backward jumps after which lanes let others run; 0: 1000 */
	void (*print)(void *user, const char *text, size_t text_bytes);  /* vprintf, assert; NULL: stdout */
	void *print_user;
} gpul_exec_machine_options;

/** Make a machine.  Its worker threads start with the first launch.
 *
 * @memory   borrowed; must outlive *out
 * @options  NULL: defaults
 * @out      owned by the caller: gpul_exec_machine_destroy(); untouched on failure
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status gpul_exec_machine_create(gpul_exec_memory *memory, const gpul_exec_machine_options *options,
				     gpul_exec_machine **out, gpul_error *err);
void gpul_exec_machine_destroy(gpul_exec_machine *m);  /* aborts what still runs, joins the workers */
/** Return when no kernel is in the middle of an access that it began before this call: what was taken out
 * of the table before may be unmapped then.  It waits for instructions, never for kernels.  NULL is fine. */
void gpul_exec_machine_settle(gpul_exec_machine *m);
/** Return when no kernel runs an instruction, and none will before gpul_exec_machine_resume(): memory may be
 * moved under them.  Not while paused already.  NULL is fine. */
void gpul_exec_machine_pause(gpul_exec_machine *m);
void gpul_exec_machine_resume(gpul_exec_machine *m);

typedef enum gpul_exec_fault_kind {
	GPUL_EXEC_OK = 0,
	GPUL_EXEC_ILLEGAL_ADDRESS,     /* CUDA_ERROR_ILLEGAL_ADDRESS */
	GPUL_EXEC_MISALIGNED,          /* CUDA_ERROR_MISALIGNED_ADDRESS */
	GPUL_EXEC_ILLEGAL_INSTRUCTION, /* CUDA_ERROR_ILLEGAL_INSTRUCTION: indirect call to no function ... */
	GPUL_EXEC_TRAP,                /* CUDA_ERROR_LAUNCH_FAILED: trap; also a barrier that cannot complete */
	GPUL_EXEC_ASSERT,              /* CUDA_ERROR_ASSERT */
	GPUL_EXEC_STACK,               /* CUDA_ERROR_LAUNCH_FAILED: call stack too deep */
	GPUL_EXEC_NO_MEMORY,           /* the host had none left for the block's state */
	GPUL_EXEC_ABORTED,             /* gpul_exec_launch_abort or machine_destroy */
} gpul_exec_fault_kind;

typedef struct gpul_exec_fault {
	gpul_exec_fault_kind kind;
	uint32_t block[3], thread[3];
	uint64_t address;              /* ILLEGAL_ADDRESS, MISALIGNED */
	char text[320];                /* one line: what, where (file:line, block, thread), why */
} gpul_exec_fault;

typedef struct gpul_exec_launch_config {
	const gpul_exec_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared_bytes;
	const void *params;            /* param_bytes of the kernel; copied */
	bool cooperative;              /* every block must be resident at once */
	uint64_t grid_id;              /* %gridid */
	unsigned device;               /* whose rights in memory it has; below GPUL_EXEC_MAX_DEVICES */
	/* Called from a worker, once, when the launch has ended; NULL: none.  The engine holds no lock of its
	 * own then: done may start, abort and release launches (the next one of a stream starts there).
	 * gpul_exec_launch_abort never calls it itself. */
	void (*done)(void *user, const gpul_exec_fault *fault);
	void *done_user;
} gpul_exec_launch_config;

/** Queue a launch; it starts at once, beside whatever else runs.
 *
 * @m       borrowed
 * @config  copied; its kernel's program must live until the launch ended
 * @out     owned by the caller: gpul_exec_launch_release(); untouched on failure
 * Errors   GPUL_EINVAL a dimension of 0, more than 1024 threads a block (or than the kernel's own
 *          .maxntid), grid beyond 2^31-1 x 65535 x 65535, shared memory beyond 227 KiB, or a
 *          cooperative launch with more blocks than can be resident; GPUL_ENOMEM
 * Threads  any thread may call
 * Source   CUDA Driver API, cuLaunchKernel */
gpul_status gpul_exec_launch_start(gpul_exec_machine *m, const gpul_exec_launch_config *config,
				   gpul_exec_launch **out, gpul_error *err);
/** Wait until it ended; timeout_ms < 0: for ever.  False: still running. *fault (may be NULL) is filled when true. */
bool gpul_exec_launch_wait(gpul_exec_launch *l, int timeout_ms, gpul_exec_fault *fault);
void gpul_exec_launch_abort(gpul_exec_launch *l);    /* ends it with GPUL_EXEC_ABORTED soon */
void gpul_exec_launch_release(gpul_exec_launch *l);  /* NULL is fine; a running launch runs on */
unsigned gpul_exec_max_resident_blocks(const gpul_exec_machine *m);
/** Thread-instructions executed by a finished launch (every active lane of every step counts 1). */
uint64_t gpul_exec_launch_instructions(const gpul_exec_launch *l);

#endif
