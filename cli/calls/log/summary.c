/* summary.c — counts for each function how often it was called, how long the calls took, and how many failed. */
#include <stdlib.h>

#include "cli/calls/log/sink.h"

void sink_add_total(struct sink *s, const struct calls_event *e)
{
	struct sink_total *t = &s->totals[e->row - calls_rows];

	t->n++;
	t->ns += e->duration_ns;
	t->n_errors += calls_failed(e);
	s->n_calls++;
}

static const struct sink_total *sorted_totals; /* a global variable, because qsort() passes no context to compare_time() */

static int compare_time(const void *a, const void *b)
{
	const struct sink_total *x = &sorted_totals[*(const uint32_t *)a], *y = &sorted_totals[*(const uint32_t *)b];

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : x->n != y->n ? (x->n < y->n ? 1 : -1) : 0;
}

static void add_text_row(struct out *o, const char *name, const struct sink_total *t, uint64_t all_ns)
{
	out_add(o, "%6.2f %14.3f %12.3f %9llu %7llu  %s\n", all_ns ? 100.0 * (double)t->ns / (double)all_ns : 0.0, (double)t->ns / 1e3,
		t->n ? (double)t->ns / (double)t->n / 1e3 : 0.0, (unsigned long long)t->n, (unsigned long long)t->n_errors, name);
}

static void add_json_row(struct json *j, const char *name, const struct sink_total *t)
{
	json_begin(j, NULL, '{');
	json_text(j, "call", name);
	json_u64(j, "calls", t->n);
	json_u64(j, "total_ns", t->ns);
	json_u64(j, "errors", t->n_errors);
	json_end(j, '}');
}

void sink_end_summary(struct sink *s)
{
	uint32_t *order = calloc(n_calls_rows, sizeof *order);
	struct sink_total all = { 0 };
	size_t n = 0;

	for (uint32_t i = 0; order && i < n_calls_rows; i++) {
		if (!s->totals[i].n)
			continue;
		order[n++] = i;
		all.n += s->totals[i].n;
		all.ns += s->totals[i].ns;
		all.n_errors += s->totals[i].n_errors;
	}
	sorted_totals = s->totals;
	if (order)
		qsort(order, n, sizeof *order, compare_time);
	if (s->summary_is_json) {
		json_begin(&s->json, NULL, '{');
		json_begin(&s->json, "calls", '[');
	} else {
		out_text(&s->json.out, "% time       total us      mean us     calls  errors  call\n");
	}
	for (size_t i = 0; i < n; i++) {
		if (s->summary_is_json)
			add_json_row(&s->json, calls_rows[order[i]].name, &s->totals[order[i]]);
		else
			add_text_row(&s->json.out, calls_rows[order[i]].name, &s->totals[order[i]], all.ns);
	}
	if (s->summary_is_json) {
		json_end(&s->json, ']');
		json_u64(&s->json, "lost", s->n_lost);
		json_end(&s->json, '}');
		out_text(&s->json.out, "\n");
	} else {
		add_text_row(&s->json.out, "all", &all, all.ns);
	}
	free(order);
}
