/* nvcc_user.c — prints the path of nvcc; test_install.py builds it with loader/program/program_find.c, without the path that configure.py
 * found. */
#include <stdio.h>

#include "loader/program/program.h"

int main(void)
{
	char path[GPUL_PROGRAM_PATH_BYTES];

	printf("%s\n", gpul_program_find_nvcc(path) ? path : "none");
	return 0;
}
