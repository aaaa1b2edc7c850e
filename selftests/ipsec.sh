#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# RoCE has no encryption; what is under it has.  IPsec between two links: the
# packets leave as ESP, a policy that requires it drops what comes in clear, and
# keys that are missing for a while stop traffic but break nothing.  And verbs
# over a WireGuard device.
# timeout: 300
. "$(dirname "$0")/lib.sh"
. "$here/flow.sh"

topo_pair 1500 && links && pin_neighbours || bail "two links"
modprobe -q -a xfrm_user esp4 esp6

KEY=0x000102030405060708090a0b0c0d0e0f10111213
mode=transport
# sa NS SRC DST SPI; policies NS OUT-SRC OUT-DST
sa() { inns "$1" ip xfrm state add src "$2" dst "$3" proto esp spi "$4" reqid 1 mode $mode aead 'rfc4106(gcm(aes))' $KEY 128; }
policies() {
	inns "$1" ip xfrm policy add src "$2" dst "$3" dir out tmpl src "$2" dst "$3" proto esp reqid 1 mode $mode &&
	inns "$1" ip xfrm policy add src "$3" dst "$2" dir in tmpl src "$3" dst "$2" proto esp reqid 1 mode $mode level required
}
secure() {	# ADDRESS-A ADDRESS-B
	local ns
	for ns in "$NSA" "$NSB"; do sa "$ns" "$1" "$2" 0x101 && sa "$ns" "$2" "$1" 0x102 || return; done
	policies "$NSA" "$1" "$2" && policies "$NSB" "$2" "$1"
}
secure $A4 $B4 && secure $A6 $B6 || { lacks "IPsec" "no IPsec in this kernel"; done_testing; }

capture() {	# FILTER COMMAND...: how many packets of the filter pass va meanwhile
	local filter=$1 dump; shift
	spawn "$NSA" tcpdump -i "$dev" $way -nn -U -w "$tmp/cap" > "$tmp/tcpdump" 2>&1 & dump=$!
	wait_for 20 grep -q 'listening on' "$tmp/tcpdump" && "$@"
	local rc=$?
	kill -INT $dump; wait $dump
	count=$(tcpdump -nn -r "$tmp/cap" "$filter" 2> /dev/null | wc -l)
	return $rc
}
dev=va way=
pp() { both 60 B "ibv_rc_pingpong -d %d -g $1 -p %p -c -s 20000 -n 50"; }
clear() {	# all that is to be seen is encrypted
	capture "udp port 4791" "$@" && ((!count)) || { echo "$count packets in clear"; return 1; }
	count=$(tcpdump -nn -r "$tmp/cap" "esp or ip6 proto 50" 2> /dev/null | wc -l)
	((count > 100)) || { echo "$count packets of ESP"; return 1; }
}
t "IPv4: pingpong through ESP, nothing in clear" clear pp %g4
t "IPv6: pingpong through ESP, nothing in clear" clear pp %g6
rc_data "ESP" A "-g %g4 -t send,write,read,mix"

# --- in clear where ESP is required --------------------------------------------------

RETRY="failed: transport retry counter exceeded"
xfrm_stat() { nA awk -v name="$1" '$1 == name { print $2 }' /proc/net/xfrm_stat; }
dropped() { (($(xfrm_stat XfrmInTmplMismatch) + $(xfrm_stat XfrmInNoPols) > $1)); }
in_clear() {	# B's stack no longer encrypts, nor does it ask for it
	local before
	before=$(($(xfrm_stat XfrmInTmplMismatch) + $(xfrm_stat XfrmInNoPols)))
	nB ip xfrm policy flush && wait_for 10 dropped "$before"
}
fails "one end sends in clear, the other requires ESP" -4 in_clear "$RETRY" "$RETRY"
policies "$NSB" $B4 $A4
policies "$NSB" $B6 $A6

# --- keys missing for a while -----------------------------------------------------------

rekey() {
	nA ip xfrm state delete src $A4 dst $B4 proto esp spi 0x101 && still && sa "$NSA" $A4 $B4 0x101
}
goes_on "one end loses its key and gets it back" -4 rekey
topo_del

# --- a tunnel -----------------------------------------------------------------------------

# what has been decrypted comes in by the device once more
mode=tunnel way="-Q out"
topo_pair 4200 && links && pin_neighbours && secure $A4 $B4 && secure $A6 $B6 || bail "a tunnel"
t "tunnel, IPv4: pingpong through ESP, nothing in clear" clear pp %g4
t "tunnel, IPv6: pingpong through ESP, nothing in clear" clear pp %g6
rc_data "tunnel, packets that do not fit, IPv4" A "-g %g4 -m 4096 -t send,write,read,mix"
rc_data "tunnel, packets that do not fit, IPv6" A "-g %g6 -m 4096 -t send,write,read,mix"
topo_del
way=

# --- WireGuard ------------------------------------------------------------------------------

wireguard() {
	type wg && modprobe wireguard || cannot "no WireGuard" || return
	local ns key
	for ns in a b; do wg genkey > "$tmp/$ns.key"; wg pubkey < "$tmp/$ns.key" > "$tmp/$ns.pub"; done
	nA ip addr flush dev va; nB ip addr flush dev vb
	nA ip addr add 10.70.0.1/24 dev va; nB ip addr add 10.70.0.2/24 dev vb
	nA ip link add wg0 type wireguard && nB ip link add wg0 type wireguard &&
	nA wg set wg0 private-key "$tmp/a.key" listen-port 51820 peer "$(< "$tmp/b.pub")" allowed-ips $B4/32,$B6/128 endpoint 10.70.0.2:51820 &&
	nB wg set wg0 private-key "$tmp/b.key" listen-port 51820 peer "$(< "$tmp/a.pub")" allowed-ips $A4/32,$A6/128 endpoint 10.70.0.1:51820 &&
	set_end "$NSA" wg0 1420 $A4 $A6 && set_end "$NSB" wg0 1420 $B4 $B6 &&
	link_add "$NSA" rovea rove wg0 && link_add "$NSB" roveb rove wg0 &&
	wait_for "$WAIT" port_active rovea && wait_for "$WAIT" gid_index rovea $A4 && wait_for "$WAIT" gid_index roveb $B6
}
hidden() {
	capture "udp port 4791" "$@" && ((!count)) || { echo "$count packets in clear"; return 1; }
	count=$(tcpdump -nn -r "$tmp/cap" "udp port 51820" 2> /dev/null | wc -l)
	((count > 100)) || { echo "$count packets of WireGuard's"; return 1; }
}
topo_pair 1500 || bail "topology"
if t "links on two WireGuard devices" wireguard; then
	LA=rovea LB=roveb
	t "WireGuard, IPv4: pingpong, nothing in clear" hidden pp %g4
	t "WireGuard, IPv6: pingpong, nothing in clear" hidden pp %g6
	rc_data "WireGuard" A "-g %g4 -t send,write,read,mix"
fi
done_testing
