/* tree.c — a temporary folder for a copy of sysfs. */
#include "tests/rdma/nic/tree.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/rdma/nic/machine.h"

struct tree tree_create(const char *machine)
{
	struct tree t = { .root = P_tmpdir "/gpuload-nic-XXXXXX" };
	char path[128];

	assert_non_null(mkdtemp(t.root));
	if (machine) {
		snprintf(path, sizeof path, "tests/rdma/nic/machines/%s.txt", machine);
		assert_true(machine_build(path, t.root));
		tree_read(&t);
	}
	return t;
}

void tree_read(struct tree *t)
{
	gpul_error err = { 0 };

	gpul_nic_topology_free(t->topology);
	t->topology = NULL;
	if (gpul_nic_topology_read(t->root, &t->topology, &err))
		fail_msg("%s", err.text);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

void tree_remove(struct tree *t)
{
	gpul_nic_topology_free(t->topology);
	t->topology = NULL;
	assert_int_equal(nftw(t->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}
