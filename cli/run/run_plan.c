/* run_plan.c — choose what the command line does not give: arguments, block and grid. */
#include "cli/run/cli_run.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_ELEMENTS (1u << 24) /* maximum number of elements of a generated buffer */

/* The size of generated data: about 1024 elements as a line, a square or a cube, depending on how many dimensions of the thread
 * index the kernel reads. */
struct shape {
	unsigned count;    /* value for a parameter that bounds the thread index */
	unsigned elements; /* elements of a buffer: `count` to the power of the number of dimensions */
	uint32_t block[3]; /* block of a kernel that reads its block index: several blocks cover the data */
	uint32_t alone[3]; /* block of a kernel that does not read its block index: one block covers the data */
};

static const struct shape shapes[4] = {
	[1] = { 1024, 1024, { 256, 1, 1 }, { 1024, 1, 1 } },
	[2] = { 32, 1024, { 16, 16, 1 }, { 32, 32, 1 } },
	[3] = { 10, 1000, { 10, 10, 5 }, { 10, 10, 10 } },
};

static const struct shape *shape_of(const gpul_signature *s)
{
	return &shapes[s->grid_dims >= 1 && s->grid_dims <= 3 ? s->grid_dims : 1];
}

/* Choose the block.  A kernel that does not read its thread index gets one thread per block, because more would repeat the same work. */
static const uint32_t *block_of(const gpul_signature *s)
{
	static const uint32_t one[3] = { 1, 1, 1 };

	if (!s->reads_tid && s->n_params)
		return one;
	return s->reads_ctaid || !s->n_params ? shape_of(s)->block : shape_of(s)->alone;
}

/* ---- arguments --------------------------------------------------------------------- */

/* Write an ARG for a buffer parameter. */
static void put_buffer(FILE *out, const gpul_signature *s, const gpul_param *p, const struct shape *shape)
{
	unsigned long long elements = (unsigned long long)shape->elements * (p->vector > 1 ? p->vector : 1) + p->beyond;

	if (s->assumed)
		elements = p->elements;
	if (!p->type)
		fprintf(out, "TYPE[%llu]=FILL", elements);
	else if (p->loaded)
		fprintf(out, "%s%s[%llu]=%s", p->stored ? "inout:" : "", gpul_type_name(p->type), elements, p->zeros ? "zeros" : "iota");
	else
		fprintf(out, "out:%s[%llu]", gpul_type_name(p->type), elements);
}

/* Write an ARG for a value.  If the use of any parameter is unknown, write a placeholder, because the value may be a size or a stride. */
static void put_value(FILE *out, const gpul_signature *s, const gpul_param *p, const struct shape *shape)
{
	long long value = s->assumed ? p->value : p->role == GPUL_ROLE_COUNT ? shape->count : 1;

	if (p->role == GPUL_ROLE_UNKNOWN) /* the kernel never uses p */
		fprintf(out, "%s=0", gpul_type_name(p->type));
	else if (!s->complete && p->role == GPUL_ROLE_SCALAR)
		fprintf(out, "%s=NUMBER", gpul_type_name(p->type));
	else if (value_type_is_float(p->type))
		fprintf(out, "%s=2", gpul_type_name(p->type));
	else
		fprintf(out, "%s=%lld", gpul_type_name(p->type), value);
}

/* Write an ARG for parameter p of s, or a placeholder if the code of the kernel does not show how p is used. */
static void put_arg(FILE *out, const gpul_signature *s, const gpul_param *p, const struct shape *shape)
{
	if (p->role == GPUL_ROLE_BUFFER) {
		put_buffer(out, s, p, shape);
	} else if (p->role == GPUL_ROLE_FUNCTION) {
		fputs("fn:VARIABLE", out);
	} else if (p->role == GPUL_ROLE_STRUCT && (s->complete || p->members)) {
		fprintf(out, "struct[%u]{", p->bytes);
		for (uint32_t i = 0; i < p->n_members; i++) {
			fprintf(out, "%s%u:", i ? ";" : "", p->members[i].offset);
			put_arg(out, s, &p->members[i], shape);
		}
		fputc('}', out);
	} else if (p->role == GPUL_ROLE_STRUCT) {
		fputs("bytes=@FILE", out);
	} else if (p->type) {
		put_value(out, s, p, shape);
	} else {
		fputs(p->bytes == 8 ? "BUFFER-OR-VALUE" : "TYPE=NUMBER", out);
	}
}

/* Generate one ARG for each parameter.  The array and its texts are owned; NULL: no memory. */
static char **invent_texts(const gpul_signature *s, const struct shape *shape)
{
	char **texts = calloc(s->n_params + 1, sizeof *texts);
	size_t n_bytes;

	for (size_t i = 0; texts && i < s->n_params; i++) {
		FILE *out = open_memstream(&texts[i], &n_bytes);

		if (!out)
			break;
		put_arg(out, s, &s->params[i], shape);
		fclose(out);
	}
	return texts;
}

static void free_texts(char **texts, size_t n)
{
	for (size_t i = 0; texts && i < n; i++)
		free(texts[i]);
	free(texts);
}

/* Write a word of a command line, in quotes if the shell would change it. */
static void put_word(FILE *out, const char *word)
{
	bool plain = *word != '\0';

	for (const char *c = word; *c; c++)
		plain = plain && (isalnum((unsigned char)*c) || strchr("_./,:=@%+-", *c));
	fputc(' ', out);
	if (plain) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (char[2]){ *word, 0 }, out);
	fputc('\'', out);
}

static void put_dims(FILE *out, const char *name, const uint32_t d[3])
{
	fprintf(out, " --%s %u", name, d[0]);
	if (d[1] > 1 || d[2] > 1)
		fprintf(out, ",%u", d[1]);
	if (d[2] > 1)
		fprintf(out, ",%u", d[2]);
}

static void put_filter(FILE *out, const struct image_filter *f)
{
	if (f->sm)
		fprintf(out, " --sm %u%.1s", f->sm, (const char[]){ f->suffix, 0 });
	if (f->kind)
		fprintf(out, " --kind %s", gpul_image_kind_name(f->kind));
}

/* Return the command line with all generated values; texts[] has one ARG per parameter.  Owned; NULL: no memory. */
static char *format_command_line(const struct run *r, char **texts, size_t n)
{
	char *line = NULL;
	size_t n_bytes;
	FILE *out = open_memstream(&line, &n_bytes);

	if (!out)
		return NULL;
	fputs("gpuload run", out);
	for (size_t i = 0; i < r->ask.n_files; i++) {
		const char *file = r->ask.files[i];
		char *path = NULL; /* write -x.cu as ./-x.cu, so that it is not taken for an option */

		if (*file == '-' && file[1] && asprintf(&path, "./%s", file) > 0)
			file = path;
		put_word(out, file);
		free(path);
	}
	if (r->ask.kernel || gpul_module_n_kernels(r->module) > 1) {
		fputs(" --kernel", out);
		put_word(out, gpul_kernel_name(r->kernel));
	}
	for (size_t i = 0; i < r->ask.nvrtc.n_words; i++)
		put_word(out, r->ask.nvrtc.words[i]);
	put_filter(out, &r->ask.only);
	if (r->ask.link_all)
		fputs(" --link-all", out);
	for (size_t i = 0; r->ask.link_args && r->ask.link_args[i]; i++) {
		fputs(" --link-arg", out);
		put_word(out, r->ask.link_args[i]);
	}
	put_dims(out, "grid", r->config.grid);
	put_dims(out, "block", r->config.block);
	if (gpul_kernel_signature(r->kernel)->uses_dynamic_shared)
		fprintf(out, r->ask.shared_bytes ? " --shared %u" : " --shared BYTES", r->ask.shared_bytes);
	for (size_t i = 0; i < n; i++)
		put_word(out, texts[i]);
	return fclose(out) ? NULL : line;
}

/* Print the signature and the command line, in which the user then only fills in the unknown arguments. */
static gpul_status ask_for_args(const struct run *r, const char *line, const char *why, gpul_error *err)
{
	char *signature = gpul_signature_text(gpul_kernel_signature(r->kernel));

	if (!signature)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the signature of a kernel");
	printf("%s\n%s\n", signature, line);
	free(signature);
	return gpul_fail(err, GPUL_EINVAL, 0, "no arguments given, and not all of them can be inferred from the code of %s: %s",
			 gpul_kernel_demangled(r->kernel), why);
}

static gpul_status parse_invented_args(struct run *r, char **texts, size_t n, gpul_error *err)
{
	free(r->ask.args);
	r->ask.args = calloc(n + 1, sizeof *r->ask.args);
	if (!r->ask.args)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu arguments", n);
	for (r->ask.n_args = 0; r->ask.n_args < n; r->ask.n_args++) {
		gpul_status st = arg_parse(texts[r->ask.n_args], NULL, &r->ask.args[r->ask.n_args], err);

		if (st)
			return st;
	}
	return GPUL_OK;
}

/* ---- block and grid ---------------------------------------------------------------- */

/* Choose the default block, limited by the kernel's .maxntid and by its arrays in shared memory; .reqntid fixes the block. */
static void choose_block(const gpul_signature *s, uint32_t block[3])
{
	uint64_t limit = 1;

	for (int d = 0; d < 3; d++)
		block[d] = s->reqntid[0] ? (s->reqntid[d] ? s->reqntid[d] : 1) : block_of(s)[d];
	if (s->reqntid[0])
		return;
	for (int d = 0; d < 3; d++) /* .maxntid limits the number of threads, not each dimension */
		limit *= s->maxntid[d] ? s->maxntid[d] : 1;
	if (!s->maxntid[0])
		limit = UINT64_MAX;
	if (s->shared_threads && s->shared_threads < limit)
		limit = s->shared_threads;
	for (int d = 2; d >= 0; d--)
		while (block[d] > 1 && (uint64_t)block[0] * block[1] * block[2] > limit)
			block[d] /= 2;
}

static bool find_given_count(const gpul_signature *s, const struct arg *args, uint64_t *out)
{
	bool found = false;

	for (size_t i = 0; i < s->n_params; i++) {
		struct value v;

		if (s->params[i].role != GPUL_ROLE_COUNT || args[i].kind != ARG_SCALAR || value_type_is_float(args[i].type))
			continue;
		v = value_load(args[i].type, args[i].data);
		if (!v.is_unsigned && (int64_t)v.i < 0)
			continue;
		*out = found && *out > v.i ? *out : v.i;
		found = true;
	}
	return found;
}

/* If one block covers the data, reduce the default block to n threads.  With a count parameter, round n up to whole warps, so that
 * barriers and shuffles work: the kernel compares the index of the extra threads with the count. */
static void shrink_block(const struct run *r, uint64_t n, bool counted, uint32_t block[3])
{
	if (counted && n < block[0])
		n = (n + 31) / 32 * 32;
	if (!r->ask.block[0] && !gpul_kernel_signature(r->kernel)->reqntid[0] && n < block[0])
		block[0] = (uint32_t)(n ? n : 1);
}

/* Choose the grid: enough blocks for the count parameter in each dimension that the kernel reads, or else for the largest buffer. */
static gpul_status choose_grid(const struct run *r, const gpul_signature *s, gpul_launch_config *c, gpul_error *err)
{
	uint64_t n = 1;
	bool counted = find_given_count(s, r->ask.args, &n);
	unsigned dims = s->grid_dims > 1 ? s->grid_dims : 1;

	if (!counted && dims > 1)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--grid is needed: %s reads %u dimensions of the thread index, and no "
				 "argument gives their size",
				 gpul_kernel_demangled(r->kernel), dims);
	for (size_t i = 0; !counted && i < r->ask.n_args; i++)
		if (r->ask.args[i].kind == ARG_BUFFER && r->ask.args[i].count > n)
			n = r->ask.args[i].count;
	if (!s->reads_ctaid && dims == 1) /* the kernel ignores the block index, so one block is launched */
		shrink_block(r, n, counted, c->block);
	for (unsigned d = 0; d < 3; d++) {
		uint64_t blocks = d < dims && s->reads_ctaid ? n / c->block[d] + (n % c->block[d] != 0) : 1;
		uint64_t limit = d == 0 ? INT32_MAX : UINT16_MAX;

		/* If more blocks are needed than CUDA's limit, a kernel with a grid-stride loop still works; other kernels leave
		 * elements unwritten, which is reported. */
		c->grid[d] = (uint32_t)(blocks < 1 ? 1 : blocks > limit ? limit : blocks);
	}
	return GPUL_OK;
}

static void apply_given_launch(const struct run_request *q, gpul_launch_config *c)
{
	for (int d = 0; d < 3; d++) {
		if (q->grid[0])
			c->grid[d] = q->grid[d];
		if (q->block[0])
			c->block[d] = q->block[d];
	}
	c->shared_bytes = q->shared_bytes;
}

/* ---- the plan ---------------------------------------------------------------------- */

static bool has_count_param(const gpul_param *params, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (params[i].role == GPUL_ROLE_COUNT || has_count_param(params[i].members, params[i].n_members))
			return true;
	return false;
}

/* Choose a grid for the generated data, then adapt the data to the launch.  A kernel that uses one block gets no more elements than
 * threads.  Without a count parameter to stop extra threads, every thread gets an element. */
static void invent_launch(const gpul_signature *s, struct shape *shape, const struct run_request *q, gpul_launch_config *c)
{
	uint64_t threads = 1;

	for (unsigned d = 0; d < 3; d++)
		c->grid[d] = d < s->grid_dims && s->n_params && s->reads_ctaid ? (shape->count + c->block[d] - 1) / c->block[d] : 1;
	apply_given_launch(q, c);
	for (unsigned d = 0; d < 3; d++)
		threads *= (uint64_t)c->grid[d] * c->block[d];
	if (s->reads_tid && !s->reads_ctaid && s->grid_dims == 1 && threads < shape->count)
		shape->count = shape->elements = (unsigned)threads;
	if (!has_count_param(s->params, s->n_params) && threads > shape->elements && threads <= MOST_ELEMENTS)
		shape->elements = (unsigned)threads;
}

/* Use the launch for which the arguments were inferred; for any other launch, the user must give the arguments. */
static gpul_status take_assumed_launch(struct run *r, const gpul_signature *s, gpul_error *err)
{
	for (int d = 0; d < 3; d++)
		if ((r->ask.grid[0] && r->ask.grid[d] != s->grid[d]) || (r->ask.block[0] && r->ask.block[d] != s->block[d]))
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "the arguments of %s can be inferred from its code only for --grid %u,%u,%u --block %u,%u,%u: "
					 "give the arguments, or leave out --grid and --block",
					 s->kernel, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2]);
	memcpy(r->config.grid, s->grid, sizeof s->grid);
	memcpy(r->config.block, s->block, sizeof s->block);
	return GPUL_OK;
}

static gpul_status invent_args_and_launch(struct run *r, const gpul_signature *s, gpul_error *err)
{
	struct shape shape = *shape_of(s);
	char **texts = NULL;
	gpul_status st = GPUL_OK;

	invent_launch(s, &shape, &r->ask, &r->config);
	if (s->assumed)
		st = take_assumed_launch(r, s, err);
	if (st)
		return st;
	texts = invent_texts(s, &shape);
	for (size_t i = 0; texts && i < s->n_params; i++)
		if (!texts[i])
			st = GPUL_ENOMEM;
	if (st == GPUL_OK && texts)
		r->assumed = format_command_line(r, texts, s->n_params);
	if (!r->assumed)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a command line");
	else if (!s->complete)
		st = ask_for_args(r, r->assumed, s->why_not, err);
	else
		st = parse_invented_args(r, texts, s->n_params, err);
	free_texts(texts, s->n_params);
	return st;
}

/* Check --expect and --save again, because generated arguments did not exist when the command line was parsed. */
static gpul_status check_targets(const struct run *r, const struct run_target *t, size_t n, gpul_error *err)
{
	for (size_t i = 0; i < n; i++)
		if (t[i].arg >= r->ask.n_args || r->ask.args[t[i].arg].kind != ARG_BUFFER)
			return gpul_fail(err, GPUL_EINVAL, 0, "--expect or --save names argument %zu, which is not a buffer: %s", t[i].arg,
					 r->assumed ? r->assumed : "");
	return GPUL_OK;
}

/* Check before the launch that files of --save can be created, so that a long run does not end with a result that cannot be saved. */
static gpul_status check_new_files(const struct run *r, gpul_error *err)
{
	for (size_t i = 0; i < r->ask.n_saves && !r->ask.force; i++) {
		const char *path = r->ask.saves[i].what;
		struct stat there;

		if (stat(path, &there) == 0 && S_ISREG(there.st_mode))
			return gpul_fail(err, GPUL_ESYS, EEXIST, "--save: %s already exists; --force replaces it", path);
	}
	return GPUL_OK;
}

gpul_status run_plan(struct run *r, gpul_error *err)
{
	const gpul_signature *s = gpul_kernel_signature(r->kernel);
	gpul_status st;

	choose_block(s, r->config.block);
	apply_given_launch(&r->ask, &r->config);
	if (r->ask.has_args) {
		st = run_fit(s, r->ask.args, r->ask.n_args, err);
		if (st == GPUL_OK && !r->ask.grid[0])
			st = choose_grid(r, s, &r->config, err);
	} else {
		st = invent_args_and_launch(r, s, err);
	}
	if (s->n_params == 0 && r->ask.grid[0] && r->ask.block[0]) { /* nothing was assumed: grid and block are given */
		free(r->assumed);
		r->assumed = NULL;
	}
	if (st == GPUL_OK)
		st = check_targets(r, r->ask.expects, r->ask.n_expects, err);
	if (st == GPUL_OK)
		st = check_targets(r, r->ask.saves, r->ask.n_saves, err);
	if (st == GPUL_OK)
		st = check_new_files(r, err);
	return st;
}
