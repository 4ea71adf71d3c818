/* prune_scan.c — divides PTX into the declarations of its functions and variables, and skips bodies. */
#include <string.h>

#include "ptx/link/prune_internal.h"
#include "ptx/module.h"
#include "ptx/parse/lexer_internal.h"

static bool dot_is_one_of(const ptx_token *t, const char *const *words)
{
	for (; t->kind == PTX_TOK_DOT && *words; words++)
		if (strlen(*words) == t->bytes && !memcmp(*words, t->text, t->bytes))
			return true;
	return false;
}

static const char *const linkages[] = { "visible", "extern", "weak", "common", NULL };
static const char *const kernels[] = { "entry", NULL }, *const functions[] = { "func", NULL }, *const aliases[] = { "alias", NULL };
static const char *const variables[] = { "global", "const", "shared", "tex", "texref", "samplerref", "surfref", NULL };

static bool begins_item(const ptx_token *t)
{
	return dot_is_one_of(t, linkages) || dot_is_one_of(t, kernels) || dot_is_one_of(t, functions) || dot_is_one_of(t, variables) ||
	       dot_is_one_of(t, aliases);
}

static void skip_body(ptx_lexer *l, ptx_token *t)
{
	unsigned depth = 0;

	while (ptx_lexer_skip_body(l, &depth))
		ptx_lexer_next(l, t); /* skip the .shared at which ptx_lexer_skip_body() has stopped */
	ptx_lexer_next(l, t);         /* skip '}' */
}

/* Read one declaration, whose first token is t.  Returns false if the text ends before the declaration does. */
static bool read_item(ptx_lexer *l, ptx_token *t, ptx_prune_item *i)
{
	bool has_linkage = false;
	unsigned open = 0;

	i->kind = PTX_ITEM_VARIABLE;
	i->start = t->text - 1; /* include the dot of the directive */
	for (; t->kind != PTX_TOK_END && t->kind != PTX_TOK_ERROR; ptx_lexer_next(l, t)) {
		has_linkage |= dot_is_one_of(t, linkages);
		if (dot_is_one_of(t, kernels))
			i->kind = PTX_ITEM_KERNEL;
		else if (open == 0 && dot_is_one_of(t, functions))
			i->kind = PTX_ITEM_FUNCTION;
		else if (dot_is_one_of(t, aliases))
			i->kind = PTX_ITEM_ALIAS;
		else if (t->kind == PTX_TOK_WORD && open == 0 && !i->name)
			i->name = t->text, i->name_bytes = t->bytes;
		else if (t->kind == '{' && i->kind != PTX_ITEM_VARIABLE) {
			i->body = t->text;
			skip_body(l, t);
		}
		open += t->kind == '(' || t->kind == '[' || t->kind == '{';
		open -= open && (t->kind == ')' || t->kind == ']' || t->kind == '}');
		if ((t->kind == ';' && open == 0) || (t->kind == '}' && i->body)) {
			i->end = t->text + 1;
			i->is_private = !has_linkage && i->kind != PTX_ITEM_ALIAS;
			return i->name != NULL;
		}
	}
	return false;
}

static bool add_item(ptx_pruner *p, const ptx_prune_item *i)
{
	uint32_t name = ptx_names_intern(&p->names, i->name, i->name_bytes), row = (uint32_t)p->items.n;
	ptx_prune_item *to = gpul_array_push(&p->items);
	ptx_found before;

	if (!to || !name)
		return false;
	*to = *i;
	to->next = ptx_names_find(&p->names, i->name, i->name_bytes, &before) ? before.row : GPUL_PTX_NONE;
	return ptx_names_bind(&p->names, name, PTX_IS_FUNC, row, 0);
}

gpul_status ptx_prune_scan(ptx_pruner *p, uint32_t text)
{
	ptx_lexer l;
	ptx_token t;

	ptx_lexer_init(&l, p->texts[text].text, p->texts[text].n_bytes);
	for (ptx_lexer_next(&l, &t); t.kind != PTX_TOK_END; ptx_lexer_next(&l, &t)) {
		ptx_prune_item i = { .text = text };

		if (t.kind == '{') { /* skip the block of a .section */
			skip_body(&l, &t);
		} else if (begins_item(&t)) {
			if (!read_item(&l, &t, &i))
				return gpul_fail(p->err, GPUL_EFORMAT, 0, "line %u: a declaration does not end", t.line);
			if (!add_item(p, &i))
				return gpul_fail(p->err, GPUL_ENOMEM, 0, "out of memory while reading PTX");
		}
		if (t.kind == PTX_TOK_ERROR)
			return gpul_fail(p->err, GPUL_EFORMAT, 0, "line %u: %s", t.line, l.error ? l.error : "the input is not PTX");
	}
	return GPUL_OK;
}
