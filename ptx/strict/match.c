/* match.c — finds the table entry in forms_*.c that describes an instruction, or explains why none does. */
#include "ptx/strict/strict_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_GROUPS = 16, EXPECTED_BYTES = 160 };

/* The cost of each kind of mismatch between an instruction and a table entry.  A wrong type costs less than a wrong modifier. */
enum { COST_ORDER = 3, COST_GROUP = 4, COST_COUNT = 4, COST_MOD = 5, COST_TYPE = 6, COST_OPEN = 3 };

struct group {
	char kind;  /* 0, or '?', '!', '+', '.': see strict_internal.h */
	bool first; /* true if the group is marked by '^' in the table */
	bool type;
	const char *names;
	size_t n_bytes;
};

/* A mismatch between an instruction and a table entry.  The mismatch with the lowest cost gives the best explanation. */
struct miss {
	unsigned cost;
	enum { MISS_NOTHING, MISS_TYPE, MISS_GROUP, MISS_MOD, MISS_ORDER, MISS_COUNT } kind;
	unsigned mod;         /* index in inst->mods; for MISS_GROUP, of the modifier that was found instead; n_mods: there is none */
	unsigned least, most; /* MISS_COUNT: the smallest and largest number of operands */
	char expected[EXPECTED_BYTES];
};

/* The state of a search.  If only .version or .target prevents matches, the entry with the lowest requirements is kept. */
struct search {
	const gpul_ptx_inst *in;
	const char *texts[GPUL_PTX_MAX_MODS];
	const struct strict_form *too_new, *too_old;
	struct miss miss;
	bool any; /* the table has entries for this opcode */
};

/* True if a list, in which `sign` separates the words, contains the word `text`. */
static bool is_listed(const char *list, size_t n_bytes, char sign, const char *text)
{
	const char *end = list + n_bytes;
	size_t n = strlen(text);

	for (const char *at = list; at < end;) {
		const char *stop = memchr(at, sign, (size_t)(end - at));

		stop = stop ? stop : end;
		if ((size_t)(stop - at) == n && !memcmp(at, text, n))
			return true;
		at = stop + 1;
	}
	return false;
}

static bool is_type_group(const struct group *g)
{
	char first[32];
	size_t n = 0;

	while (n < g->n_bytes && n + 1 < sizeof first && g->names[n] != '|')
		n++;
	memcpy(first, g->names, n);
	first[n] = '\0';
	for (unsigned m = GPUL_PTX_MOD_B8; m <= GPUL_PTX_MOD_S16X2; m++)
		if (!strcmp(first, gpul_ptx_mod_text(NULL, m)))
			return true;
	return strict_is_type(GPUL_PTX_MOD_EXTRA, first);
}

static unsigned read_groups(const char *mods, struct group *groups)
{
	unsigned n = 0;

	while (*mods && n < MAX_GROUPS) {
		struct group *g = &groups[n++];
		size_t n_bytes = strcspn(mods, " ");

		*g = (struct group){ .names = mods, .n_bytes = n_bytes };
		for (; g->n_bytes && strchr("?^!+.", *g->names); g->names++, g->n_bytes--) {
			g->first |= *g->names == '^';
			g->kind = *g->names == '^' ? g->kind : *g->names;
		}
		g->type = (!g->kind || g->kind == '?') && is_type_group(g);
		mods += n_bytes;
		mods += *mods == ' ';
	}
	return n;
}

/* Append modifiers, in the form ".a, .b", to the expected ones in the message; none is repeated. */
static void add_expected(struct miss *miss, const char *names, size_t n_bytes)
{
	for (const char *at = names, *end = names + n_bytes; at < end;) {
		const char *stop = memchr(at, '|', (size_t)(end - at));
		size_t used = strlen(miss->expected);
		char word[48];

		stop = stop ? stop : end;
		snprintf(word, sizeof word, "%s.%.*s", used ? ", " : "", (int)(stop - at), at);
		char *known = strstr(miss->expected, used ? word + 2 : word);
		if (used + strlen(word) + 8 > sizeof miss->expected) {
			if (used && !strstr(miss->expected, " ..."))
				memcpy(miss->expected + used, " ...", 5);
			return;
		}
		if (!known || (known[stop - at + 1] && known[stop - at + 1] != ','))
			strcpy(miss->expected + used, word);
		at = stop + 1;
	}
}

static void note(struct miss *miss, unsigned cost, int kind, unsigned mod, const struct group *g)
{
	miss->cost += cost;
	if (miss->kind == MISS_MOD && kind == MISS_GROUP)
		mod = miss->mod; /* for example, .rn was found, but .rni is expected */
	else if (miss->kind != MISS_NOTHING)
		return;
	miss->kind = (unsigned)kind;
	miss->mod = mod;
	if (g)
		add_expected(miss, g->names, g->n_bytes);
}

/* Return the index of the group that contains a modifier which is not a type; NONE: no group does. */
static unsigned find_group(const struct group *groups, unsigned n, unsigned used, const char *text)
{
	for (unsigned k = 0; k < n; k++)
		if (!groups[k].type && (!groups[k].kind || groups[k].kind == '?') && !(used >> k & 1) &&
		    is_listed(groups[k].names, groups[k].n_bytes, '|', text))
			return k;
	return GPUL_PTX_NONE;
}

/* True if some name of the group begins with `text`, or `text` begins with that name: .rn is probably a mistake for .rni, or the
 * reverse. */
static bool is_similar(const struct group *g, const char *text)
{
	for (const char *at = g->names, *end = at + g->n_bytes; at < end; at++) {
		size_t n = strcspn(at, "| "), n_text = strlen(text);

		if (!memcmp(at, text, n < n_text ? n : n_text))
			return true;
		at += n;
	}
	return false;
}

static void note_missing(const struct search *a, struct miss *miss, const struct group *g, bool open)
{
	bool similar = miss->kind == MISS_MOD && is_similar(g, a->texts[miss->mod]);

	if (g->type)
		note(miss, COST_TYPE, MISS_TYPE, a->in->n_mods, g);
	else
		note(miss, similar ? 0 : COST_GROUP + (open ? COST_OPEN : 0), MISS_GROUP, a->in->n_mods, g);
}

/* True for modifiers such as .sat, whose repetition ptxas ignores: add.sat.sat.s32. */
static bool may_repeat(const char *text)
{
	static const char words[] = "cc sat sync shiftamt relu satfinite approx NaN";

	return is_listed(words, sizeof words - 1, ' ', text);
}

/* True if the modifier may occur twice, as .row and .f16 do in mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32. */
static bool may_be_twice(const struct search *a, unsigned i)
{
	static const char words[] = "row col e4m3 e5m2 e3m2 e2m3 e2m1 tf32 bf16 f16";

	return strict_is_type(a->in->mods[i], a->texts[i]) || is_listed(words, sizeof words - 1, ' ', a->texts[i]);
}

static bool stands_before(const struct search *a, unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		if (!strcmp(a->texts[k], a->texts[i]))
			return true;
	return false;
}

static void compare(const struct search *a, const struct strict_form *row, struct miss *miss)
{
	struct group groups[MAX_GROUPS];
	unsigned n = read_groups(row->mods, groups), used = 0, next_type = 0, n_first = 0, last_first = 0;
	bool open = n && groups[n - 1].kind == '.';

	for (unsigned i = 0; i < a->in->n_mods; i++) {
		const char *text = a->texts[i];

		if (stands_before(a, i)) {
			if (may_repeat(text)) {
				n_first += n_first == i;
				continue;
			}
			if (open && !may_be_twice(a, i))
				note(miss, COST_MOD, MISS_MOD, i, NULL);
		}
		for (unsigned k = 0; k < n; k++)
			if (groups[k].kind == '!' && is_listed(groups[k].names, groups[k].n_bytes, '|', text))
				note(miss, COST_MOD, MISS_MOD, i, NULL);
			else if (groups[k].kind == '+' && is_listed(groups[k].names, groups[k].n_bytes, '|', text))
				used |= 1u << k;
		if (strict_is_type(a->in->mods[i], text)) {
			while (next_type < n &&
			       (!groups[next_type].type || (groups[next_type].kind == '?' &&
							    !is_listed(groups[next_type].names, groups[next_type].n_bytes, '|', text))))
				next_type++;
			if (next_type < n && is_listed(groups[next_type].names, groups[next_type].n_bytes, '|', text))
				used |= 1u << next_type++;
			else if (next_type < n)
				note(miss, COST_TYPE, MISS_TYPE, i, &groups[next_type]), used |= 1u << next_type++;
			else if (!open)
				note(miss, COST_TYPE, MISS_MOD, i, NULL);
			continue;
		}
		unsigned k = find_group(groups, n, used, text);

		if (k == GPUL_PTX_NONE && !open)
			note(miss, COST_MOD, MISS_MOD, i, NULL);
		if (k == GPUL_PTX_NONE)
			continue;
		if (groups[k].first && (i != n_first++ || k < last_first))
			note(miss, COST_ORDER, MISS_ORDER, i, NULL);
		last_first = k;
		used |= 1u << k;
	}
	for (unsigned k = 0; k < n; k++)
		if (!(used >> k & 1) && (!groups[k].kind || groups[k].kind == '+'))
			note_missing(a, miss, &groups[k], open);
}

/* Compute the smallest and largest number of operands that the letters `args` allow. */
static void count_letters(const char *args, unsigned *least, unsigned *most)
{
	bool optional = false;

	*least = *most = 0;
	for (; *args; args++) {
		if (*args == '/') {
			optional = true;
		} else if (*args == '*') {
			*most = UINT32_MAX;
		} else if (*most != UINT32_MAX) {
			*least += !optional;
			*most += 1;
		}
	}
}

static void compare_count(const struct search *a, const struct strict_form *row, struct miss *miss)
{
	unsigned n = a->in->n_operands;

	if (!row->args)
		return;
	count_letters(row->args, &miss->least, &miss->most);
	if (n < miss->least || n > miss->most)
		note(miss, COST_COUNT, MISS_COUNT, a->in->n_mods, NULL);
}

static bool is_newer(const struct strict_form *a, const struct strict_form *b)
{
	return a->sm != b->sm ? a->sm > b->sm : a->ptx > b->ptx;
}

/* Compare an instruction with one table entry.  Returns true if the entry describes the instruction. */
static bool try_row(struct strict *s, struct search *a, const struct strict_form *row)
{
	struct miss miss = { 0 };

	compare(a, row, &miss);
	compare_count(a, row, &miss);
	if (miss.cost) {
		bool same = a->any && miss.cost == a->miss.cost && miss.kind == a->miss.kind && miss.mod == a->miss.mod;

		if (same && miss.kind == MISS_COUNT) {
			a->miss.least = miss.least < a->miss.least ? miss.least : a->miss.least;
			a->miss.most = miss.most > a->miss.most ? miss.most : a->miss.most;
		} else if (same && miss.kind != MISS_MOD) {
			for (char *at = miss.expected, *end; *at; at = end) { /* add each ".a" of ".a, .b" separately */
				at += strspn(at, "., ");
				end = at + strcspn(at, ", ");
				add_expected(&a->miss, at, (size_t)(end - at));
			}
		} else if (!a->any || miss.cost < a->miss.cost) {
			a->miss = miss;
		}
		a->any = true;
		return false;
	}
	if (row->until && s->version > row->until && s->sm >= row->until_sm) {
		a->too_old = row;
	} else if (s->version < row->ptx || s->sm < row->sm || !strict_has_arch(s, row->arch)) {
		if (!a->too_new || is_newer(a->too_new, row))
			a->too_new = row;
	} else {
		return true;
	}
	return false;
}

static const struct strict_form *search_rows(struct strict *s, struct search *a)
{
	const struct strict_form *const tables[] = { strict_arithmetic, strict_float, strict_convert,
						     strict_memory,     strict_sync,  strict_special };
	const char *op = gpul_ptx_opcode_text(a->in->opcode);

	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct strict_form *row = tables[t]; row->ops; row++)
			if (is_listed(row->ops, strlen(row->ops), ' ', op) && try_row(s, a, row))
				return row;
	return NULL;
}

/* ---- explain why no form describes the instruction --------------------------------------------------------------------- */

static const char *arch_name(char arch)
{
	return arch == '9'   ? "sm_90a"
	       : arch == 'f' ? "sm_100a, sm_103a, sm_110a or sm_100f"
	       : arch == 'b' ? "sm_100a, sm_103a or sm_100f"
			     : "a suffix, as in sm_90a, sm_100a or sm_100f";
}

static gpul_status fail_version(struct strict *s, const gpul_ptx_inst *in, const struct strict_form *row, const char *name)
{
	if (s->sm < row->sm && !(row->arch && row->arch != 'a'))
		return strict_fail_inst(s, in, "%s needs .target sm_%u%s or higher; this module has sm_%u", name, row->sm,
					row->arch ? "a" : "", s->sm);
	if (!strict_has_arch(s, row->arch))
		return strict_fail_inst(s, in, "%s needs a .target with %s; this module has sm_%u", name, arch_name(row->arch), s->sm);
	return strict_fail_inst(s, in, "%s needs .version %u.%u or higher; this module has %u.%u", name, row->ptx / 10, row->ptx % 10,
				s->version / 10, s->version % 10);
}

static gpul_status fail_old(struct strict *s, const struct search *a, const struct strict_form *row, const char *name)
{
	const char *needs = a->miss.kind == MISS_GROUP ? a->miss.expected : "another form";

	if (row->until_sm)
		return strict_fail_inst(s, a->in, "%s needs %s since .version %u.%u for .target sm_%u and higher", name, needs,
					(row->until + 1) / 10, (row->until + 1) % 10, row->until_sm);
	return strict_fail_inst(s, a->in, "%s needs one of %s since .version %u.%u", name, needs, (row->until + 1) / 10,
				(row->until + 1) % 10);
}

static gpul_status fail_form(struct strict *s, const struct search *a, const char *name)
{
	const char *op = gpul_ptx_opcode_text(a->in->opcode), *expected = a->miss.expected;

	switch (a->miss.kind) {
	case MISS_TYPE:
		if (a->miss.mod < a->in->n_mods)
			return strict_fail_inst(s, a->in, "%s: type .%s is not accepted here: expected %s", name, a->texts[a->miss.mod],
						expected);
		return strict_fail_inst(s, a->in, "%s has no type: expected %s", name, expected);
	case MISS_GROUP:
		return strict_fail_inst(s, a->in, "%s needs %s%s%s%s", name, strchr(expected, ',') ? "one of " : "", expected,
					a->miss.mod < a->in->n_mods ? " instead of ." : "",
					a->miss.mod < a->in->n_mods ? a->texts[a->miss.mod] : "");
	case MISS_COUNT:
		if (a->miss.least == a->miss.most)
			return strict_fail_inst(s, a->in, "%s has %u operands: expected %u", name, a->in->n_operands, a->miss.least);
		return strict_fail_inst(s, a->in, "%s has %u operands: expected %u to %u", name, a->in->n_operands, a->miss.least,
					a->miss.most);
	case MISS_ORDER:
		return strict_fail_inst(s, a->in, "%s: .%s must come directly after '%s'", name, a->texts[a->miss.mod], op);
	default:
		return strict_fail_inst(s, a->in, "%s: modifier .%s is not accepted with these types and modifiers", name,
					a->texts[a->miss.mod]);
	}
}

/* ---- the search, with a cache ------------------------------------------------------------- */

static unsigned hash_inst(const gpul_ptx_inst *in)
{
	uint32_t h = (in->opcode ^ (uint32_t)in->n_operands << 16) * 2654435761u;

	for (unsigned i = 0; i < in->n_mods; i++)
		h = (h ^ in->mods[i]) * 16777619u;
	return h >> 24;
}

gpul_status strict_match(struct strict *s, const gpul_ptx_inst *in, const struct strict_form **out)
{
	struct strict_seen *seen = &s->seen[hash_inst(in)];
	struct search a = { .in = in };
	char name[128];
	gpul_status st;

	if (seen->used && seen->inst.opcode == in->opcode && seen->inst.n_mods == in->n_mods && seen->inst.n_operands == in->n_operands &&
	    !memcmp(seen->inst.mods, in->mods, in->n_mods * sizeof *in->mods)) {
		*out = seen->form;
		return GPUL_OK;
	}
	for (unsigned i = 0; i < in->n_mods; i++)
		a.texts[i] = gpul_ptx_mod_text(s->m, in->mods[i]);
	*out = search_rows(s, &a);
	gpul_ptx_inst_text(s->m, in, name, sizeof name);
	if (!*out && a.too_new)
		return fail_version(s, in, a.too_new, name);
	if (!*out && a.too_old && (a.too_old->until_sm || !a.any))
		return fail_old(s, &a, a.too_old, name);
	if (!*out && a.any)
		return fail_form(s, &a, name);
	st = strict_check_since(s, in);
	if (!st) {
		*seen = (struct strict_seen){ *out, *in, true };
	}
	return st;
}
