/* incast_json.c — prints the result of gpuload comm incast as JSON. */
#include "cli/comm/incast/incast.h"
#include "cli/lib/json/cli_json.h"

static void add_times(struct json *j, const char *key, const struct incast_times *t)
{
	if (!t->n) {
		json_null(j, key);
		return;
	}
	json_begin(j, key, '{');
	json_u64(j, "n", t->n);
	json_double(j, "p50_us", (double)t->p50_ns / 1e3);
	json_double(j, "p99_us", (double)t->p99_ns / 1e3);
	json_double(j, "max_us", (double)t->most_ns / 1e3);
	json_end(j, '}');
}

static void add_mode(struct json *j, const struct incast_result *r, int mode)
{
	const struct incast_figures *f = &r->figures[mode];

	json_begin(j, NULL, '{');
	json_text(j, "mode", incast_mode_names[mode]);
	json_double(j, "time_us", (double)f->ns / 1e3);
	json_u64(j, "bytes", f->bytes);
	json_double(j, "gb_per_s", f->ns ? (double)f->bytes / (double)f->ns : 0);
	json_double(j, "fairness", f->fairness);
	json_begin(j, "shares", '[');
	for (int k = 1; k < r->n_ranks; k++)
		json_u64(j, NULL, f->share[k]);
	json_end(j, ']');
	add_times(j, "message", &f->message);
	add_times(j, "probe", &f->probe);
	json_begin(j, "queue", '{');
	json_u64(j, "mean_bytes", f->queue_mean);
	json_u64(j, "max_bytes", f->queue_most);
	json_u64(j, "samples", f->n_samples);
	json_end(j, '}');
	if (r->private_network) {
		json_u64(j, "drops", f->drops);
		json_u64(j, "retransmissions", f->retransmissions);
	} else {
		json_null(j, "drops");
		json_null(j, "retransmissions");
	}
	json_u64(j, "wrong", f->wrong);
	json_end(j, '}');
}

void incast_json(const struct incast_result *r, struct json *j)
{
	const struct incast_request *q = &r->q;

	json_begin(j, NULL, '{');
	json_i64(j, "n_ranks", r->n_ranks);
	json_text(j, "launcher", r->launcher);
	json_text(j, "device", r->device);
	json_text(j, "congestion_control", r->congestion);
	json_u64(j, "message_bytes", q->bytes);
	json_i64(j, "messages", q->n_messages);
	json_u64(j, "grant_bytes", q->grant_bytes);
	json_u64(j, "sender_window_bytes", q->sender_window_bytes);
	if (q->modes[INCAST_RECEIVER])
		json_u64(j, "window_bytes", r->window_bytes);
	else
		json_null(j, "window_bytes");
	if (r->round_trip_ns)
		json_double(j, "round_trip_us", (double)r->round_trip_ns / 1e3);
	else
		json_null(j, "round_trip_us");
	if (r->private_network) {
		json_u64(j, "rate_bits_per_s", q->rate_bits);
		json_u64(j, "queue_bytes", q->queue_bytes);
	} else {
		json_null(j, "rate_bits_per_s");
		json_null(j, "queue_bytes");
	}
	json_text(j, "queue_source", r->private_network ? "token bucket" : "counters");
	json_begin(j, "modes", '[');
	for (int m = 0; m < INCAST_N_MODES; m++)
		if (r->figures[m].measured)
			add_mode(j, r, m);
	json_end(j, ']');
	json_bool(j, "ok", !incast_result_wrong(r));
	json_end(j, '}');
}
