#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# iSER: the kernel's target (LIO, ib_isert) on one link, open-iscsi with ib_iser on
# the other, an ext4 on top.
# timeout: 400
. "$(dirname "$0")/ulp.sh"

need_modules ib_iser ib_isert target_core_iblock sd_mod ext4
need_configfs
for p in iscsid iscsiadm; do type -P $p > /dev/null || skip_all "no $p"; done
iqn=iqn.2026-11.test.rove:disk
lio=/sys/kernel/config/target
tpg=$lio/iscsi/$iqn/tpgt_1

target_up() {
	local a
	mkdir -p $lio/core/iblock_0/ram &&
	echo "udev_path=$disk" > $lio/core/iblock_0/ram/control && echo 1 > $lio/core/iblock_0/ram/enable &&
	mkdir -p $tpg/lun/lun_0 && ln -s $lio/core/iblock_0/ram $tpg/lun/lun_0/disk &&
	mkdir $tpg/np/$B4:3260 && echo 1 > $tpg/np/$B4:3260/iser || return
	for a in authentication=0 generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0; do
		echo ${a#*=} > $tpg/attrib/${a%=*} || return
	done
	echo 1 > $tpg/enable
}
target_down() {
	echo 0 > $tpg/enable
	rmdir $tpg/np/*; rm -f $tpg/lun/lun_0/disk; rmdir $tpg/lun/lun_0 $tpg $lio/iscsi/$iqn
	rmdir $lio/core/iblock_0/ram $lio/core/iblock_0; rmdir $lio/iscsi
	[[ ! -e $lio/core/iblock_0 ]]
} 2>/dev/null

initiator_up() {
	mkdir -p /etc/iscsi /run/lock && echo "InitiatorName=iqn.2026-11.test.rove:host" > /etc/iscsi/initiatorname.iscsi
	# ended, it ends its process group
	setsid iscsid -f > "$tmp/iscsid" 2>&1 & echo $! > "$tmp/iscsid.pid"
	wait_for 20 iscsiadm -m node -o new -T $iqn -p $B4:3260 -I iser
}
the_disk() {
	local d
	for d in /sys/class/iscsi_session/session*/device/target*/*/block/sd*; do
		[[ -b /dev/${d##*/} ]] && { echo "/dev/${d##*/}"; return; }
	done
	return 1
}
connect() { timeout 60 iscsiadm -m node -T $iqn -p $B4:3260 -I iser --login && wait_for 20 the_disk; }
disconnect() { timeout 60 iscsiadm -m node -T $iqn -p $B4:3260 -I iser --logout && wait_for 20 eval '! the_disk'; }
extra_cleanup() { umount -l "$mnt"; disconnect; kill "$(< "$tmp/iscsid.pid")"; target_down; modprobe -q -r ib_iser ib_isert brd; } > /dev/null 2>&1

topo_pair 4200 && links || bail "two links"
make_disk || bail "a disk of memory"
t "the target listens" target_up || done_testing
t "the initiator runs" initiator_up || done_testing
disk_points || { sed 's/^/# iscsid: /' "$tmp/iscsid"; done_testing; }
t "by iSER" eval "iscsiadm -m session | grep ^iser:"
t "the end" eval 'umount "$mnt" && disconnect && target_down'
done_testing
