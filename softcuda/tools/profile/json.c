/* json.c — writes all counters as JSON. */
#include "softcuda/tools/profile/profile_internal.h"
#include "softcuda/tools/tool_internal.h"

/* Write a JSON string.  Source: RFC 8259, 7. */
void gpul_profile_json_text(FILE *to, const char *text)
{
	fputc('"', to);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(to, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(to, "\\u%04x", *c);
		else
			fputc(*c, to);
	}
	fputc('"', to);
}

static void print_key(FILE *to, const char *key, const char *text)
{
	fprintf(to, "\"%s\": ", key);
	gpul_profile_json_text(to, text);
}

static void print_counts(FILE *to, const struct row_count *c)
{
	static const char *const names[] = { "global", "local", "shared" };

	fprintf(to, "\"executed\": %llu, \"threads\": %llu, \"threads_on\": %llu", (unsigned long long)c->warps,
		(unsigned long long)c->threads, (unsigned long long)c->guarded);
	if (c->branches)
		fprintf(to, ", \"branches\": %llu, \"diverged\": %llu", (unsigned long long)c->branches, (unsigned long long)c->diverged);
	for (unsigned k = 0; k < N_SPACES; k++) {
		const struct space_count *s = &c->memory.space[k];

		if (!s->requests)
			continue;
		fprintf(to, ", \"%s\": {\"requests\": %llu, \"%s\": %llu, \"ideal\": %llu", names[k], (unsigned long long)s->requests,
			k == SHARED_MEMORY ? "wavefronts" : "sectors", (unsigned long long)s->actual, (unsigned long long)s->ideal);
		if (k != SHARED_MEMORY)
			fprintf(to, ", \"lines\": %llu", (unsigned long long)s->lines);
		fprintf(to, "}");
	}
}

static void print_three(FILE *to, const char *key, const uint32_t v[3])
{
	fprintf(to, "\"%s\": [%u, %u, %u]", key, v[0], v[1], v[2]);
}

static void print_shapes(FILE *to, const struct plan *k)
{
	fprintf(to, "  \"launches\": %llu, \"shapes\": [", (unsigned long long)k->n_launches);
	for (unsigned n = 0; n < k->n_shapes; n++) {
		fprintf(to, "%s{", n ? ", " : "");
		print_three(to, "grid", k->shapes[n].grid);
		fprintf(to, ", ");
		print_three(to, "block", k->shapes[n].block);
		fprintf(to, ", \"shared_bytes\": %u, \"launches\": %llu}", k->shapes[n].shared_bytes, (unsigned long long)k->shapes[n].n);
	}
	fprintf(to, "],\n");
}

static void print_metrics(FILE *to, const struct kernel_result *k)
{
	struct metric m[MAX_METRICS];
	const unsigned n = gpul_profile_metrics(k, m);

	fprintf(to, "  \"metrics\": {");
	for (unsigned i = 0; i < n; i++)
		fprintf(to, m[i].whole ? "%s\n   \"%s\": %.0f" : "%s\n   \"%s\": %.4f", i ? "," : "", m[i].name, m[i].value);
	fprintf(to, "},\n");
}

static void print_opcodes(FILE *to, const struct kernel_result *k)
{
	struct opcode_count counts[GPUL_PTX_N_OPCODES];
	const unsigned n = gpul_profile_opcodes(k, counts);

	fprintf(to, "  \"opcodes\": {");
	for (unsigned i = 0; i < n; i++)
		fprintf(to, "%s\"%s\": %llu", i ? ", " : "", gpul_ptx_opcode_text((gpul_ptx_opcode)counts[i].opcode),
			(unsigned long long)counts[i].warps);
	fprintf(to, "},\n");
}

static void print_lines(FILE *to, const struct kernel_result *k)
{
	struct line_counts lines = { 0 };

	fprintf(to, "  \"lines\": [");
	for (size_t n = gpul_profile_lines(k, &lines) ? 0 : lines.of.n; n < lines.of.n; n++) {
		const struct line_count *l = &lines.of.at[n];

		fprintf(to, "%s\n   {", n ? "," : "");
		print_key(to, "file", l->file);
		fprintf(to, ", \"line\": %u, ", l->line);
		print_counts(to, &l->count);
		fprintf(to, "}");
	}
	fprintf(to, "],\n");
	gpul_profile_free_lines(&lines);
}

static void print_instructions(FILE *to, const struct function_result *f)
{
	fprintf(to, "   \"instructions\": [");
	for (size_t n = 0; n < f->function->rows.n; n++) {
		const struct row *r = &f->function->rows.at[n];

		fprintf(to, "%s\n    {\"ptx_line\": %u, ", n ? "," : "", r->line);
		if (r->source_line) {
			print_key(to, "source", f->function->sources.at[r->source]);
			fprintf(to, ", \"source_line\": %u, ", r->source_line);
		}
		if (r->at_line) {
			print_key(to, "inlined_at", f->function->sources.at[r->at_source]);
			fprintf(to, ", \"inlined_at_line\": %u, ", r->at_line);
		}
		print_key(to, "ptx", r->text);
		fprintf(to, ", ");
		print_counts(to, &f->rows[n]);
		fprintf(to, "}");
	}
	fprintf(to, "]");
}

static void print_functions(FILE *to, const struct kernel_result *k)
{
	fprintf(to, "  \"functions\": [");
	for (size_t n = 0; n < k->functions.n; n++) {
		const struct function_result *f = &k->functions.at[n];

		fprintf(to, "%s\n   {", n ? "," : "");
		print_key(to, "name", f->function->name);
		fprintf(to, ", ");
		print_key(to, "ptx_file", f->function->file);
		fprintf(to, ",\n");
		print_instructions(to, f);
		fprintf(to, "}");
	}
	fprintf(to, "]}");
}

void gpul_profile_write_json(const struct profile *p, FILE *to)
{
	fprintf(to,
		"{\"architecture\": \"sm_%u\", \"counts\": \"PTX instructions, executed by warps\", \"registers\": \"%s\",\n \"kernels\": [",
		p->architecture->sm, p->registers_given ? "given" : "estimated");
	for (size_t n = 0; n < p->kernels.n; n++) {
		const struct kernel_result *k = &p->kernels.at[n];

		fprintf(to, "%s\n {", n ? "," : "");
		print_key(to, "kernel", k->kernel->name);
		fprintf(to, ", ");
		print_key(to, "demangled", SHOWN_NAME(k->kernel->name));
		fprintf(to, ",\n");
		print_shapes(to, k->kernel);
		print_metrics(to, k);
		print_opcodes(to, k);
		print_lines(to, k);
		print_functions(to, k);
	}
	fprintf(to, "]}\n");
}
