/* arg.h — a kernel argument (ARG) as written on the command line.
 *
 *     i32=1024   f32=0.5   u64=0xff            a scalar
 *     f64[1024]=FILL   in:f64[1024]=FILL       a buffer that the kernel reads
 *     out:f64[1024]                            a buffer that the kernel writes; poisoned before the launch
 *     inout:f32[1M]=FILL                       a buffer that the kernel reads and writes
 *     bytes=@FILE   hex:00ff1234               a struct passed by value, as its bytes
 *     struct[24]{0:f32[1024]=iota;8:i32=5}     a struct of 24 bytes by its members, each an ARG at its offset;
 *                                              other bytes are 0
 *     fn:NAME   fn:NAME[3]                     the function pointer in a __device__ variable or array */
#ifndef GPULOAD_CLI_RUN_ARG_H
#define GPULOAD_CLI_RUN_ARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "loader/signature/signature.h"

/* Byte i of an output buffer before the launch (poison).  The bytes are pseudo-random, so that no constant and no sequence that a
 * kernel writes looks like them for more than single elements. */
unsigned char arg_poison(size_t i);

struct arg {
	enum arg_kind { ARG_SCALAR, ARG_BUFFER, ARG_BYTES, ARG_FUNCTION, ARG_STRUCT } kind;
	gpul_type type;      /* SCALAR: type of the value; BUFFER: type of the elements */
	bool in, out;        /* BUFFER: in: the kernel reads it; out: the kernel writes it */
	bool lone_unwritten; /* BUFFER, only written: single elements equal to the poison also count as unwritten; set by arg_examine() */
	bool changed;        /* BUFFER given as input only: the kernel wrote to it, too (set by run_launch()) */
	size_t count;        /* BUFFER: number of elements */
	size_t bytes;        /* size of data */
	unsigned char *data; /* the value, or the contents of the buffer; owned */
	char *text;          /* the ARG as the user wrote it; owned */
	char *variable;      /* FUNCTION: name of the variable that contains the pointer; owned */
	size_t index;        /* FUNCTION: index in the variable; run_functions() sets `data` after the module is loaded */
	struct arg *members; /* STRUCT: n_members scalars, buffers or bytes; owned */
	size_t n_members;
	size_t offset;    /* of a member: its offset in the struct, in bytes */
	uint64_t address; /* device address of a BUFFER that is a member; 0: not allocated */
};

/** Parse one ARG and create its contents.
 *
 * @text  an ARG as listed above
 * @dir   folder of a relative @FILE; NULL: the current folder
 * @out   owned by the caller: arg_free(); zeroed on failure
 * Errors  GPUL_EINVAL malformed ARG, the message gives the expected form; others as fill_make() */
gpul_status arg_parse(const char *text, const char *dir, struct arg *out, gpul_error *err);
void arg_free(struct arg *a);

/** Prepare for arg_unwritten(); call it when `data` contains an output buffer as it was after the kernel. */
void arg_examine(struct arg *a);
/** True if element i of an output buffer was not written: it contains its poison.
 *
 * A value of 1 or 2 bytes that the kernel wrote equals the poison by chance once in 256 or 65536 times.  So a single element with
 * poison, which is not part of 4 consecutive bytes of poison, counts as unwritten only if there are many more such elements than chance
 * explains. */
bool arg_unwritten(const struct arg *a, size_t i);

#endif
