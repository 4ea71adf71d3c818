/* test_verbs_devices.c — the list of all attributes from a libibverbs whose n-th call fails. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/own_folder.h"
#include "rdma/verbs/verbs_devices.h"

static int *fail_at, *calls, *alive;

static gpul_verbs_devices read_all(void)
{
	gpul_verbs_devices d = { 0 };
	gpul_error err = { 0 };

	if (gpul_verbs_devices_read(&d, &err))
		fail_msg("%s", err.text);
	return d;
}

static const gpul_verbs_gid_info *gid_at(const gpul_verbs_port_info *p, unsigned index)
{
	for (size_t i = 0; i < p->n_gids; i++)
		if (p->gids[i].index == index)
			return &p->gids[i];
	fail_msg("no GID %u", index);
	return NULL;
}

static uint64_t number(const gpul_verbs_device_info *d, const char *name)
{
	for (size_t i = 0; i < d->n_numbers; i++)
		if (!strcmp(d->numbers[i].name, name))
			return d->numbers[i].value;
	fail_msg("no number %s", name);
	return 0;
}

static void lists_the_attributes_of_an_infiniband_device(void **state)
{
	gpul_verbs_devices all = read_all();
	const gpul_verbs_device_info *d = &all.at[0];
	const gpul_verbs_port_info *p = &d->ports[0];

	(void)state;
	assert_int_equal(all.n, 4);
	assert_string_equal(d->name, "mlx5_0");
	assert_string_equal(d->error, "");
	assert_true(d->usable && d->dmabuf);
	assert_string_equal(d->firmware, "28.39.1002");
	assert_string_equal(d->node_guid, "506b:4b03:00a1:b2c3");
	assert_string_equal(d->atomics, "device");
	assert_string_equal(d->on_demand_paging, "send write");
	assert_string_equal(d->capabilities, "xrc write_end_padding");
	assert_int_equal(d->max_inline_bytes, 220);
	assert_int_equal(number(d, "max_qp"), 131072);
	assert_true(number(d, "max_mr_size") == UINT64_MAX);
	assert_int_equal(number(d, "max_ah"), 0); /* 0, although the provider reports -1 */
	assert_int_equal(number(d, "hca_core_clock"), 1000000);
	assert_int_equal(d->n_ports, 1);
	assert_true(p->active && p->gbps > 399.9 && p->gbps < 400.1);
	assert_int_equal(p->width, 4);
	assert_string_equal(p->state, "ACTIVE");
	assert_string_equal(p->physical_state, "LinkUp");
	assert_string_equal(p->link_layer, "InfiniBand");
	assert_int_equal(p->mtu, 4096);
	assert_int_equal(p->lid, 17);
	assert_int_equal(p->sm_lid, 1);
	assert_int_equal(p->chosen_gid, 0);
	gpul_verbs_devices_free(&all);
	assert_int_equal(*alive, 0);
}

static void lists_the_gids_of_a_roce_device_and_chooses_one(void **state)
{
	gpul_verbs_devices all = read_all();
	const gpul_verbs_device_info *d = &all.at[1];

	(void)state;
	assert_int_equal(d->n_ports, 2);
	assert_int_equal(d->ports[0].n_gids, 4);
	assert_int_equal(d->ports[0].chosen_gid, 3);
	assert_string_equal(gid_at(&d->ports[0], 3)->type, "RoCE v2");
	assert_string_equal(gid_at(&d->ports[0], 3)->address, "192.168.7.1");
	assert_true(gid_at(&d->ports[0], 3)->ipv4);
	assert_string_equal(gid_at(&d->ports[0], 0)->type, "RoCE v1");
	assert_true(gid_at(&d->ports[0], 0)->link_local);
	assert_string_equal(gid_at(&d->ports[0], 0)->netdev, "lo"); /* the interface with index 1 */
	assert_int_equal(d->ports[0].mtu, 1024);
	assert_int_equal(d->ports[0].max_mtu, 4096);
	assert_string_equal(d->on_demand_paging, "none"); /* the fake library has only ibv_query_device, which does not report it */
	assert_string_equal(d->capabilities, "xrc");
	assert_false(d->ports[1].active);
	assert_string_equal(d->ports[1].physical_state, "Disabled");
	assert_int_equal(d->ports[1].chosen_gid, -1); /* the port has only link-local addresses */
	assert_non_null(strstr(d->ports[1].gid_why, "link-local"));
	gpul_verbs_devices_free(&all);
}

static void lists_devices_that_cannot_be_used_with_the_reason(void **state)
{
	gpul_verbs_devices all = read_all();

	(void)state;
	assert_false(all.at[2].usable);
	assert_string_equal(all.at[2].node_type, "iWARP NIC");
	assert_non_null(strstr(all.at[3].error, "ibv_open_device: Permission denied: no permission for /dev/infiniband/uverbs*"));
	assert_int_equal(all.at[3].n_ports, 0);
	gpul_verbs_devices_free(&all);
}

static void an_empty_list_is_not_an_error(void **state)
{
	gpul_verbs_devices all;

	(void)state;
	setenv("FAKE_VERBS_DEVICES", "0", 1);
	all = read_all();
	assert_int_equal(all.n, 0);
	gpul_verbs_devices_free(&all);
	unsetenv("FAKE_VERBS_DEVICES");
	assert_int_equal(*alive, 0);
}

static void releases_everything_whichever_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		gpul_verbs_devices all = { 0 };
		gpul_error err = { 0 };
		gpul_status st;
		int used;

		*fail_at = n;
		*calls = 0;
		st = gpul_verbs_devices_read(&all, &err);
		used = *calls;
		*fail_at = 0;
		assert_int_equal(st, n == 1 ? GPUL_EVERBS : GPUL_OK); /* a failing call for one device sets only .error of this device */
		if (st) {
			assert_non_null(strstr(err.text, "ibv_get_device_list"));
			assert_null(all.at);
		} else {
			assert_int_equal(all.n, 4);
		}
		gpul_verbs_devices_free(&all);
		assert_int_equal(*alive, 0);
		if (used < n) {
			assert_true(n > 20);
			return;
		}
	}
}

static int open_fake(void **state)
{
	static char path[4096];
	void *handle;

	(void)state;
	if (!gpul_own_folder(path, sizeof path - 16))
		return -1;
	strcat(path, "/so_devices.so");
	setenv("GPULOAD_IBVERBS", path, 1);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return -1;
	fail_at = dlsym(handle, "fake_verbs_fail_at");
	calls = dlsym(handle, "fake_verbs_calls");
	alive = dlsym(handle, "fake_verbs_alive");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_the_attributes_of_an_infiniband_device),
		cmocka_unit_test(lists_the_gids_of_a_roce_device_and_chooses_one),
		cmocka_unit_test(lists_devices_that_cannot_be_used_with_the_reason),
		cmocka_unit_test(an_empty_list_is_not_an_error),
		cmocka_unit_test(releases_everything_whichever_call_fails),
	};

	if (open_fake(NULL) || !calls) {
		printf("skipped: built without libibverbs\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
