/* test_tools.c — tools in a program that does not wait for its kernels: tools still observe its kernels, and set its exit status. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A kernel with a race: after some time, threads of two warps store to the same word. */
static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
			  ".visible .entry k(.param .u64 out, .param .u32 stride) {\n"
			  ".reg .u64 %d<4>; .reg .u32 %r<8>; .reg .pred %p;\n"
			  "ld.param.u64 %d1, [out]; ld.param.u32 %r1, [stride]; mov.u32 %r2, %tid.x; mul.lo.u32 %r3, %r2, %r1;\n"
			  "mad.wide.u32 %d2, %r3, 4, %d1; mov.u32 %r4, 0;\n"
			  "wait: add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 20000; @%p bra wait;\n"
			  "st.global.u32 [%d2], %r2; ret; }\n";

/* In a child: launch the kernel and exit with 0, without waiting. */
static _Noreturn void run_and_exit(unsigned stride)
{
	CUdevice dev;
	CUcontext ctx;
	CUmodule mod;
	CUfunction f;
	CUdeviceptr out;
	void *args[] = { &out, &stride };

	if (cuInit(0) || cuDeviceGet(&dev, 0) || cuCtxCreate(&ctx, NULL, 0, dev) || cuModuleLoadData(&mod, ptx) ||
	    cuModuleGetFunction(&f, mod, "k") || cuMemAlloc(&out, 4096) || cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, NULL, args, NULL))
		_exit(99);
	exit(0);
}

/* Return the exit status of the child; *text is set to its stderr output. */
static int status_of(const char *tools, const char *status, unsigned stride, char text[2000])
{
	size_t used = 0;
	ssize_t n;
	int end[2], s;
	pid_t child;

	assert_int_equal(pipe(end), 0);
	child = fork();
	if (!child) {
		dup2(end[1], STDERR_FILENO);
		close(end[0]);
		close(end[1]);
		setenv("GPULOAD_SOFT_TOOLS", tools, 1);
		if (status)
			setenv("GPULOAD_SOFT_TOOLS_EXIT", status, 1);
		run_and_exit(stride);
	}
	close(end[1]);
	while ((n = read(end[0], text + used, 1999 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(end[0]);
	assert_int_equal(waitpid(child, &s, 0), child);
	assert_true(WIFEXITED(s));
	return WEXITSTATUS(s);
}

static void sees_a_kernel_that_the_program_does_not_wait_for(void **state)
{
	char text[2000];

	(void)state;
	assert_int_equal(status_of("racecheck", NULL, 0, text), 0);
	assert_non_null(strstr(text, "race: 4 bytes of global memory"));
	assert_int_equal(status_of("racecheck", NULL, 1, text), 0);
	assert_non_null(strstr(text, "gpuload racecheck: no errors"));
}

static void errors_set_the_exit_status(void **state)
{
	char text[2000];

	(void)state;
	assert_int_equal(status_of("racecheck", "7", 0, text), 7);
	assert_int_equal(status_of("racecheck", "7", 1, text), 0);
}

static void wrong_tools_are_refused(void **state)
{
	char text[2000];

	(void)state;
	assert_int_equal(status_of("rececheck", NULL, 1, text), 99);
	assert_non_null(strstr(text, "there is no tool 'rececheck'"));
	assert_int_equal(status_of("racecheck:deep=1", NULL, 1, text), 99);
	assert_non_null(strstr(text, "racecheck has no option 'deep'"));
}

/* If one tool in the list is invalid, the driver removes the output files of the other tools. */
static void a_wrong_list_leaves_no_file(void **state)
{
	static const struct {
		const char *rest, *message;
	} wrong[] = {
		{ ":deep=1", "trace has no option 'deep'" },
		{ ",rececheck", "there is no tool 'rececheck'" },
		{ ",racecheck:deep=1", "racecheck has no option 'deep'" },
		{ ",profile:file=%s/b.json:format=csv", "unknown format 'csv'" },
		{ ",profile:file=%s/b.json,memcheck:leaks=maybe", "leaks must be yes or no" },
	};
	char folder[] = "/tmp/gpuload-test-tools-XXXXXX", list[200], text[2000];

	(void)state;
	assert_non_null(mkdtemp(folder));
	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		const size_t n = (size_t)snprintf(list, sizeof list, "trace:file=%s/a.txt\\,%s/a.html", folder, folder);
		const char *at = strstr(wrong[k].rest, "%s");

		if (at)
			snprintf(list + n, sizeof list - n, "%.*s%s%s", (int)(at - wrong[k].rest), wrong[k].rest, folder, at + 2);
		else
			snprintf(list + n, sizeof list - n, "%s", wrong[k].rest);
		assert_int_equal(status_of(list, NULL, 1, text), 99);
		assert_non_null(strstr(text, wrong[k].message));
		if (rmdir(folder))
			fail_msg("%s left a file in %s", list, folder);
		assert_int_equal(mkdir(folder, 0700), 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

/* Two processes append to one file, and stderr stays empty. */
static void reports_go_to_a_file(void **state)
{
	char text[2000], report[4000], path[] = "/tmp/gpuload-test-tools-XXXXXX";
	const int fd = mkstemp(path);
	const char *race;
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	setenv("GPULOAD_SOFT_TOOLS_LOG", path, 1);
	assert_int_equal(status_of("racecheck", "7", 0, text), 7);
	assert_string_equal(text, "");
	assert_int_equal(status_of("racecheck", "7", 0, text), 7);
	n = read(fd, report, sizeof report - 1);
	assert_true(n > 0);
	report[n] = '\0';
	race = strstr(report, ": gpuload racecheck: race: 4 bytes of global memory");
	assert_non_null(race);
	assert_non_null(strstr(race + 1, ": gpuload racecheck: race: 4 bytes of global memory"));
	setenv("GPULOAD_SOFT_TOOLS_LOG", "/no/such/folder/report", 1);
	assert_int_equal(status_of("racecheck", NULL, 1, text), 99);
	assert_non_null(strstr(text, "/no/such/folder/report, the file for the reports of tools: No such file"));
	unsetenv("GPULOAD_SOFT_TOOLS_LOG");
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_a_kernel_that_the_program_does_not_wait_for),
		cmocka_unit_test(errors_set_the_exit_status),
		cmocka_unit_test(wrong_tools_are_refused),
		cmocka_unit_test(a_wrong_list_leaves_no_file),
		cmocka_unit_test(reports_go_to_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
