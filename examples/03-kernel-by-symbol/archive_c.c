/* archive_c.c — the kernels of libvec.a from plain C.
 *
 * C has no word for a kernel.  It needs none: the stub is a function, and its address is all that is
 * asked for; it is never called, so the parameters do not matter.  A C++ kernel's stub has a mangled
 * name (nm libvec.a shows it), which C reaches by __asm__. */
#include "trial.h"

extern void VecAdd(void);
extern void VecScale(void) __asm__("_Z8VecScalePffi");

int main(void)
{
	struct trial t;
	int bad = trial_open(&t) ||
		  trial_by_symbol(&t, (const void *)VecAdd, "VecAdd of libvec.a, from C", 3) ||
		  trial_by_symbol(&t, (const void *)VecScale, "VecScale of libvec.a, from C", 1.5f);

	trial_close(&t);
	return bad;
}
