/* profile_table.c — writes the profile as text: for each kernel its totals, the lines with the highest counts, and counts by opcode. */
#include "softcuda/tools/profile/profile_internal.h"
#include "softcuda/tools/tool_internal.h"

#include "core/file/file.h"

enum { HOT_LINES = 16, TOP_OPCODES = 8 };

static void print_dim(FILE *to, const char *name, const uint32_t d[3])
{
	fprintf(to, "%s %u", name, d[0]);
	if (d[1] > 1 || d[2] > 1)
		fprintf(to, "x%u", d[1]);
	if (d[2] > 1)
		fprintf(to, "x%u", d[2]);
}

static void print_launches(FILE *to, const struct plan *k)
{
	fprintf(to, "kernel %s: %llu launch%s", SHOWN_NAME(k->name), (unsigned long long)k->n_launches, k->n_launches == 1 ? "" : "es");
	for (unsigned n = 0; n < k->n_shapes && n < 3; n++) {
		const struct launch_shape *s = &k->shapes[n];

		print_dim(to, n ? "; grid" : ", grid", s->grid);
		print_dim(to, ", block", s->block);
		if (s->shared_bytes)
			fprintf(to, ", %u bytes of shared memory", s->shared_bytes);
	}
	fprintf(to, "%s\n", k->n_shapes > 3 ? "; ..." : "");
}

static void print_sectors(FILE *to, const char *name, const struct space_count *c)
{
	if (c->requests)
		fprintf(to, "  %-18s %llu requests, %llu sectors: %.1f each, %.1f ideal; %llu lines\n", name,
			(unsigned long long)c->requests, (unsigned long long)c->actual, gpul_ratio(c->actual, c->requests),
			gpul_ratio(c->ideal, c->requests), (unsigned long long)c->lines);
}

static void print_memory(FILE *to, const struct kernel_result *k)
{
	static const char *const global[] = { "global loads", "global stores", "global atomics", "global reductions",
					      "global async copies" };
	static const char *const local[] = { "local loads", "local stores", "local atomics", "local reductions", "local async copies" };
	static const char *const shared[] = { "shared loads", "shared stores", "shared atomics", "shared reductions",
					      "shared async copies" };

	for (unsigned by = 0; by < N_ACCESS_BY; by++)
		print_sectors(to, global[by], &k->by[by].space[GLOBAL_MEMORY]);
	for (unsigned by = 0; by < N_ACCESS_BY; by++)
		print_sectors(to, local[by], &k->by[by].space[LOCAL_MEMORY]);
	for (unsigned by = 0; by < N_ACCESS_BY; by++) {
		const struct space_count *c = &k->by[by].space[SHARED_MEMORY];

		if (c->requests)
			fprintf(to, "  %-18s %llu requests, %llu wavefronts, %llu of them by bank conflicts\n", shared[by],
				(unsigned long long)c->requests, (unsigned long long)c->actual, (unsigned long long)(c->actual - c->ideal));
	}
}

static const char *limit_name(const struct occupancy *o)
{
	return o->blocks == o->by_warps       ? "warps"
	       : o->blocks == o->by_registers ? "registers"
	       : o->blocks == o->by_shared    ? "shared memory"
					      : "blocks";
}

static void print_sums(FILE *to, const struct profile *p, const struct kernel_result *k)
{
	const struct row_count *c = &k->sum;
	const struct occupancy *o = &k->occupancy;

	fprintf(to, "  %-18s %llu, with %.1f of 32 lanes active (%.1f not predicated off)\n", "instructions", (unsigned long long)c->warps,
		gpul_ratio(c->threads, c->warps), gpul_ratio(c->guarded, c->warps));
	if (c->branches)
		fprintf(to, "  %-18s %llu, %llu of them diverged (%.1f %%)\n", "branches", (unsigned long long)c->branches,
			(unsigned long long)c->diverged, 100 * gpul_ratio(c->diverged, c->branches));
	print_memory(to, k);
	fprintf(to, "  %-18s %.0f %% (%u of %u warps) on sm_%u with %u registers%s; limited by %s\n\n", "occupancy", o->percent, o->warps,
		p->architecture->max_warps, p->architecture->sm, k->registers, p->registers_given ? "" : ", an estimate", limit_name(o));
}

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

static int by_heat(const void *a, const void *b)
{
	const struct line_count *l = *(const struct line_count *const *)a, *m = *(const struct line_count *const *)b;

	if (l->count.warps != m->count.warps)
		return l->count.warps > m->count.warps ? -1 : 1;
	return l < m ? -1 : l > m;
}

static int by_address(const void *a, const void *b)
{
	const struct line_count *l = *(const struct line_count *const *)a, *m = *(const struct line_count *const *)b;

	return l < m ? -1 : l > m;
}

static void print_count(FILE *to, uint64_t n, bool shown)
{
	if (shown)
		fprintf(to, " %10llu", (unsigned long long)n);
	else
		fprintf(to, " %10s", ".");
}

static void print_line(FILE *to, const struct line_count *l, const struct row_count *sum)
{
	const struct row_count *c = &l->count;
	const uint64_t sectors = c->memory.space[GLOBAL_MEMORY].actual + c->memory.space[LOCAL_MEMORY].actual;
	char place[40];
	const char *text = l->text;

	snprintf(place, sizeof place, "%.28s:%u", gpul_file_name(l->file), l->line);
	fprintf(to, "  %-24s %10llu %5.1f %5.1f", place, (unsigned long long)c->warps, 100 * gpul_ratio(c->warps, sum->warps),
		gpul_ratio(c->threads, c->warps));
	print_count(to, c->diverged, c->branches);
	print_count(to, sectors, sectors);
	print_count(to, gpul_excess_sectors(&c->memory), sectors);
	print_count(to, gpul_bank_conflicts(&c->memory), c->memory.space[SHARED_MEMORY].requests);
	while (text && (*text == ' ' || *text == '\t'))
		text++;
	fprintf(to, "  %.60s\n", text ? text : "");
}

static void print_lines(FILE *to, const struct kernel_result *k)
{
	struct line_counts lines = { 0 };
	const struct line_count **hot;
	size_t n = 0, shown;

	if (!gpul_profile_lines(k, &lines) || !(hot = calloc(lines.of.n + 1, sizeof *hot))) {
		gpul_profile_free_lines(&lines);
		return;
	}
	for (size_t r = 0; r < lines.of.n; r++)
		if (lines.of.at[r].count.warps)
			hot[n++] = &lines.of.at[r];
	qsort(hot, n, sizeof *hot, by_heat);
	shown = n < HOT_LINES ? n : HOT_LINES;
	qsort(hot, shown, sizeof *hot, by_address);
	fprintf(to, "  %-24s %10s %5s %5s %10s %10s %10s %10s\n", "line", "executed", "%", "lanes", "diverged", "sectors", "excess",
		"conflicts");
	for (size_t r = 0; r < shown; r++)
		print_line(to, hot[r], &k->sum);
	if (shown < n)
		fprintf(to, "  and %zu lines that were executed less often\n", n - shown);
	fprintf(to, "\n");
	free(hot);
	gpul_profile_free_lines(&lines);
}

static void print_opcodes(FILE *to, const struct kernel_result *k)
{
	struct opcode_count counts[GPUL_PTX_N_OPCODES];
	const unsigned n = gpul_profile_opcodes(k, counts);

	fprintf(to, "  opcodes:");
	for (unsigned r = 0; r < n && r < TOP_OPCODES; r++)
		fprintf(to, "%s %s %llu", r ? "," : "", gpul_ptx_opcode_text((gpul_ptx_opcode)counts[r].opcode),
			(unsigned long long)counts[r].warps);
	fprintf(to, "%s\n\n", n > TOP_OPCODES ? ", ..." : "");
}

void gpul_profile_write_table(const struct profile *p, FILE *to)
{
	for (size_t n = 0; n < p->kernels.n; n++) {
		const struct kernel_result *k = &p->kernels.at[n];

		print_launches(to, k->kernel);
		print_sums(to, p, k);
		print_lines(to, k);
		print_opcodes(to, k);
	}
	fprintf(to, p->kernels.n
			    ? "PTX instructions are counted, once for each warp; ptxas translates them to other machine instructions.\n"
			    : "no kernel was executed\n");
}
