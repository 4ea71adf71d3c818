/* parse_lazy.c — parses the bodies of a text that is known to be valid when they are needed.
 *
 *     gpul_ptx_parse_lazy   parses the declarations; skips each body, and records where its function begins
 *     gpul_ptx_need_body    goes back to the beginning of the function, and parses it again with its body
 *
 * The parser is kept, because a body refers to names of the module and adds entries to its tables.  Other threads may read these
 * tables meanwhile, so they must not move: each has an address range that is large enough for the whole text. The system allocates
 * memory only for the pages that are written.
 *
 * gpul_ptx_module_destroy() at the end of this file destroys modules of all kinds. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ptx/parse/parser_internal.h"

struct ptx_bodies {
	pthread_mutex_t lock; /* protects the parser, and the tables of the module that grow */
	ptx_parser parser;
	bool *parsed; /* for each function that gpul_ptx_parse_lazy() found: its body has been parsed */
	uint32_t n_rows;
	const char **strings;
	size_t room; /* capacity of `strings` */
	char file_name[];
};

enum { MAX_EXTRA_MODS = 256, SPARE_ROWS = 64 };

/* The minimum length in the text of what becomes one table entry: "{", "[1", "\"\"", ".loc 1 1 1", ".callprototype _;".  The head
 * of a function is parsed twice, the second time with its body, so dimensions and pragmas count half. */
enum { SHORTEST_INIT = 1, SHORTEST_DIM = 1, SHORTEST_PRAGMA = 1, SHORTEST_LOC = 10, SHORTEST_PROTOTYPE = 16 };

/* ---- tables that grow in place ------------------------------------------------------------------ */

static void *reserve(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static void release(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

/* Reserve address space for a table that is large enough for the whole text. */
#define RESERVE(array, text_bytes, shortest) \
	((array).room = (text_bytes) / (shortest) + SPARE_ROWS, (array).at = reserve((array).room * sizeof *(array).at), (array).at != NULL)
#define RELEASE(array) (release((array).at, (array).room * sizeof *(array).at), (array).at = NULL, (array).n = (array).room = 0)

static bool reserve_tables(struct ptx_bodies *b, size_t text_bytes)
{
	ptx_parser *p = &b->parser;

	b->room = text_bytes + SPARE_ROWS; /* each name is followed by a separator; a name such as %r7 also adds its prefix */
	b->strings = reserve(b->room * sizeof *b->strings);
	return b->strings && RESERVE(p->funcs, text_bytes, SHORTEST_PROTOTYPE) && RESERVE(p->inits, text_bytes, SHORTEST_INIT) &&
	       RESERVE(p->dims, text_bytes, SHORTEST_DIM) && RESERVE(p->locs, text_bytes, SHORTEST_LOC) &&
	       RESERVE(p->pragmas, text_bytes, SHORTEST_PRAGMA);
}

static void free_bodies(struct ptx_bodies *b)
{
	ptx_parser *p = &b->parser;

	RELEASE(p->funcs);
	RELEASE(p->inits);
	RELEASE(p->dims);
	RELEASE(p->locs);
	RELEASE(p->pragmas);
	release(b->strings, b->room * sizeof *b->strings);
	ptx_free_parser(p);
	pthread_mutex_destroy(&b->lock);
	free(b->parsed);
	free(b);
}

/* ---- parsing the declarations ----------------------------------------------------------------- */

/* Check that the table of names is large enough.  A declaration such as a<60000> has more names than characters, so only this table
 * can be too small. */
static gpul_status check_names(struct ptx_bodies *b, gpul_error *err)
{
	if (ptx_names_count(&b->parser.names) <= b->room)
		return GPUL_OK;
	return b->parser.status = gpul_fail(err, GPUL_ENOMEM, 0, "%s: more than %zu names", b->file_name, b->room);
}

/* Update the module's counts, so that they include the entries that the parser has added. */
static void show_tables(ptx_parser *p, gpul_ptx_module *m)
{
	m->n_funcs = PTX_N(p->funcs);
	m->n_inits = PTX_N(p->inits);
	m->n_dims = PTX_N(p->dims);
	m->n_locs = PTX_N(p->locs);
	m->n_pragmas = PTX_N(p->pragmas);
	ptx_set_names(p, m);
}

static gpul_ptx_module *make_module(struct ptx_bodies *b)
{
	ptx_parser *p = &b->parser;
	gpul_ptx_module *m = calloc(1, sizeof *m);

	if (!m)
		return NULL;
	*m = p->module;
	m->vars = p->module_vars.at;
	m->n_vars = PTX_N(p->module_vars);
	m->regs = p->module_regs.at;
	m->n_regs = PTX_N(p->module_regs);
	m->items = p->module_items.at;
	m->n_items = PTX_N(p->module_items);
	m->files = p->files.at;
	m->n_files = PTX_N(p->files);
	m->sections = p->sections.at;
	m->n_sections = PTX_N(p->sections);
	m->aliases = p->aliases.at;
	m->n_aliases = PTX_N(p->aliases);
	m->funcs = p->funcs.at;
	m->inits = p->inits.at;
	m->dims = p->dims.at;
	m->locs = p->locs.at;
	m->pragmas = p->pragmas.at;
	m->strings = b->strings;
	m->extra_mods = ptx_arena_alloc(&p->arena, MAX_EXTRA_MODS * sizeof *m->extra_mods);
	b->n_rows = PTX_N(p->funcs);
	b->parsed = calloc(b->n_rows + 1u, sizeof *b->parsed);
	if (!m->extra_mods || !b->parsed) {
		free(m);
		return NULL;
	}
	show_tables(p, m);
	m->bodies = b;
	return m;
}

gpul_status gpul_ptx_parse_lazy(const char *text, size_t text_bytes, const char *file_name, gpul_ptx_module **out, gpul_error *err)
{
	const size_t name_bytes = strlen(file_name) + 1;
	struct ptx_bodies *b = calloc(1, sizeof *b + name_bytes);
	gpul_ptx_module *m = NULL;
	gpul_status st;

	if (!b)
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s: out of memory while parsing", file_name);
	memcpy(b->file_name, file_name, name_bytes);
	pthread_mutex_init(&b->lock, NULL);
	b->parser.file_name = b->file_name;
	b->parser.err = err;
	b->parser.skips_bodies = true;
	if (reserve_tables(b, text_bytes))
		st = ptx_parse_text(&b->parser, text, text_bytes);
	else
		st = gpul_fail(err, GPUL_ENOMEM, 0, "%s: no address range for the tables of %zu bytes of PTX", file_name, text_bytes);
	if (!st)
		st = check_names(b, err);
	if (!st) {
		m = make_module(b);
		st = m ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "%s: out of memory while parsing", file_name);
	}
	if (m)
		*out = m;
	else
		free_bodies(b);
	return st;
}

/* ---- parsing a body when it is needed ---------------------------------------------------------- */

/* Set the fields for the body of a function, which the parser has left in p->func.  Other threads may read the other fields at the
 * same time. */
static void set_body(gpul_ptx_func *row, const gpul_ptx_func *f)
{
	row->vars = f->vars;
	row->n_vars = f->n_vars;
	row->regs = f->regs;
	row->n_regs = f->n_regs;
	row->n_flat_regs = f->n_flat_regs;
	row->n_module_regs = f->n_module_regs;
	row->labels = f->labels;
	row->n_labels = f->n_labels;
	row->insts = f->insts;
	row->n_insts = f->n_insts;
	row->operands = f->operands;
	row->n_operands = f->n_operands;
	row->scopes = f->scopes;
	row->n_scopes = f->n_scopes;
	row->items = f->items;
	row->n_items = f->n_items;
}

static gpul_status parse_body(struct ptx_bodies *b, gpul_ptx_module *m, uint32_t row, gpul_error *err)
{
	ptx_parser *p = &b->parser;
	const struct ptx_place *head = &p->heads.at[row];

	if (p->status)
		return gpul_fail(err, p->status, 0, "%s: an earlier body could not be parsed", b->file_name);
	p->err = err;
	p->skips_bodies = false;
	p->lexer.at = head->at;
	p->lexer.line_start = head->line_start;
	p->lexer.line = head->line;
	ptx_next(p);
	ptx_parse_function_again(p);
	p->err = NULL;
	if (p->status || check_names(b, err))
		return p->status;
	set_body(&m->funcs[row], &p->func);
	show_tables(p, m);
	b->parsed[row] = true;
	return GPUL_OK;
}

gpul_status gpul_ptx_need_body(gpul_ptx_module *m, uint32_t row, gpul_error *err)
{
	struct ptx_bodies *b = m->bodies;
	gpul_status st = GPUL_OK;

	if (!b || row >= b->n_rows || !m->funcs[row].has_body)
		return GPUL_OK;
	pthread_mutex_lock(&b->lock);
	if (!b->parsed[row])
		st = parse_body(b, m, row, err);
	pthread_mutex_unlock(&b->lock);
	return st;
}

/* ---- destroying a module -------------------------------------------------------------------------- */

void gpul_ptx_module_destroy(gpul_ptx_module *m)
{
	if (!m || __atomic_fetch_sub(&m->n_others, 1, __ATOMIC_ACQ_REL))
		return;
	if (m->bodies) {
		free_bodies(m->bodies);
	} else {
		ptx_arena_free(m->storage);
		free(m->storage);
	}
	free(m);
}

gpul_ptx_module *gpul_ptx_module_share(gpul_ptx_module *m)
{
	__atomic_fetch_add(&m->n_others, 1, __ATOMIC_RELAXED);
	return m;
}
