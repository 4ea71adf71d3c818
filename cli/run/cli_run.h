/* cli_run.h — the steps of gpuload run, in order.
 *
 *     argv ─┐
 *           ├─ run_request.c ─> struct run_request     options (run_options.c) and arguments
 *     file ─┘  (run_line.c: the `// gpuload run:` line of the file)
 *                     │  run_tools.c: pass options such as --trace to the software driver
 *                     │  cli_run.c: open the driver, load the file, find the kernel
 *                     ├─ run_plan.c      choose missing arguments, grid and block
 *                     │  run_fit.c       check the arguments against the signature of the kernel
 *                     ├─ run_function.c  read fn: arguments from the loaded module
 *                     ├─ run_launch.c    copy to the device, launch and time, copy back
 *                     ├─ run_check.c     --expect and --save
 *                     ├─ run_direction.c compare the directions of the arguments with what the kernel did
 *                     └─ run_report.c, run_json.c   print the result;  run_failure.c   or the failure */
#ifndef GPULOAD_CLI_RUN_CLI_RUN_H
#define GPULOAD_CLI_RUN_CLI_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/run/arg.h"
#include "cli/lib/command.h"
#include "cli/lib/options/image_filter.h"
#include "cli/lib/options/nvrtc_args.h"
#include "cli/lib/value.h"
#include "core/error.h"
#include "driver/context.h"
#include "loader/image/source.h"
#include "loader/loader.h"

extern const struct cli_cmd cli_run;
extern const struct cli_opt run_opts[]; /* options and help text are in run_options.c */
extern const char run_details[];

#define RUN_SHOWN      10 /* elements printed per buffer, unless --show is given */
#define RUN_NAME_BYTES 256

/* Options of gpuload run that also apply to a program. */
struct run_program_options {
	gpul_driver_choice driver;
	int device;
	bool no_cache;
	struct nvrtc_args nvcc; /* owned; options -I, -D and --std, which nvcc and NVRTC write in the same way */
};

/** Read the options of a program.
 *
 * @args  a parsed command line
 * @out   nvcc is owned by the caller: nvrtc_args_free(), even after a failure
 * Errors  GPUL_EINVAL an invalid option; GPUL_ENOMEM */
gpul_status run_program_options(const struct cli_args *args, struct run_program_options *out, gpul_error *err);
/** True if every option of the command line also applies to a program, and none only to a kernel. */
bool run_program_has_options_only(const struct cli_args *args);
/** True if a file has a `// gpuload run:` line: its author then wants gpuload to run a kernel, not the program. */
bool run_line_exists(gpul_source *source);

/** True if FILE.cu must be run as a program: it has main(), and the user has given neither options nor arguments of a kernel.  If nvcc
 * is missing, prints on stderr that only the kernel is run. */
bool run_program_wanted(const struct cli_args *args, gpul_source *source);

/** Build FILE.cu and replace this process by it; arguments after `--` are passed to the program.
 *
 * @args    a parsed command line for which run_program_wanted() is true
 * @source  FILE.cu
 * Errors  those of soft_open_driver() and gpul_program_build(); GPUL_ESYS.  It returns only after a failure
 * Threads the main thread
 * Source  POSIX.1-2017 fexecve() */
gpul_status run_program(const struct cli_args *args, gpul_source *source, gpul_error *err);

/* The words of the `// gpuload run:` line of a file. */
struct run_line {
	char *text;   /* owned; NUL-terminated words */
	char **words; /* owned; point into text */
	size_t n_words;
	unsigned number; /* line number, from 1; 0: the file has no such line */
};

/** Find the first `// gpuload run:` line that names the kernel, or that names no kernel.
 *
 *     // gpuload run: f64[1024]=iota 'f64[1024]=ones' out:f64[1024] i32=1024 --grid 4
 *
 * The line is split as by the shell: words are separated by blanks; '...' and "..." keep blanks; a backslash quotes the
 * next character.  Variables and patterns are not expanded.
 *
 * @source  the file
 * @kernel  name of the kernel; NULL: any, the first line is used
 * @out     owned by the caller: run_line_free(); out->number is 0 if no line is found
 * Errors  GPUL_EINVAL a quote is not closed; GPUL_ENOMEM */
gpul_status run_line_find(gpul_source *source, const char *kernel, struct run_line *out, gpul_error *err);
void run_line_free(struct run_line *l);

/** Report on stderr the first comment of a file that was probably meant as a `// gpuload run:` line, such as `//gpuload-run: f32=2` or
 * `// gpuload run f32=2`.  Call it for a file without a correct line. */
void run_line_tell_misspelt(gpul_source *source);

struct run_target { /* the ARG=WHAT of an option --expect or --save */
	size_t arg;
	const char *what; /* borrowed */
	const char *dir;  /* folder of a relative file; NULL: the current folder; borrowed */
};

struct run_request {
	const char *const *files; /* n_files paths, at least 1; borrowed */
	size_t n_files;
	gpul_source **sources;    /* n_files sources: each file, opened once; owned */
	const char *file;         /* files[0]: its `// gpuload run:` line is used, and its name is printed */
	const char *kernel;       /* NULL: the only kernel of the files */
	struct image_filter only; /* selects the images that may be loaded */
	const char **link_args;   /* owned; NULL-terminated */
	bool no_cache, explain, link_all;
	uint32_t grid[3], block[3]; /* grid and block of the launch; if the first element is 0, it is not given */
	uint32_t shared_bytes;
	uint32_t repeat;
	double rtol, atol;
	int64_t timeout_ms; /* time-out of a launch; -1: none */
	gpul_driver_choice driver;
	int device;
	bool json;
	struct nvrtc_args nvrtc; /* owned */
	bool has_args;           /* true: the command line or the file gives arguments */
	struct arg *args;        /* array of n_args arguments; owned */
	size_t n_args;
	struct run_target *expects, *saves; /* owned */
	size_t n_expects, n_saves;
	size_t n_shown;       /* elements printed per buffer; SIZE_MAX: all */
	bool force;           /* --save replaces a file that exists */
	struct run_line line; /* owned; other members may point into it */
	char *dir;            /* owned; folder of the first file */
};

/** Combine the command line with the `// gpuload run:` line of the file, and create the contents of the arguments.
 *
 * @args   the parsed command line; must outlive *out
 * @first  the first FILE, if the caller has opened it; NULL: it is opened here.  Belongs to *out, and is closed on failure
 * @out    owned by the caller: run_request_free(); zeroed on failure
 * Errors  GPUL_EINVAL an invalid option or argument; GPUL_ESYS, GPUL_EFORMAT from reading files; GPUL_ENOMEM */
gpul_status run_request_make(const struct cli_args *args, gpul_source *first, struct run_request *out, gpul_error *err);
void run_request_free(struct run_request *q);

struct run_check { /* an --expect option and its result */
	const struct run_target *target;
	bool is_sum;
	void *expected; /* owned; the sum (8 bytes), or the whole buffer */
	bool ok;
	size_t n_wrong, first_wrong;
	bool unwritten;                                     /* true: the kernel has not written the first wrong element */
	char got[VALUE_TEXT_BYTES], want[VALUE_TEXT_BYTES]; /* values of the first wrong element, or the two sums */
};

struct run {
	struct run_request ask;
	const gpul_driver *drv;
	gpul_context context;
	gpul_module *module;
	const gpul_kernel *kernel;
	gpul_launch_config config;
	char *assumed;            /* command line with the generated arguments; NULL: nothing was generated */
	CUdeviceptr *device;      /* address of each buffer argument; 0 for other arguments */
	double *times_ms;         /* time of each launch, in order */
	struct run_check *checks; /* one check for each element of ask.expects */
	gpul_error save_error;    /* why a --save failed; reported after the results */
	char *compiler_log;       /* owned; messages of the compiler, if CUDA C++ does not compile; else NULL */
	char *printed;            /* owned; with --json: what the kernel printed; NULL: nothing */
	size_t printed_bytes;
	char *advice;       /* owned; with --json: what run_plan() printed; NULL: nothing */
	int n_tool_errors;  /* number of errors found by the tools that watched the kernel */
	bool still_running; /* --timeout expired while the kernel was running: do not wait for the kernel */
};

/** Load the files, find the kernel, plan, launch, check and save.
 *
 * @r  ask and drv are set; the caller calls run_clean_up(), even after a failure; save_error is set if a --save failed
 * Errors  those of the functions below
 * Threads any thread; run_clean_up() must be called on the same thread */
gpul_status run_work(struct run *r, gpul_error *err);
void run_clean_up(struct run *r); /* not allowed if still_running, because it would wait for the kernel */

/** Check that the number of arguments is right and that each argument fits its parameter: kind, size and type.
 *
 * @s       signature of the kernel
 * @args    n_args arguments
 * @n_args  their number
 * Errors  GPUL_EINVAL the message contains the signature, the argument, and an argument that would fit */
gpul_status run_fit(const gpul_signature *s, const struct arg *args, size_t n_args, gpul_error *err);

/** Choose what the command line does not give: block, grid, and the arguments if all of them are missing.
 *
 * @r  ask and kernel are set; sets ask.args, assumed and config
 * Errors  GPUL_EINVAL the arguments do not fit the kernel, or they cannot be inferred from its code: then its
 *         signature and a command line to fill in are printed on stdout; GPUL_ENOMEM */
gpul_status run_plan(struct run *r, gpul_error *err);

/** Read the function pointer of every fn: argument from the module.
 *
 * @r  after run_plan()
 * Errors  as gpul_function_pointer()
 * Threads any thread with the context current */
gpul_status run_functions(struct run *r, gpul_error *err);
/** Print a line such as "arg 0     fn:table[1]: op_mul(float, float)" for every fn: argument. */
void run_print_functions(const struct run *r);

/** Copy the buffers to the device, launch ask.repeat times, time each launch by events, copy back into args[].data.
 *
 * @r  after run_plan(); sets times_ms and device, and still_running if --timeout expired
 * Errors  GPUL_ECUDA, GPUL_EINVAL from the launch; GPUL_EUNSUPPORTED --timeout expired; GPUL_ENOMEM
 * Threads the thread that opened r->context
 * Source  CUDA Driver API, Event Management */
gpul_status run_launch(struct run *r, gpul_error *err);

/** Create r->checks with the expected contents of every --expect option.
 *
 * @r  after run_plan(); the caller frees r->checks with run_check_free(), even after a failure
 * Errors  as fill_make(); GPUL_EINVAL sum: without a number */
gpul_status run_check_prepare(struct run *r, gpul_error *err);
void run_check_all(struct run *r); /* sets run_check.ok; a mismatch is not an error here */
void run_check_free(struct run *r);

/** Write the file of every --save option.
 *
 * @r  after run_launch()
 * Errors  GPUL_ESYS cannot write */
gpul_status run_save_all(const struct run *r, gpul_error *err);

/* bytes_per_s is 0 if the kernel has no buffers */
struct run_times {
	double median_ms, min_ms, bytes_per_s;
};
struct run_times run_times(const struct run *r);

/** Describe the first failed check in one line; returns the number of failed checks. */
size_t run_explain_checks(const struct run *r, char *buf, size_t buf_bytes);

/** Describe a direction (in, out, inout) of argument `index` that contradicts what the kernel does, in one sentence.
 *
 * The kernel's code and, after run_launch(), arg.changed show what the kernel does.  Returns buf; NULL: no contradiction. */
const char *run_direction_note(const struct run *r, size_t index, char *buf, size_t buf_bytes);
#define RUN_NOTE_BYTES 320

/** A callback for gpul_load_options.compiler_log, which stores the messages in r->compiler_log; context is the struct run. */
void run_keep_compiler_log(void *context, const char *log);

/** Report a failure: the compiler's messages, or the fault with its line of source; with json an object on stdout.
 *
 * @r     in the state in which the failure left it
 * @file  the file of the kernel; NULL: unknown
 * @json  as --json
 * @err   the failure; its status becomes GPUL_OK if the whole message was printed on stderr
 * Errors  none
 * Threads the main thread */
void run_report_failure(const struct run *r, const char *file, bool json, gpul_error *err);

/** True if a command line contains --json, even if the rest of it is wrong. */
bool run_wants_json(const struct cli_args *args);

void run_print_text(const struct run *r);

/** Print the result as a JSON object.
 *
 * @r  after run_check_all()
 * Errors  as json_print()
 * Source  RFC 8259 */
gpul_status run_print_json(const struct run *r, gpul_error *err);

/* Captures what this process writes to stdout, for example by the printf of a kernel.  Descriptors: the real stdout, and the file
 * that replaces it; -1: none. */
struct capture {
	int saved, file;
};

/** Send everything that this process writes to descriptor 1 to a file in memory.  If that is not possible, stdout stays as
 * it is.  One capture at a time. */
void capture_begin(struct capture *c);

/** Restore stdout.
 *
 * @c        after capture_begin()
 * @n_bytes  size of the text without the NUL
 * Returns what was written, NUL-terminated; owned by the caller: free(); NULL: nothing was written, or no memory. */
char *capture_end(struct capture *c, size_t *n_bytes);

#endif
