/* options.h — the rows of each command's option table, by name: cli_value(args, RUN_GRID). */
#ifndef GPULOAD_CLI_OPTIONS_H
#define GPULOAD_CLI_OPTIONS_H

enum run_opt {
	RUN_KERNEL, RUN_GRID, RUN_BLOCK, RUN_SHARED, RUN_REPEAT, RUN_EXPECT, RUN_RTOL, RUN_ATOL,
	RUN_SAVE, RUN_TIMEOUT, RUN_DRIVER, RUN_DEVICE, RUN_JSON, RUN_INCLUDE, RUN_DEFINE,
	RUN_STD, RUN_N_OPTS,
};
enum devices_opt { DEVICES_DRIVER, DEVICES_JSON };
enum compile_opt {
	COMPILE_OUT, COMPILE_ARCH, COMPILE_PTX, COMPILE_CUBIN, COMPILE_INCLUDE, COMPILE_DEFINE,
	COMPILE_STD,
};
enum ls_opt { LS_JSON };
enum help_opt { HELP_MAN };

#endif
