/* offload_openmp.c — tests of OpenMP on a device.  Without an argument, prints the names of the tests; with a name, runs this test.
 *
 * Each region sets `host` if it runs on the host, which fails the test.  Run by gcc_offload.py. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 5000, ROWS = 37, COLUMNS = 53 };

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition); \
			return 1; \
		} \
	} while (0)

static int maps_copy_in_both_directions(void)
{
	int to[N], from[N], both[N], host = 0;

	for (int i = 0; i < N; i++)
		to[i] = 3 * i, from[i] = -1, both[i] = i;
#pragma omp target teams distribute parallel for map(to : to) map(from : from) map(tofrom : both) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= omp_is_initial_device();
		from[i] = to[i] + 1;
		both[i] += to[i];
		to[i] = 0; /* not copied back */
	}
	EXPECT(!host);
	for (int i = 0; i < N; i++)
		EXPECT(to[i] == 3 * i && from[i] == 3 * i + 1 && both[i] == 4 * i);
	return 0;
}

static int reductions_agree_with_the_host(void)
{
	double x[N], sum = 0, largest = -1;
	long long product = 1, bits = 0;
	int host = 0;

	for (int i = 0; i < N; i++)
		x[i] = i % 2 ? i : -i;
#pragma omp target teams distribute parallel for map(to : x) map(tofrom : sum, largest, bits) reduction(+ : sum) reduction(max : largest) \
	reduction(^ : bits) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= omp_is_initial_device();
		sum += x[i];
		largest = x[i] > largest ? x[i] : largest;
		bits ^= (long long)i * i;
	}
#pragma omp target parallel for map(tofrom : product) reduction(* : product) reduction(| : host)
	for (int i = 1; i <= 15; i++) {
		host |= omp_is_initial_device();
		product *= i;
	}
	long long expected = 0;
	for (int i = 0; i < N; i++)
		expected ^= (long long)i * i;
	EXPECT(!host && sum == N / 2 && largest == N - 1 && bits == expected && product == 1307674368000);
	return 0;
}

static int loops_are_distributed_over_teams_and_threads(void)
{
	int team[ROWS][COLUMNS], thread[ROWS][COLUMNS], host = 0, n_teams = 0, n_threads = 0;

#pragma omp target teams distribute parallel for collapse(2) num_teams(4) thread_limit(64) map(from : team, thread) reduction(| : host)
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLUMNS; c++) {
			host |= omp_is_initial_device();
			team[r][c] = omp_get_team_num();
			thread[r][c] = omp_get_thread_num();
		}
	for (int r = 0; r < ROWS; r++)
		for (int c = 0; c < COLUMNS; c++) {
			n_teams = team[r][c] >= n_teams ? team[r][c] + 1 : n_teams;
			n_threads = thread[r][c] >= n_threads ? thread[r][c] + 1 : n_threads;
		}
	EXPECT(!host && n_teams > 1 && n_teams <= 4 && n_threads > 1 && n_threads <= 64);
	return 0;
}

#pragma omp declare target
static int scale = 2, calls[4];

static int scaled(int x)
{
#pragma omp atomic
	calls[x % 4]++;
	return scale * x;
}
#pragma omp end declare target

static int functions_and_variables_are_declared_for_the_device(void)
{
	int y[N], host = 0;

	scale = 7;
#pragma omp target update to(scale)
#pragma omp target teams distribute parallel for map(from : y) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= omp_is_initial_device();
		y[i] = scaled(i);
	}
	EXPECT(!host && calls[0] == 0);
#pragma omp target update from(calls)
	for (int i = 0; i < N; i++)
		EXPECT(y[i] == 7 * i);
	for (int i = 0; i < 4; i++)
		EXPECT(calls[i] == N / 4);
	return 0;
}

static int a_data_region_keeps_its_copy(void)
{
	int x[N], host = 0, before, inside, outside; /* EXPECT() returns, which is not allowed inside a region */

	for (int i = 0; i < N; i++)
		x[i] = i;
#pragma omp target data map(tofrom : x)
	{
#pragma omp target teams distribute parallel for reduction(| : host)
		for (int i = 0; i < N; i++) {
			host |= omp_is_initial_device();
			x[i]++;
		}
		before = x[10]; /* value of the host's copy */
#pragma omp target update from(x[0 : 100])
		inside = x[99], outside = x[100];
		x[5] = 1000;
#pragma omp target update to(x[5 : 1])
#pragma omp target parallel for reduction(| : host)
		for (int i = 0; i < N; i++) {
			host |= omp_is_initial_device();
			x[i] *= 2;
		}
	}
	EXPECT(!host && before == 10 && inside == 100 && outside == 100);
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == (i == 5 ? 2000 : 2 * (i + 1)));
	return 0;
}

static int memory_is_allocated_and_copied_by_calls(void)
{
	const int device = omp_get_default_device(), self = omp_get_initial_device();
	int *on_device = omp_target_alloc(N * sizeof(int), device), *second = omp_target_alloc(N * sizeof(int), device);
	int x[N], y[N] = { 0 }, host = 0;

	EXPECT(on_device && second);
	for (int i = 0; i < N; i++)
		x[i] = i * i;
	EXPECT(!omp_target_memcpy(on_device, x, sizeof x, 0, 0, device, self));
#pragma omp target teams distribute parallel for is_device_ptr(on_device) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= omp_is_initial_device();
		on_device[i] -= i;
	}
	EXPECT(!omp_target_memcpy(second, on_device, sizeof x - 40, 40, 0, device, device));
	EXPECT(!omp_target_memcpy(y, second, sizeof y - 40, 40, 40, self, device));
	EXPECT(!host);
	for (int i = 0; i < N; i++)
		EXPECT(y[i] == (i < 10 ? 0 : (i - 10) * (i - 10) - (i - 10)));
	omp_target_free(on_device, device);
	omp_target_free(second, device);
	return 0;
}

static int every_device_runs_a_region(void)
{
	const int n = omp_get_num_devices();

	EXPECT(n == 2 && omp_get_initial_device() == n);
	for (int d = 0; d < n; d++) {
		int number = -1, host = 1, x[8] = { 0 };

#pragma omp target device(d) map(from : number, host) map(tofrom : x)
		{
			host = omp_is_initial_device();
			number = omp_get_device_num();
			x[3] = 10 + number;
		}
		EXPECT(!host && number == d && x[3] == 10 + d);
	}
	return 0;
}

static int tasks_wait_for_those_they_depend_on(void)
{
	int x[N] = { 0 };

#pragma omp target enter data map(to : x)
#pragma omp parallel
#pragma omp single
	{
		for (int k = 1; k <= 4; k++)
#pragma omp target teams distribute parallel for nowait depend(inout : x) firstprivate(k)
			for (int i = 0; i < N; i++)
				x[i] = omp_is_initial_device() ? -1 : 3 * x[i] + k;
#pragma omp taskwait
	}
#pragma omp target exit data map(from : x)
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == ((1 * 3 + 2) * 3 + 3) * 3 + 4);
	return 0;
}

static int functions_of_libm_run_on_the_device(void)
{
	double x[N], y[N];
	float z[N];
	int host = 0;

	for (int i = 0; i < N; i++)
		x[i] = 0.01 * i;
#pragma omp target teams distribute parallel for map(to : x) map(from : y, z) reduction(| : host)
	for (int i = 0; i < N; i++) {
		host |= omp_is_initial_device();
		y[i] = sin(x[i]) + pow(x[i], 0.3) + log(1 + x[i]);
		z[i] = sqrtf((float)x[i]);
	}
	EXPECT(!host);
	for (int i = 0; i < N; i++) {
		EXPECT(fabs(y[i] - (sin(x[i]) + pow(x[i], 0.3) + log(1 + x[i]))) < 1e-12 * (1 + fabs(y[i])));
		EXPECT(fabsf(z[i] - sqrtf((float)x[i])) < 1e-6f * (1 + z[i]));
	}
	return 0;
}

static int critical_regions_exclude_each_other(void)
{
	long long total = 0;
	int host = 0;

#pragma omp target parallel for num_threads(32) map(tofrom : total, host)
	for (int i = 0; i < 500; i++)
#pragma omp critical
	{
		total += i;
		host |= omp_is_initial_device();
	}
	EXPECT(!host && total == 124750);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} tests[] = {
#define TEST(name) { #name, name }
	TEST(maps_copy_in_both_directions),
	TEST(reductions_agree_with_the_host),
	TEST(loops_are_distributed_over_teams_and_threads),
	TEST(functions_and_variables_are_declared_for_the_device),
	TEST(a_data_region_keeps_its_copy),
	TEST(memory_is_allocated_and_copied_by_calls),
	TEST(every_device_runs_a_region),
	TEST(tasks_wait_for_those_they_depend_on),
	TEST(functions_of_libm_run_on_the_device),
	TEST(critical_regions_exclude_each_other),
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
