/* ptx_names_internal.h — the table of names: stores each name once, with its declaration in the current scope.
 *
 * Each name has a stack of bindings, the innermost first; closing a scope pops its bindings.  A declaration such as `%r<100000>`
 * is bound once, to its prefix "%r": a register is found by its prefix and its number, and needs no entry of its own. */
#ifndef GPULOAD_PTX_PTX_NAMES_INTERNAL_H
#define GPULOAD_PTX_PTX_NAMES_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/array.h"
#include "ptx/ptx_arena_internal.h"

typedef enum ptx_what {
	PTX_IS_REGS, /* index in func->regs */
	PTX_IS_MODULE_VAR,
	PTX_IS_FUNC_VAR,
	PTX_IS_PARAM,
	PTX_IS_RET,
	PTX_IS_FUNC,
	PTX_IS_LABEL,
} ptx_what;

typedef struct ptx_found {
	ptx_what what;
	uint32_t row;
	uint32_t number; /* number of the register in a declaration with a range such as %r<5>; otherwise 0 */
	uint32_t depth;  /* nesting depth of the scope that contains the binding; 0 is the module */
} ptx_found;

typedef struct ptx_names {
	ptx_arena *arena;                        /* keeps the text of the names */
	GPUL_ARRAY(struct ptx_name) entries;     /* the names; entry 0 is "" */
	GPUL_ARRAY(struct ptx_binding) bindings; /* stack of bindings, the innermost last */
	uint32_t *slots;                         /* hash table: each slot is an index in entries, or 0 */
	uint32_t n_slots;
	uint32_t depth;
	bool digit_prefix; /* some declared prefix ends in a digit, as in %r1<5> */
} ptx_names;

/* Create the table.  Returns false if out of memory.  Call ptx_names_free() in either case. */
bool ptx_names_init(ptx_names *n, ptx_arena *arena);
void ptx_names_free(ptx_names *n);
/* Return the index of a name, which is added if it is new. 0: the name is "", or out of memory. */
uint32_t ptx_names_intern(ptx_names *n, const char *text, uint32_t bytes);
const char *ptx_names_text(const ptx_names *n, uint32_t name);
uint32_t ptx_names_count(const ptx_names *n);

/* Bind a name in the current scope. count: the number of registers of a declaration name<count>, else 0.  Returns false if out of
 * memory. */
bool ptx_names_bind(ptx_names *n, uint32_t name, ptx_what what, uint32_t row, uint32_t count);
bool ptx_names_find(const ptx_names *n, const char *text, uint32_t bytes, ptx_found *out);
/* Find the innermost declaration name<n> that shares a register with a new declaration name<count>. */
bool ptx_names_find_range(const ptx_names *n, uint32_t name, uint32_t count, ptx_found *out);
void ptx_names_open_scope(ptx_names *n);
void ptx_names_close_scope(ptx_names *n);

/* Return the visible name with the most similar spelling, for "did you mean"; NULL: no name is similar. */
const char *ptx_names_near(const ptx_names *n, const char *text, uint32_t bytes);

#endif
