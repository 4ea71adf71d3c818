#!/bin/bash
# The software driver runs every instruction form.  Its handlers are built for several instruction sets (GPULOAD_SOFT_ISA): each build that
# this CPU supports gives a GPU's results (forms.h200), and all builds give the same bits.  The comparison must detect a changed bit.
set -eu
build=${GPULOAD_BUILD:-build}
export GPULOAD_SOFT_DRIVER=${GPULOAD_SOFT_DRIVER:-$build/softcuda/libcuda-soft.so}
forms=$build/tests/gpu/forms
oracle=tests/gpu/forms.h200
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

agree() {
	"$forms" "$@" >"$dir/report" || {
		grep -A3 '^FAIL' "$dir/report"
		exit 1
	}
	tail -1 "$dir/report"
}

python3 tests/gpu/make_forms.py "$dir/forms"
for isa in base v3 v4; do
	GPULOAD_SOFT_ISA=$isa "$forms" run "$dir/forms" --driver soft --out "$dir/$isa" --write-hashes "$dir/hashes.$isa"
	if grep -a ' refused 0: ' "$dir/$isa"; then
		echo "the driver refused the forms above"
		exit 1
	fi
	agree compare "$dir/forms" "$dir/base" "$dir/$isa"
	agree check "$dir/forms" $oracle "$dir/$isa"
done
agree check "$dir/forms" "$dir/hashes.base" "$dir/base"
grep -q ' 0 failed, 0 skipped' "$dir/report"

# Change the last byte of the dump, which belongs to a result.
head -c -1 "$dir/base" >"$dir/changed"
printf '%b' "\\x$(printf '%02x' $((0x$(tail -c 1 "$dir/base" | od -An -tx1 | tr -d ' ') ^ 1)))" >>"$dir/changed"
for other in "compare $dir/forms $dir/base" "check $dir/forms $dir/hashes.base"; do
	if "$forms" $other "$dir/changed" >"$dir/report"; then
		echo "a changed bit was not detected: $other"
		exit 1
	fi
	grep -q ' 1 failed, ' "$dir/report"
done
