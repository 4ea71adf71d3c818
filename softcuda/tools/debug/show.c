/* show.c — implements the commands that show the state of kernels: warps, frames, registers, memory, code. */
#include "softcuda/tools/debug/command_internal.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- overview: launches, blocks, warps ------------------------------------------------------------------------------ */

static void print_place(FILE *out, const struct place *p)
{
	char name[TEXT_BYTES];

	gpul_debug_ptx_name(p->code->program, name, sizeof name);
	fprintf(out, "function=%s\tprogram=%" PRIu64 "\tptx=%s\tptxline=%u\tfile=%s\tline=%u", SHOWN_NAME(p->function),
		p->code->program->id, name, p->ptx_line, p->file ? p->file : "", p->line);
}

gpul_status gpul_debug_show_status(const struct call *c)
{
	const struct stop *stop = &c->d->stop;
	const struct warp_state *s = stop->warp;

	fprintf(c->out, "- state=%s\treason=%s\tcount=%" PRIu64 "\tback=%d\t",
		stop->reason       ? "stopped"
		: c->d->configured ? "running"
				   : "waiting",
		stop->reason ? stop->reason : "", c->d->count, c->d->has_snapshot && c->d->alone);
	if (s) {
		const struct place p = gpul_debug_place(s->frame->code, stop->insn);
		const gpul_ptx_inst *in = gpul_insn_ptx(s->frame->code, stop->insn);
		char text[512] = "";

		if (in)
			gpul_ptx_print_inst(p.code->program->module, p.code->ptx, in, text, sizeof text);
		fprintf(c->out, "kernel=%s\tblock=%" PRIu64 "\twarp=%u\tlane=%u\tmask=%08x\tlive=%08x\tdepth=%u\t",
			SHOWN_NAME(s->block->launch->kernel->info.name), gpul_debug_block_index(s->block), s->index, stop->lane, s->w.mask,
			s->w.live, s->frame->depth);
		print_place(c->out, &p);
		fputs("\tinsn=", c->out);
		gpul_debug_print_text(c->out, text);
		putc('\t', c->out);
	}
	fputs("text=", c->out);
	gpul_debug_print_text(c->out, stop->text);
	putc('\n', c->out);
	return GPUL_OK;
}

/* Print a line for each group of lanes that have the same program counter. */
static void print_warp(const struct call *c, struct warp_state *s)
{
	static const char *const states[] = { "ready", "passed", "sync", "barrier" };
	uint32_t left = s->w.live;

	if (!s->n_splits || !left) {
		fprintf(c->out, "- block=%" PRIu64 "\twarp=%u\tmask=00000000\tlive=%08x\tstate=ended\n", gpul_debug_block_index(s->block),
			s->index, s->w.live);
		return;
	}
	for (; left;) {
		const unsigned lane = first_lane(left);
		const struct split *p = gpul_debug_split_of(s, lane);
		const struct insn *i;
		struct frame *frame;
		struct place place;
		uint32_t mask;

		i = gpul_debug_lane_at(c->d, s, lane, &frame, &mask);
		left &= ~mask & ~(1u << lane);
		if (!frame)
			continue;
		place = gpul_debug_place(frame->code, i);
		fprintf(c->out, "- block=%" PRIu64 "\twarp=%u\tmask=%08x\tlive=%08x\tstate=%s\tbarrier=%u\t",
			gpul_debug_block_index(s->block), s->index, mask, s->w.live,
			s == c->d->stop.warp && mask == s->w.mask ? "current"
			: p                                       ? states[p->state]
								  : "ready",
			p ? p->barrier : 0);
		print_place(c->out, &place);
		putc('\n', c->out);
	}
}

gpul_status gpul_debug_show_warps(const struct call *c)
{
	enum { MOST_WARPS = 4096 };
	unsigned n = 0;

	if (!c->d->stop.reason)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "no kernel is stopped: pause the running kernel first");
	for (size_t k = 0; k < c->d->resident.n; k++)
		for (unsigned w = 0; w < c->d->resident.at[k]->n_warps && n < MOST_WARPS; w++, n++)
			print_warp(c, &c->d->resident.at[k]->warps[w]);
	return GPUL_OK;
}

gpul_status gpul_debug_show_frames(const struct call *c)
{
	const struct insn *i;
	struct lane at;
	gpul_status st = gpul_debug_find_lane(c, &at, &i);

	for (const struct frame *f = at.frame; !st && f; f = f->parent) {
		const struct place p = gpul_debug_place(f->code, i);

		fprintf(c->out, "- depth=%u\t", f->depth);
		print_place(c->out, &p);
		putc('\n', c->out);
		i = f->return_to ? f->return_to - 1 : NULL;
	}
	return st;
}

/* ---- values -------------------------------------------------------------------------------------------------------------- */

static void register_name(const struct func_code *code, uint32_t flat, char *buf, size_t bytes)
{
	static const char parts[] = "xyzw";
	const gpul_ptx_regs *r = gpul_ptx_reg_row(code->ptx, flat);
	const char *base = gpul_ptx_name(code->program->module, r->name);
	const uint32_t n = flat - r->first;

	snprintf(buf, bytes, r->ranged ? "%s%u" : "%s", base, n / r->vector);
	if (r->vector > 1)
		snprintf(buf + strlen(buf), bytes - strlen(buf), ".%c", parts[n % r->vector]);
}

static void print_value_row(const struct call *c, const char *name, const char *type, const struct value *v)
{
	fprintf(c->out, "- name=%s\ttype=%s\tvalue=", name, type);
	gpul_debug_print_value(c->out, v);
	fprintf(c->out, "\tbits=0x%" PRIx64 "\n", v->u);
}

gpul_status gpul_debug_show_registers(const struct call *c)
{
	const struct insn *i;
	struct lane at;
	gpul_status st = gpul_debug_find_lane(c, &at, &i);

	for (uint32_t flat = 0; !st && flat < at.frame->code->ptx->n_flat_regs; flat++) {
		char name[TEXT_BYTES];
		struct value v;

		if (!gpul_debug_register(&at, flat, &v))
			continue;
		register_name(at.frame->code, flat, name, sizeof name);
		print_value_row(c, name, gpul_debug_type_name(gpul_debug_register_type(at.frame->code, flat)), &v);
	}
	return st;
}

gpul_status gpul_debug_show_specials(const struct call *c)
{
	static const char *const names[] = { "%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
					     "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
					     "%nctaid.y", "%nctaid.z", "%laneid",  "%warpid",  "%nwarpid" };
	const struct insn *i;
	struct lane at;
	struct value v;
	gpul_status st = gpul_debug_find_lane(c, &at, &i);

	for (unsigned k = 0; !st && k < sizeof names / sizeof names[0]; k++)
		if (gpul_debug_special(&at, names[k], strlen(names[k]), &v))
			print_value_row(c, names[k], "u32", &v);
	return st;
}

static void print_parameter(const struct call *c, const gpul_ptx_module *m, const gpul_ptx_var *v, const uint8_t *bytes, uint32_t n_bytes)
{
	const char *name = gpul_ptx_name(m, v->name);
	struct value value;

	if (!v->n_dims && v->vector <= 1 && gpul_ptx_type_bytes(v->type) && gpul_ptx_type_bytes(v->type) <= 8) {
		value = gpul_debug_load(bytes, v->type);
		print_value_row(c, name, gpul_debug_type_name(v->type), &value);
		return;
	}
	fprintf(c->out, "- name=%s\ttype=%s[%u]\tvalue=", name, gpul_debug_type_name(v->type), n_bytes);
	for (uint32_t k = 0; k < n_bytes && k < 64; k++)
		fprintf(c->out, "%02x", bytes[k]);
	fputs(n_bytes > 64 ? "...\tbits=\n" : "\tbits=\n", c->out);
}

gpul_status gpul_debug_show_params(const struct call *c)
{
	const struct insn *i;
	struct lane at;
	gpul_status st = gpul_debug_find_lane(c, &at, &i);
	const struct func_code *code = st ? NULL : at.frame->code;

	for (uint32_t k = 0; !st && k < code->ptx->n_params; k++) {
		const bool kernel = !at.frame->parent;
		const struct local_slot *slot = &code->params[k];
		const uint8_t *bytes = slot->offset == UINT32_MAX ? NULL
				       : kernel                   ? at.warp->params + slot->offset
						: at.warp->local + at.index * at.warp->local_stride + at.frame->local_offset + slot->offset;

		if (bytes)
			print_parameter(c, code->program->module, &code->ptx->params[k], bytes, slot->bytes);
	}
	return st;
}

/* Print those variables of the function and of its module that are in memory. */
gpul_status gpul_debug_show_variables(const struct call *c)
{
	const struct insn *i;
	struct lane at;
	gpul_status st = gpul_debug_find_lane(c, &at, &i);
	const struct func_code *code = st ? NULL : at.frame->code;

	for (uint32_t k = 0; !st && k < code->ptx->n_vars; k++) {
		const gpul_ptx_var *v = &code->ptx->vars[k];
		const uint64_t address = code->var_address && code->var_address[k] ? code->var_address[k] : code->var_offset[k];

		fprintf(c->out, "- name=%s\tspace=%s\ttype=%s\taddress=%" PRIu64 "\tbytes=%" PRIu64 "\n",
			SHOWN_NAME(gpul_ptx_name(code->program->module, v->name)), gpul_debug_type_name(v->space),
			gpul_debug_type_name(v->type),
			address + (v->space == GPUL_PTX_MOD_LOCAL || v->space == GPUL_PTX_MOD_PARAM ? at.frame->local_offset : 0),
			v->bytes);
	}
	for (uint32_t k = 0; !st && k < code->program->module->n_vars; k++) {
		const gpul_ptx_module *m = code->program->module;
		const gpul_ptx_var *v = &m->vars[k];
		const bool shared = v->space == GPUL_PTX_MOD_SHARED;

		fprintf(c->out, "- name=%s\tspace=%s\ttype=%s\taddress=%" PRIu64 "\tbytes=%" PRIu64 "\n",
			SHOWN_NAME(gpul_ptx_name(m, v->name)), gpul_debug_type_name(v->space), gpul_debug_type_name(v->type),
			shared ? code->program->shared_offset[k] : code->program->variables[k].address,
			shared && !v->bytes ? at.warp->shared_bytes - code->program->shared_offset[k] : v->bytes);
	}
	if (!st)
		fprintf(c->out, "- name=\tspace=shared\ttype=b8\taddress=0\tbytes=%u\n- name=\tspace=local\ttype=b8\taddress=0\tbytes=%u\n",
			at.warp->shared_bytes, at.warp->local_bytes);
	return st;
}

/* Command: evaluate BLOCK WARP LANE FRAME EXPRESSION; if LANE is "lanes", the expression is evaluated in each lane. */
gpul_status gpul_debug_show_evaluate(const struct call *c)
{
	const struct insn *i;
	struct lane at = { .memory = c->d->memory };
	struct value v;
	gpul_status st;

	if (c->n < 6)
		return gpul_debug_usage(c, "block, warp, lane, frame, expression");
	st = c->d->stop.warp ? gpul_debug_find_lane(c, &at, &i) : GPUL_OK;
	if (!st)
		st = gpul_debug_evaluate(&at, c->word[5], &v, c->err);
	if (!st)
		print_value_row(c, "", v.kind == VALUE_FLOAT ? "float" : v.kind == VALUE_INT ? "int" : "unsigned", &v);
	return st;
}

gpul_status gpul_debug_show_lanes(const struct call *c)
{
	const struct insn *i;
	struct lane at;
	gpul_status st = gpul_debug_find_lane(c, &at, &i);

	if (!st && c->n < 6)
		return gpul_debug_usage(c, "block, warp, lane, frame, expression");
	for (unsigned l = 0; !st && l < LANES; l++) {
		gpul_error why = { 0 };
		struct value v;
		char name[8];

		at.index = l;
		snprintf(name, sizeof name, "%u", l);
		if (gpul_debug_evaluate(&at, c->word[5], &v, &why))
			return gpul_fail(c->err, why.status, 0, "%s", why.text);
		print_value_row(c, name, "", &v);
	}
	return st;
}

/* Command: memory SPACE ADDRESS BYTES [BLOCK WARP LANE]: prints hexadecimal digits, up to the first unreadable byte */
gpul_status gpul_debug_show_memory(const struct call *c)
{
	enum { MOST_BYTES = 1 << 20 };
	const unsigned space = c->n > 1 && !strcmp(c->word[1], "shared")  ? SPACE_SHARED
			       : c->n > 1 && !strcmp(c->word[1], "local") ? SPACE_LOCAL
									  : SPACE_GLOBAL;
	const uint64_t address = gpul_debug_number(c, 2), bytes = gpul_debug_number(c, 3);
	struct call lane = { .d = c->d, .word = c->word + 3, .n = c->n > 3 ? c->n - 3 : 0, .err = c->err };
	struct lane at = { .memory = c->d->memory };
	const struct insn *i;
	uint64_t n = 0;

	if (c->n < 4 || bytes > MOST_BYTES)
		return gpul_debug_usage(c, "global, shared or local; an address; at most 1048576 bytes");
	if (c->n > 6 && c->d->stop.warp && gpul_debug_find_lane(&lane, &at, &i))
		return GPUL_EINVAL;
	fputs("- bytes=", c->out);
	for (; n < bytes; n++) {
		const uint8_t *b = gpul_debug_memory(&at, space, address + n, 1);

		if (!b)
			break;
		fprintf(c->out, "%02x", *b);
	}
	fprintf(c->out, "\tread=%" PRIu64 "\n", n);
	return GPUL_OK;
}

/* ---- programs -------------------------------------------------------------------------------------------------------- */

static const struct gpul_exec_program *find_program(const struct debug *d, uint64_t id)
{
	for (size_t k = 0; k < d->code.n; k++)
		if (d->code.at[k]->program->id == id)
			return d->code.at[k]->program;
	return NULL;
}

gpul_status gpul_debug_show_programs(const struct call *c)
{
	uint64_t last = 0;

	for (size_t k = 0; k < c->d->code.n; k++) {
		const struct gpul_exec_program *p = c->d->code.at[k]->program;
		char name[TEXT_BYTES];

		if (p->id == last)
			continue;
		last = p->id;
		gpul_debug_ptx_name(p, name, sizeof name);
		fprintf(c->out, "- program=%" PRIu64 "\tptx=%s\tkernels=%u\n", p->id, name, p->n_kernels);
		for (uint32_t n = 0; n < p->n_kernels; n++)
			fprintf(c->out, "- kernel=%s\n", p->kernels[n].info.name);
		for (uint32_t n = 0; n < p->module->n_files; n++)
			fprintf(c->out, "- file=%s\n", gpul_ptx_name(p->module, p->module->files[n].path));
	}
	return GPUL_OK;
}

/* Command: listing PROGRAM: prints the lines of the program, each with the prefix "- " */
gpul_status gpul_debug_show_listing(const struct call *c)
{
	const struct gpul_exec_program *p = find_program(c->d, gpul_debug_number(c, 1));
	char *text = NULL, *rest, *line;
	size_t bytes;
	FILE *f = p ? open_memstream(&text, &bytes) : NULL;

	if (!f)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "there is no program %s", c->n > 1 ? c->word[1] : "");
	gpul_debug_listing(f, p);
	fclose(f);
	rest = text;
	while ((line = strsep(&rest, "\n")) && (rest || *line))
		fprintf(c->out, "- %s\n", line);
	free(text);
	return GPUL_OK;
}
