/* share.h — the parts of gpuload share, and output functions for share, attach, shares, map and fifo.
 *
 *     argv ─ share_request.c ─> struct share_request   size, type, contents
 *              │  share.c: open the driver, create memory, fill it, offer it, print events
 *              └─ share_text.c, share_json.c, share_event.c: sizes, shapes, processes, events as text and JSON */
#ifndef GPULOAD_CLI_SHARE_SHARE_H
#define GPULOAD_CLI_SHARE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/command.h"
#include "cli/lib/options/devices_arg.h"
#include "cli/lib/json/cli_json.h"
#include "cli/lib/out.h"
#include "core/file/file.h"
#include "ipc/client.h"

extern const struct cli_cmd cli_share, cli_shares;
extern const struct cli_opt share_opts[]; /* options and help text: share_request.c */
extern const char share_details[];

/* ---- the command line of gpuload share (share_request.c) ---------------------------- */

struct share_request {
	const char *name; /* borrowed */
	gpul_mem_kind kind;
	int node; /* NUMA node; GPUL_MEM_NODE_OF_GPU: not given */
	bool read_only, fabric, until_detached, json;
	int for_ms;                 /* how long to serve; -1: until a signal */
	struct devices_arg devices; /* owned: devices_arg_close() */
	size_t bytes;
	gpul_ipc_shape shape;
	gpul_type type;   /* GPUL_TYPE_NONE: bytes without a type */
	const char *fill; /* the FILL with which the memory is filled in place; NULL: use `data`, or zeros */
	const void *data; /* contents, in the memory of `file` or `made`; NULL: none */
	gpul_file file;   /* owned; all zeros: no file */
	void *made;       /* owned; generated contents */
};

/** Parse the command line and read the files that it names.
 *
 * @args  arguments of the command line; must outlive *out
 * @out   owned by the caller: share_request_free(); zeroed on failure
 * Errors  GPUL_EINVAL a wrong option; GPUL_ESYS, GPUL_EFORMAT a file; GPUL_ENOMEM */
gpul_status share_request_make(const struct cli_args *args, struct share_request *out, gpul_error *err);
void share_request_free_contents(struct share_request *q); /* call this when the memory has been filled */
void share_request_free(struct share_request *q);

/* ---- texts (share_text.c) ------------------------------------------------------------ */

enum {
	SHARE_SHAPE_BYTES = 112,
	SHARE_SIZE_BYTES = 24,
	SHARE_UUID_BYTES = 24,
	SHARE_COMMAND_BYTES = 32,
};

/* The following functions write a text to buf, and return buf. */
/* Write a size such as "64 MiB", "1.5 KiB" or "100 bytes". */
const char *share_size_text(size_t bytes, char buf[SHARE_SIZE_BYTES]);
/* Write a type and a shape such as "f32 1024x1024", or "bytes". */
const char *share_shape_text(const gpul_ipc_shape *shape, char buf[SHARE_SHAPE_BYTES]);
/* Write the beginning and the end of the UUID that nvidia-smi -L prints: "GPU-5f3a91c2..0007". */
const char *share_gpu_text(const char uuid[16], char buf[SHARE_UUID_BYTES]);
/* Write the name of a process' program, as ps prints it; "-" for a process that is not visible from this process. */
const char *share_command_text(pid_t pid, char buf[SHARE_COMMAND_BYTES]);

/* Return the element type of a shape; GPUL_TYPE_NONE: the shape has no type, or an unknown one. */
gpul_type share_type(const gpul_ipc_shape *shape);

/* Return the address of the data in a process that has mapped the memory at `base`; 0 if base is 0 (not mapped). */
uint64_t share_data_at(const gpul_ipc_share *share, uint64_t base);

/** Explain why NAME cannot be attached: there is no such name (a similar one is suggested), the owner has died, or another error.
 *
 * @name  as the user gave it
 * @why   error of gpul_ipc_client_open(), gpul_ipc_attach() or gpul_ipc_request(); its status is returned
 * Errors  as why */
gpul_status share_explain(const char *name, const gpul_error *why, gpul_error *err);

/* ---- JSON (share_json.c) ------------------------------------------------------------- */

/* Add the members "dtype" and "shape" to an object. */
void share_json_shape(struct json *j, const gpul_ipc_shape *shape);

/* Add everything that an owner reports about its share and its peers as members of an object. */
void share_json_share(struct json *j, const gpul_ipc_share *share);

/* ---- events (share_event.c) ---------------------------------------------------------- */

/** Flush stdout, so that a script that waits for a line gets it immediately.
 *
 * Errors  GPUL_ESYS stdout cannot be written
 * Threads one at a time */
gpul_status share_flush(gpul_error *err);

/** Print a JSON object and flush it.
 *
 * @j  a closed object; empty afterwards
 * Errors  as json_print() and share_flush()
 * Threads one at a time
 * Source  RFC 8259 */
gpul_status share_json_print(struct json *j, gpul_error *err);

/** Print one event as a line of text or JSON, and flush it.
 *
 * @name  name of the share
 * @e     the event
 * @n     number of attached peers after the event; -1: unknown
 * @json  true: JSON; false: text
 * Errors  GPUL_ESYS stdout cannot be written; GPUL_ENOMEM
 * Threads one at a time */
gpul_status share_print_event(const char *name, const gpul_ipc_event *e, int n, bool json, gpul_error *err);

/** Print the last line, "ENDED weights: SIGTERM", as text or JSON, and flush it.
 *
 * @name  name of the share
 * @why   short reason
 * @json  true: JSON; false: text
 * Errors  as share_print_event()
 * Threads one at a time */
gpul_status share_print_end(const char *name, const char *why, bool json, gpul_error *err);

#endif
