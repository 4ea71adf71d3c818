/* fake_memory.h — the failing driver with the calls that shared memory needs: cuMem*, cuMemHostRegister, cuIpc*.
 *
 * An allocation is a memfd, a reservation is an empty mapping, and access is set by mprotect, so that the CPU can use the
 * memory.  Imports work in the same process; cuIpcOpenMemHandle returns the address that the handle contains. */
#ifndef GPULOAD_TESTS_FAKE_MEMORY_H
#define GPULOAD_TESTS_FAKE_MEMORY_H

#include "tests/fake/fake_driver.h"

/* Like fake_driver_failing(), but the table also has the calls for cuMem* handles and IPC.  Both drivers share counts and behaviour. */
const gpul_driver *fake_memory_driver(int fail_at, CUresult with);

#endif
