/* ptx_link_internal.h — defines the linker's state, and declares its steps in their order.
 *
 *     ptx_link.c      copies the inputs, and runs the steps
 *     link_symbols.c  builds the symbol table, and checks that all declarations agree
 *     link_refer.c    checks that references have definitions, and renames private names that collide
 *     link_target.c   chooses .version and .target of the result
 *     link_write.c    prints the result
 *
 * Inputs are not changed: each is copied one level deep (table entries, but not the memory to which they point).  The names, linkage
 * and .loc entries of the copies are edited, then printed. */
#ifndef GPULOAD_PTX_LINK_PTX_LINK_INTERNAL_H
#define GPULOAD_PTX_LINK_PTX_LINK_INTERNAL_H

#include "core/array.h"
#include "ptx/ptx_arena_internal.h"
#include "ptx/link/ptx_link.h"
#include "ptx/ptx_names_internal.h"

typedef enum ptx_strength { /* strength of a definition; the linker keeps the strongest definition of a name */
			    PTX_UNDEFINED,
			    PTX_COMMON,
			    PTX_WEAK,
			    PTX_STRONG,
} ptx_strength;

/* Identifies a variable or function: an index in the vars or funcs of an input. */
struct ptx_link_place {
	uint32_t input, row;
};

typedef struct ptx_link_symbol {
	bool taken;       /* a module uses this name at module level */
	bool is_external; /* visible to other modules; false: private to one module */
	bool is_func;
	bool is_referred_to; /* an operand or initializer refers to the symbol */
	ptx_strength strength;
	struct ptx_link_place first;      /* the first declaration or definition */
	struct ptx_link_place definition; /* the definition that is kept; valid unless strength is PTX_UNDEFINED */
} ptx_link_symbol;

enum ptx_written { PTX_NOT_WRITTEN, PTX_BEGUN, PTX_DECLARED, PTX_WRITTEN };

struct ptx_link_input {
	const char *name;
	/* a copy of the input with vars, funcs, locs and strings of its own; strings, func_row and symbol have room for twice the names,
	 * because each may get a new one */
	gpul_ptx_module m;
	uint32_t *func_row; /* for each name: index in funcs of its entry with the body; without a body, of its first entry */
	uint32_t *symbol;   /* for each name: its index in symbols; 0: private, or not a module-level name */
	bool *aliased;      /* for each entry of funcs: true if .alias defines the function */
	uint8_t *written;   /* for each entry of vars: a value of enum ptx_written */
};

typedef struct ptx_linker {
	ptx_arena arena;
	struct ptx_link_input *inputs;
	uint32_t n_inputs;
	ptx_names names; /* names of all modules; a name has the same index in names and in symbols */
	GPUL_ARRAY(ptx_link_symbol) symbols;
	GPUL_ARRAY(gpul_ptx_file) files; /* source files of the result; the path is an index in names */
	uint32_t version_major, version_minor;
	char target[256];
	gpul_error *err;
} ptx_linker;

gpul_status ptx_link_no_memory(ptx_linker *l);
/* Return the index of a name's symbol; a new name is added.  0: out of memory. */
uint32_t ptx_link_intern(ptx_linker *l, const char *name);

/* The first steps, in this order: collect the symbols of all modules; check that every reference has a definition; rename private
 * names that collide with another name. */
gpul_status ptx_link_collect(ptx_linker *l);
gpul_status ptx_link_refer(ptx_linker *l);
gpul_status ptx_link_rename(ptx_linker *l);

/* True if the result contains this function of an input: the definition that the linker keeps or, without a definition, the first
 * declaration. */
bool ptx_link_keeps_func(const ptx_linker *l, uint32_t input, uint32_t row);
bool ptx_link_keeps_var(const ptx_linker *l, uint32_t input, uint32_t row);
/* Return the symbol of a name in an input.  NULL: the name is private. */
ptx_link_symbol *ptx_link_symbol_of(const ptx_linker *l, uint32_t input, gpul_ptx_str name);
/* True for functions that need no definition: those of every driver (vprintf, malloc, free, __assertfail, cudaGraphSetConditional),
 * and those of the device runtime (cuda_device_runtime_api.h), which the software driver provides. */
bool ptx_link_is_system_call(const char *name);

/* Choose .version and .target of the result. */
gpul_status ptx_link_target(ptx_linker *l);

/* Print the result of gpul_ptx_link(). */
gpul_status ptx_link_write(ptx_linker *l, char **out_text, size_t *out_bytes);

#endif
