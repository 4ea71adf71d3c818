/* ls.c — gpuload ls: the kernels of a PTX file. */
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/ls.h"
#include "cli/options.h"
#include "core/file.h"
#include "loader/image/recognise.h"

static const char *const role_names[] = {
	[GPUL_ROLE_UNKNOWN] = "unknown", [GPUL_ROLE_SCALAR] = "value",
	[GPUL_ROLE_COUNT] = "count",     [GPUL_ROLE_BUFFER] = "buffer",
	[GPUL_ROLE_STRUCT] = "struct",
};

/* "read", "written", "read and written" */
static const char *access_name(const gpul_param *p)
{
	return p->loaded && p->stored ? "read and written"
	       : p->stored            ? "written"
	       : p->loaded            ? "read"
				      : "";
}

/* ---- text -------------------------------------------------------------------------- */

static void print_block_limits(const gpul_signature *s)
{
	if (s->reqntid[0])
		printf("  block      must be %u,%u,%u\n", s->reqntid[0],
		       s->reqntid[1] ? s->reqntid[1] : 1, s->reqntid[2] ? s->reqntid[2] : 1);
	else if (s->maxntid[0])
		printf("  block      at most %u threads\n",
		       s->maxntid[0] * (s->maxntid[1] ? s->maxntid[1] : 1) *
			       (s->maxntid[2] ? s->maxntid[2] : 1));
}

static void print_param(size_t i, const gpul_param *p)
{
	char type[16];

	snprintf(type, sizeof type, "%s%s",
		 p->type                       ? gpul_type_name(p->type)
		 : p->role == GPUL_ROLE_BUFFER ? "?"
					       : "-",
		 p->role == GPUL_ROLE_BUFFER ? " *" : "");
	printf("  %5zu  %6u  %5u  %-7s %s%s%s\n", i, p->offset, p->bytes, type,
	       role_names[p->role], *access_name(p) ? ", " : "", access_name(p));
}

static void print_kernel(const struct ls_kernel *k)
{
	const gpul_signature *s = k->signature;
	char text[1024];

	gpul_signature_print(s, text, sizeof text);
	printf("\n%s\n", text);
	if (k->demangled)
		printf("  C++        %s\n", k->demangled);
	printf("  registers  %u of 32 bits, %u of 64, %u of 16, %u predicates (virtual, as "
	       "declared)\n",
	       k->registers.b32, k->registers.b64, k->registers.b16, k->registers.predicates);
	printf("  memory     %llu bytes shared%s, %llu local, %llu const\n",
	       (unsigned long long)k->shared_bytes,
	       s->uses_dynamic_shared ? " and what --shared gives" : "",
	       (unsigned long long)k->local_bytes, (unsigned long long)k->const_bytes);
	print_block_limits(s);
	if (s->n_params)
		printf("  param  offset  bytes  type    use\n");
	for (size_t i = 0; i < s->n_params; i++)
		print_param(i, &s->params[i]);
	if (!s->complete)
		printf("  not clear: %s\n", s->why_not);
}

static void print_text(const char *path, const gpul_ptx_module *m, const struct ls_kernel *k,
		       size_t n)
{
	printf("%s: PTX %u.%u for %s, %zu kernel%s\n", path, m->version_major, m->version_minor,
	       gpul_ptx_name(m, m->target), n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n; i++)
		print_kernel(&k[i]);
}

/* ---- JSON -------------------------------------------------------------------------- */

#if GPUL_HAVE_CJSON
static cJSON *param_json(const gpul_param *p)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "offset", p->offset);
	cJSON_AddNumberToObject(o, "bytes", p->bytes);
	cJSON_AddStringToObject(o, "role", role_names[p->role]);
	if (p->type)
		cJSON_AddStringToObject(o, "type", gpul_type_name(p->type));
	if (p->role == GPUL_ROLE_BUFFER) {
		cJSON_AddBoolToObject(o, "loaded", p->loaded);
		cJSON_AddBoolToObject(o, "stored", p->stored);
		cJSON_AddNumberToObject(o, "vector", p->vector);
	}
	return o;
}

static cJSON *registers_json(const struct ls_registers *r)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "predicates", r->predicates);
	cJSON_AddNumberToObject(o, "b16", r->b16);
	cJSON_AddNumberToObject(o, "b32", r->b32);
	cJSON_AddNumberToObject(o, "b64", r->b64);
	cJSON_AddNumberToObject(o, "b128", r->b128);
	return o;
}

static cJSON *kernel_json(const struct ls_kernel *k)
{
	cJSON *o = cJSON_CreateObject(), *params;
	const gpul_signature *s = k->signature;
	char text[1024];

	gpul_signature_print(s, text, sizeof text);
	cJSON_AddStringToObject(o, "name", s->kernel);
	if (k->demangled)
		cJSON_AddStringToObject(o, "demangled", k->demangled);
	cJSON_AddStringToObject(o, "signature", text);
	cJSON_AddItemToObject(o, "registers", registers_json(&k->registers));
	cJSON_AddNumberToObject(o, "shared_bytes", (double)k->shared_bytes);
	cJSON_AddNumberToObject(o, "local_bytes", (double)k->local_bytes);
	cJSON_AddNumberToObject(o, "const_bytes", (double)k->const_bytes);
	cJSON_AddBoolToObject(o, "dynamic_shared", s->uses_dynamic_shared);
	if (s->reqntid[0])
		cJSON_AddItemToObject(o, "reqntid", json_u32s(s->reqntid, 3));
	if (s->maxntid[0])
		cJSON_AddItemToObject(o, "maxntid", json_u32s(s->maxntid, 3));
	params = cJSON_AddArrayToObject(o, "parameters");
	for (size_t i = 0; i < s->n_params; i++)
		cJSON_AddItemToArray(params, param_json(&s->params[i]));
	cJSON_AddBoolToObject(o, "complete", s->complete);
	if (!s->complete)
		cJSON_AddStringToObject(o, "why_not", s->why_not);
	return o;
}

static gpul_status print_json(const char *path, const gpul_ptx_module *m,
			      const struct ls_kernel *k, size_t n, gpul_error *err)
{
	cJSON *o = cJSON_CreateObject(), *kernels;
	char version[32];

	snprintf(version, sizeof version, "%u.%u", m->version_major, m->version_minor);
	cJSON_AddStringToObject(o, "file", path);
	cJSON_AddStringToObject(o, "ptx_version", version);
	cJSON_AddStringToObject(o, "target", gpul_ptx_name(m, m->target));
	kernels = cJSON_AddArrayToObject(o, "kernels");
	for (size_t i = 0; i < n; i++)
		cJSON_AddItemToArray(kernels, kernel_json(&k[i]));
	return json_print(o, err);
}
#else
static gpul_status print_json(const char *path, const gpul_ptx_module *m,
			      const struct ls_kernel *k, size_t n, gpul_error *err)
{
	(void)path, (void)m, (void)k, (void)n;
	return json_missing(err);
}
#endif

/* ---- the whole --------------------------------------------------------------------- */

static gpul_status list(const char *path, const gpul_ptx_module *m, bool json, gpul_error *err)
{
	struct ls_kernel *kernels = calloc(m->n_funcs + 1u, sizeof *kernels);
	gpul_status st = GPUL_OK;
	size_t n = 0;

	if (!kernels)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u kernels", m->n_funcs);
	for (uint32_t i = 0; st == GPUL_OK && i < m->n_funcs; i++)
		if (m->funcs[i].kind == GPUL_PTX_FUNC_ENTRY && m->funcs[i].has_body)
			st = ls_kernel(m, &m->funcs[i], &kernels[n++], err);
	if (st == GPUL_OK && json)
		st = print_json(path, m, kernels, n, err);
	else if (st == GPUL_OK)
		print_text(path, m, kernels, n);
	while (n > 0)
		ls_kernel_free(&kernels[--n]);
	free(kernels);
	return st;
}

static gpul_status read_ptx(const char *path, gpul_ptx_module **out, gpul_error *err)
{
	gpul_file file;
	gpul_recognised image;
	gpul_status st = gpul_file_open(path, &file, err);

	if (st)
		return st;
	image = gpul_recognise(file.bytes, file.n_bytes, path);
	if (image.kind == GPUL_CONTENT_PTX || image.kind == GPUL_CONTENT_TEXT)
		st = gpul_ptx_parse(file.bytes, file.n_bytes, path, out, err);
	else
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%s is %s; gpuload ls reads PTX", path,
			       gpul_content_text(image.kind));
	gpul_file_close(&file);
	return st;
}

int cmd_ls(const struct cli_args *args, gpul_error *err)
{
	gpul_ptx_module *m = NULL;
	gpul_status st;

	if (args->n_operands != 1) {
		gpul_fail(err, GPUL_EINVAL, 0, "which file?  gpuload ls FILE.ptx");
		return CLI_USAGE;
	}
	st = read_ptx(args->operands[0], &m, err);
	if (st == GPUL_OK)
		st = list(args->operands[0], m, cli_value(args, LS_JSON), err);
	gpul_ptx_module_destroy(m);
	return cli_exit_code(st);
}
