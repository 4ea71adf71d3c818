/* cli_fifo.h — declares the command gpuload fifo, and its verbs "serve" and "push"; fifo_bench.h and fifo_trace.h declare the others. */
#ifndef GPULOAD_CLI_FIFO_CLI_FIFO_H
#define GPULOAD_CLI_FIFO_CLI_FIFO_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_fifo;

/* The commands gpuload fifo serve and gpuload fifo push: one FIFO, two processes.
 *
 *     fifo_serve.c  owns the memory; its proxy counts triggers       fifo_push.c  attaches; its kernel pushes
 *
 *             share NAME ─────────────── NAME.sock ──────────────> attach NAME
 *             proxy thread  <─────────── FIFO in host memory ────── kernel (fifo_push.cu)
 *             watches the process ·····························  aborts its kernel when the owner has ended */
extern const struct cli_cmd cli_fifo_serve, cli_fifo_push;

#endif
