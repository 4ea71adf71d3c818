/* link_internal.h — what the link*.c files share.
 *
 *     link.c          copies of the inputs, and the steps
 *     link_symbols.c  names: who defines what, and whether all agree on it
 *     link_refer.c    who refers to what; new names for private ones that clash
 *     link_target.c   .version and .target that suit all
 *     link_write.c    the result as text
 *
 * Inputs are not changed: each is copied one level deep (rows, not what rows point to), and the
 * copies' names, linkage and .loc rows are edited, then printed. */
#ifndef GPULOAD_PTX_LINK_LINK_INTERNAL_H
#define GPULOAD_PTX_LINK_LINK_INTERNAL_H

#include "core/array.h"
#include "ptx/arena_internal.h"
#include "ptx/link/link.h"
#include "ptx/names_internal.h"

typedef enum ptx_strength {      /* of a definition: the stronger is kept */
	PTX_UNDEFINED, PTX_COMMON, PTX_WEAK, PTX_STRONG,
} ptx_strength;

/* A row of vars or funcs of an input. */
struct ptx_link_place { uint32_t input, row; };

typedef struct ptx_link_symbol {
	bool taken;              /* some module has this name at its outermost level */
	bool is_external;        /* others may mean it; else it is private to one module */
	bool is_func;
	bool is_referred_to;     /* by an operand or an initializer */
	ptx_strength strength;
	struct ptx_link_place first;        /* that mentions it, whatever it says */
	struct ptx_link_place definition;   /* when strength says that there is one */
} ptx_link_symbol;

enum ptx_written { PTX_NOT_WRITTEN, PTX_BEGUN, PTX_DECLARED, PTX_WRITTEN };

struct ptx_link_input {
	const char *name;
	gpul_ptx_module m;       /* the copy: vars, funcs, locs and strings are its own; strings, and
	                          * the two tables by name, have room for a new one a row */
	uint32_t *func_row;      /* by name: the row that stands for it, the one with the body if any */
	uint32_t *symbol;        /* by name: row of symbols; 0: private, or no name of the module */
	bool *aliased;           /* by row of funcs: .alias defines it */
	uint8_t *written;        /* by row of vars: enum ptx_written */
};

typedef struct ptx_linker {
	ptx_arena arena;
	struct ptx_link_input *inputs;
	uint32_t n_inputs;
	ptx_names names;         /* of all modules: a name's row here is its row of symbols */
	GPUL_ARRAY(ptx_link_symbol) symbols;
	GPUL_ARRAY(gpul_ptx_file) files;   /* of the result; path: row of names */
	uint32_t version_major, version_minor;
	char target[256];
	gpul_error *err;
} ptx_linker;

gpul_status ptx_link_no_memory(ptx_linker *l);
/* The row of symbols for a name, new or old; 0: no memory. */
uint32_t ptx_link_intern(ptx_linker *l, const char *name);

/* The steps, in this order: all names that modules share become symbols; every reference finds its
 * definition; private names that are not the only ones of their kind get new ones. */
gpul_status ptx_link_collect(ptx_linker *l);
gpul_status ptx_link_refer(ptx_linker *l);
gpul_status ptx_link_rename(ptx_linker *l);

/* Whether the row of an input is what its name stands for in the result. */
bool ptx_link_keeps_func(const ptx_linker *l, uint32_t input, uint32_t row);
bool ptx_link_keeps_var(const ptx_linker *l, uint32_t input, uint32_t row);
/* The symbol that a row means; NULL: it is private. */
ptx_link_symbol *ptx_link_symbol_of(const ptx_linker *l, uint32_t input, gpul_ptx_str name);
/* What the driver provides: vprintf, malloc, free, __assertfail. */
bool ptx_link_is_system_call(const char *name);

/* Fill in version and target. */
gpul_status ptx_link_target(ptx_linker *l);

/* The result as text, as gpul_ptx_link() gives it. */
gpul_status ptx_link_write(ptx_linker *l, char **out_text, size_t *out_bytes);

#endif
