/* parser_internal.h — defines the parser's state, and declares the functions that its files share.
 *
 *     parser.c           tokens, errors, names: used by all files below
 *     parse_expr.c       constant expressions
 *     parse_operand.c    operands and names
 *     parse_init.c       initializers of variables
 *     parse_decl.c       variables, parameters, registers
 *     parse_prototype.c  pragmas, tuning directives, prototypes
 *     parse_heads.c      skips function bodies
 *     parse_lazy.c       parses a body when it is needed
 *     parse_body.c       statements: labels, scopes, directives, instructions
 *     parse_func.c       functions
 *     parse.c            module level: .version, .target, sections; builds the module
 *
 * A recursive-descent parser with one token of look-ahead, p->tok.  The first failure is recorded and changes the
 * token to END permanently, so that every loop ends and callers need not check for failure after each call;
 * gpul_ptx_parse() checks once at the end. */
#ifndef GPULOAD_PTX_PARSE_PARSER_INTERNAL_H
#define GPULOAD_PTX_PARSE_PARSER_INTERNAL_H

#include "core/array.h"
#include "ptx/ptx_arena_internal.h"
#include "ptx/parse/lexer_internal.h"
#include "ptx/module.h"
#include "ptx/ptx_names_internal.h"

enum {
	PTX_MAX_NESTING = 128,       /* limit of nested { } in bodies, ( ) in expressions, and { } in initializers */
	PTX_MAX_REGISTERS = 1 << 24, /* limit of the registers of one function */
	PTX_MAX_RANGE = 1 << 16,     /* limit of n in a declaration a<n> */
	PTX_MAX_ROW_BYTES = 512,
};

typedef GPUL_ARRAY(gpul_ptx_var) ptx_vars;
typedef GPUL_ARRAY(gpul_ptx_regs) ptx_regs;
typedef GPUL_ARRAY(gpul_ptx_item) ptx_items;

#define PTX_LABEL(kind) (1u << (kind)) /* the bit of one kind of gpul_ptx_label in a set of kinds */

struct ptx_place { /* the position of a token */
	const char *at, *line_start;
	uint32_t line;
};

/* A name that may be a label which is declared later; the operand is completed when the scope ends. */
struct ptx_unresolved {
	ptx_token tok;
	uint32_t operand; /* index in func->operands */
	unsigned labels;  /* the permitted kinds of label: bits PTX_LABEL(kind) */
};

typedef struct ptx_parser {
	ptx_lexer lexer;
	ptx_token tok; /* the current token, which has not been consumed yet */
	const char *file_name;
	gpul_status status; /* status of the first failure */
	gpul_error *err;
	ptx_arena arena;
	ptx_names names;

	/* the module's tables */
	gpul_ptx_module module; /* only its scalar fields are used; the arrays below contain its tables */
	ptx_vars module_vars;
	ptx_regs module_regs;
	ptx_items module_items;
	GPUL_ARRAY(gpul_ptx_func) funcs;
	GPUL_ARRAY(gpul_ptx_init) inits;
	GPUL_ARRAY(uint64_t) dims;
	GPUL_ARRAY(gpul_ptx_loc) locs;
	GPUL_ARRAY(gpul_ptx_file) files;
	GPUL_ARRAY(gpul_ptx_section) sections;
	GPUL_ARRAY(gpul_ptx_alias) aliases;
	GPUL_ARRAY(gpul_ptx_str) pragmas;
	GPUL_ARRAY(gpul_ptx_str) extra_mods;

	/* the tables of the current function; they are cleared before the next one */
	gpul_ptx_func func; /* only its scalar fields are used; the arrays below contain its tables */
	ptx_vars params, rets, func_vars;
	ptx_items items;
	GPUL_ARRAY(ptx_token) param_names; /* names of the last parameter list */
	ptx_regs regs;
	GPUL_ARRAY(gpul_ptx_label) labels;
	GPUL_ARRAY(gpul_ptx_inst) insts;
	GPUL_ARRAY(gpul_ptx_operand) operands;
	GPUL_ARRAY(gpul_ptx_scope) scopes;
	GPUL_ARRAY(struct ptx_unresolved) unresolved; /* names that may be labels which are declared later */
	GPUL_ARRAY(gpul_ptx_operand) siblings;        /* stack of operands that are not in `operands` yet */
	bool in_body;
	bool heads_only;                    /* set by gpul_ptx_parse_heads(): skip bodies, and everything that only bodies need */
	bool skips_bodies;                  /* set by gpul_ptx_parse_heads(), and by gpul_ptx_parse_lazy() except while it parses a body */
	GPUL_ARRAY(struct ptx_place) heads; /* gpul_ptx_parse_lazy(): for each entry of funcs, the position of its .entry or .func */
	const char *shared_prefix;      /* if heads_only: the common prefix of the names of all .shared variables; NULL: there are none */
	uint32_t shared_prefix_bytes;   /* length of shared_prefix */
	GPUL_ARRAY(uint32_t) shared_in; /* for each entry of module_vars: 1 + index of the last function that uses it */
	uint32_t scope, loc;            /* indices of the current scope and .loc, or NONE */
	uint16_t opcode;                /* opcode of the current instruction */
	unsigned nesting;
	/* the entry to which ptx_push() points when memory is exhausted, so that callers need not test for NULL */
	_Alignas(16) unsigned char no_row[PTX_MAX_ROW_BYTES];
} ptx_parser;

/* ---- parser.c ---- */
void ptx_fail_at(ptx_parser *p, const ptx_token *where, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void ptx_fail_expected(ptx_parser *p, const char *what, const char *after); /* `after` may be NULL */
void ptx_fail_memory(ptx_parser *p);
/* Append a cleared entry to an array, and return its address; p->no_row when memory is exhausted, never NULL. */
#define ptx_push(p, array) ((__typeof__((array)->at))ptx_row((p), gpul_array_push(array)))
void *ptx_row(ptx_parser *p, void *row);
/* Return the number of entries of an array; it fits into 32 bits, because a file is smaller than 2 GiB. */
#define PTX_N(array)              ((uint32_t)(array).n)
/* Copy a complete array into the arena, without spare capacity.  NULL: the array is empty, or out of memory. */
#define ptx_keep(p, array, n_out) ptx_copy((p), (array).at, *(n_out) = PTX_N(array), sizeof *(array).at)
void *ptx_copy(ptx_parser *p, const void *rows, size_t n, size_t row_bytes);
void ptx_next(ptx_parser *p);             /* consume the current token */
bool ptx_accept(ptx_parser *p, int kind); /* consume the current token if it has this kind */
bool ptx_expect(ptx_parser *p, int kind, const char *after);
bool ptx_tok_is(const ptx_token *t, int kind, const char *text);
bool ptx_accept_dot(ptx_parser *p, const char *text); /* consume the current token if it is the directive "." + text */
bool ptx_ended(const ptx_parser *p);                  /* true at the end of the file and after a failure */
uint32_t ptx_intern_tok(ptx_parser *p, const ptx_token *t);
uint32_t ptx_expect_word(ptx_parser *p, const char *what, ptx_token *where); /* returns the index of the name */
uint16_t ptx_mod_of(ptx_parser *p, const ptx_token *dot);
void ptx_bind(ptx_parser *p, const ptx_token *where, uint32_t name, ptx_what what, uint32_t row, uint32_t count);
bool ptx_find_symbol(ptx_parser *p, const ptx_token *t, ptx_found *found);
bool ptx_enter(ptx_parser *p); /* enter a nested level; false: nested too deeply, the error is recorded */
void ptx_leave(ptx_parser *p);

/* ---- parse_init.c ---- */
/* Parse the initializer of v, after the '='.  If v has dimensions, *n_outer is set to the number of elements of the outermost one. */
void ptx_parse_initializer(ptx_parser *p, const gpul_ptx_var *v, uint64_t *n_outer);

/* ---- parse_decl.c ---- */
bool ptx_at_variable(const ptx_token *t); /* true for .global, .shared, .param ... */
void ptx_parse_variables(ptx_parser *p, gpul_ptx_linkage linkage);
void ptx_parse_registers(ptx_parser *p);                    /* registers of the function if p->in_body, else of the module */
void ptx_parse_unified(ptx_parser *p, uint64_t unified[2]); /* parses (1, 2) after .unified */
void ptx_parse_params(ptx_parser *p, ptx_vars *params);
void ptx_bind_params(ptx_parser *p, ptx_vars *params, ptx_what what);

/* ---- parse_prototype.c ---- */
bool ptx_at_module_statement(const ptx_token *t);       /* true for .visible, .func, .global ... */
void ptx_parse_pragma(ptx_parser *p, ptx_items *items); /* items NULL: append no item */
void ptx_parse_tuning(ptx_parser *p, gpul_ptx_tuning *t);
gpul_ptx_tuning ptx_no_tuning(void);
uint32_t ptx_parse_prototype(ptx_parser *p); /* returns an index in module->funcs */

/* ---- parse_func.c ---- */
void ptx_parse_function(ptx_parser *p, gpul_ptx_linkage linkage);
void ptx_parse_function_again(ptx_parser *p); /* parses the function with its body into p->func; the current token is .entry or .func */

/* ---- parse_body.c ---- */
void ptx_parse_body(ptx_parser *p);

/* ---- parse_heads.c ---- */
void ptx_skip_body(ptx_parser *p);
void ptx_note_shared(ptx_parser *p, uint32_t first); /* the entries of module_vars from `first` on are new */

/* ---- parse.c ---- */
/* Parse a text and return p->status.  The caller has set file_name, err and the flags of p. */
gpul_status ptx_parse_text(ptx_parser *p, const char *text, size_t text_bytes);
/* Append the names from index m->n_strings on, and the extra modifiers, to the module. */
void ptx_set_names(ptx_parser *p, gpul_ptx_module *m);
void ptx_free_parser(ptx_parser *p);

/* ---- parse_operand.c ---- */
/* Parse an operand, and push it to p->siblings. labels is the set of the kinds of label to which the operand may refer (bits
 * PTX_LABEL(kind)); if the set contains CODE, the operand must be a label. */
void ptx_parse_operand(ptx_parser *p, unsigned labels);
void ptx_parse_call_operand(ptx_parser *p);
/* Move the siblings from number `first` on to func->operands.  Returns their first index there. */
uint32_t ptx_place_siblings(ptx_parser *p, uint32_t first);
void ptx_resolve_labels(ptx_parser *p, size_t first, bool at_end);

/* ---- parse_index.c ---- */
/* Parse [index] after the symbol *o. *o becomes the address of the element. */
void ptx_parse_index(ptx_parser *p, gpul_ptx_operand *o);

/* ---- parse_expr.c ---- */
typedef struct ptx_value {
	enum { PTX_S64, PTX_U64, PTX_F32, PTX_F64 } kind;
	uint64_t bits;
} ptx_value;
ptx_value ptx_parse_expr(ptx_parser *p);
uint64_t ptx_parse_integer(ptx_parser *p, const char *what); /* parses a constant expression >= 0 */

#endif
