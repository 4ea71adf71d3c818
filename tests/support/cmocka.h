/* cmocka.h — cmocka, with the four headers that it needs but does not include. */
#ifndef GPULOAD_TESTS_SUPPORT_CMOCKA_H
#define GPULOAD_TESTS_SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
