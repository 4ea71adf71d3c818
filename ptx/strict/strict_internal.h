/* strict_internal.h — defines the table of instruction forms, and declares the parts of the check.
 *
 *     base.c         reports
 *     strict.c       .version, .target, and calls of the other checks
 *     strict_text.c  characters
 *     declare.c      variables, parameters, directives
 *     abi.c          modules with registers or local variables of module scope
 *     match.c        finds the form, in forms_*.c, that describes an instruction, or explains why none does
 *     since.c        modifiers and special registers: the oldest .version and .target
 *     operands.c     the operands of an instruction, as its form describes them
 *     matrix.c       the types and operands of mma */
#ifndef GPULOAD_PTX_STRICT_INTERNAL_H
#define GPULOAD_PTX_STRICT_INTERNAL_H

#include "ptx/strict/strict.h"

/* An entry of forms_*.c: a form of instructions that ptxas accepts.
 *
 * ops    opcodes, separated by blanks
 * mods   groups, separated by blanks, of modifiers, separated by '|'.  An instruction has exactly one modifier of each group.
 *            ?a|b  at most one of them      ^a|b  one, directly after the opcode or another ^ modifier; ^?a|b: at most one
 *            !a|b  none of them             +a|b  one or more of them, anywhere, also between types
 *            ...   also any other modifiers
 *        Groups of types have to match in their order; the order of the other modifiers is free.
 * args   one letter per operand:
 *            0 1 2 3  of the n-th type of the instruction      D  of twice the size of the first type
 *            A B      of the first or second type, or larger   V  elements of the last type, or larger: a vector, or one register
 *            w l h    of 32, 64 or 16 bits                     u  an integer of 32 bits
 *            i        an integer that is an address
 *            p        a predicate                              P  one or two predicates
 *            q        a predicate, negated or not, or a number
 *            m        an address                               c  a constant
 *            T        of the first type; in a pair d|p the second is a predicate
 *            M        a matrix of mma
 *            E        d|p, both                                S  of 64 bits, or _
 *            .        anything                                 *  anything, any number of them
 *            /        the following operands may be missing
 *        NULL: operands are not checked
 * ptx    the oldest .version: 78 is 7.8; 0: any
 * sm     the oldest .target; 0: any
 * arch   'a': only targets such as sm_90a, sm_100a or sm_100f;  '9': only sm_90a;  'f': only sm_100a, sm_100f and the like of 10.x
 *        and 11.x;  'b': only 10.0 and 10.3, with a suffix
 * until  the newest .version; 0: any
 * until_sm  the limit `until` applies from this .target on */
struct strict_form {
	const char *ops, *mods, *args;
	unsigned char ptx, sm;
	char arch;
	unsigned char until, until_sm;
};

/* The tables of all forms.  Each ends with an entry whose ops is NULL. */
extern const struct strict_form strict_arithmetic[], strict_float[], strict_convert[], strict_memory[], strict_sync[], strict_special[];

struct strict_seen { /* an instruction that was found correct, apart from its operands, which have not been checked */
	const struct strict_form *form;
	gpul_ptx_inst inst;
	bool used;
};

struct strict { /* the state of a check */
	const gpul_ptx_module *m;
	const gpul_ptx_func *f; /* the function that is being checked; NULL: none */
	const char *file_name;
	unsigned version, sm; /* .version of the module; 78 is 7.8 */
	gpul_error *err;
	struct strict_seen seen[256]; /* cache of matched instructions, indexed by a hash of opcode and modifiers */
};

/* Report an error at a position in the source.  Returns GPUL_EFORMAT. */
gpul_status strict_fail(struct strict *s, uint32_t line, uint32_t column, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
gpul_status strict_fail_inst(struct strict *s, const gpul_ptx_inst *in, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* True if the modifier is a type such as .u32 or .f16x2. text: the name of the modifier. */
bool strict_is_type(unsigned mod, const char *text);
/* Return the n-th type among an instruction's modifiers, from 0; NONE: it has fewer types. */
unsigned strict_type(const struct strict *s, const gpul_ptx_inst *in, unsigned n);

/* True if the instruction has a modifier with this text. */
bool strict_has_text(const struct strict *s, const gpul_ptx_inst *in, const char *text);

/* True if the module's target satisfies the column `arch` of strict_form. */
bool strict_has_arch(const struct strict *s, char arch);

/* The checks of the other files; each returns GPUL_EFORMAT for the first error. */
gpul_status strict_check_text(struct strict *s, const char *text, size_t n_bytes);
gpul_status strict_check_declarations(struct strict *s);
gpul_status strict_check_abi(struct strict *s);
gpul_status strict_check_function(struct strict *s, const gpul_ptx_func *f);
gpul_status strict_check_since(struct strict *s, const gpul_ptx_inst *in);
gpul_status strict_check_specials(struct strict *s, const gpul_ptx_inst *in);
gpul_status strict_check_operands(struct strict *s, const gpul_ptx_inst *in, const struct strict_form *form);

gpul_status strict_check_matrix_types(struct strict *s, const gpul_ptx_inst *in);
gpul_status strict_check_matrix(struct strict *s, const gpul_ptx_inst *in, const gpul_ptx_operand *o, unsigned number);

/* Find the form that describes an instruction. *out is NULL if the tables have no form of its opcode. */
gpul_status strict_match(struct strict *s, const gpul_ptx_inst *in, const struct strict_form **out);

#endif
