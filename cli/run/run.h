/* run.h — the way of `gpuload run`, file by file.
 *
 *     argv ─┐
 *           ├─ run_request.c ─> struct run_request     what is asked, arguments made
 *     file ─┘  (run_line.c: the file's own line)
 *                     │  run.c: open the driver, load the file, find the kernel
 *                     ├─ run_fit.c      do the arguments fit the kernel's signature?
 *                     ├─ run_plan.c     what was not given: arguments, grid, block
 *                     ├─ run_function.c  fn: arguments, read out of the loaded module
 *                     ├─ run_launch.c   copy in, launch and time, copy out
 *                     ├─ run_check.c    --expect and --save
 *                     └─ run_report.c, run_json.c */
#ifndef GPULOAD_CLI_RUN_RUN_H
#define GPULOAD_CLI_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/run/arg.h"
#include "cli/lib/command.h"
#include "cli/lib/image_filter.h"
#include "cli/lib/nvrtc_args.h"
#include "cli/lib/value.h"
#include "core/error.h"
#include "driver/context.h"
#include "loader/image/source.h"
#include "loader/loader.h"

extern const struct cli_cmd cli_run;
extern const struct cli_opt run_opts[];  /* and the help text, both in run_request.c */
extern const char run_details[];

#define RUN_SHOWN 10         /* elements of a buffer that are printed */
#define RUN_NAME_BYTES 256

/* The words of a file's own `// gpuload run:` line. */
struct run_line {
	char *text;          /* owned: the words, each ended by NUL */
	char **words;        /* owned; point into text */
	size_t n_words;
	unsigned number;     /* line of the file, from 1; 0: there is none */
};

/** Find the line of a file that is to be used: the first that names the kernel, or names none.
 *
 *     // gpuload run: f64[1024]=iota 'f64[1024]=ones' out:f64[1024] i32=1024 --grid 4
 *
 * Words are as in the shell: blanks part them; '...' and "..." keep blanks; a backslash takes
 * the next character as it is.  Nothing is expanded.
 *
 * @source  the file
 * @kernel  NULL: the first line is taken, whatever kernel it names
 * @out     owned by the caller: run_line_free(); number is 0 when the file has no such line
 * Errors  GPUL_EINVAL a quote without its end; GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status run_line_find(gpul_source *source, const char *kernel, struct run_line *out,
			  gpul_error *err);
void run_line_free(struct run_line *l);

struct run_target {          /* of --expect and --save: ARG=WHAT */
	size_t arg;
	const char *what;    /* borrowed */
	const char *dir;     /* folder of a relative file; NULL: the current one; borrowed */
};

struct run_request {
	const char *const *files;           /* n_files, at least 1; borrowed */
	size_t n_files;
	gpul_source **sources;              /* owned, n_files: each file, opened once */
	const char *file;                   /* the first: its line is used, its name is shown */
	const char *kernel;                 /* NULL: the only one there is */
	struct image_filter only;           /* which images may be loaded */
	const char **link_args;             /* owned: the list, which NULL ends */
	bool no_cache, explain;
	uint32_t grid[3], block[3];         /* [0] == 0: not given */
	uint32_t shared_bytes;
	uint32_t repeat;
	double rtol, atol;
	int64_t timeout_ms;                 /* -1: wait for ever */
	gpul_driver_choice driver;
	int device;
	bool json;
	struct nvrtc_args nvrtc;            /* owned */
	bool has_args;                      /* given by the command line or the file */
	struct arg *args;                   /* owned, n_args */
	size_t n_args;
	struct run_target *expects, *saves; /* owned */
	size_t n_expects, n_saves;
	struct run_line line;               /* owned; what the rest may point into */
	char *dir;                          /* owned: the file's folder */
};

/** Read the command line and the file's own line, and make the arguments' contents.
 *
 * @args  of the command line; must outlive *out
 * @out   owned by the caller: run_request_free(); zeroed on failure
 * Errors  GPUL_EINVAL what cannot be; GPUL_ESYS, GPUL_EFORMAT files; GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status run_request_make(const struct cli_args *args, struct run_request *out,
			     gpul_error *err);
void run_request_free(struct run_request *q);

struct run_check {           /* what one --expect wants, and what it found */
	const struct run_target *target;
	bool is_sum;
	void *expected;              /* owned: 8 bytes of sum, or the whole buffer */
	bool ok;
	size_t n_wrong, first_wrong;
	bool unwritten;                                        /* the first wrong element is */
	char got[VALUE_TEXT_BYTES], want[VALUE_TEXT_BYTES];  /* the first wrong one, or sums */
};

struct run {
	struct run_request ask;
	const gpul_driver *drv;
	gpul_context context;
	gpul_module *module;
	const gpul_kernel *kernel;
	gpul_launch_config config;
	char *assumed;               /* the command line that was made up; NULL: none was */
	CUdeviceptr *device;         /* of each argument; 0: no buffer */
	double *times_ms;            /* of each launch, in order */
	struct run_check *checks;    /* one for each of ask.expects */
	bool still_running;          /* the kernel outlived --timeout: never wait for it */
};

/** Everything after the driver is there: load, find, plan, launch, check, save.
 *
 * @r  ask and drv are set; run_clean_up() gives back what it acquires, also after a failure
 * Errors  those of the steps
 * Threads any thread; the same one until run_clean_up()
 * Source  - */
gpul_status run_work(struct run *r, gpul_error *err);
void run_clean_up(struct run *r);  /* not when still_running: it would wait */

/** Does each argument fit its parameter: count, value or buffer, size and type?
 *
 * @s       the kernel's signature
 * @args    n_args arguments
 * @n_args  their number
 * Errors  GPUL_EINVAL shows the signature, what was given and what would fit
 * Threads any thread may call
 * Source  - */
gpul_status run_fit(const gpul_signature *s, const struct arg *args, size_t n_args,
		    gpul_error *err);

/** Settle what was not given: arguments where there are none at all, block and grid.
 *
 * @r  ask and kernel are there; args, assumed and config are set
 * Errors  GPUL_EINVAL the kernel's code does not tell what it takes: its signature and a
 *         command line to fill in were printed on stdout; GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status run_plan(struct run *r, gpul_error *err);

/** Read what every fn: argument names out of the module.
 *
 * @r  planned; its arguments fit
 * Errors  as gpul_function_pointer()
 * Threads any thread with the context current
 * Source  - */
gpul_status run_functions(struct run *r, gpul_error *err);
/** "arg 0     fn:table[1]: op_mul(float, float)", a line for each. */
void run_print_functions(const struct run *r);

/** Copy in, launch ask.repeat times, time each by events, copy back into args[].data.
 *
 * @r  planned; times_ms and device are set, still_running when --timeout passed
 * Errors  GPUL_ECUDA, GPUL_EINVAL from the launch; GPUL_EUNSUPPORTED the time is over;
 *         GPUL_ENOMEM
 * Threads the one that opened r->context
 * Source  CUDA Driver API, Event Management */
gpul_status run_launch(struct run *r, gpul_error *err);

/** Make what every --expect wants: r->checks.
 *
 * @r  planned; the caller frees with run_check_free(), also after a failure
 * Errors  as fill_make(); GPUL_EINVAL sum: without a number
 * Threads any thread may call
 * Source  - */
gpul_status run_check_prepare(struct run *r, gpul_error *err);
void run_check_all(struct run *r);   /* compares; a mismatch is no error: see run_check.ok */
void run_check_free(struct run *r);

/** Write every --save.
 *
 * @r  launched
 * Errors  GPUL_ESYS cannot be written
 * Threads any thread may call
 * Source  - */
gpul_status run_save_all(const struct run *r, gpul_error *err);

struct run_times { double median_ms, min_ms, bytes_per_s; };  /* bytes_per_s 0: no buffers */
struct run_times run_times(const struct run *r);

/** One line that says what is wrong with the first failed check; the number of failed ones. */
size_t run_explain_checks(const struct run *r, char *buf, size_t buf_bytes);

void run_print_text(const struct run *r);

/** Print the JSON object.
 *
 * @r  launched and checked
 * Errors  GPUL_EUNSUPPORTED built without cJSON; GPUL_ENOMEM
 * Threads any thread may call
 * Source  RFC 8259 */
gpul_status run_print_json(const struct run *r, gpul_error *err);

#endif
