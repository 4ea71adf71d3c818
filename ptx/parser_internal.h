/* parser_internal.h — what the parse_*.c files share.
 *
 *     parse.c          module level: .version, .target, functions, sections; builds the module
 *     parse_decl.c     variables, parameters, registers, initializers
 *     parse_func.c     heads of functions, prototypes, tuning directives
 *     parse_body.c     statements: labels, scopes, directives, instructions
 *     parse_operand.c  operands and names
 *     parse_expr.c     constant expressions
 *
 * One token is looked ahead: p->tok.  The first failure is recorded and sticks: from then on
 * the token is END, so every loop below ends by itself and callers need not ask after each
 * call.  gpul_ptx_parse() asks once, at the end. */
#ifndef GPULOAD_PTX_PARSER_INTERNAL_H
#define GPULOAD_PTX_PARSER_INTERNAL_H

#include "ptx/arena_internal.h"
#include "ptx/lexer_internal.h"
#include "ptx/module.h"
#include "ptx/names_internal.h"

enum {
	PTX_MAX_NESTING = 128,          /* { } in bodies, ( ) in expressions, { } in initializers */
	PTX_MAX_REGISTERS = 1 << 24,    /* of one function */
	PTX_MAX_ROW_BYTES = 512,
};

typedef struct ptx_parser {
	ptx_lexer lexer;
	ptx_token tok;                  /* the next token, not yet taken */
	const char *file_name;
	gpul_status status;             /* the first failure */
	gpul_error *err;
	ptx_arena arena;
	ptx_names names;

	/* the module's tables */
	gpul_ptx_module module;         /* its scalar fields */
	ptx_vec module_vars, funcs, module_items, inits, dims, locs, files, sections, aliases,
		pragmas, extra_mods;
	/* the tables of the function at hand; emptied for the next */
	gpul_ptx_func func;
	ptx_vec param_names;            /* ptx_token: of the list parsed last */
	ptx_vec params, rets, func_vars, regs, labels, insts, operands, scopes, items;
	bool in_body;
	uint32_t scope, loc;            /* rows at hand, or NONE */
	ptx_vec unresolved;             /* struct ptx_unresolved: labels not seen yet */
	ptx_vec siblings;               /* operands under way, whose place is not known yet */
	unsigned nesting;
	/* where a row goes when there is no memory for it, so that a push never gives NULL */
	_Alignas(16) unsigned char no_row[PTX_MAX_ROW_BYTES];
} ptx_parser;

/* A name that may be a label further down: its operand is completed when the scope ends. */
struct ptx_unresolved {
	ptx_token tok;
	uint32_t operand;               /* row of func->operands */
	bool must_be_label;
};

/* ---- parse.c ---- */
void ptx_fail_at(ptx_parser *p, const ptx_token *where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ptx_fail_memory(ptx_parser *p);
void *ptx_push(ptx_parser *p, ptx_vec *v, size_t row_bytes);   /* cleared; never NULL */
void ptx_next(ptx_parser *p);                           /* take the token */
bool ptx_accept(ptx_parser *p, int kind);               /* take it if it is of that kind */
bool ptx_expect(ptx_parser *p, int kind, const char *after);
bool ptx_tok_is(const ptx_token *t, int kind, const char *text);
bool ptx_accept_dot(ptx_parser *p, const char *text);   /* take the directive .text */
bool ptx_ended(const ptx_parser *p);                    /* end of file, or failed */
uint32_t ptx_intern_tok(ptx_parser *p, const ptx_token *t);
uint32_t ptx_expect_word(ptx_parser *p, const char *what, ptx_token *where);  /* its name */
uint16_t ptx_mod_of(ptx_parser *p, const ptx_token *dot);
void ptx_bind(ptx_parser *p, const ptx_token *where, uint32_t name, ptx_what what, uint32_t row,
	      uint32_t count);
bool ptx_enter(ptx_parser *p);                          /* nesting; false: too deep, failed */
void ptx_leave(ptx_parser *p);
void ptx_parse_pragma(ptx_parser *p, ptx_vec *items);

/* ---- parse_decl.c ---- */
bool ptx_at_variable(const ptx_token *t);               /* .global, .shared, .param ... */
void ptx_parse_variables(ptx_parser *p, gpul_ptx_linkage linkage);
void ptx_parse_registers(ptx_parser *p);
void ptx_parse_params(ptx_parser *p, ptx_vec *params);
void ptx_bind_params(ptx_parser *p, ptx_vec *params, ptx_what what);

/* ---- parse_func.c ---- */
void ptx_parse_function(ptx_parser *p, gpul_ptx_linkage linkage);
uint32_t ptx_parse_prototype(ptx_parser *p);            /* row of module->funcs */

/* ---- parse_body.c ---- */
void ptx_parse_body(ptx_parser *p);

/* ---- parse_operand.c ---- */
void ptx_parse_operand(ptx_parser *p, bool is_label);   /* one more of p->siblings */
void ptx_parse_call_operand(ptx_parser *p);
uint32_t ptx_place_siblings(ptx_parser *p, uint32_t first);  /* to func->operands; the first row */
void ptx_resolve_labels(ptx_parser *p, uint32_t first, bool at_end);
bool ptx_find_symbol(ptx_parser *p, const ptx_token *t, ptx_found *found);

/* ---- parse_expr.c ---- */
typedef struct ptx_value {
	enum { PTX_S64, PTX_U64, PTX_F32, PTX_F64 } kind;
	uint64_t bits;
} ptx_value;
ptx_value ptx_parse_expr(ptx_parser *p);
uint64_t ptx_parse_integer(ptx_parser *p, const char *what);   /* a constant expression >= 0 */

#endif
