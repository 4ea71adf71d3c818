/* guard_internal.h — accesses to memory that a program can unmap or protect at any time: host memory that is not this driver's, and
 * registered memory.  Such an access raises SIGSEGV or SIGBUS; the guard returns from it, and the process lives on. */
#ifndef GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H

#include "softcuda/exec/exec.h"

/* Install the handlers of SIGSEGV and SIGBUS, unless they are installed; they pass on every signal that is not of a guarded access.
 * Takes 0.2 us. */
void gpul_guard_install(void);
/* The same, but at most once for each tick of the system's clock (some ms): before accesses to memory of the program.  An access less than
 * a tick after the program has installed its own handlers goes to those. */
void gpul_guard_refresh(void);
/* Call work(arg).  False: it was left at an access to *address, which cannot be read or written; 0: the CPU does not report the
 * address.  work must hold no lock and own no memory while it makes such accesses.  Calls can be nested.
 * only_in: a signal elsewhere than in the memory of this table is an error of this library, and is passed on; NULL: anywhere. */
bool gpul_guarded(const gpul_exec_memory *only_in, void (*work)(void *arg), void *arg, uint64_t *address);

#endif
