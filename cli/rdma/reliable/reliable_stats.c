/* reliable_stats.c — prints the counters and the paths of reliable connections. */
#include "cli/rdma/reliable/reliable_stats.h"

#include "cli/lib/bench/bench_output.h"

enum { MOST_PATHS = 64 }; /* in the table; JSON has all */

/* A counter, its column and its JSON member. */
/* clang-format off */
static const struct column {
	size_t offset;
	const char *title, *key;
} columns[] = {
#define COLUMN(member, title, key) { offsetof(gpul_rel_counters, member), title, key }
	COLUMN(chunks_sent, "sent", "chunks_sent"),
	COLUMN(chunks_again, "again", "retransmissions"),
	COLUMN(losses, "found lost", "losses"),
	COLUMN(timeouts, "time-outs", "timeouts"),
	COLUMN(chunks_received, "received", "chunks_received"),
	COLUMN(duplicates, "twice", "duplicates"),
	COLUMN(acks_sent, "acks sent", "acks_sent"),
	COLUMN(acks_received, "acks rcvd", "acks_received"),
	COLUMN(strangers, NULL, "strangers"),
	COLUMN(paths_died, NULL, "paths_died"),
	COLUMN(paths_returned, NULL, "paths_returned"),
#undef COLUMN
};
/* clang-format on */
enum { N_COLUMNS = sizeof columns / sizeof *columns };

static uint64_t value_of(const struct reliable_conn *c, unsigned column)
{
	uint64_t value;

	memcpy(&value, (const char *)&c->n + columns[column].offset, sizeof value);
	return value;
}

static void add_path(const gpul_rel_path_info *p, struct out *o)
{
	out_add(o, "%8s", p->alive ? "yes" : "no");
	if (p->rtt_p50_ns) {
		output_number(o, (double)p->rtt_p50_ns / 1e3, 10, 1);
		output_number(o, (double)p->rtt_p99_ns / 1e3, 10, 1);
	} else {
		out_add(o, "%10s%10s", "-", "-");
	}
	output_number(o, p->window, 10, 1);
	out_text(o, "\n");
}

void reliable_stats_text(const struct reliable_conn *conns, unsigned n, struct out *o)
{
	unsigned n_all = 0, n_shown = 0;

	out_text(o, "\nChunks of this end, one for each datagram:\n\n  connection");
	for (unsigned k = 0; k < N_COLUMNS && columns[k].title; k++)
		out_add(o, "%12s", columns[k].title);
	out_text(o, "      credit\n");
	for (unsigned i = 0; i < n; i++) {
		out_add(o, "%12u", i);
		for (unsigned k = 0; k < N_COLUMNS && columns[k].title; k++)
			out_add(o, "%12llu", (unsigned long long)value_of(&conns[i], k));
		if (conns[i].n.has_credit)
			out_add(o, "%12u\n", conns[i].n.credit);
		else
			out_text(o, "           -\n");
		n_all += conns[i].n_paths;
	}
	out_text(o, "\n  connection  path   alive   RTT p50    p99 us    window\n");
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < conns[i].n_paths && n_shown < MOST_PATHS; k++, n_shown++) {
			out_add(o, "%12u%6u", i, k);
			add_path(&conns[i].paths[k], o);
		}
	if (n_all > n_shown)
		out_add(o, "... and %u more paths, which --json shows\n", n_all - n_shown);
}

static void add_us(struct json *j, const char *key, uint64_t ns)
{
	if (ns)
		json_double(j, key, (double)ns / 1e3);
	else
		json_null(j, key);
}

void reliable_stats_json(const struct reliable_conn *conns, unsigned n, struct json *j)
{
	if (!conns) {
		json_null(j, "reliable");
		return;
	}
	json_begin(j, "reliable", '[');
	for (unsigned i = 0; i < n; i++) {
		json_begin(j, NULL, '{');
		for (unsigned k = 0; k < N_COLUMNS; k++)
			json_u64(j, columns[k].key, value_of(&conns[i], k));
		if (conns[i].n.has_credit)
			json_u64(j, "credit", conns[i].n.credit);
		else
			json_null(j, "credit");
		json_begin(j, "paths", '[');
		for (unsigned k = 0; k < conns[i].n_paths; k++) {
			const gpul_rel_path_info *p = &conns[i].paths[k];

			json_begin(j, NULL, '{');
			json_bool(j, "alive", p->alive);
			add_us(j, "rtt_p50_us", p->rtt_p50_ns);
			add_us(j, "rtt_p99_us", p->rtt_p99_ns);
			add_us(j, "rtt_least_us", p->rtt_min_ns);
			json_double(j, "window", p->window);
			json_end(j, '}');
		}
		json_end(j, ']');
		json_end(j, '}');
	}
	json_end(j, ']');
}
