/* ls_ptx.c — list the kernels of a PTX file: their declarations, and the use of each parameter, found by analysis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/message.h"
#include "cli/ls/ls.h"
#include "ptx/strict/strict.h"

static const char *const role_names[] = {
	[GPUL_ROLE_UNKNOWN] = "unknown", [GPUL_ROLE_SCALAR] = "value",  [GPUL_ROLE_COUNT] = "count",
	[GPUL_ROLE_BUFFER] = "buffer",   [GPUL_ROLE_STRUCT] = "struct", [GPUL_ROLE_FUNCTION] = "function",
};

/* Returns "read", "written" or "read and written". */
static const char *access_name(const gpul_param *p)
{
	return p->loaded && p->stored ? "read and written" : p->stored ? "written" : p->loaded ? "read" : "";
}

/* ---- text -------------------------------------------------------------------------- */

static void print_block_limits(const struct ls_kernel *k)
{
	const gpul_signature *s = k->signature;
	const uint32_t *cluster = k->info->cluster;

	if (s->reqntid[0])
		printf("  block      must be %u,%u,%u\n", s->reqntid[0], s->reqntid[1] ? s->reqntid[1] : 1,
		       s->reqntid[2] ? s->reqntid[2] : 1);
	else if (s->maxntid[0])
		printf("  block      at most %u threads\n",
		       s->maxntid[0] * (s->maxntid[1] ? s->maxntid[1] : 1) * (s->maxntid[2] ? s->maxntid[2] : 1));
	if (cluster[0])
		printf("  cluster    %u,%u,%u\n", cluster[0], cluster[1] ? cluster[1] : 1, cluster[2] ? cluster[2] : 1);
}

static void print_param(size_t i, const gpul_param *p)
{
	char type[16];

	snprintf(type, sizeof type, "%s%s",
		 p->type                       ? gpul_type_name(p->type)
		 : p->role == GPUL_ROLE_BUFFER ? "?"
					       : "-",
		 p->role == GPUL_ROLE_BUFFER ? " *" : "");
	printf("  %5zu  %6u  %5u  %-7s %s%s%s\n", i, p->offset, p->bytes, type, role_names[p->role], *access_name(p) ? ", " : "",
	       access_name(p));
}

static gpul_status print_kernel(const struct ls_kernel *k, const struct cxx_name *name, gpul_error *err)
{
	const gpul_signature *s = k->signature;
	char *text = gpul_signature_text(s);

	if (!text)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the signature of a kernel");
	printf("\n%s\n", text);
	free(text);
	if (name && name->demangled)
		printf("  C++        %s\n", name->demangled);
	printf("  registers  %u of 32 bits, %u of 64, %u of 16, %u predicates (virtual, as "
	       "declared)\n",
	       k->registers.b32, k->registers.b64, k->registers.b16, k->registers.predicates);
	printf("  memory     %u bytes shared%s\n", k->info->shared_bytes, s->uses_dynamic_shared ? " plus dynamic shared memory" : "");
	print_block_limits(k);
	if (s->n_params)
		printf("  param  offset  bytes  type    use\n");
	for (size_t i = 0; i < s->n_params; i++)
		print_param(i, &s->params[i]);
	if (!s->complete)
		printf("  not known  %s\n", s->why_not);
	return GPUL_OK;
}

/* ---- JSON -------------------------------------------------------------------------- */

static void add_uses(struct json *j, const char *name, const gpul_param *params, size_t n, bool members)
{
	json_begin(j, name, '[');
	for (size_t i = 0; i < n; i++) {
		const gpul_param *p = &params[i];

		json_begin(j, NULL, '{');
		if (members)
			json_u64(j, "offset", p->offset);
		json_text(j, "role", role_names[p->role]);
		if (p->type)
			json_text(j, "type", gpul_type_name(p->type));
		if (p->role == GPUL_ROLE_BUFFER) {
			json_bool(j, "loaded", p->loaded);
			json_bool(j, "stored", p->stored);
			json_u64(j, "vector", p->vector);
		}
		if (p->n_members)
			add_uses(j, "members", p->members, p->n_members, true);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void add_registers(struct json *j, const struct ls_registers *r)
{
	json_begin(j, "virtual_registers", '{');
	json_u64(j, "predicates", r->predicates);
	json_u64(j, "b16", r->b16);
	json_u64(j, "b32", r->b32);
	json_u64(j, "b64", r->b64);
	json_u64(j, "b128", r->b128);
	json_end(j, '}');
}

static gpul_status add_kernel(struct json *j, const struct ls_kernel *k, const struct cxx_name *name, gpul_error *err)
{
	const gpul_signature *s = k->signature;
	char *text = gpul_signature_text(s);

	if (!text)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu parameters", s->n_params);
	ls_json_kernel(j, k->info, name);
	json_text(j, "signature", text);
	add_registers(j, &k->registers);
	json_bool(j, "dynamic_shared", s->uses_dynamic_shared);
	add_uses(j, "uses", s->params, s->n_params, false);
	json_bool(j, "complete", s->complete);
	if (s->assumed)
		json_bool(j, "assumed", true);
	if (!s->complete)
		json_text(j, "why_not", s->why_not);
	json_end(j, '}');
	free(text);
	return GPUL_OK;
}

/* ---- --strict ---------------------------------------------------------------------- */

static gpul_status check_strict(const char *path, const char *text, size_t text_bytes, gpul_error *err)
{
	gpul_ptx_module *m = NULL;
	gpul_status st = gpul_ptx_parse(text, text_bytes, path, &m, err);

	if (st == GPUL_OK)
		st = gpul_ptx_check_strict(m, text, text_bytes, path, GPUL_PTX_NEWEST, err);
	gpul_ptx_module_destroy(m);
	return st;
}

gpul_status ls_strict(struct ls *ls, const char *path, const gpul_images *images, gpul_error *err)
{
	size_t n;
	const gpul_image *all = gpul_images_all(images, &n);

	for (size_t i = 0; i < n; i++) {
		gpul_unpacked text = { 0 };
		gpul_error why = { 0 };
		char name[256];
		gpul_status st;

		if (all[i].kind != GPUL_IMAGE_PTX || !image_filter_takes(&ls->filter, &all[i]))
			continue;
		snprintf(name, sizeof name, "%.200s, image %zu", path, i);
		st = gpul_image_unpack(&all[i], &text, &why);
		if (st == GPUL_OK)
			st = check_strict(name, text.bytes, strnlen(text.bytes, text.n_bytes), &why);
		gpul_unpacked_free(&text);
		if (st == GPUL_ENOMEM)
			return gpul_fail(err, st, 0, "%s", why.text);
		if (st) {
			cli_message("ls", "%s", why.text);
			ls->failed = true;
		}
	}
	return GPUL_OK;
}

/* ---- the file ---------------------------------------------------------------------- */

/* Fill rows[], which has room for every function, with the selected kernels.  The table has the module's kernels in the same order. */
static gpul_status collect_kernels(struct ls *ls, const gpul_ptx_module *m, const gpul_kernel_table *table, struct ls_kernel *rows,
				   size_t *n, gpul_error *err)
{
	gpul_status st = GPUL_OK;
	size_t kernel = 0;

	for (uint32_t i = 0; st == GPUL_OK && i < m->n_funcs; i++) {
		const gpul_ptx_func *f = &m->funcs[i];
		const char *name = gpul_ptx_name(m, f->name);

		if (f->kind != GPUL_PTX_FUNC_ENTRY || !f->has_body || kernel >= table->n)
			continue;
		if (ls_takes_kernel(ls, name, cxx_names_get(ls->names, name)))
			st = ls_kernel(m, f, &table->at[kernel], &rows[(*n)++], err);
		kernel++;
	}
	return st;
}

static gpul_status print_json(struct ls *ls, const char *path, const gpul_image *image, const gpul_ptx_module *m,
			      const struct ls_kernel *rows, size_t n, gpul_error *err)
{
	struct json j = { 0 };
	gpul_status st = GPUL_OK;
	char version[32];

	snprintf(version, sizeof version, "%u.%u", m->version_major, m->version_minor);
	json_begin(&j, NULL, '{');
	json_text(&j, "file", path);
	json_begin(&j, "images", '[');
	ls_json_image_begin(&j, image, "");
	json_begin(&j, "kernels", '[');
	for (size_t i = 0; st == GPUL_OK && i < n; i++)
		st = add_kernel(&j, &rows[i], cxx_names_get(ls->names, rows[i].signature->kernel), err);
	json_end(&j, ']');
	json_text(&j, "ptx_version", version);
	json_text(&j, "target", gpul_ptx_name(m, m->target));
	ls_json_image_end(&j, NULL, image);
	json_end(&j, ']');
	json_end(&j, '}');
	if (st == GPUL_OK)
		st = json_print(&j, err);
	out_free(&j.out);
	return st;
}

gpul_status ls_ptx(struct ls *ls, const char *path, const char *text, const gpul_image *image, gpul_error *err)
{
	gpul_ptx_module *m = NULL;
	gpul_kernel_table table = { 0 };
	struct ls_kernel *rows = NULL;
	size_t n = 0;
	gpul_status st = gpul_ptx_parse(text, image->bytes, path, &m, err);

	if (st)
		return st;
	st = ls->strict ? gpul_ptx_check_strict(m, text, image->bytes, path, GPUL_PTX_NEWEST, err) : GPUL_OK;
	if (st == GPUL_OK)
		st = gpul_kernels_read(image, text, image->bytes, &table, err);
	rows = calloc(m->n_funcs + 1u, sizeof *rows);
	if (st == GPUL_OK)
		st = rows ? collect_kernels(ls, m, &table, rows, &n, err)
			  : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u kernels", m->n_funcs);
	if (st == GPUL_OK && n == 0)
		ls_report_no_match(ls, path);
	if (st == GPUL_OK && ls->json)
		st = print_json(ls, path, image, m, rows, n, err);
	else if (st == GPUL_OK)
		printf("%s: PTX %u.%u for %s, %zu kernel%s\n", path, m->version_major, m->version_minor, gpul_ptx_name(m, m->target), n,
		       n == 1 ? "" : "s");
	for (size_t i = 0; st == GPUL_OK && !ls->json && i < n; i++)
		st = print_kernel(&rows[i], cxx_names_get(ls->names, rows[i].signature->kernel), err);
	while (n > 0)
		ls_kernel_free(&rows[--n]);
	free(rows);
	gpul_kernel_table_free(&table);
	gpul_ptx_module_destroy(m);
	return st;
}
