/* netqueue_request.c — defines the command gpuload comm netqueue, and parses its command line. */
#include <stdlib.h>
#include <string.h>

#include "cli/comm/netqueue/cli_netqueue.h"
#include "cli/lib/value.h"

enum { DEFAULT_BYTES = 16 << 20, DEFAULT_COUNT = 5, MOST_COUNT = 1000000 };
#define MOST_BYTES ((size_t)1 << 36)

/* clang-format off */
enum {
	OPT_BYTES, OPT_PIECES, OPT_ALIGN, OPT_SOURCE, OPT_COUNT, OPT_CHECK, OPT_CORRUPT, OPT_SLOTS, OPT_SLOT, OPT_BLOCKS, OPT_TIMEOUT,
	OPT_DEVICE, OPT_JSON, OPT_DRIVER,
};
/* clang-format on */

/* clang-format off */
const struct cli_opt netqueue_opts[] = {
	[OPT_BYTES] = { "bytes", "N", "size of the destination; K, M and G are powers of 1024 (default: 16M)", NULL },
	[OPT_PIECES] = { "pieces", "MIN:MAX", "bytes of a record (default: 1:65536)", NULL },
	[OPT_ALIGN] = { "align", "HOW", "where records begin in the stream and in the destination: random (default); 16: at multiples "
					"of 16 bytes; 1: an odd number of bytes apart", "random 16 1" },
	[OPT_SOURCE] = { "source", "WHERE", "who sends the stream: tcp: another process (default); memory: this process", "tcp memory" },
	[OPT_COUNT] = { "count", "N", "number of receives (default: 5)", NULL },
	[OPT_CHECK] = { "check", NULL, "compare the destination, and the bytes before and after it, after each receive", NULL },
	[OPT_CORRUPT] = { "corrupt", "P", "corrupt one field of each ring entry with probability P, such as 0.01", NULL },
	[OPT_SLOTS] = { "slots", "N", "slots of the bounce memory, a power of two (default: 64)", NULL },
	[OPT_SLOT] = { "slot", "BYTES", "size of a slot, a power of two from 256 to 512K (default: 64K)", NULL },
	[OPT_BLOCKS] = { "blocks", "N", "blocks of the kernel (default: 16; 2 on the software driver)", NULL },
	[OPT_TIMEOUT] = { "timeout", "SECONDS", "seconds to wait for the sender or the kernel (default: 10)", NULL },
	[OPT_DEVICE] = { "device", "N", "number of the GPU, counted from 0 (default: 0)", NULL },
	[OPT_JSON] = CLI_JSON_OPT,
	[OPT_DRIVER] = CLI_DRIVER_OPT,
	{ 0 },
};
/* clang-format on */

static gpul_status parse_number(const struct cli_args *args, int opt, size_t least, size_t most, size_t otherwise, size_t *out,
				gpul_error *err)
{
	const char *text = cli_value(args, opt);
	gpul_status st = GPUL_OK;

	*out = otherwise;
	if (text)
		st = value_parse_size(text, strlen(text), out, err);
	if (!st && text && (*out < least || *out > most))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--%s must be a number from %zu to %zu, not '%s'", netqueue_opts[opt].name, least, most,
			       text);
	return st;
}

static gpul_status parse_pieces(const char *text, struct netqueue_request *q, gpul_error *err)
{
	const char *colon = text ? strchr(text, ':') : NULL;
	size_t least = 1, most = 65536;
	gpul_status st = GPUL_OK;

	if (text)
		st = value_parse_size(text, colon ? (size_t)(colon - text) : strlen(text), &least, err);
	if (text)
		most = least;
	if (!st && colon)
		st = value_parse_size(colon + 1, strlen(colon + 1), &most, err);
	if (!st && (least < 1 || most < least || most > (size_t)1 << 30))
		st = gpul_fail(err, GPUL_EINVAL, 0, "--pieces must be MIN:MAX with 1 <= MIN <= MAX <= 1G, not '%s'", text);
	q->least_piece = least;
	q->most_piece = most;
	return st;
}

/* Find the index of an option's value in a list of words. */
static gpul_status parse_word(const struct cli_args *args, int opt, const char *const *words, int n_words, int *out, gpul_error *err)
{
	const char *text = cli_value(args, opt);

	*out = 0;
	if (!text)
		return GPUL_OK;
	for (int i = 0; i < n_words; i++)
		if (!strcmp(text, words[i])) {
			*out = i;
			return GPUL_OK;
		}
	return gpul_fail(err, GPUL_EINVAL, 0, "--%s must be one of %s, not '%s'", netqueue_opts[opt].name, netqueue_opts[opt].complete,
			 text);
}

static gpul_status parse_corrupt(const char *text, double *out, gpul_error *err)
{
	char *end = NULL;

	*out = text ? strtod(text, &end) : 0;
	if (text && (end == text || *end || !(*out >= 0 && *out <= 1)))
		return gpul_fail(err, GPUL_EINVAL, 0, "--corrupt must be a probability from 0 to 1, not '%s'", text);
	return GPUL_OK;
}

gpul_status netqueue_request_parse(const struct cli_args *args, struct netqueue_request *q, gpul_error *err)
{
	static const char *const sources[] = { "tcp", "memory" };
	const char *timeout = cli_value(args, OPT_TIMEOUT);
	size_t bytes, count, slots, slot_bytes, blocks;
	int align, source;
	gpul_status st;

	*q = (struct netqueue_request){ .check = cli_value(args, OPT_CHECK), .json = cli_value(args, OPT_JSON) };
	if (args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "unexpected argument '%s'; see gpuload help comm netqueue", args->operands[0]);
	st = parse_number(args, OPT_BYTES, 1, MOST_BYTES, DEFAULT_BYTES, &bytes, err);
	st = st ? st : parse_number(args, OPT_COUNT, 1, MOST_COUNT, DEFAULT_COUNT, &count, err);
	st = st ? st : parse_number(args, OPT_SLOTS, 2, 1 << 20, 0, &slots, err);
	st = st ? st : parse_number(args, OPT_SLOT, GPUL_NETQUEUE_MIN_SLOT_BYTES, GPUL_NETQUEUE_MAX_SLOT_BYTES, 0, &slot_bytes, err);
	st = st ? st : parse_number(args, OPT_BLOCKS, 1, GPUL_NETQUEUE_MAX_BLOCKS, 0, &blocks, err);
	st = st ? st : parse_pieces(cli_value(args, OPT_PIECES), q, err);
	st = st ? st : parse_word(args, OPT_ALIGN, netqueue_align_names, NETQUEUE_N_ALIGNS, &align, err);
	st = st ? st : parse_word(args, OPT_SOURCE, sources, 2, &source, err);
	st = st ? st : parse_corrupt(cli_value(args, OPT_CORRUPT), &q->corrupt, err);
	if (!st && timeout)
		st = value_parse_seconds("timeout", timeout, &q->desc.timeout_ms, err);
	if (st)
		return st;
	q->bytes = bytes;
	q->count = (unsigned)count;
	q->align = (enum netqueue_align)align;
	q->tcp = source == 0;
	q->desc.shape = (gpul_netqueue_shape){ .n_slots = (uint32_t)slots,
					       .slot_bytes = (uint32_t)slot_bytes,
					       .n_blocks = (uint32_t)blocks };
	st = devices_arg_parse(cli_value(args, OPT_DRIVER), cli_value(args, OPT_DEVICE), &q->devices, err);
	q->desc.device = q->devices.ordinal[0];
	return st;
}

static int cmd_netqueue(const struct cli_args *args, gpul_error *err)
{
	struct netqueue_request q;
	struct netqueue_result result;
	gpul_status st = netqueue_request_parse(args, &q, err);

	if (st)
		return CLI_USAGE;
	st = netqueue_run(&q, &result, err);
	if (st)
		return st == GPUL_EINVAL ? CLI_USAGE : CLI_FAILED;
	st = netqueue_print(&result, err);
	if (!st && !result.ok)
		st = gpul_fail(err, GPUL_EFORMAT, 0,
			       "the received data is wrong, or the rejected entries are not those that --corrupt changed");
	netqueue_result_free(&result);
	return st ? CLI_FAILED : CLI_DONE;
}

/* clang-format off */
const struct cli_cmd cli_comm_netqueue = {
	"comm netqueue", "", "receive a stream that a kernel unpacks, checked and timed",
	"A process sends records of random length over TCP. The packets land in bounce memory that the GPU\n"
	"maps. A thread writes the positions and the destinations of the pieces into a ring; a kernel copies\n"
	"them to their places in device memory, with 16-byte loads and stores whatever their alignment,\n"
	"and returns the memory (docs/netqueue.md).\n"
	"\n"
	"The kernel checks each entry of the ring. --corrupt replaces a member of some of them: they are\n"
	"refused and listed, and nothing of them is written; with --check that is compared, too.\n",
	netqueue_opts, cmd_netqueue, NULL, NULL,
};
/* clang-format on */
