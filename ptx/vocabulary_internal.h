/* vocabulary_internal.h — finds the number of a PTX keyword by its text. */
#ifndef GPULOAD_PTX_VOCABULARY_INTERNAL_H
#define GPULOAD_PTX_VOCABULARY_INTERNAL_H

#include <stdint.h>

/* Fill the hash tables at the first call.  This must be called before the functions below.  Any thread may call. */
void ptx_vocabulary_init(void);

/* Find the number of a keyword. -1: there is no such keyword. */
int ptx_find_opcode(const char *text, uint32_t bytes);
int ptx_find_mod(const char *text, uint32_t bytes);     /* `text` does not contain the dot */
int ptx_find_special(const char *text, uint32_t bytes); /* `text` does not contain the '%' */

/* Return the opcode with the most similar spelling; NULL: no opcode is similar. */
const char *ptx_near_opcode(const char *text, uint32_t bytes);

/* Get the smallest and largest number of operands that an opcode may have with any modifiers. */
void ptx_operand_limits(unsigned opcode, unsigned *least, unsigned *most);

#endif
