/* attach.h — the way of gpuload attach.
 *
 *     attach.c       the command line; attach, waiting for the name; --hold; detach
 *     attach_show.c  the bytes: --dump, --save, and the line that says what it is
 *     attach_sum.c   --sum, by sum.h */
#ifndef GPULOAD_CLI_SHARE_ATTACH_H
#define GPULOAD_CLI_SHARE_ATTACH_H

#include "cli/share/share.h"

extern const struct cli_cmd cli_attach;

struct attach_request {
	const char *name, *save;     /* borrowed; save NULL: not asked for */
	bool sum, dump, hold, force, read_only, json;
	size_t rows;                 /* of --dump */
	gpul_type type;              /* --type; NONE: as the owner says */
	int wait_ms, timeout_ms;
	struct devices_arg devices;
};

struct attach {
	struct attach_request ask;
	gpul_ipc_client *client;
	const gpul_ipc_view *view;
	gpul_type type;              /* the elements': asked for, or the owner's; NONE: bytes */
	bool shaped;                 /* type and shape are the owner's */
	size_t count;                /* elements: of the owner's shape, or all there is room for */
	pid_t owner;                 /* 0: of another pid namespace */
};

/** Say what is attached: kind, size, shape, where.
 *
 * @a     attached
 * @json  an open object that gets the members; NULL: text on stdout
 * Threads one at a time */
void attach_describe(const struct attach *a, struct json *json);

/** Print ask.rows rows of elements: rows of the last dimension where there are several, else of
 * 10 elements; hex where nothing is said of the bytes.
 *
 * @a     attached
 * @json  an open object that gets the member "rows"; NULL: text on stdout
 * Errors  GPUL_ECUDA device memory could not be copied; GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status attach_dump(const struct attach *a, struct json *json, gpul_error *err);

/** Add up the elements on the first GPU and on the CPU, and print both.
 *
 * @a     attached
 * @json  an open object that gets the member "sum"; NULL: text on stdout
 * Errors  GPUL_EINVAL nothing is known of the elements' type; GPUL_EFORMAT the two sums differ:
 *         somebody wrote meanwhile, or a processor errs; GPUL_ESYS native = ETIMEDOUT the GPU
 *         takes longer than ask.timeout_ms; GPUL_ECUDA; GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status attach_sum(const struct attach *a, struct json *json, gpul_error *err);

/** Write the bytes to ask.save: a .npy file with type and shape, or raw to other names.
 *
 * @a  attached
 * Errors  GPUL_EINVAL a .npy file of bytes without a type; GPUL_ESYS it cannot be written, or
 *         is there and --force was not given; GPUL_ECUDA; GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status attach_save(const struct attach *a, gpul_error *err);

#endif
