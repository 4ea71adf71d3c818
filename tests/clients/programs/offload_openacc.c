/* offload_openacc.c — tests of OpenACC on a device.  Without an argument, prints the names of the tests; with a name, runs this test.
 *
 * Each region sets `host` if it runs on the host, which fails the test.  Run by gcc_offload.py. */
#include <openacc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4000, N_QUEUES = 4 };

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition); \
			return 1; \
		} \
	} while (0)
#define ON_HOST() (!acc_on_device(acc_device_not_host))

static int parallel_loops_copy_in_and_out(void)
{
	float in[N], out[N], both[N];
	int host = 0;

	for (int i = 0; i < N; i++)
		in[i] = (float)i, out[i] = -1, both[i] = 1;
#pragma acc parallel loop copyin(in) copyout(out) copy(both) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= ON_HOST();
		out[i] = in[i] + 0.5f;
		both[i] += in[i];
		in[i] = 0; /* not copied back */
	}
	EXPECT(!host);
	for (int i = 0; i < N; i++)
		EXPECT(in[i] == (float)i && out[i] == (float)i + 0.5f && both[i] == (float)i + 1);
	return 0;
}

static int reductions_over_gangs_workers_and_vectors(void)
{
	long long sum = 0;
	int largest = 0, host = 0;

#pragma acc parallel loop gang num_gangs(5) num_workers(4) vector_length(32) reduction(+ : sum) reduction(max : largest) reduction(| : host)
	for (int i = 0; i < 50; i++) {
		host |= ON_HOST();
#pragma acc loop worker vector reduction(+ : sum) reduction(max : largest)
		for (int k = 0; k < 70; k++) {
			sum += i * k;
			largest = i * k > largest ? i * k : largest;
		}
	}
	EXPECT(!host && sum == 1225LL * 2415 && largest == 49 * 69);
	return 0;
}

static int queues_keep_their_order_and_wait_for_each_other(void)
{
	static int x[N_QUEUES][N], sum[N];
	int host = 0;

#pragma acc data create(x) copyout(sum) copy(host)
	{
		for (int q = 0; q < N_QUEUES; q++) {
#pragma acc parallel loop present(x) async(q)
			for (int i = 0; i < N; i++)
				x[q][i] = ON_HOST() ? -1 : q + i;
#pragma acc parallel loop present(x) async(q)
			for (int i = 0; i < N; i++)
				x[q][i] *= q + 1;
		}
#pragma acc parallel loop present(x, sum) wait(0, 1, 2, 3) async(N_QUEUES)
		for (int i = 0; i < N; i++) {
			sum[i] = 0;
			for (int q = 0; q < N_QUEUES; q++)
				sum[i] += x[q][i];
		}
#pragma acc parallel present(host) async(N_QUEUES)
		host = ON_HOST();
#pragma acc wait(N_QUEUES)
	}
	EXPECT(!host);
	for (int i = 0; i < N; i++)
		EXPECT(sum[i] == 10 * i + 0 + 2 + 6 + 12);
	return 0;
}

static int a_queue_is_tested_and_copies_in_it_are_done(void)
{
	static int x[N];

	for (int i = 0; i < N; i++)
		x[i] = i;
#pragma acc enter data copyin(x) async(7)
#pragma acc parallel loop present(x) async(7)
	for (int i = 0; i < N; i++)
		x[i] = ON_HOST() ? -1 : 2 * x[i];
#pragma acc update self(x[0 : N / 2]) async(7)
	acc_wait(7);
	EXPECT(acc_async_test(7) && acc_async_test_all());
	EXPECT(x[100] == 200 && x[N - 1] == N - 1);
#pragma acc exit data copyout(x) async(7)
#pragma acc wait
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == 2 * i);
	return 0;
}

static int a_data_region_keeps_its_copy(void)
{
	int x[N], host = 0, before, inside, outside; /* EXPECT() returns, which is not allowed inside a region */

	for (int i = 0; i < N; i++)
		x[i] = i;
#pragma acc data copy(x)
	{
#pragma acc parallel loop reduction(| : host)
		for (int i = 0; i < N; i++) {
			host |= ON_HOST();
			x[i]++;
		}
		before = x[10]; /* value of the host's copy */
#pragma acc update host(x[0 : 50])
		inside = x[49], outside = x[50];
		x[5] = 1000;
#pragma acc update device(x[5 : 1])
#pragma acc kernels
		for (int i = 0; i < N; i++)
			x[i] *= 2;
	}
	EXPECT(!host && before == 10 && inside == 50 && outside == 50);
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == (i == 5 ? 2000 : 2 * (i + 1)));
	EXPECT(!acc_is_present(x, sizeof x));
	return 0;
}

#pragma acc routine seq
static int collatz(int x)
{
	int steps = 0;

	for (; x > 1; steps++)
		x = x % 2 ? 3 * x + 1 : x / 2;
	return steps;
}

static int routines_are_called_on_the_device(void)
{
	int steps[N], host = 0;

#pragma acc parallel loop copyout(steps) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= ON_HOST();
		steps[i] = collatz(i);
	}
	EXPECT(!host);
	for (int i = 0; i < N; i++)
		EXPECT(steps[i] == collatz(i));
	return 0;
}

static int memory_is_allocated_and_copied_by_calls(void)
{
	int x[N], y[N], host = 0, *on_device = acc_malloc(sizeof x);

	EXPECT(on_device);
	for (int i = 0; i < N; i++)
		x[i] = i;
	acc_memcpy_to_device(on_device, x, sizeof x);
#pragma acc parallel loop deviceptr(on_device) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= ON_HOST();
#pragma acc atomic
		on_device[i % 10] += i >= 10 ? 1 : 0;
	}
	acc_memcpy_from_device(y, on_device, sizeof y);
	acc_free(on_device);
	EXPECT(!host);
	for (int i = 0; i < N; i++)
		EXPECT(y[i] == (i < 10 ? i + N / 10 - 1 : i));
	return 0;
}

static int every_device_runs_a_region(void)
{
	const int n = acc_get_num_devices(acc_device_nvidia);

	EXPECT(n == 2);
	for (int d = 0; d < n; d++) {
		int host = 1, x[8] = { 0 };

		acc_set_device_num(d, acc_device_nvidia);
		EXPECT(acc_get_device_num(acc_device_nvidia) == d && acc_get_device_type() == acc_device_nvidia);
#pragma acc parallel copyout(host) copy(x)
		{
			host = ON_HOST();
			x[3] = 10 + d;
		}
		EXPECT(!host && x[3] == 10 + d);
		EXPECT(acc_get_property(d, acc_device_nvidia, acc_property_memory) > 0);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} tests[] = {
#define TEST(name) { #name, name }
	TEST(parallel_loops_copy_in_and_out),
	TEST(reductions_over_gangs_workers_and_vectors),
	TEST(queues_keep_their_order_and_wait_for_each_other),
	TEST(a_queue_is_tested_and_copies_in_it_are_done),
	TEST(a_data_region_keeps_its_copy),
	TEST(routines_are_called_on_the_device),
	TEST(memory_is_allocated_and_copied_by_calls),
	TEST(every_device_runs_a_region),
};

int main(int n, char **arguments)
{
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (n < 2)
			puts(tests[i].name);
		else if (!strcmp(tests[i].name, arguments[1]))
			return tests[i].run();
	return n < 2 ? 0 : 2;
}
