// rules.js — what simple instructions compute: the same rules as in predict.c, which checked that they hold.
//
// A register is a Uint32Array: 32 words, one for each lane; of 64 bits: the 32 low words, then the 32 high words.

const scratch = new DataView(new ArrayBuffer(8));

function toFloat(bits) { scratch.setUint32(0, bits); return scratch.getFloat32(0); }
function fromFloat(x) { scratch.setFloat32(0, x); return scratch.getUint32(0); }
function toDouble(low, high) { scratch.setUint32(0, high); scratch.setUint32(4, low); return scratch.getFloat64(0); }

function setDouble(out, lane, x) {
	scratch.setFloat64(0, x);
	out[lane] = scratch.getUint32(4);
	out[32 + lane] = scratch.getUint32(0);
}

function toBig(r, lane) { return BigInt(r[32 + lane]) << 32n | BigInt(r[lane]); }

function setBig(out, lane, x) {
	out[lane] = Number(x & 0xffffffffn);
	out[32 + lane] = Number(x >> 32n & 0xffffffffn);
}

// a * b + c with one rounding: the sum in doubles, rounded to odd, and then to a float (Boldo and Melquiond, 2008).
function fusedFloat(a, b, c) {
	const product = a * b, sum = product + c;  // the product of two floats is exact
	const part = sum - product, error = product - (sum - part) + (c - part);

	if (error === 0 || !Number.isFinite(sum))
		return sum;
	scratch.setFloat64(0, sum);
	const low = scratch.getUint32(4);
	if (low & 1)
		return sum;
	const bits = scratch.getBigUint64(0);
	scratch.setBigUint64(0, (error > 0) === (sum > 0) ? bits + 1n : bits - 1n);
	return scratch.getFloat64(0);
}

function lop3(a, b, c, table) {
	let out = 0;

	for (let k = 0; k < 8; k++)
		if (table >> k & 1)
			out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
	return out;
}

// Rules on words: 32-bit sources and a 32-bit result.
const wordRules = {
	MOV_16: (a) => a, MOV_32: (a) => a,
	ADD_32: (a, b) => a + b, SUB_32: (a, b) => a - b, MUL_32: Math.imul, MAD_32: (a, b, c) => Math.imul(a, b) + c, NEG_32: (a) => -a,
	AND_32: (a, b) => a & b, OR_32: (a, b) => a | b, XOR_32: (a, b) => a ^ b, NOT_32: (a) => ~a,
	SHL_32: (a, b) => b < 32 ? a << b : 0, SHR_U32: (a, b) => b < 32 ? a >>> b : 0, SHR_S32: (a, b) => a >> (b < 31 ? b : 31),
	MIN_U32: (a, b) => a < b ? a : b, MAX_U32: (a, b) => a > b ? a : b,
	MIN_S32: (a, b) => (a | 0) < (b | 0) ? a : b, MAX_S32: (a, b) => (a | 0) > (b | 0) ? a : b,
	LOP3: lop3,
	SHF_L_WRAP: (a, b, c) => c & 31 ? b << (c & 31) | a >>> (32 - (c & 31)) : b,
	SHF_R_WRAP: (a, b, c) => c & 31 ? a >>> (c & 31) | b << (32 - (c & 31)) : a,
	SELP_32: (a, b, c) => c ? a : b,
	NEG_F32: (a) => a ^ 0x80000000, ABS_F32: (a) => a & 0x7fffffff,
	MIN_F32: (a, b) => toFloat(a) < toFloat(b) ? a : b, MAX_F32: (a, b) => toFloat(a) > toFloat(b) ? a : b,
	CVT_F32_S32: (a) => fromFloat(a | 0), CVT_F32_U32: (a) => fromFloat(a),
	ADD_F32: (a, b) => fromFloat(toFloat(a) + toFloat(b)), SUB_F32: (a, b) => fromFloat(toFloat(a) - toFloat(b)),
	MUL_F32: (a, b) => fromFloat(toFloat(a) * toFloat(b)), DIV_F32: (a, b) => fromFloat(toFloat(a) / toFloat(b)),
	FMA_F32: (a, b, c) => fromFloat(fusedFloat(toFloat(a), toFloat(b), toFloat(c))), SQRT_F32: (a) => fromFloat(Math.sqrt(toFloat(a))),
};

// Rules on 64-bit integers, with all sources of 64 bits.
const bigRules = {
	MUL_64: (a, b) => a * b, MAD_64: (a, b, c) => a * b + c, SUB_64: (a, b) => a - b, NEG_64: (a) => -a,
	AND_64: (a, b) => a & b, OR_64: (a, b) => a | b, XOR_64: (a, b) => a ^ b, NOT_64: (a) => ~a, MOV_64: (a) => a,
};

const doubleRules = {
	ADD_F64: (a, b) => a + b, SUB_F64: (a, b) => a - b, MUL_F64: (a, b) => a * b, DIV_F64: (a, b) => a / b, SQRT_F64: (a) => Math.sqrt(a),
};

function setProduct(out, lane, a, b) {
	const product = a * b;

	if (Math.abs(product) <= Number.MAX_SAFE_INTEGER) {
		out[lane] = product >>> 0;
		out[32 + lane] = Math.floor(product / 4294967296) >>> 0;
	} else {
		setBig(out, lane, BigInt(a) * BigInt(b));
	}
}

// Rules with sources and results of different widths: f(out, lane, a, b) has whole registers.
const mixedRules = {
	ADD_64: (out, l, a, b) => {
		const low = a[l] + b[l];
		out[32 + l] = a[32 + l] + b[32 + l] + (low > 0xffffffff ? 1 : 0);
		out[l] = low;
	},
	MUL_WIDE_U32: (out, l, a, b) => setProduct(out, l, a[l], b[l]),
	MUL_WIDE_S32: (out, l, a, b) => setProduct(out, l, a[l] | 0, b[l] | 0),
	CVT_S64_S32: (out, l, a) => { out[l] = a[l]; out[32 + l] = a[l] >>> 31 ? 0xffffffff : 0; },
	CVT_U64_U32: (out, l, a) => { out[l] = a[l]; out[32 + l] = 0; },
	CVT_32_64: (out, l, a) => { out[l] = a[l]; },
	CVT_F64_S32: (out, l, a) => setDouble(out, l, a[l] | 0),
	CVT_F64_U32: (out, l, a) => setDouble(out, l, a[l]),
	CVT_F64_F32: (out, l, a) => setDouble(out, l, toFloat(a[l])),
	CVT_F32_F64: (out, l, a) => { out[l] = fromFloat(toDouble(a[l], a[32 + l])); },
};

// Apply a rule for the lanes `on`; sources are registers.
function applyRule(name, out, sources, on, imm) {
	const [a, b, c] = sources;
	const word = wordRules[name], big = bigRules[name], double = doubleRules[name], mixed = mixedRules[name];
	const each = (f) => {
		for (let l = 0; l < 32; l++)
			if (on >>> l & 1)
				f(l);
	};

	if (name === "LOP3")
		each((l) => { out[l] = lop3(a[l], b[l], c[l], imm); });
	else if (word)
		each((l) => { out[l] = word(a[l], b && b[l], c && c[l]); });
	else if (mixed)
		each((l) => mixed(out, l, a, b));
	else if (double)
		each((l) => setDouble(out, l, double(toDouble(a[l], a[32 + l]), b && toDouble(b[l], b[32 + l]))));
	else if (big)
		each((l) => setBig(out, l, big(toBig(a, l), b && toBig(b, l), c && toBig(c, l))));
	else
		throw new Error("the page has no rule " + name);
}
