/* vocabulary.h — lists the keywords of PTX: instruction roots, modifiers, special registers.
 *
 * Each row describes one keyword; the enum, the lexer's table and the printer are generated from these rows.  A
 * modifier that is not listed is kept by name (module->extra_mods, numbers from GPUL_PTX_MOD_EXTRA), so that a
 * file of a newer ISA still parses and prints; the interpreter refuses it by name. */
#ifndef GPULOAD_PTX_VOCABULARY_H
#define GPULOAD_PTX_VOCABULARY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Instruction roots: PTX ISA 9.0, chapter 9.  X(ENUM, "text") */
/* clang-format off */
#define GPUL_PTX_OPCODES(X) \
	X(ABS, "abs") X(ACTIVEMASK, "activemask") X(ADD, "add") X(ADDC, "addc") \
	X(ALLOCA, "alloca") X(AND, "and") X(APPLYPRIORITY, "applypriority") X(ATOM, "atom") \
	X(BAR, "bar") X(BARRIER, "barrier") X(BFE, "bfe") X(BFI, "bfi") X(BFIND, "bfind") \
	X(BMSK, "bmsk") X(BRA, "bra") X(BREV, "brev") X(BRKPT, "brkpt") X(BRX, "brx") \
	X(CALL, "call") X(CLUSTERLAUNCHCONTROL, "clusterlaunchcontrol") X(CLZ, "clz") \
	X(CNOT, "cnot") X(COPYSIGN, "copysign") X(COS, "cos") X(CP, "cp") \
	X(CREATEPOLICY, "createpolicy") X(CVT, "cvt") X(CVTA, "cvta") X(DISCARD, "discard") \
	X(DIV, "div") X(DP2A, "dp2a") X(DP4A, "dp4a") X(ELECT, "elect") X(EX2, "ex2") \
	X(EXIT, "exit") X(FENCE, "fence") X(FMA, "fma") X(FNS, "fns") \
	X(GETCTARANK, "getctarank") X(GRIDDEPCONTROL, "griddepcontrol") \
	X(ISSPACEP, "isspacep") X(ISTYPEP, "istypep") X(LD, "ld") X(LDMATRIX, "ldmatrix") \
	X(LDU, "ldu") X(LG2, "lg2") X(LOP3, "lop3") X(MAD, "mad") X(MAD24, "mad24") \
	X(MADC, "madc") X(MAPA, "mapa") X(MATCH, "match") X(MAX, "max") \
	X(MBARRIER, "mbarrier") X(MEMBAR, "membar") X(MIN, "min") X(MMA, "mma") \
	X(MOV, "mov") X(MOVMATRIX, "movmatrix") X(MUL, "mul") X(MUL24, "mul24") \
	X(MULTIMEM, "multimem") X(NANOSLEEP, "nanosleep") X(NEG, "neg") X(NOT, "not") \
	X(OR, "or") X(PMEVENT, "pmevent") X(POPC, "popc") X(PREFETCH, "prefetch") \
	X(PREFETCHU, "prefetchu") X(PRMT, "prmt") X(RCP, "rcp") X(RED, "red") \
	X(REDUX, "redux") X(REM, "rem") X(RET, "ret") X(RSQRT, "rsqrt") X(SAD, "sad") \
	X(SELP, "selp") X(SET, "set") X(SETMAXNREG, "setmaxnreg") X(SETP, "setp") \
	X(SHF, "shf") X(SHFL, "shfl") X(SHL, "shl") X(SHR, "shr") X(SIN, "sin") \
	X(SLCT, "slct") X(SQRT, "sqrt") X(ST, "st") X(STACKRESTORE, "stackrestore") \
	X(STACKSAVE, "stacksave") X(STMATRIX, "stmatrix") X(SUB, "sub") X(SUBC, "subc") \
	X(SULD, "suld") X(SUQ, "suq") X(SURED, "sured") X(SUST, "sust") X(SZEXT, "szext") \
	X(TANH, "tanh") X(TCGEN05, "tcgen05") X(TENSORMAP, "tensormap") X(TESTP, "testp") \
	X(TEX, "tex") X(TLD4, "tld4") X(TRAP, "trap") X(TXQ, "txq") X(VABSDIFF, "vabsdiff") \
	X(VABSDIFF2, "vabsdiff2") X(VABSDIFF4, "vabsdiff4") X(VADD, "vadd") \
	X(VADD2, "vadd2") X(VADD4, "vadd4") X(VAVRG2, "vavrg2") X(VAVRG4, "vavrg4") \
	X(VMAD, "vmad") X(VMAX, "vmax") X(VMAX2, "vmax2") X(VMAX4, "vmax4") X(VMIN, "vmin") \
	X(VMIN2, "vmin2") X(VMIN4, "vmin4") X(VOTE, "vote") X(VSET, "vset") \
	X(VSET2, "vset2") X(VSET4, "vset4") X(VSHL, "vshl") X(VSHR, "vshr") X(VSUB, "vsub") \
	X(VSUB2, "vsub2") X(VSUB4, "vsub4") X(WGMMA, "wgmma") X(WMMA, "wmma") X(XOR, "xor")
/* clang-format on */

/* Types first, then the other modifiers that may follow an instruction root after a dot. */
/* clang-format off */
#define GPUL_PTX_MODS(X) \
	X(B8, "b8") X(B16, "b16") X(B32, "b32") X(B64, "b64") X(B128, "b128") X(U8, "u8") \
	X(U16, "u16") X(U32, "u32") X(U64, "u64") X(S8, "s8") X(S16, "s16") X(S32, "s32") \
	X(S64, "s64") X(F16, "f16") X(F16X2, "f16x2") X(BF16, "bf16") X(BF16X2, "bf16x2") \
	X(TF32, "tf32") X(F32, "f32") X(F64, "f64") X(F32X2, "f32x2") X(PRED, "pred") \
	X(E4M3, "e4m3") X(E5M2, "e5m2") X(E4M3X2, "e4m3x2") X(E5M2X2, "e5m2x2") \
	X(E2M1X2, "e2m1x2") X(E2M3X2, "e2m3x2") X(E3M2X2, "e3m2x2") X(UE8M0X2, "ue8m0x2") \
	X(E4M3X4, "e4m3x4") X(E5M2X4, "e5m2x4") X(E2M1X4, "e2m1x4") X(E2M3X4, "e2m3x4") \
	X(E3M2X4, "e3m2x4") X(U8X4, "u8x4") X(S8X4, "s8x4") X(U16X2, "u16x2") \
	X(S16X2, "s16x2") X(TEXREF, "texref") X(SAMPLERREF, "samplerref") \
	X(SURFREF, "surfref") X(REG, "reg") X(SREG, "sreg") X(CONST, "const") \
	X(GLOBAL, "global") X(LOCAL, "local") X(PARAM, "param") X(SHARED, "shared") \
	X(TEX, "tex") X(SHARED__CTA, "shared::cta") X(SHARED__CLUSTER, "shared::cluster") \
	X(PARAM__ENTRY, "param::entry") X(PARAM__FUNC, "param::func") X(EQ, "eq") \
	X(NE, "ne") X(LT, "lt") X(LE, "le") X(GT, "gt") X(GE, "ge") X(LO, "lo") X(LS, "ls") \
	X(HI, "hi") X(HS, "hs") X(EQU, "equ") X(NEU, "neu") X(LTU, "ltu") X(LEU, "leu") \
	X(GTU, "gtu") X(GEU, "geu") X(NUM, "num") X(NAN, "nan") X(RN, "rn") X(RZ, "rz") \
	X(RM, "rm") X(RP, "rp") X(RNA, "rna") X(RS, "rs") X(RNI, "rni") X(RZI, "rzi") \
	X(RMI, "rmi") X(RPI, "rpi") X(SAT, "sat") X(FTZ, "ftz") X(APPROX, "approx") \
	X(FULL, "full") X(WIDE, "wide") X(CC, "cc") X(RELU, "relu") \
	X(SATFINITE, "satfinite") X(XORSIGN, "xorsign") X(ABS, "abs") X(NOFTZ, "noftz") \
	X(VOLATILE, "volatile") X(RELAXED, "relaxed") X(ACQUIRE, "acquire") \
	X(RELEASE, "release") X(ACQ_REL, "acq_rel") X(SC, "sc") X(WEAK, "weak") \
	X(MMIO, "mmio") X(CTA, "cta") X(CLUSTER, "cluster") X(GPU, "gpu") X(SYS, "sys") \
	X(GL, "gl") X(V2, "v2") X(V4, "v4") X(V8, "v8") X(CA, "ca") X(CG, "cg") X(CS, "cs") \
	X(LU, "lu") X(CV, "cv") X(WB, "wb") X(WT, "wt") X(NC, "nc") X(UNIFIED, "unified") \
	X(L1__EVICT_NORMAL, "L1::evict_normal") \
	X(L1__EVICT_UNCHANGED, "L1::evict_unchanged") X(L1__EVICT_FIRST, "L1::evict_first") \
	X(L1__EVICT_LAST, "L1::evict_last") X(L1__NO_ALLOCATE, "L1::no_allocate") \
	X(L2__CACHE_HINT, "L2::cache_hint") X(L2__64B, "L2::64B") X(L2__128B, "L2::128B") \
	X(L2__256B, "L2::256B") X(L2__EVICT_LAST, "L2::evict_last") \
	X(L2__EVICT_NORMAL, "L2::evict_normal") X(L2__EVICT_FIRST, "L2::evict_first") \
	X(L2, "L2") X(L1, "L1") X(ALIAS, "alias") X(EXCH, "exch") X(CAS, "cas") \
	X(ADD, "add") X(INC, "inc") X(DEC, "dec") X(MIN, "min") X(MAX, "max") X(AND, "and") \
	X(OR, "or") X(XOR, "xor") X(NOT, "not") X(UNI, "uni") X(SYNC, "sync") \
	X(ALIGNED, "aligned") X(ARRIVE, "arrive") X(RED, "red") X(POPC, "popc") X(TO, "to") \
	X(IDX, "idx") X(UP, "up") X(DOWN, "down") X(BFLY, "bfly") X(BALLOT, "ballot") \
	X(ANY, "any") X(ALL, "all") X(SHIFTAMT, "shiftamt") X(WRAP, "wrap") \
	X(CLAMP, "clamp") X(MODE, "mode") X(LEFT, "left") X(RIGHT, "right") X(L, "l") \
	X(R, "r") X(X, "x") X(F4E, "f4e") X(B4E, "b4e") X(RC8, "rc8") X(ECL, "ecl") \
	X(ECR, "ecr") X(RC16, "rc16") X(FINITE, "finite") X(INFINITE, "infinite") \
	X(NUMBER, "number") X(NOTANUMBER, "notanumber") X(NORMAL, "normal") \
	X(SUBNORMAL, "subnormal") X(ASYNC, "async") X(BULK, "bulk") \
	X(BULK_GROUP, "bulk_group") X(TENSOR, "tensor") X(PREFETCH, "prefetch") \
	X(COMMIT_GROUP, "commit_group") X(WAIT_GROUP, "wait_group") X(WAIT_ALL, "wait_all") \
	X(GROUP, "group") X(PROXY, "proxy") X(TENSORMAP, "tensormap") X(GENERIC, "generic") \
	X(SHARED__CTA__ONLY, "shared::cta::only") X(INIT, "init") X(INVAL, "inval") \
	X(EXPECT_TX, "expect_tx") X(COMPLETE_TX, "complete_tx") \
	X(ARRIVE_DROP, "arrive_drop") X(TEST_WAIT, "test_wait") X(TRY_WAIT, "try_wait") \
	X(PENDING_COUNT, "pending_count") X(NOCOMPLETE, "noComplete") X(PARITY, "parity") \
	X(NOINC, "noinc") X(MBARRIER, "mbarrier") X(COMMIT, "commit") X(WAIT, "wait") \
	X(TEST, "test") X(MASK, "mask") X(PARITY_WAIT, "parity_wait") X(TILE, "tile") \
	X(IM2COL, "im2col") X(READ, "read") X(MULTICAST__CLUSTER, "multicast::cluster") \
	X(MBARRIER__COMPLETE_TX__BYTES, "mbarrier::complete_tx::bytes") \
	X(LAUNCH_DEPENDENTS, "launch_dependents") X(LAUNCH, "launch") \
	X(TRY_CANCEL, "try_cancel") X(QUERY_CANCEL, "query_cancel") \
	X(IS_CANCELED, "is_canceled") X(GET_FIRST_CTAID, "get_first_ctaid") \
	X(FENCE, "fence") X(M16N8K8, "m16n8k8") X(M16N8K16, "m16n8k16") \
	X(M16N8K32, "m16n8k32") X(M8N8K4, "m8n8k4") X(M8N8K16, "m8n8k16") X(M8N8, "m8n8") \
	X(X1, "x1") X(X2, "x2") X(X4, "x4") X(TRANS, "trans") X(ROW, "row") X(COL, "col") \
	X(MMA_ASYNC, "mma_async") X(OP_RESTRICT, "op_restrict") X(REDUCE, "reduce") \
	X(FETCH, "fetch") X(LOAD, "load") X(STORE, "store") X(1D, "1d") X(2D, "2d") \
	X(3D, "3d") X(A1D, "a1d") X(A2D, "a2d") X(CUBE, "cube") X(2DMS, "2dms") \
	X(A2DMS, "a2dms") X(WIDTH, "width") X(HEIGHT, "height") X(DEPTH, "depth") X(B, "b") \
	X(H0, "h0") X(H1, "h1") X(PO, "po") X(SHR7, "shr7") X(SHR15, "shr15") \
	X(BASE, "base") X(ARRAY_SIZE, "array_size") \
	X(NORMALIZED_COORDS, "normalized_coords") \
	X(FORCE_UNNORMALIZED_COORDS, "force_unnormalized_coords") \
	X(FILTER_MODE, "filter_mode") X(ADDR_MODE_0, "addr_mode_0") \
	X(ADDR_MODE_1, "addr_mode_1") X(ADDR_MODE_2, "addr_mode_2") \
	X(CHANNEL_DATA_TYPE, "channel_data_type") X(CHANNEL_ORDER, "channel_order") \
	X(V1, "v1") X(P, "p") X(ZERO, "zero") X(TRAP, "trap") X(PACK, "pack") \
	X(NaN, "NaN") \
	X(LEVEL__EVICTION_PRIORITY, "level::eviction_priority") X(OOB, "oob") \
	X(LD_REDUCE, "ld_reduce") X(ST, "st") X(ACC__F32, "acc::f32") X(ACC__F16, "acc::f16")
/* clang-format on */

/* Special registers, without the '%': PTX ISA 9.0, chapter 10.  TID is the whole vector, as in mov.v4.u32 v, %tid; its .w is always 0. */
/* clang-format off */
#define GPUL_PTX_SPECIALS(X) \
	X(TID_X, "tid.x") X(TID_Y, "tid.y") X(TID_Z, "tid.z") X(NTID_X, "ntid.x") \
	X(NTID_Y, "ntid.y") X(NTID_Z, "ntid.z") X(CTAID_X, "ctaid.x") X(CTAID_Y, "ctaid.y") \
	X(CTAID_Z, "ctaid.z") X(NCTAID_X, "nctaid.x") X(NCTAID_Y, "nctaid.y") \
	X(NCTAID_Z, "nctaid.z") X(LANEID, "laneid") X(WARPID, "warpid") \
	X(NWARPID, "nwarpid") X(SMID, "smid") X(NSMID, "nsmid") X(GRIDID, "gridid") \
	X(CLOCK, "clock") X(CLOCK_HI, "clock_hi") X(CLOCK64, "clock64") \
	X(GLOBALTIMER, "globaltimer") X(GLOBALTIMER_LO, "globaltimer_lo") \
	X(GLOBALTIMER_HI, "globaltimer_hi") X(LANEMASK_EQ, "lanemask_eq") \
	X(LANEMASK_LE, "lanemask_le") X(LANEMASK_LT, "lanemask_lt") \
	X(LANEMASK_GE, "lanemask_ge") X(LANEMASK_GT, "lanemask_gt") \
	X(IS_EXPLICIT_CLUSTER, "is_explicit_cluster") X(CLUSTERID_X, "clusterid.x") \
	X(CLUSTERID_Y, "clusterid.y") X(CLUSTERID_Z, "clusterid.z") \
	X(NCLUSTERID_X, "nclusterid.x") X(NCLUSTERID_Y, "nclusterid.y") \
	X(NCLUSTERID_Z, "nclusterid.z") X(CLUSTER_CTAID_X, "cluster_ctaid.x") \
	X(CLUSTER_CTAID_Y, "cluster_ctaid.y") X(CLUSTER_CTAID_Z, "cluster_ctaid.z") \
	X(CLUSTER_NCTAID_X, "cluster_nctaid.x") X(CLUSTER_NCTAID_Y, "cluster_nctaid.y") \
	X(CLUSTER_NCTAID_Z, "cluster_nctaid.z") X(CLUSTER_CTARANK, "cluster_ctarank") \
	X(CLUSTER_NCTARANK, "cluster_nctarank") X(TOTAL_SMEM_SIZE, "total_smem_size") \
	X(AGGR_SMEM_SIZE, "aggr_smem_size") X(DYNAMIC_SMEM_SIZE, "dynamic_smem_size") \
	X(RESERVED_SMEM_OFFSET_BEGIN, "reserved_smem_offset_begin") \
	X(RESERVED_SMEM_OFFSET_END, "reserved_smem_offset_end") \
	X(RESERVED_SMEM_OFFSET_CAP, "reserved_smem_offset_cap") \
	X(CURRENT_GRAPH_EXEC, "current_graph_exec") X(ENVREG0, "envreg0") \
	X(ENVREG1, "envreg1") X(ENVREG2, "envreg2") X(ENVREG3, "envreg3") \
	X(ENVREG4, "envreg4") X(ENVREG5, "envreg5") X(ENVREG6, "envreg6") \
	X(ENVREG7, "envreg7") X(ENVREG8, "envreg8") X(ENVREG9, "envreg9") \
	X(ENVREG10, "envreg10") X(ENVREG11, "envreg11") X(ENVREG12, "envreg12") \
	X(ENVREG13, "envreg13") X(ENVREG14, "envreg14") X(ENVREG15, "envreg15") \
	X(ENVREG16, "envreg16") X(ENVREG17, "envreg17") X(ENVREG18, "envreg18") \
	X(ENVREG19, "envreg19") X(ENVREG20, "envreg20") X(ENVREG21, "envreg21") \
	X(ENVREG22, "envreg22") X(ENVREG23, "envreg23") X(ENVREG24, "envreg24") \
	X(ENVREG25, "envreg25") X(ENVREG26, "envreg26") X(ENVREG27, "envreg27") \
	X(ENVREG28, "envreg28") X(ENVREG29, "envreg29") X(ENVREG30, "envreg30") \
	X(ENVREG31, "envreg31") X(PM0, "pm0") X(PM1, "pm1") X(PM2, "pm2") X(PM3, "pm3") \
	X(PM4, "pm4") X(PM5, "pm5") X(PM6, "pm6") X(PM7, "pm7") \
	X(PM0_64, "pm0_64") X(PM1_64, "pm1_64") X(PM2_64, "pm2_64") \
	X(PM3_64, "pm3_64") X(PM4_64, "pm4_64") X(PM5_64, "pm5_64") X(PM6_64, "pm6_64") \
	X(PM7_64, "pm7_64") X(RESERVED_SMEM_OFFSET_0, "reserved_smem_offset_0") \
	X(RESERVED_SMEM_OFFSET_1, "reserved_smem_offset_1") \
	X(TID, "tid") X(TID_W, "tid.w") X(NTID, "ntid") X(NTID_W, "ntid.w") X(CTAID, "ctaid") \
	X(CTAID_W, "ctaid.w") X(NCTAID, "nctaid") X(NCTAID_W, "nctaid.w") \
	X(CLUSTERID, "clusterid") X(CLUSTERID_W, "clusterid.w") X(NCLUSTERID, "nclusterid") \
	X(NCLUSTERID_W, "nclusterid.w") X(CLUSTER_CTAID, "cluster_ctaid") \
	X(CLUSTER_CTAID_W, "cluster_ctaid.w") X(CLUSTER_NCTAID, "cluster_nctaid") \
	X(CLUSTER_NCTAID_W, "cluster_nctaid.w")
/* clang-format on */

typedef enum gpul_ptx_opcode {
#define X(id, text) GPUL_PTX_##id,
	GPUL_PTX_OPCODES(X)
#undef X
		GPUL_PTX_N_OPCODES
} gpul_ptx_opcode;

typedef enum gpul_ptx_mod {
	GPUL_PTX_MOD_NONE = 0, /* neither a type nor a state space */
#define X(id, text) GPUL_PTX_MOD_##id,
	GPUL_PTX_MODS(X)
#undef X
		GPUL_PTX_N_MODS,
	GPUL_PTX_MOD_EXTRA = 0x1000 /* plus the index in module->extra_mods */
} gpul_ptx_mod;

typedef enum gpul_ptx_special {
#define X(id, text) GPUL_PTX_SREG_##id,
	GPUL_PTX_SPECIALS(X)
#undef X
		GPUL_PTX_N_SPECIALS
} gpul_ptx_special;

/* A selected part of a register: an element of a vector (.x or .r ...), or bytes of a video operand (.b0, .h1). */
/* clang-format off */
typedef enum gpul_ptx_selector {
	GPUL_PTX_SEL_NONE,
	GPUL_PTX_SEL_X, GPUL_PTX_SEL_Y, GPUL_PTX_SEL_Z, GPUL_PTX_SEL_W,      /* also written .r .g .b .a */
	GPUL_PTX_SEL_B0, GPUL_PTX_SEL_B1, GPUL_PTX_SEL_B2, GPUL_PTX_SEL_B3,
	GPUL_PTX_SEL_H0, GPUL_PTX_SEL_H1,
	GPUL_PTX_SEL_BYTES,  /* .b3210, .b7654, .b10: value.i contains the digits, the rightmost in bits 0..3, the
	                      * next in bits 4..7 ...; bits 32..35 contain the number of digits */
	GPUL_PTX_SEL_HALVES, /* .h10, .h2: encoded like BYTES */
	GPUL_PTX_SEL_UNIFIED, /* after an ADDRESS: ld.global.u32 r, [a].unified */
} gpul_ptx_selector;
/* clang-format on */

/** Return the text of an opcode or special register, without dot or '%'. */
const char *gpul_ptx_opcode_text(gpul_ptx_opcode op);
const char *gpul_ptx_special_text(gpul_ptx_special s);

struct gpul_ptx_module;
/** Return the text of a modifier without its dot; m is the module that uses it; it may be NULL for numbers below EXTRA. */
const char *gpul_ptx_mod_text(const struct gpul_ptx_module *m, unsigned mod);

struct gpul_ptx_inst;
/** Write the opcode with its modifiers, "bar.sync", without operands; truncated to the size of buf.  Returns buf. */
const char *gpul_ptx_inst_text(const struct gpul_ptx_module *m, const struct gpul_ptx_inst *in, char *buf, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
