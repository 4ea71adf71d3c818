/* test_verbs_open.c — devices and paths over the fake libibverbs: choices, refusals, and cleanup after each failing call. */
#include "tests/rdma/verbs/ends.h"
#include "tests/support/cmocka.h"
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "core/log.h"

/* Open two ends with this description, with the 1st call failing, then the 2nd, ... */
static void fail_each_call(const gpul_rdma_device_desc *desc, unsigned n_qps)
{
	int n = 1;

	for (;; n++) {
		struct end a = { 0 }, b = { 0 };
		gpul_error err = { 0 };
		gpul_status st;

		fake_verbs(n);
		st = end_open(&a, desc, n_qps, &err);
		if (!st)
			st = end_open(&b, desc, n_qps, &err);
		if (!st)
			st = ends_connect(&a, &b, &err);
		end_close(&a);
		end_close(&b);
		assert_int_equal(fake_verbs_alive(), 0);
		if (!st)
			break;
		if (err.status == GPUL_EVERBS) {
			assert_int_equal(err.native, ENOMEM);
			assert_non_null(strstr(err.text, "ibv_"));
		}
		assert_int_not_equal(err.text[0], 0);
	}
	assert_int_equal(n, fake_verbs_calls() + 1); /* each call has failed once */
}

static void undoes_everything_whichever_call_fails(void **state)
{
	gpul_rdma_device_desc desc = plain_desc();

	(void)state;
	fail_each_call(&desc, 1);
	fail_each_call(&desc, 4);
	desc.flush = GPUL_RDMA_FLUSH_ATOMIC;
	desc.control_datagrams = true;
	fail_each_call(&desc, 2);
}

static void expect_refusal(const gpul_rdma_device_desc *desc, gpul_status status, const char *text)
{
	gpul_error err = { 0 };
	void *device = &device;

	assert_int_equal(gpul_rdma_verbs.open(desc, &device, &err), status);
	assert_ptr_equal(device, &device);
	if (!strstr(err.text, text))
		fail_msg("'%s' is not in '%s'", text, err.text);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void refuses_what_it_cannot_do_with_the_reason(void **state)
{
	gpul_rdma_device_desc desc = plain_desc();

	(void)state;
	fake_verbs(0);
	desc.retry = 7;
	expect_refusal(&desc, GPUL_EINVAL, "retries 7 is out of range: 0 to 6");
	desc = plain_desc();
	desc.mtu = 1500;
	expect_refusal(&desc, GPUL_EINVAL, "MTU 1500");
	desc = plain_desc();
	desc.port = 2;
	expect_refusal(&desc, GPUL_EINVAL, "fake0 has no port 2: its ports are 1 to 1");
	desc = plain_desc();
	desc.gid_index = 9;
	expect_refusal(&desc, GPUL_EINVAL, "no GID with index 9");
	desc = plain_desc();
	desc.device = "mlx5_0";
	expect_refusal(&desc, GPUL_EINVAL, "no RDMA device has the name 'mlx5_0'");
	desc = plain_desc();
	desc.flush = GPUL_RDMA_FLUSH_CUDA;
	expect_refusal(&desc, GPUL_EUNSUPPORTED, "no CUDA driver");
	desc = plain_desc();
	fake_verbs_behave()->n_devices = 0;
	expect_refusal(&desc, GPUL_EUNSUPPORTED, "no RDMA device");
	fake_verbs_behave()->n_devices = 1;
	fake_verbs_behave()->transport = IBV_TRANSPORT_IWARP;
	expect_refusal(&desc, GPUL_EUNSUPPORTED, "no RDMA write with immediate");
}

static void takes_the_first_active_port_and_names_the_state_of_others(void **state)
{
	gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_device_info info;
	gpul_error err = { 0 };
	void *device;

	(void)state;
	fake_verbs(0);
	fake_verbs_behave()->attr.phys_port_cnt = 2;
	fake_verbs_behave()->ports[0].state = IBV_PORT_DOWN;
	for (unsigned i = 0; i < fake_verbs_behave()->n_gids; i++)
		fake_verbs_behave()->gids[i].port_num = 2;
	assert_int_equal(gpul_rdma_verbs.open(&desc, &device, &err), GPUL_OK);
	gpul_rdma_verbs.about(device, &info);
	assert_string_equal(info.name, "fake0 port 2");
	assert_non_null(strstr(info.why, "first active port"));
	assert_non_null(strstr(info.why, "10.9.0.1"));
	assert_int_equal(info.notice_ns, UINT64_C(7) * (4096 << 18));
	assert_int_equal(info.inline_bytes, 64);
	assert_int_equal(info.max_depth, 4096);
	assert_false(info.dmabuf);
	gpul_rdma_verbs.close(device);
	desc.port = 1;
	expect_refusal(&desc, GPUL_EUNSUPPORTED, "port 1 is down");
}

static void an_unreliable_connection_needs_a_lossless_fabric(void **state)
{
	gpul_rdma_device_desc desc = plain_desc();
	gpul_rdma_device_info info;
	struct end a, b;

	(void)state;
	fake_verbs(0);
	desc.qp_type = GPUL_RDMA_UC;
	expect_refusal(&desc, GPUL_EUNSUPPORTED, "Ethernet, which drops packets");
	desc.lossless = true;
	ends_open(&a, &b, &desc, 2);
	gpul_rdma_verbs.about(a.device, &info);
	assert_int_equal(info.notice_ns, 0);
	end_close(&a);
	end_close(&b);
	desc.lossless = false;
	fake_verbs_behave()->ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_verbs_behave()->ports[0].lid = 5;
	ends_open(&a, &b, &desc, 1);
	end_close(&a);
	end_close(&b);
	assert_int_equal(fake_verbs_alive(), 0);
}

/* Return the attributes of the first queue pair of a path, which is found by the path's description. */
static const struct ibv_qp_attr *attributes_of(const struct end *e)
{
	unsigned char bytes[GPUL_RDMA_MAX_DESCRIPTION];

	gpul_rdma_verbs.describe(e->path, bytes);
	return fake_verbs_attributes(bytes[40] | (uint32_t)bytes[41] << 8 | (uint32_t)bytes[42] << 16);
}

static void the_smaller_mtu_counts(void **state)
{
	gpul_rdma_device_desc small = plain_desc(), large = plain_desc();
	gpul_error err = { 0 };
	struct end a, b;

	(void)state;
	fake_verbs(0);
	small.mtu = 512;
	large.mtu = 4096; /* the port's MTU is 1024 */
	small.traffic_class = large.traffic_class = 104;
	assert_int_equal(end_open(&a, &small, 1, &err), GPUL_OK);
	assert_int_equal(end_open(&b, &large, 1, &err), GPUL_OK);
	assert_int_equal(ends_connect(&a, &b, &err), GPUL_OK);
	assert_int_equal(attributes_of(&a)->path_mtu, IBV_MTU_512);
	assert_int_equal(attributes_of(&b)->path_mtu, IBV_MTU_512);
	assert_int_equal(attributes_of(&a)->ah_attr.grh.traffic_class, 104);
	assert_int_equal(attributes_of(&a)->ah_attr.grh.sgid_index, 1);
	assert_int_equal(attributes_of(&a)->timeout, 18);
	assert_int_equal(attributes_of(&a)->retry_cnt, 6);
	end_close(&a);
	end_close(&b);
}

static void infiniband_uses_lids(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	struct end a, b;

	(void)state;
	fake_verbs(0);
	fake_verbs_behave()->ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
	fake_verbs_behave()->ports[0].lid = 0x1234;
	ends_open(&a, &b, &desc, 1);
	assert_int_equal(attributes_of(&a)->ah_attr.dlid, 0x1234);
	assert_int_equal(attributes_of(&a)->ah_attr.is_global, 0);
	end_close(&a);
	end_close(&b);
	fake_verbs_behave()->ports[0].flags = 1; /* IBV_QPF_GRH_REQUIRED: the network requires global route headers */
	ends_open(&a, &b, &desc, 1);
	assert_int_equal(attributes_of(&a)->ah_attr.is_global, 1);
	end_close(&a);
	end_close(&b);
}

static unsigned gid_lines;

static void count_gid_lines(void *user, gpul_log_level level, const char *module, const char *line)
{
	(void)user, (void)level, (void)module;
	gid_lines += strncmp(line, "GID table of port 1: ", 21) == 0;
}

static void an_unreachable_peer_is_explained_with_both_addresses(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	unsigned char description[GPUL_RDMA_MAX_DESCRIPTION];
	gpul_error err = { 0 };
	struct end a, b;
	size_t n_bytes;

	(void)state;
	fake_verbs(0);
	ends_open(&a, &b, &desc, 1);
	end_close(&a);
	assert_int_equal(end_open(&a, &desc, 1, &err), GPUL_OK);
	n_bytes = gpul_rdma_verbs.describe(b.path, description);
	description[31] = 77; /* 10.9.0.77 does not exist */
	gid_lines = 0;
	gpul_log_set_level(GPUL_LOG_NOTICE);
	gpul_log_to(count_gid_lines, NULL);
	assert_int_equal(gpul_rdma_verbs.connect_path(a.path, description, n_bytes, &err), GPUL_EVERBS);
	gpul_log_to(NULL, NULL);
	gpul_log_set_level(GPUL_LOG_OFF);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_non_null(strstr(err.text, "10.9.0.1"));
	assert_non_null(strstr(err.text, "10.9.0.77"));
	assert_int_equal(gid_lines, 4);
	end_close(&a);
	end_close(&b);
}

static void the_limit_of_locked_memory_is_in_the_message(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	const gpul_rdma_memory memory = { .at = 4096, .bytes = 1 << 20, .dmabuf_fd = -1 };
	struct rlimit before, limit;
	gpul_error err = { 0 };
	gpul_rdma_piece piece;
	void *device, *token;

	(void)state;
	fake_verbs(0);
	assert_int_equal(gpul_rdma_verbs.open(&desc, &device, &err), GPUL_OK);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	limit = (struct rlimit){ .rlim_cur = 65536, .rlim_max = before.rlim_max };
	if (before.rlim_max < 65536 || setrlimit(RLIMIT_MEMLOCK, &limit)) {
		gpul_rdma_verbs.close(device);
		skip();
	}
	fake_verbs_fail(1, ENOMEM);
	assert_int_equal(gpul_rdma_verbs.reg(device, &memory, &piece, &token, &err), GPUL_EVERBS);
	setrlimit(RLIMIT_MEMLOCK, &before);
	assert_int_equal(err.native, ENOMEM);
	assert_non_null(strstr(err.text, "ibv_reg_mr of 1048576 bytes"));
	assert_non_null(strstr(err.text, "the limit of locked memory is 64 KiB, but 1024 KiB are needed"));
	assert_non_null(strstr(err.text, "ulimit -l"));
	gpul_rdma_verbs.close(device);
}

static void gpu_memory_is_registered_by_its_dmabuf(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	const gpul_rdma_memory memory = { .at = 0x7f0000001000, .bytes = 4096, .dmabuf_fd = 0, .dmabuf_offset = 4096 };
	gpul_rdma_device_info info;
	gpul_rdma_piece piece;
	gpul_error err = { 0 };
	void *device, *token;

	(void)state;
	fake_verbs(0);
	fake_verbs_behave()->no_dmabuf = false;
	assert_int_equal(gpul_rdma_verbs.open(&desc, &device, &err), GPUL_OK);
	gpul_rdma_verbs.about(device, &info);
	assert_true(info.dmabuf);
	assert_int_equal(gpul_rdma_verbs.reg(device, &memory, &piece, &token, &err), GPUL_OK);
	assert_int_equal(piece.remote, 0x7f0000001000);
	gpul_rdma_verbs.dereg(device, token);
	fake_verbs_behave()->no_dmabuf = true;
	assert_int_equal(gpul_rdma_verbs.reg(device, &memory, &piece, &token, &err), GPUL_EVERBS);
	assert_int_equal(err.native, EOPNOTSUPP);
	gpul_rdma_verbs.close(device);
	assert_int_equal(fake_verbs_alive(), 0);
}

static void a_path_that_is_too_large_is_refused(void **state)
{
	const gpul_rdma_device_desc desc = plain_desc();
	const struct {
		unsigned n_qps, depth, n_recvs;
		const char *text;
	} wrong[] = {
		{ 0, 64, 64, "queue pairs is 0" }, { 17, 64, 64, "queue pairs is 17" }, { 1, 63, 64, "power of two" },
		{ 1, 8192, 64, "at most 4096" },   { 1, 64, 9000, "supports 8192" },    { 16, 4096, 8192, "supports 131072" },
	};
	gpul_error err = { 0 };
	void *device, *path = NULL;

	(void)state;
	fake_verbs(0);
	assert_int_equal(gpul_rdma_verbs.open(&desc, &device, &err), GPUL_OK);
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		memset(&err, 0, sizeof err);
		assert_int_equal(gpul_rdma_verbs.create_path(device, wrong[i].n_qps, wrong[i].depth, wrong[i].n_recvs, NULL, &path, &err),
				 GPUL_EINVAL);
		assert_non_null(strstr(err.text, wrong[i].text));
		assert_null(path);
	}
	gpul_rdma_verbs.close(device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(undoes_everything_whichever_call_fails),
		cmocka_unit_test(refuses_what_it_cannot_do_with_the_reason),
		cmocka_unit_test(takes_the_first_active_port_and_names_the_state_of_others),
		cmocka_unit_test(an_unreliable_connection_needs_a_lossless_fabric),
		cmocka_unit_test(the_smaller_mtu_counts),
		cmocka_unit_test(infiniband_uses_lids),
		cmocka_unit_test(an_unreachable_peer_is_explained_with_both_addresses),
		cmocka_unit_test(the_limit_of_locked_memory_is_in_the_message),
		cmocka_unit_test(gpu_memory_is_registered_by_its_dmabuf),
		cmocka_unit_test(a_path_that_is_too_large_is_refused),
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	gpul_verbs_use(fake_verbs(0));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
