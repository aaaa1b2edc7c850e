# SPDX-License-Identifier: GPL-2.0
# Which installed kernels the tests run on, which tests there are, and what came of them.

selftests=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
vmrun=$selftests/vm/run

# All tests run here: 6.12, else the newest that is installed.
main_kernel() {
	"$vmrun" --print-kernel -k 6.12 2>/dev/null && return
	local rel
	rel=$(ls -d /lib/modules/*/build 2>/dev/null | cut -d/ -f4 | sort -V | tail -n 1)
	"$vmrun" --print-kernel -k "${rel:-none}"
}

# The core set here: 6.1, where there is one.
core_kernel() { "$vmrun" --print-kernel -k 6.1 2>/dev/null; }

# What the last line says; vm/run's summary is added to it.
passed=0 failed=0 skipped=0
count() { passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3)); }
report() {
	echo "$passed passed, $failed failed, $skipped skipped"
	exit $((failed > 0))
}
# run_tests FOLDER OPTIONS OF VM/RUN...: the results are in FOLDER
run_tests() {
	rm -f "$1/summary"
	"$vmrun" -q -o "$@" | grep --line-buffered -v ' passed, .* skipped$'
	if [[ -f $1/summary ]]; then count $(< "$1/summary"); else lost "$1: no summary"; fi
}
lost() { echo "not ok - $*"; count 0 1 0; }

# tests_of CLASS...: a line each.  Where a whole script is among them, its core part is not.
tests_of() {
	sed -nE "s/^($(IFS='|'; echo "$*"))[[:space:]]+//p" "$selftests/tests" | awk '
		{ line[NR] = $0; have[$0] = 1 }
		END { for (i = 1; i <= NR; i++) { w = line[i]; sub(/ core$/, "", w)
			if (w == line[i] || !have[w]) print line[i] } }'
}
