/* nvrtc_args.h — convert the options -I, -D and --std of a command line into options for NVRTC. */
#ifndef GPULOAD_CLI_LIB_OPTIONS_NVRTC_ARGS_H
#define GPULOAD_CLI_LIB_OPTIONS_NVRTC_ARGS_H

#include "cli/lib/command.h"

#define NVRTC_INCLUDE_OPT { "I", "DIR", "CUDA C++: also search DIR for headers", CLI_FILES }
#define NVRTC_DEFINE_OPT  { "D", "NAME[=VALUE]", "CUDA C++: define a macro", NULL }
#define NVRTC_STD_OPT     { "std", "DIALECT", "CUDA C++: language version, such as c++17", "c++11 c++14 c++17 c++20" }

struct nvrtc_args {
	char **words; /* owned, NULL-terminated, such as "-Idir"; NULL: no options */
	size_t n_words;
};

/* indices of -I, -D and --std in the command's option table */
struct nvrtc_rows {
	int include, define, std;
};

/** Append the NVRTC options of one command line, in order.
 *
 * @a     zeroed before the first call; the caller frees it with nvrtc_args_free(), even after a failure
 * @from  a parsed command line
 * @rows  indices of the three options in the option table of that command
 * Errors  GPUL_ENOMEM
 * Source  NVRTC User Guide, Supported Compile Options */
gpul_status nvrtc_args_add(struct nvrtc_args *a, const struct cli_args *from, struct nvrtc_rows rows, gpul_error *err);
/** Append one option.
 *
 * @a       as for nvrtc_args_add()
 * @option  such as "-lineinfo"; copied
 * Errors  GPUL_ENOMEM
 * Source  NVRTC User Guide, Supported Compile Options */
gpul_status nvrtc_args_append(struct nvrtc_args *a, const char *option, gpul_error *err);
void nvrtc_args_free(struct nvrtc_args *a);

#endif
