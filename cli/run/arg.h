/* arg.h — one kernel argument as written on the command line.
 *
 *     i32=1024   f32=0.5   u64=0xff            a scalar
 *     f64[1024]=FILL   in:f64[1024]=FILL       a buffer that the kernel reads
 *     out:f64[1024]                            a buffer that it writes: poisoned at first
 *     inout:f32[1M]=FILL                       both
 *     bytes=@FILE   hex:00ff1234               a struct by value, as its bytes
 *     fn:NAME   fn:NAME[3]                     the function pointer in a __device__ variable */
#ifndef GPULOAD_CLI_RUN_ARG_H
#define GPULOAD_CLI_RUN_ARG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "loader/signature/signature.h"

/* Every byte of an output buffer before the launch.  1010 0101 is unlikely as data: as f32 it
 * is -2.87e-16, as f64 -1.19e-127, as u32 2779096485. */
#define ARG_POISON 0xA5

struct arg {
	enum arg_kind { ARG_SCALAR, ARG_BUFFER, ARG_BYTES, ARG_FUNCTION } kind;
	gpul_type type;          /* SCALAR, BUFFER */
	bool in, out;            /* BUFFER: the kernel reads it, writes it */
	size_t count;            /* BUFFER: elements */
	size_t bytes;            /* of data */
	unsigned char *data;     /* the value, or the buffer's contents; owned */
	char *text;              /* as written; owned */
	char *variable;          /* FUNCTION: where the pointer is; owned */
	size_t index;            /* FUNCTION: its element; data is filled in from the module */
};

/** Parse one ARG and make its contents.
 *
 * @text  as drawn above
 * @dir   folder of a relative @FILE; NULL: the current one
 * @out   owned by the caller: arg_free(); zeroed on failure
 * Errors  GPUL_EINVAL not an ARG: says what is expected; else as fill_make()
 * Threads any thread may call
 * Source  - */
gpul_status arg_parse(const char *text, const char *dir, struct arg *out, gpul_error *err);
void arg_free(struct arg *a);

/** True when element i of an output buffer still is the poison.  Types narrower than 4 bytes
 * hold 0xA5 now and then: for these the whole aligned group of 4 bytes must be poison. */
bool arg_unwritten(const struct arg *a, const unsigned char *data, size_t i);

#endif
