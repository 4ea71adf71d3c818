/* program_internal.h — a decoded module: what decode.c writes and warps run.
 *
 *     gpul_exec_program
 *       ├─ code[]      one for each row of module->funcs (those without a body stay empty)
 *       │    ├─ insns[]       decoded instructions; the last is a RET, so none runs off the end
 *       │    └─ slots[]       where parameters and results lie in a thread's local memory
 *       ├─ consts      immediates, 32 lanes wide, and lists of operands: bank 1 of every warp
 *       ├─ specials[]  which special registers the code reads, and where they lie in bank 2
 *       └─ kernels[], variables: addresses of module variables
 *
 * A device function's parameters, and the .param variables of a call, are kept in local memory: the
 * ISA lets code take their address, and then calls them local (PTX ISA 9.0, 9.7.9.3 mov). */
#ifndef GPULOAD_SOFTCUDA_EXEC_PROGRAM_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_PROGRAM_INTERNAL_H

#include "softcuda/exec/engine_internal.h"

/* Special registers of our own, after those of PTX. */
enum {
	SPECIAL_SHARED_DYNAMIC = GPUL_PTX_N_SPECIALS,  /* where dynamic shared memory begins */
	N_ALL_SPECIALS
};

enum { MAX_SPECIAL_SLOTS = 128 };

struct special_slot {
	uint16_t special;      /* gpul_ptx_special or one of ours */
	uint8_t bytes;         /* width it is read with: 2, 4, 8 */
	uint32_t offset;       /* in bank 2 */
};

enum insn_flags {          /* of instructions that name memory */
	SPACE_GLOBAL, SPACE_GENERIC, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM,
	SPACE_MASK = 7,
	FLAG_ADDRESS_32 = 8,   /* the address is in a 32-bit register */
	FLAG_FRAME = 16,       /* imm is relative to the frame's local memory */
	FLAG_ACQUIRE = 32,
	FLAG_RELEASE = 64,
};

struct local_slot { uint32_t offset, bytes; };  /* offset from the frame's local memory */

struct func_code {
	const gpul_ptx_func *ptx;
	struct gpul_exec_program *program;
	struct insn *insns;          /* NULL: no body */
	uint32_t n_insns;
	uint32_t frame_bytes;        /* registers, 32 lanes wide */
	uint32_t local_bytes;        /* variables, parameters and results, of one thread */
	uint32_t param_bytes;        /* kernels: of the parameter buffer */
	struct local_slot *params, *rets;  /* device functions */
	opref *param_regs, *ret_regs;      /* of a .reg parameter; the slot has 0 bytes then */
	uint32_t *var_offset;        /* by row of ptx->vars: local, param, shared: offset; else unused */
	uint64_t *var_address;       /* by row of ptx->vars: .global and .const in a body */
	uint32_t own_shared_bytes;   /* end of this function's own .shared variables */
	uint32_t depth_bytes;        /* local memory of the deepest chain of calls; UINT32_MAX: no bound */
	bool calls_pointer, uses_module_shared, visited;
};

enum builtin { BUILTIN_NONE, BUILTIN_VPRINTF, BUILTIN_MALLOC, BUILTIN_FREE, BUILTIN_ASSERTFAIL };

/* Barriers 0 to 15 have numbers; behind them is the one of the cluster. */
enum { CLUSTER_BARRIER = 16 };

struct call_argument {
	bool in_register;            /* else in local memory, at slot */
	struct local_slot slot;      /* bytes: also the register's width */
	opref reg;
};

struct call_site {               /* what CALL's object points to */
	const struct func_code *callee;  /* NULL: by pointer, or built in */
	enum builtin builtin;
	uint32_t n_args, n_rets;
	struct call_argument *args;  /* n_args, then n_rets */
};

struct branch_table {            /* what BRX's object points to */
	uint32_t n_targets;
	const struct insn *targets[];
};

struct variable {
	const char *name;
	uint64_t address, bytes;
	bool global;                 /* the host sees it: .global or .const */
};

struct gpul_exec_kernel {
	gpul_exec_kernel_info info;
	const struct func_code *code;
	gpul_exec_param *params;
	uint32_t dynamic_align;      /* of the dynamic shared memory that it uses */
	uint32_t stack_bytes;        /* local memory of a thread, calls included */
};

struct const_pool {
	uint8_t *bytes;              /* 64-byte aligned */
	size_t used, capacity;
	uint32_t *table;             /* open hash of offsets + 1 of spread immediates */
	size_t n_entries, table_size;
};

struct gpul_exec_program {
	uint64_t id;                 /* never used twice in a process */
	gpul_exec_memory *memory;    /* borrowed */
	gpul_ptx_module *module;
	char *file_name;
	struct func_code *code;
	struct gpul_exec_kernel *kernels;
	uint32_t n_kernels;
	struct variable *variables;  /* one for each row of module->vars */
	void **blocks;               /* malloc'ed pieces: memory of variables, call sites, tables */
	size_t n_blocks, blocks_capacity;
	struct const_pool consts;
	struct special_slot specials[MAX_SPECIAL_SLOTS];
	uint32_t n_specials, specials_bytes;
	uint32_t module_shared_bytes;   /* module-scope and device functions' .shared variables */
	uint32_t *shared_offset;        /* by row of module->vars */
	uint32_t dynamic_align;
};

#endif
