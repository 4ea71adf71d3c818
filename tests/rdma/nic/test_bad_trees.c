/* test_bad_trees.c — a damaged sysfs makes values unknown; it is never a crash, an endless loop or a wait. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/cmocka.h"
#include "tests/rdma/nic/machine.h"
#include "tests/rdma/nic/tree.h"

static const char port[] = "class/infiniband/mlx5_0/ports/1";

/* Call everything that reads the topology. */
static void use_all(struct tree *t)
{
	char why[GPUL_NIC_WHY_BYTES];

	tree_read(t);
	for (size_t i = 0; i < gpul_nic_count(t->topology); i++)
		gpul_nic_measure(t->topology, "0000:01:00.0", gpul_nic_at(t->topology, i));
	gpul_nic_choose(t->topology, "0000:01:00.0", NULL, 0, why);
	gpul_nic_choose(t->topology, NULL, NULL, 0, why);
}

static void put(const struct tree *t, const char *folder, const char *name, const char *text)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	assert_true(machine_file(t->root, path, text));
}

static void links_may_be_loops_or_lead_nowhere(void **state)
{
	struct tree t = tree_create(NULL);

	(void)state;
	assert_true(machine_link(t.root, "class/infiniband/loop0", "loop1"));
	assert_true(machine_link(t.root, "class/infiniband/loop1", "loop0"));
	assert_true(machine_link(t.root, "class/infiniband/nowhere", "../../devices/nowhere"));
	assert_true(machine_link(t.root, "class/infiniband/self/device", "device"));
	assert_true(machine_link(t.root, "class/infiniband/outside/device", "/proc/self"));
	assert_true(machine_link(t.root, "bus/pci/devices/0000:01:00.0", "0000:02:00.0"));
	assert_true(machine_link(t.root, "bus/pci/devices/0000:02:00.0", "0000:01:00.0"));
	assert_true(machine_link(t.root, "class/net/a/lower_b", "../b"));
	assert_true(machine_link(t.root, "class/net/b/lower_a", "../a"));
	put(&t, "class/infiniband/rxe0", "parent", "a");
	put(&t, "class/infiniband/rxe0/ports/1", "state", "4: ACTIVE");
	use_all(&t);
	assert_int_equal(gpul_nic_count(t.topology), 6);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(gpul_nic_at(t.topology, i)->pci, "");
	tree_remove(&t);
}

static void files_may_be_missing(void **state)
{
	struct tree t = tree_create(NULL);
	const gpul_nic *nic;

	(void)state;
	assert_true(machine_link(t.root, "devices/pci0000:00/0000:00:01.0/infiniband/mlx5_0/device", "../../../0000:00:01.0"));
	assert_true(machine_link(t.root, "class/infiniband/mlx5_0", "../../devices/pci0000:00/0000:00:01.0/infiniband/mlx5_0"));
	assert_true(machine_file(t.root, "class/infiniband/mlx5_0/ports/1/empty", ""));
	use_all(&t); /* bus/pci is missing, too */
	nic = gpul_nic_at(t.topology, 0);
	assert_string_equal(nic->pci, "");
	assert_true(machine_link(t.root, "bus/pci/devices/0000:00:01.0", "../../../devices/pci0000:00/0000:00:01.0"));
	use_all(&t);
	nic = gpul_nic_at(t.topology, 0);
	assert_string_equal(nic->pci, "0000:00:01.0");
	assert_int_equal(nic->node, -1);
	assert_string_equal(nic->cpus, "");
	assert_int_equal(nic->n_ports, 1);
	assert_false(nic->active);
	assert_string_equal(nic->port[0].state, "");
	tree_remove(&t);
}

static void contents_may_be_rubbish(void **state)
{
	/* clang-format off */
	static const char *const rubbish[] = {
		"", "\n", "x", "-", "99999999999999999999", "-99999999999999999999", "0x", "nan", "inf Gb/sec", "-1 Gb/sec", "1e300",
		"4: A\x1b[31mCTIVE", "4:", ": ", "4: 0123456789012345678901234567890123456789012345678901234567890123456789",
	};
	/* clang-format on */
	struct tree t = tree_create("flat-vm");

	(void)state;
	assert_true(machine_link(t.root, "class/infiniband/mlx5_0", "rdmap0s6"));
	for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
		static const char *const of_port[] = { "state", "phys_state", "rate", "link_layer", "gid_attrs/ndevs/0" },
					 *const of_pci[] = { "numa_node",
							     "class",
							     "vendor",
							     "local_cpulist",
							     "current_link_speed",
							     "max_link_speed",
							     "current_link_width",
							     "max_link_width" };
		const gpul_nic *nic;

		for (size_t k = 0; k < sizeof of_port / sizeof *of_port; k++)
			put(&t, port, of_port[k], rubbish[i]);
		for (size_t k = 0; k < sizeof of_pci / sizeof *of_pci; k++)
			put(&t, "bus/pci/devices/0000:00:06.0", of_pci[k], rubbish[i]);
		use_all(&t);
		nic = gpul_nic_find(t.topology, "mlx5_0");
		assert_non_null(nic);
		assert_true(nic->gbps >= 0 && nic->gbps < 1e6);
		assert_null(strchr(nic->port[0].state, '\x1b'));
	}
	tree_remove(&t);
}

static void names_may_be_strange(void **state)
{
	struct tree t = tree_create(NULL);
	char name[256], path[300];

	(void)state;
	memset(name, 'n', 250);
	name[250] = '\0';
	snprintf(path, sizeof path, "class/infiniband/%s", name);
	put(&t, path, "state", "x");
	put(&t, "class/infiniband/mlx5_0/ports/0", "state", "4: ACTIVE");
	put(&t, "class/infiniband/mlx5_0/ports/-1", "state", "4: ACTIVE");
	put(&t, "class/infiniband/mlx5_0/ports/99999999999999999999", "state", "4: ACTIVE");
	put(&t, "class/infiniband/mlx5_0/ports/one", "state", "4: ACTIVE");
	for (int i = 1; i <= 40; i++) {
		snprintf(path, sizeof path, "class/infiniband/mlx5_0/ports/%d", i);
		put(&t, path, "state", "4: ACTIVE");
	}
	put(&t, "bus/pci/devices/0000:zz:00.0", "class", "0x030200");
	put(&t, "bus/pci/devices/nonsense", "class", "0x030200");
	put(&t, "class/infiniband", "file", "not a folder");
	use_all(&t);
	assert_int_equal(gpul_nic_count(t.topology), 2);
	assert_int_equal(gpul_nic_find(t.topology, "mlx5_0")->n_ports, GPUL_NIC_MAX_PORTS);
	tree_remove(&t);
}

static void a_pipe_instead_of_a_file_does_not_block(void **state)
{
	struct tree t = tree_create("flat-vm");
	char path[256];

	(void)state;
	snprintf(path, sizeof path, "%s/class/infiniband/rdmap0s6/ports/1/state", t.root);
	assert_int_equal(remove(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	use_all(&t);
	assert_false(gpul_nic_find(t.topology, "rdmap0s6")->active);
	tree_remove(&t);
}

static void a_very_deep_path_is_treated_as_no_pci_device(void **state)
{
	struct tree t = tree_create(NULL);
	char path[1024] = "devices/pci0000:00", target[1100];

	(void)state;
	for (int i = 1; i < 40; i++)
		snprintf(path + strlen(path), sizeof path - strlen(path), "/0000:%02x:00.0", i);
	snprintf(target, sizeof target, "../../%s", path);
	assert_true(machine_link(t.root, "class/infiniband/mlx5_0/device", "../../../deep"));
	assert_true(machine_link(t.root, "deep", path));
	snprintf(target, sizeof target, "%s/numa_node", path);
	assert_true(machine_file(t.root, target, "0"));
	snprintf(target, sizeof target, "../../../%s", path);
	assert_true(machine_link(t.root, "bus/pci/devices/0000:27:00.0", target));
	use_all(&t);
	assert_string_equal(gpul_nic_at(t.topology, 0)->pci, "");
	tree_remove(&t);
}

/* Replace each file and link of a machine, one at a time, by invalid contents. */
static void any_damaged_entry_leaves_the_rest_readable(void **state)
{
	/* clang-format off */
	static const char *const entries[] = {
		"class/infiniband/mlx5_0", "class/infiniband/mlx5_0/device", "class/infiniband/mlx5_0/ports",
		"class/infiniband", "bus/pci/devices/0000:5e:00.2", "bus/pci/devices", "bus/pci/devices/0000:5e:00.2/physfn",
		"devices/pci0000:3a", "devices",
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
		struct tree t = tree_create("sr-iov");
		char from[256], to[256];

		snprintf(from, sizeof from, "%s/%s", t.root, entries[i]);
		snprintf(to, sizeof to, "%s/damaged", t.root);
		assert_int_equal(rename(from, to), 0);
		assert_true(machine_file(t.root, entries[i], "rubbish"));
		use_all(&t);
		tree_remove(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_may_be_loops_or_lead_nowhere),
		cmocka_unit_test(files_may_be_missing),
		cmocka_unit_test(contents_may_be_rubbish),
		cmocka_unit_test(names_may_be_strange),
		cmocka_unit_test(a_pipe_instead_of_a_file_does_not_block),
		cmocka_unit_test(a_very_deep_path_is_treated_as_no_pci_device),
		cmocka_unit_test(any_damaged_entry_leaves_the_rest_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
