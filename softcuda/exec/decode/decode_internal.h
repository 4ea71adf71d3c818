/* decode_internal.h — the interfaces between the files of this folder, which decode the functions of a parsed module.
 *
 *     decode_need.c      when each function is decoded
 *     decode.c           a function: the table from opcode to decoder, guards, branch targets
 *     decode_memory.c    ld st atom red cvta isspacep, mov of an address
 *     decode_multimem.c  multimem
 *     decode_control.c   bra brx call trap bar fence
 *     decode_vector.c    mov.v2 mov.v4
 *     decode_stack.c     alloca stacksave stackrestore createpolicy
 *     decode_warp.c      shfl vote match redux elect activemask
 *     decode_mma.c       mma wmma.mma
 *     decode_matrix.c    ldmatrix stmatrix movmatrix wmma.load wmma.store
 *     decode_wgmma.c     wgmma
 *     decode_tensor.c    cp.async.bulk.tensor
 *     decode_async.c     cp.async mbarrier mapa getctarank
 *     decode_texture.c   tex tld4 txq suq istypep
 *     decode_surface.c   suld sust sured
 *     decode_select.c    arithmetic (form_internal.h)
 *     decode_operand.c   operands to references: registers, immediates, special registers, lists
 *     decode_registers.c register allocation: which registers share memory in the frame
 *     emit.c             appends an instruction, or reports that it cannot be decoded
 *
 * A function that returns false has recorded the error in d->err. */
#ifndef GPULOAD_SOFTCUDA_EXEC_DECODE_DECODE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_DECODE_DECODE_INTERNAL_H

#include "softcuda/exec/program_internal.h"
#include "softcuda/exec/warp/warp_internal.h"

enum { MAX_TEMPS = 32, MAX_PENDING = 16, MAX_VECTOR = 8, MAX_OPERANDS = 10, OPERAND_MISSING = 0xff };

struct pending { /* `from` is a result that is converted to the wider register `to`, after the instruction */
	opref from, to;
	enum op op;
};

struct patch {
	uint32_t insn, label;
}; /* the branch at index insn jumps to this label */

struct decoder {
	struct gpul_exec_program *p;
	struct func_code *code;
	const gpul_ptx_module *m;
	const gpul_ptx_func *f;
	const gpul_ptx_inst *in;                /* the instruction being decoded */
	gpul_ptx_operand operand[MAX_OPERANDS]; /* operands of `in`; missing operands have the kind OPERAND_MISSING */
	uint32_t src;                           /* index of `in` in f->insts */
	struct insn *insns;
	uint32_t n, capacity;
	uint8_t *reg_bytes;   /* size of each register in a lane, in bytes, indexed by register number: 2, 4, 8 or 16; 0: a predicate */
	uint32_t *reg_offset; /* offset of each register in the frame, indexed by register number; UINT32_MAX: not allocated yet */
	uint32_t *first_insn; /* for each instruction of f->insts, and for the function's end: index in insns where its code starts */
	uint32_t frame_bytes, pred_at, pred_left;
	struct {
		uint8_t bytes;
		bool used;
		opref ref;
	} temps[MAX_TEMPS];
	unsigned n_temps;
	struct pending pending[MAX_PENDING];
	unsigned n_pending;
	struct patch *patches;
	uint32_t n_patches, patches_capacity;
	gpul_error *err;
};

/* storage.c.  gpul_consts_...() return the offset of a constant in bank 1; UINT32_MAX: out of memory. */
void *gpul_program_alloc(struct gpul_exec_program *p, size_t bytes, gpul_error *err); /* zeroed memory, freed with the program */
/* Allocate zeroed memory for a variable in the arena (exec_arena.c), whose addresses are never reused for host memory. */
bool gpul_program_take(struct gpul_exec_program *p, size_t bytes, size_t align, uint64_t *address, gpul_error *err);
void gpul_program_give(struct gpul_exec_program *p);
uint32_t gpul_consts_broadcast(struct const_pool *c, uint64_t bits, unsigned bytes); /* stores `bits` once per lane; bytes 0: a predicate */
uint32_t gpul_consts_list(struct const_pool *c, const opref *list, unsigned n);
void gpul_consts_free(struct const_pool *c);
/* Reserve an address range for the constants, so that adding constants does not move the existing ones. */
bool gpul_consts_reserve(struct const_pool *c, size_t bytes);

/* Functions of decode_need.c. */
/* Copy the known attributes and refusals of kernels from `first`, a program of the same module. */
gpul_status gpul_describe_again(struct gpul_exec_program *p, const struct gpul_exec_program *first, gpul_error *err);
gpul_status gpul_function_need(struct func_code *code, gpul_error *err); /* the function to which gpul_exec_program.need points */
/* Decode all functions of a program that is being created. */
gpul_status gpul_need_everything(struct gpul_exec_program *p, gpul_error *err);

/* decode_names.c: create the hash tables of gpul_exec_find_kernel() and gpul_exec_find_variable().  Call it after creating these. */
gpul_status gpul_names_create(struct gpul_exec_program *p, gpul_error *err);

/* decode_texture.c: functions that decode_surface.c calls, too. */
struct texture_form;
struct texture_form *gpul_texture_form(struct decoder *d); /* sets the dimensions from the modifiers, and the rest to 0; NULL: error */
bool gpul_texture_handle(struct decoder *d, const gpul_ptx_operand *address, struct texture_form *f);
/* Decode the coordinates, which are {a, b, c} or one register; the first element for a layered texture is the layer. */
bool gpul_texture_coordinates(struct decoder *d, const gpul_ptx_operand *o, unsigned type, struct texture_form *f);

/* layout.c: addresses and offsets of variables. */
bool gpul_var_is_reference(const gpul_ptx_var *v); /* true: the variable is a .texref or .surfref */
gpul_status gpul_layout_variables(struct gpul_exec_program *p, gpul_error *err);
/* Lay out what is known without the function's body: its parameters, and the .shared variables of a device function. */
gpul_status gpul_layout_function(struct gpul_exec_program *p, struct func_code *code, gpul_error *err);
/* Lay out and initialise the variables that are declared in the function's body. */
gpul_status gpul_layout_body(struct gpul_exec_program *p, struct func_code *code, gpul_error *err);
void gpul_layout_shared(struct gpul_exec_program *p);
void gpul_layout_module_local(struct gpul_exec_program *p);
gpul_status gpul_layout_initialise(struct gpul_exec_program *p, gpul_error *err);

/* tables.c: return the handler of an operation, from the build of the handlers for this CPU. */
op_fn *gpul_handler(enum op op);
const char *gpul_build_name(void); /* "v4", "v3" or "base" */
/* tables.c: return true if kernels of new programs are compiled to AVX-512 code (native/). */
bool gpul_compiles_runs(void);

/* Functions of emit.c. */
bool gpul_decode_fail(struct decoder *d, gpul_status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Append an instruction: op with the operands, imm, n and flags of *fields (NULL: all 0). */
bool gpul_emit(struct decoder *d, enum op op, const struct insn *fields);
bool gpul_decode_patch(struct decoder *d, uint32_t insn, uint32_t label);

/* decode_operand.c.  *bytes is the width of a register: 2, 4, 8 or 16; 0: a predicate. */
unsigned gpul_container_bytes(unsigned type);
uint32_t gpul_reserve_register(struct decoder *d, unsigned bytes); /* allocates a register, and returns its offset in the frame */
opref gpul_reg_ref(struct decoder *d, uint32_t flat, unsigned *bytes);
unsigned gpul_operand_elements(const gpul_ptx_func *f, const gpul_ptx_operand *o); /* number of elements; 1 for a single register */
bool gpul_operand_is_list(const gpul_ptx_func *f, const gpul_ptx_operand *o);      /* {a, b}, {a}, or a whole vector register */
gpul_ptx_operand gpul_operand_element(struct decoder *d, const gpul_ptx_operand *o, unsigned element); /* returns an element of a list */
bool gpul_operand_register(struct decoder *d, const gpul_ptx_operand *o, unsigned element, opref *out, unsigned *bytes);
bool gpul_operand_source(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool narrow_ok, opref *out);
bool gpul_operand_dest(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool narrow_ok, opref *out);
bool gpul_operand_list(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool dest, opref *out, uint8_t *n);
bool gpul_operand_pair(struct decoder *d, const gpul_ptx_operand *o, unsigned type, unsigned type2, bool narrow_ok, opref *out,
		       opref *out2);
bool gpul_operand_const(struct decoder *d, uint64_t bits, unsigned bytes, opref *out);
bool gpul_operand_temporary(struct decoder *d, unsigned bytes, opref *out); /* allocates a register for one PTX instruction */
bool gpul_operand_emit_pending(struct decoder *d);

/* Queries of the instruction's modifiers. */
unsigned gpul_type_mod(const gpul_ptx_inst *in);   /* the last type modifier; 0: none */
unsigned gpul_vector_mod(const gpul_ptx_inst *in); /* 2, 4 or 8 for .v2, .v4, .v8; else 1 */
static inline bool has_mod(const struct decoder *d, unsigned mod)
{
	return gpul_ptx_has_mod(d->in, mod);
}
static inline const gpul_ptx_operand *child(const struct decoder *d, const gpul_ptx_operand *o, unsigned k)
{
	return &d->f->operands[o->first_child + k];
}

/* Where a variable, parameter or function is stored. */
struct place {
	uint8_t space; /* SPACE_...; for a function SPACE_GLOBAL */
	bool frame;    /* value is an offset from the start of the frame's local memory */
	bool dynamic;  /* value is an offset from the start of dynamic shared memory */
	uint64_t value;
	uint32_t bytes;
};
bool gpul_symbol_place(struct decoder *d, const gpul_ptx_operand *o, struct place *out);

/* A decoder emits the operations of one instruction: d->in with d->operand. */
typedef bool decode_fn(struct decoder *d);
decode_fn gpul_decode_ld, gpul_decode_st, gpul_decode_atomic, gpul_decode_mov_symbol, gpul_decode_cvta, gpul_decode_isspacep;
decode_fn gpul_decode_multimem;
decode_fn gpul_decode_bra, gpul_decode_brx, gpul_decode_call, gpul_decode_barrier, gpul_decode_fence, gpul_decode_trap,
	gpul_decode_nanosleep;
decode_fn gpul_decode_shfl, gpul_decode_vote, gpul_decode_match, gpul_decode_redux, gpul_decode_elect, gpul_decode_activemask;
decode_fn gpul_decode_mov_vector, gpul_decode_createpolicy, gpul_decode_alloca, gpul_decode_stack;
decode_fn gpul_decode_launch_control;
decode_fn gpul_decode_mma, gpul_decode_wmma, gpul_decode_ldmatrix, gpul_decode_stmatrix, gpul_decode_movmatrix;
decode_fn gpul_decode_tex, gpul_decode_texture_query, gpul_decode_surface, gpul_decode_istypep;
decode_fn gpul_decode_wgmma, gpul_decode_tensor_copy, gpul_decode_tensormap;
decode_fn gpul_decode_cp, gpul_decode_mbarrier, gpul_decode_mapa, gpul_decode_getctarank;

/* decode.c: decode a function, after all variables have addresses.  An instruction that the interpreter does not implement is not an
 * error: code->refusal receives the reason, and the instruction becomes OP_REFUSED. */
gpul_status gpul_decode_function(struct gpul_exec_program *p, struct func_code *code, gpul_error *err);

/* decode_registers.c: set d->reg_offset of registers that can share memory in the frame.  Call before instructions are decoded.  defines:
 * true if an unguarded instruction with this opcode writes its first operand, a register or a list of registers, in every active lane. */
void gpul_share_registers(struct decoder *d, bool (*defines)(unsigned opcode));

/* decode_reach.c: mark each function as refused that calls a refused function by name, directly or indirectly. */
gpul_status gpul_spread_refusals(struct gpul_exec_program *p, gpul_error *err);

/* decode_memory.c: emit complete_tx of this number of bytes for the mbarrier operand of st.async or red.async. */
bool gpul_decode_complete_bytes(struct decoder *d, const gpul_ptx_operand *mbarrier, unsigned bytes);
/* decode_memory.c: the registers of an ld or st: one register, the elements of a vector, or the two halves of a .b128. */
struct data {
	opref refs[2 * MAX_VECTOR];
	unsigned n, reg_bytes; /* number of elements; width of each register in bytes */
	unsigned memory_bytes; /* size of an element in memory */
};
bool gpul_read_data(struct decoder *d, const gpul_ptx_operand *o, unsigned type, struct data *out);
/* decode_memory.c: return the operation of atom, red or cp.reduce for this type; -1: no such operation. */
int gpul_atomic_op(const gpul_ptx_inst *in, unsigned type);
/* decode_memory.c: return true if an ld or st is not weak (volatile, relaxed, acquire ...). */
bool gpul_is_ordered(const gpul_ptx_inst *in);
/* decode_memory.c: decode the address operand [base + offset] to i->a, i->imm and i->flags; space: SPACE_... */
bool gpul_decode_address(struct decoder *d, const gpul_ptx_operand *o, unsigned space, struct insn *i);

#endif
