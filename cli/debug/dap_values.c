/* dap_values.c — handles requests about values: scopes, variables, expressions, memory, and code. */
#include "cli/debug/dap.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

/* ---- scopes ------------------------------------------------------------------------------------------------------------ */

static void write_scope(const struct dap_call *c, const char *name, const char *hint, const struct dap_container *what, bool expensive)
{
	json_begin(c->body, NULL, '{');
	json_text(c->body, "name", name);
	if (hint)
		json_text(c->body, "presentationHint", hint);
	json_u64(c->body, "variablesReference", dap_container_number(c->d, what));
	json_bool(c->body, "expensive", expensive);
	json_end(c->body, '}');
}

static gpul_status do_scopes(const struct dap_call *c)
{
	const int64_t frame = json_get_integer(c->args, "frameId", 0);
	const unsigned n = (unsigned)frame;

	json_begin(c->body, "scopes", '[');
	if (dap_find_lane(c, frame)) {
		write_scope(c, "Registers", "registers", &(struct dap_container){ .kind = DAP_REGISTERS, .lane = n }, false);
		write_scope(c, "Parameters", "arguments", &(struct dap_container){ .kind = DAP_PARAMS, .lane = n }, false);
		write_scope(c, "Special registers", NULL, &(struct dap_container){ .kind = DAP_SPECIALS, .lane = n }, false);
		write_scope(c, "Shared memory", NULL, &(struct dap_container){ .kind = DAP_VARIABLES, .lane = n, .name = "shared" }, false);
		write_scope(c, "Local memory", NULL, &(struct dap_container){ .kind = DAP_VARIABLES, .lane = n, .name = "local" }, true);
		write_scope(c, "Global variables", NULL, &(struct dap_container){ .kind = DAP_VARIABLES, .lane = n, .name = "global" },
			    true);
	}
	json_end(c->body, ']');
	return c->err->status;
}

/* ---- variables ---------------------------------------------------------------------------------------------------------- */

static void write_variable(const struct dap_call *c, const struct debug_row *r, const char *evaluate, uint64_t reference)
{
	const char *bits = debug_row_get(r, "bits");

	json_begin(c->body, NULL, '{');
	json_text(c->body, "name", debug_row_get(r, "name"));
	json_text(c->body, "value", debug_row_get(r, "value"));
	if (*debug_row_get(r, "type"))
		json_text(c->body, "type", debug_row_get(r, "type"));
	if (evaluate)
		json_text(c->body, "evaluateName", evaluate);
	if (strlen(bits) > 10)
		json_text(c->body, "memoryReference", bits);
	json_u64(c->body, "variablesReference", reference);
	json_end(c->body, '}');
}

/* Write the values that the request returns.  The editor can expand a register: its children are its values in all lanes. */
static gpul_status write_values(const struct dap_call *c, const struct dap_container *of, const char *request)
{
	const struct dap_lane *l = dap_find_lane(c, of->lane);
	const bool registers = of->kind == DAP_REGISTERS;
	const unsigned lane = of->lane;
	struct debug_rows rows = { 0 };
	gpul_status st = l ? debug_link_ask(c->d->link, &rows, c->err, "%s\t%llu\t%u\t%u\t%u", request, (ull)l->block, l->warp, l->lane,
					    l->frame)
			   : GPUL_EINVAL;

	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];
		char *name = (char *)(uintptr_t)debug_row_get(r, "name");
		const struct dap_container lanes = { .kind = DAP_LANES, .lane = lane, .name = name };

		write_variable(c, r, *name == '%' ? name : NULL, registers ? dap_container_number(c->d, &lanes) : 0);
	}
	debug_rows_free(&rows);
	return st;
}

static gpul_status write_lane_values(const struct dap_call *c, const struct dap_container *of)
{
	const struct dap_lane *l = dap_find_lane(c, of->lane);
	struct debug_rows rows = { 0 };
	gpul_status st = l ? debug_link_ask(c->d->link, &rows, c->err, "lanes\t%llu\t%u\t%u\t%u\t%s", (ull)l->block, l->warp, l->lane,
					    l->frame, of->name)
			   : GPUL_EINVAL;

	for (size_t k = 0; k < rows.row.n; k++)
		write_variable(c, &rows.row.at[k], NULL, 0);
	debug_rows_free(&rows);
	return st;
}

static gpul_status write_memory_variables(const struct dap_call *c, const struct dap_container *of)
{
	const struct dap_lane *l = dap_find_lane(c, of->lane);
	const unsigned lane = of->lane;
	char space[16];
	struct debug_rows rows = { 0 };
	gpul_status st = l ? debug_link_ask(c->d->link, &rows, c->err, "variables\t%llu\t%u\t%u\t%u", (ull)l->block, l->warp, l->lane,
					    l->frame)
			   : GPUL_EINVAL;

	snprintf(space, sizeof space, "%s", of->name);
	for (size_t k = 0; k < rows.row.n; k++) {
		const struct debug_row *r = &rows.row.at[k];
		const char *name = debug_row_get(r, "name"), *own = debug_row_get(r, "space");
		const uint64_t address = debug_row_number(r, "address"), bytes = debug_row_number(r, "bytes");
		const bool global = !strcmp(own, "global") || !strcmp(own, "const");
		struct dap_container array = {
			.kind = DAP_ARRAY, .lane = lane, .name = space, .address = address, .bytes = bytes, .element = bytes % 4 ? 1 : 4
		};
		char text[80];

		if (!bytes || strcmp(global ? "global" : own, space) != 0)
			continue;
		snprintf(text, sizeof text, global ? "%llu bytes at 0x%llx" : "%llu bytes at %llu", (ull)bytes, (ull)address);
		json_begin(c->body, NULL, '{');
		json_text(c->body, "name", *name ? name : "(all)");
		json_text(c->body, "value", text);
		json_u64(c->body, "variablesReference", dap_container_number(c->d, &array));
		json_u64(c->body, "indexedVariables", bytes / array.element);
		if (global) {
			snprintf(text, sizeof text, "0x%llx", (ull)address);
			json_text(c->body, "memoryReference", text);
		}
		json_end(c->body, '}');
	}
	debug_rows_free(&rows);
	return st;
}

/* Convert byte k of the hexadecimal digits that the debugger sends. */
static unsigned byte_at(const char *digits, size_t k)
{
	char two[3] = { digits[2 * k], digits[2 * k + 1], '\0' };

	return (unsigned)strtoul(two, NULL, 16);
}

/* Write an element.  Elements of 4 bytes are shown as an integer, and as the float with these bits. */
static void write_element(const struct dap_call *c, const struct dap_container *of, uint64_t index, const char *digits, size_t at)
{
	char name[32], value[64], expression[80];
	uint32_t bits = 0;
	float f;

	for (unsigned b = 0; b < of->element; b++)
		bits |= (uint32_t)byte_at(digits, at + b) << 8 * b;
	memcpy(&f, &bits, sizeof f);
	snprintf(name, sizeof name, "[%llu]", (ull)index);
	if (of->element == 1)
		snprintf(value, sizeof value, "%u", bits);
	else
		snprintf(value, sizeof value, "%d  (0x%08x, %.9gf)", (int)bits, bits, (double)f);
	snprintf(expression, sizeof expression, "%s[%llu]:%s", of->name, (ull)(of->address + index * of->element),
		 of->element == 1 ? "u8" : "s32");
	json_begin(c->body, NULL, '{');
	json_text(c->body, "name", name);
	json_text(c->body, "value", value);
	json_text(c->body, "type", of->element == 1 ? "u8" : "s32");
	json_text(c->body, "evaluateName", expression);
	json_u64(c->body, "variablesReference", 0);
	json_end(c->body, '}');
}

static gpul_status write_elements(const struct dap_call *c, const struct dap_container *of)
{
	enum { MOST = 4096 };
	const struct dap_lane *l = dap_find_lane(c, of->lane);
	const uint64_t n = of->bytes / of->element, first = (uint64_t)json_get_integer(c->args, "start", 0);
	uint64_t count = (uint64_t)json_get_integer(c->args, "count", 0);
	struct debug_rows rows = { 0 };
	gpul_status st;

	if (!l)
		return GPUL_EINVAL;
	count = !count || count > MOST ? MOST : count;
	count = first > n ? 0 : count > n - first ? n - first : count;
	st = debug_link_ask(c->d->link, &rows, c->err, "memory\t%s\t%llu\t%llu\t%llu\t%u\t%u", of->name,
			    (ull)(of->address + first * of->element), (ull)(count * of->element), (ull)l->block, l->warp, l->lane);
	for (uint64_t k = 0; !st && rows.row.n && (k + 1) * of->element <= debug_row_number(&rows.row.at[0], "read"); k++)
		write_element(c, of, first + k, debug_row_get(&rows.row.at[0], "bytes"), k * of->element);
	debug_rows_free(&rows);
	return st;
}

static gpul_status do_variables(const struct dap_call *c)
{
	const int64_t n = json_get_integer(c->args, "variablesReference", 0);
	struct dap_container of;
	gpul_status st;

	json_begin(c->body, "variables", '[');
	if (n < 1 || (uint64_t)n > c->d->container.n) {
		st = gpul_fail(c->err, GPUL_EINVAL, 0, "variablesReference %lld is no longer valid, because the kernel has continued",
			       (long long)n);
	} else {
		of = c->d->container.at[n - 1]; /* a copy, because adding containers can move the array */
		switch (of.kind) {
		case DAP_REGISTERS:
			st = write_values(c, &of, "registers");
			break;
		case DAP_PARAMS:
			st = write_values(c, &of, "params");
			break;
		case DAP_SPECIALS:
			st = write_values(c, &of, "specials");
			break;
		case DAP_VARIABLES:
			st = write_memory_variables(c, &of);
			break;
		case DAP_LANES:
			st = write_lane_values(c, &of);
			break;
		default:
			st = write_elements(c, &of);
			break;
		}
	}
	json_end(c->body, ']');
	return st;
}

/* ---- expressions -------------------------------------------------------------------------------------------------------- */

static gpul_status query_value(const struct dap_call *c, const char *expression, struct debug_rows *rows)
{
	const int64_t frame = json_get_integer(c->args, "frameId", 0);
	struct dap_lane at = { .block = debug_row_number(&c->d->at, "block"),
			       .warp = (unsigned)debug_row_number(&c->d->at, "warp"),
			       .lane = c->d->chosen_lane };

	if (frame) {
		const struct dap_lane *l = dap_find_lane(c, frame);

		if (!l)
			return GPUL_EINVAL;
		at = *l;
	}
	if (!c->d->stopped)
		return gpul_fail(c->err, GPUL_EINVAL, 0, "the kernel is running: pause it first");
	return debug_link_ask(c->d->link, rows, c->err, "evaluate\t%llu\t%u\t%u\t%u\t%s", (ull)at.block, at.warp, at.lane, at.frame,
			      expression);
}

static gpul_status do_evaluate(const struct dap_call *c)
{
	struct debug_rows rows = { 0 };
	const gpul_status st = query_value(c, json_get_text(c->args, "expression", ""), &rows);

	if (!st && rows.row.n) {
		json_text(c->body, "result", debug_row_get(&rows.row.at[0], "value"));
		json_text(c->body, "type", debug_row_get(&rows.row.at[0], "type"));
		json_text(c->body, "memoryReference", debug_row_get(&rows.row.at[0], "bits"));
		json_u64(c->body, "variablesReference", 0);
	}
	debug_rows_free(&rows);
	return st;
}

/* The data is an element of an array, given by its name "[3]", or an expression whose value is an address. */
static gpul_status do_data_breakpoint_info(const struct dap_call *c)
{
	const char *name = json_get_text(c->args, "name", "");
	const int64_t reference = json_get_integer(c->args, "variablesReference", 0);
	const struct dap_container *of = reference > 0 && (uint64_t)reference <= c->d->container.n ? &c->d->container.at[reference - 1]
												   : NULL;
	struct debug_rows rows = { 0 };
	char id[160] = "";

	if (of && of->kind == DAP_ARRAY && *name == '[')
		snprintf(id, sizeof id, strcmp(of->name, "global") ? "%s[%llu] %u" : "%.0s%llu %u", of->name,
			 (ull)(of->address + strtoull(name + 1, NULL, 10) * of->element), of->element);
	else if (!of && (!strncmp(name, "shared[", 7) || !strncmp(name, "local[", 6)))
		snprintf(id, sizeof id, "%.100s 4", name);
	else if (!of && !query_value(c, name, &rows) && rows.row.n)
		snprintf(id, sizeof id, "%s %lld", debug_row_get(&rows.row.at[0], "bits"),
			 (long long)json_get_integer(c->args, "bytes", 4));
	*c->err = (gpul_error){ 0 };
	if (*id) {
		json_text(c->body, "dataId", id);
		json_text(c->body, "description", id);
		json_begin(c->body, "accessTypes", '[');
		json_text(c->body, NULL, "read");
		json_text(c->body, NULL, "write");
		json_text(c->body, NULL, "readWrite");
		json_end(c->body, ']');
	} else {
		json_null(c->body, "dataId");
		json_text(c->body, "description", "only memory can be watched: an element of shared memory, or an address");
	}
	debug_rows_free(&rows);
	return GPUL_OK;
}

/* ---- memory and code ---------------------------------------------------------------------------------------------------- */

static void write_base64(struct json *j, const char *key, const char *digits, size_t n)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc((n + 2) / 3 * 4 + 1), *to = text;

	for (size_t k = 0; text && k < n; k += 3) {
		const unsigned left = n - k > 2 ? 3 : (unsigned)(n - k);
		const uint32_t bits = byte_at(digits, k) << 16 | (left > 1 ? byte_at(digits, k + 1) << 8 : 0) |
				      (left > 2 ? byte_at(digits, k + 2) : 0);

		*to++ = letters[bits >> 18];
		*to++ = letters[bits >> 12 & 63];
		*to++ = left > 1 ? letters[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? letters[bits & 63] : '=';
	}
	if (text)
		*to = '\0';
	json_text(j, key, text ? text : "");
	free(text);
}

static gpul_status do_read_memory(const struct dap_call *c)
{
	const uint64_t at = strtoull(json_get_text(c->args, "memoryReference", "0"), NULL, 0) +
			    (uint64_t)json_get_integer(c->args, "offset", 0);
	const int64_t count = json_get_integer(c->args, "count", 0);
	struct debug_rows rows = { 0 };
	gpul_status st = debug_link_ask(c->d->link, &rows, c->err, "memory\tglobal\t%llu\t%lld", (ull)at,
					(long long)(count < 0 ? 0 : count));
	uint64_t n = !st && rows.row.n ? debug_row_number(&rows.row.at[0], "read") : 0;
	char text[32];

	if (!st) {
		snprintf(text, sizeof text, "0x%llx", (ull)at);
		json_text(c->body, "address", text);
		json_u64(c->body, "unreadableBytes", (uint64_t)count - n);
		write_base64(c->body, "data", n ? debug_row_get(&rows.row.at[0], "bytes") : "", n);
	}
	debug_rows_free(&rows);
	return st;
}

static bool is_statement(const char *line)
{
	return strspn(line, " ") < strlen(line);
}

/* Find the n-th statement of the listing after line `line` (n < 0: before it).  Returns the index of its row; rows.n: not found. */
static size_t find_statement(const struct debug_rows *rows, uint64_t line, int64_t n)
{
	int64_t at = (int64_t)line - 1;

	while (n && at >= 0 && at < (int64_t)rows->row.n) {
		at += n < 0 ? -1 : 1;
		if (at >= 0 && at < (int64_t)rows->row.n && is_statement(rows->row.at[at].text))
			n += n < 0 ? 1 : -1;
	}
	return at >= 0 && at < (int64_t)rows->row.n ? (size_t)at : rows->row.n;
}

/* The address of an instruction consists of the number of the program and, in the lower 32 bits, its line in the PTX. */
static gpul_status do_disassemble(const struct dap_call *c)
{
	const uint64_t at = strtoull(json_get_text(c->args, "memoryReference", "0"), NULL, 0);
	const int64_t from = json_get_integer(c->args, "instructionOffset", 0) + json_get_integer(c->args, "offset", 0);
	const int64_t count = json_get_integer(c->args, "instructionCount", 0);
	struct debug_rows rows = { 0 };
	const gpul_status st = debug_link_ask(c->d->link, &rows, c->err, "listing\t%llu", (ull)(at >> 32));

	json_begin(c->body, "instructions", '[');
	for (int64_t k = 0; !st && k < count && k < 100000; k++) {
		const size_t row = find_statement(&rows, (uint32_t)at, from + k);
		char text[32];

		snprintf(text, sizeof text, "0x%llx",
			 row < rows.row.n ? (ull)((at & ~(uint64_t)UINT32_MAX) + row + 1) : (ull)((at >> 32) + 1) << 32);
		json_begin(c->body, NULL, '{');
		json_text(c->body, "address", text);
		json_text(c->body, "instruction", row < rows.row.n ? rows.row.at[row].text + strspn(rows.row.at[row].text, " ") : "");
		if (row == rows.row.n)
			json_text(c->body, "presentationHint", "invalid");
		json_end(c->body, '}');
	}
	json_end(c->body, ']');
	debug_rows_free(&rows);
	return st;
}

static gpul_status do_source(const struct dap_call *c)
{
	const struct json_value *source = json_get(c->args, "source");
	const int64_t reference = json_get_integer(source, "sourceReference", json_get_integer(c->args, "sourceReference", 0));
	struct debug_rows rows = { 0 };
	const gpul_status st = debug_link_ask(c->d->link, &rows, c->err, "listing\t%lld", (long long)reference);
	struct out text = { 0 };

	for (size_t k = 0; k < rows.row.n; k++) {
		out_text(&text, rows.row.at[k].text);
		out_text(&text, "\n");
	}
	if (!st) {
		json_chars(c->body, "content", text.n ? text.at : "", text.n);
		json_text(c->body, "mimeType", "text/x-ptx");
	}
	out_free(&text);
	debug_rows_free(&rows);
	return st;
}

static gpul_status do_exception_info(const struct dap_call *c)
{
	json_text(c->body, "exceptionId", "fault");
	json_text(c->body, "description", debug_row_get(&c->d->at, "text"));
	json_text(c->body, "breakMode", "always");
	return GPUL_OK;
}

/* clang-format off */
const struct dap_handler dap_values[] = {
	{ "scopes", do_scopes }, { "variables", do_variables }, { "evaluate", do_evaluate }, { "dataBreakpointInfo", do_data_breakpoint_info },
	{ "readMemory", do_read_memory }, { "disassemble", do_disassemble }, { "source", do_source }, { "exceptionInfo", do_exception_info },
	{ 0 },
};
/* clang-format on */
