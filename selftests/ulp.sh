# SPDX-License-Identifier: GPL-2.0
# Sourced by the tests of kernel consumers (nvme.sh and the others): most of them
# live in the initial namespace, so both links are there and policy routes force the
# packets over the veth pair; a file system on top; and what crossed the wire.
# $ULP_SIZE is the size of the big file, in MiB; "core" as the test's first argument:
# a small one, as between two guests.
ONE_NS=1
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/lib.sh"

mnt=$tmp/mnt
[[ ${1:-} == core || $ROVE_FAR ]] && core=1 || core=
size=${ULP_SIZE:-$((core ? 2 : 16))}
disk_size=$((size * 4 > 64 ? size * 4 : 64))
disk=/dev/ram0
mkdir -p "$mnt"

need_modules() {
	local m
	for m; do modprobe "$m" || skip_all "no module $m"; done
}
need_configfs() { mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config; }

# at_B COMMAND...: where B is.  In another guest it finds what this script has defined
# up to now: the functions, and variables without capitals.
at_B() {
	[[ $ROVE_FAR ]] || { "$@"; return; }
	nB bash -c "$(declare -p $(compgen -v | grep -E '^[a-z]+(_[a-z]+)*$'); declare -f)
$(printf '%q ' "$@")"
}

# A disk of memory: $disk
make_disk() {
	modprobe -q -r brd
	modprobe brd rd_nr=1 rd_size=$((disk_size * 1024)) && [[ -b $disk ]]
}

# packets sent by both links
packets() {
	{ rdma statistic show; [[ $ROVE_FAR ]] && nB rdma statistic show; } 2>/dev/null | tr ' ' '\n' | awk '
		/^sent_pkts$/ { getline v; n += v } END { print n + 0 }'
}
# crossed MIB COMMAND...: it sends that much at least over the links, at MTU 4096
crossed() {
	local least=$(($1 * 256)) n; shift
	n=$(packets)
	"$@" || return
	n=$(($(packets) - n))
	((n >= least)) || { echo "$n packets, not $least"; return 1; }
}

# Random data in one big file, and many small ones; their checksums stay here.
write_files() {
	local i
	mkdir -p "$mnt/small" && head -c $((size << 20)) /dev/urandom > "$mnt/big" || return
	for i in {1..20}; do head -c $((i * 997)) "$mnt/big" > "$mnt/small/$i" || return; done
	(cd "$mnt" && sha256sum big small/*) > "$tmp/sums" && sync -f "$mnt"
}
check_files() { (cd "$mnt" && sha256sum --quiet -c "$tmp/sums"); }
no_qps() { ! rdma res show qp | grep -q "$1"; }

# disk_points: for consumers that show a disk.  connect, disconnect and the_disk
# (prints its device) are the test's.  Leaves it mounted.
disk_points() {
	t "connect" connect || return
	t "a file system" eval 'mkfs.ext4 -q "$(the_disk)" && mount "$(the_disk)" "$mnt"' || return
	t "$size MiB of files are written, over the wire" crossed "$size" write_files
	t "disconnect, connect, mount" eval 'umount "$mnt" && disconnect && connect && mount "$(the_disk)" "$mnt"' || return
	t "they are what was written, over the wire" crossed "$size" check_files
}

# A program that writes and syncs all the time, and says how far it is
load() {
	local i
	for ((i = 0; ; i++)); do
		head -c 100000 /dev/urandom > "$mnt/load.$((i % 8))" && sync -f "$mnt/load.$((i % 8))" || return
		echo "$i" > "$tmp/progress"
	done
}
progress() { cat "$tmp/progress" 2>/dev/null || echo -1; }
more() { (($(progress) > $1)); }
going_on() { local was; was=$(progress); wait_for 60 more $((was + 2)); }
# under_load NAME COMMAND...: a test point
under_load() {
	rm -f "$tmp/progress"
	load 2> /dev/null & loader=$!
	if wait_for 60 more 3; then t "$@"; else not_ok "$1: the load runs"; fi
	kill $loader 2>/dev/null; wait $loader 2>/dev/null
}
