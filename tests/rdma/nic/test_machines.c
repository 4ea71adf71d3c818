/* test_machines.c — the NICs, distances and choices on the machines that machines/ describes, each with its expectations. */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "tests/rdma/nic/tree.h"

static void expect_choice(const struct tree *t, const char *gpu, const char *name, const char *class)
{
	char why[GPUL_NIC_WHY_BYTES];
	const gpul_nic *nic = gpul_nic_choose(t->topology, gpu, NULL, 0, why);

	assert_non_null(nic);
	if (strcmp(nic->name, name) != 0)
		fail_msg("GPU %s: chose %s, not %s: %s", gpu, nic->name, name, why);
	assert_string_equal(gpul_nic_distance_name(gpul_nic_measure(t->topology, gpu, nic)), class);
	assert_non_null(strstr(why, name));
}

static void check_line(const struct tree *t, const char *line)
{
	char gpu[32], name[64], class[16], why[GPUL_NIC_WHY_BYTES];
	int text = 0;

	if (sscanf(line, "expect %31s %63s %15s", gpu, name, class) == 3)
		expect_choice(t, gpu, name, class);
	if (sscanf(line, "distance %31s %63s %15s", gpu, name, class) == 3) {
		assert_non_null(gpul_nic_find(t->topology, name));
		assert_string_equal(gpul_nic_distance_name(gpul_nic_measure(t->topology, gpu, gpul_nic_find(t->topology, name))), class);
	}
	if (sscanf(line, "why %31s %n", gpu, &text) == 1 && text) {
		gpul_nic_choose(t->topology, gpu, NULL, 0, why);
		if (!strstr(why, line + text))
			fail_msg("the reason is: %s; it should contain: %s", why, line + text);
	}
}

static void every_machine_gives_the_expected_distances_and_choices(void **state)
{
	glob_t machines;

	(void)state;
	assert_int_equal(glob("tests/rdma/nic/machines/*.txt", 0, NULL, &machines), 0);
	for (size_t i = 0; i < machines.gl_pathc; i++) {
		char name[64], line[512];
		struct tree t;
		FILE *f = fopen(machines.gl_pathv[i], "re");

		assert_int_equal(sscanf(strrchr(machines.gl_pathv[i], '/'), "/%63[^.]", name), 1);
		t = tree_create(name);
		while (fgets(line, sizeof line, f)) {
			line[strcspn(line, "\n")] = '\0';
			check_line(&t, line);
		}
		fclose(f);
		tree_remove(&t);
	}
	assert_true(machines.gl_pathc >= 10);
	globfree(&machines);
}

static void lists_the_ports_cpus_and_links_of_a_dgx(void **state)
{
	struct tree t = tree_create("dgx-h100");
	const gpul_nic *nic = gpul_nic_at(t.topology, 0);

	(void)state;
	assert_int_equal(gpul_nic_count(t.topology), 12);
	assert_string_equal(nic->name, "mlx5_0");
	assert_string_equal(nic->pci, "0000:18:00.0");
	assert_int_equal(nic->node, 0);
	assert_string_equal(nic->cpus, "0-55,112-167");
	assert_string_equal(nic->link, "32.0 GT/s PCIe x16");
	assert_true(nic->active && nic->gbps > 399.9 && nic->gbps < 400.1);
	assert_int_equal(nic->n_ports, 1);
	assert_int_equal(nic->port[0].number, 1);
	assert_string_equal(nic->port[0].state, "ACTIVE");
	assert_string_equal(nic->port[0].physical_state, "LinkUp");
	assert_string_equal(nic->port[0].link_layer, "InfiniBand");
	assert_string_equal(nic->port[0].netdev, "ibp24s0");
	assert_false(nic->by_netdev || nic->virtual_function);
	assert_string_equal(gpul_nic_at(t.topology, 1)->link, "16.0 GT/s PCIe x8 of 32.0 GT/s PCIe x16");
	assert_string_equal(gpul_nic_at(t.topology, 11)->name, "mlx5_11"); /* names are sorted by number, so mlx5_9 comes earlier */
	assert_null(gpul_nic_at(t.topology, 12));
	assert_null(gpul_nic_find(t.topology, "mlx5_12"));
	tree_remove(&t);
}

static void a_port_without_a_gid_gets_its_netdev_from_the_pci_function(void **state)
{
	struct tree t = tree_create("two-sockets");

	(void)state;
	assert_string_equal(gpul_nic_find(t.topology, "mlx5_1")->port[0].netdev, "ens6f1np1");
	assert_false(gpul_nic_find(t.topology, "mlx5_1")->active);
	tree_remove(&t);
}

static void virtual_functions_are_marked(void **state)
{
	struct tree t = tree_create("sr-iov");

	(void)state;
	assert_true(gpul_nic_find(t.topology, "mlx5_0")->virtual_function);
	assert_false(gpul_nic_find(t.topology, "mlx5_2")->virtual_function);
	tree_remove(&t);
}

static void a_software_nic_is_where_its_network_device_is(void **state)
{
	struct tree t = tree_create("rxe");
	const gpul_nic *on_eth = gpul_nic_find(t.topology, "rxe0"), *on_bond = gpul_nic_find(t.topology, "rxe1"),
		       *on_dummy = gpul_nic_find(t.topology, "rxe2");

	(void)state;
	assert_string_equal(on_eth->pci, "0000:00:03.0");
	assert_string_equal(on_bond->pci, "0000:00:03.0");
	assert_string_equal(on_dummy->pci, "");
	assert_true(on_eth->by_netdev && on_bond->by_netdev && !on_dummy->by_netdev);
	assert_string_equal(on_eth->port[0].netdev, "eth0");
	assert_string_equal(on_dummy->port[0].netdev, "dummy0");
	tree_remove(&t);
}

static void a_machine_without_nics_is_not_an_error(void **state)
{
	struct tree t = tree_create("nothing");
	char why[GPUL_NIC_WHY_BYTES];

	(void)state;
	assert_int_equal(gpul_nic_count(t.topology), 0);
	assert_null(gpul_nic_choose(t.topology, "0000:01:00.0", NULL, 0, why));
	assert_string_equal(why, "no RDMA NIC");
	tree_remove(&t);
}

static void a_missing_root_is_an_error(void **state)
{
	gpul_nic_topology *t = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_nic_topology_read("/nonexistent/sys", &t, &err), GPUL_ESYS);
	assert_null(t);
	assert_non_null(strstr(err.text, "/nonexistent/sys"));
}

static void only_the_usable_nics_are_considered(void **state)
{
	static const char *const some[] = { "mlx5_7", "mlx5_9", "absent" }, *const one[] = { "mlx5_1" };
	struct tree t = tree_create("dgx-h100");
	char why[GPUL_NIC_WHY_BYTES];

	(void)state;
	assert_string_equal(gpul_nic_choose(t.topology, "0000:df:00.0", some, 3, why)->name, "mlx5_9");
	assert_string_equal(gpul_nic_choose(t.topology, "0000:df:00.0", one, 1, why)->name, "mlx5_1");
	assert_string_equal(why, "mlx5_1 is the only NIC");
	assert_null(gpul_nic_choose(t.topology, "0000:df:00.0", some + 2, 1, why));
	assert_string_equal(why, "none of the NICs can be used");
	tree_remove(&t);
}

static void without_a_gpu_the_fastest_active_nic_is_chosen(void **state)
{
	static const char *const addresses[] = { NULL, "", "FFFF:00:00.0", "rubbish" };
	struct tree t = tree_create("dgx-h100");
	char why[GPUL_NIC_WHY_BYTES];

	(void)state;
	for (int i = 0; i < 4; i++) {
		const gpul_nic *nic = gpul_nic_choose(t.topology, addresses[i], NULL, 0, why);

		assert_string_equal(nic->name, "mlx5_0");
		assert_string_equal(gpul_nic_distance_name(gpul_nic_measure(t.topology, addresses[i], nic)), "unknown");
		assert_non_null(strstr(why, "mlx5_0 is the fastest NIC with an active port"));
	}
	assert_ptr_equal(gpul_nic_choose(t.topology, NULL, NULL, 0, NULL), gpul_nic_at(t.topology, 0));
	tree_remove(&t);
}

static void pci_addresses_are_read_in_three_forms(void **state)
{
	/* clang-format off */
	static const struct { const char *text, *is; } rows[] = {
		{ "0000:1B:00.0", "0000:1b:00.0" },   { "00000000:1B:00.0", "0000:1b:00.0" }, { "10000:e1:00.1", "10000:e1:00.1" },
		{ "0000:1b:00.f", "0000:1b:00.f" },   { "0000:1b:00", "" },                   { "0000:1b:00.0x", "" },
		{ "", "" },                           { " 0000:1b:00.0", "" },                { "-1:1b:00.0", "" },
		{ "000000000000000000:1b:00.0", "" }, { NULL, "" },
	};
	/* clang-format on */
	char out[GPUL_PCI_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(gpul_pci_parse(rows[i].text, out), rows[i].is[0] != '\0');
		assert_string_equal(out, rows[i].is);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_machine_gives_the_expected_distances_and_choices),
		cmocka_unit_test(lists_the_ports_cpus_and_links_of_a_dgx),
		cmocka_unit_test(a_port_without_a_gid_gets_its_netdev_from_the_pci_function),
		cmocka_unit_test(virtual_functions_are_marked),
		cmocka_unit_test(a_software_nic_is_where_its_network_device_is),
		cmocka_unit_test(a_machine_without_nics_is_not_an_error),
		cmocka_unit_test(a_missing_root_is_an_error),
		cmocka_unit_test(only_the_usable_nics_are_considered),
		cmocka_unit_test(without_a_gpu_the_fastest_active_nic_is_chosen),
		cmocka_unit_test(pci_addresses_are_read_in_three_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
