/* fifo_serve.h — gpuload fifo serve and gpuload fifo push: one FIFO, two processes.
 *
 *     fifo_serve.c  owns the memory; its proxy counts what comes     fifo_push.c  attaches; its kernel pushes
 *
 *             share NAME ─────────────── NAME.sock ──────────────> attach NAME
 *             proxy thread  <─────────── FIFO in host memory ────── kernel (fifo_push.cu)
 *             watches the process ·····························─ aborts its kernel when the owner has ended */
#ifndef GPULOAD_CLI_FIFO_FIFO_SERVE_H
#define GPULOAD_CLI_FIFO_FIFO_SERVE_H

#include "cli/cli.h"

/* For the verbs' rows (cli.h). */
extern const struct cli_opt fifo_serve_opts[], fifo_push_opts[];
extern const char fifo_serve_details[], fifo_push_details[];
int cmd_fifo_serve(const struct cli_args *args, gpul_error *err);
int cmd_fifo_push(const struct cli_args *args, gpul_error *err);

#endif
