/* lines.c — sums up the counts of a kernel by source line and by opcode. */
#include "softcuda/tools/profile/profile_internal.h"

uint64_t gpul_excess_sectors(const struct memory_count *m)
{
	return m->space[GLOBAL_MEMORY].actual - m->space[GLOBAL_MEMORY].ideal + m->space[LOCAL_MEMORY].actual -
	       m->space[LOCAL_MEMORY].ideal;
}

uint64_t gpul_bank_conflicts(const struct memory_count *m)
{
	return m->space[SHARED_MEMORY].actual - m->space[SHARED_MEMORY].ideal;
}

static int by_place(const void *a, const void *b)
{
	const struct line_count *l = a, *m = b;
	const int files = strcmp(l->file, m->file);

	return files ? files : l->line < m->line ? -1 : l->line > m->line;
}

bool gpul_profile_lines(const struct kernel_result *k, struct line_counts *out)
{
	size_t n = 0;

	for (size_t f = 0; f < k->functions.n; f++) {
		const struct plan *p = k->functions.at[f].function;

		for (size_t r = 0; r < p->rows.n; r++) {
			const struct row *row = &p->rows.at[r];
			struct line_count *l = gpul_array_push(&out->of);

			if (!l)
				return false;
			l->file = row->source_line ? p->sources.at[row->source] : p->file;
			l->line = row->source_line ? row->source_line : row->line;
			l->count = k->functions.at[f].rows[r];
		}
	}
	qsort(out->of.at, out->of.n, sizeof *out->of.at, by_place);
	for (size_t r = 0; r < out->of.n; r++) {
		if (n && !by_place(&out->of.at[n - 1], &out->of.at[r]))
			gpul_add_counts(&out->of.at[n - 1].count, &out->of.at[r].count);
		else
			out->of.at[n++] = out->of.at[r];
	}
	out->of.n = n;
	for (size_t r = 0; r < n; r++)
		out->of.at[r].text = gpul_source_line(out->of.at[r].file, out->of.at[r].line);
	return true;
}

void gpul_profile_free_lines(struct line_counts *l)
{
	gpul_array_free(&l->of);
}

static int by_count(const void *a, const void *b)
{
	const struct opcode_count *o = a, *p = b;

	if (o->warps != p->warps)
		return o->warps > p->warps ? -1 : 1;
	return (int)o->opcode - (int)p->opcode;
}

unsigned gpul_profile_opcodes(const struct kernel_result *k, struct opcode_count out[GPUL_PTX_N_OPCODES])
{
	unsigned n = 0;

	for (unsigned op = 0; op < GPUL_PTX_N_OPCODES; op++)
		out[op] = (struct opcode_count){ .opcode = (uint16_t)op };
	for (size_t f = 0; f < k->functions.n; f++) {
		const struct function_result *r = &k->functions.at[f];

		for (size_t row = 0; row < r->function->rows.n; row++) {
			out[r->function->rows.at[row].opcode].warps += r->rows[row].warps;
			out[r->function->rows.at[row].opcode].threads += r->rows[row].threads;
		}
	}
	qsort(out, GPUL_PTX_N_OPCODES, sizeof *out, by_count);
	while (n < GPUL_PTX_N_OPCODES && out[n].warps)
		n++;
	return n;
}
