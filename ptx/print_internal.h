/* print_internal.h — defines the output buffer, and declares the functions that print parts of a module. */
#ifndef GPULOAD_PTX_PRINT_INTERNAL_H
#define GPULOAD_PTX_PRINT_INTERNAL_H

#include "ptx/module.h"

/* The output: either a buffer that grows, or a fixed buffer, which drops the text that does not fit. */
typedef struct ptx_out {
	char *text;
	size_t n, room; /* bytes of text, including text that a fixed buffer has dropped; size of the buffer */
	bool fixed;
	bool failed; /* set when out of memory */
	const gpul_ptx_module *m;
	const gpul_ptx_func *f;
} ptx_out;

void ptx_put(ptx_out *o, const char *text);
void ptx_put_bytes(ptx_out *o, const char *text, size_t n_bytes);
void ptx_put_int(ptx_out *o, int64_t i);
void ptx_put_unsigned(ptx_out *o, uint64_t u);
void ptx_put_hex(ptx_out *o, const char *before, uint64_t u, int n_digits);
void ptx_put_mod(ptx_out *o, unsigned mod); /* prints the dot, too */
void ptx_put_offset(ptx_out *o, int64_t i); /* prints +8, +-8, or nothing for 0 */
void ptx_put_operand(ptx_out *o, const gpul_ptx_operand *op);
void ptx_put_inst(ptx_out *o, const gpul_ptx_inst *in); /* prints the ';', too */

/* Print .version, .target and .address_size. */
void ptx_put_head(ptx_out *o, uint32_t major, uint32_t minor, const char *target, uint32_t address_size);

/* Print one entry of a module's tables with its parts and its line end. */
void ptx_put_var(ptx_out *o, const gpul_ptx_var *v);
void ptx_put_func(ptx_out *o, const gpul_ptx_func *f);
void ptx_put_func_declaration(ptx_out *o, const gpul_ptx_func *f); /* prints f without its body */
void ptx_put_file(ptx_out *o, const gpul_ptx_file *f, const char *path);
void ptx_put_alias(ptx_out *o, const gpul_ptx_alias *a);
void ptx_put_pragma(ptx_out *o, uint32_t row);

#endif
