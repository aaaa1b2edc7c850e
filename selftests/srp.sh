#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# SRP by rdma_cm: the kernel's target (LIO, ib_srpt) on one link, ib_srp on the
# other, an ext4 on top.  Unless "core" is asked for, it logs out and in again
# under way.  With "srq" the target's receives come from a shared queue: ib_srpt itself
# warns when such a session ends, whatever the driver (srpt_cache_put() of a cache
# that it has not made).
# timeout: 400
. "$(dirname "$0")/ulp.sh"

need_modules ib_srp ib_srpt target_core_iblock sd_mod ext4
need_configfs
lio=/sys/kernel/config/target

# All of the target's ports go by the node GUID of the first.
guid() { sed s/0x// /sys/module/ib_srpt/parameters/srpt_service_guid; }

# To the target a session's name is the address that it came in at.
target_up() {
	mkdir -p $lio/srpt/discovery_auth && echo 5555 > $lio/srpt/discovery_auth/rdma_cm_port &&
	mkdir -p $lio/core/iblock_0/ram &&
	echo "udev_path=$disk" > $lio/core/iblock_0/ram/control && echo 1 > $lio/core/iblock_0/ram/enable &&
	mkdir -p "$tpg/lun/lun_0" && ln -s $lio/core/iblock_0/ram "$tpg/lun/lun_0/disk" &&
	mkdir -p "$tpg/acls/$B4/lun_0" && ln -s "$tpg/lun/lun_0" "$tpg/acls/$B4/lun_0/lun" || return
	[[ $1 != *srq* ]] || echo 1 > "$tpg/attrib/use_srq" || return
	echo 1 > "$tpg/enable"
}
target_down() {
	echo 0 > "$tpg/enable"
	rm -f "$tpg/acls/$B4/lun_0/lun"; rmdir "$tpg/acls/$B4/lun_0" "$tpg/acls/$B4"
	rm -f "$tpg/lun/lun_0/disk"; rmdir "$tpg/lun/lun_0" "$tpg" "$lio/srpt/$wwn" $lio/srpt
	rmdir $lio/core/iblock_0/ram $lio/core/iblock_0
	[[ ! -e $lio/core/iblock_0 ]]
} 2>/dev/null

srp_port=/sys/class/infiniband_srp/srp
remote() { ls -d /sys/class/srp_remote_ports/port-* 2>/dev/null | head -n 1; }
the_disk() {
	local d
	for d in /sys/class/srp_remote_ports/port-*/device/../target*/*/block/sd*; do
		[[ -b /dev/${d##*/} ]] && { echo "/dev/${d##*/}"; return; }
	done
	return 1
}
# The last connection may not be gone yet.
log_in() { echo "id_ext=$(guid),ioc_guid=$(guid),src=$A4,dest=$B4:5555" > "$srp_port-$LA-1/add_target"; }
connect() { wait_for 20 log_in && wait_for 20 the_disk; }
disconnect() { echo 1 > "$(remote)/delete" && wait_for 20 eval '! the_disk'; }
extra_cleanup() { umount -l "$mnt"; disconnect; target_down; modprobe -q -r ib_srp ib_srpt brd; } > /dev/null 2>&1

topo_pair 4200 && links || bail "two links"
wwn=$(cat "/sys/class/infiniband/$LB/node_guid")
tpg=$lio/srpt/$wwn/$wwn
make_disk || bail "a disk of memory"
t "the target listens" target_up "$*" || done_testing
disk_points || { ls -R /sys/class/srp_remote_ports/ /sys/class/infiniband_srp; done_testing; }
again() { umount "$mnt" && disconnect && connect && mount "$(the_disk)" "$mnt" && check_files; }
if [[ ! $core ]]; then
	for i in {1..5}; do
		t "log-out and log-in $i: the files are right" again || done_testing
	done
fi
t "the end" eval 'umount "$mnt" && disconnect && target_down'
t "no QP is left" wait_for 20 no_qps srp
done_testing
