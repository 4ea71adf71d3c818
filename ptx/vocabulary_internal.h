/* vocabulary_internal.h — from a word's text to its number. */
#ifndef GPULOAD_PTX_VOCABULARY_INTERNAL_H
#define GPULOAD_PTX_VOCABULARY_INTERNAL_H

#include <stdint.h>

/* Call once before the finders; cheap after the first time; any thread. */
void ptx_vocabulary_init(void);

/* -1: no such word. */
int ptx_find_opcode(const char *text, uint32_t bytes);
int ptx_find_mod(const char *text, uint32_t bytes);     /* without the dot */
int ptx_find_special(const char *text, uint32_t bytes); /* without the '%' */

/* The opcode spelt most like text; NULL: none is near. */
const char *ptx_near_opcode(const char *text, uint32_t bytes);

/* How many operands an opcode takes, whatever its modifiers. */
void ptx_operand_limits(unsigned opcode, unsigned *least, unsigned *most);

#endif
