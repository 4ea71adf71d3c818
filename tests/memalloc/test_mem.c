/* test_mem.c — each kind of memory on a real driver: created, accessed by CPU and GPU, mapped by another process. */
#include "tests/memalloc/support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

enum { BYTES = 3 * 4096 + 123 };

static const gpul_driver *drv;
static gpul_context context;
static struct peer *peer;

static const gpul_mem_kind all[] = {
	GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE, GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_PINNED, GPUL_MEM_DEVICE_IPC
};
enum { N_ALL = sizeof all / sizeof all[0] };

static gpul_mem *create_memory(const gpul_mem_desc *desc)
{
	gpul_mem *m = NULL;
	gpul_error err = { 0 };

	if (gpul_mem_create(drv, desc, &m, &err))
		fail_msg("%s: %s", gpul_mem_kind_name(desc->kind), err.text);
	return m;
}

static gpul_mem_offer offer_of(const gpul_mem *m)
{
	const gpul_mem_info *is = gpul_mem_about(m);

	return (gpul_mem_offer){ .kind = is->kind, .bytes = is->bytes, .mapped_bytes = is->mapped_bytes, .owner_device = is->device };
}

static void cpu_and_gpu_access_the_same_bytes(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		gpul_mem *m = create_memory(&desc);
		const gpul_mem_info *is = gpul_mem_about(m);
		unsigned char *cpu = gpul_mem_cpu(m);

		assert_int_equal(is->kind, all[i]);
		assert_int_equal(is->bytes, BYTES);
		assert_int_equal(is->mapped_bytes % is->granularity_bytes, 0);
		assert_true(is->mapped_bytes >= BYTES);
		assert_int_equal((uintptr_t)cpu % is->alignment_bytes, 0);
		assert_int_equal(gpul_mem_gpu(m) % is->alignment_bytes, 0);
		assert_int_equal(is->n_devices, 1);
		gpu_fill(drv, gpul_mem_gpu(m), BYTES, 5);
		assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, 5));
		assert_int_equal(cpu != NULL, all[i] != GPUL_MEM_DEVICE && all[i] != GPUL_MEM_DEVICE_IPC);
		if (cpu) {
			assert_true(cpu_sees(cpu, BYTES, 5));
			cpu_fill(cpu, BYTES, 6);
			assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, 6));
		}
		gpul_mem_destroy(m);
	}
}

/* Export the memory to the peer process, which imports it; returns the peer's answer. */
static peer_answer share_with_peer(gpul_mem *m, bool read_only, unsigned seed)
{
	gpul_mem_offer offer = offer_of(m);
	gpul_mem_handle handle;
	int fd = -1;

	if (offer.kind == GPUL_MEM_DEVICE_IPC) {
		assert_int_equal(gpul_mem_export_handle(m, &handle, NULL), GPUL_OK);
		return peer_import(peer, &offer, -1, &handle, read_only, seed);
	}
	assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	return peer_import(peer, &offer, fd, NULL, read_only, seed);
}

static void another_process_reads_and_writes_the_memory(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		gpul_mem *m;
		peer_answer a;

		if (all[i] == GPUL_MEM_PINNED)
			continue;
		m = create_memory(&desc);
		for (unsigned round = 0; round < 3; round++) {
			gpu_fill(drv, gpul_mem_gpu(m), BYTES, round);
			a = share_with_peer(m, false, round);
			if (a.err.status)
				fail_msg("%s: %s", gpul_mem_kind_name(all[i]), a.err.text);
			assert_true(a.cpu_saw && a.gpu_saw);
			assert_int_equal(a.leaked_fds, 0);
			assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, round + 1));
		}
		gpul_mem_destroy(m);
	}
}

/* ---- read-only ------------------------------------------------------------------- */

static void a_read_only_import_can_read_but_not_write(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		gpul_mem *m;
		peer_answer a;

		if (all[i] == GPUL_MEM_PINNED || all[i] == GPUL_MEM_DEVICE_IPC)
			continue;
		m = create_memory(&desc);
		gpu_fill(drv, gpul_mem_gpu(m), BYTES, 3);
		a = share_with_peer(m, true, 3);
		if (a.err.status)
			fail_msg("%s: %s", gpul_mem_kind_name(all[i]), a.err.text);
		assert_true(a.cpu_saw && a.gpu_saw);
		assert_int_equal(a.copy_refused, a.copy_tried);
		assert_int_equal(a.store_refused, gpul_mem_cpu(m) != NULL);
		assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, 3));
		gpul_mem_destroy(m);
	}
}

/* ---- invalid descriptions -------------------------------------------------------- */

static void assert_refused(const gpul_mem_desc *desc, gpul_status expected, const char *words)
{
	gpul_error err = { 0 };
	gpul_mem *m = NULL;

	assert_int_equal(gpul_mem_create(drv, desc, &m, &err), expected);
	assert_null(m);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
}

static void refuses_invalid_descriptions(void **state)
{
	static const int twice[] = { 0, 0 }, absent[] = { 99 }, negative[] = { -1 };

	(void)state;
	for (int kind = 0; kind < GPUL_MEM_N_KINDS; kind++) {
		gpul_mem_desc desc = wanted((gpul_mem_kind)kind, 0);

		assert_refused(&desc, GPUL_EINVAL, "0 bytes");
		desc.bytes = BYTES;
		desc.n_devices = 0;
		assert_refused(&desc, GPUL_EINVAL, "expected 1 to 16");
		desc.n_devices = GPUL_MEM_MAX_DEVICES + 1;
		assert_refused(&desc, GPUL_EINVAL, "expected 1 to 16");
		desc.devices = NULL;
		assert_refused(&desc, GPUL_EINVAL, "expected 1 to 16");
		desc.devices = twice;
		desc.n_devices = 2;
		assert_refused(&desc, GPUL_EINVAL, "listed twice");
		desc.devices = absent;
		desc.n_devices = 1;
		assert_refused(&desc, GPUL_EINVAL, "device 99 does not exist");
		desc.devices = negative;
		assert_refused(&desc, GPUL_EINVAL, "device -1 does not exist");
		desc = wanted((gpul_mem_kind)kind, BYTES);
		desc.read_only = true;
		assert_refused(&desc, GPUL_EINVAL, "read_only is for imports");
		desc.read_only = false;
		desc.fabric = true;
		if (kind != GPUL_MEM_DEVICE)
			assert_refused(&desc, GPUL_EINVAL, "fabric");
	}
}

static void refuses_an_unknown_node(void **state)
{
	static const gpul_mem_kind on_a_node[] = { GPUL_MEM_AUTO, GPUL_MEM_HOST_NUMA, GPUL_MEM_MEMFD, GPUL_MEM_SHM };

	(void)state;
	for (int i = 0; i < 4; i++) {
		gpul_mem_desc desc = wanted(on_a_node[i], BYTES);

		desc.node = 1000;
		assert_refused(&desc, GPUL_EINVAL, "node 1000 has no memory");
		desc.node = -2;
		assert_refused(&desc, GPUL_EINVAL, "node -2 has no memory");
	}
}

static void refuses_an_unknown_kind(void **state)
{
	gpul_mem_desc desc = wanted((gpul_mem_kind)GPUL_MEM_N_KINDS, BYTES);

	(void)state;
	assert_refused(&desc, GPUL_EINVAL, "unknown kind of memory: 7");
	desc.kind = (gpul_mem_kind)-1;
	assert_refused(&desc, GPUL_EINVAL, "unknown kind of memory: -1");
}

static void pinned_memory_cannot_be_shared(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_PINNED, BYTES);
	gpul_mem *m = create_memory(&desc);
	int fd = -1;

	(void)state;
	assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_EINVAL);
	assert_int_equal(fd, -1);
	gpul_mem_destroy(m);
	desc.exportable = true;
	assert_refused(&desc, GPUL_EINVAL, "cannot be shared");
}

static void memory_is_exported_only_if_created_exportable(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		gpul_mem_handle handle;
		gpul_error err = { 0 };
		gpul_mem *m;
		int fd = -1;

		desc.exportable = false;
		m = create_memory(&desc);
		assert_int_equal(gpul_mem_export_fd(m, &fd, &err), GPUL_EINVAL);
		assert_int_equal(gpul_mem_export_handle(m, &handle, NULL), GPUL_EINVAL);
		assert_non_null(strstr(err.text, "create it with gpul_mem_desc.exportable"));
		gpul_mem_destroy(m);
	}
}

static void more_memory_than_the_machine_has_is_an_error(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], (size_t)1 << 46);
		gpul_error err = { 0 };
		gpul_mem *m = NULL;

		assert_int_not_equal(gpul_mem_create(drv, &desc, &m, &err), GPUL_OK);
		assert_null(m);
		assert_non_null(strstr(err.text, gpul_mem_kind_name(all[i])));
	}
}

static void refuses_to_create_without_a_current_context(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_MEMFD, BYTES);

	(void)state;
	assert_int_equal(drv->cuCtxSetCurrent(NULL), CUDA_SUCCESS);
	assert_refused(&desc, GPUL_EINVAL, "gpul_context_open()");
	assert_int_equal(drv->cuCtxSetCurrent(context.handle), CUDA_SUCCESS);
}

/* ---- AUTO, names, threads, leaks ------------------------------------------------- */

static void auto_uses_host_memory_that_can_be_shared(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_AUTO, BYTES);
	gpul_mem *m = create_memory(&desc);
	peer_answer a;

	(void)state;
	assert_int_not_equal(gpul_mem_about(m)->kind, GPUL_MEM_AUTO);
	assert_non_null(gpul_mem_cpu(m));
	cpu_fill(gpul_mem_cpu(m), BYTES, 1);
	a = share_with_peer(m, false, 1);
	assert_true(a.cpu_saw && a.gpu_saw);
	gpul_mem_destroy(m);
}

static bool in_dev_shm(const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "/dev/shm%s", name);
	return access(path, F_OK) == 0;
}

static void a_named_file_exists_until_destroyed(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_SHM, BYTES);
	char name[64], with_slash[80];
	gpul_mem *m;

	(void)state;
	snprintf(name, sizeof name, "/gpuload-test-%d", (int)getpid());
	desc.shm_name = name;
	m = create_memory(&desc);
	assert_true(in_dev_shm(name));
	assert_refused(&desc, GPUL_ESYS, "already exists");
	assert_true(in_dev_shm(name)); /* the failed create must not remove it */
	gpul_mem_destroy(m);
	assert_false(in_dev_shm(name));
	snprintf(with_slash, sizeof with_slash, "%s/deeper", name);
	desc.shm_name = with_slash;
	assert_refused(&desc, GPUL_ESYS, "a name must have exactly one slash");
}

enum { N_THREADS = 8 };

static void *export_memory(void *memory)
{
	static int fds[N_THREADS];
	static atomic_int n;
	int *fd = &fds[atomic_fetch_add(&n, 1)];

	return gpul_mem_export_fd(memory, fd, NULL) ? NULL : fd;
}

static void concurrent_exports_return_one_descriptor(void **state)
{
	gpul_mem_desc desc = wanted(all[0], BYTES);
	gpul_mem *m = create_memory(&desc);
	pthread_t threads[N_THREADS];
	int *fds[N_THREADS];

	(void)state;
	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, export_memory, m), 0);
	for (int i = 0; i < N_THREADS; i++) {
		void *fd;

		pthread_join(threads[i], &fd);
		assert_non_null(fd);
		fds[i] = fd;
		assert_int_equal(*fds[i], *fds[0]);
	}
	gpul_mem_destroy(m);
}

static void *destroy_memory(void *memory)
{
	CUcontext current = NULL;

	gpul_mem_destroy(memory);
	drv->cuCtxGetCurrent(&current);
	return current;
}

static void a_thread_without_a_context_may_destroy_memory(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		size_t fds = count_fds(), mappings;
		gpul_mem *m;
		pthread_t thread;
		void *current;

		gpul_mem_destroy(create_memory(&desc));
		for (int round = 0; round < 2; round++) {
			m = create_memory(&desc);
			assert_int_equal(pthread_create(&thread, NULL, destroy_memory, m), 0);
			pthread_join(thread, &current);
			assert_null(current); /* the call has restored the current context: none */
			if (round == 0)
				mappings = count_mappings();
		}
		assert_int_equal(count_fds(), fds);
		assert_int_equal(count_mappings(), mappings);
	}
}

static void nothing_leaks_in_1000_rounds(void **state)
{
	(void)state;
	for (int i = 0; i < N_ALL; i++) {
		size_t fds = 0, mappings = 0;

		for (int round = 0; round < 1000; round++) {
			gpul_mem_desc desc = wanted(all[i], BYTES);
			gpul_mem *m = create_memory(&desc);
			gpul_mem_offer offer = offer_of(m);
			gpul_mem *twin = NULL;
			int fd = -1;

			if (desc.exportable && all[i] != GPUL_MEM_DEVICE_IPC) {
				assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
				assert_int_equal(gpul_mem_import(drv, &offer, fd, NULL, &desc, &twin, NULL), GPUL_OK);
			}
			gpul_mem_destroy(m); /* the import keeps the memory alive */
			if (twin && round % 100 == 0)
				gpu_fill(drv, gpul_mem_gpu(twin), BYTES, 8);
			gpul_mem_destroy(twin);
			if (round == 10) {
				fds = count_fds();
				mappings = count_mappings();
			}
		}
		assert_int_equal(count_fds(), fds);
		assert_int_equal(count_mappings(), mappings);
	}
}

/* ---- two devices ----------------------------------------------------------------- */

static void both_devices_access_the_memory(void **state)
{
	static const int devices[] = { 1, 0 };
	gpul_context other = { 0 };
	int n = 0, peers = 0;

	(void)state;
	assert_int_equal(drv->cuDeviceGetCount(&n), CUDA_SUCCESS);
	if (n < 2)
		skip();
	(void)drv->cuDeviceCanAccessPeer(&peers, 0, 1);
	for (int i = 0; i < N_ALL; i++) {
		gpul_mem_desc desc = wanted(all[i], BYTES);
		bool on_device = all[i] == GPUL_MEM_DEVICE || all[i] == GPUL_MEM_DEVICE_IPC;
		gpul_mem *m;

		assert_int_equal(gpul_context_open(drv, 1, &other, NULL), GPUL_OK);
		desc.devices = devices;
		desc.n_devices = 2;
		if (on_device && !peers) {
			assert_refused(&desc, GPUL_EUNSUPPORTED, "");
			gpul_context_close(&other);
			assert_int_equal(drv->cuCtxSetCurrent(context.handle), CUDA_SUCCESS);
			continue;
		}
		m = create_memory(&desc);
		assert_int_equal(gpul_mem_about(m)->device, 1);
		gpu_fill(drv, gpul_mem_gpu(m), BYTES, 2);
		assert_int_equal(drv->cuCtxSetCurrent(context.handle), CUDA_SUCCESS);
		assert_true(gpu_sees(drv, gpul_mem_gpu(m), BYTES, 2));
		gpul_mem_destroy(m);
		gpul_context_close(&other);
		assert_int_equal(drv->cuCtxSetCurrent(context.handle), CUDA_SUCCESS);
	}
}

static int setup(void **state)
{
	(void)state;
	setenv("GPULOAD_SOFT_DEVICES", "2", 1);
	peer = peer_start();
	drv = open_driver(&context);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	peer_stop(peer);
	gpul_context_close(&context);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_and_gpu_access_the_same_bytes),
		cmocka_unit_test(another_process_reads_and_writes_the_memory),
		cmocka_unit_test(a_read_only_import_can_read_but_not_write),
		cmocka_unit_test(refuses_invalid_descriptions),
		cmocka_unit_test(refuses_an_unknown_node),
		cmocka_unit_test(refuses_an_unknown_kind),
		cmocka_unit_test(pinned_memory_cannot_be_shared),
		cmocka_unit_test(memory_is_exported_only_if_created_exportable),
		cmocka_unit_test(more_memory_than_the_machine_has_is_an_error),
		cmocka_unit_test(refuses_to_create_without_a_current_context),
		cmocka_unit_test(auto_uses_host_memory_that_can_be_shared),
		cmocka_unit_test(a_named_file_exists_until_destroyed),
		cmocka_unit_test(concurrent_exports_return_one_descriptor),
		cmocka_unit_test(a_thread_without_a_context_may_destroy_memory),
		cmocka_unit_test(nothing_leaks_in_1000_rounds),
		cmocka_unit_test(both_devices_access_the_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
