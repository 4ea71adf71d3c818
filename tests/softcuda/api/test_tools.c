/* test_tools.c — the tools of GPULOAD_SOFT_TOOLS in a program: they see the kernels that it does not wait for, and set its exit status. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threads of two warps store to the same word, after a while. */
static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
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

/* The exit status of the child; *text: what it has printed on stderr. */
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
		cmocka_unit_test(reports_go_to_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
