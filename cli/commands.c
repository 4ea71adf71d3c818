/* commands.c — the table of subcommands and of their options. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/fifo/fifo.h"
#include "cli/options.h"
#include "core/text.h"

/* clang-format off */  /* tables, one row an option */

#define DRIVER_OPT                                                                       \
	{ "driver", "NAME", "auto, nvidia or soft (default: $GPULOAD_DRIVER, else auto)", \
	  "auto nvidia soft", .in_file = false }
#define JSON_OPT { "json", NULL, "print one JSON object instead of text", .in_file = false }
#define INCLUDE_OPT \
	{ "I", "DIR", "CUDA C++: look for headers in DIR too", CLI_FILES, .in_file = true }
#define DEFINE_OPT { "D", "NAME[=VALUE]", "CUDA C++: define a macro", .in_file = true }
#define STD_OPT                                                          \
	{ "std", "DIALECT", "CUDA C++: language version, such as c++17", \
	  "c++11 c++14 c++17 c++20", .in_file = true }

#define NO_CACHE_OPT                                                                        \
	{ "no-cache", NULL, "compile and link anew, and keep nothing: see gpuload cache",   \
	  .in_file = false }

#define SM_OPT                                                                          \
	{ "sm", "ARCH", "only images for ARCH: 90 or sm_90 is sm_90 and sm_90a, 90a that alone", \
	  .in_file = false }
#define KIND_OPT \
	{ "kind", "KIND", "only images of this kind", "ptx cubin lto", .in_file = false }

static const struct cli_opt run_opts[] = {
	[RUN_KERNEL] = { "kernel", "NAME", "which kernel, when the file has several",
			 .in_file = true },
	[RUN_GRID] = { "grid", "X[,Y[,Z]]",
		       "blocks (default: enough for the largest buffer or the count)",
		       .in_file = true },
	[RUN_BLOCK] = { "block", "X[,Y[,Z]]",
			"threads a block (default: 256, less where the kernel says so)",
			.in_file = true },
	[RUN_SHARED] = { "shared", "BYTES",
			 "dynamic shared memory a block; K and M may follow (default: 0)",
			 .in_file = true },
	[RUN_REPEAT] = { "repeat", "N",
			 "launch N times; time is the median and the least (default: 1)",
			 .in_file = true },
	[RUN_EXPECT] = { "expect", "ARG=WHAT",
			 "check argument ARG, from 0: a FILL, @FILE or sum:VALUE",
			 .in_file = true },
	[RUN_RTOL] = { "rtol", "X",
		       "floats may differ by X times the expected value (default: 0)",
		       .in_file = true },
	[RUN_ATOL] = { "atol", "X", "and by X besides (default: 0)", .in_file = true },
	[RUN_SAVE] = { "save", "ARG=FILE",
		       "write buffer ARG: a .npy file, or raw to other names",
			  .in_file = false },
	[RUN_TIMEOUT] = { "timeout", "SECONDS",
			  "give up a kernel that runs longer; 0.5 is fine (default: wait)",
			  .in_file = false },
	[RUN_DRIVER] = DRIVER_OPT,
	[RUN_DEVICE] = { "device", "N", "which GPU, from 0 (default: 0)", .in_file = false },
	[RUN_JSON] = JSON_OPT,
	[RUN_INCLUDE] = INCLUDE_OPT,
	[RUN_DEFINE] = DEFINE_OPT,
	[RUN_STD] = STD_OPT,
	[RUN_SM] = SM_OPT,
	[RUN_KIND] = KIND_OPT,
	[RUN_LINK_ARG] = { "link-arg", "WORD", "hand WORD to nvJitLink, such as -maxrregcount=64",
			   .in_file = false },
	[RUN_NO_CACHE] = { "no-cache", NULL, "compile and link anew", .in_file = false },
	[RUN_EXPLAIN] = { "explain", NULL,
			  "say of each image in FILE why it was taken or left (stderr)",
			  .in_file = false },
	[RUN_N_OPTS] = { 0 },
};

static const char run_details[] =
	"Loads FILE, makes the arguments, launches, and prints the time and what the kernel\n"
	"wrote. FILE is PTX, CUDA C++ (.cu), a cubin, a fatbin, or an object, archive, library or\n"
	"program that nvcc made; the image is taken that the driver would take. Several FILEs, and\n"
	"code from nvcc -dc or -dlto, are linked. One ARG for each parameter, in order:\n"
	"\n"
	"    i32=1024  f32=0.5  u64=0xff   a value\n"
	"    f64[1024]=FILL                a buffer that the kernel reads; or [4K], [1M], [1G]\n"
	"    out:f64[1024]                 a buffer that it writes\n"
	"    inout:f32[1M]=FILL            both; made anew for each launch\n"
	"    bytes=@FILE  hex:00ff1234     a struct passed by value\n"
	"    fn:NAME  fn:NAME[3]           the function pointer that a __device__ variable of\n"
	"                                  FILE holds, or element 3 of a table of them\n"
	"\n"
	"Types are i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64. A FILL is\n"
	"\n"
	"    zeros  ones  NUMBER           every element alike\n"
	"    iota[:START[:STEP]]           START + i x STEP, from 0 by 1; integers wrap\n"
	"    rand[:SEED]                   splitmix64 of SEED and i: floats in [0, 1),\n"
	"                                  integers of any value\n"
	"    @FILE                         a .npy file of the same type, else the raw bytes;\n"
	"                                  the count may be left out: f64[]=@a.npy\n"
	"\n"
	"An out: buffer is filled with bytes A5 before each launch; an element that still holds\n"
	"them afterwards is shown as unwritten.\n"
	"\n"
	"With no ARG, FILE's own line is used: the first line\n"
	"\n"
	"    // gpuload run: ARG... [OPTION...]\n"
	"\n"
	"that names the kernel asked for (or no kernel). Options of the command line come before\n"
	"those of the file; a relative @FILE in it starts from FILE's folder. With no such line\n"
	"either, gpuload reads from the kernel's code what it takes, makes up buffers of 1024\n"
	"elements, and prints the command line that this amounts to; where the code does not\n"
	"tell, it prints the kernel's signature and a command line to fill in.\n"
	"\n"
	"Exit status: 0 done, 1 failed or not as expected, 2 the command line does not fit.\n";

static const struct cli_opt devices_opts[] = {
	[DEVICES_DRIVER] = DRIVER_OPT,
	[DEVICES_MEMORY] = { "memory", NULL, "try every kind of memory on each, and whether other processes can map it",
			     .in_file = false },
	[DEVICES_JSON] = JSON_OPT,
	{ 0 },
};

static const char devices_details[] =
	"With --memory each kind of memory is really made, written and read by CPU and GPU, exported\n"
	"and mapped by another process, which does the same:\n"
	"\n"
	"    host-numa    cuMemCreate on a NUMA node     shm         shm_open, registered\n"
	"    device       cuMemCreate on the GPU         pinned      cuMemHostAlloc\n"
	"    memfd        a sealed file, registered      device-ipc  cuMemAlloc and cuIpc calls\n"
	"    fabric       device memory by fabric handle, for other machines on NVLink\n"
	"\n"
	"auto is what commands take when --kind is not given. The other process is gpuload-probe,\n"
	"which is installed with gpuload; GPULOAD_PROBE names another one.\n";

static const struct cli_opt compile_opts[] = {
	[COMPILE_OUT] = { "o", "OUT",
			  "what to write; - is stdout (default: FILE.ptx or FILE.cubin here)",
			  CLI_FILES, .in_file = false },
	[COMPILE_ARCH] = { "arch", "NAME",
			   "sm_90, compute_90, ... (default: sm_75 for PTX, sm_90 for a cubin)",
			   "sm_75 sm_80 sm_86 sm_89 sm_90 sm_90a sm_100 sm_120", .in_file = false },
	[COMPILE_PTX] = { "ptx", NULL, "make PTX (the default)", .in_file = false },
	[COMPILE_CUBIN] = { "cubin", NULL, "make machine code for one GPU architecture",
			  .in_file = false },
	[COMPILE_INCLUDE] = INCLUDE_OPT,
	[COMPILE_DEFINE] = DEFINE_OPT,
	[COMPILE_STD] = STD_OPT,
	[COMPILE_NO_CACHE] = NO_CACHE_OPT,
	{ 0 },
};

static const struct cli_opt cache_opts[] = {
	[CACHE_CLEAR] = { "clear", NULL, "remove all results", .in_file = false },
	[CACHE_JSON] = JSON_OPT,
	{ 0 },
};

static const char cache_details[] =
	"What NVRTC compiled and nvJitLink linked is kept, and taken from there when everything that\n"
	"it was made from is the same: the source and its headers, the options, the architecture,\n"
	"the compiler. GPULOAD_LOG=debug tells what is found and kept.\n"
	"\n"
	"    GPULOAD_CACHE            the folder, or off (default: $XDG_CACHE_HOME/gpuload,\n"
	"                             else ~/.cache/gpuload)\n"
	"    GPULOAD_CACHE_MAX_BYTES  what it may hold; K, M or G may follow (default: 256M).\n"
	"                             Beyond that, what was unused for longest goes first\n"
	"\n"
	"A folder that others may write to is not used.\n";

static const struct cli_opt ls_opts[] = {
	[LS_IMAGES] = { "images", NULL, "the images alone: nothing is unpacked, so it is quick",
			.in_file = false },
	[LS_SM] = SM_OPT,
	[LS_KIND] = KIND_OPT,
	[LS_MATCH] = { "match", "GLOB", "only kernels of this name, mangled or not",
		       .in_file = false },
	[LS_JSON] = { "json", NULL, "print one JSON object a FILE, one a line",
		      .in_file = false },
	[LS_INCLUDE] = INCLUDE_OPT,
	[LS_DEFINE] = DEFINE_OPT,
	[LS_STD] = STD_OPT,
	{ 0 },
};

static const char ls_details[] =
	"FILE is PTX, CUDA C++ (.cu), a cubin, a fatbin, an object, an archive, a shared library\n"
	"or a program.  Needs no driver and no GPU.  A .cu file is compiled to PTX, for --sm.\n"
	"\n"
	"An image is one piece of device code: machine code for one architecture (cubin), PTX or\n"
	"LTO code.  REGISTERED images are those that the CUDA runtime is told of; EMBEDDED ones\n"
	"were found in the data of a library that loads them itself.\n"
	"\n"
	"    regs     registers a thread         threads  the most in a block; =N: just so many\n"
	"    shared   static bytes a block       cluster  blocks in a cluster\n"
	"    local    bytes a thread             takes    parameters as OFFSET:BYTES TYPE; types\n"
	"    const    bytes, parameters included          as PTX or the C++ name tells them\n"
	"\n"
	"GLOB is as in the shell and must fit all of a name: the mangled one, the C++ one, or that\n"
	"without its parameters.  '*reduce*' finds every kernel with reduce in its name.\n"
	"\n"
	"A damaged image is told on stderr and the rest is listed; the exit status is 1 then, and\n"
	"where a file has no device code, or nothing that was asked for.\n";
static const struct cli_opt extract_opts[] = {
	[EXTRACT_OUT] = { "o", "DIR", "where to; made if it is not there", CLI_FILES,
			  .in_file = false },
	[EXTRACT_SM] = SM_OPT,
	[EXTRACT_KIND] = KIND_OPT,
	[EXTRACT_MATCH] = { "match", "GLOB", "only images with such a kernel; see help ls",
			    .in_file = false },
	[EXTRACT_FORCE] = { "force", NULL, "replace files that are there", .in_file = false },
	[EXTRACT_JSON] = JSON_OPT,
	{ 0 },
};

static const char extract_details[] =
	"Each image becomes a file NAME.INDEX.ARCH.KIND in DIR, such as libx.3.sm_90.cubin:\n"
	"\n"
	"    NAME     FILE's, up to its first dot    ARCH  as gpuload ls shows it\n"
	"    INDEX    the image's number there       KIND  cubin, ptx; rdc.cubin and rdc.ptx are\n"
	"                                                  to be linked first; lto.fatbin is LTO\n"
	"                                                  code as nvJitLink takes it\n"
	"\n"
	"A cubin is what nvdisasm and the driver take, PTX what ptxas takes.  PTX keeps the options\n"
	"that it came with on its first line, // ptxas options: ..., which gpuload run honours.\n"
	"A file that is there stops it, but with --force; no file is ever half written.\n";

#define DEVICES_OPT                                                                      \
	{ "devices", "LIST", "GPUs that get access, such as 0,1 (default: 0)", .in_file = false }

static const struct cli_opt share_opts[] = {
	[SHARE_BYTES] = { "bytes", "N", "how much; K, M or G may follow", .in_file = false },
	[SHARE_KIND] = { "kind", "KIND", "what kind of memory (default: auto)",
			 "auto host-numa device memfd shm device-ipc", .in_file = false },
	[SHARE_FILL] = { "fill", "TYPE=FILL", "contents, see gpuload help run: f32=rand, u8=@FILE",
			 .in_file = false },
	[SHARE_SHAPE] = { "shape", "N[,N...]", "dimensions, told to whoever attaches",
			  .in_file = false },
	[SHARE_FROM] = { "from", "FILE", "a .npy file with its type and shape, or any bytes",
			 CLI_FILES, .in_file = false },
	[SHARE_NODE] = { "node", "N", "NUMA node of host memory (default: the first GPU's)",
			 .in_file = false },
	[SHARE_DEVICES] = DEVICES_OPT,
	[SHARE_READ_ONLY] = { "read-only", NULL, "the others may only read", .in_file = false },
	[SHARE_FABRIC] = { "fabric", NULL, "device: by fabric handle, where that works",
			   .in_file = false },
	[SHARE_UNTIL_DETACHED] = { "until-detached", NULL, "end when the last one has gone",
				   .in_file = false },
	[SHARE_FOR] = { "for", "SECONDS", "end after that time; 0.5 is fine",
			.in_file = false },
	[SHARE_JSON] = { "json", NULL, "print one JSON object an event, one a line",
			 .in_file = false },
	[SHARE_DRIVER] = DRIVER_OPT,
	{ 0 },
};

static const char share_details[] =
	"Makes memory that GPUs and CPUs see, fills it, and offers it to other processes of the\n"
	"same user, until Ctrl-C (SIGINT, SIGTERM, SIGHUP):\n"
	"\n"
	"    gpuload share weights --from weights.npy &\n"
	"    gpuload attach weights --wait 5 --sum\n"
	"\n"
	"KIND is\n"
	"\n"
	"    auto        the first of host-numa, memfd and shm that works here\n"
	"    host-numa   RAM of one NUMA node (cuMemCreate); one address for CPU and GPU\n"
	"    memfd       RAM without a name, sealed against shrinking; registered with the GPU\n"
	"    shm         RAM by shm_open, the classic way; registered with the GPU\n"
	"    device      memory of the first GPU (cuMemCreate); the CPU does not see it\n"
	"    device-ipc  the same by cuMemAlloc and cuIpc*, the legacy way\n"
	"\n"
	"NAME is a socket, NAME.sock, in a folder that only this user can enter:\n"
	"$GPULOAD_RUNTIME_DIR, else $XDG_RUNTIME_DIR/gpuload, else /tmp/gpuload-UID. A NAME with\n"
	"a / in it is a path of its own. Nothing else has a name: when this process dies, however\n"
	"it dies, the memory goes with the last process that is attached.\n"
	"\n"
	"One line when it is ready, then one an event: ATTACHED, DETACHED, PEER_DIED, REFUSED with\n"
	"the reason, and ENDED. Before the first byte lies a page with an abort word and step\n"
	"counters for kernels: ipc/control.h.\n";

static const struct cli_opt attach_opts[] = {
	[ATTACH_SUM] = { "sum", NULL, "add up the elements, on the GPU and on the CPU",
			 .in_file = false },
	[ATTACH_DUMP] = { "dump", NULL, "print elements, or bytes in hex", .in_file = false },
	[ATTACH_ROWS] = { "rows", "N", "how many rows --dump prints (default: 10)",
			  .in_file = false },
	[ATTACH_SAVE] = { "save", "FILE", "write all of it: a .npy file, or raw to other names",
			  CLI_FILES, .in_file = false },
	[ATTACH_FORCE] = { "force", NULL, "replace FILE if it is there", .in_file = false },
	[ATTACH_HOLD] = { "hold", NULL, "stay attached until a signal or the owner's end",
			  .in_file = false },
	[ATTACH_TYPE] = { "type", "TYPE", "of the elements, whatever the owner says",
			  "i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64", .in_file = false },
	[ATTACH_READ_ONLY] = { "read-only", NULL, "map it for reading only", .in_file = false },
	[ATTACH_DEVICES] = DEVICES_OPT,
	[ATTACH_WAIT] = { "wait", "SECONDS", "wait for NAME to be there (default: 0)",
			  .in_file = false },
	[ATTACH_TIMEOUT] = { "timeout", "SECONDS",
			     "give up an owner that does not answer, or a sum (default: 10)",
			     .in_file = false },
	[ATTACH_JSON] = JSON_OPT,
	[ATTACH_DRIVER] = DRIVER_OPT,
	{ 0 },
};

static const char attach_details[] =
	"Maps the memory that another process shares, on the first GPU of LIST and, unless it is\n"
	"device memory, on the CPU; says what it is; does what is asked for; lets go. The options\n"
	"can be combined.\n"
	"\n"
	"    --sum    in pairs of pairs, in an order that depends on the count alone: the sums of all\n"
	"             processes, GPUs and CPUs are the same, bit for bit. Exit status 1 if not\n"
	"    --dump   a row is one of the last dimension, or 10 elements; 16 bytes where the owner\n"
	"             said no type\n"
	"    --save   no file is ever half written\n"
	"\n"
	"When the owner dies, the memory stays readable until this process lets go; --hold tells of\n"
	"it, lets go and ends with 1.\n";

static const struct cli_opt shares_opts[] = {
	[SHARES_VERBOSE] = { "verbose", NULL, "tell which dead sockets were removed",
			     .in_file = false },
	[SHARES_NAMES] = { "names", NULL, "only the names, dead ones too; asks nobody",
			   .in_file = false },
	[SHARES_JSON] = JSON_OPT,
	{ 0 },
};

static const char shares_details[] =
	"Asks the owner of each name; one that does not answer within 0.2 s is listed as such. The\n"
	"socket of one that has died is removed. A process of another pid namespace shows as -.\n"
	"Needs no driver and no GPU.\n";

static const struct cli_opt map_opts[] = {
	[MAP_SVG] = { "svg", "FILE", "write the picture as SVG; - is stdout", CLI_FILES,
		      .in_file = false },
	[MAP_FORCE] = { "force", NULL, "replace FILE if it is there", .in_file = false },
	[MAP_JSON] = JSON_OPT,
	{ 0 },
};

static const char map_details[] =
	"Draws the memory in the middle and each process that maps it beside it, with the range of\n"
	"addresses where its CPU and its GPU see the data, and which GPU that is. Needs no driver\n"
	"and no GPU.\n";

static const struct cli_opt mmap_sum_opts[] = {
	[MMAP_SUM_N] = { "n", "N", "processes, from 1 to 64 (default: 3)", .in_file = false },
	[MMAP_SUM_BYTES] = { "bytes", "SIZE", "of the buffer; K, M or G may follow (default: 64M)",
			     .in_file = false },
	[MMAP_SUM_KIND] = { "kind", "KIND", "which memory; auto takes host memory that works here (default)",
			    "auto host-numa device memfd shm device-ipc", .in_file = false },
	[MMAP_SUM_FILL] = { "fill", "TYPE=FILL", "what is in it, as in gpuload run (default: f64=rand)",
			    .in_file = false },
	[MMAP_SUM_DEVICES] = { "devices", "LIST",
			       "GPUs, such as 0,1: process i takes the i-th of them, in turn (default: 0)", .in_file = false },
	[MMAP_SUM_TIMEOUT] = { "timeout", "SECONDS", "for the whole of it (default: 60)", .in_file = false },
	[MMAP_SUM_DRIVER] = DRIVER_OPT,
	[MMAP_SUM_JSON] = JSON_OPT,
	{ 0 },
};

static const char mmap_sum_details[] =
	"One process, the master, creates the buffer and fills it; the others attach to it, which\n"
	"copies nothing.  Each adds it up on its GPU and on its CPU (device memory, which no CPU\n"
	"sees, after a copy), and the sums are printed:\n"
	"\n"
	"    total sum [master]: 4196125.058501036\n"
	"    total sum [4711]: 4196125.058501036       of the process 4711\n"
	"\n"
	"They agree bit for bit, because everybody adds in the same order: in pairs, then pairs of\n"
	"pairs.  Floats are added up as f64, integers as i64 or u64.\n"
	"\n"
	"Memory of kind pinned is refused: no other process can map it.\n"
	"\n"
	"Exit status: 0 all agree, 1 they differ or a process failed, 2 the command line is wrong.\n";

static const struct cli_opt help_opts[] = {
	[HELP_MAN] = { "man", NULL, "print the manual page (roff) instead", .in_file = false },
	{ 0 },
};
static const struct cli_opt no_opts[] = { { 0 } };

const struct cli_cmd cli_cmds[] = {
	{ "run", "FILE... [ARG...]", "run a kernel on made-up, given or file data",
	  run_details, run_opts, cmd_run, CLI_FILES, NULL },
	{ "ls", "FILE...", "list the kernels of any file: parameters, registers, memory",
	  ls_details, ls_opts, cmd_ls, CLI_FILES, NULL },
	{ "extract", "FILE -o DIR", "copy images out of any file: cubins, PTX, LTO code",
	  extract_details, extract_opts, cmd_extract, CLI_FILES, NULL },
	{ "devices", "", "list the GPUs, and say which driver was taken and why",
	  devices_details, devices_opts, cmd_devices, NULL, NULL },
	{ "compile", "FILE.cu", "compile CUDA C++ to PTX or machine code, through NVRTC",
	  NULL, compile_opts, cmd_compile, CLI_FILES, NULL },
	{ "share", "NAME", "make memory for GPUs and CPUs, and offer it to other processes",
	  share_details, share_opts, cmd_share, NULL, NULL },
	{ "attach", "NAME", "map another process' memory: add up, print or save it",
	  attach_details, attach_opts, cmd_attach, CLI_SHARES, NULL },
	{ "shares", "", "list what is shared here: owner, kind, size, who is attached",
	  shares_details, shares_opts, cmd_shares, NULL, NULL },
	{ "map", "NAME", "draw who maps shared memory where, as text or SVG",
	  map_details, map_opts, cmd_map, CLI_SHARES, NULL },
	{ "explain", "[LOG]", "say what is behind the words of nvcc, ptxas and linkers",
	  "Reads LOG, or what is piped in:  make 2>&1 | gpuload explain\n"
	  "and shows the messages that are known here, each with what to do about it.\n",
	  no_opts, cmd_explain, CLI_FILES, NULL },
	{ "cache", "", "tell where compiled and linked code is kept, and how much; or clear it",
	  cache_details, cache_opts, cmd_cache, NULL, NULL },
	{ "mmap-sum", "", "map one buffer into several processes; their GPUs' sums agree",
	  mmap_sum_details, mmap_sum_opts, cmd_mmap_sum, NULL, NULL },
	{ "fifo", "VERB", "the queue from GPU threads to a CPU thread: bench, trace, serve, push",
	  fifo_details, no_opts, cmd_fifo, NULL, fifo_verbs },
	{ "completion", "bash", "print the completion script for a shell",
	  "Try it in this shell:  source <(gpuload completion bash)\n",
	  no_opts, cmd_completion, "bash", NULL },
	{ "help", "[COMMAND]", "list the commands, or explain one",
	  NULL, help_opts, cmd_help, CLI_COMMANDS, NULL },
	{ "version", "", "print the versions of gpuload and of what it found",
	  NULL, no_opts, cmd_version, NULL, NULL },
	{ 0 },
};
/* clang-format on */

/* The row whose name is this from byte n_prefix on. */
static const struct cli_cmd *find_row(const struct cli_cmd *rows, size_t n_prefix, const char *name,
				      const char *of, gpul_error *err)
{
	const char *names[sizeof cli_cmds / sizeof *cli_cmds];
	size_t n = 0;
	const char *near;

	for (const struct cli_cmd *c = rows; c->name; c++) {
		if (!strcmp(c->name + n_prefix, name))
			return c;
		if (n < sizeof names / sizeof *names)
			names[n++] = c->name + n_prefix;
	}
	near = gpul_text_nearest(name, names, n);
	if (near)
		gpul_fail(err, GPUL_EINVAL, 0, "no command '%s%s'; did you mean %s?", of, name, near);
	else
		gpul_fail(err, GPUL_EINVAL, 0, "no command '%s%s'; gpuload help %slists them", of, name, of);
	return NULL;
}

const struct cli_cmd *cli_find(const char *name, gpul_error *err)
{
	return find_row(cli_cmds, 0, name, "", err);
}

const struct cli_cmd *cli_find_verb(const struct cli_cmd *cmd, const char *verb, gpul_error *err)
{
	char of[32];

	snprintf(of, sizeof of, "%s ", cmd->name);
	return find_row(cmd->verbs, strlen(of), verb, of, err);
}
