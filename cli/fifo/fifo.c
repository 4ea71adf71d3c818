/* fifo.c — gpuload fifo: the table of its verbs.  What they do is in fifo_<verb>.c. */
#include "cli/fifo/fifo.h"

#include "cli/fifo/fifo_serve.h"
#include "cli/fifo/fifo_trace.h"

/* clang-format off */  /* tables, one row an option */

const char fifo_details[] =
	"GPU threads push 16-byte triggers into a ring in host memory; a CPU thread takes them out,\n"
	"acts on them and says that they are done (proxy/README.md).\n";

static const struct cli_opt bench_opts[] = {
	[FIFO_BENCH_SIZES] = { "sizes", "LIST", "slots in all: powers of two, such as 1,128,512 (the default)", .in_file = false },
	[FIFO_BENCH_PARALLEL] = { "parallel", "LIST", "threads that push, each in a block of its own, such as 1,8,64", .in_file = false },
	[FIFO_BENCH_MODE] = { "mode", "MODE", "one queue for all threads, or a lane for each (default: both)", "shared lanes both",
			      .in_file = false },
	[FIFO_BENCH_REPEAT] = { "repeat", "N", "the figure is the median of N runs (default: 5)", .in_file = false },
	[FIFO_BENCH_TRIGGERS] = { "triggers", "N", "of each thread (default: the most of 1000 and 10 x size)", .in_file = false },
	[FIFO_BENCH_PLOT] = { "plot", "FILE", "draw the throughput as SVG, too; - is stdout, instead of the tables", CLI_FILES,
			      .in_file = false },
	[FIFO_BENCH_FORCE] = { "force", NULL, "replace FILE if it is there", .in_file = false },
	[FIFO_BENCH_BATCH] = { "batch", "N", "handle at most N between two releases (default: 64; of warps 1024)", .in_file = false },
	[FIFO_BENCH_KIND] = { "kind", "KIND", "which host memory (default: auto, the first that works)",
			      "auto host-numa memfd shm pinned", .in_file = false },
	[FIFO_BENCH_DEVICE] = { "device", "N", "which GPU, from 0 (default: 0)", .in_file = false },
	[FIFO_BENCH_CPU] = { "cpu", "N", "the CPU that takes the triggers out (default: the system chooses)", .in_file = false },
	[FIFO_BENCH_TIMEOUT] = { "timeout", "SECONDS", "give up when nothing moves for that time (default: 10)", .in_file = false },
	[FIFO_BENCH_DRIVER] = { "driver", "NAME", "auto, nvidia or soft (default: $GPULOAD_DRIVER, else auto)", "auto nvidia soft",
				.in_file = false },
	[FIFO_BENCH_JSON] = { "json", NULL, "print one JSON object instead of text", .in_file = false },
	{ 0 },
};

static const char bench_details[] =
	"P blocks of one thread push triggers; this program's main thread takes them out while the\n"
	"kernel runs and counts each in a hash map. Throughput is the number of triggers over the\n"
	"time from the launch until the stream is synchronised. All counts are checked.\n"
	"\n"
	"    push           16 bytes; what the thread wrote before may become visible later\n"
	"    push release   what it wrote before is visible to who sees the trigger\n"
	"    + sync each    and it waits until the CPU has handled it, before the next push\n"
	"    push to pop    latency of one push, and\n"
	"    push to sync   until the thread knows that it has been handled\n"
	"    warp push      32 triggers at once; the CPU reads and checks each\n"
	"\n"
	"Without --sizes and --parallel: 1 slot with 1 thread; 128 with 1, 8, 64, 128; 512 with 1, 8,\n"
	"64, 256, 512. With one of them the other is as there, or 1,8,64. More threads than slots are\n"
	"left out. lanes has a lane for each thread, and as many slots in all as shared.\n"
	"\n"
	"On the software driver, which is there to learn and to test with, fewer triggers are pushed;\n"
	"the output says how many.\n";

const struct cli_cmd fifo_verbs[] = {
	{ "fifo bench", "", "measure throughput and latency of the queue, by size and parallelism",
	  bench_details, bench_opts, cmd_fifo_bench, NULL, NULL },
	{ "fifo trace", "", "draw each trigger's way, from push to completion, for ui.perfetto.dev",
	  fifo_trace_details, fifo_trace_opts, cmd_fifo_trace, NULL, NULL },
	{ "fifo serve", "NAME", "have a proxy take out what other processes' kernels push",
	  fifo_serve_details, fifo_serve_opts, cmd_fifo_serve, NULL, NULL },
	{ "fifo push", "NAME", "run a kernel that pushes to another process' proxy",
	  fifo_push_details, fifo_push_opts, cmd_fifo_push, CLI_SHARES, NULL },
	{ 0 },
};
/* clang-format on */

int cmd_fifo(const struct cli_args *args, gpul_error *err)
{
	(void)args;
	gpul_fail(err, GPUL_EINVAL, 0, "which verb?  gpuload help fifo lists them");
	return CLI_USAGE;
}
