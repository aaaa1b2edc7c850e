# SPDX-License-Identifier: GPL-2.0
# For those who build kernels: vm/debug-kernel, uml/build.  They have $configs, the files of
# options, $kernel, where .config is, and say().

# kconfig drops what it cannot have without a word; of two lines the last counts
taken() {
	cat "${configs[@]}" | tac | awk '/^(# )?CONFIG_/ { match($0, /CONFIG_[A-Za-z0-9_]+/)
		if (!seen[substr($0, RSTART, RLENGTH)]++) print }' | {
		local want bad=0
		while read -r want; do
			grep -qxF "$want" "$kernel/.config" && continue
			[[ $want == '# '* ]] && ! grep -q "^$(cut -d' ' -f2 <<< "$want")=" "$kernel/.config" && continue
			say "the kernel does not take $want"
			bad=1
		done
		return $bad
	}
}
