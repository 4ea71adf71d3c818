/* build_machine.c — build_machine FILE DIR: build the tree of a description of machines/ in a folder, for scripts. */
#include <stdio.h>

#include "tests/rdma/nic/machine.h"

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: build_machine FILE DIR\n");
		return 2;
	}
	return !machine_build(argv[1], argv[2]);
}
