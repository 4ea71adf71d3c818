/* step.c — gpuload step: steps through a kernel, in windows of the terminal or line by line. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/debug/debug.h"
#include "cli/lib/options/image_filter.h"
#include "cli/lib/options/nvrtc_args.h"
#include "cli/lib/message.h"

enum { STEP_PLAIN, STEP_ATTACH, STEP_PROGRAM, STEP_FIRST_OF_RUN };

/* The options that select the kernel and its launch are passed to gpuload run. */
static const struct cli_opt step_opts[] = {
	[STEP_PLAIN] = { "plain", NULL, "read commands from stdin, line by line, without windows: for scripts and any terminal", NULL },
	[STEP_ATTACH] = { "attach", "ADDRESS", "step in a running program, started with GPULOAD_SOFT_TOOLS=debug:listen=ADDRESS",
			  CLI_FILES },
	[STEP_PROGRAM] = { "program", NULL, "FILE is a program, followed by its arguments: any CUDA program, including one built by nvcc",
			   NULL },
	{ "kernel", "NAME", "name of the kernel, as for gpuload run", NULL },
	{ "grid", "X[,Y[,Z]]", "number of blocks", NULL },
	{ "block", "X[,Y[,Z]]", "threads per block", NULL },
	{ "shared", "BYTES", "dynamic shared memory per block", NULL },
	{ "repeat", "N", "launch N times", NULL },
	{ "expect", "ARG=WHAT", "compare a buffer with expected values at the end", NULL },
	{ "show", "N", "print the first N elements of each buffer at the end", NULL },
	NVRTC_INCLUDE_OPT,
	NVRTC_DEFINE_OPT,
	NVRTC_STD_OPT,
	IMAGE_SM_OPT,
	IMAGE_KIND_OPT,
	{ "no-cache", NULL, "do not use the cache of compiled and linked code", NULL },
	{ 0 },
};

static const char step_details[] = "Runs a kernel on the software driver and stops before its first instruction. FILE and ARGs\n"
				   "are those of gpuload run; without ARGs they come from FILE, or are invented. A FILE.cu with\n"
				   "main() is built and run as a program; arguments after -- are its own, and its stdin is empty.\n"
				   "\n"
				   "On a terminal, gpuload step shows CUDA C++ and PTX side by side, the lanes of the warps, the\n"
				   "registers of a lane and shared memory; F1 or h shows the keys. With --plain, or if stdout is\n"
				   "not a terminal, it reads commands line by line; an empty line repeats the last one.\n"
				   "\n"
				   "A step executes one warp; other warps may run meanwhile. Going back runs the kernel again up to\n"
				   "an earlier instruction: this gives the same values, unless the kernel reads clocks, or\n"
				   "changes memory that it did not find in the state in which the launch began.\n"
				   "\n"
				   "COMMANDS\n"
				   "\n"
				   "    next stop\n"
				   "        step (s) [N]           to the next source line, into calls\n"
				   "        next (n) [N]           to the next source line, over calls\n"
				   "        insn (i) [N]           one PTX instruction of this warp\n"
				   "        si [N]                 one PTX instruction of the selected lane\n"
				   "        out (o)                until the function returns\n"
				   "        warp+   block+         until another warp, or block, executes an instruction\n"
				   "        barrier   diverge      until a barrier is complete, or a warp diverges\n"
				   "        continue (c)           to the next breakpoint; Ctrl-C stops a running kernel\n"
				   "    back\n"
				   "        back (b) [N]           one PTX instruction of this warp; bs [N]: one source line\n"
				   "        rc   restart           to the previous breakpoint; to the beginning of the kernel\n"
				   "        goto COUNT             to the moment #COUNT of this launch\n"
				   "    breakpoints\n"
				   "        break (br) LINE | FILE:LINE | KERNEL | label NAME [if CONDITION]\n"
				   "        watch ADDRESS [BYTES] [if CONDITION]     writes; rwatch: reads; awatch: both\n"
				   "        delete ID | delete all   breaks (lists them)\n"
				   "    look\n"
				   "        where (w)  frame N  list (l)  ptx  warps  regs (r) [all]\n"
				   "        specials  params  vars\n"
				   "        print (p) EXPRESSION   lanes EXPRESSION     in the selected lane; in all lanes\n"
				   "        x [shared|local] ADDRESS [BYTES]            memory\n"
				   "        lane N   warp N   block N                   select what is shown\n"
				   "    quit (q)                   end the program\n"
				   "\n"
				   "An EXPRESSION has C's operators, numbers, %registers, %tid.x and other special registers,\n"
				   "lane, warp, block, thread (in its block), names of variables (their addresses), and memory:\n"
				   "[%rd4]:f32, shared[8]:u32, local[0]:u8. Without a type, memory is read as s32. A CONDITION\n"
				   "is an expression; a breakpoint stops if it is true in one of the lanes that get there.\n"
				   "\n"
				   "EXAMPLES\n"
				   "\n"
				   "    gpuload step kernel.cu\n"
				   "    printf 'break 12 if lane == 3\\nc\\nregs\\n' | gpuload step --plain kernel.cu\n"
				   "    gpuload step --program ./my-program its-argument\n"
				   "    GPULOAD_SOFT_TOOLS=debug:listen=/tmp/s:wait ./my-program &\n"
				   "    gpuload step --attach /tmp/s\n"
				   "\n"
				   "Exit status: that of the program; 1: stepping failed; 2: the command line is wrong.\n";

static bool interrupted;

static void note_interrupt(int signal_number)
{
	(void)signal_number;
	interrupted = true;
}

/* Make the arguments for gpuload run: options, operands, the words after "--".  The array and its first n_options strings are owned. */
static const char **run_words(const struct cli_args *args, size_t *n_options)
{
	const char **words = calloc(2 * args->n_given + args->n_operands + 3, sizeof *words);
	size_t n = 0;

	for (size_t k = 0; words && k < args->n_given; k++) {
		const struct cli_opt *o = &step_opts[args->given[k].opt];
		char *text = NULL;

		if (args->given[k].opt < STEP_FIRST_OF_RUN)
			continue;
		if (asprintf(&text, "%s%s%s%s", o->name[1] ? "--" : "-", o->name, o->value && o->name[1] ? "=" : "",
			     o->value ? args->given[k].value : "") > 0)
			words[n++] = text;
	}
	*n_options = n;
	for (size_t k = 0; words && k < args->n_operands; k++) {
		if (k && k == args->n_before_dashes)
			words[n++] = "--";
		words[n++] = args->operands[k];
	}
	return words;
}

static bool is_stdin(const char *path)
{
	return !strcmp(path, "-") || !strcmp(path, "/dev/stdin") || !strcmp(path, "/dev/fd/0") || !strcmp(path, "/proc/self/fd/0");
}

static gpul_status start(const struct cli_args *args, int output, struct debug_link **out, gpul_error *err)
{
	const char *address = cli_value(args, STEP_ATTACH);
	struct debug_start how = { .is_program = cli_value(args, STEP_PROGRAM), .out = output, .err = output };
	const char **words = NULL;
	size_t n_options = 0;
	gpul_status st;

	if (address && args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "--attach connects to a program that is already running: leave out %s",
				 args->operands[0]);
	if (address)
		return debug_link_attach(address, out, err);
	if (!args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "step needs a FILE: gpuload step FILE [ARG...]; gpuload help step explains it");
	if (!how.is_program && is_stdin(args->operands[0]))
		return gpul_fail(err, GPUL_EINVAL, 0, "step reads its commands from stdin: give the path of a file instead of %s",
				 args->operands[0]);
	if (!how.is_program)
		words = run_words(args, &n_options);
	how.words = how.is_program ? args->operands : words;
	if (!how.words)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a command line");
	st = debug_link_start(&how, out, err);
	for (size_t k = 0; k < n_options; k++)
		free((void *)(uintptr_t)words[k]);
	free((void *)(uintptr_t)words);
	return st;
}

static void print_out(struct out *out)
{
	if (out->n)
		fwrite(out->at, 1, out->n, stdout);
	fflush(stdout);
	out->n = 0;
}

/* Execute commands from stdin, without windows; the kernel prints to the same stdout. */
static void step_plain(struct session *s)
{
	const bool prompts = isatty(STDIN_FILENO);
	struct out out = { 0 };
	char line[256];

	while (!s->ended && !s->quits) {
		if (prompts)
			fputs("(step) ", stdout);
		fflush(stdout);
		errno = 0;
		if (!fgets(line, sizeof line, stdin)) {
			if (errno != EINTR)
				break;
			clearerr(stdin);
			continue;
		}
		session_command(s, line, &out);
		print_out(&out);
	}
	out_free(&out);
}

/* Wait for the first stop, at the kernel's first instruction.  An attached program continues until it is paused. */
static gpul_status first_stop(struct session *s, gpul_error *err)
{
	gpul_status st = debug_link_ask(s->link, NULL, err, "hello");

	if (!st)
		st = debug_link_ask(s->link, NULL, err, "set\tentry\t1");
	if (!st)
		st = debug_link_ask(s->link, NULL, err, "set\tend\t1");
	if (!st)
		st = debug_link_ask(s->link, NULL, err, "go\tfree");
	if (st == GPUL_EINVAL)
		st = GPUL_OK;
	return st;
}

static int cmd_step(const struct cli_args *args, gpul_error *err)
{
	const bool windows = !cli_value(args, STEP_PLAIN) && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	const struct sigaction action = { .sa_handler = note_interrupt };
	struct session s = { .attached = cli_value(args, STEP_ATTACH), .interrupted = &interrupted };
	struct out out = { 0 };
	int output[2] = { -1, -1 }, code;
	gpul_error gone = { 0 };
	gpul_status st = GPUL_OK;

	if (windows && pipe2(output, O_CLOEXEC))
		return cli_exit_code(gpul_fail(err, GPUL_ESYS, errno, "cannot create a pipe: %s", strerror(errno)));
	st = start(args, output[1], &s.link, err);
	if (output[1] >= 0)
		close(output[1]);
	if (st)
		return cli_exit_code(st);
	sigaction(SIGINT, &action, NULL);
	st = first_stop(&s, &gone);
	if (!st)
		session_wait(&s, &out);
	s.ended |= st == GPUL_ESYS;
	if (st == GPUL_ESYS && !debug_link_has_failed(s.link))
		out_text(&out, "the program has ended without launching a kernel\n");
	if (windows && !s.ended) {
		st = step_screen(&s, output[0], err);
	} else {
		print_out(&out);
		step_plain(&s);
		st = GPUL_OK;
	}
	out_free(&out);
	session_free(&s);
	code = debug_link_close(s.link);
	if (output[0] >= 0)
		close(output[0]);
	return st ? CLI_FAILED : s.ended ? code : CLI_DONE;
}

const struct cli_cmd cli_step = {
	"step", "FILE... [ARG...]", "step through a kernel, also backwards", step_details, step_opts, cmd_step, CLI_FILES, NULL,
};
