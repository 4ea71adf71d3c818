/* mma_fuzz.h — forms of matrix multiplication, and random operands for them. */
#ifndef GPULOAD_TESTS_SOFTCUDA_API_MMA_MMA_FUZZ_H
#define GPULOAD_TESTS_SOFTCUDA_API_MMA_MMA_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* clang-format off */
enum element { F16, BF16, TF32, E4M3, E5M2, F32, F64, S32, BITS, FOURS, PAIRS };  /* FOURS, PAIRS: mma.sp metadata, 2 of 4 or 1 of 2 */
/* clang-format on */

/* Each lane (mma) or thread (wgmma) holds `words` 32-bit words of an operand. */
struct operand {
	enum element type;
	unsigned words;
};

struct form {
	const char *name; /* the PTX instruction */
	struct operand a, b, c;
	enum element d;
	unsigned d_words;
	unsigned threads;        /* 32, or 128 for wgmma */
	unsigned n;              /* wgmma: columns of B */
	struct operand metadata; /* metadata of sparse mma */
	unsigned selector;
	unsigned layout; /* wgmma: LAYOUT_* */
};

/* How wgmma reads A and B: A from registers; rows of 32, 64 or 128 swizzled bytes, 0: not swizzled.  Random contents need no swizzling. */
enum { LAYOUT_REGISTERS = 1, LAYOUT_32 = 2, LAYOUT_64 = 4, LAYOUT_128 = 8, LAYOUT_A_BY_COLUMN = 16, LAYOUT_B_BY_ROW = 32 };

/* Write the name of a form: the instruction, and the layout if it is not 0. */
void form_name(const struct form *f, char out[96]);

extern const struct form forms[];
extern const unsigned n_forms;

/* Return the number of operand words that a thread loads. */
unsigned form_words(const struct form *f);
/* Create a module whose kernel k(in, out) executes this form once per block, with one set of operands each.  The caller frees it. */
char *form_ptx(const struct form *f);

/* Write the operands of set `number`, which are threads * form_words() words. */
void make_operands(const struct form *f, uint64_t seed, unsigned form_index, unsigned number, uint32_t *words);

/* Return the distance of two results in ULP; 0: equal; UINT64_MAX: one is a NaN, or they are infinities of different signs. */
uint64_t distance(enum element type, uint64_t x, uint64_t y);
unsigned element_bits(enum element type);

#endif
