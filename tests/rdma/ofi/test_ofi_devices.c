/* test_ofi_devices.c — the entries that fi_getinfo() lists: which are usable, which one the backend uses, and how calls may fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "rdma/ofi/ofi_devices.h"
#include "rdma/ofi/ofi_lib.h"

#if GPUL_HAVE_LIBFABRIC

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

static int n_calls, fail_at, n_alive;

static bool fails(void)
{
	return ++n_calls == fail_at;
}

static struct fi_info *fake_dupinfo(const struct fi_info *from)
{
	struct fi_info *i = NULL;

	if (fails())
		return NULL;
	i = calloc(1, sizeof *i);
	assert_null(from);
	assert_non_null(i);
	i->tx_attr = calloc(1, sizeof *i->tx_attr);
	i->ep_attr = calloc(1, sizeof *i->ep_attr);
	i->domain_attr = calloc(1, sizeof *i->domain_attr);
	i->fabric_attr = calloc(1, sizeof *i->fabric_attr);
	n_alive++;
	return i;
}

static void fake_freeinfo(struct fi_info *i)
{
	while (i) {
		struct fi_info *next = i->next;

		free(i->fabric_attr->prov_name);
		free(i->fabric_attr->name);
		free(i->domain_attr->name);
		free(i->src_addr);
		free(i->tx_attr);
		free(i->ep_attr);
		free(i->domain_attr);
		free(i->fabric_attr);
		free(i);
		n_alive--;
		i = next;
	}
}

struct entry {
	const char *provider, *domain, *address;
	size_t data_bytes;
	int mr_mode;
	enum fi_ep_type type;
	size_t targets; /* maximum number of remote ranges of one write */
};

/* The fake fi_getinfo() returns the RDM entries for the backend's hints, and all entries for a query of everything. */
static const struct entry entries[] = {
	{ "tcp;ofi_rxm", "lo", "127.0.0.1", 8, 0, FI_EP_RDM, 4 },
	{ "tcp;ofi_rxm", "eth0", "fd00::2", 8, 0, FI_EP_RDM, 4 },
	{ "tcp;ofi_rxm", "eth0", "192.0.2.2", 8, 0, FI_EP_RDM, 4 },
	{ "tcp;ofi_rxm", "eth1", "192.0.2.3", 8, 0, FI_EP_RDM, 4 },
	{ "efa", "rdmap0s6", NULL, 4, FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, FI_EP_RDM, 4 },
	{ "raw", "raw0", "fe80::1", 8, 0, FI_EP_RDM, 4 },            /* has only a link-local address */
	{ "endpoints", "x", NULL, 8, FI_MR_ENDPOINT, FI_EP_RDM, 4 }, /* memory must be registered with an endpoint */
	{ "nodata", "x", NULL, 0, 0, FI_EP_RDM, 4 },
	{ "tcp;ofi_rxm", "one", "192.0.2.4", 8, 0, FI_EP_RDM, 1 }, /* a write may have only one remote range */
	{ "tcp", "eth0", "192.0.2.2", 8, 0, FI_EP_MSG, 4 },
	{ "udp", "eth0", "192.0.2.2", 0, 0, FI_EP_DGRAM, 4 },
};

static void fill_address(struct fi_info *i, const char *address)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	bool is_v6 = strchr(address, ':') != NULL;

	inet_pton(is_v6 ? AF_INET6 : AF_INET, address, is_v6 ? (void *)&v6.sin6_addr : &v4.sin_addr);
	i->addr_format = is_v6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
	i->src_addrlen = is_v6 ? sizeof v6 : sizeof v4;
	i->src_addr = malloc(i->src_addrlen);
	assert_non_null(i->src_addr);
	memcpy(i->src_addr, is_v6 ? (void *)&v6 : &v4, i->src_addrlen);
}

static int answer; /* return value of fi_getinfo(): 0, or an error */

static int fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
			struct fi_info **out)
{
	struct fi_info **end = out;
	bool all = hints->mode != 0;
	int was = fail_at;

	assert_int_equal(version, FI_VERSION(1, 10));
	assert_true(!node && !service && !flags);
	if (fails())
		return -FI_EIO;
	if (answer)
		return answer;
	fail_at = 0;
	for (size_t n = 0; n < sizeof entries / sizeof *entries; n++) {
		const struct entry *e = &entries[n];

		if (!all && e->type != FI_EP_RDM)
			continue;
		*end = fake_dupinfo(NULL);
		n_calls--;
		(*end)->caps = FI_RMA;
		(*end)->tx_attr->inject_size = 64;
		(*end)->tx_attr->size = 256;
		(*end)->tx_attr->iov_limit = 4;
		(*end)->tx_attr->rma_iov_limit = e->targets;
		(*end)->ep_attr->type = e->type;
		(*end)->ep_attr->max_msg_size = 1u << 30;
		(*end)->domain_attr->cq_data_size = e->data_bytes;
		(*end)->domain_attr->mr_mode = e->mr_mode;
		(*end)->domain_attr->name = strdup(e->domain);
		(*end)->fabric_attr->prov_name = strdup(e->provider);
		(*end)->fabric_attr->prov_version = FI_VERSION(117, 0);
		if (e->address)
			fill_address(*end, e->address);
		end = &(*end)->next;
	}
	fail_at = was;
	return 0;
}

static const char *fake_strerror(int number)
{
	return number == FI_EIO ? "Input/output error" : "?";
}

static uint32_t fake_version(void)
{
	return FI_VERSION(1, 17);
}

static const struct gpul_ofi fake = {
	.fi_getinfo = fake_getinfo,
	.fi_freeinfo = fake_freeinfo,
	.fi_dupinfo = fake_dupinfo,
	.fi_strerror = fake_strerror,
	.fi_version = fake_version,
};

static int use_fake(void **state)
{
	(void)state;
	n_calls = fail_at = n_alive = answer = 0;
	gpul_ofi_use(&fake);
	return 0;
}

static const gpul_ofi_entry *find(const gpul_ofi_entries *e, const char *provider, const char *domain)
{
	for (size_t i = 0; i < e->n; i++)
		if (!strcmp(e->at[i].provider, provider) && !strcmp(e->at[i].domain, domain))
			return &e->at[i];
	fail_msg("%s on %s is not listed", provider, domain);
	return NULL;
}

static void lists_each_entry_once_with_its_attributes(void **state)
{
	gpul_ofi_entries e;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_ofi_entries_read(&e, &err), GPUL_OK);
	assert_int_equal(e.n, sizeof entries / sizeof *entries);
	assert_string_equal(e.version, "1.17");
	assert_string_equal(e.at[0].provider, "tcp;ofi_rxm");
	assert_string_equal(e.at[0].address, "127.0.0.1");
	assert_string_equal(e.at[1].address, "[fd00::2]");
	assert_string_equal(e.at[0].version, "117.0");
	assert_string_equal(e.at[0].endpoint, "RDM");
	assert_int_equal(e.at[0].inject_bytes, 64);
	assert_int_equal(e.at[0].depth, 256);
	assert_int_equal(e.at[0].remote_data_bytes, 8);
	assert_int_equal(e.at[0].max_message_bytes, 1u << 30);
	assert_true(e.at[0].rma && !e.at[0].gpu_memory);
	assert_string_equal(find(&e, "udp", "eth0")->endpoint, "DGRAM");
	assert_string_equal(find(&e, "efa", "rdmap0s6")->address, "");
	gpul_ofi_entries_free(&e);
	assert_int_equal(n_alive, 0);
}

static void marks_what_the_backend_can_use_and_would_take(void **state)
{
	gpul_ofi_entries e;
	size_t n_chosen = 0;

	(void)state;
	assert_int_equal(gpul_ofi_entries_read(&e, NULL), GPUL_OK);
	assert_true(find(&e, "tcp;ofi_rxm", "lo")->usable);
	assert_true(find(&e, "efa", "rdmap0s6")->usable && find(&e, "efa", "rdmap0s6")->chosen);
	assert_true(e.at[2].chosen); /* IPv4 is preferred, and the loop-back interface is avoided */
	assert_false(find(&e, "raw", "raw0")->usable);
	assert_false(find(&e, "endpoints", "x")->usable);
	assert_false(find(&e, "nodata", "x")->usable);
	assert_false(find(&e, "tcp;ofi_rxm", "one")->usable);
	assert_false(find(&e, "tcp", "eth0")->usable);
	for (size_t i = 0; i < e.n; i++)
		n_chosen += e.at[i].chosen;
	assert_int_equal(n_chosen, 2);
	gpul_ofi_entries_free(&e);
}

static void no_entry_at_all_is_an_empty_list(void **state)
{
	gpul_ofi_entries e;

	(void)state;
	answer = -FI_ENODATA;
	assert_int_equal(gpul_ofi_entries_read(&e, NULL), GPUL_OK);
	assert_int_equal(e.n, 0);
	gpul_ofi_entries_free(&e);
	assert_int_equal(n_alive, 0);
}

static void releases_everything_whichever_call_fails(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		gpul_ofi_entries e = { .n = 0 };
		gpul_error err = { 0 };
		gpul_status st;

		n_calls = 0;
		fail_at = n;
		st = gpul_ofi_entries_read(&e, &err);
		assert_int_equal(n_alive, 0);
		if (n_calls < n) {
			assert_int_equal(st, GPUL_OK);
			assert_int_equal(n, 5); /* four calls can fail: hints, query, hints, query */
			gpul_ofi_entries_free(&e);
			return;
		}
		assert_int_equal(st, n % 2 ? GPUL_ENOMEM : GPUL_ESYS);
		assert_null(e.at);
		assert_non_null(strstr(err.text, "fi_getinfo: "));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lists_each_entry_once_with_its_attributes, use_fake),
		cmocka_unit_test_setup(marks_what_the_backend_can_use_and_would_take, use_fake),
		cmocka_unit_test_setup(no_entry_at_all_is_an_empty_list, use_fake),
		cmocka_unit_test_setup(releases_everything_whichever_call_fails, use_fake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	printf("skipped: built without libfabric\n");
	return 77;
}

#endif
