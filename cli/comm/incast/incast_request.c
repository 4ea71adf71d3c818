/* incast_request.c — parses the command line of gpuload comm incast. */
#include <stdlib.h>
#include <string.h>

#include "cli/comm/comm_bench.h"
#include "cli/comm/incast/incast.h"
#include "cli/lib/options/devices_arg.h"
#include "cli/lib/value.h"

/* clang-format off */
enum {
	OPT_N, OPT_BYTES, OPT_MESSAGES, OPT_MODE, OPT_RATE, OPT_QUEUE, OPT_CONGESTION, OPT_WINDOW, OPT_SENDER_WINDOW, OPT_GRANT, OPT_BACKEND, OPT_PROVIDER, OPT_JSON,
	OPT_PLOT, OPT_FORCE,
};
/* clang-format on */

enum { LEAST_BYTES = 64, MOST_BYTES = 64 << 20, MOST_WINDOW = 256 << 20, LEAST_GRANT = 1024, MOST_GRANT = 1 << 20 };

const char *const incast_mode_names[INCAST_N_MODES] = { "sender", "receiver" };

/* clang-format off */
const struct cli_opt incast_opts[] = {
	[OPT_N] = { "n", "N", "start N ranks on this machine, 2 to 32: rank 0 receives, the others send", NULL },
	[OPT_BYTES] = { "bytes", "BYTES", "size of a message; K and M are powers of 1024 (default: 256K)", NULL },
	[OPT_MESSAGES] = { "messages", "N", "messages of each sender (default: 64)", NULL },
	[OPT_MODE] = { "mode", "MODE", "who decides when to send: sender, receiver or both (default)", "sender receiver both" },
	[OPT_RATE] = { "rate", "RATE", "run the ranks in private network namespaces, over a link of RATE bit/s, such as 1G", NULL },
	[OPT_QUEUE] = { "queue", "BYTES", "with --rate: capacity of the queue in front of the link (default: 512K)", NULL },
	[OPT_CONGESTION] = { "congestion", "NAME", "with --rate: TCP's congestion control, such as bbr (default: reno)", NULL },
	[OPT_WINDOW] = { "window", "BYTES", "receiver-driven: limit of the granted bytes in flight, for all senders together\n"
		"(default: rate times round trip, measured, and two grants)", NULL },
	[OPT_SENDER_WINDOW] = { "sender-window", "BYTES", "limit of the unacknowledged bytes of each sender (default: 1M)", NULL },
	[OPT_GRANT] = { "grant", "BYTES", "maximum size of one grant, 1K to 1M (default: 16K; without --rate 128K)", NULL },
	[OPT_BACKEND] = { "backend", "NAME", "send path: auto (default), verbs or libfabric", "auto verbs libfabric" },
	[OPT_PROVIDER] = { "provider", "NAME", "libfabric provider (default: tcp)", NULL },
	[OPT_JSON] = CLI_JSON_OPT,
	[OPT_PLOT] = { "plot", "FILE", "also plot the depth of the queue over time, as SVG", CLI_FILES },
	[OPT_FORCE] = { "force", NULL, "replace the file of --plot if it exists", NULL },
	{ 0 },
};
/* clang-format on */

/* Parse a size in bytes; *out keeps its value if the option is not given. */
static gpul_status parse_size(const struct cli_args *args, int opt, size_t least, size_t most, size_t *out, gpul_error *err)
{
	const char *text = cli_value(args, opt);
	size_t n;

	if (!text)
		return GPUL_OK;
	if (value_parse_size(text, strlen(text), &n, NULL) || n < least || n > most)
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s must be a size from %zu to %zu bytes, such as 64K, not '%s'",
				 incast_opts[opt].name, least, most, text);
	*out = n;
	return GPUL_OK;
}

/* Parse a rate in bits per second; K, M and G are powers of 1000, as is usual for links. */
static gpul_status parse_rate(const char *text, uint64_t *out, gpul_error *err)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end = NULL;
	double n;

	if (!text)
		return GPUL_OK;
	n = *text >= '0' && *text <= '9' ? strtod(text, &end) : 0;
	unit = end && *end ? strchr(units, *end) : NULL;
	for (long i = 0; unit && i <= unit - units; i++)
		n *= 1000;
	if (!(n >= 1e6 && n <= 1e11) || (*end && !unit) || (unit && end[1]))
		return gpul_fail(err, GPUL_EINVAL, 0, "--rate must be a rate from 1M to 100G bit/s, such as 1G or 2.5G, not '%s'", text);
	*out = (uint64_t)n;
	return GPUL_OK;
}

static gpul_status parse_mode(const char *text, bool modes[INCAST_N_MODES], gpul_error *err)
{
	const bool both = !text || !strcmp(text, "both");
	bool any = false;

	for (int m = 0; m < INCAST_N_MODES; m++) {
		modes[m] = both || !strcmp(text, incast_mode_names[m]);
		any |= modes[m];
	}
	return any ? GPUL_OK : gpul_fail(err, GPUL_EINVAL, 0, "--mode must be sender, receiver or both, not '%s'", text);
}

static gpul_status parse_backend(const char *backend, const char *provider, struct incast_request *out, gpul_error *err)
{
	const gpul_status st = devices_arg_backend(backend, provider, &out->backend, err);

	out->provider = provider;
	if (st)
		return st;
	if (out->rate_bits && out->backend && !strcmp(out->backend, "verbs"))
		return gpul_fail(err, GPUL_EINVAL, 0, "--rate needs --backend libfabric: NICs are not in the private network");
	if (out->rate_bits) /* verbs is not possible, because the private network does not contain the NICs of this machine */
		out->backend = "libfabric";
	return GPUL_OK;
}

gpul_status incast_request_parse(const struct cli_args *args, struct incast_request *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*out = (struct incast_request){ .bytes = 256 << 10,
					.n_messages = 64,
					.queue_bytes = 512 << 10,
					.sender_window_bytes = 1 << 20,
					.congestion = cli_value(args, OPT_CONGESTION),
					.json = cli_value(args, OPT_JSON),
					.plot = cli_value(args, OPT_PLOT),
					.force = cli_value(args, OPT_FORCE) };
	if (args->n_operands)
		st = gpul_fail(err, GPUL_EINVAL, 0, "unexpected operand '%s'; see gpuload help comm incast", args->operands[0]);
	st = st ? st : comm_parse_int("-n", cli_value(args, OPT_N), 2, GPUL_COMM_MAX_RANKS, &out->n_ranks, err);
	st = st ? st : comm_parse_int("--messages", cli_value(args, OPT_MESSAGES), 1, INCAST_MOST_MESSAGES, &out->n_messages, err);
	st = st ? st : parse_size(args, OPT_BYTES, LEAST_BYTES, MOST_BYTES, &out->bytes, err);
	st = st ? st : parse_size(args, OPT_QUEUE, 32 << 10, 1 << 30, &out->queue_bytes, err);
	st = st ? st : parse_size(args, OPT_WINDOW, 1, MOST_WINDOW, &out->window_bytes, err);
	st = st ? st : parse_size(args, OPT_SENDER_WINDOW, 1, MOST_WINDOW, &out->sender_window_bytes, err);
	st = st ? st : parse_size(args, OPT_GRANT, LEAST_GRANT, MOST_GRANT, &out->grant_bytes, err);
	st = st ? st : parse_mode(cli_value(args, OPT_MODE), out->modes, err);
	st = st ? st : parse_rate(cli_value(args, OPT_RATE), &out->rate_bits, err);
	if (!st && out->congestion && !out->rate_bits)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--congestion %s needs --rate: it is set in the private network only", out->congestion);
	if (!st && !out->congestion && out->rate_bits)
		out->congestion = "reno"; /* a fixed default, because every system has it, and any namespace may use it */
	if (!st && !out->grant_bytes)
		out->grant_bytes = out->rate_bits ? 16 << 10 : 128 << 10;
	if (!st && out->grant_bytes > out->bytes)
		out->grant_bytes = out->bytes;
	return st ? st : parse_backend(cli_value(args, OPT_BACKEND), cli_value(args, OPT_PROVIDER), out, err);
}
