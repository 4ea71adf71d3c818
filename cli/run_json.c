/* run_json.c — the same for programs: one JSON object. */
#include "cli/run.h"

#include <stdio.h>

#include "cli/json.h"

#if GPUL_HAVE_CJSON
static cJSON *driver_json(const struct run *r)
{
	cJSON *o = cJSON_CreateObject();
	char version[16];

	snprintf(version, sizeof version, "%d.%d", r->drv->version / 1000,
		 r->drv->version % 1000 / 10);
	cJSON_AddStringToObject(o, "name", r->drv->name);
	cJSON_AddStringToObject(o, "cuda", version);
	return o;
}

static cJSON *device_json(const struct run *r)
{
	cJSON *o = cJSON_CreateObject();
	char name[128] = "";

	r->drv->cuDeviceGetName(name, sizeof name, r->context.device);
	cJSON_AddNumberToObject(o, "ordinal", r->ask.device);
	cJSON_AddStringToObject(o, "name", name);
	return o;
}

static void add_times(cJSON *o, const struct run *r)
{
	struct run_times t = run_times(r);

	cJSON_AddItemToObject(o, "times_ms",
			      cJSON_CreateDoubleArray(r->times_ms, (int)r->ask.repeat));
	cJSON_AddNumberToObject(o, "median_ms", t.median_ms);
	cJSON_AddNumberToObject(o, "min_ms", t.min_ms);
	if (t.bytes_per_s > 0)
		cJSON_AddNumberToObject(o, "bytes_per_s", t.bytes_per_s);
}

static void add_elements(cJSON *o, const struct arg *a)
{
	cJSON *first = cJSON_AddArrayToObject(o, "first");
	size_t bytes = gpul_type_bytes(a->type), n_unwritten = 0;

	for (size_t i = 0; i < a->count; i++) {
		bool unwritten = arg_unwritten(a, a->data, i);

		n_unwritten += unwritten;
		if (i < RUN_SHOWN)
			cJSON_AddItemToArray(
				first, unwritten ? cJSON_CreateNull()
						 : json_element(a->type, a->data + i * bytes));
	}
	if (a->out && !a->in)
		cJSON_AddNumberToObject(o, "unwritten", (double)n_unwritten);
}

static cJSON *arg_json(const struct arg *a)
{
	static const char *const kinds[] = {
		[ARG_SCALAR] = "scalar",
		[ARG_BUFFER] = "buffer",
		[ARG_BYTES] = "bytes",
		[ARG_FUNCTION] = "function",
	};
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "text", a->text);
	cJSON_AddStringToObject(o, "kind", kinds[a->kind]);
	if (a->kind == ARG_SCALAR || a->kind == ARG_BUFFER)
		cJSON_AddStringToObject(o, "type", gpul_type_name(a->type));
	if (a->kind == ARG_SCALAR)
		cJSON_AddItemToObject(o, "value", json_element(a->type, a->data));
	if (a->kind == ARG_BUFFER) {
		cJSON_AddStringToObject(o, "direction",
					a->in && a->out ? "inout"
					: a->in         ? "in"
							: "out");
		cJSON_AddNumberToObject(o, "count", (double)a->count);
		add_elements(o, a);
	} else {
		cJSON_AddNumberToObject(o, "bytes", (double)a->bytes);
	}
	return o;
}

static cJSON *check_json(const struct run_check *c)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "arg", (double)c->target->arg);
	cJSON_AddStringToObject(o, "what", c->target->what);
	cJSON_AddBoolToObject(o, "ok", c->ok);
	if (c->ok)
		return o;
	cJSON_AddNumberToObject(o, "wrong", (double)c->n_wrong);
	if (!c->is_sum) {
		cJSON_AddNumberToObject(o, "first_wrong", (double)c->first_wrong);
		cJSON_AddBoolToObject(o, "unwritten", c->unwritten);
	}
	cJSON_AddStringToObject(o, "got",
				c->got); /* text: numbers of any type, inf and nan too */
	cJSON_AddStringToObject(o, "expected", c->want);
	return o;
}

gpul_status run_print_json(const struct run *r, gpul_error *err)
{
	cJSON *o = cJSON_CreateObject(), *args, *checks;
	bool ok = true;

	cJSON_AddStringToObject(o, "file", r->ask.file);
	cJSON_AddStringToObject(o, "kernel", gpul_kernel_name(r->kernel));
	cJSON_AddItemToObject(o, "driver", driver_json(r));
	cJSON_AddItemToObject(o, "device", device_json(r));
	cJSON_AddItemToObject(o, "grid", json_u32s(r->config.grid, 3));
	cJSON_AddItemToObject(o, "block", json_u32s(r->config.block, 3));
	cJSON_AddNumberToObject(o, "shared_bytes", r->config.shared_bytes);
	add_times(o, r);
	if (r->assumed)
		cJSON_AddStringToObject(o, "assumed", r->assumed);
	args = cJSON_AddArrayToObject(o, "arguments");
	for (size_t i = 0; i < r->ask.n_args; i++)
		cJSON_AddItemToArray(args, arg_json(&r->ask.args[i]));
	checks = cJSON_AddArrayToObject(o, "expect");
	for (size_t i = 0; i < r->ask.n_expects; i++) {
		cJSON_AddItemToArray(checks, check_json(&r->checks[i]));
		ok = ok && r->checks[i].ok;
	}
	cJSON_AddBoolToObject(o, "ok", ok);
	return json_print(o, err);
}
#else
gpul_status run_print_json(const struct run *r, gpul_error *err)
{
	(void)r;
	return json_missing(err);
}
#endif
