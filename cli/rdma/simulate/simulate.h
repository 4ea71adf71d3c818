/* simulate.h — gpuload rdma simulate: scenarios of connections of the reliable transport in a simulated network (lab/fabric).
 *
 *     command line ──> struct sim_request ── a scenario, once for each value of the option that it varies ──> struct sim_run
 *                                         ──> text, JSON, SVG */
#ifndef GPULOAD_CLI_RDMA_SIMULATE_SIMULATE_H
#define GPULOAD_CLI_RDMA_SIMULATE_SIMULATE_H

#include "cli/lib/bench/bench_output.h"
#include "cli/lib/command.h"
#include "lab/fabric/fabric.h"

extern const struct cli_cmd cli_rdma_simulate;

/* clang-format off */
enum sim_option { /* up to SIM_N_NUMBERS, the value is a number, or the position of a word */
	SIM_LEAVES, SIM_HOSTS, SIM_SPINES, SIM_GBPS, SIM_LATENCY, SIM_QUEUE, SIM_FLOWS, SIM_BYTES, SIM_MESSAGES, SIM_CHUNK, SIM_PATHS, SIM_SPREAD,
	SIM_CONTROL, SIM_TARGET, SIM_CREDIT, SIM_GRANT, SIM_RTO, SIM_DEAD_AFTER, SIM_ACK_EVERY, SIM_LOST, SIM_LATE, SIM_TWICE, SIM_CORRUPT, SIM_RECEIVE, SIM_TIME,
	SIM_SEED, SIM_N_NUMBERS,
	SIM_JSON = SIM_N_NUMBERS, SIM_SVG, SIM_FORCE,
};
/* clang-format on */

extern const struct cli_opt sim_opts[];

struct sim_request {
	const struct sim_scenario *scenario;
	uint64_t value[SIM_N_NUMBERS];
	bool given[SIM_N_NUMBERS];
	bool json, force;
	const char *svg;
};

enum { SIM_MOST_SAMPLES = 256, SIM_MOST_RUNS = 4 };

struct sim_sample {
	uint64_t ns, queue_bytes; /* the longest queue since the previous sample */
	uint64_t bytes, second;   /* arrived so far: of all flows that are measured; of the victim, or of the slowest flow */
	unsigned n_done;
};

/* What one run has measured; times are 0 if they were not. */
struct sim_run {
	uint64_t varied; /* value of the option that the scenario varies */
	unsigned n_flows, n_done;
	uint64_t p50_ns, p99_ns, most_ns, ideal_ns;
	uint64_t queue_bytes, bound_bytes, dropped, again, timeouts;
	uint64_t victim_ns, victim_alone_ns;
	/* path-death: flows that had a time-out; times from the death until all that was in flight is acknowledged, in RTOs */
	unsigned n_hit, n_recovered;
	double rto_us, recovered_p50, recovered_most, returned; /* returned: from the return of the link to that of the last path */
	uint64_t paths_died;
	/* timely: in the second half of the time; Gbit/s */
	double gbit_per_s, jain, slowest, fastest;
	double peak_bytes; /* median of the peaks of the queue */
	unsigned n_samples;
	uint64_t step_ns;
	struct sim_sample sample[SIM_MOST_SAMPLES];
};

struct sim_result {
	const struct sim_request *q;
	unsigned n_runs;
	struct sim_run run[SIM_MOST_RUNS];
};

struct sim_plan;

struct sim_scenario {
	const char *name, *help;
	enum sim_option varies; /* the option that is varied, unless it is given on the command line */
	unsigned n_values;
	uint64_t values[SIM_MOST_RUNS];
	gpul_status (*plan)(struct sim_plan *p, gpul_error *err);
	uint64_t defaults[SIM_N_NUMBERS]; /* 0: as the other scenarios */
};

extern const struct sim_scenario sim_scenarios[]; /* ends with name NULL */
void sim_defaults(const struct sim_scenario *s, uint64_t value[SIM_N_NUMBERS]);

/** Parse the command line.
 *
 * @args  borrowed by *out
 * @out   the options
 * Errors  GPUL_EINVAL wrong usage; GPUL_ESYS the file of --svg exists */
gpul_status sim_request_parse(const struct cli_args *args, struct sim_request *out, gpul_error *err);

/** Run a scenario.
 *
 * @q    borrowed by *out
 * @out  filled
 * Errors  GPUL_EINVAL the options contradict each other; as gpul_fabric_run() */
gpul_status sim_measure(const struct sim_request *q, struct sim_result *out, gpul_error *err);

/* The value of an option as the command line has it; buf has room for 24 characters. */
const char *sim_value_text(enum sim_option option, uint64_t value, char *buf);

void sim_text(const struct sim_result *r, struct out *o);
void sim_json(const struct sim_result *r, struct json *j);
void sim_svg(const struct sim_result *r, struct out *o);

#endif
