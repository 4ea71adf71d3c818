/* own_c.c — launches a kernel of the same program from plain C; own_kernel.cu is another object of the program. */
#include "trial.h"

extern void Add2(void) __asm__("_Z4Add2PKfS0_Pfi");

int main(void)
{
	struct trial t;
	int bad = trial_open(&t) || trial_by_symbol(&t, (const void *)Add2, "Add2 of this program, from C", 4);

	trial_close(&t);
	return bad;
}
