/* test_ofi_open.c — open and connect: the entry that is used, refusals, and failing calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/ofi/ends.h"
#include "tests/support/cmocka.h"
#include "core/log.h"

#if GPUL_HAVE_LIBFABRIC

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

static int reset(void **state)
{
	(void)state;
	gpul_ofi_use(fake_ofi(0));
	return 0;
}

/* Open with these options; returns the name and reason of the chosen entry. */
static gpul_rdma_device_info opened(const gpul_rdma_device_desc *desc)
{
	gpul_rdma_device_info about = { 0 };
	gpul_error err = { 0 };
	void *device;

	if (gpul_rdma_libfabric.open(desc, &device, &err))
		fail_msg("%s", err.text);
	gpul_rdma_libfabric.about(device, &about);
	gpul_rdma_libfabric.close(device);
	assert_int_equal(fake_ofi_alive(), 0);
	return about;
}

static gpul_error refused(const gpul_rdma_device_desc *desc, gpul_status expected)
{
	gpul_error err = { 0 };
	void *device = NULL;

	assert_int_equal(gpul_rdma_libfabric.open(desc, &device, &err), expected);
	assert_null(device);
	assert_null(strchr(err.text, '\n'));
	assert_int_equal(fake_ofi_alive(), 0);
	return err;
}

static void takes_an_interface_with_a_route_before_the_loopback_one(void **state)
{
	gpul_rdma_device_info about = opened(&(gpul_rdma_device_desc){ .gpu = -1 });

	(void)state;
	assert_string_equal(about.name, "tcp;ofi_rxm on eth0 (10.9.0.1)");
	assert_string_equal(about.backend, "libfabric");
	assert_int_equal(about.inline_bytes, 0); /* 0, because ofi_rxm crashes if it is closed while injected writes are in flight */
	assert_true(about.ordered && about.completes_in_order && !about.dmabuf);
	about = opened(&(gpul_rdma_device_desc){ .gpu = -1, .device = "eth1" });
	assert_string_equal(about.name, "tcp;ofi_rxm on eth1 (10.9.1.1)");
	fake_ofi_behave()->n_entries = 1;
	about = opened(&(gpul_rdma_device_desc){ .gpu = -1 });
	assert_string_equal(about.name, "tcp;ofi_rxm on lo (127.0.0.1)");
	/* If only loop-back addresses exist, IPv4 is preferred; a connection later uses the address of its socket. */
	fake_ofi_behave()->entries[1] = fake_ofi_behave()->entries[0];
	fake_ofi_behave()->entries[0].address = "::1";
	fake_ofi_behave()->n_entries = 2;
	about = opened(&(gpul_rdma_device_desc){ .gpu = -1 });
	assert_string_equal(about.name, "tcp;ofi_rxm on lo (127.0.0.1)");
	fake_ofi(0);
	fake_ofi_behave()->entries[2].address = "fd00::2";
	about = opened(&(gpul_rdma_device_desc){ .gpu = -1, .device = "eth0" });
	assert_string_equal(about.name, "tcp;ofi_rxm on eth0"); /* the entry of eth0 whose address is not link-local */
}

static void takes_shm_only_by_name(void **state)
{
	fake_ofi_behaviour *b = fake_ofi_behave();

	(void)state;
	assert_string_equal(opened(&(gpul_rdma_device_desc){ .gpu = -1, .provider = "shm" }).name, "shm on shm");
	b->entries[0] = b->entries[4];
	b->n_entries = 1;
	assert_string_equal(refused(&(gpul_rdma_device_desc){ .gpu = -1 }, GPUL_EUNSUPPORTED).text,
			    "libfabric has no provider 'tcp'; it has shm");
}

static void says_which_providers_there_are(void **state)
{
	gpul_error err = refused(&(gpul_rdma_device_desc){ .gpu = -1, .provider = "tcq" }, GPUL_EUNSUPPORTED);

	(void)state;
	assert_string_equal(err.text, "libfabric has no provider 'tcq'; it has tcp;ofi_rxm, shm");
	err = refused(&(gpul_rdma_device_desc){ .gpu = -1, .device = "eth7" }, GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "provider 'tcp' on eth7 has no reliable endpoints"));
	fake_ofi_behave()->n_entries = 0;
	err = refused(&(gpul_rdma_device_desc){ .gpu = -1 }, GPUL_EUNSUPPORTED);
	assert_string_equal(err.text, "libfabric has no provider 'tcp'; it has none");
}

static void finds_the_domain_where_the_provider_does_not_look(void **state)
{
	gpul_rdma_device_info about;
	gpul_error err;

	(void)state;
	fake_ofi_behave()->ignores_domains = true;
	about = opened(&(gpul_rdma_device_desc){ .gpu = -1, .device = "eth1" });
	assert_non_null(strstr(about.name, "on eth1"));
	err = refused(&(gpul_rdma_device_desc){ .gpu = -1, .device = "eth7" }, GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "libfabric's provider 'tcp;ofi_rxm' has no domain 'eth7'; it has lo, eth0, eth1"));
}

static void refuses_an_entry_with_the_reason(void **state)
{
	static const struct {
		fake_ofi_entry entry;
		const char *reason;
	} bad[] = {
		{ { .address = "fe80::1", .data_bytes = 8 }, "link-local" },
		{ { .address = "10.0.0.1", .data_bytes = 8, .mr_mode = FI_MR_ENDPOINT }, "registered in a mode" },
		{ { .address = "10.0.0.1", .data_bytes = 0 }, "4 bytes of completion data" },
		{ { .address = "10.0.0.1", .data_bytes = 8, .mode = FI_CONTEXT }, "FI_CONTEXT" },
		{ { .address = "10.0.0.1", .data_bytes = 8, .mode = FI_CONTEXT2 }, "FI_CONTEXT" },
		{ { .address = "10.0.0.1", .data_bytes = 8, .mode = FI_RX_CQ_DATA }, "FI_RX_CQ_DATA" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		fake_ofi_entry *e = fake_ofi_behave()->entries;

		*e = bad[i].entry;
		e->provider = "net";
		e->domain = "eth3";
		const gpul_error err = refused(&(gpul_rdma_device_desc){ .gpu = -1, .provider = "net" }, GPUL_EUNSUPPORTED);

		assert_ptr_equal(strstr(err.text, "libfabric's provider 'net' on eth3 "), err.text);
		assert_non_null(strstr(err.text, bad[i].reason));
	}
	refused(&(gpul_rdma_device_desc){ .gpu = -1, .qp_type = GPUL_RDMA_UC }, GPUL_EUNSUPPORTED);
	refused(&(gpul_rdma_device_desc){ .gpu = -1, .control_datagrams = true }, GPUL_EUNSUPPORTED);
}

static void asks_for_order_and_works_without(void **state)
{
	fake_ofi_entry *e = fake_ofi_behave()->entries;
	gpul_rdma_device_info about;

	(void)state;
	e->provider = "efa";
	e->msg_order = 0;
	e->comp_order = 0;
	about = opened(&(gpul_rdma_device_desc){ .gpu = -1, .provider = "efa" });
	assert_false(about.ordered || about.completes_in_order);
	e->comp_order = 0x1ff; /* FI_ORDER_STRICT */
	e->msg_order = FI_ORDER_WAW | FI_ORDER_RMA_WAW;
	about = opened(&(gpul_rdma_device_desc){ .gpu = -1, .provider = "efa" });
	assert_true(about.ordered && about.completes_in_order);
}

static void undoes_everything_whichever_call_fails(void **state)
{
	const gpul_rdma_device_desc desc = { .gpu = -1 };
	struct ofi_end b;

	(void)state;
	for (int n = 1;; n++) {
		struct ofi_end a;
		gpul_error err = { 0 };
		gpul_status st;

		gpul_ofi_use(fake_ofi(n));
		st = ofi_end_open(&a, &desc, 2, &err);
		if (!st) {
			st = ofi_end_open(&b, &desc, 2, &err);
			if (!st)
				st = ofi_ends_connect(&a, &b, &err);
			ofi_end_close(&b);
			ofi_end_close(&a);
		}
		assert_int_equal(fake_ofi_alive(), 0);
		if (fake_ofi_calls() < n) {
			assert_int_equal(st, GPUL_OK);
			assert_true(n > 40);
			return;
		}
		assert_int_not_equal(st, GPUL_OK);
		assert_true(err.text[0]);
	}
}

static void reports_the_call_and_the_number(void **state)
{
	struct ofi_end a;
	gpul_error err = { 0 };

	(void)state;
	fake_ofi_fail(4, FI_EACCES); /* the fourth call is fi_fabric, after those for hints, entries and a copy of an entry */
	assert_int_equal(ofi_end_open(&a, &(gpul_rdma_device_desc){ .gpu = -1 }, 1, &err), GPUL_ESYS);
	assert_int_equal(err.native, FI_EACCES);
	assert_string_equal(err.text, "fi_fabric (tcp;ofi_rxm): Permission denied (13)");
	memset(&err, 0, sizeof err);
	fake_ofi_fail(2, FI_EIO);
	assert_int_equal(ofi_end_open(&a, &(gpul_rdma_device_desc){ .gpu = -1 }, 1, &err), GPUL_ESYS);
	assert_string_equal(err.text, "fi_getinfo (tcp): Input/output error (5)");
}

static void refuses_hostile_descriptions(void **state)
{
	unsigned char good[GPUL_RDMA_MAX_DESCRIPTION], bad[GPUL_RDMA_MAX_DESCRIPTION];
	struct ofi_end a, b;
	gpul_error err = { 0 };
	size_t n;

	(void)state;
	ofi_ends_open(&a, &b, NULL, 2);
	n = gpul_rdma_libfabric.describe(b.path, good);
	assert_int_equal(n, 24 + 2 * sizeof(struct sockaddr_in));
	for (size_t cut = 0; cut < sizeof good; cut++)
		if (cut != n)
			assert_int_equal(gpul_rdma_libfabric.connect_path(a.path, good, cut, &err), GPUL_EFORMAT);
	for (size_t i = 0; i < 8; i++) /* damage each of the first 8 bytes, the number of endpoints and the size */
		for (unsigned x = 1; x < 256; x++) {
			memcpy(bad, good, n);
			bad[i] ^= (unsigned char)x;
			assert_int_equal(gpul_rdma_libfabric.connect_path(a.path, bad, n, &err), GPUL_EFORMAT);
		}
	for (unsigned i = 0; i < 2; i++) { /* another family could have longer addresses, so accepting it would read past the end */
		const sa_family_t families[] = { AF_UNSPEC, AF_INET6, AF_UNIX, 0xffff };

		for (size_t k = 0; k < 4; k++) {
			memcpy(bad, good, n);
			memcpy(bad + 24 + i * sizeof(struct sockaddr_in), &families[k], sizeof families[k]);
			err = (gpul_error){ 0 };
			assert_int_equal(gpul_rdma_libfabric.connect_path(a.path, bad, n, &err), GPUL_EFORMAT);
			assert_non_null(strstr(err.text, "expected IPv4"));
		}
	}
	ofi_end_close(&a);
	ofi_end_close(&b);
	ofi_ends_open(&a, &b, "shm", 1);
	n = gpul_rdma_libfabric.describe(b.path, bad);
	memset(bad + 24, 'x', n - 24);
	assert_int_equal(gpul_rdma_libfabric.connect_path(a.path, bad, n, &err), GPUL_EFORMAT); /* the name has no terminating NUL */
	ofi_end_close(&a);
	ofi_end_close(&b);
	assert_int_equal(fake_ofi_alive(), 0);
}

static void no_dma_buf_is_registered(void **state)
{
	struct ofi_end a;
	gpul_rdma_piece piece;
	gpul_error err = { 0 };
	void *token;

	(void)state;
	assert_int_equal(ofi_end_open(&a, &(gpul_rdma_device_desc){ .gpu = -1 }, 1, &err), GPUL_OK);
	assert_int_equal(gpul_rdma_libfabric.reg(a.device, &(gpul_rdma_memory){ .at = 4096, .bytes = 4096, .dmabuf_fd = 0 }, &piece, &token,
						 &err),
			 GPUL_EUNSUPPORTED);
	ofi_end_close(&a);
	assert_int_equal(fake_ofi_alive(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(takes_an_interface_with_a_route_before_the_loopback_one, reset),
		cmocka_unit_test_setup(takes_shm_only_by_name, reset),
		cmocka_unit_test_setup(says_which_providers_there_are, reset),
		cmocka_unit_test_setup(finds_the_domain_where_the_provider_does_not_look, reset),
		cmocka_unit_test_setup(refuses_an_entry_with_the_reason, reset),
		cmocka_unit_test_setup(asks_for_order_and_works_without, reset),
		cmocka_unit_test_setup(undoes_everything_whichever_call_fails, reset),
		cmocka_unit_test_setup(reports_the_call_and_the_number, reset),
		cmocka_unit_test_setup(refuses_hostile_descriptions, reset),
		cmocka_unit_test_setup(no_dma_buf_is_registered, reset),
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	printf("skipped: built without libfabric\n");
	return 77;
}

#endif
