/* guard_internal.h — guards accesses to memory that the program can unmap or protect at any time: its own memory and registered
 * memory.  Such an access raises SIGSEGV or SIGBUS; the guard catches the signal, and the process continues. */
#ifndef GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H

#include "softcuda/exec/exec.h"

/* Install the handlers of SIGSEGV and SIGBUS, unless they are installed.  They pass on signals that no guarded access caused.
 * Takes 0.2 us. */
void gpul_guard_install(void);
/* Like gpul_guard_install(), but at most once per tick of the system clock (a few ms).  Call it before accesses to the program's
 * memory.  If the program has installed its own handlers less than a tick ago, those get the signal. */
void gpul_guard_refresh(void);
/* Call work(arg).  Returns false if work was interrupted by an access to *address, which cannot be read or written; *address is 0 if
 * the CPU does not report it.  While work makes such accesses, it must hold no lock and own no memory.  Calls can be nested. only_in:
 * a fault outside the memory of this table is an error of this library and is passed on; NULL: any address. */
bool gpul_guarded(const gpul_exec_memory *only_in, void (*work)(void *arg), void *arg, uint64_t *address);

#endif
