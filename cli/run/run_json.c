/* run_json.c — print the result of a run as one JSON object. */
#include "cli/run/cli_run.h"

#include <stdio.h>

#include "cli/lib/json/cli_json.h"

static void add_driver(struct json *j, const struct run *r)
{
	char version[16];

	snprintf(version, sizeof version, "%d.%d", r->drv->version / 1000, r->drv->version % 1000 / 10);
	json_begin(j, "driver", '{');
	json_text(j, "name", r->drv->name);
	json_text(j, "cuda", version);
	json_end(j, '}');
}

static void add_device(struct json *j, const struct run *r)
{
	char name[128] = "";

	r->drv->cuDeviceGetName(name, sizeof name, r->context.device);
	json_begin(j, "device", '{');
	json_i64(j, "ordinal", r->ask.device);
	json_text(j, "name", name);
	json_end(j, '}');
}

static void add_times(struct json *j, const struct run *r)
{
	struct run_times t = run_times(r);

	json_begin(j, "times_ms", '[');
	for (uint32_t i = 0; i < r->ask.repeat; i++)
		json_double(j, NULL, r->times_ms[i]);
	json_end(j, ']');
	json_double(j, "median_ms", t.median_ms);
	json_double(j, "min_ms", t.min_ms);
	if (t.bytes_per_s > 0)
		json_double(j, "bytes_per_s", t.bytes_per_s);
}

static void add_elements(struct json *j, const struct arg *a, size_t n_shown)
{
	size_t bytes = gpul_type_bytes(a->type), n_unwritten = 0;

	json_begin(j, "first", '[');
	for (size_t i = 0; i < a->count; i++) {
		bool unwritten = arg_unwritten(a, i);

		n_unwritten += unwritten;
		if (i < n_shown && unwritten)
			json_null(j, NULL);
		else if (i < n_shown)
			json_element(j, NULL, a->type, a->data + i * bytes);
	}
	json_end(j, ']');
	if (a->out && !a->in)
		json_u64(j, "unwritten", n_unwritten);
}

/* Open the object of an argument, or of a member of a struct; the caller closes it. */
static void begin_arg(struct json *j, const struct run *r, const struct arg *a)
{
	static const char *const kinds[] = {
		[ARG_SCALAR] = "scalar",     [ARG_BUFFER] = "buffer", [ARG_BYTES] = "bytes",
		[ARG_FUNCTION] = "function", [ARG_STRUCT] = "struct",
	};

	json_begin(j, NULL, '{');
	json_text(j, "text", a->text);
	json_text(j, "kind", kinds[a->kind]);
	if (a->kind == ARG_SCALAR || a->kind == ARG_BUFFER)
		json_text(j, "type", gpul_type_name(a->type));
	if (a->kind == ARG_SCALAR)
		json_element(j, "value", a->type, a->data);
	if (a->kind == ARG_BUFFER) {
		json_text(j, "direction", a->in && a->out ? "inout" : a->in ? "in" : "out");
		json_u64(j, "count", a->count);
		if (!a->out)
			json_bool(j, "changed", a->changed);
		add_elements(j, a, r->ask.n_shown);
	} else {
		json_u64(j, "bytes", a->bytes);
	}
}

static void add_arg(struct json *j, const struct run *r, size_t index)
{
	const struct arg *a = &r->ask.args[index];
	char note[RUN_NOTE_BYTES];

	begin_arg(j, r, a);
	if (run_direction_note(r, index, note, sizeof note))
		json_text(j, "note", note);
	if (a->kind == ARG_STRUCT)
		json_begin(j, "members", '[');
	for (size_t k = 0; k < a->n_members; k++) {
		begin_arg(j, r, &a->members[k]);
		json_u64(j, "offset", a->members[k].offset);
		json_end(j, '}');
	}
	if (a->kind == ARG_STRUCT)
		json_end(j, ']');
	json_end(j, '}');
}

static void add_check(struct json *j, const struct run_check *c)
{
	json_begin(j, NULL, '{');
	json_u64(j, "arg", c->target->arg);
	json_text(j, "what", c->target->what);
	json_bool(j, "ok", c->ok);
	if (!c->ok) {
		json_u64(j, "wrong", c->n_wrong);
		if (!c->is_sum) {
			json_u64(j, "first_wrong", c->first_wrong);
			json_bool(j, "unwritten", c->unwritten);
		}
		json_text(j, "got", c->got); /* strings, because JSON numbers cannot hold inf, nan or all 64-bit integers */
		json_text(j, "expected", c->want);
	}
	json_end(j, '}');
}

gpul_status run_print_json(const struct run *r, gpul_error *err)
{
	struct json j = { 0 };
	bool ok = true;

	json_begin(&j, NULL, '{');
	json_text(&j, "file", r->ask.file);
	json_text(&j, "kernel", gpul_kernel_name(r->kernel));
	json_text(&j, "demangled", gpul_kernel_demangled(r->kernel));
	add_driver(&j, r);
	add_device(&j, r);
	json_u32s(&j, "grid", r->config.grid, 3);
	json_u32s(&j, "block", r->config.block, 3);
	json_u64(&j, "shared_bytes", r->config.shared_bytes);
	add_times(&j, r);
	if (r->assumed)
		json_text(&j, "assumed", r->assumed);
	json_begin(&j, "arguments", '[');
	for (size_t i = 0; i < r->ask.n_args; i++)
		add_arg(&j, r, i);
	json_end(&j, ']');
	json_begin(&j, "expect", '[');
	for (size_t i = 0; i < r->ask.n_expects; i++) {
		add_check(&j, &r->checks[i]);
		ok = ok && r->checks[i].ok;
	}
	json_end(&j, ']');
	if (r->printed)
		json_chars(&j, "printf", r->printed, r->printed_bytes);
	if (r->save_error.status)
		json_text(&j, "save_error", r->save_error.text);
	if (r->n_tool_errors)
		json_u64(&j, "tool_errors", (uint64_t)r->n_tool_errors);
	json_bool(&j, "ok", ok && !r->save_error.status && !r->n_tool_errors);
	json_end(&j, '}');
	return json_print(&j, err);
}
