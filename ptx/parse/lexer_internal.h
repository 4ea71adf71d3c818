/* lexer_internal.h — splits PTX text into tokens: PTX ISA 9.0, chapter 4. */
#ifndef GPULOAD_PTX_PARSE_LEXER_INTERNAL_H
#define GPULOAD_PTX_PARSE_LEXER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of a one-character token is the character itself: '{' ';' '+' ... */
/* clang-format off */
typedef enum ptx_token_kind {
	PTX_TOK_END = 0,
	PTX_TOK_WORD = 256,  /* a word: add  %r1  $L__BB0_1  _ */
	PTX_TOK_DOT,         /* .s32  .shared::cta  .2d; the dot is not part of .text */
	PTX_TOK_INT,
	PTX_TOK_F32,         /* 0f3F800000; .value contains the bits */
	PTX_TOK_F64,         /* 0d... and 1.5; .value contains the bits */
	PTX_TOK_STRING,      /* .text is what is between the quotes; there are no escape sequences */
	PTX_TOK_SHL, PTX_TOK_SHR, PTX_TOK_LE, PTX_TOK_GE, PTX_TOK_EQ, PTX_TOK_NE,
	PTX_TOK_AND_AND, PTX_TOK_OR_OR,
	PTX_TOK_ERROR,       /* lexer->error contains the message */
} ptx_token_kind;
/* clang-format on */

typedef struct ptx_token {
	int kind;               /* a ptx_token_kind, or a character */
	bool is_unsigned;       /* for INT: a number such as 5U, or above INT64_MAX */
	uint32_t line;          /* line number, from 1 */
	uint32_t bytes;         /* length of text */
	const char *text;       /* points into the source */
	const char *line_start; /* first byte of the line that contains the token */
	uint64_t value;
} ptx_token;

typedef struct ptx_lexer {
	const char *at, *end, *start, *line_start;
	uint32_t line;
	const char *error; /* for a PTX_TOK_ERROR: the message, a string literal */
} ptx_lexer;

void ptx_lexer_init(ptx_lexer *l, const char *text, size_t text_bytes);
void ptx_lexer_next(ptx_lexer *l, ptx_token *t);

/* Skip statements of a function body after its '{' (lexer_skip.c).  Returns true if the lexer has reached a .shared at the start of
 * a statement, and false at the '}' that ends the body or at the end of the text. *depth is the number of open inner blocks; it
 * must be 0 at the first call. */
bool ptx_lexer_skip_body(ptx_lexer *l, unsigned *depth);

#endif
