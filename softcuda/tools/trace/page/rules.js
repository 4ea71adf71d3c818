// rules.js — computes the results of simple instructions by the same rules as trace_predict.c, which has checked the results.
//
// A register is a Uint32Array: 32 words, one for each lane; a register of 64 bits has the 32 low words, then the 32 high words.

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

// Return the high word of the product of two words.
function highProduct(a, b) {
	const a0 = a & 0xffff, a1 = a >>> 16, b0 = b & 0xffff, b1 = b >>> 16;
	const middle = a1 * b0 + (a0 * b0 >>> 16) , rest = a0 * b1 + (middle & 0xffff);

	return a1 * b1 + Math.floor(middle / 65536) + Math.floor(rest / 65536);
}

// Return a * b + c with one rounding: the sum is rounded to odd as a double, then to a float (Boldo and Melquiond, 2008).
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

// Rules with 32-bit sources and a 32-bit result.
const wordRules = {
	MOV_16: (a) => a, CVT_U32_U16: (a) => a, CVT_16_32: (a) => a, MOV_32: (a) => a,
	ADD_32: (a, b) => a + b, SUB_32: (a, b) => a - b, MUL_32: Math.imul, MAD_32: (a, b, c) => Math.imul(a, b) + c, NEG_32: (a) => -a,
	AND_32: (a, b) => a & b, OR_32: (a, b) => a | b, XOR_32: (a, b) => a ^ b, NOT_32: (a) => ~a,
	SHL_32: (a, b) => b < 32 ? a << b : 0, SHR_U32: (a, b) => b < 32 ? a >>> b : 0, SHR_S32: (a, b) => a >> (b < 31 ? b : 31),
	MIN_U32: (a, b) => a < b ? a : b, MAX_U32: (a, b) => a > b ? a : b,
	MIN_S32: (a, b) => (a | 0) < (b | 0) ? a : b, MAX_S32: (a, b) => (a | 0) > (b | 0) ? a : b,
	BREV_32: (a) => { let out = 0; for (let k = 0; k < 32; k++) out |= (a >>> k & 1) << (31 - k); return out; },
	LOP3: lop3, MUL_HI_U32: highProduct, CLZ_32: Math.clz32,
	POPC_32: (a) => { let n = 0; for (; a; a &= a - 1) n++; return n; },
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

// Rounding errors of sums and products, and a sum rounded to odd, as in trace_predict.c.
function sumError(a, b, sum) {
	const part = sum - a;
	return a - (sum - part) + (b - part);
}

function productError(a, b, product) {
	const split = 134217729, a1 = split * a, b1 = split * b;
	const aHigh = a1 - (a1 - a), bHigh = b1 - (b1 - b), aLow = a - aHigh, bLow = b - bHigh;
	return aLow * bLow - (product - aHigh * bHigh - aLow * bHigh - aHigh * bLow);
}

function oddSum(a, b) {
	const sum = a + b, error = sumError(a, b, sum);

	if (error === 0 || !Number.isFinite(sum))
		return sum;
	scratch.setFloat64(0, sum);
	const low = scratch.getUint32(4), high = scratch.getUint32(0);
	if (low & 1)
		return sum;
	const up = (error > 0) === (sum > 0);
	scratch.setUint32(4, up ? low + 1 : low - 1);
	if (!up && low === 0)
		scratch.setUint32(0, high - 1);
	return scratch.getFloat64(0);
}

function fusedDouble(a, b, c) {
	const product = a * b, error = productError(a, b, product), high = c + error, low = sumError(c, error, high);
	const sum = product + high;

	return sum + oddSum(sumError(product, high, sum), low);
}

const doubleRules = {
	ADD_F64: (a, b) => a + b, SUB_F64: (a, b) => a - b, MUL_F64: (a, b) => a * b, DIV_F64: (a, b) => a / b, SQRT_F64: (a) => Math.sqrt(a), FMA_F64: fusedDouble,
};

// out = high:low, modulo 2^64
function setWords(out, lane, low, high) {
	out[lane] = low;
	out[32 + lane] = high;
}

function setSum(out, lane, low, high, addLow, addHigh) {
	const sum = low + addLow;

	setWords(out, lane, sum, high + addHigh + (sum > 0xffffffff ? 1 : 0));
}

// Return the low 64 bits of a product, as [low, high].
function product64(a, b, l) {
	const low = a[l], other = b[l];

	return [Math.imul(low, other) >>> 0, (highProduct(low, other) + Math.imul(a[32 + l], other) + Math.imul(low, b[32 + l])) >>> 0];
}

function setShift(out, l, a, n, left) {
	const low = a[l], high = a[32 + l];

	if (n > 63)
		setWords(out, l, 0, 0);
	else if (n === 0)
		setWords(out, l, low, high);
	else if (left)
		setWords(out, l, n < 32 ? low << n : 0, n < 32 ? high << n | low >>> (32 - n) : low << (n - 32));
	else
		setWords(out, l, n < 32 ? low >>> n | high << (32 - n) : high >>> (n - 32), n < 32 ? high >>> n : 0);
}

// Rules with sources or results of 64 bits: f(out, lane, a, b, c) gets whole registers.
const mixedRules = {
	MOV_64: (out, l, a) => setWords(out, l, a[l], a[32 + l]),
	ADD_64: (out, l, a, b) => setSum(out, l, a[l], a[32 + l], b[l], b[32 + l]),
	SUB_64: (out, l, a, b) => setWords(out, l, a[l] - b[l], a[32 + l] - b[32 + l] - (a[l] < b[l] ? 1 : 0)),
	NEG_64: (out, l, a) => setWords(out, l, -a[l], -a[32 + l] - (a[l] ? 1 : 0)),
	MUL_64: (out, l, a, b) => setWords(out, l, ...product64(a, b, l)),
	MAD_64: (out, l, a, b, c) => setSum(out, l, ...product64(a, b, l), c[l], c[32 + l]),
	SELP_64: (out, l, a, b, c) => setWords(out, l, c[l] ? a[l] : b[l], c[l] ? a[32 + l] : b[32 + l]),
	AND_64: (out, l, a, b) => setWords(out, l, a[l] & b[l], a[32 + l] & b[32 + l]),
	OR_64: (out, l, a, b) => setWords(out, l, a[l] | b[l], a[32 + l] | b[32 + l]),
	XOR_64: (out, l, a, b) => setWords(out, l, a[l] ^ b[l], a[32 + l] ^ b[32 + l]),
	NOT_64: (out, l, a) => setWords(out, l, ~a[l], ~a[32 + l]),
	SHL_64: (out, l, a, b) => setShift(out, l, a, b[l], true),
	SHR_U64: (out, l, a, b) => setShift(out, l, a, b[l], false),
	NEG_F64: (out, l, a) => setWords(out, l, a[l], a[32 + l] ^ 0x80000000),
	ABS_F64: (out, l, a) => setWords(out, l, a[l], a[32 + l] & 0x7fffffff),
	MUL_WIDE_U32: (out, l, a, b) => setWords(out, l, Math.imul(a[l], b[l]), highProduct(a[l], b[l])),
	MUL_WIDE_S32: (out, l, a, b) => setWords(out, l, Math.imul(a[l], b[l]), highProduct(a[l], b[l]) - (a[l] >>> 31 ? b[l] : 0) - (b[l] >>> 31 ? a[l] : 0)),
	CVT_S64_S32: (out, l, a) => { out[l] = a[l]; out[32 + l] = a[l] >>> 31 ? 0xffffffff : 0; },
	CVT_U64_U32: (out, l, a) => { out[l] = a[l]; out[32 + l] = 0; },
	CVT_32_64: (out, l, a) => { out[l] = a[l]; },
	CVT_F64_S32: (out, l, a) => setDouble(out, l, a[l] | 0),
	CVT_F64_U32: (out, l, a) => setDouble(out, l, a[l]),
	CVT_F64_F32: (out, l, a) => setDouble(out, l, toFloat(a[l])),
	CVT_F32_F64: (out, l, a) => { out[l] = fromFloat(toDouble(a[l], a[32 + l])); },
};

// Apply a rule to the lanes in the mask `on`; sources are registers.
function applyRule(name, out, sources, on, imm) {
	const [a, b, c] = sources;
	const word = wordRules[name], double = doubleRules[name], mixed = mixedRules[name];
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
		each((l) => mixed(out, l, a, b, c));
	else if (double)
		each((l) => setDouble(out, l, double(toDouble(a[l], a[32 + l]), b && toDouble(b[l], b[32 + l]), c && toDouble(c[l], c[32 + l]))));
	else
		throw new Error("the page has no rule " + name);
}
