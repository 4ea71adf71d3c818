#!/bin/bash
# The software driver runs every instruction form.  Its portable handlers and its best handlers for this CPU give the
# same bits.  The comparison detects a changed bit.
set -eu
build=${GPULOAD_BUILD:-build}
export GPULOAD_SOFT_DRIVER=${GPULOAD_SOFT_DRIVER:-$build/softcuda/libcuda-soft.so}
forms=$build/tests/gpu/forms
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

python3 tests/gpu/make_forms.py "$dir/forms"
"$forms" run "$dir/forms" --driver soft --out "$dir/one"
GPULOAD_SOFT_ISA=base "$forms" run "$dir/forms" --driver soft --out "$dir/two"
if grep -a ' refused 0: ' "$dir/one"; then
	echo "the driver refused the forms above"
	exit 1
fi
"$forms" compare "$dir/forms" "$dir/one" "$dir/two" >"$dir/report" || {
	grep -A3 '^FAIL' "$dir/report"
	exit 1
}
echo "$(find "$dir/forms" -name '*.ptx' | wc -l) forms gave equal results"

# The last byte of the dump belongs to an output.
head -c -1 "$dir/one" >"$dir/changed"
printf '%b' "\\x$(printf '%02x' $((0x$(tail -c 1 "$dir/one" | od -An -tx1 | tr -d ' ') ^ 1)))" >>"$dir/changed"
if "$forms" compare "$dir/forms" "$dir/one" "$dir/changed" >"$dir/report"; then
	echo "a changed bit was not detected"
	exit 1
fi
grep -q ' 1 failed, ' "$dir/report"
