#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# NFS over RDMA: the kernel's server and client (rpcrdma), an ext4 exported by one
# link and mounted over the other.  Unless "core" is asked for, links go under it.
# timeout: 600
. "$(dirname "$0")/ulp.sh"

need_modules rpcrdma nfsd nfsv4 ext4
for p in rpc.nfsd rpc.mountd exportfs mount.nfs; do type -P $p > /dev/null || skip_all "no $p"; done
export_dir=$tmp/export

server_up() {
	mkdir -p "$export_dir" /var/lib/nfs/{v4recovery,rpc_pipefs} &&
	mkfs.ext4 -q "$disk" && mount "$disk" "$export_dir" && chmod 755 "$tmp" || return
	: > /var/lib/nfs/etab; : > /var/lib/nfs/rmtab
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd || return
	exportfs -o rw,no_root_squash,insecure,no_subtree_check,fsid=0 "$A4:$export_dir" || return
	rpc.mountd -F -N 3 > "$tmp/mountd" 2>&1 & echo $! > "$tmp/mountd.pid"
	echo 10 > /proc/fs/nfsd/nfsv4gracetime
	rpc.nfsd -N 3 -V 4 4 && echo rdma 20049 > /proc/fs/nfsd/portlist &&
	cat /proc/fs/nfsd/portlist && echo Y > /proc/fs/nfsd/v4_end_grace
}
server_down() {
	rpc.nfsd 0; exportfs -ua; umount "$export_dir"
	kill "$(< "$tmp/mountd.pid")"
	! mountpoint -q "$export_dir"
}
mount_it() { timeout 60 mount -t nfs -o vers=4.2,sec=sys,proto=rdma,port=20049,clientaddr=$A4 $B4:/ "$mnt"; }
extra_cleanup() { umount -f -l "$mnt"; server_down; umount -l "$export_dir"; modprobe -q -r brd; } > /dev/null 2>&1

topo_pair 4200 && links || bail "two links"
make_disk || bail "a disk of memory"
t "the server listens" server_up || done_testing
t "mount" mount_it || done_testing
t "by RDMA" grep -q "$mnt nfs4 .*proto=rdma" /proc/mounts
t "$size MiB of files are written, over the wire" crossed "$size" write_files
t "umount, mount" eval 'umount "$mnt" && mount_it' || done_testing
t "they are what was written, over the wire" crossed "$size" check_files
on_server() { (cd "$export_dir" && sha256sum --quiet -c "$tmp/sums"); }
t "the server has the same" on_server

if [[ $core ]]; then
	t "the end" eval 'umount "$mnt" && server_down'
	done_testing
fi

again() {	# END: its link is deleted and made again
	local dev=v${1,} link=L$1
	timeout 60 rdma link delete "${!link}" && link_add "" "${!link}" "$DRIVER_A" "$dev" && going_on
}
outage() {
	ip link set "$1" down && ip link set "$1" up && flat_routes && going_on
}
under_load "vb is set down and up under load: it goes on" outage vb
under_load "the client's link is deleted and made again under load: it goes on" again A
under_load "the server's link is deleted and made again under load: it goes on" again B
t "the files are still right" check_files
t "the end" eval 'umount "$mnt" && server_down'
done_testing
