/* params.c — the parameters of the model: built-in values, values of links, and values from files. */
#include "lab/predict/params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file/rows.h"

/* ---- built-in -------------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define GB_PER_S(rate) (1e-3 / (rate))  /* converts a rate to us per byte */
/* clang-format on */
/* clang-format off */
#define ROW(p, ...) { .device = "NVIDIA H200", .transport = GPUL_COMM_DEVICE, .proto = (p), .costs = __VA_ARGS__, .host = "built-in", .date = "2026-11-23" }
/* clang-format on */

static const gpul_comm_params built_in = {
	.rows = {
		ROW(GPUL_COMM_LL, { 3.0, 0.9, 0.1, GB_PER_S(170), GB_PER_S(3000), 512 << 10 }),
		ROW(GPUL_COMM_LL128, { 3.0, 0.9, 0.1, GB_PER_S(320), GB_PER_S(3000), 1920 << 10 }),
		ROW(GPUL_COMM_SIMPLE, { 3.0, 2.5, 1.0, GB_PER_S(345), GB_PER_S(3000), 8 << 20 }),
	},
	.n_rows = 3,
};

const gpul_comm_params *gpul_comm_params_built_in(void)
{
	return &built_in;
}

bool gpul_comm_params_apply(const gpul_comm_params *p, gpul_comm_transport transport, gpul_comm_machine *m)
{
	bool found = false;

	for (unsigned i = 0; i < p->n_rows; i++)
		if (p->rows[i].transport == transport) {
			m->inside[p->rows[i].proto] = p->rows[i].costs;
			m->cores = p->rows[i].cores;
			found = true;
		}
	return found;
}

/* ---- links ----------------------------------------------------------------------------------------------------------- */

/* Typical figures of the hardware, for each direction; not measured by gpuload. */
static const gpul_comm_link links[] = {
	{ "nvlink4", 0.9, 345, true },                            /* 18 NVLinks of an H100 or H200, as kernels use them */
	{ "nvlink3", 0.9, 230, true },                            /* 12 NVLinks of an A100 */
	{ "pcie5", 1.3, 50, true },                               /* 16 lanes */
	{ "pcie4", 1.5, 24, true },    { "xdr", 2.2, 90, false }, /* InfiniBand, 800 Gbit/s */
	{ "ndr", 2.5, 45, false },                                /* InfiniBand, 400 Gbit/s */
	{ "hdr", 2.5, 23, false },                                /* InfiniBand, 200 Gbit/s */
	{ "eth100", 6, 11, false },                               /* Ethernet with RDMA, 100 Gbit/s */
	{ "eth25", 20, 2.8, false },                              /* Ethernet with TCP, 25 Gbit/s */
};
enum { N_LINKS = sizeof links / sizeof *links };

gpul_status gpul_comm_link_parse(const char *text, bool memory, gpul_comm_link *out, gpul_error *err)
{
	char names[128] = "", *end;
	double latency_us, gb_per_s = 0;
	size_t n = 0;

	for (unsigned i = 0; i < N_LINKS; i++) {
		if (!strcmp(text, links[i].name)) {
			*out = links[i];
			return GPUL_OK;
		}
		n += (size_t)snprintf(names + n, sizeof names - n, "%s, ", links[i].name);
	}
	latency_us = strtod(text, &end);
	if (end != text && *end == ':') {
		const char *rate = end + 1;

		gb_per_s = strtod(rate, &end);
		if (end != rate && !*end && latency_us > 0 && latency_us < 1e9 && gb_per_s > 0 && gb_per_s < 1e9) {
			*out = (gpul_comm_link){ "", latency_us, gb_per_s, memory };
			return GPUL_OK;
		}
	}
	return gpul_fail(err, GPUL_EINVAL, 0,
			 "'%.40s' is not a link: expected one of %sor LATENCY:BANDWIDTH in us and GB/s, such as 2.5:45", text, names);
}

void gpul_comm_link_costs(const gpul_comm_link *link, const gpul_comm_costs like[GPUL_COMM_N_PROTOS],
			  gpul_comm_costs out[GPUL_COMM_N_PROTOS])
{
	/* LL has half the rate of the link, LL128 15/16 of it.  In shared memory, Simple waits for a fence before it writes the
	 * counter, which adds a second latency; a network delivers the counter after the data without the second latency. */
	static const double part[GPUL_COMM_N_PROTOS] = { [GPUL_COMM_LL] = 2, [GPUL_COMM_LL128] = 16.0 / 15, [GPUL_COMM_SIMPLE] = 1 };

	for (gpul_comm_proto p = GPUL_COMM_LL; p < GPUL_COMM_N_PROTOS; p++) {
		out[p] = like[p];
		out[p].latency_us = p == GPUL_COMM_SIMPLE && link->memory ? 2 * link->latency_us : link->latency_us;
		out[p].us_per_byte = part[p] * GB_PER_S(link->gb_per_s);
		if (!link->memory && p != GPUL_COMM_SIMPLE)
			out[p].step_bytes = 0;
	}
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static gpul_status parse_positive(const gpul_rows *r, const char *column, const char *text, double *out)
{
	const gpul_status st = gpul_rows_decimal(r, column, text, out);

	return st || *out > 0 ? st : gpul_rows_fail(r, column, text, "expected a positive number");
}

static gpul_status parse_row(const gpul_rows *r, char *const *field, gpul_comm_params_row *out)
{
	double rate = 1, reduce_rate = 1;
	uint64_t cores = 0;
	gpul_status st;

	if (!gpul_comm_transport_parse(field[1], &out->transport) || out->transport == GPUL_COMM_TRANSPORT_AUTO)
		return gpul_rows_fail(r, "transport", field[1], "expected the name of a transport, such as device");
	if (!gpul_comm_proto_parse(field[2], &out->proto) || out->proto == GPUL_COMM_PROTO_AUTO)
		return gpul_rows_fail(r, "protocol", field[2], "expected ll, ll128 or simple");
	st = gpul_rows_number(r, "cores", field[3], 0, 1u << 20, &cores); /* 0: the ranks run on GPUs */
	st = st ? st : parse_positive(r, "overhead_us", field[4], &out->costs.overhead_us);
	st = st ? st : parse_positive(r, "latency_us", field[5], &out->costs.latency_us);
	st = st ? st : parse_positive(r, "gap_us", field[6], &out->costs.gap_us);
	st = st ? st : parse_positive(r, "gb_per_s", field[7], &rate);
	st = st ? st : parse_positive(r, "reduce_gb_per_s", field[8], &reduce_rate);
	st = st ? st : parse_positive(r, "step_bytes", field[9], &out->costs.step_bytes);
	out->cores = (unsigned)cores;
	out->costs.us_per_byte = GB_PER_S(rate);
	out->costs.reduce_us_per_byte = GB_PER_S(reduce_rate);
	(void)snprintf(out->device, sizeof out->device, "%s", field[0]);
	(void)snprintf(out->host, sizeof out->host, "%s", field[10]);
	(void)snprintf(out->date, sizeof out->date, "%s", field[11]);
	return st;
}

static gpul_status add_row(const gpul_rows *r, const gpul_comm_params_row *row, gpul_comm_params *out)
{
	for (unsigned i = 0; i < out->n_rows; i++)
		if (out->rows[i].transport == row->transport && out->rows[i].proto == row->proto)
			return gpul_fail(r->err, GPUL_EFORMAT, 0,
					 "%.100s:%u: there is already a row for transport %s and protocol %s: expected one row for each "
					 "pair",
					 r->path, r->line, gpul_comm_transport_name(row->transport), gpul_comm_proto_name(row->proto));
	if (out->n_rows == GPUL_COMM_MAX_PARAMS)
		return gpul_fail(r->err, GPUL_EFORMAT, 0, "%.100s has more than %d rows, which is the limit", r->path,
				 GPUL_COMM_MAX_PARAMS);
	out->rows[out->n_rows++] = *row;
	return GPUL_OK;
}

static gpul_status take_row(const gpul_rows *r, char *const *field, void *context)
{
	gpul_comm_params_row row = { 0 };
	gpul_status st = parse_row(r, field, &row);

	return st ? st : add_row(r, &row, context);
}

gpul_status gpul_comm_params_read(const char *path, gpul_comm_params *out, gpul_error *err)
{
	gpul_status st;

	*out = (gpul_comm_params){ .n_rows = 0 };
	st = gpul_rows_read(path, GPUL_COMM_PARAMS_HEADER, take_row, out, err);
	if (!st && out->n_rows == 0)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%.100s has no parameters; gpuload comm plan --measure -n 2 -o FILE writes some",
			       path);
	if (st)
		out->n_rows = 0;
	return st;
}
