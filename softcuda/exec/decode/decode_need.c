/* decode_need.c — decodes functions: all of them when their program is created, or each one when it is first needed ("lazily").
 *
 *     gpul_exec_kernel_refusal    a kernel, and the functions that it calls by name
 *     gpul_function_need          a function that is called through a pointer, while its caller waits
 *
 * Decoding adds constants and special registers to the program while its kernels may be running. So the constants of a program that
 * decodes lazily do not move, and a block receives the new special registers before it calls a function that may use them. */
#include "core/array.h"
#include "core/thread/thread.h"
#include "softcuda/exec/decode/decode_internal.h"

enum {
	STACK_BYTES = 32 << 10, /* stack size for calls when recursion or calls through pointers make the real need unknown */
	MAX_LEVELS = 4096,      /* maximum nesting of calls, equal to MAX_DEPTH in warp/warp_call.c */
};

/* ---- the local memory that calls need ----------------------------------------------------------------- */

/* Return the local memory that the deepest call chain from this function needs.  level: the function's own depth in the chain.
 * UINT32_MAX: the size is unknown, because of recursion, calls through pointers, or more than MAX_LEVELS nested calls, at which
 * call_depth_bytes() itself would use too much stack. */
static uint32_t call_depth_bytes(struct func_code *code, unsigned level)
{
	uint32_t deepest = 0;

	if (code->depth_bytes)
		return code->depth_bytes;
	if (code->visited || code->calls_pointer || code->uses_stack || level > MAX_LEVELS)
		return UINT32_MAX;
	code->visited = true;
	for (uint32_t k = 0; k < code->n_insns; k++) {
		const struct insn *i = &code->insns[k];
		const struct call_site *site = i->op == OP_CALL ? i->object : NULL;
		uint32_t below = site ? call_depth_bytes((struct func_code *)(uintptr_t)site->callee, level + 1) : 0;

		deepest = below > deepest ? below : deepest;
	}
	code->visited = false;
	code->depth_bytes = deepest + code->local_bytes;
	if (deepest == UINT32_MAX || code->local_bytes > UINT32_MAX / 2 - deepest)
		code->depth_bytes = UINT32_MAX; /* stored, so that other call chains that reach this function do not repeat the search */
	return code->depth_bytes;
}

/* ---- registers and memory of a kernel ----------------------------------------------------------------- */

static uint32_t count_registers(const gpul_ptx_func *f)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < f->n_regs; k++)
		bytes += (uint64_t)gpul_ptx_type_bytes(f->regs[k].type) * f->regs[k].count * f->regs[k].vector;
	if (f->tuning.maxnreg > 0 && bytes / 4 > (uint64_t)f->tuning.maxnreg)
		return (uint32_t)f->tuning.maxnreg;
	return bytes / 4 > 255 ? 255 : bytes < 64 ? 16 : (uint32_t)(bytes / 4);
}

static bool names_module_shared(const struct gpul_exec_program *p, const gpul_ptx_func *f)
{
	for (uint32_t k = 0; k < f->n_operands; k++) {
		const gpul_ptx_operand *o = &f->operands[k];

		if (o->kind != GPUL_PTX_OP_SYMBOL)
			continue;
		if (o->ref_kind == GPUL_PTX_REF_MODULE_VAR && p->module->vars[o->index].space == GPUL_PTX_MOD_SHARED &&
		    p->module->vars[o->index].bytes)
			return true;
		if (o->ref_kind == GPUL_PTX_REF_FUNC)
			return p->module_shared_bytes;
	}
	return false;
}

static struct func_code *code_of(struct gpul_exec_program *p, const gpul_exec_kernel *k)
{
	return &p->code[k->code - p->code];
}

/* Set the members of k->info that depend on the kernel's body, whose variables already have addresses. */
static void describe_body(struct gpul_exec_program *p, gpul_exec_kernel *k)
{
	const struct func_code *code = k->code;

	k->dynamic_align = p->dynamic_align;
	k->info.n_regs = count_registers(code->ptx);
	k->info.local_bytes = code->local_bytes;
	k->info.shared_bytes = code->own_shared_bytes              ? code->own_shared_bytes
			       : names_module_shared(p, code->ptx) ? p->module_shared_bytes
								   : 0;
	atomic_store_explicit(&k->described, true, memory_order_release);
}

/* Compute the stack size of a launch, and mark the kernel as ready.  Its code and its callees are decoded, or it has been refused. */
static void make_ready(struct gpul_exec_program *p, gpul_exec_kernel *k)
{
	const uint32_t depth = call_depth_bytes(code_of(p, k), 0);

	k->stack_bytes = depth == UINT32_MAX ? k->code->local_bytes + STACK_BYTES : depth;
	atomic_store_explicit(&k->ready, true, memory_order_release);
}

static gpul_status store_refusal(struct gpul_exec_program *p, gpul_exec_kernel *k, const char *text, gpul_error *err)
{
	char *copy = gpul_program_alloc(p, strlen(text) + 1, err);

	if (!copy)
		return GPUL_ENOMEM;
	k->refusal = strcpy(copy, text);
	return GPUL_OK;
}

/* Store the reason why the kernel cannot run: "WHY; kernel NAME reaches it" for a refused instruction, or the decoding error. */
static gpul_status refuse(struct gpul_exec_program *p, gpul_exec_kernel *k, const gpul_error *why, gpul_error *err)
{
	gpul_error text = { 0 };

	if (why->status)
		text = *why;
	else
		gpul_fail(&text, GPUL_EUNSUPPORTED, 0, "%s; kernel %s reaches it", k->code->refusal, k->info.name);
	return store_refusal(p, k, text.text, err);
}

/* ---- decoding one function ----------------------------------------------------------------------------- */

/* Parse the body of a function, and give its variables addresses.  The caller holds p->lock, or is still creating the program. */
static gpul_status lay_out(struct gpul_exec_program *p, struct func_code *code, gpul_error *err)
{
	gpul_status st;

	if (code->laid_out || !code->ptx->has_body)
		return GPUL_OK;
	st = gpul_ptx_need_body(p->module, (uint32_t)(code - p->code), err);
	if (!st)
		st = gpul_layout_body(p, code, err);
	code->laid_out = !st;
	return st;
}

/* Decode a function.  The caller holds p->lock, or is still creating the program. */
static gpul_status decode(struct gpul_exec_program *p, struct func_code *code, gpul_error *err)
{
	gpul_status st;

	if (atomic_load_explicit(&code->ready, memory_order_relaxed) || !code->ptx->has_body)
		return GPUL_OK;
	st = lay_out(p, code, err);
	if (!st)
		st = gpul_decode_function(p, code, err);
	if (st)
		return st;
	atomic_store_explicit(&p->n_ready_specials, p->n_specials, memory_order_release);
	atomic_store_explicit(&code->ready, true, memory_order_release);
	return GPUL_OK;
}

gpul_status gpul_need_everything(struct gpul_exec_program *p, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (uint32_t k = 0; !st && k < p->n_code; k++) /* parse all bodies first: observers read the whole module */
		st = gpul_ptx_need_body(p->module, k, err);
	for (uint32_t k = 0; !st && k < p->n_code; k++) {
		st = decode(p, &p->code[k], err);
		p->code[k].with_callees = true;
	}
	if (!st)
		st = gpul_spread_refusals(p, err);
	for (uint32_t k = 0; !st && k < p->n_kernels; k++) {
		if (p->kernels[k].code->refusal)
			st = refuse(p, &p->kernels[k], &(gpul_error){ 0 }, err);
		describe_body(p, &p->kernels[k]);
		make_ready(p, &p->kernels[k]);
	}
	return st;
}

/* ---- decoding a function and its callees ---------------------------------------------------------------- */

typedef GPUL_ARRAY(struct func_code *) functions;

static struct func_code *callee_of(struct gpul_exec_program *p, const struct insn *i)
{
	const struct call_site *site = i->op == OP_CALL ? i->object : NULL;

	return site && site->callee ? &p->code[site->callee - p->code] : NULL;
}

static bool add(functions *all, struct func_code *code)
{
	struct func_code **row = code->visited ? NULL : gpul_array_push(all);

	if (!row)
		return code->visited;
	code->visited = true;
	*row = code;
	return true;
}

/* Decode the function all->at[n], and append its callees to `all`, except those that are in the list already. */
static gpul_status decode_with_callees(struct gpul_exec_program *p, functions *all, size_t n, gpul_error *err)
{
	struct func_code *code = all->at[n];
	const gpul_status st = decode(p, code, err);

	for (uint32_t k = 0; !st && !code->with_callees && k < code->n_insns; k++) {
		struct func_code *callee = callee_of(p, &code->insns[k]);

		if (callee && !add(all, callee))
			return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the functions that a kernel calls");
	}
	return st;
}

/* Mark each function of `all` that calls a refused function as refused, too; repeat this until no function is added. */
static void spread_refusals(struct gpul_exec_program *p, const functions *all)
{
	for (bool more = true; more;) {
		more = false;
		for (size_t n = 0; n < all->n; n++)
			for (uint32_t k = 0; !all->at[n]->refusal && k < all->at[n]->n_insns; k++) {
				const struct func_code *callee = callee_of(p, &all->at[n]->insns[k]);

				all->at[n]->refusal = callee ? callee->refusal : NULL;
				more = more || all->at[n]->refusal;
			}
	}
}

/* Decode a function and all functions that it calls by name, directly or indirectly.  The caller holds p->lock. */
static gpul_status need_with_callees(struct gpul_exec_program *p, struct func_code *code, gpul_error *err)
{
	functions all = { 0 };
	gpul_status st = add(&all, code) ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the functions that a kernel calls");
	fenv_t callers;

	gpul_float_default(&callers); /* converting literals to their instructions' types needs the default rounding mode */
	for (size_t n = 0; !st && n < all.n; n++)
		st = decode_with_callees(p, &all, n, err);
	gpul_float_restore(&callers);
	if (!st)
		spread_refusals(p, &all);
	for (size_t n = 0; n < all.n; n++) {
		all.at[n]->visited = false;
		all.at[n]->with_callees = all.at[n]->with_callees || !st;
	}
	gpul_array_free(&all);
	return st;
}

gpul_status gpul_function_need(struct func_code *code, gpul_error *err)
{
	struct gpul_exec_program *p = code->program;
	gpul_status st = GPUL_OK;

	pthread_mutex_lock(&p->lock);
	if (!code->with_callees)
		st = need_with_callees(p, code, err);
	pthread_mutex_unlock(&p->lock);
	return st;
}

/* ---- decoding kernels ------------------------------------------------------------------------------------ */

/* Store an error in a kernel's PTX as the reason of its refusal; GPUL_ENOMEM is returned to the caller instead. */
static gpul_status keep_error(struct gpul_exec_program *p, gpul_exec_kernel *k, const gpul_error *why, gpul_error *err)
{
	if (why->status == GPUL_ENOMEM)
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s", why->text);
	return why->status || k->code->refusal ? refuse(p, k, why, err) : GPUL_OK;
}

gpul_status gpul_exec_kernel_prepare(const gpul_exec_kernel *kernel, gpul_error *err)
{
	struct gpul_exec_program *p = kernel->code->program;
	gpul_exec_kernel *k = &p->kernels[kernel - p->kernels];
	gpul_error why = { 0 };
	gpul_status st = GPUL_OK;

	if (atomic_load_explicit(&k->described, memory_order_acquire))
		return GPUL_OK;
	pthread_mutex_lock(&p->lock);
	if (!k->described) {
		(void)lay_out(p, code_of(p, k), &why);
		st = keep_error(p, k, &why, err);
		if (!st)
			describe_body(p, k);
	}
	pthread_mutex_unlock(&p->lock);
	return st;
}

gpul_exec_attributes gpul_exec_kernel_attributes(const gpul_exec_kernel *k)
{
	return (gpul_exec_attributes){ k->info.n_regs, k->info.shared_bytes, k->info.local_bytes, k->dynamic_align };
}

static void describe_as(gpul_exec_kernel *k, gpul_exec_attributes a)
{
	k->info.n_regs = a.n_regs;
	k->info.shared_bytes = a.shared_bytes;
	k->info.local_bytes = a.local_bytes;
	k->dynamic_align = a.dynamic_align;
	atomic_store_explicit(&k->described, true, memory_order_release);
}

void gpul_exec_program_describe(gpul_exec_program *p, const gpul_exec_attributes *all, size_t n)
{
	for (size_t k = 0; n == p->n_kernels && k < n; k++)
		if (!p->kernels[k].described)
			describe_as(&p->kernels[k], all[k]);
}

gpul_status gpul_describe_again(struct gpul_exec_program *p, const struct gpul_exec_program *first, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (uint32_t n = 0; !st && n < p->n_kernels; n++) {
		gpul_exec_kernel *k = &p->kernels[n];
		const gpul_exec_kernel *known = &first->kernels[n];

		if (!k->described && atomic_load_explicit(&known->described, memory_order_acquire))
			describe_as(k, gpul_exec_kernel_attributes(known));
		if (!k->ready && atomic_load_explicit(&known->ready, memory_order_acquire) && known->refusal) {
			st = store_refusal(p, k, known->refusal, err);
			atomic_store_explicit(&k->ready, true, memory_order_release);
		}
	}
	return st;
}

/* Decode a kernel and its callees, after gpul_exec_kernel_prepare(). */
static gpul_status decode_kernel(struct gpul_exec_program *p, gpul_exec_kernel *k)
{
	gpul_error why = { 0 };
	gpul_status st = GPUL_OK;

	pthread_mutex_lock(&p->lock);
	if (!k->ready) {
		if (!k->refusal)
			(void)need_with_callees(p, code_of(p, k), &why);
		st = k->refusal ? GPUL_OK : keep_error(p, k, &why, NULL);
		if (!st)
			make_ready(p, k);
	}
	pthread_mutex_unlock(&p->lock);
	return st;
}

const char *gpul_exec_kernel_refusal(const gpul_exec_kernel *kernel)
{
	struct gpul_exec_program *p = kernel->code->program;
	gpul_exec_kernel *k = &p->kernels[kernel - p->kernels];

	if (!atomic_load_explicit(&k->ready, memory_order_acquire) && (gpul_exec_kernel_prepare(k, NULL) || decode_kernel(p, k)))
		return "no memory to decode the kernel";
	return k->refusal;
}

bool gpul_exec_kernel_is_decoded_later(const gpul_exec_kernel *k)
{
	return k->code->program->need && !atomic_load_explicit(&k->ready, memory_order_acquire);
}
