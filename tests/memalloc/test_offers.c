/* test_offers.c — false offers are refused with a reason; nothing is mapped and nothing leaks. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/memalloc/support.h"

enum { PAGE = 65536 /* a multiple of every machine's page size */, BYTES = 8 * PAGE, ALL_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

static const gpul_driver *drv;
static gpul_context context;

static int create_memfd(size_t bytes, int seals)
{
	int fd = memfd_create("offered", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static gpul_mem_offer memfd_offer(size_t bytes, size_t mapped_bytes)
{
	return (gpul_mem_offer){ .kind = GPUL_MEM_MEMFD, .bytes = bytes, .mapped_bytes = mapped_bytes };
}

static gpul_status try_import(const gpul_mem_offer *offer, int fd, bool read_only, gpul_error *err)
{
	gpul_mem_desc desc = wanted(offer->kind, 1);
	gpul_mem *m = NULL;
	gpul_status st;

	desc.read_only = read_only;
	st = gpul_mem_import(drv, offer, fd, NULL, &desc, &m, err);
	assert_int_equal(m == NULL, st != GPUL_OK);
	gpul_mem_destroy(m);
	return st;
}

/* Check that the import fails with GPUL_EFORMAT and a message that contains the words, and that nothing leaks; closes fd. */
static void assert_refused(const gpul_mem_offer *offer, int fd, const char *words)
{
	size_t fds = count_fds(), mappings = count_mappings();
	gpul_error err = { 0 };

	assert_int_equal(try_import(offer, fd, false, &err), GPUL_EFORMAT);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, words);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_mappings(), mappings);
	close(fd);
}

static void refuses_false_sizes(void **state)
{
	static const size_t sizes[] = { 0,
					SIZE_MAX,
					(size_t)1 << 63,
					BYTES - 1,
					BYTES + 1,
					BYTES - PAGE,
					BYTES + PAGE,
					PTRDIFF_MAX,
					((size_t)1 << 63) - PAGE,
					2 * BYTES,
					1,
					PAGE };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		gpul_mem_offer mapped = memfd_offer(1, sizes[i]), used = memfd_offer(sizes[i], BYTES);

		assert_refused(&mapped, create_memfd(BYTES, ALL_SEALS), "bytes");
		if (sizes[i] == 0 || sizes[i] > BYTES)
			assert_refused(&used, create_memfd(BYTES, ALL_SEALS), "bytes");
		mapped.kind = GPUL_MEM_SHM;
		assert_refused(&mapped, create_memfd(BYTES, ALL_SEALS), "bytes");
	}
}

static void refuses_files_that_could_shrink(void **state)
{
	const gpul_mem_offer offer = memfd_offer(BYTES, BYTES);
	int fd;

	(void)state;
	assert_refused(&offer, create_memfd(BYTES, 0), "against shrinking");
	assert_refused(&offer, create_memfd(BYTES, F_SEAL_GROW), "against shrinking");
	assert_refused(&offer, create_memfd(BYTES, F_SEAL_SHRINK), "against growing");
	fd = memfd_create("unsealable", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	assert_refused(&offer, fd, "seal");
	fd = create_memfd(BYTES, 0);
	assert_int_equal(ftruncate(fd, PAGE), 0); /* the file shrinks after the offer was sent */
	assert_int_equal(fcntl(fd, F_ADD_SEALS, ALL_SEALS), 0);
	assert_refused(&offer, fd, "its file has 65536");
}

static void an_owner_cannot_shrink_offered_memory(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_MEMFD, BYTES);
	gpul_mem *m = NULL;
	int fd = -1;

	(void)state;
	assert_int_equal(gpul_mem_create(drv, &desc, &m, NULL), GPUL_OK);
	assert_int_equal(gpul_mem_export_fd(m, &fd, NULL), GPUL_OK);
	assert_int_equal(ftruncate(fd, PAGE), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 2 * BYTES), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1); /* the seals cannot be changed either */
	gpul_mem_destroy(m);
}

static int open_pipe(void)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[1]);
	return ends[0];
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int open_disk_file(void)
{
	char path[] = "./gpuload-test-XXXXXX"; /* in the build folder, which is on a disk, not in tmpfs */
	int fd = mkostemp(path, O_CLOEXEC);

	unlink(path);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	return fd;
}

static void refuses_descriptors_of_other_types(void **state)
{
	static const gpul_mem_kind kinds[] = { GPUL_MEM_MEMFD, GPUL_MEM_SHM, GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE };

	(void)state;
	for (int k = 0; k < 4; k++) {
		gpul_mem_offer offer = memfd_offer(BYTES, BYTES);

		offer.kind = kinds[k];
		assert_refused(&offer, open("/dev/null", O_RDWR | O_CLOEXEC), "offered");
		assert_refused(&offer, open("/dev/zero", O_RDWR | O_CLOEXEC), "offered");
		assert_refused(&offer, open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "offered");
		assert_refused(&offer, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "offered");
		assert_refused(&offer, open("/tmp", O_PATH | O_CLOEXEC), "offered");
		assert_refused(&offer, open_pipe(), "offered");
		assert_refused(&offer, open_socket(), "offered");
		assert_refused(&offer, open_disk_file(), "offered");
		assert_refused(&offer, 1000000, "offered"); /* this descriptor is not open */
	}
}

/* A sealed memfd is valid memfd memory, but not memory of the driver. */
static void refuses_a_memfd_as_driver_memory(void **state)
{
	static const size_t mapped = 2 << 20;
	static const gpul_mem_kind kinds[] = { GPUL_MEM_HOST_NUMA, GPUL_MEM_DEVICE };

	(void)state;
	for (int k = 0; k < 2; k++) {
		gpul_mem_offer offer = memfd_offer(mapped, mapped);

		offer.kind = kinds[k];
		assert_refused(&offer, create_memfd(mapped, ALL_SEALS), "offered");
		assert_refused(&offer, create_memfd(mapped, ALL_SEALS | F_SEAL_SEAL), "offered");
	}
}

static void a_read_only_descriptor_allows_only_reading(void **state)
{
	const gpul_mem_offer offer = memfd_offer(BYTES, BYTES);
	int fd = create_memfd(BYTES, ALL_SEALS), reading;
	gpul_error err = { 0 };
	char path[64];

	(void)state;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reading = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(reading >= 0);
	if (try_import(&offer, reading, true, &err) != GPUL_OK)
		fail_msg("%s", err.text);
	assert_refused(&offer, reading, "attach read-only");
	reading = open(path, O_WRONLY | O_CLOEXEC);
	assert_refused(&offer, reading, "cannot be read");
	close(fd);
}

static void a_file_sealed_against_writing_can_be_read(void **state)
{
	const gpul_mem_offer offer = memfd_offer(BYTES, BYTES);
	int fd = create_memfd(BYTES, ALL_SEALS | F_SEAL_FUTURE_WRITE);
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(try_import(&offer, fd, true, NULL), GPUL_OK);
	assert_int_equal(try_import(&offer, fd, false, &err), GPUL_ESYS);
	assert_non_null(strstr(err.text, "attach read-only"));
	close(fd);
}

static void refuses_offers_that_contradict_their_kind(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_MEMFD, 1);
	gpul_mem_offer offer = memfd_offer(BYTES, BYTES);
	gpul_mem_handle handle = { 0 };
	gpul_mem *m = NULL;
	int fd = create_memfd(BYTES, ALL_SEALS);

	(void)state;
	assert_int_equal(gpul_mem_import(drv, &offer, fd, &handle, &desc, &m, NULL), GPUL_EFORMAT);
	assert_int_equal(gpul_mem_import(drv, &offer, -1, &handle, &desc, &m, NULL), GPUL_EFORMAT);
	assert_int_equal(gpul_mem_import(drv, &offer, -1, NULL, &desc, &m, NULL), GPUL_EFORMAT);
	offer.fabric = true;
	assert_int_equal(gpul_mem_import(drv, &offer, -1, &handle, &desc, &m, NULL), GPUL_EFORMAT);
	offer.fabric = false;
	offer.kind = GPUL_MEM_DEVICE_IPC;
	assert_int_equal(gpul_mem_import(drv, &offer, fd, NULL, &desc, &m, NULL), GPUL_EFORMAT);
	offer.kind = GPUL_MEM_PINNED;
	assert_int_equal(gpul_mem_import(drv, &offer, fd, NULL, &desc, &m, NULL), GPUL_EUNSUPPORTED);
	for (int kind = -1; kind < 300; kind += kind == -1 ? 1 : 7) {
		offer.kind = (gpul_mem_kind)kind;
		if (kind <= 0 || kind >= GPUL_MEM_N_KINDS)
			assert_int_equal(gpul_mem_import(drv, &offer, fd, NULL, &desc, &m, NULL), GPUL_EFORMAT);
	}
	assert_null(m);
	close(fd);
}

/* The handles contain bytes that do not identify any memory. */
static void refuses_garbage_handles(void **state)
{
	gpul_mem_desc desc = wanted(GPUL_MEM_DEVICE_IPC, 1);
	gpul_mem_offer offer = { .kind = GPUL_MEM_DEVICE_IPC, .bytes = 1, .mapped_bytes = 2 << 20 };
	gpul_mem_handle handle;
	gpul_mem *m = NULL;

	(void)state;
	for (int byte = 0; byte < 256; byte += 15) {
		memset(&handle, byte, sizeof handle);
		assert_int_not_equal(gpul_mem_import(drv, &offer, -1, &handle, &desc, &m, NULL), GPUL_OK);
		assert_null(m);
	}
}

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

/* Return a random size that is often wrong and sometimes correct. */
static size_t random_size(uint64_t *s, size_t right)
{
	const size_t sizes[] = { right,
				 right,
				 right,
				 right - 1,
				 right + 1,
				 right + PAGE,
				 2 * right,
				 0,
				 SIZE_MAX,
				 (size_t)1 << 63,
				 next_random(s) % (4 * right),
				 next_random(s) };

	return sizes[next_random(s) % (sizeof sizes / sizeof sizes[0])];
}

static void random_offers_are_refused_or_mapped_as_described(void **state)
{
	const size_t mapped = 2 << 20;
	gpul_mem_desc desc = wanted(GPUL_MEM_HOST_NUMA, mapped);
	gpul_mem *of_driver = NULL;
	int fds[] = { -1, create_memfd(mapped, ALL_SEALS), create_memfd(mapped, 0), -1, open_pipe(), 999999 };
	uint64_t s = 88172645463325252u;
	size_t n_fds, n_mappings, n_mapped = 0;

	(void)state;
	assert_int_equal(gpul_mem_create(drv, &desc, &of_driver, NULL), GPUL_OK);
	assert_int_equal(gpul_mem_export_fd(of_driver, &fds[3], NULL), GPUL_OK);
	n_fds = count_fds();
	n_mappings = count_mappings();
	for (int i = 0; i < 20000; i++) {
		gpul_mem_offer offer = { .kind = (gpul_mem_kind)(next_random(&s) % 8),
					 .fabric = next_random(&s) % 8 == 0,
					 .bytes = random_size(&s, mapped),
					 .mapped_bytes = random_size(&s, mapped) };
		gpul_mem_handle handle = { .bytes = { (unsigned char)next_random(&s) } };
		const gpul_mem_handle *h = next_random(&s) % 4 ? NULL : &handle;
		gpul_error err = { 0 };
		gpul_mem *m = NULL;

		desc.read_only = next_random(&s) & 1;
		offer.owner_device = (int)(next_random(&s) % 3) - 1;
		if (gpul_mem_import(drv, &offer, fds[next_random(&s) % 6], h, &desc, &m, &err)) {
			assert_null(m);
			assert_true(*err.text);
			continue;
		}
		assert_int_equal(offer.mapped_bytes, mapped);
		assert_true(offer.bytes && offer.bytes <= mapped);
		gpul_mem_destroy(m);
		n_mapped++;
	}
	assert_true(n_mapped > 100);
	assert_int_equal(count_fds(), n_fds);
	assert_int_equal(count_mappings(), n_mappings);
	gpul_mem_destroy(of_driver);
	close(fds[1]);
	close(fds[2]);
	close(fds[4]);
}

static int setup(void **state)
{
	(void)state;
	drv = open_driver(&context);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gpul_context_close(&context);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_false_sizes),
		cmocka_unit_test(refuses_files_that_could_shrink),
		cmocka_unit_test(an_owner_cannot_shrink_offered_memory),
		cmocka_unit_test(refuses_descriptors_of_other_types),
		cmocka_unit_test(refuses_a_memfd_as_driver_memory),
		cmocka_unit_test(a_read_only_descriptor_allows_only_reading),
		cmocka_unit_test(a_file_sealed_against_writing_can_be_read),
		cmocka_unit_test(refuses_offers_that_contradict_their_kind),
		cmocka_unit_test(refuses_garbage_handles),
		cmocka_unit_test(random_offers_are_refused_or_mapped_as_described),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
