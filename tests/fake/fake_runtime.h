/* fake_runtime.h — the failing driver with the calls that only the mini runtime makes. */
#ifndef GPULOAD_TESTS_FAKE_RUNTIME_H
#define GPULOAD_TESTS_FAKE_RUNTIME_H

#include "tests/fake/fake_driver.h"

/* Like fake_driver(fail_at): the same counts, the same behaviour, more calls. */
const gpul_driver *fake_runtime_driver(int fail_at);

#endif
