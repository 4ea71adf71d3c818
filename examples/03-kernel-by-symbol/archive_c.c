/* archive_c.c — launches kernels of libvec.a from plain C.
 *
 * C needs only the address of a kernel's host stub, which is an ordinary function.  It does not call
 * the stub, so the declared parameters do not matter.  The stub of a C++ kernel has a mangled name
 * (nm libvec.a prints it), which C can declare with __asm__. */
#include "trial.h"

extern void VecAdd(void);
extern void VecScale(void) __asm__("_Z8VecScalePffi");

int main(void)
{
	struct trial t;
	int bad = trial_open(&t) || trial_by_symbol(&t, (const void *)VecAdd, "VecAdd of libvec.a, from C", 3) ||
		  trial_by_symbol(&t, (const void *)VecScale, "VecScale of libvec.a, from C", 1.5f);

	trial_close(&t);
	return bad;
}
