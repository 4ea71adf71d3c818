/* main.c — a C program that looks up the kernel of a host stub and prints its name or the error.  The stub is the
 * function STUB or, if STUB_IN_LIBRARY is defined, the symbol VecAdd of the library argv[1]. If EXPLAIN is defined,
 * the program prints the explanation for a stub without a kernel. */
#include <dlfcn.h>
#include <stdio.h>

#include "loader/symbol/symbol.h"

#ifdef STUB
extern void STUB(void);
#endif

void not_a_kernel(void);
void not_a_kernel(void)
{
}

int main(int argc, char **argv)
{
	const void *stub = NULL;
	const gpul_driver *drv;
	gpul_kernel *k = NULL;
	gpul_error err = { 0 };

	(void)argc, (void)argv;
#ifdef STUB
	stub = (const void *)STUB;
#endif
#ifdef STUB_IN_LIBRARY
	stub = dlsym(dlopen(argv[1], RTLD_NOW), "VecAdd");
#endif
#ifdef EXPLAIN
	gpul_symbol_explain(stub, cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", &err);
	return printf("%s\n", err.text) < 0;
#endif
	if (gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err) == GPUL_OK && gpul_kernel_by_symbol(drv, stub, &k, &err) == GPUL_OK)
		printf("kernel %s\n", gpul_kernel_name(k));
	else
		printf("%s\n", err.text);
	gpul_kernel_release(k);
	return 0;
}
