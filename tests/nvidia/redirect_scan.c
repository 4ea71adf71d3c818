/* redirect_scan.c — redirect_scan OBJECT [x]: prints the name and address of each function of a statically linked CUDA runtime in a
* file, as nvidia/redirect finds them; with x, it ignores the symbol table and compares the code with libcudart_static.a. */
#include <stdio.h>

#include "nvidia/redirect/redirect_internal.h"

int main(int argc, char **argv)
{
	static struct static_runtime r;
	struct mapped object = { 0 };
	char version[16];

	if (argc < 2 || !map_file(argv[1], &object))
		return 1;
	if (argc < 3)
		add_symbols(object, SHT_SYMTAB, 0, 0, &r);
	if (!r.n_calls)
		find_by_archive(object, argv[1], &r);
	for (size_t i = 0; i < r.n_calls; i++)
		printf("%s %#lx\n", r.calls[i].name, (unsigned long)r.calls[i].address);
	toolkit_version(object, version);
	printf("toolkit '%s'\n", version);
	unmap_file(&r.names);
	unmap_file(&object);
	return 0;
}
