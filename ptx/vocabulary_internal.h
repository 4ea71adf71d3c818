/* vocabulary_internal.h — finds the number of a keyword by its text. */
#ifndef GPULOAD_PTX_VOCABULARY_INTERNAL_H
#define GPULOAD_PTX_VOCABULARY_INTERNAL_H

#include <stdint.h>

/* Fills the hash tables at the first call; required before the functions below.  Any thread. */
void ptx_vocabulary_init(void);

/* Find the number of a keyword; -1: no such keyword. */
int ptx_find_opcode(const char *text, uint32_t bytes);
int ptx_find_mod(const char *text, uint32_t bytes);     /* text without the dot */
int ptx_find_special(const char *text, uint32_t bytes); /* text without the '%' */

/* Return the opcode whose spelling is nearest to text; NULL: none is near. */
const char *ptx_near_opcode(const char *text, uint32_t bytes);

/* Get the smallest and largest number of operands of an opcode with any modifiers. */
void ptx_operand_limits(unsigned opcode, unsigned *least, unsigned *most);

#endif
