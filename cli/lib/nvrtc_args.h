/* nvrtc_args.h — -I, -D and --std of a command line as NVRTC wants them: one word each. */
#ifndef GPULOAD_CLI_LIB_NVRTC_ARGS_H
#define GPULOAD_CLI_LIB_NVRTC_ARGS_H

#include "cli/lib/command.h"

#define NVRTC_INCLUDE_OPT { "I", "DIR", "CUDA C++: look for headers in DIR too", CLI_FILES }
#define NVRTC_DEFINE_OPT { "D", "NAME[=VALUE]", "CUDA C++: define a macro", NULL }
#define NVRTC_STD_OPT { "std", "DIALECT", "CUDA C++: language version, such as c++17", "c++11 c++14 c++17 c++20" }

struct nvrtc_args {
	char **words;  /* owned, NULL-terminated; NULL: none */
	size_t n_words;
};

struct nvrtc_rows { int include, define, std; };  /* rows of the command's option table */

/** Add the options of one command line, in order.
 *
 * @a     zeroed at first; the caller frees with nvrtc_args_free(), also after a failure
 * @from  a parsed command line
 * @rows  which of its options are meant
 * Errors  GPUL_ENOMEM
 * Threads any thread may call
 * Source  NVRTC User Guide, Supported Compile Options */
gpul_status nvrtc_args_add(struct nvrtc_args *a, const struct cli_args *from,
			   struct nvrtc_rows rows, gpul_error *err);
void nvrtc_args_free(struct nvrtc_args *a);

#endif
