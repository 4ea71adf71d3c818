/* prune.c — follows names from the wanted kernels, and writes only the declarations that are reached. */
#include "ptx/link/prune.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/link/prune_internal.h"
#include "ptx/module.h"

/* Functions to which only initializers refer may get a body that calls this function, which fails like an assertion:
 * __assertfail(message, file, line, function, bytes per character). */
#define DECLARE_NOT_LINKED ".extern .func gpuload_not_linked();"
#define CALL_NOT_LINKED    "{ call.uni gpuload_not_linked; }"
static const char not_linked[] =
	".version 6.0\n.target sm_30\n.address_size 64\n"
	".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);\n"
	/* the text "it was linked (--link-all links it)" */
	".global .align 1 .b8 gpuload_message[] = { 105,116,32,119,97,115,32,108,105,110,107,101,100,32,40,45,45,108,105,110,107,45,"
	"97,108,108,32,108,105,110,107,115,32,105,116,41,0 };\n"
	/* the text "gpuload" */
	".global .align 1 .b8 gpuload_file[] = { 103,112,117,108,111,97,100,0 };\n"
	/* the text "a function that only a table refers to" */
	".global .align 1 .b8 gpuload_function[] = { 97,32,102,117,110,99,116,105,111,110,32,116,104,97,116,32,111,110,108,121,32,97,"
	"32,116,97,98,108,101,32,114,101,102,101,114,115,32,116,111,0 };\n"
	".visible .func gpuload_not_linked()\n{\n.reg .b64 a;\n.param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 c;\n"
	"mov.b64 a, gpuload_message; cvta.global.u64 a, a; st.param.b64 [m], a;\n"
	"mov.b64 a, gpuload_file; cvta.global.u64 a, a; st.param.b64 [f], a;\n"
	"st.param.b32 [l], 1;\n"
	"mov.b64 a, gpuload_function; cvta.global.u64 a, a; st.param.b64 [n], a;\n"
	"st.param.b64 [c], 1;\n"
	"call.uni __assertfail, (m, f, l, n, c);\n"
	"trap;\n}\n";

static gpul_status no_memory(const ptx_pruner *p)
{
	return gpul_fail(p->err, GPUL_ENOMEM, 0, "out of memory while collecting the functions that a kernel uses");
}

/* ---- following names ----------------------------------------------------------------------- */

static bool reach_item(ptx_pruner *p, uint32_t row, ptx_reached how)
{
	ptx_prune_item *i = &p->items.at[row];
	uint32_t *to;

	if (how <= i->reached)
		return true;
	i->reached = how;
	to = gpul_array_push(&p->todo);
	if (to)
		*to = row;
	return to != NULL;
}

/* Mark as reached the declarations and definitions of a name that an item uses: the private ones in the item's PTX text if there
 * are any, else those that are visible in all texts. */
static bool reach_name(ptx_pruner *p, const ptx_prune_item *from, uint32_t last)
{
	bool from_table = from->kind == PTX_ITEM_VARIABLE, has_private = false, ok = true;
	const uint32_t text = from->text;

	for (uint32_t row = last; row != GPUL_PTX_NONE; row = p->items.at[row].next)
		has_private |= p->items.at[row].is_private && p->items.at[row].text == text;
	for (uint32_t row = last; ok && row != GPUL_PTX_NONE; row = p->items.at[row].next) {
		const ptx_prune_item *i = &p->items.at[row];

		if (has_private ? i->text == text : !i->is_private)
			ok = reach_item(p, row, from_table && i->kind == PTX_ITEM_FUNCTION ? PTX_IN_TABLE : PTX_REACHED);
	}
	return ok;
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

/* Mark every name in an item as reached, except registers (%r) and modifiers (.u32).  If a label or local name equals the name of a
 * declaration, the declaration is kept without need, which is harmless. */
static bool follow_item(ptx_pruner *p, uint32_t row)
{
	const ptx_prune_item from = p->items.at[row];
	bool ok = true;

	if (from.kind == PTX_ITEM_FUNCTION && from.reached == PTX_IN_TABLE)
		return true;
	for (const char *at = from.start; ok && at < from.end;) {
		const char *word = at++;
		bool is_name = is_name_byte(*word), is_other = *word == '%' || *word == '.' || (*word >= '0' && *word <= '9');
		ptx_found found;

		while ((is_name || is_other) && at < from.end && is_name_byte(*at))
			at++;
		if (is_name && !is_other && ptx_names_find(&p->names, word, (uint32_t)(at - word), &found))
			ok = reach_name(p, &from, found.row);
	}
	return ok;
}

static bool follow_all(ptx_pruner *p)
{
	bool ok = true;

	while (ok && p->todo.n)
		ok = follow_item(p, p->todo.at[--p->todo.n]);
	return ok;
}

static bool is_failing(const ptx_prune_item *i)
{
	return i->kind == PTX_ITEM_FUNCTION && i->reached == PTX_IN_TABLE && i->body;
}

/* Link the functions to which only initializers refer, unless their total size exceeds table_bytes. */
static bool follow_tables(ptx_pruner *p, size_t table_bytes)
{
	size_t n_bytes = 0, before = SIZE_MAX;
	bool ok = true;

	while (ok && n_bytes != before) { /* repeat, because a function that is linked now may refer to another table */
		before = n_bytes;
		n_bytes = 0;
		for (size_t k = 0; k < p->items.n; k++)
			if (is_failing(&p->items.at[k]))
				n_bytes += (size_t)(p->items.at[k].end - p->items.at[k].body);
		if (n_bytes == 0 || n_bytes > table_bytes)
			return true;
		for (size_t k = 0; ok && k < p->items.n; k++)
			if (p->items.at[k].reached == PTX_IN_TABLE)
				ok = reach_item(p, (uint32_t)k, PTX_REACHED);
		ok = ok && follow_all(p);
	}
	return ok;
}

static gpul_status find_reached(ptx_pruner *p, const gpul_ptx_prune_options *o)
{
	bool ok = true, any = false;

	for (size_t k = 0; ok && k < p->items.n; k++) {
		const ptx_prune_item *i = &p->items.at[k];
		char *name = i->kind == PTX_ITEM_KERNEL && i->body ? strndup(i->name, i->name_bytes) : NULL;

		ok = i->kind != PTX_ITEM_KERNEL || !i->body || name;
		if (name && o->is_root(o->context, name)) {
			ok = reach_item(p, (uint32_t)k, PTX_REACHED);
			any = true;
		}
		free(name);
	}
	if (!ok || !follow_all(p) || !follow_tables(p, o->table_bytes))
		return no_memory(p);
	return any ? GPUL_OK : gpul_fail(p->err, GPUL_EFORMAT, 0, "no PTX input contains any of the requested kernels");
}

/* ---- writing ------------------------------------------------------------------------------- */

struct out {
	char *at;
};

static void put(struct out *o, const char *from, const char *to)
{
	memcpy(o->at, from, (size_t)(to - from));
	o->at += to - from;
}

static void put_text(struct out *o, const char *text)
{
	put(o, text, text + strlen(text));
}

static void put_lines(struct out *o, const char *from, const char *to)
{
	while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
		*o->at++ = '\n';
		from++;
	}
}

/* Write the remaining declarations of a PTX text, whose declarations are `items`. */
static bool write_text(gpul_ptx_text *t, const ptx_prune_item *items, size_t n_items)
{
	const char *at = t->text, *end = t->text + t->n_bytes;
	size_t room = 1 + sizeof DECLARE_NOT_LINKED;
	bool any = false, declared = false;
	struct out o;

	for (size_t k = 0; k < n_items; k++) {
		any |= items[k].reached != PTX_NOT_REACHED && (items[k].body || items[k].kind != PTX_ITEM_FUNCTION);
		room += is_failing(&items[k]) ? sizeof CALL_NOT_LINKED : 0;
	}
	if (!any)
		return true;
	t->pruned = o.at = malloc(t->n_bytes + room);
	if (!o.at)
		return false;
	for (size_t k = 0; k < n_items; k++) {
		const ptx_prune_item *i = &items[k];

		put(&o, at, i->start);
		at = i->end;
		if (is_failing(i)) {
			if (!declared)
				put_text(&o, DECLARE_NOT_LINKED);
			declared = true;
			put(&o, i->start, i->body);
			put_text(&o, CALL_NOT_LINKED);
			put_lines(&o, i->body, i->end);
		} else if (i->reached) {
			put(&o, i->start, i->end);
		} else {
			put_lines(&o, i->start, i->end);
		}
	}
	put(&o, at, end);
	*o.at = '\0';
	t->pruned_bytes = (size_t)(o.at - t->pruned);
	o.at = realloc(t->pruned, t->pruned_bytes + 1);
	t->pruned = o.at ? o.at : t->pruned;
	return true;
}

static gpul_status write_all(ptx_pruner *p, gpul_ptx_prune_result *out)
{
	size_t first = 0;
	bool ok = true;

	*out = (gpul_ptx_prune_result){ 0 };
	for (uint32_t k = 0; ok && k < p->n_texts; k++) {
		size_t n = 0;

		for (; first + n < p->items.n && p->items.at[first + n].text == k; n++) {
			const ptx_prune_item *i = &p->items.at[first + n];

			out->n_functions += i->body != NULL;
			out->n_left_out += i->body && !i->reached;
			out->n_failing += is_failing(i);
		}
		ok = write_text(&p->texts[k], p->items.at + first, n);
		first += n;
	}
	out->failing = out->n_failing ? not_linked : NULL;
	if (ok)
		return GPUL_OK;
	for (uint32_t k = 0; k < p->n_texts; k++) {
		free(p->texts[k].pruned);
		p->texts[k].pruned = NULL;
	}
	return no_memory(p);
}

gpul_status gpul_ptx_prune(gpul_ptx_text *texts, size_t n, const gpul_ptx_prune_options *options, gpul_ptx_prune_result *out,
			   gpul_error *err)
{
	ptx_pruner p = { .texts = texts, .n_texts = (uint32_t)n, .err = err };
	gpul_status st = GPUL_OK;

	if (!n || n > UINT32_MAX)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot link %zu PTX modules: the number is out of range", n);
	if (!ptx_names_init(&p.names, &p.arena))
		st = no_memory(&p);
	for (uint32_t k = 0; k < n && !st; k++)
		st = ptx_prune_scan(&p, k);
	if (!st)
		st = find_reached(&p, options);
	if (!st)
		st = write_all(&p, out);
	gpul_array_free(&p.items);
	gpul_array_free(&p.todo);
	ptx_names_free(&p.names);
	ptx_arena_free(&p.arena);
	return st;
}
