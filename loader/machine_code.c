/* machine_code.c — handles modules without PTX: the cubin's tables give the names of the kernels and the sizes of their parameters,
 * and C++ names give the types.  For a function that was loaded elsewhere, the driver reports the sizes. */
#include <stdlib.h>
#include <string.h>

#include "loader/names/cxx_params.h"
#include "loader/names/host_symbols_internal.h"
#include "loader/image/recognise.h"
#include "loader/loader_internal.h"

/* A kernel has at most 32764 bytes of parameters; this limit ends the loop whatever the driver returns. */
#define MAX_PARAMS 4096

static const char no_types[] = "machine code has the sizes of its parameters, but not their types";
static const char no_extents[] = "machine code does not show how many elements its buffers need";

/* Count the parameters: some drivers have cuFuncGetParamInfo but not cuFuncGetParamCount, so call it until it fails. */
static uint32_t count_params(const gpul_driver *drv, CUfunction fn)
{
	size_t offset, bytes;
	uint32_t n = 0;

	while (n < MAX_PARAMS && drv->cuFuncGetParamInfo(fn, n, &offset, &bytes) == CUDA_SUCCESS)
		n++;
	return n;
}

gpul_status gpul_kernel_describe(gpul_kernel *k, CUfunction fn, gpul_error *err)
{
	const gpul_driver *drv = k->m->drv;
	gpul_signature_owned *s = gpul_signature_blank(k->name, count_params(drv, fn));

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the signature of a kernel");
	for (size_t i = 0; i < s->s.n_params; i++) {
		size_t offset = 0, bytes = 0;
		gpul_status st = gpul_cu(drv, err, cuFuncGetParamInfo(fn, i, &offset, &bytes));

		if (st) {
			gpul_signature_destroy(&s->s);
			return st;
		}
		s->s.params[i] = (gpul_param){ .offset = (uint32_t)offset, .bytes = (uint32_t)bytes, .align = 1 };
	}
	gpul_incomplete(s, "%s", no_types);
	k->declared = s;
	return GPUL_OK;
}

/* Check that the code is as large as its headers say, because the driver gets no size and trusts the headers. */
static gpul_status check_extent(const gpul_code *code, gpul_error *err)
{
	const gpul_recognised r = gpul_recognise(code->bytes, code->n_bytes, NULL);
	gpul_error why = { 0 };
	const void *start;
	size_t needed = 0;
	gpul_status st = GPUL_OK;

	if (r.kind != GPUL_CONTENT_CUBIN)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s: the image is not a cubin", code->name);
	if (r.bytes_needed <= code->n_bytes)
		st = gpul_image_extent(code->bytes, &start, &needed, &why);
	if (st)
		return gpul_fail(err, st, why.native, "%s: %s", code->name, why.text);
	if (r.bytes_needed > code->n_bytes || needed > code->n_bytes)
		st = gpul_fail(err, GPUL_EFORMAT, (int)code->n_bytes,
			       "%.120s is truncated: its cubin has %zu bytes, but its headers "
			       "require %llu",
			       code->name, code->n_bytes, (unsigned long long)(needed > r.bytes_needed ? needed : r.bytes_needed));
	return st;
}

static gpul_status add_kernel(gpul_module *m, const gpul_kernel_info *info, gpul_error *err)
{
	gpul_kernel *k = &m->kernels[m->n_kernels];
	gpul_signature_owned *s = gpul_signature_blank(info->name, info->n_params);

	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the signature of a kernel");
	for (uint32_t i = 0; i < info->n_params; i++)
		s->s.params[i] = (gpul_param){ .offset = info->params[i].offset, .bytes = info->params[i].bytes, .align = 1 };
	for (int i = 0; i < 3; i++) { /* a missing dimension is 1 */
		s->s.reqntid[i] = info->required_threads[i] ? info->required_threads[i] : !!info->required_threads[0];
		s->s.maxntid[i] = info->max_threads[i] ? info->max_threads[i] : !!info->max_threads[0];
	}
	if (info->n_params)
		gpul_incomplete(s, "%s", no_types);
	*k = (gpul_kernel){ .m = m, .name = info->name, .info = info, .declared = s };
	m->n_kernels++;
	return GPUL_OK;
}

static gpul_status list_kernels(gpul_module *m, const gpul_code *code, gpul_error *err)
{
	const gpul_image image = { .kind = GPUL_IMAGE_CUBIN };
	gpul_error why = { 0 };
	gpul_status st = GPUL_OK;

	if (gpul_kernels_read(&image, code->bytes, code->n_bytes, &m->table, &why))
		return gpul_fail(err, why.status, why.native, "%s: %s", code->name, why.text);
	if (m->table.n == 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%.160s has no kernels for this device", code->name);
	m->kernels = calloc(m->table.n, sizeof *m->kernels);
	if (!m->kernels)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu kernels", m->table.n);
	for (size_t i = 0; !st && i < m->table.n; i++)
		st = add_kernel(m, &m->table.at[i], err);
	return st;
}

gpul_status gpul_variables_read(gpul_module *m, const gpul_code *code, gpul_error *err)
{
	gpul_host_object cubin;
	size_t room;

	if (!gpul_host_read(code->bytes, code->n_bytes, &cubin) || cubin.n_symbols == 0)
		return GPUL_OK; /* the driver will report the damage */
	room = cubin.n_symbols;
	m->variables = calloc(room, sizeof *m->variables);
	for (size_t i = 0; m->variables && i < room; i++) {
		const char *name = gpul_host_variable(&cubin, i, sizeof(uint64_t));

		if (!name)
			continue;
		m->variables[m->n_variables] = strdup(name);
		if (!m->variables[m->n_variables])
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a variable's name");
		m->n_variables++;
	}
	return m->variables ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu variables", room);
}

/* Explain why the driver refused the code. */
static gpul_status explain_failure(const gpul_module *m, const gpul_code *code, CUresult r, gpul_error *err)
{
	const gpul_recognised image = gpul_recognise(code->bytes, code->n_bytes, NULL);

	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU || image.sm / 10 != m->limits.cc / 10)
		return gpul_fail(err, GPUL_ECUDA, CUDA_ERROR_NO_BINARY_FOR_GPU,
				 "%.100s is machine code for sm_%u, but the device is sm_%u: load PTX instead", code->name, image.sm,
				 m->limits.cc);
	return gpul_cu_status(m->drv, err, r, "cuLibraryLoadData");
}

gpul_status gpul_machine_code_load(gpul_module *m, const gpul_code *code, gpul_error *err)
{
	gpul_status st = check_extent(code, err);
	CUresult r;

	if (!st)
		st = list_kernels(m, code, err);
	if (!st)
		st = gpul_variables_read(m, code, err);
	if (st)
		return st;
	if (m->drv->name_images)
		m->drv->name_images(code->name);
	r = m->drv->cuLibraryLoadData(&m->library, code->bytes, NULL, NULL, 0, NULL, NULL, 0);
	return r == CUDA_SUCCESS ? GPUL_OK : explain_failure(m, code, r, err);
}

/* ---- types from C++ names ---------------------------------------------------------- */

static gpul_param add_type(gpul_param p, const gpul_cxx_param *c)
{
	bool scalar = p.bytes == 1 || p.bytes == 2 || p.bytes == 4 || p.bytes == 8;

	p.type = c->type;
	if (c->pointer)
		p.role = GPUL_ROLE_BUFFER;
	else if (c->type)
		p.role = GPUL_ROLE_SCALAR;
	else
		p.role = scalar ? GPUL_ROLE_UNKNOWN : GPUL_ROLE_STRUCT;
	p.loaded = c->pointer;
	p.stored = c->pointer && !c->constant;
	return p;
}

/* False if a type in the kernel's name has another size than the parameter in the machine code. */
static bool sizes_match(const gpul_signature *s, const gpul_cxx_param *types)
{
	for (size_t i = 0; i < s->n_params; i++)
		if (types[i].bytes && types[i].bytes != s->params[i].bytes)
			return false;
	return true;
}

gpul_signature *gpul_signature_of_name(const gpul_kernel *k, const char *demangled)
{
	const gpul_signature *d = &k->declared->s;
	gpul_signature_owned *s = gpul_signature_blank(k->name, d->n_params);
	gpul_cxx_param *types = calloc(d->n_params + 1, sizeof *types);
	gpul_param *params;
	bool has_types;

	if (!s || !types) {
		if (s)
			gpul_signature_destroy(&s->s);
		free(types);
		return NULL;
	}
	params = s->s.params;
	has_types = gpul_cxx_params(demangled, types, d->n_params) == d->n_params && sizes_match(d, types);
	for (size_t i = 0; i < d->n_params; i++)
		params[i] = has_types ? add_type(d->params[i], &types[i]) : d->params[i];
	memcpy(s->s.reqntid, d->reqntid, sizeof d->reqntid);
	memcpy(s->s.maxntid, d->maxntid, sizeof d->maxntid);
	if (d->n_params)
		gpul_incomplete(s, "%s", has_types ? no_extents : no_types);
	free(types);
	return &s->s;
}
