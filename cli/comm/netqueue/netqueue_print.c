/* netqueue_print.c — prints the result of gpuload comm netqueue as text and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/comm/netqueue/cli_netqueue.h"
#include "cli/lib/json/cli_json.h"

static double seconds_of(const struct netqueue_row *row)
{
	const double s = (double)(row->got.end_ns - row->got.first_ns) / 1e9;

	return s > 0 ? s : 1e-9;
}

static void print_refusals(const struct netqueue_result *r)
{
	char text[GPUL_NETQUEUE_TEXT_BYTES];
	uint64_t n = 0, n_corrupted = 0, n_shown = 0;

	for (unsigned i = 0; i < r->n_rows; i++) {
		const gpul_netqueue_result *k = &r->rows[i].got.result;

		n += k->counts.n_refused;
		n_corrupted += r->rows[i].n_corrupted;
		for (uint32_t p = 0; p < k->n_reports && n_shown < NETQUEUE_MOST_SHOWN; p++, n_shown++)
			printf("# refused in receive %u: %s\n", i + 1, gpul_netqueue_explain(&k->reports[p], text));
	}
	if (n > n_shown)
		printf("# %" PRIu64 " more\n", n - n_shown);
	printf("# corrupted entries: %" PRIu64 ", refused: %" PRIu64 " %s\n", n_corrupted, n, n == n_corrupted ? "OK" : "WRONG");
}

static void print_row(const struct netqueue_result *r, unsigned i)
{
	const struct netqueue_row *row = &r->rows[i];
	const gpul_netqueue_counts *c = &row->got.result.counts;
	const double s = seconds_of(row);

	printf("%10u %12" PRIu64 " %10" PRIu64 " %8" PRIu64 " %10.3f %8.3f %12.3f", i + 1, c->n_bytes, c->n_pieces, c->n_refused, s * 1e3,
	       (double)c->n_bytes / s / 1e9, (double)c->n_pieces / s / 1e6);
	if (r->ask->check)
		printf(" %7" PRIu64 "\n", row->n_wrong);
	else
		printf(" %7s\n", "-");
}

static void print_text(const struct netqueue_result *r)
{
	const struct netqueue_request *q = r->ask;
	const gpul_netqueue_desc *d = &r->about;
	uint64_t n_wrong = 0;

	printf("# gpuload comm netqueue: %" PRIu64 " bytes from %s, %s driver, %s\n", q->bytes,
	       q->tcp ? "another process over TCP" : "memory", r->driver, r->device);
	printf("# %" PRIu64 " records of %" PRIu64 " to %" PRIu64
	       " bytes, alignment %s; %u slots of %u bytes in %s memory; %u blocks of %u threads\n",
	       r->n_records, q->least_piece, q->most_piece, netqueue_align_names[q->align], d->shape.n_slots, d->shape.slot_bytes,
	       gpul_mem_kind_name(d->kind), d->shape.n_blocks, d->n_threads);
	printf("#%9s %12s %10s %8s %10s %8s %12s %7s\n", "receive", "bytes", "pieces", "refused", "time ms", "GB/s", "Mpieces/s", "wrong");
	for (unsigned i = 0; i < r->n_rows; i++) {
		print_row(r, i);
		n_wrong += r->rows[i].n_wrong;
	}
	if (q->corrupt > 0)
		print_refusals(r);
	if (q->check)
		printf("# wrong bytes: %" PRIu64 " %s\n", n_wrong, n_wrong ? "WRONG" : "OK");
}

static void add_row(struct json *j, const struct netqueue_request *q, const struct netqueue_row *row)
{
	const gpul_netqueue_counts *c = &row->got.result.counts;
	const double s = seconds_of(row);

	json_begin(j, NULL, '{');
	json_double(j, "time_us", s * 1e6);
	json_double(j, "gb_per_s", (double)c->n_bytes / s / 1e9);
	json_double(j, "pieces_per_s", (double)c->n_pieces / s);
	json_u64(j, "bytes", c->n_bytes);
	json_u64(j, "pieces", c->n_pieces);
	json_u64(j, "refused", c->n_refused);
	json_u64(j, "corrupted", row->n_corrupted);
	json_u64(j, "receives", row->got.n_receives);
	json_u64(j, "full", row->got.n_full);
	if (q->check)
		json_u64(j, "wrong", row->n_wrong);
	else
		json_null(j, "wrong");
	json_end(j, '}');
}

static void add_reports(struct json *j, const struct netqueue_result *r)
{
	char text[GPUL_NETQUEUE_TEXT_BYTES];

	json_begin(j, "refused", '[');
	for (unsigned i = 0; i < r->n_rows; i++)
		for (uint32_t p = 0; p < r->rows[i].got.result.n_reports; p++) {
			const gpul_netqueue_report *report = &r->rows[i].got.result.reports[p];

			json_begin(j, NULL, '{');
			json_u64(j, "receive", i + 1);
			json_u64(j, "entry", report->entry);
			json_text(j, "field", gpul_netqueue_field_name(report->field));
			json_u64(j, "block", report->block);
			json_u64(j, "value", report->value);
			json_u64(j, "limit", report->limit);
			json_text(j, "text", gpul_netqueue_explain(report, text));
			json_end(j, '}');
		}
	json_end(j, ']');
}

static gpul_status print_json(const struct netqueue_result *r, gpul_error *err)
{
	const struct netqueue_request *q = r->ask;
	const gpul_netqueue_desc *d = &r->about;
	struct json j = { 0 };

	json_begin(&j, NULL, '{');
	json_u64(&j, "bytes", q->bytes);
	json_begin(&j, "pieces", '[');
	json_u64(&j, NULL, q->least_piece);
	json_u64(&j, NULL, q->most_piece);
	json_end(&j, ']');
	json_text(&j, "align", netqueue_align_names[q->align]);
	json_text(&j, "source", q->tcp ? "tcp" : "memory");
	json_double(&j, "corrupt", q->corrupt);
	json_text(&j, "driver", r->driver);
	json_bool(&j, "interprets", r->interprets);
	json_text(&j, "name", r->device);
	json_text(&j, "memory", gpul_mem_kind_name(d->kind));
	json_u64(&j, "slots", d->shape.n_slots);
	json_u64(&j, "slot_bytes", d->shape.slot_bytes);
	json_u64(&j, "entries", d->shape.n_entries);
	json_u64(&j, "blocks", d->shape.n_blocks);
	json_u64(&j, "threads", d->n_threads);
	json_u64(&j, "records", r->n_records);
	json_begin(&j, "receives", '[');
	for (unsigned i = 0; i < r->n_rows; i++)
		add_row(&j, q, &r->rows[i]);
	json_end(&j, ']');
	add_reports(&j, r);
	json_bool(&j, "ok", r->ok);
	json_end(&j, '}');
	return json_print(&j, err);
}

gpul_status netqueue_print(const struct netqueue_result *r, gpul_error *err)
{
	if (r->ask->json)
		return print_json(r, err);
	print_text(r);
	return GPUL_OK;
}
