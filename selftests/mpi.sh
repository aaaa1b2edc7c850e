#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Open MPI over UCX: two ranks, each on its end, as on two hosts: mpirun starts
# the other end's daemon through what it takes for ssh.  NetPIPE's integrity check
# and its ping-pong.
# timeout: 200
. "$(dirname "$0")/lib.sh"
{ command -v mpirun && command -v NPopenmpi; } > /dev/null || skip_all "no Open MPI or NetPIPE (Debian: openmpi-bin, netpipe-openmpi)"

topo_pair 4200 && links || bail "two links"

cat > "$tmp/ssh" <<-'AGENT'
	#!/bin/bash
	while [[ $1 == -* ]]; do shift; done
	host=$1; shift
	exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
AGENT
chmod +x "$tmp/ssh"

# UCX has no other way: MPI fails if RDMA does.
rank() { echo "-np 1 ${3:+--host $3:1} env UCX_TLS=$1,self UCX_NET_DEVICES=$2:1 UCX_UD_VERBS_ETH_DGID_CHECK=$check"; }
mpi() {
	local tls=$1 check=y; shift
	local common="--allow-run-as-root --mca pml ucx --mca btl ^openib,tcp,vader --mca osc ucx --mca orte_keep_fqdn_hostnames 1"
	if [[ $FLAT ]]; then
		check=n
		timeout -k 5 90 mpirun $common --oversubscribe $(rank $tls $LA) "$@" : $(rank $tls $LB) "$@"
	else
		"$tmp/ssh" "$NSA" timeout -k 5 90 mpirun $common --mca plm_rsh_agent "$tmp/ssh" \
			--mca oob_tcp_if_include 10.77.0.0/24 \
			$(rank $tls $LA $NSA) "$@" : $(rank $tls $LB $NSB) "$@"
	fi
}
cd "$tmp" || exit 1
for tls in rc_v ud_v; do
	check() { mpi $tls NPopenmpi -i -n 3 -l 1 -u 300000 > check 2>&1; cat check; grep -q passed check && ! grep -qi "fail\|abort" check; }
	pingpong() { mpi $tls NPopenmpi -n 5 -l 1 -u 300000 && (($(wc -l < np.out) > 50)); }
	t "$tls: NetPIPE's integrity check" check
	t "$tls: NetPIPE up to 300 KB" pingpong
done
done_testing
