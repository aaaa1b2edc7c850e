# SPDX-License-Identifier: GPL-2.0
# Sourced after lib.sh: flow.c between the links $LA and $LB, disturbed.

flow_a= flow_b=

units() { sed -n 's/^at //p' "$1" | tail -n 1; }
further() { (($(units "$1" || echo 0) > $2)); }

# moves: both ends get further.  still: both print twice more, and the same figure, or have
# failed already.
moves() {
	local a b
	a=$(units "$tmp/flow.a") b=$(units "$tmp/flow.b")
	wait_for "$WAIT" further "$tmp/flow.a" "${a:-0}" && wait_for "$WAIT" further "$tmp/flow.b" "${b:-0}"
}
stood() { grep -q '^failed:' "$1" || [[ $(sed -n 's/^at //p' "$1" | tail -n 3 | uniq -c | awk '{ print $1 }') == 3 ]]; }
still() { wait_for "$WAIT" stood "$tmp/flow.a" && wait_for "$WAIT" stood "$tmp/flow.b"; }
# told FILE EVENT...: of the port's events these, in this order
port_events() { grep '^event: port' "$1" | cut -d' ' -f3- | paste -sd,; }
told() {
	local file=$1 all
	shift; all=$(IFS=,; echo "$*")
	wait_for "$WAIT" eval '[[ $(port_events "$file") == "$all" ]]' || { echo "told: $(port_events "$file")"; return 1; }
}

# flow_start ADDRESS-A ADDRESS-B OPTIONS: both programs in the initial namespace; they spin, and
# let what disturbs them go first
flow_start() {
	local ga gb p=$((port++))
	ga=$(gid_index "$LA" "$1") && gb=$(gid_index "$LB" "$2") || { echo "no GIDs"; return 1; }
	shift 2
	nice -n 10 "$bin/flow" -d "$LA" -g "$ga" -p $p "$@" > "$tmp/flow.a" 2>&1 & flow_a=$!
	wait_for 20 listening "" $p || { cat "$tmp/flow.a"; return 1; }
	nice -n 10 "$bin/flow" -d "$LB" -g "$gb" -p $p "$@" 127.0.0.1 > "$tmp/flow.b" 2>&1 & flow_b=$!
	moves
}
flow_show() { grep -v '^at ' "$tmp/flow.a" | sed 's/^/A: /'; grep -v '^at ' "$tmp/flow.b" | sed 's/^/B: /'; }
flow_stop() {	# in good order
	local rc=0
	kill $flow_b 2>/dev/null
	wait_for 60 gone $flow_b && wait_for 20 gone $flow_a || { echo "hangs"; kill -9 $flow_a $flow_b; rc=1; }
	wait $flow_a || rc=1
	wait $flow_b || rc=1
	return $rc
} 2>/dev/null
flow_kill() { kill -9 $flow_a $flow_b; wait $flow_a $flow_b; } 2>/dev/null

addresses() { if [[ $1 == -6 ]]; then echo $A6 $B6; else echo $A4 $B4; fi; }

# goes_on NAME -4|-6 COMMAND [OPTIONS]: it takes less than the twelve seconds of retries
goes_on() {
	local name=$1 ip=$2 cmd=$3 options=("${@:4}")
	whole() {
		flow_start $(addresses $ip) -T 17 -r 7 "${options[@]}" || { flow_show; flow_kill; return 1; }
		eval "$cmd" || { echo "failed: $cmd"; flow_show; flow_kill; return 1; }
		moves && moves || { echo "does not go on"; flow_show; flow_kill; return 1; }
		flow_stop; local rc=$?
		flow_show
		return $rc
	}
	t "$name: goes on" whole || return
	sed -n 's/^\(.\): flow:/#   \1:/p' "$tmp/t.out"
}

# fails NAME -4|-6 COMMAND A B: each end ends by itself, with what matches the regular
# expression given; none: that end is gone, or may wait for ever
fails() {
	local name=$1 ip=$2 cmd=$3 a=$4 b=$5
	ends() {	# PID FILE PATTERN
		[[ $3 ]] || return 0
		wait_for "$WAIT" gone "$1" || { echo "hangs: ${2##*.}"; return 1; }
		grep -qE "$3" "$2" || return
		# whose device goes is told so
		[[ $3 != "${FLUSH:-none}" ]] || grep -q "^event: local catastrophic error" "$2"
	}
	whole() {
		flow_start $(addresses $ip) -T 14 -r 3 || { flow_show; flow_kill; return 1; }
		eval "$cmd" || { echo "failed: $cmd"; flow_show; flow_kill; return 1; }
		ends $flow_a "$tmp/flow.a" "$a" && ends $flow_b "$tmp/flow.b" "$b"
		local rc=$?
		flow_show; flow_kill
		wait_for "$WAIT" no_objects qp mr || { echo "objects are left"; return 1; }
		return $rc
	}
	t "$name: fails${a:+, here: ${a#failed: }}${b:+, there: ${b#failed: }}" whole
}
