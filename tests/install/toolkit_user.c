/* toolkit_user.c — opens a library of the installed toolkit through the installed libgpuload; test_install.py builds it. */
#include <stdio.h>

#include "core/toolkit.h"

static void opened(void)
{
}

int main(void)
{
	static struct {
		int (*answer)(void);
	} table;
	static const char *const names[] = { "libgpuload-toolkit-test.so", NULL };
	/* clang-format off */
	static const gpul_toolkit_entry entries[] = { { "answer", 0 }, { NULL, 0 } };
	static gpul_toolkit_library library = {
		.variable = "GPULOAD_TOOLKIT_TEST", .names = names, .entries = entries, .table = &table, .opened = opened,
		.needed_for = "test", .otherwise = "", .oldest = "CUDA 12.0",
	};
	/* clang-format on */
	gpul_error err = { 0 };

	if (gpul_toolkit_open(&library, &err)) {
		fprintf(stderr, "toolkit_user: %s\n", err.text);
		return 1;
	}
	printf("%d from %s\n", table.answer(), library.path);
	return 0;
}
