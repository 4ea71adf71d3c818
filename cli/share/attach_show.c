/* attach_show.c — prints the ATTACHED line of gpuload attach; implements --dump and --save. */
#include "cli/share/attach.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/new_file.h"
#include "cli/lib/npy.h"
#include "cli/lib/value.h"

enum { SHOWN_A_ROW = 10, HEX_A_ROW = 16 };

/* ---- description ------------------------------------------------------------------- */

static void describe_json(const struct attach *a, struct json *j)
{
	const gpul_mem_info *about = gpul_mem_about(gpul_ipc_client_mem(a->client));

	json_text(j, "event", "ATTACHED");
	json_text(j, "name", a->ask.name);
	if (a->owner > 0)
		json_i64(j, "owner", a->owner);
	else
		json_null(j, "owner");
	json_text(j, "kind", gpul_mem_kind_name(about->kind));
	json_u64(j, "bytes", a->view->bytes);
	json_u64(j, "mapped_bytes", about->mapped_bytes);
	share_json_shape(j, &a->view->shape);
	json_bool(j, "read_only", a->view->read_only);
	if (a->view->cpu)
		json_u64(j, "cpu", (uintptr_t)a->view->cpu);
	else
		json_null(j, "cpu");
	json_u64(j, "gpu", a->view->gpu);
	json_text(j, "driver", a->view->drv->name);
}

void attach_describe(const struct attach *a, struct json *json)
{
	const gpul_mem_info *about = gpul_mem_about(gpul_ipc_client_mem(a->client));
	char size[SHARE_SIZE_BYTES], shape[SHARE_SHAPE_BYTES];

	if (json) {
		describe_json(a, json);
		return;
	}
	printf("%-10s %s: %s, %s", "ATTACHED", a->ask.name, gpul_mem_kind_name(about->kind), share_size_text(a->view->bytes, size));
	if (a->view->shape.n_dims)
		printf(" of %s", share_shape_text(&a->view->shape, shape));
	printf("%s, ", a->view->read_only ? ", read-only" : "");
	if (a->view->cpu && (uintptr_t)a->view->cpu == (uintptr_t)a->view->gpu)
		printf("CPU and GPU 0x%" PRIxPTR, (uintptr_t)a->view->cpu);
	else if (a->view->cpu)
		printf("CPU 0x%" PRIxPTR ", GPU 0x%llx", (uintptr_t)a->view->cpu, a->view->gpu);
	else
		printf("GPU 0x%llx", a->view->gpu);
	if (a->owner > 0)
		printf(", owner %ld", (long)a->owner);
	putchar('\n');
}

/* ---- --dump ------------------------------------------------------------------------ */

/* Make n bytes from `offset` readable for the CPU: directly, or as a copy in *copy (owned by the caller). */
static gpul_status read_data(const struct attach *a, size_t offset, size_t n, const unsigned char **at, void **copy, gpul_error *err)
{
	const gpul_ipc_view *v = a->view;

	*copy = NULL;
	if (v->cpu) {
		*at = (const unsigned char *)v->cpu + offset;
		return GPUL_OK;
	}
	*copy = malloc(n ? n : 1);
	*at = *copy;
	if (!*copy)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to copy %zu bytes from the GPU", n);
	return gpul_cu(v->drv, err, cuMemcpyDtoH(*copy, v->gpu + offset, n));
}

/* Return the number of elements in a row of --dump. */
static size_t row_elements(const struct attach *a)
{
	const gpul_ipc_shape *s = &a->view->shape;

	if (!a->type)
		return HEX_A_ROW;
	if (a->shaped && s->n_dims > 1)
		return (size_t)s->dim[s->n_dims - 1];
	return SHOWN_A_ROW;
}

static void print_hex(size_t offset, const unsigned char *at, size_t n)
{
	printf("%08zx ", offset);
	for (size_t i = 0; i < HEX_A_ROW; i++) {
		if (i < n)
			printf(" %02x", at[i]);
		else
			printf("   ");
	}
	printf("  ");
	for (size_t i = 0; i < n; i++)
		putchar(at[i] >= ' ' && at[i] < 127 ? at[i] : '.');
	putchar('\n');
}

static void print_elements(const struct attach *a, size_t first, const unsigned char *at, size_t n)
{
	char text[VALUE_TEXT_BYTES];

	printf("[%zu]", first);
	for (size_t i = 0; i < n && i < SHOWN_A_ROW; i++)
		printf(" %s", value_print(a->type, at + i * gpul_type_bytes(a->type), text));
	printf("%s\n", n > SHOWN_A_ROW ? " ..." : "");
}

static void add_row(const struct attach *a, struct json *j, const unsigned char *at, size_t n)
{
	gpul_type t = a->type ? a->type : GPUL_U8;

	json_begin(j, NULL, '[');
	for (size_t i = 0; i < n; i++)
		json_element(j, NULL, t, at + i * gpul_type_bytes(t));
	json_end(j, ']');
}

static gpul_status dump_row(const struct attach *a, size_t first, size_t n, struct json *j, gpul_error *err)
{
	size_t width = a->type ? gpul_type_bytes(a->type) : 1;
	const unsigned char *at;
	void *copy;
	gpul_status st = read_data(a, first * width, n * width, &at, &copy, err);

	if (st == GPUL_OK && j)
		add_row(a, j, at, n);
	else if (st == GPUL_OK && a->type)
		print_elements(a, first, at, n);
	else if (st == GPUL_OK)
		print_hex(first, at, n);
	free(copy);
	return st;
}

gpul_status attach_dump(const struct attach *a, struct json *json, gpul_error *err)
{
	size_t row = row_elements(a);
	gpul_status st = GPUL_OK;

	if (json)
		json_begin(json, "rows", '[');
	for (size_t i = 0, first = 0; st == GPUL_OK && i < a->ask.rows && first < a->count && !ferror(stdout); i++) {
		size_t n = a->count - first < row ? a->count - first : row;

		st = dump_row(a, first, n, json, err);
		first += n;
	}
	if (json)
		json_end(json, ']');
	return st;
}

/* ---- --save ------------------------------------------------------------------------ */

gpul_status attach_save(const struct attach *a, gpul_error *err)
{
	const gpul_ipc_shape *s = &a->view->shape;
	const char *path = a->ask.save;
	size_t n = strlen(path), n_header = 0, bytes = a->view->bytes;
	char header[NPY_HEADER_BYTES];
	const unsigned char *at;
	void *copy;
	gpul_status st;

	if (n >= 4 && !strcmp(path + n - 4, ".npy")) {
		uint64_t flat = a->count;

		if (!a->type)
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "a .npy file needs an element type, which the owner has not given: add --type, "
					 "such as --type f32, or choose another file name");
		n_header = npy_header(a->type, a->shaped ? s->dim : &flat, a->shaped ? s->n_dims : 1, header);
		bytes = a->count * gpul_type_bytes(a->type);
	}
	st = read_data(a, 0, bytes, &at, &copy, err);
	if (st == GPUL_OK)
		st = new_file_write(path, header, n_header, at, bytes, a->ask.force, err);
	free(copy);
	return st;
}
