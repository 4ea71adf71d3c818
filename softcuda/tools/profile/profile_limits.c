/* profile_limits.c — reports kernels whose counters exceed given limits, for exercises and for tests of kernels. */
#include "softcuda/tools/profile/profile_internal.h"

#include "core/file/file.h"
#include "softcuda/tools/tool_internal.h"

/* ---- counters -------------------------------------------------------------------------------------------------------------- */

static uint64_t instructions(const struct row_count *c)
{
	return c->warps;
}
static uint64_t branches(const struct row_count *c)
{
	return c->branches;
}
static uint64_t diverged(const struct row_count *c)
{
	return c->diverged;
}
static uint64_t sectors(const struct row_count *c)
{
	return c->memory.space[GLOBAL_MEMORY].actual + c->memory.space[LOCAL_MEMORY].actual;
}
static uint64_t excess_sectors(const struct row_count *c)
{
	return gpul_excess_sectors(&c->memory);
}
static uint64_t wavefronts(const struct row_count *c)
{
	return c->memory.space[SHARED_MEMORY].actual;
}
static uint64_t bank_conflicts(const struct row_count *c)
{
	return gpul_bank_conflicts(&c->memory);
}

/* The counters that exist for each source line; all other names are metrics, which metrics.c computes. */
static const struct counter {
	const char *name;
	uint64_t (*of)(const struct row_count *c);
} counters[] = {
	{ "instructions", instructions },
	{ "branches", branches },
	{ "diverged", diverged },
	{ "sectors", sectors },
	{ "excess-sectors", excess_sectors },
	{ "wavefronts", wavefronts },
	{ "bank-conflicts", bank_conflicts },
};

static const struct counter *find_counter(const char *name, size_t bytes)
{
	for (size_t k = 0; k < sizeof counters / sizeof *counters; k++)
		if (strlen(counters[k].name) == bytes && !memcmp(counters[k].name, name, bytes))
			return &counters[k];
	return NULL;
}

/* Find the value of a metric.  Returns false if there is no such metric. */
static bool find_metric(const struct kernel_result *k, const char *name, size_t bytes, double *value)
{
	struct metric m[MAX_METRICS];
	const unsigned n = gpul_profile_metrics(k, m);

	for (unsigned i = 0; i < n; i++) {
		if (strlen(m[i].name) == bytes && !memcmp(m[i].name, name, bytes)) {
			*value = m[i].value;
			return true;
		}
	}
	return false;
}

/* ---- limits ------------------------------------------------------------------------------------------------------------------ */

struct limit {
	const char *name;
	size_t name_bytes;
	double most;
};

/* Parse the next limit of *text and advance *text.  Returns false after a syntax error. */
static bool next_limit(const char **text, struct limit *out)
{
	const char *equals = strchr(*text, '=');
	char *end;

	if (!equals)
		return false;
	*out = (struct limit){ .name = *text, .name_bytes = (size_t)(equals - *text), .most = strtod(equals + 1, &end) };
	if (end == equals + 1 || (*end && *end != ',') || !(out->most >= 0))
		return false;
	*text = *end ? end + 1 : end;
	return true;
}

gpul_status gpul_profile_check_limits(const char *limits, gpul_error *err)
{
	static const struct plan no_plan;
	const struct kernel_result none = { .kernel = &no_plan };
	struct limit l;
	double unused;

	while (limits && *limits) {
		const char *at = limits;

		if (!next_limit(&limits, &l))
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "profile: a limit must be COUNTER=NUMBER, such as bank-conflicts=0, not '%.60s'", at);
		if (!find_counter(l.name, l.name_bytes) && !find_metric(&none, l.name, l.name_bytes, &unused))
			return gpul_fail(
				err, GPUL_EINVAL, 0,
				"profile: unknown counter '%.*s': expected instructions, branches, diverged, sectors, excess-sectors, "
				"wavefronts, bank-conflicts, or one of the \"metrics\" of a profile as JSON",
				(int)(l.name_bytes < 60 ? l.name_bytes : 60), l.name);
	}
	return GPUL_OK;
}

/* Describe the line of the kernel that has the highest count, as "; 992 of them at kernel.cu:12: TEXT OF THE LINE". */
static void describe_worst(const struct kernel_result *k, const struct counter *c, char *buf, size_t bytes)
{
	struct line_counts lines = { 0 };
	const struct line_count *worst = NULL;
	const char *text;

	*buf = '\0';
	if (c && gpul_profile_lines(k, &lines))
		for (size_t n = 0; n < lines.of.n; n++)
			if (!worst || c->of(&lines.of.at[n].count) > c->of(&worst->count))
				worst = &lines.of.at[n];
	if (worst) {
		text = worst->text ? worst->text + strspn(worst->text, " \t") : "";
		snprintf(buf, bytes, "\n%llu of them at %.60s:%u%s%.100s", (unsigned long long)c->of(&worst->count),
			 gpul_file_name(worst->file), worst->line, *text ? ": " : "", text);
	}
	gpul_profile_free_lines(&lines);
}

/* Check one limit.  Returns true if the limit was exceeded, which is then reported. */
static bool check_limit(const struct kernel_result *k, const struct limit *l)
{
	const struct counter *c = find_counter(l->name, l->name_bytes);
	double value = 0;
	char worst[240];

	if (c)
		value = (double)c->of(&k->sum);
	else
		find_metric(k, l->name, l->name_bytes, &value);
	if (value <= l->most)
		return false;
	describe_worst(k, c, worst, sizeof worst);
	gpul_tool_report("profile", "kernel %s: %.*s is %.10g, more than %.10g%s", SHOWN_NAME(k->kernel->name), (int)l->name_bytes, l->name,
			 value, l->most, worst);
	return true;
}

void gpul_profile_limit(const struct profile *p, const char *limits)
{
	bool exceeded = false;
	struct limit l;

	if (!p->kernels.n)
		return;
	for (const char *rest = limits; *rest && next_limit(&rest, &l);)
		for (size_t n = 0; n < p->kernels.n; n++)
			exceeded |= check_limit(&p->kernels.at[n], &l);
	if (!exceeded)
		gpul_tool_say("profile", "the counters are within their limits: %.200s", limits);
}
