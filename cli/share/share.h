/* share.h — the way of gpuload share, and what share, attach, shares and map say alike.
 *
 *     argv ─ share_request.c ─> struct share_request   what is asked: size, type, a file's contents
 *              │  share.c: open the driver, make the memory, fill it, offer it, tell what happens
 *              └─ share_text.c, share_json.c: sizes, shapes, GPUs, processes, events in words */
#ifndef GPULOAD_CLI_SHARE_SHARE_H
#define GPULOAD_CLI_SHARE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/command.h"
#include "cli/lib/devices_arg.h"
#include "cli/lib/json.h"
#include "cli/lib/out.h"
#include "core/file.h"
#include "ipc/client.h"

extern const struct cli_cmd cli_share, cli_shares;
extern const struct cli_opt share_opts[];  /* and the help text, both in share_request.c */
extern const char share_details[];

/* ---- what gpuload share is asked for ----------------------------------------------- */

struct share_request {
	const char *name;            /* borrowed */
	gpul_mem_kind kind;
	int node;                    /* GPUL_MEM_NODE_OF_GPU: not given */
	bool read_only, fabric, until_detached, json;
	int for_ms;                  /* -1: until a signal */
	struct devices_arg devices;  /* owned: devices_arg_close() */
	size_t bytes;
	gpul_ipc_shape shape;
	gpul_type type;              /* NONE: plain bytes */
	const char *fill;            /* how to make contents in place; NULL: data, or zeros */
	const void *data;            /* contents, out of file or made; NULL: there are none */
	gpul_file file;              /* owned; zeroed: there is none */
	void *made;                  /* owned */
};

/** Read the command line and the files that it names.
 *
 * @args  of the command line; must outlive *out
 * @out   owned by the caller: share_request_free(); zeroed on failure
 * Errors  GPUL_EINVAL what cannot be; GPUL_ESYS, GPUL_EFORMAT files; GPUL_ENOMEM
 * Threads any thread may call
 * Source  - */
gpul_status share_request_make(const struct cli_args *args, struct share_request *out,
			       gpul_error *err);
void share_request_free_contents(struct share_request *q);  /* once they are where they shall be */
void share_request_free(struct share_request *q);

/* ---- in words ---------------------------------------------------------------------- */

enum {
	SHARE_SHAPE_BYTES = 112,
	SHARE_SIZE_BYTES = 24,
	SHARE_UUID_BYTES = 24,
	SHARE_COMMAND_BYTES = 32,
};

/* "64 MiB", "1.5 KiB", "100 bytes". */
const char *share_say_size(size_t bytes, char buf[SHARE_SIZE_BYTES]);
/* "f32 1024x1024"; "bytes" where nothing is said of them. */
const char *share_say_shape(const gpul_ipc_shape *shape, char buf[SHARE_SHAPE_BYTES]);
/* "GPU-5f3a91c2..0007": both ends of what nvidia-smi -L shows, enough to tell a machine's GPUs
 * apart. */
const char *share_say_gpu(const char uuid[16], char buf[SHARE_UUID_BYTES]);
/* The name of a process' program, as ps shows it; "-" for one that cannot be seen from here. */
const char *share_say_command(pid_t pid, char buf[SHARE_COMMAND_BYTES]);

/* The type that a shape states; GPUL_TYPE_NONE: none, or one that is not known here. */
gpul_type share_type(const gpul_ipc_shape *shape);

/* Where the data begins in a process that mapped the whole at base; 0: base is 0, it does not
 * see it. */
uint64_t share_data_at(const gpul_ipc_share *share, uint64_t base);

/* Members of an object in JSON: "dtype" and "shape". */
void share_json_shape(struct json *j, const gpul_ipc_shape *shape);

/* All that an owner says of what it shares, and of its peers: members of an object. */
void share_json_share(struct json *j, const gpul_ipc_share *share);

/** Let what was printed be seen: whoever reads, a person or a script that waits for it, reads
 * it now.
 *
 * Errors  GPUL_ESYS stdout takes no more
 * Threads one at a time
 * Source  - */
gpul_status share_flush(gpul_error *err);

/** json_print(), and let it be seen.
 *
 * @j  a closed object; empty afterwards
 * Errors  as json_print()
 * Threads one at a time
 * Source  RFC 8259 */
gpul_status share_json_print(struct json *j, gpul_error *err);

/** Write one event as a line of text or of JSON, and let it be seen at once.
 *
 * @name  of what is shared
 * @e     what happened
 * @n     attached peers afterwards; -1: not known here
 * @json  in which way
 * Errors  GPUL_ESYS stdout takes no more; GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status share_tell_event(const char *name, const gpul_ipc_event *e, int n, bool json,
			     gpul_error *err);

/** That line in JSON.
 *
 * @name  of what is shared
 * @e     what happened
 * @n     attached peers afterwards; -1: not known here
 * Errors  as above
 * Threads one at a time
 * Source  RFC 8259 */
gpul_status share_json_event(const char *name, const gpul_ipc_event *e, int n, gpul_error *err);

/** The same for the end: "ENDED weights: SIGTERM".
 *
 * @name  of what is shared
 * @why   in a few words
 * @json  in which way
 * Errors  as above
 * Threads one at a time
 * Source  - */
gpul_status share_tell_end(const char *name, const char *why, bool json, gpul_error *err);

/** Explain why NAME could not be reached: no such name (a near one is offered), a dead owner,
 * or what there was.
 *
 * @name  as the user gave it
 * @why   of gpul_ipc_client_open(), gpul_ipc_attach(), gpul_ipc_ask(); its status is returned
 * Errors  those of why
 * Threads any thread may call
 * Source  - */
gpul_status share_explain(const char *name, const gpul_error *why, gpul_error *err);

#endif
