/* run_options.c — defines the options of gpuload run, those that are passed to tools of the software driver, and the help text. */
#include "cli/run/run_options.h"

#include <stddef.h>

/* clang-format off */  /* a table with one row per option */
const struct cli_opt run_opts[] = {
	[RUN_KERNEL] = { "kernel", "NAME", "name of the kernel; needed if FILE has several kernels", NULL },
	[RUN_GRID] = { "grid", "X[,Y[,Z]]",
		"number of blocks (default: enough for the count parameter or the largest buffer)", NULL },
	[RUN_BLOCK] = { "block", "X[,Y[,Z]]", "threads per block (default: 256, or fewer if the kernel limits its block)", NULL },
	[RUN_SHARED] = { "shared", "BYTES", "dynamic shared memory per block in bytes; K and M may follow (default: 0)", NULL },
	[RUN_REPEAT] = { "repeat", "N", "launch N times and print the median and the minimum of the times (default: 1)", NULL },
	[RUN_EXPECT] = { "expect", "ARG=WHAT",
		"check buffer number ARG, counted from 0; WHAT is a FILL, @FILE or sum:VALUE", NULL },
	[RUN_RTOL] = { "rtol", "X", "relative tolerance for --expect with floats (default: 0)", NULL },
	[RUN_ATOL] = { "atol", "X", "absolute tolerance for --expect with floats (default: 0)", NULL },
	[RUN_SAVE] = { "save", "ARG=FILE",
		"write buffer number ARG to FILE: as a NumPy array if FILE ends in .npy, otherwise the raw bytes", NULL },
	[RUN_FORCE] = { "force", NULL, "let --save replace an existing file", NULL },
	[RUN_SHOW] = { "show", "N", "print the first N elements of each buffer, or all (default: 10)", "0 10 100 all" },
	[RUN_TIMEOUT] = { "timeout", "SECONDS", "fail if the kernel runs longer than SECONDS, such as 0.5 (default: no limit)", NULL },
	[RUN_DRIVER] = CLI_DRIVER_OPT,
	[RUN_DEVICE] = { "device", "N", "number of the GPU, counted from 0 (default: 0)", NULL },
	[RUN_JSON] = CLI_JSON_OPT,
	[RUN_INCLUDE] = NVRTC_INCLUDE_OPT,
	[RUN_DEFINE] = NVRTC_DEFINE_OPT,
	[RUN_STD] = NVRTC_STD_OPT,
	[RUN_SM] = IMAGE_SM_OPT,
	[RUN_KIND] = IMAGE_KIND_OPT,
	[RUN_LINK_ARG] = { "link-arg", "OPTION", "pass OPTION to nvJitLink, such as -maxrregcount=64", NULL },
	[RUN_LINK_ALL] = { "link-all", NULL,
		"software driver: also link functions that only a table of function pointers refers to, even if they are larger than 16 "
		"MB", NULL },
	[RUN_NO_CACHE] = { "no-cache", NULL, "do not use the cache of compiled and linked code (see gpuload help cache)", NULL },
	[RUN_EXPLAIN] = { "explain", NULL, "print on stderr for each image in FILE why it was selected or not", NULL },
	[RUN_TRACE] = { "trace", "FILE", "software driver: write what each instruction did to FILE.txt, .json (for Perfetto) or .html (plays the kernel); -: text on stdout", CLI_FILES },
	[RUN_TRACE_ONLY] = { "trace-only", "FILTER",
		"record what matches KEY=VALUE,...: kernel, op, line, ptx (line), warp or launch, such as op=ld,line=7-9", NULL },
	[RUN_BLOCKS] = { "blocks", "LIST", "record only these blocks of the grid, such as 0,4-7 (default: all)", NULL },
	[RUN_FROM] = { "from", "N", "record from instruction number N on (default: 0)", NULL },
	[RUN_TRACE_LIMIT] = { "trace-limit", "N", "record at most N instructions of warps (default: 100000)", NULL },
	[RUN_SYNCCHECK] = { "synccheck", NULL, "software driver: report misused barriers and member masks, and deadlocks", NULL },
	[RUN_SYNCCHECK_TIMEOUT] = { "synccheck-timeout", "SECONDS",
		"report blocks that do nothing but poll memory for SECONDS (default: 10)", NULL },
	[RUN_RACECHECK] = { "racecheck", NULL, "software driver: report data races of shared and global memory", NULL },
	[RUN_RACECHECK_SAME] = { "racecheck-same", NULL, "report races of writes of equal values, too", NULL },
	[RUN_RACECHECK_PTX] = { "racecheck-ptx", NULL, "volatile accesses do not race with each other, as PTX's memory model says", NULL },
	[RUN_PROFILE] = { "profile", "FILE",
		"software driver: count instructions, divergence, memory transactions and bank conflicts; FILE is a table, .json or .html", CLI_FILES },
	[RUN_PROFILE_MOST] = { "profile-most", "COUNTER=N,...", "fail if a counter of a kernel is larger, such as bank-conflicts=0", NULL },
	[RUN_PROFILE_SM] = { "profile-sm", "N", "compute capability whose limits determine the occupancy (default: 90)", "80 86 89 90 100 120" },
	[RUN_PROFILE_REGISTERS] = { "profile-registers", "N", "registers of a thread, as ptxas -v prints them (default: an estimate)", NULL },
	[RUN_MEMCHECK] = { "memcheck", NULL,
		"software driver: report accesses outside of allocations, reads of uninitialised memory, invalid frees, leaks", NULL },
	[RUN_SCHEDULE] = { "schedule", "SEED|all|replay:...",
		"software driver: run the threads in a different order; all: try each order that may change the result, and compare the "
		"results", "all" },
	[RUN_MAX] = { "max", "N", "try at most N orders with --schedule all (default: 10000)", NULL },
	[RUN_N_OPTS] = { 0 },
};

/* For each tool, the options of gpuload run whose values are passed to it. */
static const struct run_tool_option profile_options[] = {
	{ RUN_PROFILE_MOST, "most" }, { RUN_PROFILE_SM, "sm" }, { RUN_PROFILE_REGISTERS, "registers" }, { 0 },
};
static const struct run_tool_option trace_options[] = {
	{ RUN_TRACE_ONLY, "only" }, { RUN_BLOCKS, "blocks" }, { RUN_FROM, "from" }, { RUN_TRACE_LIMIT, "limit" }, { 0 },
};

static const struct run_tool_option synccheck_options[] = {
	{ RUN_SYNCCHECK_TIMEOUT, "timeout" }, { 0 },
};

static const struct run_tool_option racecheck_options[] = { { RUN_RACECHECK_SAME, "same" }, { RUN_RACECHECK_PTX, "ptx" }, { 0 } };

static const struct run_tool_option schedule_options[] = { { RUN_MAX, "max" }, { 0 } };

const struct run_tool run_tools[] = {
	{ RUN_TRACE, 0, "trace", "file", trace_options },
	{ RUN_SYNCCHECK, 0, "synccheck", NULL, synccheck_options },
	{ RUN_SCHEDULE, 0, "schedule", "how", schedule_options },
	{ RUN_RACECHECK, 0, "racecheck", NULL, racecheck_options },
	{ RUN_PROFILE, RUN_PROFILE_MOST, "profile", "file", profile_options },
	{ RUN_MEMCHECK, 0, "memcheck", NULL, NULL },
	{ 0 },
};
/* clang-format on */

const char run_details[] = "Loads FILE, creates the arguments, launches a kernel, and prints the time and the contents\n"
			   "of the output buffers.\n"
			   "\n"
			   "FILE is PTX, CUDA C++ (.cu), a cubin, a fatbin, or an object, archive, library or program\n"
			   "built by nvcc. Of several images, gpuload selects the image that the driver would select.\n"
			   "Several FILEs are linked, and so is code that was compiled with nvcc -dc or -dlto. Write\n"
			   "-- before a FILE whose name begins with a dash: gpuload run -- -x.cu; options come before\n"
			   "this --, and the next -- begins the arguments of a program.\n"
			   "\n"
			   "ARGUMENTS. One ARG for each parameter of the kernel, in order:\n"
			   "\n"
			   "    i32=1024  f32=0.5  u64=0xff   a value\n"
			   "    f64[1024]=FILL                a buffer that the kernel reads; the number of elements\n"
			   "                                  may be written as 4K, 1M or 1G\n"
			   "    out:f64[1024]                 a buffer that the kernel writes\n"
			   "    inout:f32[1M]=FILL            a buffer that the kernel reads and writes; filled again\n"
			   "                                  before each launch\n"
			   "    bytes=@FILE                   a struct passed by value: the contents of FILE\n"
			   "    hex:00ff1234                  a struct passed by value: its bytes\n"
			   "    'struct[16]{0:ARG;8:ARG}'     a struct of 16 bytes by its members, each an ARG (value or\n"
			   "                                  buffer) at its offset in bytes; other bytes are 0\n"
			   "    fn:NAME  fn:NAME[3]           a function pointer: the one in the __device__ variable\n"
			   "                                  NAME of FILE, or element 3 of the array NAME\n"
			   "\n"
			   "The types are i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64. FILL is\n"
			   "\n"
			   "    zeros  ones  NUMBER           all elements equal\n"
			   "    iota[:START[:STEP]]           element i is START + i x STEP (default: 0 and 1);\n"
			   "                                  integers wrap around\n"
			   "    rand[:SEED]                   random numbers (splitmix64 of SEED and i; SEED 0 if not\n"
			   "                                  given): floats in [0, 1), integers of any value\n"
			   "    @FILE                         the elements of a .npy file of the same type, or of a\n"
			   "                                  file of raw bytes; the count may be left out: f64[]=@a.npy\n"
			   "\n"
			   "An out: buffer is filled with pseudo-random bytes before each launch; elements that still contain\n"
			   "these bytes afterwards are printed as unwritten.\n"
			   "\n"
			   "WITHOUT ARGUMENTS, the arguments and options come from FILE itself: from the first line\n"
			   "\n"
			   "    // gpuload run: ARG... [OPTION...]\n"
			   "\n"
			   "that names the kernel with --kernel, or names no kernel. Options on the command line take\n"
			   "precedence over options in this line; a relative @FILE in this line is relative to the\n"
			   "folder of FILE. If FILE has no such line, gpuload analyses the code of the kernel, invents\n"
			   "buffers of about 1024 elements and a launch, and prints the command line that would do the\n"
			   "same. If the sizes depend on the launch or on other values, it chooses these too, and\n"
			   "computes which bytes the kernel can access; a buffer of more than 64 MiB is never invented,\n"
			   "but must be given as an ARG. If the code does not show how the kernel uses a parameter, gpuload prints the\n"
			   "signature of the kernel and a command line to fill in.\n"
			   "\n"
			   "PROGRAMS. A .cu with main() is built by nvcc, linked with libgpuload-rt, and run; words after\n"
			   "-- are its arguments. Its <<<>>> run on the selected driver. The result is kept in the cache.\n"
			   "With ARGs, --kernel or another option of a kernel, or without nvcc, a kernel is run alone.\n"
			   "\n"
			   "CHECKS. --expect compares a buffer after the last launch with a FILL, with the contents of\n"
			   "a file (@FILE), or its sum with a number (sum:VALUE). --rtol and --atol allow differences\n"
			   "between floats: at most ATOL + RTOL x |expected value|.\n"
			   "\n"
			   "TOOLS, such as --trace and --profile, watch the kernel on the software driver. If a tool finds errors in\n"
			   "the kernel, the exit status is 1.\n"
			   "\n"
			   "EXAMPLES\n"
			   "\n"
			   "    gpuload run saxpy.cu f32=2 'f32[1M]=iota' 'inout:f32[1M]=1' i32=1048576\n"
			   "    gpuload run program.cu -- 1000 --verbose\n"
			   "    gpuload run libkernels.so --kernel scale 'inout:f32[1K]=ones' f32=3 \\\n"
			   "        --expect 0=3\n"
			   "\n"
			   "Exit status: 0 done; 1 failed, or a buffer is not as expected; 2 the command line is wrong.\n";
