/* program_internal.h — a program: a decoded module; the files in decode/ create it, and warps execute it.
 *
 *     gpul_exec_program
 *       ├─ code[]      one for each element of module->funcs (empty for functions without a body, or not yet decoded)
 *       │    ├─ insns[]        decoded instructions; the last is a RET, so execution cannot run past the end
 *       │    └─ params, rets   offsets of parameters and results in a thread's local memory
 *       ├─ consts      immediates, 32 lanes wide, and lists of operands: bank 1 of every warp
 *       ├─ specials[]  the special registers that the code reads, and their offsets in bank 2
 *       ├─ module_reg_offset[]  the registers of module scope, also in bank 2
 *       └─ kernels[], variables[]  addresses of module variables
 *
 * A device function's parameters, and the .param variables of a call, are stored in local memory, because
 * code may take their address, which is then a .local address (PTX ISA 9.0, 9.7.9.3 mov). */
#ifndef GPULOAD_SOFTCUDA_EXEC_PROGRAM_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_PROGRAM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/array.h"
#include "softcuda/exec/engine_internal.h"
#include "softcuda/exec/observer_internal.h"

/* Special registers that exist only in the interpreter, numbered after the special registers of PTX. */
enum {
	SPECIAL_SHARED_DYNAMIC = GPUL_PTX_N_SPECIALS, /* start of dynamic shared memory */
	N_ALL_SPECIALS
};

enum { MAX_SPECIAL_SLOTS = 128 };

struct special_slot {
	uint16_t special; /* a gpul_ptx_special, or SPECIAL_SHARED_DYNAMIC */
	uint8_t bytes;    /* width in bytes with which the code reads the register: 2, 4, 8 */
	uint32_t offset;
};

enum insn_flags { /* insn->flags of instructions that access memory */
		  SPACE_GLOBAL,
		  SPACE_GENERIC,
		  SPACE_SHARED,
		  SPACE_LOCAL,
		  SPACE_PARAM,
		  SPACE_MASK = 7,
		  FLAG_ADDRESS_32 = 8, /* the address is in a 32-bit register */
		  FLAG_FRAME = 16,     /* imm is an offset from the start of the frame's local memory */
		  FLAG_ACQUIRE = 32,
		  FLAG_RELEASE = 64,
};

struct observed_insn {             /* the data about an instruction that observers (observer_internal.h) need */
	op_fn *run;                /* if insn->run is gpul_observed(): the handler that executes the instruction */
	uint32_t observers;        /* bits of the observers that want the instruction; 0: insn->run is its handler */
	void *note[MAX_OBSERVERS]; /* data of the observers: see insn_note() */
};

/* a variable in the frame's local memory: offset and size */
struct local_slot {
	uint32_t offset, bytes;
};
/* a register, or the elements of a vector register */
struct vector_regs {
	unsigned n;
	opref at[4];
};

struct func_code {
	const gpul_ptx_func *ptx;
	struct gpul_exec_program *program;
	struct insn *insns;  /* NULL: the function has no body, or is not decoded */
	bool laid_out;       /* the body is parsed, and the variables declared in it have addresses */
	_Atomic bool ready;  /* the function is decoded; then the members below do not change */
	bool with_callees;   /* all functions that this function calls by name, directly or indirectly, are ready as well */
	const char *refusal; /* why a kernel cannot call the function by name; NULL: it can (decode/decode_reach.c) */
	uint32_t n_insns;
	struct observed_insn *observed; /* one for each element of insns; NULL: there are no observers */
	/* offset of each register in the frame, indexed by register number; UINT32_MAX: not used; NULL: there are no observers */
	uint32_t *reg_offset;
	uint32_t frame_bytes; /* size of a frame: all registers, 32 lanes wide */
	uint32_t local_bytes; /* local memory of one thread: variables, parameters and results */
	uint32_t local_align; /* alignment of local memory: the largest of its variables' alignments */
	uint32_t param_bytes; /* kernels: size of the parameter buffer */
	/* offsets of parameters and results: in local memory, or, for a kernel's parameters, in the parameter buffer */
	struct local_slot *params, *rets;
	struct vector_regs *param_regs, *ret_regs; /* .reg parameters and results; their offset in params or rets is UINT32_MAX */
	uint32_t *var_offset;                      /* offset of each .local, .param and .shared variable of ptx->vars */
	uint64_t *var_address;                     /* address of each .global and .const variable of ptx->vars */
	uint32_t shared_base;                      /* start of the .shared variables that this function declares */
	uint32_t own_shared_bytes;                 /* end of the .shared variables that this function declares; 0: none */
	uint32_t depth_bytes; /* local memory of the deepest call chain from here; 0: not computed yet; UINT32_MAX: unknown */
	bool calls_pointer, visited;
	bool uses_stack;  /* the function executes alloca */
	bool compiled;    /* the files in native/ have compiled the function, or a thread is compiling it */
	bool has_native;  /* some instruction sequences of the function have been compiled by native/ */
	uint64_t n_warps; /* kernels: number of warps in all launches so far */
	struct func_code *next_to_compile;
};

/* Return the address of a pointer, initially NULL, that observer o may set to its own data about instruction i.  Several threads may
 * use the pointer at the same time. */
static inline void **insn_note(const struct func_code *code, const struct insn *i, const struct observer *o)
{
	return &code->observed[i - code->insns].note[__builtin_ctz(o->bit)];
}

/* clang-format off */
enum builtin { BUILTIN_NONE, BUILTIN_VPRINTF, BUILTIN_MALLOC, BUILTIN_FREE, BUILTIN_ASSERTFAIL,
	       BUILTIN_SET_CONDITIONAL,
	       BUILTIN_REFUSED,         /* a function of the device runtime that is not implemented */
	       BUILTIN_DEVICE_RUNTIME,  /* BUILTIN_DEVICE_RUNTIME + n is function n of the list in device_calls_internal.h */
};
/* clang-format on */

/* Barriers 0 to 15 are those of PTX; barrier 16 implements barrier.cluster. */
enum { CLUSTER_BARRIER = 16 };
/* Bits of insn->e of redux.f32: maximum instead of minimum; absolute values (.abs); the result is NaN if an operand is (.NaN). */
enum { REDUX_MAX = 1, REDUX_ABS = 2, REDUX_NAN = 4 };

struct call_argument {
	bool in_register;       /* true: the argument is in regs; false: in local memory, at slot */
	struct local_slot slot; /* where the argument is in local memory; slot.bytes is also the width of each register */
	struct vector_regs regs;
};

struct address_ranges { /* insn->object of ISSPACEP_CONST */
	uint32_t n;
	struct {
		uint64_t begin, end;
	} at[];
};

struct call_site {                      /* insn->object of the CALL operations */
	const struct func_code *callee; /* the called function; NULL: the call is through a pointer, or to a built-in function */
	enum builtin builtin;
	uint32_t n_args, n_rets;
	struct call_argument *args; /* n_args arguments, then n_rets results */
};

struct branch_table { /* insn->object of BRX */
	uint32_t n_targets;
	const struct insn *targets[];
};

struct variable {
	const char *name;
	uint64_t address, bytes;
	uint8_t reference; /* enum texture_kind: a texture or surface reference, and `address` is its handle; 0: another variable */
	bool global;       /* a .global or .const variable that is defined in this module: the host can look it up by name */
	bool managed;      /* declared .attribute(.managed): the host and all devices may access it */
};

struct gpul_exec_kernel {
	gpul_exec_kernel_info info;
	const struct func_code *code;
	gpul_exec_param *params;
	uint32_t dynamic_align;
	uint32_t stack_bytes;   /* local memory of a thread, including called functions */
	const char *refusal;    /* why the kernel cannot run; NULL: it can */
	_Atomic bool described; /* info is complete: the body is laid out, or the attributes were known from another program */
	_Atomic bool ready;     /* the kernel and its callees are decoded, or it is refused; then the other members do not change */
};

struct const_pool {
	uint8_t *bytes; /* 64-byte aligned */
	size_t used, capacity;
	size_t reserved; /* size of the address range reserved for `bytes`; 0: none, so `bytes` moves when it grows */
	uint32_t *table; /* hash table of the immediates (storage.c) */
	size_t n_entries, table_size;
};

struct name_table {        /* a hash table from the names of another table's elements to their indices (decode_names.c) */
	const char **name; /* name of each element of the other table */
	uint32_t n_names, mask;
	uint32_t *slot; /* mask + 1 slots, each with an index in `name` plus 1; 0: the slot is free */
};

struct gpul_exec_program {
	uint64_t id;              /* a number that no other program of the process has */
	gpul_exec_memory *memory; /* borrowed */
	gpul_ptx_module *module;
	char *file_name;
	/* Decode a function, and all functions that it calls by name, if they are not decoded yet; NULL: all functions are decoded. */
	gpul_status (*need)(struct func_code *code, gpul_error *err);
	pthread_mutex_t lock;       /* protects everything that decoding changes */
	bool reserves_shared;       /* a function reads %reserved_smem_offset_*, or may do so because it is not decoded yet */
	bool compiles;              /* native/ compiles the kernels: the CPU has AVX-512, and GPULOAD_SOFT_NATIVE is not 0 */
	struct native_code *native; /* list of the machine code (native/native.c) */
	struct func_code *code;
	uint32_t n_code; /* functions of the module at creation; bodies that are parsed later append prototypes */
	struct gpul_exec_kernel *kernels;
	uint32_t n_kernels;
	struct variable *variables; /* one for each element of module->vars */
	struct name_table kernel_names, global_names;
	uint32_t *global_row; /* indices in `variables`, in the order of global_names */
	void **blocks;        /* allocations that are freed with the program: call sites, tables */
	size_t n_blocks, blocks_capacity;
	GPUL_ARRAY(struct arena_block *) variable_blocks;
	uint64_t next_variable, variables_end; /* the unused rest of the newest block in variable_blocks */
	struct const_pool consts;
	struct special_slot specials[MAX_SPECIAL_SLOTS];
	uint32_t n_specials, specials_bytes; /* specials_bytes includes the registers of module scope */
	_Atomic uint32_t n_ready_specials;   /* number of elements of specials[] that decoded functions use */
	uint32_t *module_reg_offset;         /* offset in bank 2 of each register of module scope; UINT32_MAX: the register is not used */
	uint32_t module_shared_bytes;        /* .shared variables of module scope and of device functions */
	uint32_t module_local_bytes, module_local_align; /* size and alignment of the module-scope .local variables */
	uint32_t *shared_offset;                         /* offset of each .shared and .local variable of module->vars */
	uint32_t dynamic_align;
	const struct address_ranges *const_ranges; /* ranges of the .const variables; NULL: no isspacep.const was decoded */
};

#endif
