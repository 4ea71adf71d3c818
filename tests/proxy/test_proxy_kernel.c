/* test_proxy_kernel.c — a proxy's thread handles the triggers of device.cu's kernels.
 *
 * Runs on any driver (GPULOAD_DRIVER).  device.cu's triggers are of kind 15. */
#include <stdatomic.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "proxy/proxy.h"
#include "tests/proxy/device_rig.h"

enum { KIND = 15, SOON_NS = 20000000 };

struct server {
	struct rig *r;
	gpul_proxy *proxy;
	uint64_t n, fail_at; /* number of triggers; number of the trigger at which to fail, 0: none */
	atomic_bool blocked; /* the handler waits while this is true */
};

/* Check triggers like rig_take(), but on the proxy's thread, where cmocka assertions cannot be used. */
static gpul_status answer(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct server *s = context;

	(void)fifo;
	while (atomic_load(&s->blocked))
		usleep(100);
	for (unsigned i = 0; i < n; i++) {
		const uint64_t thread = items[i].word[0] >> 32, at = items[i].word[0] & UINT32_MAX;

		if (thread >= MAX_THREADS || items[i].word[1] != (items[i].word[0] ^ UINT64_MAX >> 1) || at != s->r->seen[thread])
			return gpul_fail(err, GPUL_EFORMAT, (int)i, "thread %llu: number %llu arrived instead of %llu",
					 (unsigned long long)thread, (unsigned long long)at,
					 (unsigned long long)s->r->seen[thread % MAX_THREADS]);
		s->r->seen[thread]++;
		s->r->notes[2 * thread + 1] = at + 1;
		if (++s->n == s->fail_at)
			return gpul_fail(err, GPUL_EVERBS, 1, "the link is down");
	}
	return GPUL_OK;
}

static void serve(struct server *s, struct rig *r, unsigned slots, unsigned lanes)
{
	gpul_proxy_desc desc = { .fifos = &r->fifo, .n_fifos = 1, .kinds[KIND] = { answer, s } };
	gpul_error err = { 0 };

	rig_fifo(r, slots, lanes);
	r->shared = lanes == 1;
	s->r = r;
	if (gpul_proxy_start(&desc, &s->proxy, &err))
		fail_msg("%s", err.text);
}

static void kernels_push_and_sync_with_a_proxy_thread(void **state)
{
	enum { BLOCKS = 4, THREADS = 16, EACH = 25 };
	static const char *const names[] = { "fifo_push", "fifo_push_release", "fifo_push_sync", "fifo_push_poll" };
	struct rig *r = *state;
	gpul_error err = { 0 };

	for (unsigned i = 0; i < 4; i++)
		for (unsigned lanes = 1; lanes <= BLOCKS * THREADS; lanes *= BLOCKS * THREADS) {
			struct server s = { 0 };

			serve(&s, r, 64, lanes);
			rig_launch(r, &(struct rig_kernel){ names[i], BLOCKS, THREADS, EACH, 0, FOR_EVER });
			rig_wait(r);
			if (gpul_proxy_drain(s.proxy, -1, &err) || gpul_proxy_stop(s.proxy, &err))
				fail_msg("%s", err.text);
			rig_expect(r, BLOCKS * THREADS, GPUL_FIFO_OK, EACH);
			assert_int_equal(s.n, BLOCKS * THREADS * EACH);
			assert_int_equal(gpul_fifo_aborted(r->fifo), 0);
			rig_fifo_close(r);
		}
}

static void handler_error_ends_the_kernel(void **state)
{
	struct rig *r = *state;
	struct server s = { .fail_at = 100 };
	gpul_error err = { 0 };

	serve(&s, r, 16, 1);
	rig_launch(r, &(struct rig_kernel){ "fifo_push_sync", 2, 8, 1000000, 0, FOR_EVER });
	rig_wait(r);
	for (unsigned thread = 0; thread < 16; thread++)
		assert_int_equal(r->results[2 * thread], GPUL_FIFO_ABORTED);
	assert_int_equal(gpul_fifo_gpu_aborted(gpul_fifo_gpu_of(r->fifo)), GPUL_EVERBS);
	assert_int_equal(gpul_proxy_stop(s.proxy, &err), GPUL_EVERBS);
	assert_string_equal(err.text, "the link is down");
	rig_fifo_close(r);
}

static void kernel_time_out_ends_the_proxy_thread(void **state)
{
	struct rig *r = *state;
	struct server s = { .blocked = true };
	gpul_error err = { 0 };

	serve(&s, r, 4, 1);
	rig_launch(r, &(struct rig_kernel){ "fifo_push", 1, 8, 10, 0, SOON_NS });
	rig_wait(r);
	atomic_store(&s.blocked, false);
	while (gpul_proxy_failed(s.proxy, &err) == GPUL_OK)
		usleep(100);
	assert_int_equal(gpul_proxy_stop(s.proxy, NULL), GPUL_ESYS);
	assert_int_equal(err.native, ECANCELED);
	assert_non_null(strstr(err.text, "aborted with code 0x100"));
	rig_fifo_close(r);
}

static void stopping_aborts_a_kernel_that_still_pushes(void **state)
{
	struct rig *r = *state;
	struct server s = { 0 };
	gpul_proxy_stats stats = { 0 };

	serve(&s, r, 16, 1);
	rig_launch(r, &(struct rig_kernel){ "fifo_push", 1, 8, 100000000, 0, FOR_EVER });
	while (stats.triggers < 1000) {
		usleep(100);
		gpul_proxy_get_stats(s.proxy, &stats);
	}
	assert_int_equal(gpul_proxy_stop(s.proxy, NULL), GPUL_OK);
	/* If the proxy found no trigger in its last poll, stopping it has not aborted the kernel. */
	if (!gpul_fifo_aborted(r->fifo))
		gpul_fifo_abort(r->fifo, GPUL_FIFO_CODE_STOPPED);
	rig_wait(r);
	for (unsigned thread = 0; thread < 8; thread++)
		assert_int_equal(r->results[2 * thread], GPUL_FIFO_ABORTED);
	assert_int_equal(gpul_fifo_aborted(r->fifo), GPUL_FIFO_CODE_STOPPED);
	rig_fifo_close(r);
}

static int open_kernels(void **state)
{
	*state = (void *)(uintptr_t)GPUL_KERNELS "/tests/proxy/device.ptx";
	return rig_open(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_push_and_sync_with_a_proxy_thread),
		cmocka_unit_test(handler_error_ends_the_kernel),
		cmocka_unit_test(kernel_time_out_ends_the_proxy_thread),
		cmocka_unit_test(stopping_aborts_a_kernel_that_still_pushes),
	};

	return cmocka_run_group_tests(tests, open_kernels, rig_close);
}
