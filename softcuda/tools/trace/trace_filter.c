/* trace_filter.c — selects the instructions that a trace records: --trace-only and --blocks. */
#include "softcuda/tools/trace/trace_internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const key_names[TRACE_N_KEYS] = { "kernel", "op", "line", "ptx", "warp", "launch", "block" };

/* Parse "7" or "7-9". */
static bool parse_range(const char *text, uint64_t *first, uint64_t *last)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*first = *last = strtoull(text, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		*last = strtoull(end + 1, &end, 10);
	return !*end && *first <= *last;
}

static gpul_status add_term(struct trace_filter *f, enum trace_key key, const char *value, gpul_error *err)
{
	struct trace_term *t = &f->term[f->n];

	if (f->n == TRACE_MAX_TERMS)
		return gpul_fail(err, GPUL_EINVAL, 0, "trace: a filter has at most %d values", TRACE_MAX_TERMS);
	*t = (struct trace_term){ .key = key };
	if (key == TRACE_BY_KERNEL || key == TRACE_BY_OP) {
		t->name = strdup(value);
		if (!t->name)
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a filter");
	} else if (!parse_range(value, &t->first, &t->last)) {
		return gpul_fail(err, GPUL_EINVAL, 0, "trace: %s needs a number or a range such as 4-7, not '%.40s'", key_names[key],
				 value);
	}
	f->by[key] = true;
	f->n++;
	return GPUL_OK;
}

gpul_status gpul_trace_filter_add(struct trace_filter *filter, const char *text, bool blocks, gpul_error *err)
{
	char *copy = strdup(text), *rest = copy, *word;
	enum trace_key key = blocks ? TRACE_BY_BLOCK : TRACE_N_KEYS;
	gpul_status st = copy ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a filter");

	while (!st && (word = strsep(&rest, ","))) {
		char *equals = blocks ? NULL : strchr(word, '=');

		if (equals) {
			*equals = '\0';
			for (key = 0; key < TRACE_BY_BLOCK && strcmp(key_names[key], word) != 0; key++)
				continue;
			if (key == TRACE_BY_BLOCK)
				st = gpul_fail(err, GPUL_EINVAL, 0,
					       "trace: a filter can select by kernel, op, line, ptx, warp or launch, not by '%.40s'", word);
			word = equals + 1;
		}
		if (!st && key == TRACE_N_KEYS)
			st = gpul_fail(err, GPUL_EINVAL, 0, "trace: a filter must begin with KEY=, such as line=7-9, not with '%.40s'",
				       word);
		if (!st)
			st = add_term(filter, key, word, err);
	}
	free(copy);
	return st;
}

void gpul_trace_filter_clear(struct trace_filter *f)
{
	for (unsigned k = 0; k < f->n; k++)
		free(f->term[k].name);
	*f = (struct trace_filter){ 0 };
}

bool gpul_trace_selects(const struct trace_filter *filter, enum trace_key key, uint64_t number)
{
	if (!filter->by[key])
		return true;
	for (unsigned k = 0; k < filter->n; k++)
		if (filter->term[k].key == key && number >= filter->term[k].first && number <= filter->term[k].last)
			return true;
	return false;
}

/* True if `prefix` selects `name`: op=ld.global also selects ld.global.f32, but op=ld does not select ldmatrix. */
static bool is_prefix(const char *prefix, const char *name)
{
	const size_t n = strlen(prefix);

	return !strncmp(prefix, name, n) && (!name[n] || name[n] == '.');
}

bool gpul_trace_selects_name(const struct trace_filter *filter, enum trace_key key, const char *name)
{
	if (!filter->by[key])
		return true;
	for (unsigned k = 0; k < filter->n; k++) {
		const struct trace_term *t = &filter->term[k];

		if (t->key == key && (key == TRACE_BY_OP ? is_prefix(t->name, name) : strstr(name, t->name) != NULL))
			return true;
	}
	return false;
}
