/* invoke.cpp — invoke_VecAdd() from C++. */
#include "invoke_c.c"
