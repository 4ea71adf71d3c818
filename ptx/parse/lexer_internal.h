/* lexer_internal.h — splits PTX text into tokens: PTX ISA 9.0, chapter 4. */
#ifndef GPULOAD_PTX_PARSE_LEXER_INTERNAL_H
#define GPULOAD_PTX_PARSE_LEXER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of a token of one character is that character: '{' ';' '+' ... */
/* clang-format off */
typedef enum ptx_token_kind {
	PTX_TOK_END = 0,
	PTX_TOK_WORD = 256,  /* a word: add  %r1  $L__BB0_1  _ */
	PTX_TOK_DOT,         /* .s32  .shared::cta  .2d; .text is without the dot */
	PTX_TOK_INT,
	PTX_TOK_F32,         /* 0f3F800000; .value has the bits */
	PTX_TOK_F64,         /* 0d... and 1.5; .value has the bits */
	PTX_TOK_STRING,      /* .text is between the quotes; there are no escapes */
	PTX_TOK_SHL, PTX_TOK_SHR, PTX_TOK_LE, PTX_TOK_GE, PTX_TOK_EQ, PTX_TOK_NE,
	PTX_TOK_AND_AND, PTX_TOK_OR_OR,
	PTX_TOK_ERROR,       /* lexer->error has the message */
} ptx_token_kind;
/* clang-format on */

typedef struct ptx_token {
	int kind;               /* ptx_token_kind or a character */
	bool is_unsigned;       /* for INT: a number such as 5U, or above INT64_MAX */
	uint32_t line;          /* line number, from 1 */
	uint32_t bytes;         /* length of text */
	const char *text;       /* points into the source */
	const char *line_start; /* first byte of the line of the token */
	uint64_t value;
} ptx_token;

typedef struct ptx_lexer {
	const char *at, *end, *start, *line_start;
	uint32_t line;
	const char *error; /* message for a PTX_TOK_ERROR: a string literal */
} ptx_lexer;

void ptx_lexer_init(ptx_lexer *l, const char *text, size_t text_bytes);
void ptx_lexer_next(ptx_lexer *l, ptx_token *t);

/* Skip statements of a function body after its '{'; in lexer_skip.c.  True: the lexer is at a .shared that starts a
 * statement.  False: the lexer is at the '}' that ends the body, or at the end of the text. *depth is the number of
 * open inner blocks, 0 at the first call. */
bool ptx_lexer_skip_body(ptx_lexer *l, unsigned *depth);

#endif
