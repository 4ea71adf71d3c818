/* simulate_request.c — the options of gpuload rdma simulate. */
#include "cli/rdma/simulate/simulate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/value.h"

#define SPREADS  "round-robin two-choices pinned" /* in the order of gpul_rel_spread */
#define CONTROLS "swift timely fixed"             /* of gpul_rel_control_kind */

/* clang-format off */
const struct cli_opt sim_opts[] = {
	[SIM_LEAVES] = { "leaves", "N", "leaf switches", NULL },
	[SIM_HOSTS] = { "hosts", "N", "hosts of each leaf", NULL },
	[SIM_SPINES] = { "spines", "N", "spine switches", NULL },
	[SIM_GBPS] = { "gbps", "N", "rate of a link, Gbit/s", NULL },
	[SIM_LATENCY] = { "latency-ns", "NS", "latency of a link", NULL },
	[SIM_QUEUE] = { "queue", "BYTES", "capacity of an output queue; K and M are powers of 1024", NULL },
	[SIM_FLOWS] = { "flows", "N", "flows to one host: the senders of incast", NULL },
	[SIM_BYTES] = { "bytes", "BYTES", "size of a message", NULL },
	[SIM_MESSAGES] = { "messages", "N", "messages of each flow", NULL },
	[SIM_CHUNK] = { "chunk", "BYTES", "payload of a datagram", NULL },
	[SIM_PATHS] = { "paths", "N", "paths of a connection, 1 to 256", NULL },
	[SIM_SPREAD] = { "spread", "NAME", "path of a chunk: round-robin, two-choices, or pinned: one for a message, as ECMP has", SPREADS },
	[SIM_CONTROL] = { "control", "NAME", "control of the window or rate: swift, timely or fixed", CONTROLS },
	[SIM_TARGET] = { "target-us", "US", "target of the queueing delay", NULL },
	[SIM_CREDIT] = { "credit", "on|off", "receivers grant chunks to their senders in turn", "off on" },
	[SIM_GRANT] = { "grant", "BYTES", "with credit: bytes that a receiver has granted at any time\n"
		"(default, also if 0: what arrives in a round trip)", NULL },
	[SIM_RTO] = { "rto-us", "US", "shortest retransmission time-out (RTO); the longest is 16 times it", NULL },
	[SIM_DEAD_AFTER] = { "dead-after", "N", "a path is dead after this many time-outs in a row", NULL },
	[SIM_ACK_EVERY] = { "ack-every", "N", "chunks of a path that one acknowledgement covers at most", NULL },
	[SIM_LOST] = { "lost", "N", "datagrams of a million that are lost", NULL },
	[SIM_LATE] = { "late", "N", "datagrams of a million that are up to four round trips late", NULL },
	[SIM_TWICE] = { "twice", "N", "datagrams of a million that arrive twice", NULL },
	[SIM_CORRUPT] = { "corrupt", "N", "datagrams of a million that arrive with a wrong bit", NULL },
	[SIM_RECEIVE] = { "receive-ns", "NS", "time that a receiving host needs for a datagram", NULL },
	[SIM_TIME] = { "time-us", "US", "end of the simulation, if flows have not arrived before", NULL },
	[SIM_SEED] = { "seed", "N", "seed of all random choices", NULL },
	[SIM_JSON] = CLI_JSON_OPT,
	[SIM_SVG] = { "svg", "FILE", "also plot queue, rate and completion over time, as SVG", CLI_FILES },
	[SIM_FORCE] = { "force", NULL, "replace the file of --svg if it exists", NULL },
	{ 0 },
};

static const struct { uint64_t least, most; } limits[SIM_N_NUMBERS] = {
	[SIM_LEAVES] = { 1, 1024 }, [SIM_HOSTS] = { 1, 1024 }, [SIM_SPINES] = { 1, 1024 }, [SIM_GBPS] = { 1, 1000 },
	[SIM_LATENCY] = { 0, 100000000 }, [SIM_QUEUE] = { 4096, 1 << 30 }, [SIM_FLOWS] = { 1, 1024 }, [SIM_BYTES] = { 1, 64 << 20 },
	[SIM_MESSAGES] = { 1, 1 << 20 }, [SIM_CHUNK] = { 64, 32768 }, [SIM_PATHS] = { 1, GPUL_REL_MAX_PATHS }, [SIM_TARGET] = { 1, 1000000 },
	[SIM_GRANT] = { 0, 1 << 30 }, [SIM_RTO] = { 1, 1000000 }, [SIM_DEAD_AFTER] = { 1, 100 }, [SIM_ACK_EVERY] = { 1, 1024 }, [SIM_LOST] = { 0, 500000 },
	[SIM_LATE] = { 0, 500000 }, [SIM_TWICE] = { 0, 500000 }, [SIM_CORRUPT] = { 0, 500000 }, [SIM_RECEIVE] = { 0, 1000000 },
	[SIM_TIME] = { 1, 100000000 }, [SIM_SEED] = { 0, UINT32_MAX },
};
/* clang-format on */

/* ---- options ------------------------------------------------------------------------------------------------------ */

static bool is_size(enum sim_option option)
{
	return !strcmp(sim_opts[option].value, "BYTES");
}

/* Copy word number i of a list; returns false if there are fewer. */
static bool find_word(const char *list, uint64_t i, char buf[24])
{
	for (; i && list; i--) {
		list = strchr(list, ' ');
		list = list ? list + 1 : NULL;
	}
	return list && snprintf(buf, 24, "%.*s", (int)strcspn(list, " "), list) > 0;
}

const char *sim_value_text(enum sim_option option, uint64_t value, char *buf)
{
	if (!sim_opts[option].complete)
		(void)snprintf(buf, 24, "%" PRIu64, value);
	else if (!find_word(sim_opts[option].complete, value, buf))
		buf[0] = '\0';
	return buf;
}

static gpul_status parse_value(enum sim_option option, const char *text, uint64_t *out, gpul_error *err)
{
	const struct cli_opt *opt = &sim_opts[option];
	char name[32], word[24];
	size_t n;

	(void)snprintf(name, sizeof name, "--%s", opt->name);
	if (!opt->complete && !is_size(option))
		return value_parse_count(name, text, limits[option].least, limits[option].most, out, err);
	if (!opt->complete) {
		if (value_parse_size(text, strlen(text), &n, NULL) || n < limits[option].least || n > limits[option].most)
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "%s must be a size from %" PRIu64 " to %" PRIu64 " bytes, such as 64K, not '%s'", name,
					 limits[option].least, limits[option].most, text);
		*out = n;
		return GPUL_OK;
	}
	for (uint64_t i = 0; find_word(opt->complete, i, word); i++)
		if (!strcmp(word, text)) {
			*out = i;
			return GPUL_OK;
		}
	return gpul_fail(err, GPUL_EINVAL, 0, "%s must be one of: %s; not '%s'", name, opt->complete, text);
}

static gpul_status find_scenario(const struct cli_args *args, const struct sim_scenario **out, gpul_error *err)
{
	if (args->n_operands == 1)
		for (const struct sim_scenario *s = sim_scenarios; s->name; s++)
			if (!strcmp(s->name, args->operands[0])) {
				*out = s;
				return GPUL_OK;
			}
	return gpul_fail(err, GPUL_EINVAL, 0, "%s%s%s: expected incast, permutation, path-death, timely or loss",
			 args->n_operands > 1 ? "more than one scenario"
			 : args->n_operands   ? "unknown scenario '"
					      : "a scenario is missing",
			 args->n_operands == 1 ? args->operands[0] : "", args->n_operands == 1 ? "'" : "");
}

gpul_status sim_request_parse(const struct cli_args *args, struct sim_request *out, gpul_error *err)
{
	gpul_status st;

	*out = (struct sim_request){ .json = cli_value(args, SIM_JSON),
				     .svg = cli_value(args, SIM_SVG),
				     .force = cli_value(args, SIM_FORCE) };
	st = find_scenario(args, &out->scenario, err);
	if (st)
		return st;
	sim_defaults(out->scenario, out->value);
	for (int i = 0; !st && i < SIM_N_NUMBERS; i++)
		if (cli_value(args, i)) {
			st = parse_value((enum sim_option)i, cli_value(args, i), &out->value[i], err);
			out->given[i] = true;
		}
	return st ? st : output_check(out->svg, out->force, err);
}
