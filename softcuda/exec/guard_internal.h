/* guard_internal.h — guards accesses to memory that the program can unmap or protect at any time: its own memory and registered
 * memory.  Such an access raises SIGSEGV or SIGBUS; the guard catches the signal, and the process continues. */
#ifndef GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_GUARD_INTERNAL_H

#include "softcuda/exec/exec.h"

/* Install the handlers of SIGSEGV and SIGBUS, if needed; takes 0.2 us.  For unguarded accesses, they call the program's handlers. */
void gpul_guard_install(void);
/* Like gpul_guard_install(), but at most once per tick of the system clock (a few ms).  Call it before accesses to the program's
 * memory.  If the program installed handlers less than a tick ago, its handlers get the signal instead. */
void gpul_guard_refresh(void);
/* Call work(arg).  Returns false if work was interrupted by an access to *address, which cannot be read or written; *address is 0 if
 * the CPU does not report it.  While work makes accesses that can fail, it must hold no lock and own no memory, because it may not
 * continue.  Calls can be nested.  If only_in is not NULL, only faults in ranges of this table are caught; any other fault is a bug
 * of this library, and the program's handler is called. */
bool gpul_guarded(const gpul_exec_memory *only_in, void (*work)(void *arg), void *arg, uint64_t *address);

#endif
