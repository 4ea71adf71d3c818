/* test_proxy_cpu.c — to which CPU the proxy's thread is pinned. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "proxy/proxy_internal.h"
#include "tests/proxy/as_kernel.h"

/* ---- parsing and choosing, without threads ---------------------------------------------- */

static cpu_set_t set_of(const char *text)
{
	cpu_set_t set;

	assert_true(gpul_cpu_parse_list(text, &set));
	return set;
}

static void parses_linux_cpu_lists(void **state)
{
	(void)state;
	cpu_set_t set = set_of("0-3,8,10-11\n");

	assert_int_equal(CPU_COUNT(&set), 7);
	assert_true(CPU_ISSET(0, &set) && CPU_ISSET(3, &set) && CPU_ISSET(8, &set) && CPU_ISSET(11, &set));
	assert_false(CPU_ISSET(4, &set) || CPU_ISSET(9, &set));
	set = set_of("1023-99999999999999999999999"); /* a cpu_set_t ends at CPU 1023 */
	assert_int_equal(CPU_COUNT(&set), 1);
	set = set_of(""); /* the kernel's list for a NUMA node without CPUs */
	assert_int_equal(CPU_COUNT(&set), 0);
	set = set_of("\n");
	assert_int_equal(CPU_COUNT(&set), 0);
	assert_false(gpul_cpu_parse_list("x", &set));
	assert_false(gpul_cpu_parse_list("1-", &set));
	assert_false(gpul_cpu_parse_list("1;2", &set));
	assert_false(gpul_cpu_parse_list("1,,2", &set));
}

static void avoids_the_callers_cpu_and_those_of_other_proxies(void **state)
{
	(void)state;
	const cpu_set_t may = set_of("0-3"), beside = set_of("2-3"), none = set_of("");
	const cpu_set_t one = set_of("3");
	unsigned n[CPU_SETSIZE] = { 0 };

	assert_int_equal(gpul_cpu_choose(&may, &none, n, 0), 3);   /* chooses the highest allowed CPU */
	assert_int_equal(gpul_cpu_choose(&may, &none, n, 3), 2);   /* the caller runs on CPU 3 */
	assert_int_equal(gpul_cpu_choose(&may, &beside, n, 3), 1); /* CPU 2 shares the caller's core */
	n[1] = 1;
	assert_int_equal(gpul_cpu_choose(&may, &beside, n, 3), 0);
	n[0] = 1;
	assert_int_equal(gpul_cpu_choose(&may, &beside, n, 3), 2); /* CPUs 0 and 1 already have proxies, so 2 is better */
	n[2] = 1;
	assert_int_equal(gpul_cpu_choose(&may, &beside, n, 3), 1);
	assert_int_equal(gpul_cpu_choose(&one, &none, n, 3), -1); /* the only allowed CPU is the caller's */
	assert_int_equal(gpul_cpu_choose(&none, &none, n, 0), -1);
}

/* ---- threads on this machine ------------------------------------------------------------ */

struct where {
	cpu_set_t may;
	int on;
};

static gpul_status look(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct where *where = context;

	(void)fifo, (void)items, (void)n, (void)err;
	pthread_getaffinity_np(pthread_self(), sizeof where->may, &where->may);
	where->on = sched_getcpu();
	return GPUL_OK;
}

/* Run a proxy with this pin, and store in *where on which CPU its thread runs.  Returns its stats. */
static gpul_proxy_stats run(gpul_proxy_pin pin, int number, struct where *where)
{
	struct as_kernel k;
	gpul_error err = { 0 };
	gpul_proxy_stats stats;
	gpul_proxy *p = NULL;

	as_kernel_open(&k, 1, 1);
	if (gpul_proxy_start(
		    &(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds[0] = { look, where }, .pin = pin, .pin_number = number }, &p,
		    &err))
		fail_msg("%s", err.text);
	as_kernel_push(&k, 0, 0, 0);
	assert_int_equal(gpul_proxy_drain(p, -1, NULL), GPUL_OK);
	gpul_proxy_get_stats(p, &stats);
	assert_int_equal(gpul_proxy_stop(p, NULL), GPUL_OK);
	as_kernel_close(&k);
	return stats;
}

/* The CPUs that this thread, and the threads that it creates, may run on. */
static cpu_set_t allowed(void)
{
	cpu_set_t set;

	assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof set, &set), 0);
	return set;
}

static void allow(const cpu_set_t *set)
{
	assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof *set, set), 0);
}

static int last_of(const cpu_set_t *set)
{
	int cpu = CPU_SETSIZE - 1;

	while (!CPU_ISSET((size_t)cpu, set))
		cpu--;
	return cpu;
}

static void thread_is_pinned_to_the_requested_cpu(void **state)
{
	(void)state;
	const cpu_set_t mine = allowed();
	const int last = last_of(&mine);
	struct where where;
	gpul_proxy_stats stats = run(GPUL_PROXY_PIN_CPU, last, &where);

	assert_int_equal(stats.cpu, last);
	assert_int_equal(where.on, last);
	assert_int_equal(CPU_COUNT(&where.may), 1);
}

static void unpinned_thread_has_the_callers_affinity(void **state)
{
	(void)state;
	const cpu_set_t mine = allowed();
	struct where where;
	gpul_proxy_stats stats = run(GPUL_PROXY_PIN_NONE, 0, &where);

	assert_int_equal(stats.cpu, -1);
	assert_true(CPU_EQUAL(&where.may, &mine));
	stats = run(GPUL_PROXY_PIN_AUTO, 0, &where); /* the memory's NUMA node is unknown */
	assert_int_equal(stats.cpu, -1);
	assert_true(CPU_EQUAL(&where.may, &mine));
}

static void thread_is_not_pinned_if_only_the_callers_cpu_is_allowed(void **state)
{
	(void)state;
	const cpu_set_t before = allowed();
	struct where where;
	gpul_proxy_stats stats;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)last_of(&before), &one);
	allow(&one);
	if (gpul_cpu_reserve(GPUL_PROXY_PIN_NODE, 0, &stats.cpu, NULL)) {
		allow(&before);
		skip(); /* the only allowed CPU is on another NUMA node */
	}
	stats = run(GPUL_PROXY_PIN_NODE, 0, &where); /* both threads run on one CPU */
	allow(&before);
	assert_int_equal(stats.cpu, -1);
	assert_true(CPU_EQUAL(&where.may, &one));
}

static void unknown_node_is_an_error_for_pin_node_only(void **state)
{
	(void)state;
	gpul_error err = { 0 };
	int cpu = 7;

	assert_int_equal(gpul_cpu_reserve(GPUL_PROXY_PIN_AUTO, 9999, &cpu, &err), GPUL_OK);
	assert_int_equal(cpu, -1);
	assert_int_equal(err.status, GPUL_OK);
	assert_int_equal(gpul_cpu_reserve(GPUL_PROXY_PIN_NODE, 9999, &cpu, &err), GPUL_EINVAL);
	assert_int_equal(cpu, -1);
	gpul_cpu_unreserve(cpu);
}

static void proxies_of_a_node_get_different_cpus(void **state)
{
	(void)state;
	enum { N = 4 };
	const cpu_set_t before = allowed();
	int cpu[N], n_on[CPU_SETSIZE] = { 0 };
	gpul_error err = { 0 };

	for (int i = 0; i < N; i++) {
		if (gpul_cpu_reserve(GPUL_PROXY_PIN_NODE, 0, &cpu[i], &err))
			skip(); /* no CPU of NUMA node 0 is allowed */
		if (cpu[i] >= 0) {
			assert_true(CPU_ISSET((size_t)cpu[i], &before));
			n_on[cpu[i]]++;
		}
	}
	if (CPU_COUNT(&before) > N + 1)
		for (int i = 0; i < N; i++)
			assert_true(cpu[i] < 0 || n_on[cpu[i]] <= 2); /* 2, because the caller may have moved to another CPU meanwhile */
	for (int i = 0; i < N; i++)
		gpul_cpu_unreserve(cpu[i]);
}

static void pin_cpu_ignores_the_callers_affinity(void **state)
{
	(void)state;
	const cpu_set_t before = allowed();
	const int last = last_of(&before);
	cpu_set_t others = before;
	struct where where;
	gpul_proxy_stats stats;

	if (CPU_COUNT(&before) < 2)
		skip();
	CPU_CLR((size_t)last, &others);
	allow(&others);
	stats = run(GPUL_PROXY_PIN_CPU, last, &where);
	allow(&before);
	assert_int_equal(stats.cpu, last);
	assert_int_equal(where.on, last);
}

static void refuses_a_cpu_that_does_not_exist(void **state)
{
	(void)state;
	struct as_kernel k;
	gpul_error err = { 0 };
	gpul_proxy *p = NULL;
	gpul_proxy_desc desc = { .fifos = &k.fifo, .n_fifos = 1, .pin = GPUL_PROXY_PIN_CPU, .pin_number = CPU_SETSIZE - 1 };

	as_kernel_open(&k, 1, 1);
	assert_int_equal(gpul_proxy_start(&desc, &p, &err), GPUL_EINVAL);
	assert_int_equal(err.native, CPU_SETSIZE - 1);
	assert_non_null(strstr(err.text, "CPU 1023 does not exist"));
	desc.pin_number = CPU_SETSIZE;
	assert_int_equal(gpul_proxy_start(&desc, &p, NULL), GPUL_EINVAL);
	assert_null(p);
	as_kernel_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_linux_cpu_lists),
		cmocka_unit_test(avoids_the_callers_cpu_and_those_of_other_proxies),
		cmocka_unit_test(thread_is_pinned_to_the_requested_cpu),
		cmocka_unit_test(unpinned_thread_has_the_callers_affinity),
		cmocka_unit_test(thread_is_not_pinned_if_only_the_callers_cpu_is_allowed),
		cmocka_unit_test(unknown_node_is_an_error_for_pin_node_only),
		cmocka_unit_test(proxies_of_a_node_get_different_cpus),
		cmocka_unit_test(pin_cpu_ignores_the_callers_affinity),
		cmocka_unit_test(refuses_a_cpu_that_does_not_exist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
