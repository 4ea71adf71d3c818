/* attach.h — the parts of gpuload attach.
 *
 *     attach.c       the command line, attaching (with --wait), --hold, detaching
 *     attach_show.c  the ATTACHED line, --dump, --save
 *     attach_sum.c   --sum, with cli/sum/cli_sum.h */
#ifndef GPULOAD_CLI_SHARE_ATTACH_H
#define GPULOAD_CLI_SHARE_ATTACH_H

#include "cli/share/share.h"

extern const struct cli_cmd cli_attach;

struct attach_request {
	const char *name, *save; /* borrowed; save is NULL if --save is not given */
	bool sum, dump, hold, force, read_only, json;
	size_t rows;    /* number of rows for --dump */
	gpul_type type; /* value of --type; NONE: use the type that the owner has given */
	int wait_ms, timeout_ms;
	struct devices_arg devices;
};

struct attach {
	struct attach_request ask;
	gpul_ipc_client *client;
	const gpul_ipc_view *view;
	gpul_type type; /* element type from --type or from the owner; NONE: the elements are bytes */
	bool shaped;    /* true: type and shape are those that the owner has given */
	size_t count;   /* number of elements: from the owner's shape, or as many as fit into the memory */
	pid_t owner;    /* pid of the owner; 0: the owner is in another pid namespace */
};

/** Print kind, size, shape and addresses of the attached memory.
 *
 * @a     after attaching
 * @json  an open object that gets the members; NULL: print text to stdout
 * Threads one at a time */
void attach_describe(const struct attach *a, struct json *json);

/** Print ask.rows rows: a row consists of the last dimension if there are several; otherwise of 10 elements, or of 16 bytes in hex if the
 * type is unknown.
 *
 * @a     after attaching
 * @json  an open object that gets the member "rows"; NULL: text on stdout
 * Errors  GPUL_ECUDA device memory could not be copied; GPUL_ENOMEM
 * Threads one at a time */
gpul_status attach_dump(const struct attach *a, struct json *json, gpul_error *err);

/** Add up the elements on the first GPU and on the CPU, and print both sums.
 *
 * @a     after attaching
 * @json  an open object that gets the member "sum"; NULL: text on stdout
 * Errors  GPUL_EINVAL the element type is unknown; GPUL_EFORMAT the two sums differ: another process wrote meanwhile, or a processor is
 *         faulty; GPUL_ESYS native = ETIMEDOUT the GPU takes longer than ask.timeout_ms; GPUL_ECUDA; GPUL_ENOMEM
 * Threads one at a time */
gpul_status attach_sum(const struct attach *a, struct json *json, gpul_error *err);

/** Write the data to ask.save: with type and shape if the name ends in .npy, otherwise raw.
 *
 * @a  after attaching
 * Errors  GPUL_EINVAL a .npy file needs a type; GPUL_ESYS the file cannot be written, or
 *         exists and --force is not given; GPUL_ECUDA; GPUL_ENOMEM
 * Threads one at a time */
gpul_status attach_save(const struct attach *a, gpul_error *err);

#endif
