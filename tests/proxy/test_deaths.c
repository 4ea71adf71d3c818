/* test_deaths.c — the lifeline in the FIFO's memory shows that the process with the other end has died, without file descriptors. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "proxy/proxy.h"
#include "tests/fake/fake_driver.h"

static const gpul_fifo_shape shape = { .slots = 8, .lanes = 2 };
enum { AREA_BYTES = 4096, SOON_MS = 20000 };

static unsigned char *area; /* memory shared with the child processes */
static gpul_fifo *fifo;

static int set_up(void **state)
{
	(void)state;
	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return area == MAP_FAILED || gpul_fifo_area_format(area, AREA_BYTES, &shape, NULL) || gpul_fifo_open(area, AREA_BYTES, &fifo, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	gpul_fifo_close(fifo);
	return munmap(area, AREA_BYTES);
}

static gpul_fifo_gpu *kernels_end(void)
{
	gpul_fifo_gpu *g = NULL;

	assert_int_equal(gpul_fifo_gpu_create(fake_driver(0), area, (CUdeviceptr)(uintptr_t)area, AREA_BYTES, &g, NULL), GPUL_OK);
	return g;
}

/* Start a process that opens one end of the FIFO and holds its lifeline. */
static pid_t process(int has_kernels)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		gpul_fifo *f;

		if (has_kernels && gpul_fifo_gpu_hold_lifeline(kernels_end(), NULL))
			_exit(1);
		if (!has_kernels && (gpul_fifo_open(area, AREA_BYTES, &f, NULL) || gpul_fifo_hold_lifeline(f, NULL)))
			_exit(1);
		if (write(ready[1], "!", 1) == 1)
			for (;;)
				pause();
		_exit(2);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void shoot(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void cpus_end_detects_the_death_of_the_kernels_process(void **state)
{
	(void)state;
	assert_false(gpul_fifo_peer_died(fifo));
	pid_t child = process(1);

	assert_false(gpul_fifo_peer_died(fifo));
	shoot(child);
	assert_true(gpul_fifo_peer_died(fifo));
}

static void kernels_end_detects_the_death_of_the_proxys_process(void **state)
{
	(void)state;
	gpul_fifo_gpu *g = kernels_end();
	pid_t child = process(0);

	assert_false(gpul_fifo_gpu_peer_died(g));
	shoot(child);
	assert_true(gpul_fifo_gpu_peer_died(g));
	assert_false(gpul_fifo_peer_died(fifo));
	gpul_fifo_gpu_destroy(g);
}

static void closing_in_order_is_not_a_death(void **state)
{
	(void)state;
	gpul_fifo_gpu *g = kernels_end();

	assert_int_equal(gpul_fifo_gpu_hold_lifeline(g, NULL), GPUL_OK);
	assert_int_equal(gpul_fifo_gpu_hold_lifeline(g, NULL), GPUL_OK); /* the second call changes nothing */
	gpul_fifo_gpu_destroy(g);
	assert_false(gpul_fifo_peer_died(fifo));
}

static void earlier_deaths_are_not_reported(void **state)
{
	gpul_fifo *second = NULL;

	(void)state;
	shoot(process(1));
	assert_true(gpul_fifo_peer_died(fifo));
	assert_int_equal(gpul_fifo_open(area, AREA_BYTES, &second, NULL), GPUL_OK);
	assert_false(gpul_fifo_peer_died(second));
	gpul_fifo_close(second);

	shoot(process(0));
	gpul_fifo_gpu *g = kernels_end();

	assert_false(gpul_fifo_gpu_peer_died(g));
	gpul_fifo_gpu_destroy(g);
}

static void reset_keeps_the_lifelines(void **state)
{
	(void)state;
	pid_t child = process(1);

	assert_int_equal(gpul_fifo_reset(fifo, NULL), GPUL_OK);
	assert_false(gpul_fifo_peer_died(fifo));
	shoot(child);
	assert_true(gpul_fifo_peer_died(fifo));
	assert_int_equal(gpul_fifo_reset(fifo, NULL), GPUL_OK);
	assert_false(gpul_fifo_peer_died(fifo));
}

static gpul_status nothing(void *context, gpul_fifo *f, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	(void)context, (void)f, (void)items, (void)n, (void)err;
	return GPUL_OK;
}

/* The proxy's thread spins in one case and sleeps in the other; it watches no descriptor. */
static void proxy_thread_ends_when_the_kernels_process_dies(void **state)
{
	(void)state;
	for (int sleeps = 0; sleeps < 2; sleeps++) {
		gpul_proxy_desc desc = {
			.fifos = &fifo, .n_fifos = 1, .kinds[1] = { nothing, NULL }, .spin_ns = sleeps ? 1 : GPUL_PROXY_SPIN_ALWAYS
		};
		gpul_proxy *p = NULL;
		gpul_error err = { 0 };
		pid_t child;

		assert_int_equal(gpul_proxy_start(&desc, &p, &err), GPUL_OK);
		child = process(1);
		assert_int_equal(gpul_proxy_failed(p, &err), GPUL_OK);
		shoot(child);
		for (int ms = 0; ms < SOON_MS && !gpul_proxy_failed(p, NULL); ms++)
			usleep(1000);
		assert_int_equal(gpul_proxy_stop(p, &err), GPUL_ESYS);
		assert_int_equal(err.native, EPIPE);
		assert_int_equal(gpul_fifo_aborted(fifo), GPUL_FIFO_CODE_PEER_GONE);
		assert_int_equal(gpul_fifo_reset(fifo, NULL), GPUL_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cpus_end_detects_the_death_of_the_kernels_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kernels_end_detects_the_death_of_the_proxys_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closing_in_order_is_not_a_death, set_up, tear_down),
		cmocka_unit_test_setup_teardown(earlier_deaths_are_not_reported, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reset_keeps_the_lifelines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(proxy_thread_ends_when_the_kernels_process_dies, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
