/* fake_runtime.h — the failing driver with the additional calls of the mini runtime. */
#ifndef GPULOAD_TESTS_FAKE_RUNTIME_H
#define GPULOAD_TESTS_FAKE_RUNTIME_H

#include "tests/fake/fake_driver.h"

/* Like fake_driver(fail_at), but the table also has the calls that the CUDA runtime needs.  Both drivers share counts and behaviour. */
const gpul_driver *fake_runtime_driver(int fail_at);

#endif
