#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# NVMe over RDMA: the kernel's target (nvmet-rdma) on one link, its host (nvme-rdma)
# on the other, which may be two guests, an ext4 on top.  Then the links are set down and
# deleted under it, unless "core" is asked for.  With "srq" the target's
# receives come from shared queues.
# timeout: 600
. "$(dirname "$0")/ulp.sh"

need_modules nvme-rdma nvmet-rdma ext4
[[ $* == *srq* ]] && options=use_srq=1 || options=

cfg=/sys/kernel/config/nvmet
sub=$cfg/subsystems/rove-test
nqn=rove-test

# Bound to no address: a listener that is bound to one goes with its device for good.
target_up() {
	local p=$cfg/ports/1
	modprobe -r nvmet-rdma && modprobe nvmet-rdma $options && need_configfs && make_disk &&
	mkdir "$sub" && echo 1 > "$sub/attr_allow_any_host" &&
	mkdir "$sub/namespaces/1" && echo -n "$disk" > "$sub/namespaces/1/device_path" &&
	echo 1 > "$sub/namespaces/1/enable" &&
	mkdir $p && echo rdma > $p/addr_trtype && echo ipv4 > $p/addr_adrfam &&
	echo 0.0.0.0 > $p/addr_traddr && echo 4420 > $p/addr_trsvcid &&
	ln -s "$sub" "$p/subsystems/$nqn"
}
target_down() {
	rm -f "$cfg/ports/1/subsystems/$nqn"
	rmdir $cfg/ports/1 "$sub/namespaces/1" "$sub" 2>/dev/null
}
target_off() { target_down; modprobe -q -r nvmet-rdma brd; }

controller() {
	local c
	c=$(grep -lsx "$nqn" /sys/class/nvme/*/subsysnqn) && echo "${c%/*}"
}
connected() { controller > /dev/null; }
state_is() { [[ $(cat "$(controller)/state") == "$1" ]]; }
the_disk() {
	local d
	for d in "$(controller)"/nvme*n*; do
		d=${d##*/} d=${d/c[0-9]*n/n}
		[[ -b /dev/$d ]] && { echo "/dev/$d"; return; }
	done
	return 1
}
connect() {
	nvme connect -t rdma -a $B4 -w $A4 -s 4420 -n $nqn -i 2 --keep-alive-tmo=3 \
		--reconnect-delay=1 --ctrl-loss-tmo=60 && wait_for 20 the_disk
}
disconnect() { nvme disconnect -n $nqn && ! connected; }
extra_cleanup() { umount -l "$mnt"; disconnect; at_B target_off; modprobe -q -r nvme-rdma; } > /dev/null 2>&1

topo_pair 4200 && links || bail "two links"
t "the target listens" at_B target_up || done_testing
disk_points || done_testing

outage() {
	ip link set "$1" down && wait_for 40 eval '! state_is live' &&
	ip link set "$1" up && flat_routes && wait_for 60 state_is live && going_on
}
target_link() {
	timeout 60 rdma link delete "$LB" && link_add "" "$LB" "$DRIVER_B" vb &&
	wait_for 60 state_is live && going_on
}
host_link() { timeout 60 rdma link delete "$LA" && wait_for 20 eval '! connected' && wait_for 60 gone $loader; }
back() {
	umount "$mnt"
	link_add "" "$LA" "$DRIVER_A" va && wait_for 20 gid_index "$LA" $A4 && wait_for 20 port_active "$LA" &&
	connect && mount "$(the_disk)" "$mnt" && check_files
}
if [[ ! $core ]]; then
	for dev in vb va; do
		under_load "$dev is set down and up under load: it goes on" outage $dev
	done
	t "the files are still right" check_files
	under_load "the target's link is deleted and made again under load: it goes on" target_link
	under_load "the host's link is deleted under load: an error" host_link
	t "link and connection made again: the files are right" back
fi
t "the end" eval 'umount "$mnt" && disconnect && at_B target_down'
t "no QP is left" wait_for 20 no_qps nvme
done_testing
