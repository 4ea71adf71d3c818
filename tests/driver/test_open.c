/* test_open.c — which driver is opened, and the message when none can be.
 *
 * A process keeps the driver that it opened, so each case runs in a child.  The fake drivers so_*.so have the name
 * libcuda.so.1: when one of them is loaded, dlopen("libcuda.so.1") returns it, whatever driver the machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/log.h"
#include "driver/driver.h"
#include "driver/driver_internal.h"

static char here[PATH_MAX]; /* the folder of this program, which also has the fake drivers */

static const char *beside(const char *name)
{
	static char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", here, name);
	return path;
}

struct outcome { /* sent from the child to its parent */
	gpul_status status;
	gpul_error err;
	char name[16];
	char notice[256];
	int n_notices, version;
	bool runs_machine_code, interprets, fds_are_files;
	char open_env[2][300]; /* the first two strings of the table's open_env, or "" */
};

struct setting {
	const char *nvidia, *soft;    /* files of the fake drivers; NULL: none */
	const char *devices, *choice; /* values of FAKE_DEVICES and GPULOAD_DRIVER */
	gpul_driver_choice asked;
};

static void keep_notice(void *user, gpul_log_level level, const char *module, const char *line)
{
	struct outcome *o = user;

	(void)module;
	if (level != GPUL_LOG_NOTICE)
		return;
	o->n_notices++;
	snprintf(o->notice, sizeof o->notice, "%s", line);
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void *open_auto(void *unused)
{
	const gpul_driver *drv = NULL;

	(void)unused;
	return gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL) == GPUL_OK ? (void *)(uintptr_t)drv : NULL;
}

enum { N_THREADS = 4 };

/* Start threads that open the driver at the same time: all must get the same table, or none. */
static void start_openers(pthread_t threads[N_THREADS])
{
	for (int i = 0; i < N_THREADS; i++)
		if (pthread_create(&threads[i], NULL, open_auto, NULL) != 0)
			abort();
}

static bool openers_got(const pthread_t threads[N_THREADS], const gpul_driver *drv)
{
	bool agree = true;

	for (int i = 0; i < N_THREADS; i++) {
		void *got;

		pthread_join(threads[i], &got);
		agree = agree && got == drv;
	}
	return agree;
}

static void child(const struct setting *s, int fd)
{
	static struct outcome o;
	const gpul_driver *drv = NULL, *again = NULL;
	pthread_t threads[N_THREADS];

	gpul_log_to(keep_notice, &o);
	set("FAKE_DEVICES", s->devices);
	set("GPULOAD_DRIVER", s->choice);
	set("GPULOAD_SOFT_DRIVER", beside(s->soft ? s->soft : "so_absent.so"));
	dlopen(beside(s->nvidia ? s->nvidia : "so_no_driver.so"), RTLD_NOW);
	if (s->asked == GPUL_DRIVER_AUTO)
		start_openers(threads);
	o.status = gpul_driver_open(s->asked, &drv, &o.err);
	if (o.status == GPUL_OK) {
		snprintf(o.name, sizeof o.name, "%s", drv->name);
		o.version = drv->version;
		o.runs_machine_code = drv->runs_machine_code;
		o.interprets = drv->interprets;
		o.fds_are_files = drv->fds_are_files;
		for (int i = 0; i < 2 && drv->open_env[i]; i++)
			snprintf(o.open_env[i], sizeof o.open_env[i], "%s", drv->open_env[i]);
		if (gpul_driver_open(s->asked, &again, NULL) != GPUL_OK || again != drv)
			snprintf(o.name, sizeof o.name, "another");
	}
	if (s->asked == GPUL_DRIVER_AUTO && !openers_got(threads, drv))
		snprintf(o.name, sizeof o.name, "several");
	_exit(write(fd, &o, sizeof o) == sizeof o ? 0 : 1);
}

static struct outcome open_with(struct setting s)
{
	struct outcome o;
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0)
		child(&s, ends[1]);
	assert_int_equal(read(ends[0], &o, sizeof o), sizeof o);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
	return o;
}

static void auto_opens_nvidias_driver_when_it_has_a_device(void **state)
{
	struct outcome o = open_with((struct setting){ .nvidia = "so_old_nvidia.so", .devices = "2", .soft = "so_tiny_soft.so" });

	(void)state;
	assert_int_equal(o.status, GPUL_OK);
	assert_string_equal(o.name, "nvidia");
	assert_true(o.runs_machine_code);
	assert_false(o.interprets);
	assert_false(o.fds_are_files);
	assert_string_equal(o.open_env[0], "GPULOAD_DRIVER=nvidia");
	assert_string_equal(o.open_env[1], "");
	assert_int_equal(o.version, 12000);
	assert_int_equal(o.n_notices, 0);
}

static void auto_opens_the_soft_driver_without_a_device_and_logs_one_notice(void **state)
{
	struct outcome o = open_with((struct setting){ .nvidia = "so_old_nvidia.so", .devices = "0", .soft = "so_tiny_soft.so" });

	(void)state;
	assert_int_equal(o.status, GPUL_OK);
	assert_string_equal(o.name, "soft");
	assert_false(o.runs_machine_code);
	assert_true(o.interprets);
	assert_true(o.fds_are_files);
	assert_string_equal(o.open_env[0], "GPULOAD_DRIVER=soft");
	assert_non_null(strstr(o.open_env[1], "GPULOAD_SOFT_DRIVER=/"));
	assert_non_null(strstr(o.open_env[1], "so_tiny_soft.so"));
	assert_int_equal(o.n_notices, 1);
	assert_non_null(strstr(o.notice, "reports no device; using the software driver"));
}

static void auto_reports_why_nvidias_driver_was_not_used(void **state)
{
	struct outcome o = open_with((struct setting){ .nvidia = "so_old_nvidia.so", .soft = "so_tiny_soft.so" });

	(void)state;
	assert_string_equal(o.name, "soft");
	assert_non_null(strstr(o.notice, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"));
}

static void the_environment_variable_only_affects_auto(void **state)
{
	struct outcome o = open_with(
		(struct setting){ .nvidia = "so_old_nvidia.so", .devices = "1", .soft = "so_tiny_soft.so", .choice = "soft" });

	(void)state;
	assert_string_equal(o.name, "soft");
	assert_int_equal(o.n_notices, 0);
	o = open_with((struct setting){
		.nvidia = "so_old_nvidia.so", .devices = "1", .choice = "soft", .soft = "so_tiny_soft.so", .asked = GPUL_DRIVER_NVIDIA });
	assert_string_equal(o.name, "nvidia");
	o = open_with((struct setting){ .soft = "so_tiny_soft.so", .choice = "cuda" });
	assert_int_equal(o.status, GPUL_EINVAL);
	assert_string_equal(o.err.text, "GPULOAD_DRIVER=cuda: expected auto, nvidia or soft");
}

static void without_any_driver_the_error_lists_what_was_tried(void **state)
{
	struct outcome o = open_with((struct setting){ .choice = NULL });

	(void)state;
	assert_int_equal(o.status, GPUL_EUNSUPPORTED);
	assert_non_null(strstr(o.err.text, "no CUDA driver"));
	assert_non_null(strstr(o.err.text, "has no function cuInit")); /* why the fake NVIDIA driver was refused */
	assert_non_null(strstr(o.err.text, "so_absent.so"));           /* the path in GPULOAD_SOFT_DRIVER */
	assert_null(strchr(o.err.text, '\n'));
}

static void recognises_a_soft_driver_with_the_name_of_nvidias(void **state)
{
	struct outcome o = open_with((struct setting){ .nvidia = "so_tiny_soft.so", .soft = "so_tiny_soft.so" });

	(void)state;
	assert_string_equal(o.name, "soft");
}

static void an_old_driver_reports_calls_that_it_lacks(void **state)
{
	void *handle = dlopen(beside("so_old_nvidia.so"), RTLD_NOW);
	gpul_error err = { 0 };
	gpul_driver drv;
	float ms = 0;

	(void)state;
	assert_non_null(handle);
	assert_int_equal(gpul_driver_fill(handle, "old", &drv, &err), GPUL_OK);
	assert_string_equal(drv.name, "nvidia");
	assert_null(drv.last_fault);
	assert_int_equal(drv.cuEventElapsedTime(&ms, NULL, NULL), CUDA_SUCCESS); /* found by its older name */
	assert_true(ms == 2.5f);
	assert_false(gpul_driver_has(&drv, "cuFuncGetParamInfo"));
	assert_true(gpul_driver_has(&drv, "cuInit"));
	assert_int_equal(gpul_cu(&drv, &err, cuFuncGetParamInfo(NULL, 0, NULL, NULL)), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "cuFuncGetParamInfo: the nvidia driver (CUDA 12.0) does not have this function"));
	dlclose(handle);
}

static void the_table_has_the_fault_text_of_the_software_driver(void **state)
{
	void *handle = dlopen(beside("so_tiny_soft.so"), RTLD_NOW);
	gpul_driver drv;

	(void)state;
	assert_non_null(handle);
	assert_int_equal(gpul_driver_fill(handle, "tiny", &drv, NULL), GPUL_OK);
	assert_string_equal(drv.name, "soft");
	assert_string_equal(drv.last_fault(), "kernel k, line 7: out of bounds");
	dlclose(handle);
}

static void parses_the_names_of_driver_choices(void **state)
{
	gpul_driver_choice c;

	(void)state;
	assert_true(gpul_driver_choice_parse("soft", &c));
	assert_int_equal(c, GPUL_DRIVER_SOFT);
	assert_true(gpul_driver_choice_parse("auto", &c));
	assert_int_equal(c, GPUL_DRIVER_AUTO);
	assert_false(gpul_driver_choice_parse("", &c));
	assert_false(gpul_driver_choice_parse("Soft", &c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(auto_opens_nvidias_driver_when_it_has_a_device),
		cmocka_unit_test(auto_opens_the_soft_driver_without_a_device_and_logs_one_notice),
		cmocka_unit_test(auto_reports_why_nvidias_driver_was_not_used),
		cmocka_unit_test(the_environment_variable_only_affects_auto),
		cmocka_unit_test(without_any_driver_the_error_lists_what_was_tried),
		cmocka_unit_test(recognises_a_soft_driver_with_the_name_of_nvidias),
		cmocka_unit_test(an_old_driver_reports_calls_that_it_lacks),
		cmocka_unit_test(the_table_has_the_fault_text_of_the_software_driver),
		cmocka_unit_test(parses_the_names_of_driver_choices),
	};
	ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);

	if (n <= 0)
		return 1;
	here[n] = '\0';
	*strrchr(here, '/') = '\0';
	return cmocka_run_group_tests(tests, NULL, NULL);
}
