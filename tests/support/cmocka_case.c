/* cmocka_case.c — is linked into every cmocka test: its one argument selects cases by name, with * and ?.
 *
 *     build/tests/core/test_core 'file_*' */
#include "tests/support/cmocka.h"

/* glibc passes the arguments of main() to constructors. */
__attribute__((constructor)) static void select_cases(int n, char **words)
{
	if (n == 2 && words[1][0] != '-')
		cmocka_set_test_filter(words[1]);
}
