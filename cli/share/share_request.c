/* share_request.c — parses the command line of gpuload share. */
#include "cli/share/share.h"

#include <stdlib.h>
#include <string.h>

#include "cli/lib/fill.h"
#include "cli/lib/npy.h"
#include "cli/lib/value.h"

/* clang-format off */
enum {
	SHARE_BYTES, SHARE_KIND, SHARE_FILL, SHARE_SHAPE, SHARE_FROM, SHARE_NODE, SHARE_DEVICES,
	SHARE_READ_ONLY, SHARE_FABRIC, SHARE_UNTIL_DETACHED, SHARE_FOR, SHARE_JSON, SHARE_DRIVER,
};
/* clang-format on */

/* clang-format off */
const struct cli_opt share_opts[] = {
	[SHARE_BYTES] = { "bytes", "N", "size; K, M or G may follow", NULL },
	[SHARE_KIND] = { "kind", "KIND",
		"kind of memory (default: auto)", "auto host-numa device memfd shm device-ipc" },
	[SHARE_FILL] = { "fill", "TYPE=FILL",
		"contents, such as f32=rand or u8=@FILE; see gpuload help run", NULL },
	[SHARE_SHAPE] = { "shape", "N[,N...]", "dimensions, sent to processes that attach", NULL },
	[SHARE_FROM] = { "from", "FILE",
		"contents: a .npy file with its type and shape, or the bytes of any file", CLI_FILES },
	[SHARE_NODE] = { "node", "N",
		"NUMA node of host memory (default: node of the first GPU)", NULL },
	[SHARE_DEVICES] = DEVICES_LIST_OPT,
	[SHARE_READ_ONLY] = { "read-only", NULL, "other processes can only read", NULL },
	[SHARE_FABRIC] = { "fabric", NULL, "share device memory by fabric handle, if supported", NULL },
	[SHARE_UNTIL_DETACHED] = { "until-detached", NULL,
		"end when the last process has detached", NULL },
	[SHARE_FOR] = { "for", "SECONDS", "end after this many seconds, for example 0.5", NULL },
	[SHARE_JSON] = { "json", NULL, "print each event as one line of JSON", NULL },
	[SHARE_DRIVER] = CLI_DRIVER_OPT,
	{ 0 },
};
/* clang-format on */

const char share_details[] = "Creates memory that GPUs and CPUs can access, fills it, and offers it to other processes of\n"
			     "the same user, until Ctrl-C (SIGINT, SIGTERM, SIGHUP):\n"
			     "\n"
			     "    gpuload share weights --from weights.npy &\n"
			     "    gpuload attach weights --wait 5 --sum\n"
			     "\n"
			     "KIND is\n"
			     "\n"
			     "    auto        the first of host-numa, memfd and shm that works here\n"
			     "    host-numa   RAM of one NUMA node (cuMemCreate); one address for CPU and GPU\n"
			     "    memfd       RAM without a name, sealed against shrinking; registered with the GPU\n"
			     "    shm         RAM by shm_open; registered with the GPU\n"
			     "    device      memory of the first GPU (cuMemCreate); the CPU cannot access it\n"
			     "    device-ipc  memory of the first GPU by cuMemAlloc and cuIpc*, the older interface\n"
			     "\n"
			     "NAME is a socket, NAME.sock, in a folder that only this user can enter:\n"
			     "$GPULOAD_RUNTIME_DIR, else $XDG_RUNTIME_DIR/gpuload, else /tmp/gpuload-UID. A NAME that\n"
			     "contains / is a path. Only the socket has a name: after the end of this process, the\n"
			     "memory is freed as soon as the last attached process detaches or ends.\n"
			     "\n"
			     "The command prints READY, then one line per event: ATTACHED, DETACHED, PEER_DIED, REFUSED\n"
			     "with the reason, and ENDED. The first page, before the data, holds an abort word and step\n"
			     "counters for kernels: ipc/control.h.\n";

/* ---- size and contents ------------------------------------------------------------- */

/* Parse dimensions such as "1024,1024"; *count is their product. */
static gpul_status parse_shape(const char *text, gpul_ipc_shape *shape, size_t *count, gpul_error *err)
{
	*count = 1;
	for (const char *at = text;; at++) {
		size_t n = strcspn(at, ","), dim;

		if (value_parse_size(at, n, &dim, NULL) || dim == 0 || __builtin_mul_overflow(*count, dim, count))
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "--shape must be numbers above 0 separated by commas, such as "
					 "1024,1024; not '%s'",
					 text);
		if (shape->n_dims == GPUL_IPC_MAX_DIMS)
			return gpul_fail(err, GPUL_EINVAL, 0, "--shape has more than %d numbers", GPUL_IPC_MAX_DIMS);
		shape->dim[shape->n_dims++] = dim;
		at += n;
		if (!*at)
			return GPUL_OK;
	}
}

/* Set the size from the contents; it must agree with --bytes, if given. */
static gpul_status set_bytes(struct share_request *q, size_t bytes, const char *what, gpul_error *err)
{
	if (q->bytes && q->bytes != bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s: %zu bytes, but --bytes is %zu", what, bytes, q->bytes);
	q->bytes = bytes;
	return GPUL_OK;
}

/* Set the number of elements from --shape or --bytes; 0: the file determines the number. */
static gpul_status set_count(struct share_request *q, const char *shape, size_t *count, gpul_error *err)
{
	size_t width = gpul_type_bytes(q->type), bytes;
	gpul_status st;

	*count = q->bytes / width;
	if (!shape && q->bytes % width)
		return gpul_fail(err, GPUL_EINVAL, 0, "--bytes %zu is not a multiple of %zu bytes (%s)", q->bytes, width,
				 gpul_type_name(q->type));
	if (!shape)
		return GPUL_OK;
	st = parse_shape(shape, &q->shape, count, err);
	if (st)
		return st;
	if (__builtin_mul_overflow(*count, width, &bytes))
		return gpul_fail(err, GPUL_EINVAL, 0, "--shape %s of %s exceeds the address space", shape, gpul_type_name(q->type));
	return set_bytes(q, bytes, "--shape", err);
}

/* Parse --fill TYPE=FILL: set type, size and contents. */
static gpul_status read_fill(struct share_request *q, const char *text, const char *shape, gpul_error *err)
{
	size_t n = strcspn(text, "="), count;
	gpul_status st;

	q->type = value_type(text, n);
	if (!q->type || !text[n])
		return gpul_fail(err, GPUL_EINVAL, 0, "--fill must be TYPE=FILL, such as f32=rand or u8=@FILE, not '%s'", text);
	q->fill = text + n + 1;
	st = set_count(q, shape, &count, err);
	if (st)
		return st;
	if (count == 0 && q->fill[0] != '@')
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of %s elements is missing: give --bytes or --shape",
				 gpul_type_name(q->type));
	if (q->fill[0] == '@') {
		st = fill_make(q->type, q->fill, NULL, &count, &q->made, err);
		q->data = q->made;
		q->fill = NULL;
	} else { /* fill one element first, so that a bad FILL fails before the large allocation */
		unsigned char one[8] = { 0 };

		st = fill_in_place(q->type, q->fill, 1, one, err);
	}
	if (st)
		return st;
	if (q->shape.n_dims == 0)
		q->shape.dim[q->shape.n_dims++] = count;
	return set_bytes(q, count * gpul_type_bytes(q->type), "the contents", err);
}

/* Read --from: a .npy file sets type and shape, any other file is bytes. */
static gpul_status read_file(struct share_request *q, const char *path, gpul_error *err)
{
	struct npy_about about;
	struct npy elements;
	gpul_status st = gpul_file_open(path, &q->file, err);

	q->data = q->file.bytes;
	if (st || !npy_recognise(q->file.bytes, q->file.n_bytes))
		return st ? st : set_bytes(q, q->file.n_bytes, path, err);
	st = npy_describe(q->file.bytes, q->file.n_bytes, path, &about, err);
	if (st == GPUL_OK)
		st = npy_parse(q->file.bytes, q->file.n_bytes, path, about.type, &elements, err);
	if (st)
		return st;
	if (elements.count == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: has no elements", path);
	q->data = elements.data;
	q->type = about.type;
	q->shape.n_dims = about.n_dims ? about.n_dims : 1;
	memcpy(q->shape.dim, about.n_dims ? about.dim : (uint64_t[NPY_MAX_DIMS]){ 1 }, sizeof about.dim);
	return set_bytes(q, elements.count * gpul_type_bytes(about.type), path, err);
}
_Static_assert((int)NPY_MAX_DIMS == (int)GPUL_IPC_MAX_DIMS, "copied as a whole");

static gpul_status read_contents(const struct cli_args *args, struct share_request *q, gpul_error *err)
{
	const char *bytes = cli_value(args, SHARE_BYTES), *fill = cli_value(args, SHARE_FILL), *from = cli_value(args, SHARE_FROM),
		   *shape = cli_value(args, SHARE_SHAPE);
	gpul_status st = bytes ? value_parse_size(bytes, strlen(bytes), &q->bytes, err) : GPUL_OK;

	if (st)
		return st;
	if (bytes && q->bytes == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--bytes must be more than 0");
	if (fill && from)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--fill and --from cannot be combined; --fill TYPE=@FILE reads a file as elements of "
				 "a type");
	if (shape && !fill)
		return gpul_fail(err, GPUL_EINVAL, 0, "--shape needs a type: --fill f32=zeros --shape %s", shape);
	if (!bytes && !fill && !from)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "the size is missing: give --bytes 64M, --from FILE, or --fill "
				 "TYPE=FILL with --shape");
	if (fill)
		st = read_fill(q, fill, shape, err);
	else if (from)
		st = read_file(q, from, err);
	strcpy(q->shape.dtype, npy_dtype(q->type));
	return st;
}

/* ---- kind of memory, NUMA node, other options ----------------------------------------- */

static gpul_status read_kind(const struct cli_args *args, struct share_request *q, gpul_error *err)
{
	const char *kind = cli_value(args, SHARE_KIND);

	if (kind && !gpul_mem_kind_parse(kind, &q->kind))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--kind must be auto, host-numa, device, memfd, shm or device-ipc, "
				 "not '%s'",
				 kind);
	if (q->kind == GPUL_MEM_PINNED)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "pinned memory (cuMemHostAlloc) cannot be shared, because it has no handle that "
				 "another process could map; use host-numa, memfd or shm");
	q->fabric = cli_value(args, SHARE_FABRIC) != NULL;
	if (q->fabric && q->kind != GPUL_MEM_DEVICE)
		return gpul_fail(err, GPUL_EINVAL, 0, "--fabric needs --kind device");
	return GPUL_OK;
}

static gpul_status read_node(const struct cli_args *args, struct share_request *q, gpul_error *err)
{
	const char *text = cli_value(args, SHARE_NODE);
	uint32_t node = 0;

	q->node = GPUL_MEM_NODE_OF_GPU;
	if (!text)
		return GPUL_OK;
	if (value_parse(GPUL_U32, text, &node, NULL) || node > 4095)
		return gpul_fail(err, GPUL_EINVAL, 0, "--node must be the number of a NUMA node, not '%s'", text);
	q->node = (int)node;
	return GPUL_OK;
}

static gpul_status read_all(const struct cli_args *args, struct share_request *q, gpul_error *err)
{
	const char *seconds = cli_value(args, SHARE_FOR);
	gpul_status st;

	if (args->n_operands != 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "expected one NAME; see gpuload help share");
	q->name = args->operands[0];
	q->read_only = cli_value(args, SHARE_READ_ONLY) != NULL;
	q->until_detached = cli_value(args, SHARE_UNTIL_DETACHED) != NULL;
	q->json = cli_value(args, SHARE_JSON) != NULL;
	q->for_ms = -1;
	st = seconds ? value_parse_seconds("for", seconds, &q->for_ms, err) : GPUL_OK;
	if (st == GPUL_OK)
		st = read_kind(args, q, err);
	if (st == GPUL_OK)
		st = read_node(args, q, err);
	if (st == GPUL_OK)
		st = devices_arg_parse(cli_value(args, SHARE_DRIVER), cli_value(args, SHARE_DEVICES), &q->devices, err);
	if (st == GPUL_OK)
		st = read_contents(args, q, err);
	return st;
}

gpul_status share_request_make(const struct cli_args *args, struct share_request *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct share_request){ 0 };
	st = read_all(args, out, err);
	if (st)
		share_request_free(out);
	return st;
}

void share_request_free_contents(struct share_request *q)
{
	gpul_file_close(&q->file);
	free(q->made);
	q->data = q->made = NULL;
}

void share_request_free(struct share_request *q)
{
	share_request_free_contents(q);
	*q = (struct share_request){ 0 };
}
