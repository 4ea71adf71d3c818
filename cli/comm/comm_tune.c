/* comm_tune.c — gpuload comm tune: measures plans for each size, and writes the fastest ones as a table. */
#include "cli/comm/comm_tune.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/comm/comm_job.h"
#include "cli/lib/bench/bench_output.h"

/* ---- candidates ---------------------------------------------------------------------------------------------- */

struct best {
	gpul_comm_plan plan;
	double us; /* time of a call with the best plan so far; 0: none yet */
};

/* Measure one plan.  It replaces the best plan only if it is 2 % faster, because earlier plans use fewer threads. */
static gpul_status try_plan(struct comm_rank *r, const struct comm_tuning *t, const struct comm_shape *s, const gpul_comm_plan *wanted,
			    struct best *best, gpul_error *err)
{
	struct comm_figures f = { 0 };
	gpul_comm_plan plan;
	gpul_status st;

	gpul_comm_plan_force(r->comm, wanted);
	plan = gpul_comm_plan_for(r->comm, s->call, s->bytes);
	if (plan.algo != wanted->algo || plan.proto != wanted->proto || plan.n_blocks != wanted->n_blocks ||
	    plan.n_threads != wanted->n_threads)
		return GPUL_OK; /* the plan is not possible: the communicator replaced it by another plan, which is measured separately */
	st = comm_time_calls(r, s, &t->q, false, &f, err);
	if (!st && (best->us <= 0 || f.us < 0.98 * best->us))
		*best = (struct best){ plan, f.us };
	return st;
}

/* Measure all plans for a call and size, those with few threads first.  Every rank makes the same choices, because the exchanged
 * times are the same on all ranks. */
static gpul_status find_best(struct comm_rank *r, const struct comm_tuning *t, const struct comm_shape *s, struct best *best,
			     gpul_error *err)
{
	static const unsigned blocks[] = { 1, 2, 4, 8, 16, 32, 64 }, threads[] = { 64, 96, 128, 256, 288, 512 };
	const bool interprets = r->drv->interprets;
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i < GPUL_COMM_N_ALGOS * GPUL_COMM_N_PROTOS; i++) {
		gpul_comm_plan plan = { .algo = (gpul_comm_algo)(i / GPUL_COMM_N_PROTOS),
					.proto = (gpul_comm_proto)(i % GPUL_COMM_N_PROTOS) };

		if (gpul_comm_plan_obstacle(r->comm, s->call, plan.algo, plan.proto, s->bytes))
			continue;
		for (unsigned b = 0; !st && b < sizeof blocks / sizeof *blocks; b++)
			for (unsigned k = 0; !st && k < sizeof threads / sizeof *threads && !atomic_load(&r->stop); k++) {
				plan.n_blocks = blocks[b];
				plan.n_threads = threads[k];
				if (interprets ? threads[k] > 128 : threads[k] < 128)
					continue;
				/* Skip plans with idle blocks or threads: they only cost time. */
				if ((b > 0 && s->bytes < (size_t)512 * blocks[b]) || (!interprets && b < 3 && s->bytes > (size_t)1 << 20))
					continue;
				st = try_plan(r, t, s, &plan, best, err);
			}
	}
	return st;
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

static bool same_choice(const gpul_comm_table_row *a, const gpul_comm_table_row *b)
{
	return a->call == b->call && a->algo == b->algo && a->proto == b->proto && a->n_blocks == b->n_blocks &&
	       a->n_threads == b->n_threads;
}

/* Return the transport for the rows of the table: the slowest one between any two ranks. */
static gpul_comm_transport transport_of(const struct comm_tuning *t, int n_ranks)
{
	static const int slowness[GPUL_COMM_N_TRANSPORTS] = { [GPUL_COMM_HOST] = 1, [GPUL_COMM_NET] = 2 };
	gpul_comm_transport slowest = GPUL_COMM_DEVICE;

	for (int a = 0; a < n_ranks; a++)
		for (int b = 0; b < n_ranks; b++)
			if (a != b && slowness[t->about[a].paths[b].transport % GPUL_COMM_N_TRANSPORTS] > slowness[slowest])
				slowest = (gpul_comm_transport)t->about[a].paths[b].transport;
	return slowest;
}

/* Copy a text into a field of a row, with the separators of the table replaced. */
static void copy_field(char *out, size_t out_bytes, const char *text)
{
	(void)snprintf(out, out_bytes, "%.*s", (int)out_bytes - 1, *text ? text : "?");
	for (char *at = out; *at; at++)
		if (*at == ',' || *at == '\n')
			*at = ' ';
}

static void add_row(const struct comm_rank *r, struct comm_tuning *t, const struct comm_shape *s, const struct best *best)
{
	gpul_comm_table_row row = { .n_ranks = r->job.size,
				    .transport = transport_of(t, r->job.size),
				    .call = s->call,
				    .max_bytes = s->bytes,
				    .algo = best->plan.algo,
				    .proto = best->plan.proto,
				    .n_blocks = best->plan.n_blocks,
				    .n_threads = best->plan.n_threads,
				    .us = best->us };

	copy_field(row.device, sizeof row.device, t->about[0].name);
	copy_field(row.host, sizeof row.host, t->host);
	copy_field(row.date, sizeof row.date, t->date);
	if (t->n_rows && same_choice(&t->rows[t->n_rows - 1], &row))
		t->n_rows--;
	t->rows[t->n_rows++] = row;
}

static gpul_status tune_size(struct comm_rank *r, struct comm_tuning *t, gpul_comm_call call, size_t bytes, gpul_error *err)
{
	const struct comm_shape s = comm_shape_of(call, t->q.dtype, r->job.rank, r->job.size, bytes);
	struct comm_figures f = { 0 };
	struct best best = { .us = 0 };
	gpul_status st = find_best(r, t, &s, &best, err);

	if (st || best.us <= 0)
		return st;
	gpul_comm_plan_force(r->comm, &best.plan);
	st = comm_check_call(r, &s, &t->q, false, t->n_rows + 1, &f, err);
	if (!st && (f.wrong || f.differs))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%s of %zu bytes by %s/%s with %u blocks of %u threads has %llu wrong elements",
			       gpul_comm_call_name(call), s.bytes, gpul_comm_algo_name(best.plan.algo),
			       gpul_comm_proto_name(best.plan.proto), best.plan.n_blocks, best.plan.n_threads, (unsigned long long)f.wrong);
	if (!st)
		add_row(r, t, &s, &best);
	return st;
}

static gpul_status tune(struct comm_rank *r, void *argument, gpul_error *err)
{
	struct comm_tuning *t = argument;
	const size_t largest = t->max_bytes < sizeof(float) * (size_t)r->job.size ? sizeof(float) * (size_t)r->job.size : t->max_bytes;
	unsigned n_sizes = 0, n_done = 0;
	gpul_status st = comm_rank_allocate(r, largest, true, err);

	for (size_t bytes = t->min_bytes; bytes <= t->max_bytes; bytes *= t->factor)
		n_sizes++;
	for (int call = 0; call < GPUL_COMM_N_CALLS; call++)
		for (size_t bytes = t->min_bytes; !st && bytes <= t->max_bytes && !atomic_load(&r->stop); bytes *= t->factor) {
			st = tune_size(r, t, (gpul_comm_call)call, bytes, err);
			atomic_store(&r->permille, 1000 * ++n_done / (n_sizes * GPUL_COMM_N_CALLS));
		}
	gpul_comm_plan_force(r->comm, NULL);
	return st;
}

/* ---- the file ------------------------------------------------------------------------------------------------- */

static void write_row(const gpul_comm_table_row *row, struct out *o)
{
	out_add(o, "%s,%d,%s,%s,%llu,%s,%s,%u,%u,%.4g,%s,%s\n", row->device, row->n_ranks, gpul_comm_transport_name(row->transport),
		gpul_comm_call_name(row->call), (unsigned long long)row->max_bytes, gpul_comm_algo_name(row->algo),
		gpul_comm_proto_name(row->proto), row->n_blocks, row->n_threads, row->us, row->host, row->date);
}

void comm_tune_write(const gpul_comm_table *old, const gpul_comm_table_row *rows, size_t n_rows, struct out *o)
{
	out_text(o, GPUL_COMM_TABLE_HEADER "\n");
	for (size_t i = 0; i < old->n_rows; i++) {
		const gpul_comm_table_row *row = &old->rows[i];

		if (n_rows == 0 || row->n_ranks != rows->n_ranks || row->transport != rows->transport || strcmp(row->device, rows->device))
			write_row(row, o);
	}
	for (size_t i = 0; i < n_rows; i++)
		write_row(&rows[i], o);
}

static gpul_status print_table(const struct comm_tuning *t, gpul_error *err)
{
	gpul_comm_table old = { 0 };
	struct out o = { 0 };
	gpul_status st = t->path && access(t->path, F_OK) == 0 ? gpul_comm_table_read(t->path, &old, err) : GPUL_OK;

	if (st)
		return st;
	comm_tune_write(&old, t->rows, t->n_rows, &o);
	gpul_comm_table_free(&old);
	st = output_file(t->path, true, &o, "table", err);
	if (!st && t->path) {
		out_add(&o, "%.200s: %zu rows for %d ranks; to use them: export GPULOAD_COMM_TABLE=%.200s\n", t->path, t->n_rows,
			t->rows[0].n_ranks, t->path);
		st = out_flush(&o, err);
		out_free(&o);
	}
	return st;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

enum { OPT_OUT = COMM_N_PLACE_OPTS, OPT_BYTES, OPT_ITERS };
/* clang-format off */
static const struct cli_opt tune_opts[] = {
	COMM_PLACE_OPTS,
	[OPT_OUT] = { "o", "FILE", "write the table to FILE, keeping its rows for other devices and ranks (default: print it)", CLI_FILES },
	[OPT_BYTES] = { "bytes", "MIN:MAX:FACTOR", "sizes (default: 8:64M:4; on the software driver 8:128K:16)", NULL },
	[OPT_ITERS] = { "iters", "N", "timed calls of each plan (default: 20; 3 on the software driver)", NULL },
	{ 0 },
};
/* clang-format on */

static gpul_status parse_tuning(const struct cli_args *args, struct comm_tuning *t, gpul_error *err)
{
	const char *bytes = cli_value(args, OPT_BYTES);
	gpul_status st = comm_place_parse(args, &t->place, err);

	t->q = (struct comm_request){ .dtype = GPUL_COMM_F32, .iterations = -1 };
	t->path = cli_value(args, OPT_OUT);
	if (!st && bytes)
		st = comm_parse_bytes(bytes, &t->min_bytes, &t->max_bytes, &t->factor, err);
	if (!st && args->n_operands)
		st = gpul_fail(err, GPUL_EINVAL, 0, "unexpected argument '%s'; see gpuload help comm tune", args->operands[0]);
	return st ? st : comm_parse_int("--iters", cli_value(args, OPT_ITERS), 1, COMM_MOST_ITERATIONS, &t->q.iterations, err);
}

static void choose_defaults(struct comm_tuning *t, bool interprets)
{
	const time_t now = time(NULL);
	struct tm utc;

	if (!t->max_bytes) {
		t->min_bytes = 8;
		t->max_bytes = interprets ? 128 << 10 : 64 << 20;
		t->factor = interprets ? 16 : 4;
	}
	if (t->q.iterations < 0)
		t->q.iterations = interprets ? 3 : 20;
	t->q.warmups = interprets ? 1 : 4;
	if (gethostname(t->host, sizeof t->host - 1))
		t->host[0] = 0;
	if (!gmtime_r(&now, &utc) || !strftime(t->date, sizeof t->date, "%Y-%m-%d", &utc))
		t->date[0] = 0;
}

static int run_rank(struct comm_tuning *t, const gpul_comm_job *job, gpul_error *err)
{
	/* do not use the file $GPULOAD_COMM_TABLE, which may lack the rows that are measured here */
	const gpul_comm_options options = { .table = "" };
	struct comm_rank r = { 0 };
	gpul_status st = comm_rank_open(&t->place, &options, job, &r, err);

	if (!st) {
		choose_defaults(t, r.drv->interprets);
		st = comm_rank_introduce(&r, t->about, err);
		st = st ? st : comm_rank_run(&r, "comm tune", tune, t, err);
		st = st || job->rank ? st : print_table(t, err);
	}
	comm_rank_close(&r);
	if (st == GPUL_ESYS && err->native == ECANCELED)
		comm_job_quiet(job, err);
	comm_job_sign(job, err);
	return cli_exit_code(st);
}

/* Refuse to overwrite a file that is not a tuning table; called before the measurement, so that no result is lost. */
static gpul_status check_file(const struct comm_tuning *t, gpul_error *err)
{
	gpul_comm_table old;
	gpul_status st = t->path && access(t->path, F_OK) == 0 ? gpul_comm_table_read(t->path, &old, err) : GPUL_OK;

	if (!st && t->path && access(t->path, F_OK) == 0)
		gpul_comm_table_free(&old);
	return st;
}

static int cmd_tune(const struct cli_args *args, gpul_error *err)
{
	struct comm_tuning *t = calloc(1, sizeof *t);
	gpul_comm_job job = { 0 };
	bool launches = false;
	gpul_status st = t ? parse_tuning(args, t, err) : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a table");
	int code;

	st = st ? st : comm_job_find(t->place.n_ranks, t->place.hosts.n > 0, &job, &launches, err);
	if (!st && (launches ? t->place.n_ranks : job.size) < 2)
		st = gpul_fail(err, GPUL_EINVAL, 0, "comm tune needs at least 2 ranks");
	if (!st && job.rank == 0)
		st = check_file(t, err);
	if (st)
		comm_job_quiet(&job, err);
	code = st         ? cli_exit_code(st)
	       : launches ? comm_job_launch(t->place.n_ranks, &t->place.hosts, t->place.agent, err)
			  : run_rank(t, &job, err);
	free(t);
	return code;
}

/* clang-format off */
const struct cli_cmd cli_comm_tune = {
	"comm tune", "", "measure which algorithm and protocol is best for each size",
	"Measures each collective with every algorithm and protocol that is possible between these\n"
	"ranks, and with several numbers of blocks and threads, and writes the fastest choices, by\n"
	"size, as a table (CSV). The library uses it if $GPULOAD_COMM_TABLE, --table or the option\n"
	"table of gpul_comm_create() names the file. --explain of a collective prints the choices.\n",
	tune_opts, cmd_tune, NULL, NULL,
};
/* clang-format on */
