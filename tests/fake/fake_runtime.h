/* fake_runtime.h — the failing driver with the additional calls of the mini runtime. */
#ifndef GPULOAD_TESTS_FAKE_RUNTIME_H
#define GPULOAD_TESTS_FAKE_RUNTIME_H

#include "tests/fake/fake_driver.h"

/* Like fake_driver(fail_at), but the table has more calls.  Both drivers share the counts and the behaviour. */
const gpul_driver *fake_runtime_driver(int fail_at);

#endif
