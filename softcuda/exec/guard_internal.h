/* guard_internal.h — guards accesses to memory that the program can unmap or protect at any time: its own memory and registered
 * memory.  Such an access raises SIGSEGV or SIGBUS; the guard catches the signal, and the process continues. */
#ifndef GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H

#include "softcuda/exec/exec.h"

/* Install the handlers of SIGSEGV and SIGBUS, if they are not installed; takes 0.2 us.  For a signal that no guarded access caused, they
 * call the program's handlers. */
void gpul_guard_install(void);
/* Like gpul_guard_install(), but at most once per tick of the system clock (a few ms).  Call it before accesses to the program's
 * memory.  If the program installed handlers less than a tick ago, its handlers get the signal instead. */
void gpul_guard_refresh(void);
/* Call work(arg).  Returns false if work was interrupted by an access to *address, which cannot be read or written; *address is 0 if the
 * CPU does not report it.  While work makes such accesses, it must hold no lock and own no memory.  Calls can be nested.  only_in: only
 * faults in ranges of this table are caught; any other is a bug of this library, for which the program's handler is called.  NULL: all are
 * caught. */
bool gpul_guarded(const gpul_exec_memory *only_in, void (*work)(void *arg), void *arg, uint64_t *address);

#endif
