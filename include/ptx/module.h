/* module.h — defines the model of a PTX file: the parser fills it in; the printer, the linker, the interpreter and others read it.
 *
 *     gpul_ptx_module
 *       ├─ version, targets, address size
 *       ├─ vars[]    module-scope variables (.global .const .shared .extern ...)
 *       ├─ regs[]    module-scope registers, before PTX 3.0: each thread has them once, for all functions that it calls
 *       ├─ funcs[]   kernels (.entry) and device functions (.func)
 *       │    ├─ params[], rets[], tuning directives
 *       │    ├─ regs[]    register declarations; `%r<5>` is ONE row of count 5
 *       │    ├─ vars[]    variables of the body (.local .shared .param ...)
 *       │    ├─ labels[]  name, and index of the instruction that follows
 *       │    └─ insts[]   the instructions, in order
 *       ├─ items[]   all of these in the order of the file (for the printer)
 *       └─ strings   each name once; a gpul_ptx_str is its index
 *
 * The module owns all of its tables; gpul_ptx_module_destroy() frees them.  Nothing points into the source text.  A
 * finished module is read-only and may be shared between threads. */
#ifndef GPULOAD_PTX_MODULE_H
#define GPULOAD_PTX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "ptx/vocabulary.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t gpul_ptx_str;   /* an index into the module's strings; 0 is "" */
#define GPUL_PTX_NONE UINT32_MAX /* in every index below: there is no such entry */

/* ---- operands ---------------------------------------------------------------------------- */

typedef enum gpul_ptx_operand_kind {
	GPUL_PTX_OP_REG,     /* index: flat register number within the function; for a vector register the number
	                       * of the selected element (v.y), or of the first element (v); value.i: an integer
	                       * that is added to its value (r+1), unless the selector uses value.i for itself */
	GPUL_PTX_OP_SPECIAL, /* index: gpul_ptx_special (%tid.x ...) */
	GPUL_PTX_OP_INT,     /* value.i: 64-bit two's complement, as written */
	GPUL_PTX_OP_F32,     /* value.f32: a constant such as 0f3F800000 */
	GPUL_PTX_OP_F64,     /* value.f64: 0d... or a decimal literal such as 1.5 */
	GPUL_PTX_OP_SYMBOL,  /* ref_kind: a variable, parameter or function; value.i: byte offset added to it */
	GPUL_PTX_OP_LABEL,   /* index: index in func->labels (also .branchtargets and .callprototype names) */
	GPUL_PTX_OP_ADDRESS, /* [base + value.i]; child[0] is the base: REG, SYMBOL or INT (then value.i is 0);
	                       * the other children: coordinates, as in [map, {x, y}] of textures and tensors */
	GPUL_PTX_OP_VECTOR,  /* {a, b, ...}: the elements are the children */
	GPUL_PTX_OP_PAIR,    /* p|q: two children; either of them may be SINK */
	GPUL_PTX_OP_LIST,    /* ( a, b ), an argument list of call: the arguments are the children */
	GPUL_PTX_OP_SINK,    /* _, which discards a result */
} gpul_ptx_operand_kind;

typedef enum gpul_ptx_ref_kind {
	GPUL_PTX_REF_NONE,
	GPUL_PTX_REF_MODULE_VAR, /* index in module->vars */
	GPUL_PTX_REF_FUNC_VAR,   /* index in func->vars */
	GPUL_PTX_REF_PARAM,      /* index in func->params */
	GPUL_PTX_REF_RET,        /* index in func->rets */
	GPUL_PTX_REF_FUNC,       /* index is the first index in module->funcs with that name; its .definition has the body */
} gpul_ptx_ref_kind;

typedef struct gpul_ptx_operand {
	uint8_t kind;         /* a value of gpul_ptx_operand_kind */
	uint8_t ref_kind;     /* for SYMBOL: a value of gpul_ptx_ref_kind */
	bool negated;         /* the operand is written as !p or -x */
	uint8_t selector;     /* gpul_ptx_selector: .x .y .z .w (vector registers), .b0 .. .b3 .h0 .h1 .b10 ... */
	uint32_t index;       /* its meaning depends on kind; for SYMBOL: index in the table that ref_kind selects */
	uint32_t first_child; /* for ADDRESS, VECTOR, PAIR, LIST: index in func->operands with the first child */
	uint32_t n_children;
	union {
		int64_t i;
		uint32_t f32; /* the bits of the value */
		uint64_t f64; /* the bits of the value */
	} value;
} gpul_ptx_operand;

/* ---- instructions ------------------------------------------------------------------------ */

#define GPUL_PTX_MAX_MODS 14

typedef struct gpul_ptx_inst {
	uint16_t opcode; /* gpul_ptx_opcode: the root of the instruction, ADD for add.sat.s32 */
	uint8_t n_mods;
	uint8_t n_operands;
	uint16_t mods[GPUL_PTX_MAX_MODS]; /* gpul_ptx_mod, in the order of the text */
	uint32_t guard;                   /* @p: flat register number of p; GPUL_PTX_NONE: no guard */
	bool guard_negated;               /* true for @!p */
	uint32_t first_operand;           /* index in func->operands; the other operands are in the next rows */
	uint32_t line, column;            /* position in the PTX text, from 1 */
	uint32_t loc;                     /* index in module->locs: the last .loc before it; or GPUL_PTX_NONE */
} gpul_ptx_inst;

typedef struct gpul_ptx_label {
	gpul_ptx_str name;
	uint32_t inst;  /* row of the instruction that follows the label; n_insts if there is none */
	uint32_t scope; /* index in func->scopes */
	enum { GPUL_PTX_LABEL_CODE, GPUL_PTX_LABEL_BRANCHTARGETS, GPUL_PTX_LABEL_CALLTARGETS, GPUL_PTX_LABEL_CALLPROTOTYPE } kind;
	uint32_t first_target, n_targets; /* for TARGETS: indices in func->operands, LABEL or SYMBOL */
	uint32_t prototype;               /* for CALLPROTOTYPE: index in module->funcs (kind PROTOTYPE, no body) */
	uint32_t line;
} gpul_ptx_label;

/* ---- declarations ------------------------------------------------------------------------ */

typedef struct gpul_ptx_regs { /* one declared name: `.reg .b32 %r<5>`, `.reg .v2 .f32 x` */
	gpul_ptx_str name;     /* the name without <n> */
	uint16_t type;         /* gpul_ptx_mod: GPUL_PTX_MOD_B32 ...  PRED */
	uint8_t vector;        /* number of elements: 1, 2 or 4 */
	bool ranged;           /* declared with <count> */
	uint32_t first;        /* flat number of the first register, for a vector of its element .x */
	uint32_t count;        /* the <count>; 1 if not ranged */
	uint32_t scope;
} gpul_ptx_regs;

typedef struct gpul_ptx_init { /* one element of an initializer */
	enum {
		GPUL_PTX_INIT_INT,
		GPUL_PTX_INIT_F32,
		GPUL_PTX_INIT_F64,
		GPUL_PTX_INIT_SYMBOL,
		GPUL_PTX_INIT_OPEN,
		GPUL_PTX_INIT_CLOSE,   /* OPEN and CLOSE: the braces { and } */
		GPUL_PTX_INIT_PROPERTY /* a property of a .texref, .samplerref, .surfref: "filter_mode = nearest" */
	} kind;
	uint8_t ref_kind;           /* SYMBOL: MODULE_VAR or FUNC */
	bool generic;               /* SYMBOL: true for generic(name) */
	uint8_t mask_byte;          /* SYMBOL: the byte that a mask selects, 1 .. 8: 0xFF00(name) is 2; 0: no mask */
	uint32_t index;             /* SYMBOL: index in the table of ref_kind; PROPERTY: gpul_ptx_str of its name */
	gpul_ptx_str property_word; /* PROPERTY: its value if that is a keyword; 0: the value is the number in i */
	int64_t i;                  /* INT: value; SYMBOL: byte offset; F32 and F64: bits */
} gpul_ptx_init;

typedef enum gpul_ptx_linkage {
	GPUL_PTX_STATIC,
	GPUL_PTX_VISIBLE,
	GPUL_PTX_EXTERN,
	GPUL_PTX_WEAK,
	GPUL_PTX_COMMON,
} gpul_ptx_linkage;

enum { GPUL_PTX_ATTRIBUTE_MANAGED = 1, GPUL_PTX_ATTRIBUTE_UNIFIED = 2 };

typedef struct gpul_ptx_var { /* a variable or a parameter */
	gpul_ptx_str name;
	uint16_t space;               /* gpul_ptx_mod: GPUL_PTX_MOD_GLOBAL CONST SHARED LOCAL PARAM TEX; REG: a .reg parameter of a .func */
	uint16_t type;                /* gpul_ptx_mod: GPUL_PTX_MOD_F32, B8 ... also TEXREF SAMPLERREF SURFREF */
	uint8_t vector;               /* number of elements: 1, 2 or 4 */
	uint8_t linkage;              /* a value of gpul_ptx_linkage */
	uint16_t ptr_space;           /* kernel parameter with .ptr .global: GLOBAL; with .ptr only: GENERIC; else 0 */
	uint32_t ptr_align;           /* the N of .ptr ... .align N; 0: absent */
	uint32_t align;               /* the N of .align N; 0: absent, the type has its natural alignment */
	uint32_t n_dims;              /* number of array dimensions: 0 for a scalar, 2 for [2][3] */
	uint32_t first_dim;           /* index in module->dims; a dimension of 0 is [] */
	uint64_t bytes;               /* element bytes x vector x all dimensions; 0 for [] without initializer */
	uint32_t first_init, n_inits; /* indices in module->inits; n_inits is 0 without an initializer */
	uint32_t reg;                 /* if space is REG: flat register number */
	uint32_t scope;
	uint32_t attributes; /* GPUL_PTX_ATTRIBUTE_MANAGED, _UNIFIED */
	uint64_t unified[2]; /* the UUID of .unified(a, b) */
	uint32_t line;
} gpul_ptx_var;

typedef struct gpul_ptx_tuning { /* performance-tuning directives (.maxntid ...); -1: absent */
	int64_t maxntid[3], reqntid[3], reqnctapercluster[3];
	int64_t minnctapersm, maxnctapersm, maxnreg, maxclusterrank, abi_preserve, abi_preserve_control;
	bool explicitcluster, noreturn, blocksareclusters;
	uint32_t first_pragma, n_pragmas; /* indices in module->pragmas */
} gpul_ptx_tuning;

typedef struct gpul_ptx_scope { /* a block { } in a body; scopes[0] is the body itself */
	uint32_t parent;
	uint32_t open, close; /* indices in func->items */
} gpul_ptx_scope;

typedef struct gpul_ptx_item { /* one statement, in the order of the file; the printer prints these */
	enum {
		GPUL_PTX_ITEM_INST,
		GPUL_PTX_ITEM_LABEL,
		GPUL_PTX_ITEM_REGS,
		GPUL_PTX_ITEM_VAR,
		GPUL_PTX_ITEM_OPEN,
		GPUL_PTX_ITEM_CLOSE,
		GPUL_PTX_ITEM_LOC,
		GPUL_PTX_ITEM_PRAGMA,
		GPUL_PTX_ITEM_FUNC,
		GPUL_PTX_ITEM_FILE,
		GPUL_PTX_ITEM_SECTION,
		GPUL_PTX_ITEM_ALIAS
	} kind;
	uint32_t index; /* index in the table that kind selects */
} gpul_ptx_item;

typedef enum gpul_ptx_func_kind {
	GPUL_PTX_FUNC_ENTRY,
	GPUL_PTX_FUNC_DEVICE,
	GPUL_PTX_FUNC_PROTOTYPE,
} gpul_ptx_func_kind;

typedef struct gpul_ptx_func {
	gpul_ptx_str name;
	uint8_t kind, linkage;
	bool has_body;       /* false: only a declaration */
	uint32_t definition; /* index in module->funcs with the body (this row if has_body), or NONE */
	gpul_ptx_var *params, *rets, *vars;
	uint32_t n_params, n_rets, n_vars;
	gpul_ptx_regs *regs;
	uint32_t n_regs;        /* number of entries of regs */
	uint32_t n_flat_regs;   /* number of registers, counting each element of a vector register */
	uint32_t n_module_regs; /* registers with lower numbers belong to the module: the first entries of regs are copies of those of
				     * module->regs that are declared before this function */
	gpul_ptx_label *labels;
	uint32_t n_labels;
	gpul_ptx_inst *insts;
	uint32_t n_insts;
	gpul_ptx_operand *operands;
	uint32_t n_operands;
	gpul_ptx_scope *scopes;
	uint32_t n_scopes;
	gpul_ptx_item *items;
	uint32_t n_items;
	gpul_ptx_tuning tuning;
	bool has_unified; /* true for .attribute(.unified(a, b)) */
	uint64_t unified[2];
	uint32_t line;
} gpul_ptx_func;

typedef struct gpul_ptx_loc { /* .loc file line column [, function_name L, inlined_at ...] */
	uint32_t file, line, column;
	uint32_t function_label, function_offset; /* function_name: gpul_ptx_str and offset; 0: none */
	uint32_t at_file, at_line, at_column;     /* the position that follows inlined_at; 0: none */
} gpul_ptx_loc;

typedef struct gpul_ptx_file {
	uint32_t number;
	gpul_ptx_str path;
	uint64_t timestamp, bytes;
} gpul_ptx_file;
typedef struct gpul_ptx_section {
	gpul_ptx_str name;
	gpul_ptx_str text;
} gpul_ptx_section;
/* indices into module->funcs */
typedef struct gpul_ptx_alias {
	uint32_t alias, aliasee;
} gpul_ptx_alias;

typedef struct gpul_ptx_module {
	uint32_t version_major, version_minor;
	uint32_t sm;           /* 90 for sm_90a */
	char sm_suffix;        /* 'a', 'f' or 0 */
	bool debug;            /* true if .target has the option debug */
	gpul_ptx_str target;   /* the .target operands as written, "sm_90, debug" */
	uint32_t address_size; /* 32 or 64 */
	gpul_ptx_var *vars;
	uint32_t n_vars;
	gpul_ptx_regs *regs;
	uint32_t n_regs, n_flat_regs; /* registers of module scope, numbered as in a function */
	gpul_ptx_func *funcs;
	uint32_t n_funcs;
	gpul_ptx_item *items;
	uint32_t n_items;
	gpul_ptx_init *inits;
	uint32_t n_inits;
	uint64_t *dims;
	uint32_t n_dims;
	gpul_ptx_loc *locs;
	uint32_t n_locs;
	gpul_ptx_file *files;
	uint32_t n_files;
	gpul_ptx_section *sections;
	uint32_t n_sections;
	gpul_ptx_alias *aliases;
	uint32_t n_aliases;
	gpul_ptx_str *pragmas;
	uint32_t n_pragmas;
	const char **strings;
	uint32_t n_strings; /* number of strings, which are NUL-terminated; strings[0] is "" */
	const char **extra_mods;
	uint32_t n_extra_mods;     /* number of names of modifiers that vocabulary.h lacks */
	void *storage;             /* the arena that owns all tables above; NULL: bodies owns them */
	struct ptx_bodies *bodies; /* the bodies of a module from gpul_ptx_parse_lazy(); else NULL */
	uint32_t n_others;         /* number of owners that gpul_ptx_module_share() added */
} gpul_ptx_module;

/** Parse PTX text.
 *
 * @text       the PTX; need not be NUL-terminated; not used after the call.  One NUL at the end is accepted
 * @text_bytes its size in bytes
 * @file_name  for messages only, "kernel.ptx"
 * @out        owned by the caller: gpul_ptx_module_destroy(); untouched on failure
 * Errors  GPUL_EFORMAT with native = byte offset and the text
 *         "kernel.ptx:12:7: expected ';' after add, found 'mul'\n<the line>\n      ^"
 *         (shortened to fit: first the file name, then the quoted line); GPUL_ENOMEM
 * Source  PTX ISA 9.0, chapters 4, 5 and 11 */
gpul_status gpul_ptx_parse(const char *text, size_t text_bytes, const char *file_name, gpul_ptx_module **out, gpul_error *err);
void gpul_ptx_module_destroy(gpul_ptx_module *m); /* accepts NULL; cannot fail */

/** Add an owner: the module exists until each of its owners has called gpul_ptx_module_destroy().  Any thread; returns m. */
gpul_ptx_module *gpul_ptx_module_share(gpul_ptx_module *m);

/** Parse the declarations of a text that is known to be valid, and its bodies when they are needed: for a large text of which a
 * program runs few functions.
 *
 * A function has its body, and entries of the module's tables that only the body uses, after gpul_ptx_need_body(); before, it has
 * only the .shared variables that the body declares.  Tables of the module grow at their end then, and never move.
 *
 * @text       the PTX, which gpul_ptx_parse() accepts; must exist until the module is destroyed
 * @text_bytes its size in bytes
 * @file_name  for messages only
 * @out        owned by the caller: gpul_ptx_module_destroy(); untouched on failure
 * Errors  GPUL_EFORMAT as gpul_ptx_parse(), for errors outside of bodies; GPUL_ENOMEM, also when the process may not reserve
 *         an address range of some 100 times text_bytes, which gpul_ptx_parse() does not need */
gpul_status gpul_ptx_parse_lazy(const char *text, size_t text_bytes, const char *file_name, gpul_ptx_module **out, gpul_error *err);

/** Parse the body of the function m->funcs[row], unless it has been parsed.  Does nothing for modules that are not from
 * gpul_ptx_parse_lazy(), and for functions without a body.
 *
 * @m    the module; the caller needs only be one of its owners (gpul_ptx_module_share())
 * @row  index of the function in m->funcs
 * Errors  GPUL_EFORMAT, GPUL_ENOMEM; after the first error each call for a body that has not been parsed fails
 * Threads any thread, even while others read the functions that have been parsed */
gpul_status gpul_ptx_need_body(gpul_ptx_module *m, uint32_t row, gpul_error *err);

/** Limit the registers of kernels, as -maxrregcount and CU_JIT_MAX_REGISTERS do: adds .maxnreg to each kernel, except kernels with
 * launch bounds (.maxntid, .reqntid, .minnctapersm, .maxnreg), for which NVIDIA's compilers ignore the option.
 *
 * @m            the module to change
 * @n_registers  number of registers of a thread; 0: no limit
 * Errors  none
 * Threads the module belongs to one thread at a time
 * Source  CUDA C++ Programming Guide, Launch Bounds; PTX ISA 9.0, .maxnreg */
void gpul_ptx_limit_registers(gpul_ptx_module *m, unsigned n_registers);

/** Parse declarations and skip function bodies, to list kernels: about ten times as fast as gpul_ptx_parse().
 *
 * The result has functions with their parameters (without names) and tuning directives, but no registers, labels, instructions or
 * items.  From a body only the .shared variables are read: first the variables that the body declares, then the .shared variables
 * of the module that the body uses.  The only check of a body is that its braces match.
 *
 * @text       the PTX, as for gpul_ptx_parse()
 * @text_bytes its size in bytes
 * @file_name  for messages only
 * @out        owned by the caller: gpul_ptx_module_destroy(); untouched on failure
 * Errors  GPUL_EFORMAT for errors outside of bodies, with the same text as gpul_ptx_parse(); GPUL_ENOMEM
 * Source  PTX ISA 9.0, chapters 4, 5 and 11 */
gpul_status gpul_ptx_parse_heads(const char *text, size_t text_bytes, const char *file_name, gpul_ptx_module **out, gpul_error *err);

/** Print a module as PTX that parses to an equal module.
 *
 * @m          borrowed
 * @out_text   owned by the caller: free(); NUL-terminated; untouched on failure
 * @out_bytes  size without the NUL; may be NULL
 * Errors  GPUL_ENOMEM
 * Threads any thread may call; the module is only read
 * Source  PTX ISA 9.0 */
gpul_status gpul_ptx_print(const gpul_ptx_module *m, char **out_text, size_t *out_bytes, gpul_error *err);

/** True if two modules are equal; line numbers, column numbers and unused names are ignored. */
bool gpul_ptx_module_equal(const gpul_ptx_module *a, const gpul_ptx_module *b);

/** Print one instruction without a line end, for traces and messages.
 * Returns the length of the whole text, like snprintf. */
size_t gpul_ptx_print_inst(const gpul_ptx_module *m, const gpul_ptx_func *f, const gpul_ptx_inst *inst, char *buf, size_t buf_bytes);

/** Return the definition of the function `name`, or its first declaration if there is no definition; NULL:
 * no such function.  O(n_funcs). */
const gpul_ptx_func *gpul_ptx_find_func(const gpul_ptx_module *m, const char *name);

/** True if code for the module's .target runs on a GPU of compute capability `sm`, such as 90: a target without suffix also runs on
 * newer GPUs, sm_100f on GPUs of its family, sm_90a only on its own architecture. */
static inline bool gpul_ptx_runs_on(const gpul_ptx_module *m, unsigned sm)
{
	if (m->sm_suffix == 'a')
		return m->sm == sm;
	return m->sm <= sm && (!m->sm_suffix || m->sm / 10 == sm / 10);
}

/** Return the text of a name. */
static inline const char *gpul_ptx_name(const gpul_ptx_module *m, gpul_ptx_str s)
{
	return m->strings[s];
}

/** Return the declaration of a flat register number below n_flat_regs; never NULL.  O(log n_regs). */
const gpul_ptx_regs *gpul_ptx_reg_row(const gpul_ptx_func *f, uint32_t flat);

/** True if the instruction has modifier m. */
static inline bool gpul_ptx_has_mod(const gpul_ptx_inst *in, unsigned m)
{
	for (unsigned i = 0; i < in->n_mods; i++)
		if (in->mods[i] == m)
			return true;
	return false;
}

/** Return the size of a scalar type in bytes (GPUL_PTX_MOD_F32: 4); 0 for PRED and for modifiers that are not types. */
unsigned gpul_ptx_type_bytes(unsigned mod);

#ifdef __cplusplus
}
#endif

#endif
