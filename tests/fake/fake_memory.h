/* fake_memory.h — the failing driver with the calls that shared memory needs: cuMem*, cuMemHostRegister, cuIpc*.
 *
 * An allocation is a memfd, a reservation an empty mapping, access is mprotect: enough for the CPU to use what was made.
 * Imports work in the same process; cuIpcOpenMemHandle gives the address back that the handle stands for. */
#ifndef GPULOAD_TESTS_FAKE_MEMORY_H
#define GPULOAD_TESTS_FAKE_MEMORY_H

#include "tests/fake/fake_driver.h"

/* Like fake_driver_failing(): the same counts, the same behaviour, more calls. */
const gpul_driver *fake_memory_driver(int fail_at, CUresult with);

#endif
